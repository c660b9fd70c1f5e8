//! Mutants that accept near misses, or lose unusual values.

use std::sync::Mutex;

use super::super::{End, Target};
use super::Change::{Assured, End as Ends, Parts as Made, Reply, Sent};
use super::{Mutant, assured, drop_member, has, member, of, with_text};
use crate::envelope::{get, number, set};
use crate::envelope_caller::mutants::Fault;
use crate::json::Value;
use crate::machine::ChildExit;
use crate::mutant::carrier;
use crate::mutant::text::{first_line, interleaved};
use crate::mutant::values::{each, unescape};

/// Size in bytes above which a reply is large.
const LARGE_BYTES: usize = 100_000;

/// A large line that is held until the next one.
static HELD: Mutex<Vec<u8>> = Mutex::new(Vec::new());

pub(super) const MUTANTS: &[Mutant] = &[
    of(
        "runtime-mixes-lines",
        &["PT-RT-01"],
        "Two large results are written into each other.",
        Made(|parts| {
            parts.text = |own| {
                let mut held = HELD.lock().unwrap_or_else(|it| it.into_inner());
                interleaved(&mut held, own, LARGE_BYTES)
            };
        }),
    ),
    of(
        "runtime-splits-at-unicode-lines",
        &["PT-RT-04", "PT-RT-05"],
        "Of several lines of a reply, as Unicode has them, only the first is read.",
        Ends(|_, end| with_text(end, |text| first_line(&text))),
    ),
    of(
        "runtime-takes-large-failures",
        &["PT-RT-06", "PT-RT-07"],
        "A reply of more than 100,000 bytes counts whatever its status.",
        Ends(|_, end| match end {
            End::Exited(ChildExit::Code(_), text) if text.len() > LARGE_BYTES => {
                End::Exited(ChildExit::Code(0), text)
            }
            End::Replied(_, body) if body.len() > LARGE_BYTES => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "runtime-reads-members-in-any-case",
        &["PT-RT-09", "PT-RT-10", "PT-RT-12"],
        "A member of a reply that is called so in capitals counts.",
        Reply(|_, reply| {
            for name in ["ok", "result", "protocol_version"] {
                let is_so = |key: &str| key != name && key.eq_ignore_ascii_case(name);
                let other = reply.iter().find(|(key, _)| key.as_str().is_some_and(is_so)).cloned();
                if let Some((_, value)) = other.filter(|_| get(reply, name).is_none()) {
                    set(reply, name, value);
                }
            }
        }),
    ),
    of(
        "runtime-unwraps",
        &["PT-RT-09"],
        "A reply in an object of its own is taken out of it.",
        Reply(|_, reply| {
            let inner = get(reply, "result").and_then(Value::as_object).map(<[_]>::to_vec);
            if let Some(inner) = inner.filter(|inner| reply.len() == 1 && get(inner, "ok").is_some()) {
                *reply = inner;
            }
        }),
    ),
    of(
        "runtime-wraps-versions",
        &["PT-RT-12"],
        "The version of a reply is read into 32 bits.",
        Reply(|_, reply| {
            let version = get(reply, "protocol_version").and_then(Value::as_i64);
            if let Some(version) = version.filter(|version| *version > i64::from(u32::MAX)) {
                set(reply, "protocol_version", number(version & i64::from(u32::MAX)));
            }
        }),
    ),
    of(
        "runtime-minds-null-results",
        &["PT-RT-14"],
        "A failure with a result that is null is invalid.",
        Reply(|_, reply| {
            if get(reply, "ok") == Some(&Value::Bool(false)) && get(reply, "result") == Some(&Value::Null) {
                set(reply, "result", number(0));
            }
        }),
    ),
    of(
        "runtime-unescapes-entities",
        &["PT-RT-16"],
        "`&amp;` in a result becomes `&`.",
        Reply(|_, reply| {
            if let Some(result) = member(reply, "result") {
                each(result, 0, &mut |value, _| unescape(value));
            }
        }),
    ),
    of(
        "runtime-cuts-deep-results",
        &["PT-RT-16"],
        "What is more than twelve levels deep in an object that is a result becomes null.",
        Reply(|_, reply| {
            if let Some(result) = member(reply, "result").filter(|result| result.as_object().is_some()) {
                each(result, 0, &mut |value, levels| {
                    if levels > 12 {
                        *value = Value::Null;
                    }
                });
            }
        }),
    ),
    of(
        "runtime-forgets-traces-of-packs",
        &["PT-RT-27"],
        "A call with a pack is sent without its trace id.",
        Sent(|ready, sent| {
            if ready.told.get("pack").is_some() {
                drop_member(sent, "trace_id");
            }
        }),
    ),
    of(
        "runtime-asks-once",
        &["PT-RT-47"],
        "A service that was asked for guarantees is not asked again, whatever it said.",
        Made(|parts| {
            let asked = Mutex::new(Vec::new());
            parts.assured = Box::new(move |ready, config, end| {
                let Target::Service(url) = &ready.target else { return assured(ready, config, end) };
                let mut asked = asked.lock().unwrap_or_else(|it| it.into_inner());
                let was_asked = asked.contains(url);
                asked.push(url.clone());
                was_asked || assured(ready, config, end)
            });
        }),
    ),
    of(
        "runtime-takes-longer-names",
        &["PT-RT-47"],
        "A guarantee counts as supported whose name begins as that of another one.",
        Assured(|end, is| is || matches!(end, End::Replied(200, text) if has(text, "\"no_networks\":true"))),
    ),
    of(
        "runtime-heeds-the-last-guarantee",
        &["PT-RT-47"],
        "Of two guarantees the last has to be assured.",
        Assured(|end, is| {
            is || matches!(end, End::Replied(200, text) if has(text, "false,\"no_subprocess\":true"))
        }),
    ),
    of(
        "runtime-folds-levels",
        &["PT-RT-48"],
        "The level `Enforced` is `enforced`.",
        Assured(|end, is| is || matches!(end, End::Replied(200, text) if has(text, "\"Enforced\""))),
    ),
    of(
        "runtime-needs-no-ok-of-handshakes",
        &["PT-RT-48"],
        "A handshake without `ok` assures what it lists.",
        Assured(|end, is| {
            is || matches!(end, End::Replied(200, text) if text.starts_with(b"{\"enforcement\":\"enforced\""))
        }),
    ),
    carrier(
        "runtime-cuts-silence",
        &["PT-RT-71"],
        "A call whose runner is silent for a second behind its first output is over.",
        Fault::CutsSilence,
    ),
];

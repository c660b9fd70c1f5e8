//! Mutants that accept near misses, or lose unusual values.

use std::sync::Mutex;

use super::super::End;
use super::super::caller::line;
use super::Change::{End as Ends, Parts as Made, Reply, Sent};
use super::edit::{edited, ids, with_text};
use super::{Fault, Mutant, of};
use crate::envelope::members::find as member;
use crate::envelope::{Members, get, number, set};
use crate::json::Value;
use crate::machine::ChildExit;
use crate::mutant::carrier;
use crate::mutant::text::{first_line, interleaved};
use crate::mutant::values::{each, unescape};

/// Size in bytes above which a reply is large.
const LARGE_BYTES: usize = 100_000;

fn in_free_data(reply: &mut Members, mut change: impl FnMut(&mut Value, usize)) {
    let free = ["metadata", "outputs", "errors", "prior_plans", "completed_stages"];
    let members = reply.iter_mut().filter(|(name, _)| free.iter().any(|free| *name == **free));
    members.for_each(|(_, value)| each(value, 0, &mut change));
}

/// Documented members that a reply has only in another letter case, with their values.
fn in_other_case(reply: &Members) -> Vec<(&'static str, Value)> {
    let other = reply.iter().filter_map(|(name, value)| {
        let name = name.as_str()?;
        let row = member(&name.to_ascii_lowercase()).filter(|row| row.name != name)?;
        get(reply, row.name).is_none().then(|| (row.name, value.clone()))
    });
    other.collect()
}

pub(super) const MUTANTS: &[Mutant] = &[
    of(
        "caller-mixes-lines",
        &["ENV-CALL-01"],
        "Two large results are written into each other.",
        Made(|parts| {
            let held = Mutex::new(Vec::new());
            parts.line = Box::new(move |call, told| {
                let mut held = held.lock().unwrap_or_else(|it| it.into_inner());
                interleaved(&mut held, line(call, told), LARGE_BYTES)
            });
        }),
    ),
    of(
        "caller-splits-at-unicode-lines",
        &["ENV-CALL-03"],
        "Of several lines of a reply, as Unicode has them, only the first is read.",
        Ends(|end| with_text(end, |text| first_line(&text))),
    ),
    of(
        "caller-takes-large-refusals",
        &["ENV-CALL-05", "ENV-CALL-06"],
        "A reply of more than 100,000 bytes counts whatever its status.",
        Ends(|end| match end {
            End::Exited(ChildExit::Code(_), text) if text.len() > LARGE_BYTES => {
                End::Exited(ChildExit::Code(0), text)
            }
            End::Replied(_, body) if body.len() > LARGE_BYTES => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "caller-looks-at-first-items",
        &["ENV-CALL-08"],
        "Of the goals of a stage only the first is looked at.",
        Reply(|_, reply| {
            for (_, stages) in reply.iter_mut().filter(|(name, _)| *name == *"completed_stages") {
                each(stages, 0, &mut |value, levels| match value {
                    Value::Array(goals) if levels == 2 => goals.retain(|goal| goal.as_i64().is_none()),
                    _ => {}
                });
            }
        }),
    ),
    of(
        "caller-trims-words",
        &["ENV-CALL-09"],
        "White space around a reason is dropped.",
        Reply(|_, reply| {
            if let Some(reason) = get(reply, "terminal_reason").and_then(Value::as_str).map(str::to_owned) {
                set(reply, "terminal_reason", Value::from(reason.trim()));
            }
        }),
    ),
    of(
        "caller-reads-members-in-any-case",
        &["ENV-CALL-13"],
        "A member that is called so in another case counts where it is absent.",
        Reply(|_, reply| {
            let is_id = |name: &str| ids().any(|(_, id)| id == name);
            for (name, value) in in_other_case(reply).into_iter().filter(|(name, _)| !is_id(name)) {
                set(reply, name, value);
            }
        }),
    ),
    of(
        "caller-reads-ids-in-any-case",
        &["ENV-CALL-15"],
        "Where an id is missing, one that is called so in another case counts.",
        Reply(|_, reply| {
            let is_id = |name: &str| ids().any(|(_, id)| id == name);
            for (name, value) in in_other_case(reply).into_iter().filter(|(name, _)| is_id(name)) {
                set(reply, name, value);
            }
        }),
    ),
    of(
        "caller-unwraps",
        &["ENV-CALL-15"],
        "An envelope in an object of its own is taken out of it.",
        Ends(|end| {
            with_text(end, |text| {
                edited(text, |reply| {
                    let inner = reply.first().and_then(|(_, inner)| Some(inner.as_object()?.to_vec()));
                    if let Some(inner) = inner.filter(|_| reply.len() == 1) {
                        *reply = inner;
                    }
                })
            })
        }),
    ),
    of(
        "caller-compares-beginnings-of-ids",
        &["ENV-CALL-16"],
        "Of an id only the first twelve characters are compared.",
        Reply(|call, reply| {
            for (_, name) in ids() {
                let sent = call.envelope.get(name);
                let begin = |id: &Value| id.as_str().and_then(|id| id.get(..12)).map(str::to_owned);
                if sent.and_then(begin).is_some() && sent.and_then(begin) == get(reply, name).and_then(begin)
                {
                    set(reply, name, sent.cloned().unwrap_or(Value::Null));
                }
            }
        }),
    ),
    of(
        "caller-unescapes-entities",
        &["ENV-CALL-18"],
        "`&amp;` in free data becomes `&`.",
        Reply(|_, reply| {
            in_free_data(reply, |value, _| unescape(value));
        }),
    ),
    of(
        "caller-cuts-deep-data",
        &["ENV-CALL-18"],
        "What is more than twelve levels deep in free data becomes null.",
        Reply(|_, reply| {
            in_free_data(reply, |value, levels| {
                if levels > 12 {
                    *value = Value::Null;
                }
            });
        }),
    ),
    of(
        "caller-caps-numbers",
        &["ENV-CALL-19"],
        "A bound that does not fit into 64 bits is the largest that does.",
        Reply(|_, reply| {
            if matches!(get(reply, "max_iterations"), Some(Value::Number(it)) if it.as_f64() > 1e19) {
                set(reply, "max_iterations", number(i64::MAX));
            }
        }),
    ),
    of(
        "caller-sends-no-flags",
        &["ENV-CALL-25"],
        "What an envelope waits for is not sent.",
        Sent(|sent| {
            sent.retain(|(name, _)| !name.as_str().is_some_and(|name| name.ends_with("_pending")));
        }),
    ),
    carrier(
        "caller-cuts-silence",
        &["ENV-CALL-03"],
        "A call whose program is silent for a second behind its first output is over.",
        Fault::CutsSilence,
    ),
    carrier(
        "caller-fails-unread",
        &["ENV-CALL-05"],
        "A program fails that ends before it has read its request.",
        Fault::FailsUnread,
    ),
];

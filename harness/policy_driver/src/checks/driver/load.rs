//! Checks with large payloads.

use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::talk::Talk;
use super::super::super::request::{Entry, Request, sids};
use super::{check, limits};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

/// Size that a payload may have, bytes.
const BYTES: usize = 10_485_760;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![every_sid(), long_string(), other_shapes()]
}

fn every_sid() -> Check {
    check(
        "load/every-sid",
        "From a menu of 10,000 entries, SID0000 to SID9999, the driver picks one or prints another form.",
        &["PD-LOAD-01"],
        |talk| {
            let menu: Vec<Entry> = (0..10_000).map(Entry::plain).collect();
            let sids = || menu.iter().map(|entry| entry.sid.clone());
            let expect = || Expect::block("PD-LOAD-01").narrow().of_menu(sids());
            talk.decide(&Request::of(&menu), expect());
            // The entry that the driver looks for is the last.
            let mut tagged = menu.clone();
            if let Some(last) = tagged.last_mut() {
                *last = last.clone().tagged(&["http"]);
            }
            talk.decide(&Request::of(&tagged).inputs(r#"{"url":"http://127.0.0.1:1/"}"#), expect());
        },
    )
}

/// Decides the plain request, padded to [`BYTES`] by repetitions of `unit` between `before` and `after`.
fn filled(talk: &mut Talk<'_>, before: &str, unit: &str, after: &str, expect: Expect) {
    let request = Request::plain().without("inputs");
    let open = request.text();
    let open = open.strip_suffix('}').unwrap_or_default();
    let (before, after) = (format!("{open},\"inputs\":{{{before}"), format!("{after}}}}}"));
    let left = BYTES - before.len() - after.len();
    let content = Payload::text(before)
        .repeat(unit, (left / unit.len()) as u64)
        .repeat(" ", (left % unit.len()) as u64)
        .then(Payload::text(after));
    talk.decide_on(content, expect.narrow().of_menu(sids(&request.0)));
}

fn long_string() -> Check {
    check(
        "load/long-string",
        "A payload of 10,485,760 bytes, nearly all of them one string, is decided.",
        &["PD-LOAD-02"],
        |talk| filled(talk, "\"text\":\"", "0123456789abcdef", "\"", Expect::block("PD-LOAD-02")),
    )
    .exclusive()
}

fn other_shapes() -> Check {
    check(
        "load/other-shapes",
        "Under resource limits a payload of 10,485,760 bytes of members or numbers is decided, or the driver fails.",
        &["PD-LOAD-03"],
        |talk| {
            let limits = limits::documented(talk.facts());
            talk.limits(limits);
            let expect = || Expect::block("PD-LOAD-03").or(Allowed::Failure);
            filled(talk, "\"numbers\":[0", ",1234567", "]", expect());
            filled(talk, "\"objects\":[0", ",{\"a\":[],\"b\":null}", "]", expect());
        },
    )
    .exclusive()
}

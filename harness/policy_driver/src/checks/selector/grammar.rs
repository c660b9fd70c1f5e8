//! Checks of the block grammar: each form, and near misses.

mod base64;
mod forms;
mod patches;

use super::super::super::block::is_sid;
use super::super::super::cases;
use super::super::super::request::{Entry, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{Talk, prints, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let checks = [
        forms::checks(),
        cases::checks(),
        patches::checks(),
        base64::checks(),
        vec![sids(), sids_of_menus()],
    ];
    checks.into_iter().flatten().collect()
}

fn sids() -> Check {
    refusals(
        "grammar/sid-near-misses",
        "A SID that is shorter, longer, of other letters, or followed by NUL, a blank or a mark is invalid.",
        "PD-GRAM-06",
        &["<PICK><SID0042><END>"],
        || {
            let misses = near_misses("SID0042").into_iter().filter(|miss| !is_sid(&miss.text));
            misses.map(|miss| format!("<PICK><{}><END>", miss.text).into_bytes()).collect()
        },
    )
}

fn sids_of_menus() -> Check {
    check(
        "grammar/sid-that-the-menu-nearly-has",
        "If a driver picks a SID that is only similar to one in the menu, the SID is unknown, or the \
         request is malformed.",
        &["PD-GRAM-07"],
        |talk, _| {
            talk.canary("PD-GRAM-07");
            let entry = Entry::plain(42).json();
            let with_sid = |sid: Json| {
                let mut near = entry.clone();
                near.set("sid", sid);
                near
            };
            let named = |name: &str| {
                let mut near = entry.clone();
                near.remove("sid");
                near.set(name, "SID0042");
                near
            };
            let of_other_types = [Json::from(42), Json::Array(vec![Json::from("SID0042")]), Json::Null];
            let near = near_misses("SID0042").into_iter().map(|miss| Json::from(miss.text.as_str()));
            let near = near.chain(of_other_types).map(with_sid);
            for near in near.chain(["SID", "Sid", "aid", "id"].map(named)) {
                // The first and last entries, which the fallback may pick, are well-formed.
                let menu = vec![Entry::plain(3).json(), near, Entry::plain(977).json()];
                let request = Request::plain().with("menu", Json::Array(menu));
                let expect = Expect::fallback("PD-GRAM-07").or(Allowed::Invalid);
                talk.play(&request, says("<PICK><SID0042><END>"), expect);
            }
            talk.canary("PD-GRAM-07");
        },
    )
}

/// Plays drivers with these outputs. Each is taken as the Selection that it spells.
fn all_taken<T: AsRef<[u8]>>(talk: &mut Talk, clause: &str, outputs: impl IntoIterator<Item = T>) {
    for output in outputs {
        let output = Payload::from_bytes(output.as_ref());
        let expect = Expect::new(clause, Allowed::Taken(output.clone()));
        talk.play(&Request::plain(), prints(output), expect);
    }
}

/// Plays drivers with these outputs. After each the fallback answers.
fn all_refused<T: AsRef<[u8]>>(talk: &mut Talk, clause: &str, outputs: impl IntoIterator<Item = T>) {
    for output in outputs {
        talk.play(&Request::plain(), prints(Payload::from_bytes(output.as_ref())), Expect::fallback(clause));
    }
}

/// Plays a driver with an output that a selector may take or refuse, and records the choice.
fn open(talk: &mut Talk, clause: &str, output: &[u8], choice: &str) {
    let output = Payload::from_bytes(output);
    let expect = Expect::new(clause, Allowed::Taken(output.clone())).or(Allowed::Fallback);
    talk.play(&Request::plain(), prints(output), expect.choice(choice, &["accept", "refuse"]));
}

/// A pick with this text as `INP`.
fn inp(text: &str) -> String {
    format!("<PICK><SID0042><INP>{text}</INP><END>")
}

/// A pick with this text as `INP64`.
fn inp64(text: &str) -> String {
    format!("<PICK><SID0042><INP64>{text}</INP64><END>")
}

/// A check that outputs are refused, between two valid blocks.
fn refusals(
    name: &str,
    title: &str,
    clause: &'static str,
    taken: &'static [&'static str],
    refused: impl Fn() -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> Check {
    check(name, title, &[clause], move |talk, _| {
        talk.canary(clause);
        all_refused(talk, clause, refused());
        all_taken(talk, clause, taken);
        talk.canary(clause);
    })
}

/// Texts as bytes.
fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

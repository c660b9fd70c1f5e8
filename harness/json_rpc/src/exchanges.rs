//! What was sent and what came for it, in a form that can be compared between servers.

use super::deal::{Came, deal};
use super::frames;
use super::model::{self, Asked, Codes, Unit, What};
use peerproof_engine::clause::Side;
use peerproof_engine::json::Json;
use peerproof_engine::lines;
use peerproof_engine::matrix::canonical::canonical;
use peerproof_engine::matrix::differences::Exchange;
use peerproof_engine::payload::shorten;
use peerproof_engine::transcript::Transcript;

/// Characters of a line or a result that are shown and compared.
const CHARS_MAX: usize = 240;

/// The exchanges of all sessions, in the order of sending: one for each message, also of those in batches.
pub fn of(transcript: &Transcript) -> Vec<Exchange> {
    let mut all = Vec::new();
    if transcript.facts.side == Side::Consumer {
        // What a client asks is its own affair.
        return all;
    }
    for session in 0..transcript.plan.sessions.len() {
        let sent = lines::of_session(transcript, session);
        let asked = model::asked(transcript, session, &sent);
        let out = transcript.stdout(session);
        let (frames, _) = frames::answering(&out, &asked, transcript, session);
        let (came, _) = deal(&asked, &frames);
        for ((asked, came), line) in asked.iter().zip(&came).zip(&sent) {
            let text = shorten(&String::from_utf8_lossy(&line.bytes), CHARS_MAX).into_owned();
            each(asked, came, &text, &mut all);
        }
    }
    all
}

fn each(asked: &Asked, came: &Came<'_>, text: &str, all: &mut Vec<Exchange>) {
    let whole = came.whole.and_then(|response| Some((asked.whole.as_ref()?, response)));
    for (at, (unit, answer)) in asked.units.iter().zip(&came.answers).enumerate() {
        let sent = match asked.units.len() {
            1 => text.to_owned(),
            count => format!("element {} of {count} in {text}", at + 1),
        };
        let mut clause = unit.clause;
        let (came, fault) = match (answer, whole, came.unwrapped.first()) {
            (Some(response), _, _) => {
                let fits = unit.fit(response).is_some();
                let fault = (!fits).then(|| unit.misfit(response).reason().to_owned());
                (reply(unit, response), fault)
            }
            (None, Some((unit, response)), _) => (format!("the batch: {}", reply(unit, response)), None),
            (None, None, Some(response)) => {
                clause = "RPC-BATCH-01";
                let fault = (!unit.must_be_silent()).then(|| "no_array".to_owned());
                (format!("outside an array: {}", reply(unit, response)), fault)
            }
            (None, None, None) => {
                let silent = unit.may_be_silent() || asked.whole.as_ref().is_some_and(Unit::may_be_silent);
                ("nothing".to_owned(), (!silent).then(|| "no_reply".to_owned()))
            }
        };
        all.push(Exchange {
            sent,
            came,
            clause: clause.to_owned(),
            choice: unit.choice.map(str::to_owned),
            expected: shorten(&unit.phrase(), CHARS_MAX).into_owned(),
            fault,
        });
    }
}

/// A response without what makes no difference: messages and data of errors, its id where that of the request and null
/// are both right, the code where a method may fail with any.
fn reply(unit: &Unit, response: &Json) -> String {
    let fitting = unit.fit(response);
    if fitting.is_some_and(|allowed| allowed.what == What::Reply && allowed.shows.is_none()) {
        return "a reply".to_owned();
    }
    let what = match (response.get("error"), response.get("result")) {
        (Some(error), _) if !error.is_null() => {
            let any = fitting.is_some_and(|allowed| matches!(allowed.what, What::Error(Codes::But(_))));
            match error.get("code") {
                Some(_) if any => "an error of the method".to_owned(),
                Some(code) => format!("error {}", canonical(code)),
                None => "an error without a code".to_owned(),
            }
        }
        (_, Some(result)) => format!("result {}", shorten(&canonical(result), CHARS_MAX)),
        _ => format!("no response: {}", shorten(&canonical(response), CHARS_MAX)),
    };
    let id = response.get("id");
    let either = fitting.is_some_and(|_| {
        [unit.id.clone().unwrap_or_default(), Json::Null].into_iter().all(|id| {
            let mut other = response.clone();
            other.set("id", id);
            unit.fit(&other).is_some()
        })
    });
    match id {
        _ if either => what,
        Some(Json::Null) => format!("{what}, id null"),
        _ if unit.has_id(id) => what,
        Some(id) => format!("{what}, id {}", shorten(&canonical(id), 60)),
        None => format!("{what}, no id"),
    }
}

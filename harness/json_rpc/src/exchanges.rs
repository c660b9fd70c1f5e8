//! Requests with their replies, in a form that can be compared between servers.

use super::model::{AllowedAnswer, AnswerKind, Codes, RequestPart, fit, has_id};
use super::server::Server;
use peerproof_engine::contract::boundary::NormalizedExchange;
use peerproof_engine::contract::face::{Match, Outcome, PlacedExpectation, fitting, misfit, phrase};
use peerproof_engine::contract::judge::listen;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::run::matrix::canonical::canonical;

/// Most characters of a line or a result that are shown and compared.
const CHARS_MAX: usize = 240;

/// Exchanges of all sessions in the order of sending, one per message; elements of batches count as messages.
pub(crate) fn of(transcript: &Transcript) -> Vec<NormalizedExchange> {
    let mut all = Vec::new();
    if transcript.facts.side == Side::Consumer {
        // A client chooses its requests freely.
        return all;
    }
    listen(&Server, transcript, |trace| {
        for heard in &trace.sessions {
            for ((asked, came), line) in heard.exchanges.iter().zip(heard.lines) {
                let text = shorten(&String::from_utf8_lossy(&line.bytes), CHARS_MAX).into_owned();
                each(asked, came, &text, &mut all);
            }
        }
    });
    all
}

fn each(
    asked: &PlacedExpectation<Server>,
    came: &Match<'_, Server>,
    text: &str,
    all: &mut Vec<NormalizedExchange>,
) {
    let due = &asked.due;
    let whole = came.whole.and_then(|answer| Some((due.whole.as_ref()?, answer)));
    for (at, (unit, answer)) in due.parts.iter().zip(&came.answers).enumerate() {
        let sent = match due.parts.len() {
            1 => text.to_owned(),
            count => format!("element {} of {count} in {text}", at + 1),
        };
        let mut clause = unit.clause;
        let (came, fault) = match (answer, whole, came.apart.first()) {
            (Some(answer), _, _) => {
                let message = [answer.message];
                let fits = fitting(&Server, unit, &message).is_some();
                let fault = (!fits).then(|| misfit(&Server, unit, &message).reason.to_owned());
                (reply(unit, &answer.message.value), fault)
            }
            (None, Some((unit, answer)), _) => {
                (format!("the batch: {}", reply(unit, &answer.message.value)), None)
            }
            (None, None, Some(message)) => {
                clause = "RPC-BATCH-01";
                let fault = (!unit.must_be_silent()).then(|| "no_array".to_owned());
                (format!("outside an array: {}", reply(unit, &message.value)), fault)
            }
            (None, None, None) => {
                let silent =
                    unit.may_be_silent() || due.whole.as_ref().is_some_and(RequestPart::may_be_silent);
                ("nothing".to_owned(), (!silent).then(|| "no_reply".to_owned()))
            }
        };
        all.push(NormalizedExchange {
            sent,
            came,
            clause: clause.to_owned(),
            choice: unit.choice.map(str::to_owned),
            expected: shorten(&phrase(&Server, unit), CHARS_MAX).into_owned(),
            fault,
        });
    }
}

/// A response without differences that do not count: messages and data of errors, the id if both that of the
/// request and null are right, and the code if a method may fail with any.
fn reply(unit: &RequestPart, response: &Json) -> String {
    let way = fit(unit, response).and_then(|allowed| match &allowed.outcome {
        Outcome::Answer(way) => Some((way, allowed.shows)),
        Outcome::Silence => None,
    });
    if way.is_some_and(|(way, shows)| way.what == AnswerKind::Reply && shows.is_none()) {
        return "a reply".to_owned();
    }
    let what = match (response.get("error"), response.get("result")) {
        (Some(error), _) if !error.is_null() => {
            let any = matches!(way, Some((AllowedAnswer { what: AnswerKind::Error(Codes::But(_)), .. }, _)));
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
    let either = way.is_some_and(|_| {
        [unit.extra.id.clone().unwrap_or_default(), Json::Null].into_iter().all(|id| {
            let mut other = response.clone();
            other.set("id", id);
            fit(unit, &other).is_some()
        })
    });
    match id {
        _ if either => what,
        Some(Json::Null) => format!("{what}, id null"),
        _ if has_id(unit, id) => what,
        Some(id) => format!("{what}, id {}", shorten(&canonical(id), 60)),
        None => format!("{what}, no id"),
    }
}

//! Requests and replies in a form for the comparison of toolhosts.

use super::align::align;
use super::expect::{Expect, Outcome};
use super::frames;
use super::model;
use super::oracle;
use peerproof_engine::contract::boundary::NormalizedExchange;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::run::matrix::canonical::canonical;

/// Largest number of characters of a line or an output that are shown and compared.
const CHARS_MAX: usize = 240;

/// Exchanges of all sessions, in the order of sending.
pub(crate) fn of(transcript: &Transcript) -> Vec<NormalizedExchange> {
    let mut all = Vec::new();
    for (session, spec) in transcript.plan.sessions.iter().enumerate() {
        let sent = match spec.command.as_str() {
            // The requests of a dispatcher are not compared.
            "command" => continue,
            "run" => lines::of_run(transcript, session).into_iter().collect(),
            _ => lines::of_session(transcript, session),
        };
        let (frames, _) = frames::of(transcript, session);
        let asked = model::expected(transcript, session, &frames).asked;
        let alignment = align(&oracle::dues(&asked), &frames);
        for ((asked, answer), line) in asked.iter().zip(&alignment.answers).zip(&sent) {
            let expect = &asked.expect;
            let (came, fault) = match answer.map(|frame| &frames[frame].value) {
                Some(Ok(value)) => {
                    let fault = expect.fit(value).is_none().then(|| expect.misfit(value).0);
                    (reply(expect, value), fault)
                }
                Some(Err(_)) => ("no JSON".to_owned(), Some("reply_not_json".to_owned())),
                None => ("nothing".to_owned(), (!expect.may_be_silent()).then(|| "no_reply".to_owned())),
            };
            all.push(NormalizedExchange {
                sent: shorten(&String::from_utf8_lossy(&line.bytes), CHARS_MAX).into_owned(),
                came,
                clause: expect.clause.0.clone(),
                choice: expect.choice.clone(),
                expected: shorten(&expect.phrase(), CHARS_MAX).into_owned(),
                fault,
            });
        }
    }
    all
}

/// Reply without irrelevant parts: the wording of errors, and unpredictable outputs.
fn reply(expect: &Expect, reply: &Json) -> String {
    let free = |outcome: Outcome| matches!(outcome, Outcome::Any | Outcome::Reply);
    if expect.fit(reply).is_some_and(|allowed| free(allowed.outcome) && allowed.choice.is_none()) {
        return "a reply".to_owned();
    }
    let text = |name: &str| reply.get(name).and_then(Json::as_str).unwrap_or_default();
    let mut came = match reply.get("ok").and_then(Json::as_bool) {
        Some(true) => "ok".to_owned(),
        Some(false) if text("error").starts_with("lease_") => format!("refused, {}", text("error")),
        Some(false) => format!("refused, status {}", canonical(reply.get("status").unwrap_or(&Json::Null))),
        None => return shorten(&canonical(reply), CHARS_MAX).into_owned(),
    };
    if reply.get("idempotent_hit").and_then(Json::as_bool) == Some(true) {
        came.push_str(", a hit");
    }
    let known = expect.fit(reply).is_none_or(|allowed| allowed.output.is_some());
    if came.starts_with("ok") && known {
        let output = text("output_json").parse::<Json>();
        let output = output.map_or_else(|_| text("output_json").to_owned(), |output| canonical(&output));
        came.push_str(&format!(", output {}", shorten(&output, CHARS_MAX)));
    }
    came
}

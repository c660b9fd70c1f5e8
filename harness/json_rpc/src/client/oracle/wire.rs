//! What a client sends: well-formed, what its scenario says, in the order that it says.

use super::super::scenario::Call;
use super::super::seen::{From, Line};
use super::{Asked, Client, clause};
use peerproof_engine::json::Json;
use peerproof_engine::transcript::Exit;

/// Whether a message can only be meant as a response.
pub(super) fn is_response(value: &Json) -> bool {
    value.get("method").is_none() && (value.get("result").is_some() || value.get("error").is_some())
}

/// Whether the params that came are those of the call; empty ones are as good as none.
fn are_params(call: &Call, came: Option<&Json>) -> bool {
    match (&call.params, came) {
        (None, None) => true,
        (None, Some(Json::Array(items))) => items.is_empty(),
        (None, Some(Json::Object(members))) => members.is_empty(),
        (Some(params), Some(came)) => params == came,
        _ => false,
    }
}

impl Client<'_> {
    /// Judges every line of the client's; gives the requests in it.
    pub(super) fn wire(&mut self, lines: &[Line], rest: &[u8]) -> Vec<Asked> {
        let mut asked: Vec<Asked> = Vec::new();
        let mut messages_seen = Vec::new();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.from == From::Client) {
            let value = match &line.value {
                Ok(value) => value,
                Err(error) => {
                    let got = format!("{error}: {}", line.text);
                    self.add(clause::PROTOCOL_ONLY, "other_output", "nothing but JSON-RPC messages", got);
                    continue;
                }
            };
            let before = asked.len();
            let all = value.as_array().unwrap_or(std::slice::from_ref(value));
            let calls = all.iter().filter(|message| message.get("method").is_some());
            messages_seen.extend(calls.map(|message| (message.clone(), line.clone())));
            match value.as_array() {
                Some([]) => self.add(clause::WELL_FORMED, "empty_batch", "an array of requests", "[]"),
                Some(messages) => {
                    for message in messages {
                        asked.extend(self.message(message, line, place));
                    }
                }
                None if is_response(value) && self.was_asked(lines, place, value) => {}
                None => asked.extend(self.message(value, line, place)),
            }
            self.array(&asked, before, value.as_array().is_some(), line);
            for at in before..asked.len() {
                self.order(&asked, at, lines);
                self.id_in_flight(&asked, at, lines);
            }
        }
        self.signatures(&messages_seen);
        let is_finished = self.ending.exit == Some(Exit::Code(0)) && !self.deserted;
        if is_finished && !rest.iter().all(u8::is_ascii_whitespace) {
            let got = String::from_utf8_lossy(rest).into_owned();
            self.add(clause::PROTOCOL_ONLY, "unfinished_line", "every message ends with a line feed", got);
        }
        asked
    }

    /// Whether a response answers a request of ours.
    fn was_asked(&self, lines: &[Line], place: usize, response: &Json) -> bool {
        lines[..place].iter().filter(|line| line.from == From::Server).any(|line| {
            line.value
                .as_ref()
                .is_ok_and(|ours| ours.get("method").is_some() && ours.get("id") == response.get("id"))
        })
    }

    fn message(&mut self, message: &Json, line: &Line, place: usize) -> Option<Asked> {
        if message.as_object().is_none() {
            self.add(clause::WELL_FORMED, "not_an_object", "a request is an object", line.text.clone());
            return None;
        }
        if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
            self.add(clause::WELL_FORMED, "wrong_version", "`jsonrpc` is \"2.0\"", line.text.clone());
        }
        let Some(method) = message.get("method").and_then(Json::as_str) else {
            self.add(clause::WELL_FORMED, "no_method", "`method` is a string", line.text.clone());
            return None;
        };
        let Some(at) = self.scenario.calls.iter().position(|call| call.method == method) else {
            self.add(clause::THE_CALL, "unknown_method", "a call of the scenario", line.text.clone());
            return None;
        };
        let call = self.scenario.calls[at].clone();
        if !are_params(&call, message.get("params")) {
            let expected = call.params.as_ref().map_or("no params".to_owned(), Json::to_text);
            self.add(clause::THE_CALL, "other_params", expected, line.text.clone());
        }
        let id = message.get("id").cloned();
        match &id {
            Some(_) if call.notify => {
                self.add(
                    clause::NOTIFICATION,
                    "notification_with_id",
                    "a notification has no id",
                    line.text.clone(),
                );
            }
            None if !call.notify => {
                self.add(clause::WELL_FORMED, "no_id", "a request has an id", line.text.clone());
            }
            None | Some(Json::String(_) | Json::Number(_) | Json::Null) => {}
            Some(_) => {
                let expected = "an id is a string, a number or null";
                self.add(clause::WELL_FORMED, "id_type", expected, line.text.clone());
            }
        }
        Some(Asked { call: at, at_us: line.at_us, id, place })
    }

    /// The calls of a batch, and no others, come in one array; how a retry comes is left open.
    fn array(&mut self, asked: &[Asked], before: usize, is_array: bool, line: &Line) {
        let is_first = |at: &usize| asked[..*at].iter().all(|earlier| earlier.call != asked[*at].call);
        let firsts: Vec<usize> = (before..asked.len()).filter(is_first).collect();
        let Some(first) = firsts.first() else { return };
        let batch = self.scenario.calls[asked[*first].call].batch.clone();
        let names: Vec<&Option<String>> =
            firsts.iter().map(|at| &self.scenario.calls[asked[*at].call].batch).collect();
        let whole = self.scenario.calls.iter().filter(|call| call.batch == batch).count();
        let wrong = match &batch {
            None => is_array,
            Some(_) => !is_array || names.len() != whole || names.iter().any(|name| **name != batch),
        };
        if wrong {
            let expected = "the calls of one batch in one array, the others in none";
            self.add(clause::BATCH, "other_batch", expected, line.text.clone());
        }
    }

    /// A call goes out when those before it have finished.
    fn order(&mut self, asked: &[Asked], at: usize, lines: &[Line]) {
        let call = self.scenario.calls[asked[at].call].clone();
        for name in &call.after {
            let Some(before) = self.scenario.calls.iter().position(|call| call.name == *name) else {
                continue;
            };
            let sent = asked[..at].iter().rev().find(|earlier| earlier.call == before);
            let spec = &self.scenario.calls[before];
            // What is too large to send is finished unseen.
            let unseen =
                self.expect.calls.get(name).is_some_and(|expect| {
                    expect.allowed.iter().any(|allowed| allowed.outcome == "too_large")
                });
            let finished = match sent {
                None => unseen,
                Some(_) if spec.notify || unseen => true,
                Some(sent) => {
                    let time_over = asked
                        .iter()
                        .find(|first| first.call == before)
                        .is_some_and(|first| is_over(first, &asked[at], spec.timeout_ms));
                    time_over || is_answered(lines, sent, asked[at].place)
                }
            };
            if !finished {
                let got = format!("{:?} went out before {name:?} had finished", call.name);
                self.add(clause::AFTER, "too_early", "a call goes out after the calls it comes after", got);
            }
        }
    }

    /// The id of a request that still waits is not used again.
    fn id_in_flight(&mut self, asked: &[Asked], at: usize, lines: &[Line]) {
        let request = &asked[at];
        let Some(id) = &request.id else { return };
        let still_waits = |earlier: &&Asked| {
            earlier.id.as_ref() == Some(id)
                && !is_over(earlier, request, self.scenario.calls[earlier.call].timeout_ms)
                && !is_answered(lines, earlier, request.place)
        };
        if let Some(earlier) = asked[..at].iter().find(still_waits) {
            let names = (&self.scenario.calls[earlier.call].name, &self.scenario.calls[request.call].name);
            let got = format!("{} of {:?} again for {:?}", id.to_text(), names.0, names.1);
            self.add(clause::ID_IN_FLIGHT, "id_in_flight", "an id that no waiting request has", got);
        }
    }
}

/// Whether anything that may end `request` was written between it and line `place`: its answer, an error for nobody, or
/// something too long to be read.
fn is_answered(lines: &[Line], request: &Asked, place: usize) -> bool {
    /// Longer lines may end a call as `too_large`.
    const LONG_BYTES: usize = 1_000_000;
    let answers = |message: &Json| {
        let id = message.get("id");
        message.get("method").is_none() && (id == request.id.as_ref() || id.is_none_or(Json::is_null))
    };
    lines[request.place..place].iter().filter(|line| line.from == From::Server).any(|line| {
        line.length > LONG_BYTES
            || line.value.as_ref().is_ok_and(|value| match value.as_array() {
                Some(messages) => messages.iter().any(answers),
                None => answers(value),
            })
    })
}

/// Whether the time of a call may have been over when another request went out. When it was read is all that is known
/// of when a request went out, and on a busy machine that is a while later.
fn is_over(call: &Asked, later: &Asked, timeout_ms: u64) -> bool {
    let late_ms = (timeout_ms / 2).max(50);
    later.at_us.saturating_sub(call.at_us) / 1_000 + late_ms >= timeout_ms
}

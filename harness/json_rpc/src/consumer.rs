//! Rules about the messages of a client in a recorded conversation.
//!
//! Pure, and independent of time: the order of recording shows which ids are pending. An answer is recorded before
//! the client can read it.

use super::frames;
use super::model::{Equality, same};
use peerproof_engine::data::finding::{Finding, Nature};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

/// Clauses about the messages of a client.
mod clause {
    pub(super) const MESSAGES: &str = "RPC-SENT-01";
    pub(super) const REQUEST: &str = "RPC-SENT-02";
    pub(super) const ID: &str = "RPC-SENT-03";
    pub(crate) const CAREFUL_ID: &str = "RPC-SENT-04";
    pub(crate) const ID_UNDER_WAY: &str = "RPC-SENT-05";
    pub(crate) const RESPONSE: &str = "RPC-SENT-06";
    pub(super) const LIVES_ON: &str = "RPC-SENT-07";
}

/// Most pending ids that are remembered. Bounds the cost of a client whose requests are never answered.
const UNDER_WAY_MAX: usize = 4_096;

/// Judges the messages of the client in each session.
pub(crate) fn judge(transcript: &Transcript) -> Vec<Finding> {
    let mut findings = Vec::new();
    for session in 0..transcript.plan.sessions.len() {
        let mut client = Client::default();
        for line in lines::spoken(transcript, session) {
            match line.step {
                Some(step) => client.line(step, &line.bytes, line.ended),
                None => client.hears(&line.bytes),
            }
        }
        findings.extend(client.findings);
    }
    for event in &transcript.events {
        if let EventKind::ClientExited { exit: exit @ Exit::Signal(signal) } = &event.kind
            && !ended_from_outside(*signal)
        {
            let finding =
                Finding::new(clause::LIVES_ON, "crashed", "an exit status, not a signal", exit.to_string());
            findings.push(finding.of_nature(Nature::Crash));
        }
    }
    findings
}

/// True for a signal that another process may have sent: SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM.
fn ended_from_outside(signal: i32) -> bool {
    matches!(signal, 1 | 2 | 9 | 13 | 15)
}

/// State of one client.
#[derive(Default)]
struct Client {
    /// Ids of pending requests of the client.
    under_way: Vec<Json>,
    /// Ids of pending requests of the server.
    asked: Vec<Json>,
    findings: Vec<Finding>,
}

impl Client {
    fn file(&mut self, step: usize, clause: &str, reason: &str, expected: &str, got: &str) {
        self.findings.push(Finding::new(clause, reason, expected, shorten(got, 240)).at(step));
    }

    fn line(&mut self, step: usize, bytes: &[u8], ended: bool) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes);
        if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return;
        }
        if !ended {
            let expected = "every message ends with a line feed";
            self.file(step, clause::MESSAGES, "unfinished_line", expected, &text);
        }
        let value = match json::decode(bytes, &DecodeLimits::default()) {
            Ok(decoded) => decoded.value,
            Err(error) => {
                let got = format!("{error}: {text}");
                return self.file(step, clause::MESSAGES, "not_json", "strict JSON in UTF-8", &got);
            }
        };
        match &value {
            Json::Array(messages) if messages.is_empty() => {
                self.file(step, clause::MESSAGES, "empty_batch", "a batch of at least one message", &text);
            }
            Json::Array(messages) => messages.iter().for_each(|message| self.message(step, message)),
            message => self.message(step, message),
        }
    }

    fn message(&mut self, step: usize, message: &Json) {
        let text = message.to_text();
        if !matches!(message, Json::Object(_)) {
            return self.file(step, clause::MESSAGES, "not_an_object", "each message is an object", &text);
        }
        if message.get("method").is_none() {
            // A compressed message is not decoded here.
            if message.get("encoding").is_some() && message.get("body").is_some() {
                return;
            }
            if message.get("result").is_some() || message.get("error").is_some() {
                return self.response(step, message, &text);
            }
        }
        if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
            self.file(step, clause::REQUEST, "wrong_version", "`jsonrpc` is the string \"2.0\"", &text);
        }
        if message.get("method").and_then(Json::as_str).is_none() {
            self.file(step, clause::REQUEST, "method_type", "`method` is a string", &text);
        }
        if !matches!(message.get("params"), None | Some(Json::Array(_) | Json::Object(_))) {
            let expected = "`params` is an array, an object or absent";
            self.file(step, clause::REQUEST, "params_type", expected, &text);
        }
        match message.get("id") {
            None => return,
            Some(Json::Null) => {
                let expected = "an `id` other than null";
                return self.file(step, clause::CAREFUL_ID, "null_id", expected, &text);
            }
            Some(Json::String(_)) => {}
            Some(Json::Number(number)) if number.is_integral() => {}
            Some(Json::Number(_)) => {
                let expected = "an `id` without a fraction";
                self.file(step, clause::CAREFUL_ID, "fractional_id", expected, &text);
            }
            Some(_) => {
                let expected = "an `id` that is a string, a number or null";
                return self.file(step, clause::ID, "id_type", expected, &text);
            }
        }
        let Some(id) = message.get("id") else { return };
        if self.under_way.iter().any(|other| same(other, id) == Equality::Exactly) {
            let expected = "an `id` that no pending request has";
            self.file(step, clause::ID_UNDER_WAY, "id_reused", expected, &text);
        } else {
            if self.under_way.len() >= UNDER_WAY_MAX {
                self.under_way.remove(0);
            }
            self.under_way.push(id.clone());
        }
    }

    fn response(&mut self, step: usize, message: &Json, text: &str) {
        if message.get("result").is_some() && message.get("error").is_some() {
            let expected = "either `result` or `error`, never both";
            self.file(step, clause::RESPONSE, "result_and_error", expected, text);
        }
        let id = message.get("id");
        // An error with id null answers an unreadable message, which may have been any.
        if id.is_none_or(Json::is_null) && message.get("error").is_some() {
            return;
        }
        let asked =
            self.asked.iter().position(|asked| id.is_some_and(|id| same(asked, id) == Equality::Exactly));
        match asked {
            Some(at) => drop(self.asked.remove(at)),
            None => {
                let expected = "a response to a request from the server";
                self.file(step, clause::RESPONSE, "answers_nothing", expected, text);
            }
        }
    }

    /// Handles a line of the server: it ends requests of the client, and may begin requests of the server.
    fn hears(&mut self, bytes: &[u8]) {
        match &frames::message(bytes) {
            Some(Json::Array(items)) => items.iter().for_each(|item| self.hears_one(item)),
            Some(item) => self.hears_one(item),
            None => {}
        }
    }

    fn hears_one(&mut self, item: &Json) {
        let id = item.get("id");
        if item.get("method").is_some() && item.get("result").is_none() && item.get("error").is_none() {
            if let Some(id) = id.filter(|_| self.asked.len() < UNDER_WAY_MAX) {
                self.asked.push(id.clone());
            }
            return;
        }
        match id {
            // An unknown request was answered, so none counts as pending.
            None | Some(Json::Null) => self.under_way.clear(),
            Some(id) => self.under_way.retain(|other| same(other, id) == Equality::No),
        }
    }
}

//! Rules about a whole conversation with a client: its messages, their times and its results file.

mod results;
mod retries;
mod signatures;
mod wire;

use super::allowed_outcome::AllowedOutcome;
use super::client_conversation::{Client, ClientConversation};
use super::observations::{self, CallResult};
use peerproof_engine::contract::face::{Expected, SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::transcript::Transcript;

/// Judges the conversation of one client.
pub(super) fn judge(trace: &Trace<'_, Client>, heard: &SessionTrace<'_, Client>) -> Vec<Finding> {
    let of_session = trace.asked.iter().filter(|asked| asked.session == heard.session);
    let (noted, faults): (Vec<_>, Vec<_>) =
        trace.transcript.of(heard.session).map(observations::results).unzip();
    let noted = noted.concat();
    let mut session = Session {
        transcript: trace.transcript,
        known: trace.state,
        parts: of_session.flat_map(|asked| &asked.due.parts).collect(),
        noted,
        found: Vec::new(),
    };
    session.wire();
    session.signatures();
    session.retries();
    session.lateness();
    session.results(faults.into_iter().flatten().next());
    session.found
}

/// One client under judgement.
struct Session<'a> {
    transcript: &'a Transcript,
    known: &'a ClientConversation,
    /// Allowed ends of each call.
    parts: Vec<&'a Expected<AllowedOutcome>>,
    /// Results that the client wrote.
    noted: Vec<CallResult>,
    found: Vec<Finding>,
}

impl Session<'_> {
    fn add(&mut self, clause: &str, reason: &str, expected: impl Into<String>, got: impl Into<String>) {
        self.found.push(Finding::new(clause, reason, expected, got));
    }
}

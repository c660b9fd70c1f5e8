//! Facts of one conversation with a client, as its rules and its allowed ends need them.

use serde::Deserialize as _;

use super::observations::Talk;
use super::scenario::Scenario;
use super::script::Script;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::transcript::Transcript;

/// Tolerance for the duration of a call on a loaded machine, ms. Grows with `--timeout-scale`.
pub(super) const LATE_MS: u64 = 1_500;

/// A JSON-RPC client.
pub(super) struct Client;

/// Facts of one conversation: scenario, script and messages.
#[derive(Default)]
pub(crate) struct ClientConversation {
    /// Scenario of the client.
    pub scenario: Scenario,
    /// Script of the server.
    pub script: Script,
    /// Messages of both sides.
    pub talk: Talk,
    /// Delay that a busy machine may add, ms.
    pub late_ms: u64,
}

impl ClientConversation {
    /// Reads a transcript.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let plan = &transcript.plan;
        let scenario = Scenario::of(plan).unwrap_or_default();
        let played = plan.steps.iter().find_map(|step| match &step.act {
            Act::Play { script, .. } => Some((step.session, Script::deserialize(script).ok()?)),
            _ => None,
        });
        let (session, script) = played.unwrap_or_default();
        let talk = Talk::of(transcript, session, &scenario, script.goes_away());
        Self { scenario, script, talk, late_ms: transcript.stretched_ms(LATE_MS) }
    }
}

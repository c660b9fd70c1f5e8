//! The tool that enqueues.

use peerproof_engine::check::Check;
use peerproof_engine::face::Aim;
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::Judgement;
use peerproof_engine::plan::Plan;
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::{Transcript, strict};

/// All checks of it.
pub fn checks() -> Vec<Check> {
    Vec::new()
}

/// A conversation as drawn.
pub fn conversation(_facts: &Facts, _rng: &mut Rng) -> Plan {
    Plan::default()
}

/// Refuses a plan that is not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(transcript: &Transcript) -> Result<(), String> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// Judges a transcript.
pub fn judge(_transcript: &Transcript) -> Judgement {
    Judgement::default()
}

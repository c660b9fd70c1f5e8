//! The face of a runner. It is not there yet.

use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::Judgement;
use peerproof_engine::plan::Plan;
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::Transcript;

/// All checks of runners.
pub fn checks() -> Vec<Check> {
    Vec::new()
}

/// Refuses a plan that is not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(_transcript: &Transcript) -> Result<(), String> {
    Err("runners are not judged yet".to_owned())
}

/// Judges a transcript.
pub fn judge(_transcript: &Transcript) -> Judgement {
    Judgement { untestable: Some("runners are not judged yet".to_owned()), ..Judgement::default() }
}

/// A conversation as drawn.
pub fn conversation(_facts: &Facts, _rng: &mut Rng) -> Plan {
    Plan::default()
}

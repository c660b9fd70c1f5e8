//! The face of a replayer.

use peerproof_engine::finding::Judgement;
use peerproof_engine::transcript::Transcript;

/// Refuses a plan whose aims are not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(transcript: &Transcript) -> Result<(), String> {
    peerproof_engine::transcript::strict::expectations::<peerproof_engine::face::Aim>(&transcript.plan)
}

/// Judges a transcript.
pub fn judge(_transcript: &Transcript) -> Judgement {
    Judgement::default()
}

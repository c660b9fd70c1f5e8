//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("stdio/hostile/*", Hostile),
    ("stdio/malformed/*", Malformed),
    ("stdio/completion/unknown-prompt", Malformed),
];

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::StimulusValidity;
    use peerproof_engine::data::rung::Rungs;

    #[test]
    fn a_check_about_invalid_messages_alone_is_not_ordinary() {
        let (boundary, rungs) = (crate::boundary(), Rungs::new("mcp", RUNGS));
        for check in boundary.checks().iter().filter(|check| rungs.of_check(&check.id) == Rung::Ordinary) {
            let mut rows = boundary.clauses().iter().filter(|clause| check.clauses.contains(&clause.id));
            assert!(rows.any(|clause| clause.stimulus != StimulusValidity::Invalid), "{}", check.id);
        }
    }
}

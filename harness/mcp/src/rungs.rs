//! The rungs of this boundary's checks.

use peerproof_engine::rung::Rung;
use peerproof_engine::rung::Rung::{Hostile, Malformed};

/// Globs on the ids of checks behind the name of the boundary; the first that fits counts, and other checks are ordinary.
pub const RUNGS: &[(&str, Rung)] = &[("stdio/hostile/*", Hostile), ("stdio/malformed/*", Malformed)];

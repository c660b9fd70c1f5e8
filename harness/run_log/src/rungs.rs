//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("runner/{kill,told-to-end,log}/*", Hostile),
    ("replayer/sizes/*", Hostile),
    ("replayer/rerun/amiss-*", Hostile),
    ("runner/{request,fallback,tool}/*", Malformed),
    ("runner/open/tags", Malformed),
    ("replayer/{refused,open}/*", Malformed),
];

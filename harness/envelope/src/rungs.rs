//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("*/size/*", Hostile),
    ("*/open/{over-size-*,twice-the-size,white-space-over-size,deep-nesting}", Hostile),
    ("http/connections/{hundred,cut,no-http}", Hostile),
    ("http/bodies/{cut-into-writes,cut-short,a-second-behind-the-head}", Hostile),
    ("caller/{sizes,timeout,streams}/*", Hostile),
    ("*/{refused,open,shapes,member,stage}/*", Malformed),
    ("http/connections/refused-with-a-body", Malformed),
    ("caller/{invalid,refused,failed}/*", Malformed),
    ("http/bodies/text-behind-the-envelope", Malformed),
];

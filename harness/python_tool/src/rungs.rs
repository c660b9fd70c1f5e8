//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("*/sizes/*", Hostile),
    ("*/json/deeper-*", Hostile),
    ("*/guarantees/*-by-*", Hostile),
    ("*/times/left-running-*", Hostile),
    ("*/failures/ended-*", Hostile),
    ("service/connections/{hundred,slow-one}", Hostile),
    ("service/http/{garbage,cut,cut-short}", Hostile),
    ("service/survives/*", Hostile),
    ("runtime/timeout/*", Hostile),
    ("*/{refused,missing,open}/*", Malformed),
    ("service/times/odd-*", Malformed),
    ("service/http/{refused-later,refused-with-a-body}", Malformed),
    ("service/handshake/version-*", Malformed),
    ("runtime/{invalid,bad-call,crash,unavailable}/*", Malformed),
];

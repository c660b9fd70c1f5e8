//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("*/{sizes,size,dead,stalled,slow,many,disk,cut,special}/*", Hostile),
    ("genesis/plugin/*", Hostile),
    ("genesis/compile/{error,flood,hang}", Hostile),
    ("http/garbage", Hostile),
    ("*/malformed/*", Malformed),
    ("enqueue/refused/*", Malformed),
    ("http/{length,token,method,path}/*", Malformed),
    ("worker/names/{odd,not-utf8,dot,upper-case,others,bar}", Malformed),
    ("genesis/{write,names}/*", Malformed),
    ("genesis/compile/name-that-leaves", Malformed),
];

//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed, Ordinary};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("driver/{hostile,limits,load,properties}/*", Hostile),
    ("driver/output/words-in-inp", Hostile),
    ("driver/output/no-pick", Malformed),
    ("select/{resources,output}/*", Hostile),
    ("select/time/hangs/*", Hostile),
    (
        "select/time/{child-holds-the-pipe,child-in-its-own-session-holds-the-pipe,failing-with-a-child,children-far-away}",
        Hostile,
    ),
    ("select/stderr/flood", Hostile),
    ("bridge/reply/endless", Hostile),
    (
        "select/lines/{no-object,nearly-json,white-space-of-others,malformed-beside-others-in-one-write}",
        Malformed,
    ),
    (
        "select/grammar/{each-form,each-form-with-patch,cut-into-writes,patch-cut-into-writes,tags-in-strings}",
        Ordinary,
    ),
    ("driver/{malformed,open}/*", Malformed),
    ("bridge/{failure,output}/*", Malformed),
    ("select/{grammar,fail,model,numbers}/*", Malformed),
    ("select/mode/nothing-starts-later", Malformed),
];

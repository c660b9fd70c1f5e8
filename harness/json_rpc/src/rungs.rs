//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed, Ordinary};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub const RUNGS: &[(&str, Rung)] = &[
    ("*/json/{presentation,safe-integers,strings,numbers,carriage-return-between-tokens}", Ordinary),
    ("*/{nesting,sizes}/*", Hostile),
    ("client/{hostile,hang-up,size}/*", Hostile),
    ("*/gzip/{inflated-size,memory-while-refusing-100-mb,corrupt,nested}", Hostile),
    ("http/bodies/*", Hostile),
    ("*/{json,requests}/*", Malformed),
    ("*/ids/{wrong-types,beyond-*}", Malformed),
    ("*/params/{missing,positional-for-named,null,scalar}", Malformed),
    ("*/batches/{empty,no-requests,invalid-beside-valid,nested,malformed}", Malformed),
    ("*/batches/{notification-beside-invalid,rules-of-single-messages}", Malformed),
    ("*/examples/{invalid-*,empty-array}", Malformed),
    ("*/{params-that-do-not-fit,members-of-other-types,data-of-other-types}", Malformed),
    ("*/auth/{malformed,missing,wrong,signature-near-misses,nonce-near-misses,unsignable}", Malformed),
    ("*/gzip/{undeclared,no-base64,shapes}", Malformed),
    ("*/line-ends/{blank-lines,last-line-cut,separators-of-other-texts}", Malformed),
    ("*/model/*", Malformed),
    ("client/{invalid,mixture}/*", Malformed),
    (
        "client/stream/{chunk-*,gap,first-chunk-is-two,chunks-out-of-order,wrong-total,without-end,start-*}",
        Malformed,
    ),
];

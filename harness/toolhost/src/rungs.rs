//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed, Ordinary};

/// Globs on ids of checks without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("*/{limits,load,leftovers}/*", Hostile),
    ("*/json/nesting-*", Hostile),
    ("serve/malformed/random-bytes", Hostile),
    ("{serve,run}/tools/{crash*,noise*}", Hostile),
    ("dispatch/{size,crash,held-pipes,timeout,stderr}/*", Hostile),
    ("dispatch/reply/*-nested-100000-levels", Hostile),
    (
        "*/request/{aid-unknown,aid-nearly-known,input-absent*,input-values,input-characters,input-unusual-characters}",
        Ordinary,
    ),
    (
        "*/request/{input-texts-with-meaning-elsewhere,input-raw-characters,input-of-4096-bytes,unknown-member*}",
        Ordinary,
    ),
    ("*/request/input-under-another-name", Ordinary),
    ("run/request/run-ignores-*", Ordinary),
    ("run/stdin/{final-lf,white-space-before,white-space-after}", Ordinary),
    (
        "*/json/{after-white-space,number-spelling,size-spelling,slot-number-spelling,fraction-keeps-value}",
        Ordinary,
    ),
    ("*/json/{keys-in-reverse-order,*-between-tokens,*-as-escapes,every-short-escape}", Ordinary),
    ("*/{json,malformed,model}/*", Malformed),
    ("{serve,run}/request/*", Malformed),
    ("run/stdin/*", Malformed),
    ("serve/lines/{last-cut-*,blank-*}", Malformed),
    ("serve/pipelining/good-and-bad-in-turn", Malformed),
    ("*/state/{size-of-multi-byte-content,removed-slots-in-a-full-state}", Ordinary),
    (
        "*/state/{slot-key-*,removed-slots-*,artifact-*,slots-that-are-*,delta-that-is-*,size-*,refused-*}",
        Malformed,
    ),
    ("serve/idempotency/{key-first-sent-with-*,replies-that-are-no-hit}", Malformed),
    (
        "serve/lease/{empty-token,token-of-*,token-with-nul,token-in-*,valid-token-*,near-misses-*,rejected-*}",
        Malformed,
    ),
    ("dispatch/{stdout,start,output-json,reply-rules}/*", Malformed),
];

#![no_main]

use peerproof_played::toolhost::properties::{Talk, serve_small};

libfuzzer_sys::fuzz_target!(|talk: Talk| serve_small(&talk));

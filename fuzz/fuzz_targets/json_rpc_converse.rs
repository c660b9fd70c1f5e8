#![no_main]

use peerproof_played::json_rpc::properties::{Talk, converse};

libfuzzer_sys::fuzz_target!(|talk: Talk| {
    converse(&talk);
});

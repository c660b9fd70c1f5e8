#![no_main]

use peerproof_played::policy_driver::properties::{Payload, payload};

libfuzzer_sys::fuzz_target!(|it: Payload| {
    payload(&it.text(), it.pieces);
});

#![no_main]

use peerproof_played::json_rpc::properties::{Batch, batch};

libfuzzer_sys::fuzz_target!(|elements: Batch| batch(&elements));

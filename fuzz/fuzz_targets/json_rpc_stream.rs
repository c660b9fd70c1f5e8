#![no_main]

use peerproof_played::json_rpc::properties::{Tasks, stream};

libfuzzer_sys::fuzz_target!(|tasks: Tasks| {
    stream(&tasks);
});

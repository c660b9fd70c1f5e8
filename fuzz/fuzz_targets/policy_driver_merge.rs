#![no_main]

use peerproof_played::policy_driver::properties::{Merge, merge};

libfuzzer_sys::fuzz_target!(|texts: Merge| {
    merge(&texts.text());
});

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peerproof_played::run_log::properties::tx_patch(data));

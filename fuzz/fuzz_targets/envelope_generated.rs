#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peerproof_played::envelope::properties::generated(data));

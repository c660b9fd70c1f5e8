#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peerproof_played::python_tool::properties::generated(data));

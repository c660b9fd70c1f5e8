#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peerproof::boundary::toolhost::properties::dispatcher_reply(data));

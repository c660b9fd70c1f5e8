#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    peerproof::boundary::policy_driver::properties::payload(data);
});

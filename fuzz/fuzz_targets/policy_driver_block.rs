#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = peerproof_played::policy_driver::properties::block(data);
});

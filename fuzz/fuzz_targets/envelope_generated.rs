#![no_main]

use peerproof_engine::data::rng::Rng;
use peerproof_played::envelope::properties::generated;

libfuzzer_sys::fuzz_target!(|data: &[u8]| generated(Rng::led(data)));

//! Runs all stored inputs through the properties of the fuzz targets.

use peerproof_engine::data::json::Json;
use peerproof_engine::data::rng::Rng;

use crate::stored::{generated, inputs, replay};

#[test]
fn logs() {
    replay("run_log", super::log);
    generated(super::generated);
}

#[test]
fn patches() {
    replay("run_log", super::tx_patch);
    // Also runs the patch of every line of a log, and variants with one byte replaced.
    let (inputs, mut rng) = (inputs("run_log"), Rng::new(1));
    for line in inputs.iter().flat_map(|(_, data)| data.split(|byte| *byte == b'\n')) {
        let line = String::from_utf8_lossy(line).parse::<Json>().ok();
        let own = line.as_ref().and_then(|line| line.pointer("/payload/tx_patch")).or(line.as_ref());
        let Some(patch) = own.filter(|patch| patch.as_array().is_some()).map(Json::to_text) else { continue };
        super::tx_patch(patch.as_bytes());
        for _ in 0..100 {
            let (mut near, by) = (patch.clone().into_bytes(), *rng.pick(b"\"[]{}:,/0189aev\\\xC3"));
            let at = rng.index(near.len());
            near[at] = by;
            super::tx_patch(&near);
        }
    }
}

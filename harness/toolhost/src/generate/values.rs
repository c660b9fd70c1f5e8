//! Random JSON texts of all shapes that every peer must preserve.

use peerproof_engine::data::json::Json;
use peerproof_engine::data::rng::Rng;

const STRINGS: &[&str] = &[
    "",
    "a",
    "é",
    "日本語",
    "😀",
    "\u{0}",
    "\u{7f}",
    "\u{2028}",
    "\u{feff}",
    "\"",
    "\\",
    "/",
    "\n",
    "\r\n",
    "\t",
    "{}",
    "null",
    "{\"ok\":true}",
    "\u{e000}",
    "\u{fffd}",
    "e\u{301}",
    "TOOL_ERROR",
    "a\u{0}b",
    "\u{ffff}",
    "\u{1}",
];

const INTEGERS: &[i64] = &[
    0,
    1,
    -1,
    7,
    8,
    255,
    256,
    65_535,
    65_536,
    2_147_483_647,
    -2_147_483_648,
    4_294_967_295,
    4_294_967_296,
    9_007_199_254_740_991,
    -9_007_199_254_740_991,
];

/// A short string.
pub(super) fn string(rng: &mut Rng) -> String {
    match rng.below(8) {
        0..=3 => (*rng.pick(STRINGS)).to_owned(),
        4 => (0..rng.below(12)).map(|_| *rng.pick(STRINGS)).collect(),
        5 => "x".repeat(rng.index(200)),
        _ => format!("s{}", rng.below(100)),
    }
}

/// A value of at most this depth.
pub(super) fn value(rng: &mut Rng, depth: u32) -> Json {
    match rng.below(if depth == 0 { 6 } else { 8 }) {
        0 => Json::Null,
        1 => Json::from(rng.chance(1, 2)),
        2 => Json::from(*rng.pick(INTEGERS)),
        3 => Json::from(rng.below(1_000)),
        4 | 5 => Json::from(string(rng)),
        6 => Json::Array((0..rng.below(4)).map(|_| value(rng, depth - 1)).collect()),
        _ => object(rng, depth - 1),
    }
}

/// Object with distinct names and at most this depth below it.
pub(super) fn object(rng: &mut Rng, depth: u32) -> Json {
    let mut object = Json::Object(Vec::new());
    for _ in 0..rng.below(4) {
        let name = string(rng);
        let value = value(rng, depth);
        object.set(&name, value);
    }
    object
}

/// A valid Artifact.
pub(super) fn artifact(rng: &mut Rng) -> Json {
    let content = string(rng);
    Json::object([
        ("type", Json::from(*rng.pick(&["note", "", "t\u{e9}"]))),
        ("provenance", Json::from(*rng.pick(&["test", "", "p\u{0}q"]))),
        ("size_bytes", Json::from(content.len())),
        ("content_json", Json::from(content)),
    ])
}

/// A valid `ds_state`: a delta or a full state.
pub(super) fn state(rng: &mut Rng) -> Json {
    let mut state = Json::Object(Vec::new());
    let mut free: Vec<u64> = (0..8).collect();
    rng.shuffle(&mut free);
    let delta = rng.chance(3, 4);
    if delta {
        state.set("delta", true);
    } else if rng.chance(1, 3) {
        state.set("delta", false);
    }
    if rng.chance(4, 5) {
        let mut slots = Json::Object(Vec::new());
        for _ in 0..rng.below(3) {
            if let Some(slot) = free.pop() {
                slots.set(&slot.to_string(), artifact(rng));
            }
        }
        state.set("slots", slots);
    }
    if delta && rng.chance(1, 3) {
        let removed = (0..rng.below(3)).filter_map(|_| free.pop()).map(Json::from).collect::<Vec<_>>();
        state.set("removed_slots", removed);
    }
    state
}

//! Stored requests and conversations, adapted to the peer's tools.

use std::sync::OnceLock;

use include_dir::{Dir, include_dir};

use super::super::role::role;
use super::{GeneratedLine, reference_aids};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::rng::Rng;

static SEEDS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/seeds");
static CONVERSATIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/conversations");

/// All stored requests in the order of their names.
fn requests() -> &'static [&'static [u8]] {
    static ALL: OnceLock<Vec<&'static [u8]>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut files: Vec<_> = SEEDS.dirs().flat_map(Dir::files).collect();
        files.sort_by_key(|file| file.path());
        files.into_iter().map(include_dir::File::contents).collect()
    })
}

/// Stored conversations, line by line.
fn conversations() -> &'static [Vec<&'static str>] {
    static ALL: OnceLock<Vec<Vec<&'static str>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut files: Vec<_> = CONVERSATIONS.files().collect();
        files.sort_by_key(|file| file.path());
        files.into_iter().filter_map(|file| Some(file.contents_utf8()?.lines().collect())).collect()
    })
}

/// `text` with the peer's action ids; `None` if it names a tool that the peer lacks, or that must not be used here.
fn translated(text: &str, facts: &Facts) -> Option<String> {
    let mut text = text.to_owned();
    for (aid, name) in reference_aids() {
        if !text.contains(aid.as_str()) {
            continue;
        }
        if matches!(*name, "http_get" | "sleep" | "crash") {
            return None;
        }
        text = text.replace(aid.as_str(), &role(facts, name)?.aid);
    }
    let has = |member: &str| text.contains(member);
    let unclaimed = (has("idempotency_key") && !facts.claims("idempotency"))
        || (has("_lease") && !facts.claims("lease"))
        || (has("ds_state") && !facts.claims("ds_state"));
    (!unclaimed).then_some(text)
}

/// A stored request.
pub(super) fn request(facts: &Facts, rng: &mut Rng) -> Option<GeneratedLine> {
    let bytes = *rng.pick(requests());
    match std::str::from_utf8(bytes) {
        Ok(text) => translated(text, facts).map(|text| GeneratedLine::bytes(text.as_bytes())),
        // Bytes that are not UTF-8 name no relevant tool.
        Err(_) => Some(GeneratedLine::bytes(bytes)),
    }
}

/// A stored conversation without leases, whose tokens would have to be captured.
pub(super) fn conversation(facts: &Facts, rng: &mut Rng) -> Option<Vec<GeneratedLine>> {
    let lines = rng.pick(conversations());
    let mut made = Vec::new();
    for line in lines {
        if line.contains("{token}") || line.contains("_lease.issue") {
            return None;
        }
        made.push(GeneratedLine {
            payload: Payload::text(translated(line, facts)?),
            ..GeneratedLine::default()
        });
    }
    // Sometimes the conversation gets another presentation.
    if rng.chance(1, 4) {
        for made in &mut made {
            let Some(value) = made.small().and_then(|bytes| decoded(&bytes)) else { continue };
            let how = *rng.pick(&json::Presentation::ALL);
            made.payload = Payload::text(json::present(&value, how, &mut || rng.next_u64()));
        }
    }
    Some(made)
}

fn decoded(bytes: &[u8]) -> Option<Json> {
    json::decode(bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

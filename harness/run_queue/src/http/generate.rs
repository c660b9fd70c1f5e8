//! Random conversations with the adapter.

use peerproof_engine::data::carriage::{BodyFraming, Carriage};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

use crate::inbox;

use super::{HEALTH, PATH, TOKEN, Talk};

/// Most requests of a conversation, canaries not counted.
const REQUESTS_MAX: u64 = 6;

/// A random conversation: valid, nearly valid and wrong requests, each followed by a canary.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let has_token = facts.claims(TOKEN) && rng.below(3) == 0;
    let Ok(mut talk) = Talk::new(facts, rng, has_token) else { return Plan::default() };
    for _ in 0..=rng.below(REQUESTS_MAX) {
        let job = talk.job();
        let how = way(rng);
        let body = match rng.below(3) {
            0 => job.into_bytes(),
            _ => inbox::near_miss(job.into_bytes(), rng),
        };
        talk.ask("", how, Payload::from_bytes(&body));
    }
    talk.plan.by_model = true;
    talk.plan
}

/// Random settings of a request.
fn way(rng: &mut Rng) -> Carriage {
    let mut how = Carriage::post();
    match rng.below(12) {
        0 => how.framing = BodyFraming::Chunked(1 + small(rng)),
        1 => how.framing = BodyFraming::Short(1 + small(rng)),
        2 => how.framing = BodyFraming::OpenChunks(1 + small(rng)),
        3 => how.method = (*rng.pick(&["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])).to_owned(),
        4 => how.path = Some((*rng.pick(&["/", "/other", "/enqueue/", "/Enqueue", HEALTH])).to_owned()),
        5 => how.path = Some(format!("{PATH}?x=1")),
        6 => how.content_type = rng.pick(&[None, Some("text/plain")]).map(str::to_owned),
        7 => how.headers.push("Expect: 100-continue".to_owned()),
        8 => how.headers.push("Content-Length: 3".to_owned()),
        9 => how.headers.push("Authorization: Bearer x".to_owned()),
        _ => {}
    }
    // A request that may end its connection uses one of its own.
    let connection = u32::from(how.is_cut() || !how.headers.is_empty());
    how.on(connection)
}

fn small(rng: &mut Rng) -> u32 {
    u32::try_from(rng.below(40)).unwrap_or_default()
}

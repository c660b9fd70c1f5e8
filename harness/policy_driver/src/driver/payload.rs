//! Payload of a decision, as the plan holds it.

use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Fixture, Plan};

/// Payload in the file of this name, parsed strictly.
pub(super) fn payload(plan: &Plan, file: &str) -> Option<Json> {
    decoded(&bytes_of(plan, file)?)
}

pub(super) fn decoded(bytes: &[u8]) -> Option<Json> {
    json::decode(bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

/// Bytes in the file of this name.
pub(super) fn bytes_of(plan: &Plan, file: &str) -> Option<Vec<u8>> {
    let content = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::File { name, content, .. } if name == file => Some(content),
        _ => None,
    })?;
    content.expand(&Vars::new()).ok()
}

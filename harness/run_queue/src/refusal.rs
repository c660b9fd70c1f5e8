//! Refusals of trial calls.

use peerproof_engine::data::facts::RoleTrial;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;

/// Outcome of a refused trial call. A toolhost refuses unknown tools itself; a failing tool is a fault of the peer.
pub(crate) fn refused(reply: &str) -> RoleTrial {
    let value: Json = reply.parse().unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Json::as_str).unwrap_or_default();
    let error = shorten(text("error"), 80);
    match text("status") {
        "TOOL_ERROR" => RoleTrial::Untold(format!("fails with {error:?}")),
        _ => RoleTrial::Misplays(format!("is refused: {error:?}")),
    }
}

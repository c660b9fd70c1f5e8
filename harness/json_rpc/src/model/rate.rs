//! Rate limits: the configured limit, and the required form of a refusal.

use serde_json::Value;

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::Json;

/// Error code for a request beyond the rate limit.
pub(crate) const LIMITED: i64 = -32002;

/// Rate limit of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Requests within a window.
    pub requests: u64,
    /// Length of the window, seconds.
    pub window_s: u64,
}

impl Limit {
    /// Length of the window, microseconds.
    pub(crate) fn window_us(&self) -> u64 {
        self.window_s.saturating_mul(1_000_000)
    }
}

/// Rate limit of a server that claims one.
pub(crate) fn limit(facts: &Facts) -> Option<Limit> {
    let feature = facts.features.get("rate_limit")?;
    let number = |name: &str| feature.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    Some(Limit { requests: number("requests")?, window_s: number("window_s")? })
}

/// Delay after which a request passes again, ms, if a response is a refusal with that delay.
pub(crate) fn retry_after_ms(response: &Json) -> Option<u64> {
    let code = response.pointer("/error/code").and_then(Json::as_i64)?;
    let wait = response.pointer("/error/data/retry_after_ms").and_then(Json::as_u64)?;
    (code == LIMITED && wait > 0).then_some(wait)
}

/// Finding about a malformed refusal.
pub(crate) fn violation(response: &Json) -> Option<Finding> {
    let code = response.pointer("/error/code").and_then(Json::as_i64)?;
    (code == LIMITED && retry_after_ms(response).is_none()).then(|| {
        let got = peerproof_engine::data::payload::shorten(&response.to_text(), 200).into_owned();
        let expected = "error -32002 with an integer `data.retry_after_ms` above 0";
        Finding::new("RPC-RATE-02", "retry_after_ms", expected, got)
            .repaired_by(Repair::other("/error/data/retry_after_ms"))
    })
}

//! Generated conversations, judged by the model.

use peerproof_engine::data::check::Check;

use super::super::generate::{Theme, about};

/// Number of requests in a conversation.
const REQUESTS: u64 = 60;

pub(super) fn checks() -> Vec<Check> {
    vec![
        generated(
            "generated-conversations",
            "Generated requests, valid, nearly valid and invalid, are each answered as the contract demands.",
            &["TH-FRAME-01", "TH-FRAME-02", "TH-REQ-03", "TH-REQ-07", "TH-REQ-17"],
            Theme::Mixed,
        ),
        generated(
            "generated-malformed-lines",
            "Generated malformed lines between good requests are each answered once, and run nothing.",
            &["TH-SERVE-01", "TH-JSON-01", "TH-REQ-17"],
            Theme::Hostile,
        ),
        generated(
            "generated-keys",
            "Generated requests with repeated keys run once per key, whatever requests are between them.",
            &["TH-IDEM-01", "TH-IDEM-02", "TH-IDEM-03", "TH-IDEM-10", "TH-IDEM-13"],
            Theme::Keys,
        )
        .feature("idempotency"),
        generated(
            "generated-states",
            "Generated full states and deltas, from requests and tools, lead to the expected slots.",
            &["TH-STATE-01", "TH-STATE-02", "TH-STATE-03", "TH-STATE-05", "TH-STATE-15", "TH-STATE-16"],
            Theme::State,
        )
        .feature("ds_state"),
        generated(
            "generated-leases",
            "Generated leases, used once, twice and for other tools, open only their own tools.",
            &["TH-LEASE-02", "TH-LEASE-03", "TH-LEASE-04", "TH-LEASE-06", "TH-LEASE-07"],
            Theme::Leases,
        )
        .feature("lease")
        .roles(&["any", "tier1"]),
    ]
}

fn generated(name: &str, title: &str, clauses: &[&str], theme: Theme) -> Check {
    let id = format!("toolhost/serve/model/{name}");
    let check = Check::new(id, title, clauses.iter().copied(), "serve", move |facts, rng| {
        Ok(about(facts, theme, REQUESTS, rng))
    });
    check.roles(&["any"])
}

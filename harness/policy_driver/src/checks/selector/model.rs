//! Checks with generated conversations, judged by the model of the breaker.

use super::super::super::SELECTOR;
use super::super::super::selector::generate;
use super::patient;
use peerproof_engine::data::check::Check;

/// Number of requests of one conversation.
const REQUESTS: u64 = 40;

/// Clauses that these conversations can break.
const CLAUSES: [&str; 17] = [
    "PD-MODE-01",
    "PD-MODE-02",
    "PD-MODE-06",
    "PD-SEL-05",
    "PD-GRAM-01",
    "PD-FAIL-02",
    "PD-FAIL-03",
    "PD-FAIL-04",
    "PD-FAIL-05",
    "PD-FAIL-06",
    "PD-BRK-01",
    "PD-BRK-03",
    "PD-BRK-04",
    "PD-BRK-06",
    "PD-BRK-08",
    "PD-BRK-09",
    "PD-SELN-05",
];

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        generated("first", "drivers are started, taken and left alone as the breaker has it", 300),
        generated("second", "nothing is different with a longer cooldown", 900),
    ]
}

fn generated(name: &str, what: &str, cooldown_ms: u64) -> Check {
    let id = format!("policy_driver/select/model/generated-sequence-{name}");
    let title = format!("In {REQUESTS} generated requests with good drivers, bad ones and pauses {what}.");
    let check = Check::new(id, title, CLAUSES, SELECTOR, move |_, rng| {
        // The plan with more time also finishes with slow selectors.
        Ok(patient(generate::about(REQUESTS, cooldown_ms, rng)))
    });
    check.on_process().waits()
}

//! Checks about lines that are carried over to HTTP.
//!
//! A check is carried over if all its clauses have the mode `http`. Clauses about lines, their ends and cuts, or
//! about standard streams lack that mode. `OF_LINES` lists the other checks that are about lines. Concurrent
//! calls use connections of their own.

use std::collections::BTreeSet;

use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::plan::{Act, Step};

/// The mode of clauses that hold over HTTP.
const MODE: &str = "http";

/// Checks about line ends, or about several lines in one write, although their clauses hold over HTTP.
const OF_LINES: [&str; 4] = [
    "json_rpc/stdio/sizes/carriage-return-near-limits",
    "json_rpc/stdio/sizes/large-replies-under-way",
    "json_rpc/stdio/sizes/over-limit-at-end-of-input",
    "json_rpc/stdio/sizes/over-limit-between-others-in-one-write",
];

/// The checks about lines that have the same meaning over HTTP.
pub(crate) fn carried(checks: &[Check]) -> Vec<Check> {
    let clauses = super::super::boundary().clauses();
    let over_http: BTreeSet<&ClauseId> =
        clauses.iter().filter(|clause| clause.modes.iter().any(|mode| mode == MODE)).map(|c| &c.id).collect();
    let means_the_same = |check: &&Check| {
        // Streams do not exist over HTTP. Checks about compressed messages cover both transports already.
        let of_lines = matches!(check.feature.as_deref(), Some("streaming" | "gzip"))
            || OF_LINES.contains(&check.id.as_str());
        check.command == "command"
            && !of_lines
            && check.clauses.iter().all(|clause| over_http.contains(clause))
    };
    checks.iter().filter(means_the_same).map(carry).collect()
}

fn carry(check: &Check) -> Check {
    let planner = check.planner.clone();
    let beside = check.feature.as_deref() == Some("concurrent");
    let mut check = check.clone();
    check.id = check.id.replacen("/stdio/", "/http/", 1);
    check.command = HTTP.to_owned();
    check.needs_process = true;
    check.planner = std::sync::Arc::new(move |facts, rng| {
        let mut plan = planner(facts, rng)?;
        plan.sessions.iter_mut().for_each(|session| session.command = HTTP.to_owned());
        if beside {
            // A request that is not awaited uses a connection that is already open, so that it arrives first.
            let is_left = |step: &Step| matches!(step.act, Act::Send { await_frames: 0, .. });
            let behind = plan.steps.iter_mut().skip_while(|step| !is_left(step)).skip(1);
            for (step, number) in behind.zip(1..) {
                step.http = Some(Carriage::post().on(number));
            }
        }
        Ok(plan)
    });
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_lines_is_there() {
        let checks = super::super::all();
        for id in OF_LINES {
            assert!(checks.iter().any(|check| check.id == id), "{id} is no check");
            let carried = id.replacen("/stdio/", "/http/", 1);
            assert!(!checks.iter().any(|check| check.id == carried), "{carried}");
        }
    }
}

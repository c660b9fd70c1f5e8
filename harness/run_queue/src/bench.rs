//! Benchmark workloads for the enqueue tool. Each job has a process of its own, and is in the inbox when the
//! process answers. The programs in `benches/` measure workers and the disk's share.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::Session;

use super::ENQUEUE;

/// Jobs: name and size of their content, bytes.
const SIZES: [(&str, usize); 2] = [("100B", 100), ("1MB", 1_000_000)];

/// Workloads for a tool with these facts.
///
/// # Errors
/// The command `enqueue` is not configured.
pub(crate) fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    if !facts.commands.contains(ENQUEUE) {
        return Err("the tool that enqueues is measured alone: configure `enqueue`".into());
    }
    let aid = facts.roles.get("enqueue").and_then(|role| role.get("aid")?.as_str());
    Ok(SIZES.map(|(name, bytes)| workload(name, bytes, aid.unwrap_or("AID.QUEUE.ENQUEUE.v1"))).into())
}

fn workload(name: &str, bytes: usize, aid: &str) -> Workload {
    let job =
        format!("{{\"request_json\":{{\"goal_id\":\"g\",\"inputs\":{{\"d\":\"{}\"}}}}}}", "x".repeat(bytes));
    let request = Json::object([("aid", Json::from(aid)), ("input_json", job.into())]);
    let judge: ReplyVerifier = Arc::new(|_, reply| {
        let reply = json::decode(json::trim(reply), &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error})"))?;
        match reply.value.get("ok") {
            Some(Json::Bool(true)) => Ok(()),
            _ => Err("the tool refused the job".to_owned()),
        }
    });
    let placeholders = [("queue", "{{folder}}"), ("aid", aid)];
    let placeholders = placeholders.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Workload {
        name: format!("enqueue/{name}"),
        meaning: format!("one process a job of {bytes} bytes"),
        session: Session {
            command: ENQUEUE.to_owned(),
            placeholders: BTreeMap::from(placeholders),
            ..Session::default()
        },
        requests: vec![request.to_text().into_bytes()],
        // A worker creates the folders of a queue.
        files: ["inbox/.a", "processing/.a", "done/.a", "failed/.a"].map(|path| (path, [].into())).into(),
        one_shot: true,
        echoes: false,
        shapes: vec![Shape::Window(1)],
        judge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn a_job_that_is_refused_is_no_job() {
        let mut facts = boundary().full_facts(Side::Provider);
        let workloads = workloads(&facts).unwrap();
        assert!((workloads[0].judge)(0, b"{\"ok\":true}\n").is_ok());
        for reply in [&b"{\"ok\":false}"[..], b"", b"ok"] {
            assert!((workloads[0].judge)(0, reply).is_err());
        }
        facts.commands.remove(ENQUEUE);
        assert!(super::workloads(&facts).is_err());
    }
}

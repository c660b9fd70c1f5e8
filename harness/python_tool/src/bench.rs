//! Benchmark workloads for a local runner, and the test of its replies. A refused request needs no interpreter, so
//! its time shows what Python and the tool add to a call.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::Session;

use super::face::COMMAND;
use super::project;
use super::roles::{entry_of, tool_of};

/// Calls of `echo`: name, length of the echoed text in bytes, and number of variants that take turns.
const SIZES: [(&str, usize, usize); 3] =
    [("call/small", 10, 8), ("call/1KB", 1_000, 4), ("call/1MB", 1_000_000, 2)];

/// Workloads for a runner with these facts.
///
/// # Errors
/// The peer is not a local runner, or the role `echo` is not mapped.
pub(crate) fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    if !facts.commands.contains(COMMAND) {
        return Err("only local runners are measured: configure `command`".into());
    }
    if !facts.roles.contains_key("echo") {
        return Err("the role `echo` is not mapped".into());
    }
    let calls = SIZES.map(|(name, bytes, variants)| {
        let requests = (0..variants).map(|variant| request(facts, 1, variant, bytes)).collect();
        workload(name, &format!("one process a call of {bytes} bytes, echoed"), requests, Some(bytes))
    });
    let refused = workload(
        "refused",
        "a request of another protocol version, which runs no tool",
        vec![request(facts, 2, 0, 10)],
        None,
    );
    Ok([refused].into_iter().chain(calls).collect())
}

fn request(facts: &Facts, version: u8, variant: usize, bytes: usize) -> Vec<u8> {
    let (entry, tool) = (entry_of(facts, "echo"), tool_of(facts, "echo"));
    let text = format!("{variant}{}", "x".repeat(bytes.saturating_sub(1)));
    format!("{{\"protocol_version\":{version},\"tool\":{tool:?},\"entry\":{entry:?},\"payload\":{{\"v\":\"{text}\"}}}}")
        .into_bytes()
}

/// A workload. `echoed` is the length of the echoed text in bytes; `None` if the request must be refused.
fn workload(name: &str, meaning: &str, requests: Vec<Vec<u8>>, echoed: Option<usize>) -> Workload {
    let judge: ReplyVerifier = Arc::new(move |variant, reply| {
        let Some(bytes) = echoed else { return Ok(()) };
        let decoded = json::decode(json::trim(reply), &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error})"))?;
        let text =
            decoded.value.get("result").and_then(|result| result.get("v")?.as_str().map(str::to_owned));
        match text {
            Some(text) if text.len() == bytes && text.starts_with(&variant.to_string()) => Ok(()),
            _ => Err(format!(
                "the reply contains no echo: {}",
                decoded.value.get("error").map(Json::to_text).unwrap_or_default()
            )),
        }
    });
    let folder = "{{folder}}".to_owned();
    Workload {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        session: Session {
            command: COMMAND.to_owned(),
            env: BTreeMap::from([("PYTHONPATH".to_owned(), folder.clone())]),
            folder: Some(folder),
            ..Session::default()
        },
        requests,
        files: project::TOOLS.iter().map(|(path, text)| (*path, text.as_bytes().into())).collect(),
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
    fn a_reply_answers_for_its_own_call() {
        let facts = boundary().full_facts(Side::Provider);
        let workloads = workloads(&facts).unwrap();
        assert!(
            workloads.iter().all(|it| it.requests.iter().all(|request| request.len() == it.request_bytes()))
        );
        let reply = b"{\"ok\":true,\"protocol_version\":1,\"result\":{\"v\":\"1xxxxxxxxx\"}}";
        assert!((workloads[1].judge)(1, reply).is_ok());
        assert!((workloads[1].judge)(0, reply).is_err());
    }
}

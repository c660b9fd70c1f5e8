//! Benchmark workloads: `ping`, a tool that the configuration names, and large arguments and results.

use std::sync::Arc;

use serde_json::{Value, json};

use super::config;
use super::connection::{INITIALIZE, INITIALIZED, PING, opening, revision_asked};
use super::role::{call as params, role};
use peerproof_engine::contract::boundary::workload::{Shape, Workload};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::Session;
use peerproof_engine::drive::peer::fill_template;
use peerproof_json_rpc::bench::shapes;
use peerproof_json_rpc::talk::call;

/// Sizes of arguments and results, bytes.
const SIZES: [(&str, usize); 3] = [("1KiB", 1 << 10), ("64KiB", 64 << 10), ("1MB", 1_000_000)];
/// Variants of the smallest request.
const VARIANTS: usize = 8;

/// Lines that open a session, each with `true` where its answer is awaited.
pub(crate) fn session(facts: &Facts) -> Vec<(Vec<u8>, bool)> {
    if !facts.commands.contains("command") {
        return Vec::new();
    }
    let capabilities = config::capabilities(facts, &json!({}));
    let opening = opening(revision_asked(facts), &capabilities).to_string();
    let line = |text: String| (text + "\n").into_bytes();
    let first = line(call(INITIALIZE, Some(&opening), Some("\"peerproof\"")));
    vec![(first, true), (line(call(INITIALIZED, None, None)), false)]
}

/// Workloads for a server: `ping`, and tools with the roles `any`, `echo` and `blob`.
pub(crate) fn workloads(facts: &Facts) -> Vec<Workload> {
    let ping = (0..VARIANTS).map(|id| call(PING, None, Some(&id.to_string()))).collect();
    let mut all = vec![workload("ping/64B", "the smallest request", ping, shapes(64), String::new())];
    let called = |name: &Value, arguments: Value| {
        let name = name.as_str().unwrap_or_default();
        vec![call("tools/call", Some(&params(name, arguments).to_string()), Some("0"))]
    };
    if let Some(any) = role(facts, "any") {
        let requests = called(&any["name"], any.get("arguments").cloned().unwrap_or_else(|| json!({})));
        let shapes = [1, 16].map(Shape::Window).to_vec();
        all.push(workload(
            "any/call",
            "a call of the tool with the role `any`",
            requests,
            shapes,
            String::new(),
        ));
    }
    for (size, bytes) in SIZES {
        let text = "x".repeat(bytes);
        if let Some(echo) = role(facts, "echo") {
            let requests = called(&echo["name"], json!({ echo["arg"].as_str().unwrap_or_default(): text }));
            let name = format!("echo/{size}");
            all.push(workload(&name, "a text that comes back", requests, shapes(bytes), text.clone()));
        }
        if let Some(blob) = role(facts, "blob") {
            let arguments = fill_template(&blob["arguments"], &[("bytes", json!(bytes))]).unwrap_or_default();
            let (name, requests) = (format!("blob/{size}"), called(&blob["name"], arguments));
            all.push(workload(&name, "a large result", requests, vec![Shape::Window(1)], String::new()));
        }
    }
    all
}

/// A workload of requests whose ids are their indexes. A right answer is a result that contains `text`.
fn workload(name: &str, meaning: &str, requests: Vec<String>, shapes: Vec<Shape>, text: String) -> Workload {
    let echoes = !text.is_empty();
    let judge = move |variant: usize, reply: &[u8]| {
        let shown = || String::from_utf8_lossy(&reply[..reply.len().min(160)]).into_owned();
        let decoded = json::decode(reply, &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error}): {}", shown()))?;
        let has_failed = decoded.value.pointer("/result/isError").and_then(Json::as_bool) == Some(true);
        let result = decoded.value.get("result").filter(|_| !has_failed);
        let has_text = |part: &Json| part.as_str().is_some_and(|it| it.contains(&text));
        if decoded.value.get("id").and_then(Json::as_u64) != Some(variant as u64)
            || !result.is_some_and(|result| text.is_empty() || result.has(has_text))
        {
            return Err(format!("the reply does not belong to the request: {}", shown()));
        }
        Ok(())
    };
    Workload {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        session: Session { command: "command".to_owned(), ..Session::default() },
        requests: requests.into_iter().map(|text| (text + "\n").into_bytes()).collect(),
        files: Vec::new(),
        one_shot: false,
        echoes,
        shapes,
        judge: Arc::new(judge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_the_text_is_wrong() {
        let all = workloads(&crate::full_facts::facts(peerproof_engine::data::clause::Side::Provider));
        let judge = |name: &str| all.iter().find(|workload| workload.name == name).unwrap().judge.clone();
        assert!(judge("ping/64B")(3, br#"{"jsonrpc":"2.0","id":3,"result":{}}"#).is_ok());
        assert!(judge("ping/64B")(3, br#"{"jsonrpc":"2.0","id":2,"result":{}}"#).is_err());
        let short = br#"{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"x"}]}}"#;
        assert!(judge("echo/1KiB")(0, short).is_err() && judge("blob/1KiB")(0, short).is_ok());
    }
}

//! Benchmark workloads for a JSON-RPC server, and the test of its replies.

use std::sync::Arc;

use super::role::role;
use super::talk::{Talk, call, quoted};
use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::{Plan, Session};

const NO_ECHO: &str = "peerproof knows no method that returns its params: map the role `echo` with --role \
    echo=METHOD or in the configuration";

/// Message for a server that demands signatures. A signature is good for one message, so a benchmark would measure
/// signing.
const SIGNED: &str = "the server accepts signed messages only ([features] auth), but a benchmark repeats \
    the same bytes, which the server must refuse: measure it without auth";

/// Name, bytes with the line feed, variants, meaning.
const SIZES: &[(&str, usize, usize, &str)] = &[
    ("64B", 64, 8, "smallest requests"),
    ("1KiB", 1 << 10, 4, "a string of 1 KiB, echoed"),
    ("64KiB", 64 << 10, 2, "a string of 64 KiB, echoed"),
    ("1MB-string", 1_000_000, 2, "one string of 1,000,000 bytes, echoed"),
];

/// Workloads for a server with these facts.
///
/// # Errors
/// No role is known whose method returns its params, or the server demands signatures.
pub fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    let echo = role(facts, "echo").ok_or(NO_ECHO)?;
    if facts.claims("auth") {
        return Err(SIGNED.into());
    }
    Ok(SIZES
        .iter()
        .map(|(name, bytes, variants, meaning)| {
            let made: Vec<(String, Json)> =
                (0..*variants).map(|variant| filled(&echo.method, variant, *bytes)).collect();
            Workload {
                name: format!("command/{name}"),
                meaning: (*meaning).to_owned(),
                session: Session { command: "command".to_owned(), ..Session::default() },
                requests: made.iter().map(|(text, _)| format!("{text}\n").into_bytes()).collect(),
                files: Vec::new(),
                one_shot: false,
                echoes: true,
                shapes: shapes(*bytes),
                judge: judge(made.into_iter().map(|(_, params)| params).collect()),
            }
        })
        .collect())
}

/// Shapes of load for requests of `bytes` bytes.
pub fn shapes(bytes: usize) -> Vec<Shape> {
    let (ping_pong, some, many) = (Shape::Window(1), Shape::Window(16), Shape::Window(64));
    match bytes {
        64 => {
            let open = [50, 80, 95].map(Shape::Open);
            [Shape::StartUp, ping_pong, some, many].into_iter().chain(open).chain([Shape::Soak]).collect()
        }
        1_024 => vec![ping_pong, some, many],
        _ => vec![ping_pong],
    }
}

/// A request of `bytes` bytes with its line feed, or the smallest possible one; and its params.
fn filled(method: &str, variant: usize, bytes: usize) -> (String, Json) {
    let text =
        |fill: usize| call(method, Some(&format!("[\"{}\"]", "x".repeat(fill))), Some(&variant.to_string()));
    let fill = bytes.saturating_sub(text(0).len() + 1);
    (text(fill), Json::array([Json::from("x".repeat(fill))]))
}

/// Accepts a reply that carries the id and the params of its request.
fn judge(params: Vec<Json>) -> ReplyVerifier {
    Arc::new(move |variant, reply| {
        let shown = || String::from_utf8_lossy(&reply[..reply.len().min(120)]).into_owned();
        let decoded = json::decode(reply, &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error}): {}", shown()))?;
        if decoded.value.get("result") != params.get(variant) {
            return Err(format!("the reply is not the echo of its request: {}", shown()));
        }
        if decoded.value.get("id").and_then(Json::as_u64) != Some(variant as u64) {
            return Err(format!("the reply has another id than its request: {}", shown()));
        }
        Ok(())
    })
}

/// A conversation of this many small requests with one process. `None` without the role `echo`.
pub(crate) fn small_exchanges(facts: &Facts, exchanges: usize) -> Option<Plan> {
    let echo = role(facts, "echo")?;
    let mut talk = Talk::plain(facts);
    for n in 0..exchanges {
        talk.send(&call(&echo.method, Some(&format!("[{n}]")), Some(&quoted(&n.to_string()))));
    }
    Some(talk.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_facts;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn requests_have_their_sizes_and_differ() {
        let workloads = workloads(&full_facts::facts(Side::Provider)).unwrap();
        for (workload, (name, bytes, variants, _)) in workloads.iter().zip(SIZES) {
            let lengths: Vec<usize> = workload.requests.iter().map(Vec::len).collect();
            // Longer method names make the smallest request a little larger.
            assert!(lengths.iter().all(|length| *length == *bytes || *bytes == 64), "{name}: {lengths:?}");
            let mut different = workload.requests.clone();
            different.sort();
            different.dedup();
            assert_eq!(different.len(), *variants, "{name}");
        }
    }

    #[test]
    fn a_server_that_wants_signatures_is_not_measured() {
        let mut facts = full_facts::facts(Side::Provider);
        facts.features.insert("auth".to_owned(), serde_json::json!({ "key": "k" }));
        assert!(workloads(&facts).unwrap_err().to_string().contains("signed"));
    }

    #[test]
    fn a_wrong_echo_is_told() {
        let workloads = workloads(&full_facts::facts(Side::Provider)).unwrap();
        let judge = &workloads[0].judge;
        assert!(judge(0, br#"{"jsonrpc":"2.0","result":["y"],"id":0}"#).is_err());
        assert!(judge(0, b"no JSON").is_err());
    }
}

//! Benchmark workloads for an engine on standard streams, and the test of its replies.

use std::sync::Arc;

use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::Session;

use super::face::COMMAND;
use super::talk::{PLAIN, with};

/// Envelopes by size: name, bytes, and number of variants that take turns.
const SIZES: [(&str, usize, usize); 4] =
    [("1KiB", 1 << 10, 8), ("64KiB", 64 << 10, 2), ("1MiB", 1 << 20, 2), ("10MiB", 10 << 20, 1)];

/// Workloads for an engine with these facts.
///
/// # Errors
/// The engine is configured over HTTP alone, or the peer is a caller.
pub(crate) fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    if !facts.commands.contains(COMMAND) {
        return Err("only engines on standard streams are measured: configure `command`".into());
    }
    Ok(SIZES.map(|(name, bytes, variants)| workload(name, bytes, variants)).into())
}

fn workload(name: &str, bytes: usize, variants: usize) -> Workload {
    let numbered = |variant: usize, fill: usize| {
        let input = format!("\"{variant}{}\"", "x".repeat(fill));
        with(PLAIN, [("raw_input", input.as_str())])
    };
    let fill = bytes.saturating_sub(numbered(0, 0).len());
    let requests = (0..variants).map(|variant| numbered(variant, fill).into_bytes()).collect();
    let judge: ReplyVerifier = Arc::new(move |variant, reply| {
        let decoded = json::decode(json::trim(reply), &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error})"))?;
        let input = decoded.value.get("raw_input").and_then(Json::as_str).unwrap_or_default();
        let is_own = input.len() == fill + 1 && input.starts_with(&variant.to_string());
        if is_own { Ok(()) } else { Err("the reply differs from the envelope that was sent".to_owned()) }
    });
    Workload {
        name: format!("process/{name}"),
        meaning: format!("one process an envelope of {name}"),
        session: Session { command: COMMAND.to_owned(), ..Session::default() },
        requests,
        files: Vec::new(),
        one_shot: true,
        echoes: true,
        shapes: vec![Shape::Window(1)],
        judge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn envelopes_have_their_size_and_answer_for_themselves() {
        let mut facts = Facts::new(Side::Provider);
        assert!(workloads(&facts).is_err());
        facts.commands.insert(COMMAND.to_owned());
        for (workload, (_, bytes, _)) in workloads(&facts).unwrap().iter().zip(SIZES) {
            assert!(workload.requests.iter().all(|request| request.len() == bytes));
            assert!((workload.judge)(0, &workload.requests[0]).is_ok());
            assert!((workload.judge)(1, &workload.requests[0]).is_err());
        }
    }
}

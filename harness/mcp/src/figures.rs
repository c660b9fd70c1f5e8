//! Figures of fuzzed conversations: the slowest call, the largest result, and growth of memory.

use super::server::Server;
use peerproof_engine::contract::boundary::Figure;
use peerproof_engine::contract::judge;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::text::visible;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Characters of a result behind which clients cut, at about 25,000 tokens.
const RESULT_CHARS_MAX: usize = 100_000;

/// Records the memory of the server.
pub(crate) fn sample() -> Act {
    Act::SampleMemory { label: "fuzz".to_owned() }
}

/// Figures of one conversation.
pub(crate) fn of(transcript: &Transcript) -> Vec<Figure> {
    let mut found = judge::listen(&Server, transcript, |trace| {
        let heard = trace.sessions.iter();
        let calls = heard.flat_map(|heard| {
            heard.answers().filter_map(move |(asked, unit, answer)| {
                let params = unit.extra.params.as_ref();
                let name = params?.get("name").and_then(Json::as_str)?;
                let result = answer.message.get("result")?;
                (unit.extra.method.as_deref()? == "tools/call").then_some(())?;
                let took_ms = heard.output.get(answer.frame)?.at_us.saturating_sub(asked.at_us) / 1_000;
                Some([slow(name, took_ms), large(name, result.to_text().chars().count())])
            })
        });
        calls.flatten().collect::<Vec<_>>()
    });
    found.extend(growth(transcript));
    found
}

fn slow(tool: &str, took_ms: u64) -> Figure {
    let text = format!("{took_ms} ms, of tool {}", visible(tool));
    Figure { name: "slowest call", value: took_ms, text }
}

fn large(tool: &str, chars: usize) -> Figure {
    let mut text = format!("{chars} characters, of tool {}", visible(tool));
    if chars > RESULT_CHARS_MAX {
        text.push_str(&format!("; clients cut results at about {RESULT_CHARS_MAX}"));
    }
    Figure { name: "largest result", value: chars as u64, text }
}

fn growth(transcript: &Transcript) -> Option<Figure> {
    let samples: Vec<u64> = transcript
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Memory { hwm_bytes, .. } => Some(*hwm_bytes),
            _ => None,
        })
        .collect();
    let value = samples.last()?.saturating_sub(*samples.first()?) >> 20;
    Some(Figure {
        name: "most memory added in a conversation",
        value,
        text: format!("{value} MiB, from {} MiB on", samples.first()? >> 20),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_clients_cut_is_told() {
        assert!(!large("t", RESULT_CHARS_MAX).text.contains("clients"));
        let figure = large("t\n", RESULT_CHARS_MAX + 1);
        assert_eq!(figure.text, "100001 characters, of tool t\\n; clients cut results at about 100000");
    }
}

//! Figures of the envelope boundary.

use std::time::Instant;

use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, turns};
use peerproof_reference::envelope::{Config, machine};
use peerproof_reference::machine::{Action, Event};
use serde_json::Value;

/// Size of the envelopes, bytes.
const BYTES: usize = 1 << 20;

/// Envelope of at most `bytes` bytes, at most one record shorter. `unit` makes the record at an index of its metadata.
fn envelope(bytes: usize, unit: impl Fn(usize) -> String) -> String {
    let mut text = r#"{"envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"u","session_id":"sess_0123456789abcdef","raw_input":"x","outputs":{},"current_stage":"start","terminated":false,"metadata":{"a":["#.to_owned();
    for place in 0.. {
        let more = unit(place);
        if text.len() + more.len() + 4 > bytes {
            break;
        }
        text.push_str(if place == 0 { "" } else { "," });
        text.push_str(&more);
    }
    text + "]}}"
}

/// Time of the reference to read, check, advance and write an envelope, divided by serde_json's time to read and write
/// the same bytes as a `Value`.
pub(crate) fn round_trip() -> Result<(), FigureError> {
    let string = envelope(BYTES, |place| match place {
        0 => format!("\"{}\"", "x".repeat(BYTES - 300)),
        _ => "\"y\"".to_owned(),
    });
    let records = envelope(BYTES, |id| {
        format!("{{\"id\":{id},\"name\":\"user {id}\",\"ok\":true,\"score\":{}.5}}", id % 100)
    });
    for (what, text) in [("one string", string), ("records", records)] {
        let mut pair = Pair::default();
        let mut refused = false;
        for round in 0..200 {
            let own = || {
                let start = Instant::now();
                let (mut engine, mut actions) = (machine(Config::default()), Vec::new());
                engine.handle(Event::Stdin(text.as_bytes()), 0, &mut actions);
                engine.handle(Event::StdinEof, 0, &mut actions);
                refused |= !actions.contains(&Action::Exit(0));
                std::hint::black_box(&actions);
                Ok(start.elapsed())
            };
            let floor = || {
                let start = Instant::now();
                let value: Value = serde_json::from_slice(std::hint::black_box(text.as_bytes()))?;
                std::hint::black_box(serde_json::to_vec(&value)?);
                Ok(start.elapsed())
            };
            pair.add(turns(round, own, floor)?);
        }
        if refused {
            return Err(FigureError::Unfit("the envelope was refused".to_owned()));
        }
        println!(
            "envelope: round trip of {} bytes in-process, over parse and print as a serde_json Value, {what}: {}; \
             undisturbed {:.3} ({:.0} over {:.0} us)",
            text.len(),
            pair.ratio,
            pair.best(),
            pair.first.quantile(0.02),
            pair.second.quantile(0.02)
        );
    }
    Ok(())
}

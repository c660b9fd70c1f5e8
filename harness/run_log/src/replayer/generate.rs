//! Random logs: runs of random selections, some with one line changed.

use peerproof_engine::data::free_data;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

use super::talk::{GivenLog, Maker, Pick, Talk, start, text};
use crate::state::Artifact;

/// Member names that are easily lost.
const NAMES: &[&str] = &["k", "", "__proto__", "a.b", "K", "é", "kept", "null"];

/// A random run with a valid log.
pub fn log(rng: &mut Rng) -> Vec<Json> {
    let digits = format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64());
    let run = match rng.index(3) {
        0 => digits,
        1 => digits.to_uppercase(),
        _ => [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"),
    };
    let mut header = Json::object([("run_id", Json::from(run))]);
    if rng.chance(1, 2) {
        header.set("spec_version", "1.4.2");
        header.set("profile_id", "A");
    }
    if rng.chance(1, 3) {
        header.set("request_id", "r");
    }
    let mut begin = start();
    begin.set("inputs", free_data::object(NAMES, rng, 3));
    let mut run = Maker::new(header, begin);
    for _ in 0..rng.range(1..=6) {
        let kind = *rng.pick(&["PICK", "PICK", "PICK", "PICK", "ASK_SUP", "INVALID"]);
        let fails = rng.chance(1, 5);
        let deterministic = !fails && rng.chance(1, 3);
        let tool = if fails {
            "FAIL"
        } else if deterministic {
            "DO"
        } else {
            "RANDOM"
        };
        let patch = rng.chance(2, 3).then(|| patch(rng));
        run.pick(&Pick {
            kind: kind.to_owned(),
            tool: tool.to_owned(),
            pad: None,
            fallback: patch.is_none() && rng.chance(1, 4),
            patch,
            deterministic,
            fails,
            shows: rng.chance(1, 2),
            output: None,
        });
    }
    run.pick(&Pick { kind: "NOOP".to_owned(), ..Pick::default() });
    run.finish("noop")
}

/// A random patch, with a task for a tool.
fn patch(rng: &mut Rng) -> String {
    let mut patch = free_data::object(NAMES, rng, 2);
    let content = free_data::object(NAMES, rng, 2).to_text();
    let slot = rng.index(8).to_string();
    let held = Artifact::new("json", "peer:1", &content).to_json();
    let set = Json::object([(slot.as_str(), held)]);
    let remove = if rng.chance(1, 3) { vec![rng.index(8)] } else { Vec::new() };
    patch.set("do", Json::object([("set", set), ("remove", Json::array(remove))]));
    patch.to_text()
}

/// A random conversation: valid logs, and logs with a removed, repeated or moved line or a removed member.
pub fn conversation(rng: &mut Rng) -> Plan {
    let mut talk = Talk::default();
    for _ in 0..rng.range(1..=3) {
        let mut lines = log(rng);
        let (at, other) = (rng.index(lines.len()), rng.index(lines.len()));
        match rng.index(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                if let Some(payload) = lines[at].get_mut("payload").and_then(Json::as_object_mut) {
                    let gone = rng.index(payload.len().max(1));
                    if gone < payload.len() {
                        payload.remove(gone);
                    }
                }
            }
            _ => {}
        }
        talk.give("LOG-VERDICT-OK", Payload::text(text(&lines)), GivenLog::default());
    }
    talk.plan()
}

#[cfg(test)]
mod tests {
    use include_dir::{Dir, include_dir};
    use peerproof_engine::data::schema::Schemas;

    use super::super::model;
    use super::*;

    #[test]
    fn what_is_drawn_is_right() {
        static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");
        let schemas = Schemas::load_dir(&FILES).unwrap();
        for seed in 0..200 {
            let lines = log(&mut Rng::new(seed));
            let text = text(&lines);
            let told = model::read(text.as_bytes(), true);
            assert_eq!((told.wrong, told.open), (None, Vec::new()), "{text}");
            for line in &lines {
                assert!(schemas.validate("line", line).unwrap().is_empty(), "{}", line.to_text());
            }
        }
    }
}

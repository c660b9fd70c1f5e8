//! Behaviour of the tools of known roles.

use std::collections::BTreeMap;

use super::super::expect::Match;
use super::pins::{Pins, Tool};
use super::request::Input;
use super::slots::{self, Slot, Slots};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;

/// Size in bytes below which a result surely fits into a reply (36 bytes per code unit, and the rest of the reply).
pub(super) const CERTAIN_BYTES_MAX: usize = 28_000;

/// Possible outcomes of an execution.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// True if it may succeed.
    pub ok: bool,
    /// True if it may fail with `TOOL_ERROR`.
    pub fails: bool,
    /// True if any refusal is allowed, because the input is not that of the role.
    pub refuses: bool,
    /// True if it may end the process.
    pub dies: bool,
    /// JSON text of its output, if certain.
    pub output: Option<String>,
    /// Parts of its output by JSON Pointer, if it may have others.
    pub parts: BTreeMap<String, Match>,
    /// True if it counts its executions and returns the count.
    pub counts: bool,
    /// Slot that it writes on success, with the new content.
    pub writes: Option<(usize, Slot)>,
    /// Slot that it returns.
    pub shows: Option<usize>,
    /// True if the slots are unknown afterwards.
    pub blurs: bool,
    /// Clause that a wrong output or a refusal breaks.
    pub clause: &'static str,
    /// Clause that a wrong slot in its output breaks, if it is another one.
    pub shown_clause: Option<&'static str>,
}

impl Run {
    fn certain(clause: &'static str) -> Self {
        Self {
            ok: true,
            fails: false,
            refuses: false,
            dies: false,
            output: None,
            parts: BTreeMap::new(),
            counts: false,
            writes: None,
            shows: None,
            blurs: false,
            clause,
            shown_clause: None,
        }
    }

    /// Outcome of an unknown tool, or of an input that the role's tool may refuse.
    fn uncertain(clause: &'static str) -> Self {
        Self { fails: true, refuses: true, blurs: true, ..Self::certain(clause) }
    }
}

/// Possible outcomes of the tool, given the slots before.
pub(super) fn run(tool: &Tool, input: &Input, seen: &Slots, pins: &Pins) -> Run {
    let Some(value) = &input.value else {
        // The host or the tool refuses it; it never runs as `{}`.
        return Run { ok: false, fails: true, refuses: true, ..Run::certain("TH-REQ-06") };
    };
    let members = value.as_object().unwrap_or_default();
    let only = |names: &[&str]| {
        members.len() == names.len()
            && names.iter().all(|name| members.iter().any(|(known, _)| known == name))
    };
    let size = input.text.as_ref().map_or(2, String::len);
    let mut run = match tool.role {
        "echo" => {
            let mut run = Run::certain("TH-REQ-15");
            run.output = input.plain.then(|| input.text.clone().unwrap_or_else(|| "{}".to_owned()));
            if let Some(output) = &mut run.output
                && output.starts_with('\u{FEFF}')
            {
                *output = output.trim_start_matches('\u{FEFF}').to_owned();
            }
            run
        }
        "any" => {
            let known = match &tool.input {
                None => members.is_empty(),
                Some(known) => super::super::expect::parse(known).as_ref() == Some(value),
            };
            let run = if known { Run::certain("TH-FRAME-01") } else { Run::uncertain("TH-FRAME-01") };
            Run { blurs: true, ..run }
        }
        "counter" | "tier1" | "tier2" | "tier3" => {
            let run = Run { counts: true, ..Run::certain("TH-FRAME-01") };
            if only(&[]) { run } else { Run { fails: true, refuses: true, ..run } }
        }
        "put" if only(&["slot", "artifact"]) => put(value, pins),
        "get" if only(&["slot"]) => match value.get("slot").and_then(slots::number) {
            None => Run::uncertain("TH-STATE-07"),
            Some(slot) => {
                let mut run = Run { shows: Some(slot), ..Run::certain("TH-STATE-01") };
                match &seen[slot] {
                    Slot::Empty(by) => {
                        run.shown_clause = by.0;
                        run.parts.insert("/artifact".to_owned(), Match::Equals("null".to_owned()));
                    }
                    Slot::Holds(artifact) => {
                        let members = artifact.to_json();
                        run.fails = members.to_text().len() > CERTAIN_BYTES_MAX - 64;
                        for (name, value) in members.as_object().unwrap_or_default() {
                            run.parts.insert(format!("/artifact/{name}"), Match::Equals(value.to_text()));
                        }
                    }
                    Slot::Unknown => run.fails = true,
                }
                if !pins.ds_state {
                    run.parts.clear();
                }
                run
            }
        },
        "remove" if only(&["slot"]) => match value.get("slot").and_then(slots::number) {
            None => Run::uncertain("TH-STATE-07"),
            Some(slot) => Run { writes: Some((slot, Slot::EMPTY)), ..Run::certain("TH-STATE-01") },
        },
        "fail" if only(&["message"]) && value.get("message").and_then(Json::as_str).is_some() => {
            Run { ok: false, fails: true, ..Run::certain("TH-TOOL-01") }
        }
        "sleep" if only(&["ms"]) && value.get("ms").and_then(Json::as_u64).is_some_and(|ms| ms <= 1_000) => {
            Run::certain("TH-FRAME-02")
        }
        "blob" if only(&["bytes"]) => match value.get("bytes").and_then(Json::as_u64) {
            Some(bytes) if bytes <= CERTAIN_BYTES_MAX as u64 => {
                let data = Match::Text(Payload::default().repeat("x", bytes));
                let parts = BTreeMap::from([("/data".to_owned(), data)]);
                Run { parts, ..Run::certain("TH-LIMIT-08") }
            }
            _ => Run { fails: true, refuses: true, ..Run::certain("TH-LIMIT-07") },
        },
        "noise"
            if only(&["stdout", "stderr"]) && members.iter().all(|(_, value)| value.as_str().is_some()) =>
        {
            Run::certain("TH-TOOL-03")
        }
        "crash" => Run {
            ok: false,
            fails: true,
            refuses: true,
            dies: !pins.is("crash_kind", "throw"),
            ..Run::certain("TH-TOOL-02")
        },
        "http_get" => Run { fails: true, refuses: true, ..Run::certain("TH-FRAME-01") },
        _ => Run::uncertain("TH-FRAME-01"),
    };
    if tool.role != "echo" && !input.plain {
        // The result of a doubtful input is the tool's own choice.
        let counts = run.counts;
        run = Run { counts, dies: run.dies, ..Run::uncertain(run.clause) };
    }
    run.fails |= size > CERTAIN_BYTES_MAX;
    run
}

fn put(value: &Json, pins: &Pins) -> Run {
    let slot = value.get("slot").and_then(slots::number);
    let mut may_refuse = None;
    let artifact = slots::read_artifact(value.get("artifact").unwrap_or(&Json::Null), pins, &mut may_refuse);
    match (slot, artifact) {
        (Some(slot), Ok(artifact)) => {
            let run = Run { writes: Some((slot, artifact)), ..Run::certain("TH-STATE-01") };
            match may_refuse {
                None => run,
                Some(_) => Run { fails: true, refuses: true, ..run },
            }
        }
        _ => Run::uncertain("TH-STATE-08"),
    }
}

//! Damaged logs are refused, and their undamaged twins are accepted.

use super::bench::{accepts, honest, replay};
use crate::json::{Policy, Text, Value, write_value};

fn lines() -> Vec<String> {
    honest().lines().map(str::to_owned).collect()
}

fn parsed(text: &str) -> Value {
    Value::parse(text.as_bytes(), 128, &Policy::default()).unwrap()
}

fn members(value: &mut Value) -> &mut Vec<(Text, Value)> {
    match value {
        Value::Object(members) => members,
        _ => panic!("no object"),
    }
}

fn member<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    &mut members(value).iter_mut().find(|(known, _)| *known == *name).unwrap().1
}

fn text(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(&mut out, value);
    String::from_utf8(out).unwrap()
}

fn name(line: &str) -> String {
    parsed(line).get("event").and_then(Value::as_str).unwrap().to_owned()
}

/// Log with one line edited.
fn edited(lines: &[String], at: usize, change: impl FnOnce(&mut Value)) -> String {
    let mut line = parsed(&lines[at]);
    change(&mut line);
    let mut lines = lines.to_vec();
    lines[at] = text(&line);
    joined(&lines)
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn refuses(log: &str, first_damaged: usize, what: &str) {
    assert!(!accepts(&[], log), "{what}: {log}");
    let said = replay(&[], log).stdout;
    let number = said.strip_prefix("REPLAY_STRICT FAIL line ").and_then(|rest| rest.split(':').next());
    let number: usize = number.unwrap().parse().unwrap();
    assert!(number > first_damaged, "{what}: {said}");
}

#[test]
fn lines_removed_doubled_or_moved() {
    let lines = lines();
    assert!(accepts(&[], &joined(&lines)));
    for at in 0..lines.len() {
        let mut removed = lines.clone();
        removed.remove(at);
        refuses(&joined(&removed), at, "removed");
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at].clone());
        refuses(&joined(&doubled), at, "doubled");
        let mut moved = lines.clone();
        let line = moved.remove(at);
        for to in (0..lines.len()).filter(|to| *to != at) {
            let mut moved = moved.clone();
            moved.insert(to, line.clone());
            refuses(&joined(&moved), at.min(to), "moved");
        }
        refuses(&joined(&lines[..at]), at, "cut");
        let cut = joined(&lines[..=at]);
        refuses(&cut[..cut.len() - 2], at, "cut in a line");
    }
    refuses("", 0, "empty");
    refuses(&format!("{}{}\n", joined(&lines), lines[1]), lines.len(), "more");
}

#[test]
fn every_line_is_an_object_with_its_members() {
    let lines = lines();
    for at in 0..lines.len() {
        for broken in ["[]", "1", "{", "{'a':1}", "not json", "null", "{\"a\":NaN}"] {
            let mut lines = lines.clone();
            lines[at] = broken.to_owned();
            refuses(&joined(&lines), at, broken);
        }
        for broken in
            [format!("[{}]", lines[at]), format!("{} {{}}", lines[at]), lines[at].replacen('{', "{,", 1)]
        {
            let mut lines = lines.clone();
            lines[at] = broken;
            refuses(&joined(&lines), at, "broken");
        }
        for gone in ["event", "step", "run_id", "payload"] {
            let log = edited(&lines, at, |line| members(line).retain(|(name, _)| *name != *gone));
            refuses(&log, at, gone);
            for other in ["null", "true", "[]", "-1"] {
                let log = edited(&lines, at, |line| *member(line, gone) = parsed(other));
                refuses(&log, at, gone);
            }
        }
        let log = edited(&lines, at, |line| {
            *member(line, "run_id") = "00000000-0000-4000-8000-000000000001".into();
        });
        refuses(&log, at.max(1), "another run");
        let log = edited(&lines, at, |line| members(line).push(("ts".into(), Value::Null)));
        assert!(accepts(&[], &log));
        let log = edited(&lines, at, |line| {
            members(member(line, "payload")).push(("chain_hash".into(), Value::Null));
        });
        assert!(accepts(&[], &log), "{log}");
    }
}

#[test]
fn every_step_has_its_number() {
    let lines = lines();
    for at in 0..lines.len() {
        let step = parsed(&lines[at]).get("step").and_then(Value::as_i64).unwrap();
        let others: &[i64] = if name(&lines[at]) == "run_finished" {
            assert!(accepts(
                &[],
                &edited(&lines, at, |line| *member(line, "step") = Value::Number(99.into()))
            ));
            &[step - 1, 0]
        } else {
            &[step - 1, step + 1, step + 100]
        };
        for other in others {
            let log = edited(&lines, at, |line| *member(line, "step") = Value::Number((*other).into()));
            refuses(&log, at, "step");
        }
    }
}

#[test]
fn every_payload_has_its_members() {
    let lines = lines();
    for at in 0..lines.len() {
        let payload = parsed(&lines[at]).get("payload").unwrap().clone();
        for (member_name, value) in payload.as_object().unwrap() {
            let member_name = member_name.as_str().unwrap();
            // No other line depends on an empty patch.
            let optional = *value == "{}".into() && member_name == "input_patch_json"
                || matches!(
                    (name(&lines[at]).as_str(), member_name),
                    ("run_started", "control_mode") | ("inputs_patched", "inputs")
                );
            if !optional {
                let log = edited(&lines, at, |line| {
                    members(member(line, "payload")).retain(|(name, _)| *name != *member_name);
                });
                refuses(&log, at, member_name);
            }
            for other in ["null", "[1]", "-1", "true"] {
                let other = parsed(other);
                let same_kind = std::mem::discriminant(&other) == std::mem::discriminant(value);
                if same_kind {
                    continue;
                }
                let log = edited(&lines, at, |line| *member(member(line, "payload"), member_name) = other);
                refuses(&log, at, member_name);
            }
        }
    }
}

/// Edits a member of the payloads of an event, one line at a time.
fn each(event: &str, member_name: &str, change: impl Fn(&Value) -> Option<Value>) {
    let lines = lines();
    let mut tried = 0;
    for at in (0..lines.len()).filter(|at| name(&lines[*at]) == event) {
        let Some(changed) = parsed(&lines[at]).get("payload").unwrap().get(member_name).and_then(&change)
        else {
            continue;
        };
        tried += 1;
        let log = edited(&lines, at, |line| *member(member(line, "payload"), member_name) = changed);
        refuses(&log, at, member_name);
    }
    assert!(tried > 0, "{event} {member_name}");
}

#[test]
fn what_is_said_twice_agrees() {
    for event in ["selector_chosen", "tool_ok", "tool_error"] {
        each(event, "aid", |_| Some("AID.OTHER".into()));
    }
    for kind in ["ASK_SUP", "NOOP", "INVALID", "pick", ""] {
        each("selector_chosen", "kind", |old| {
            // A selection without aid, patch and tool event may have any of the three kinds.
            (*old == "PICK".into() || kind.is_empty()).then(|| kind.into())
        });
    }
    for sid in ["SID1", "SID00001", "sid0001", "", "SID000x"] {
        each("selector_chosen", "sid", |_| Some(sid.into()));
    }
    for patch in ["{\"z\":9}", "[]", "{", ""] {
        each("selector_chosen", "input_patch_json", |_| Some(patch.into()));
    }
    each("inputs_patched", "patch", |_| Some(parsed("{\"z\":9}")));
    each("inputs_patched", "inputs", |_| Some(parsed("{\"z\":9}")));
    each("tool_ok", "state_digest", |old| Some(format!("{}0", &old.as_str().unwrap()[1..]).as_str().into()));
    each("run_finished", "state_digest", |_| Some("".into()));
    each("run_finished", "steps", |old| Some(Value::Number((old.as_i64().unwrap() + 1).into())));
    each("run_finished", "reason", |_| Some("".into()));
    each("run_started", "goal_id", |_| Some("".into()));
    each("tool_error", "status", |_| Some("OK".into()));
    each("tool_error", "error", |_| Some("".into()));
    each("tool_ok", "tx_patch", |old| {
        (!old.as_array().unwrap().is_empty()).then(|| Value::Array(Vec::new()))
    });
    each("tool_ok", "tx_patch", |old| {
        let mut items = old.as_array().unwrap().to_vec();
        items.push(parsed(r#"{"op":"Remove","path":"/slots/0"}"#));
        Some(Value::Array(items))
    });
    each("tool_ok", "output_json", |_| Some("{".into()));
}

#[test]
fn what_tools_show_agrees() {
    let lines = lines();
    for at in (0..lines.len()).filter(|at| name(&lines[*at]) == "tool_ok") {
        let line = parsed(&lines[at]);
        let deterministic =
            line.get("payload").unwrap().get("deterministic").and_then(Value::as_bool).unwrap();
        let log = edited(&lines, at, |line| {
            *member(member(line, "payload"), "output_json") = "{\"other\":1}".into();
        });
        assert_eq!(accepts(&[], &log), !deterministic, "{log}");
    }
    // The tools of the first and the second step return the inputs.
    let log =
        edited(&lines, 0, |line| *member(member(line, "payload"), "inputs") = parsed("{\"k\":1,\"n\":0}"));
    refuses(&log, 0, "inputs");
}

//! Tests of the runner: its lines, requests and starts.

use super::bench::{BLOCKS, REQUEST, accepts, config, honest, run, run_by, selector};
use crate::json::{Policy, Value};
use crate::run_log::{Runner, RunnerParts};

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| Value::parse(line.as_bytes(), 128, &Policy::default()).unwrap()).collect()
}

fn events(log: &str) -> Vec<String> {
    lines(log).iter().map(|line| line.get("event").and_then(Value::as_str).unwrap().to_owned()).collect()
}

fn count(log: &str, event: &str) -> usize {
    events(log).iter().filter(|known| *known == event).count()
}

fn reason(log: &str) -> String {
    let last = lines(log).pop().unwrap();
    last.get("payload").unwrap().get("reason").and_then(Value::as_str).unwrap().to_owned()
}

#[test]
fn what_it_writes_replays() {
    let log = honest();
    assert!(accepts(&[], &log) && log.ends_with('\n'));
    for (event, times) in [
        ("selector_chosen", 9),
        ("inputs_patched", 5),
        ("tool_ok", 6),
        ("tool_error", 1),
        ("run_finished", 1),
    ] {
        assert_eq!(count(&log, event), times, "{event}");
    }
    for line in lines(&log) {
        assert_eq!(line.get("spec_version"), Some(&"1.4.2".into()));
        assert_eq!(line.get("profile_id"), Some(&"A".into()));
        assert_eq!(line.get("run_id"), Some(&"00000000-0000-4000-8000-000000000000".into()));
        assert_eq!(line.get("request_id"), Some(&"R-1".into()));
    }
}

#[test]
fn drivers_get_what_is_in_force() {
    let seen = run(&[("ask_sup_ends", "false")], REQUEST, BLOCKS);
    assert_eq!((seen.payloads.len(), seen.spawns.len()), (9, 7));
    assert!(seen.payloads[0].contains("\"inputs\":{\"k\":1}"));
    assert!(seen.payloads[0].contains("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    assert!(seen.payloads[0].contains("\"goal_digest\":\"g|") && seen.payloads[0].contains("|FLAGS:"));
    assert!(seen.payloads[0].contains("\"control_mode\":\"POLICY_ONLY\""));
    assert!(seen.payloads[2].contains("2.50") && !seen.payloads[2].contains("e3b0c442"));
    for sid in ["SID0001", "SID0006"] {
        assert!(seen.payloads[8].contains(sid));
    }
    // After a failure the previous state stays.
    assert!(seen.spawns[4].1.contains("\"3\":{"));
}

#[test]
fn only_a_success_is_tool_ok() {
    for (aid, status) in [
        ("HANG", "TOOL_ERROR"),
        ("MISSING", "TOOL_ERROR"),
        ("GARBAGE", "TOOL_ERROR"),
        ("CRASH", "TOOL_ERROR"),
        ("STATUS", "TOOL_ERROR"),
        ("NOT-OK", "TOOL_ERROR"),
        ("TRIPS", "BREAKER_TRIP"),
        ("BAD-OUTPUT", "TOOL_ERROR"),
        ("BAD-STATE", "TOOL_ERROR"),
        ("BAD-SIZE", "TOOL_ERROR"),
        ("DELTA", "TOOL_ERROR"),
        ("FLOOD", "TOOL_ERROR"),
    ] {
        let request = format!(r#"{{"goal_id":"g","max_steps":2,"tools":[{{"aid":"{aid}"}}]}}"#);
        for (ends, steps) in [("false", 2), ("true", 1)] {
            let seen = run(&[("tool_error_ends", ends)], &request, &[]);
            assert_eq!((seen.status, seen.left), (Some(0), 0));
            assert_eq!((count(&seen.log, "tool_error"), count(&seen.log, "tool_ok")), (steps, 0), "{aid}");
            assert!(seen.log.contains(&format!("\"status\":\"{status}\"")), "{aid}");
            assert!(accepts(&[], &seen.log), "{aid}");
        }
    }
}

#[test]
fn ends_as_chosen() {
    let asks = &["<ASK_SUP><END>", "<ASK_SUP><END>", "<NOOP><END>"][..];
    let invalid = |ends| {
        let build = || Runner::new(config(&[("invalid_ends", ends)]), RunnerParts::new(selector(false)));
        run_by(|| Box::new(build()), &REQUEST.replace("\"x\":0", "\"max_steps\":3"), &[])
    };
    for (seen, steps, why) in [
        (run(&[("ask_sup_ends", "true")], REQUEST, asks), 1, "ask_sup"),
        (run(&[("ask_sup_ends", "false")], REQUEST, asks), 3, "noop"),
        (invalid("true"), 1, "invalid"),
        (invalid("false"), 3, "max_steps"),
        (run(&[], r#"{"goal_id":"g","tools":[{"aid":"AID.PEERPROOF.ANY.v1"}]}"#, &[]), 100, "max_steps"),
        (run(&[], r#"{"goal_id":"g"}"#, &[]), 1, "noop"),
    ] {
        assert_eq!(
            (seen.status, count(&seen.log, "selector_chosen"), reason(&seen.log).as_str()),
            (Some(0), steps, why)
        );
        assert!(accepts(&[], &seen.log));
    }
}

#[test]
fn a_driver_that_fails_gives_way_to_the_fallback() {
    let seen = run(&[], &REQUEST.replace("\"x\":0", "\"max_steps\":1"), &["<PICK><SID0099><END>"]);
    let chosen = lines(&seen.log).swap_remove(1);
    let chosen = chosen.get("payload").unwrap();
    assert_eq!((chosen.get("sid"), chosen.get("input_patch_json")), (Some(&"SID0001".into()), None));
    assert!(chosen.get("raw").and_then(Value::as_str).unwrap().starts_with("fallback: "));
}

#[test]
fn open_forms_are_as_chosen() {
    let bare = r#"{"goal_id":"g"}"#;
    for (key, value, part) in [
        ("run_id_form", "hex32", "\"run_id\":\"00000000000040008000000000000000\""),
        ("run_id_form", "uuid", "\"run_id\":\"00000000-0000-4000-8000-000000000000\""),
        ("first_step", "0", "\"event\":\"selector_chosen\",\"step\":0"),
        ("first_step", "1", "\"event\":\"selector_chosen\",\"step\":1"),
        ("request_id_absent", "null", "\"request_id\":null"),
        ("request_id_absent", "empty", "\"request_id\":\"\""),
    ] {
        assert!(run(&[(key, value)], bare, &[]).log.contains(part), "{key}={value}");
    }
    assert!(!run(&[], bare, &[]).log.contains("request_id"));
    for (value, times) in [("true", 6), ("false", 5)] {
        let seen = run(&[("ask_sup_ends", "false"), ("empty_patch_logged", value)], REQUEST, BLOCKS);
        assert_eq!(count(&seen.log, "inputs_patched"), times);
        assert!(accepts(&[], &seen.log));
    }
    for (key, yes, no, request) in [
        ("goal_id_with_bar", "accept", "refuse", r#"{"goal_id":"g|h"}"#),
        ("control_mode_unknown", "default", "refuse", r#"{"goal_id":"g","control_mode":"X"}"#),
        ("duplicate_keys", "first", "refuse", r#"{"goal_id":"g","goal_id":"h"}"#),
    ] {
        assert_eq!(run(&[(key, yes)], request, &[]).status, Some(0), "{key}");
        assert_eq!(run(&[(key, no)], request, &[]).status, Some(2), "{key}");
    }
}

#[test]
fn refuses_what_is_no_request() {
    for bad in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"goal_id":""}"#,
        r#"{"goal_id":1}"#,
        r#"{"goal_id":"g","inputs":[]}"#,
        r#"{"goal_id":"g","inputs":null}"#,
        r#"{"goal_id":"g","control_mode":1}"#,
        r#"{"goal_id":"g","request_id":1}"#,
        r#"{"goal_id":"g","tools":{}}"#,
        r#"{"goal_id":"g","tools":[1]}"#,
        r#"{"goal_id":"g","tools":[{}]}"#,
        r#"{"goal_id":"g","tools":[{"aid":"a","tags":"x"}]}"#,
        r#"{"goal_id":"g","tools":[{"aid":"a","tags":[1]}]}"#,
        r#"{"goal_id":"g","tools":[{"aid":"a","deterministic":1}]}"#,
        r#"{"goal_id":"g","max_steps":0}"#,
        r#"{"goal_id":"g","max_steps":"1"}"#,
        r#"{"goal_id":"g"} x"#,
    ] {
        let seen = run(&[], bad, &[]);
        assert_eq!((seen.status, seen.log.as_str(), seen.spawns.len()), (Some(2), "", 0), "{bad}");
        assert!(seen.payloads.is_empty());
    }
}

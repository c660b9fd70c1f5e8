//! Tests of the replayer: accepted logs, re-runs and memory.

use super::bench::{accepts, config, honest, replay, replay_by};
use crate::machine::{Action, Event, Machine as _};
use crate::run_log::{CorrectDecisions, Replayer};

/// Example log of the contract.
pub(super) const EXAMPLE: &str = r#"{"run_id":"0123456789abcdef0123456789abcdef","event":"run_started","step":0,"payload":{"goal_id":"g","inputs":{"k":1}}}
{"run_id":"0123456789abcdef0123456789abcdef","event":"selector_chosen","step":0,"payload":{"kind":"PICK","sid":"SID0001","aid":"AID.A.v1","input_patch_json":"{\"k\":2}","raw":"<PICK><SID0001><INP>{\"k\":2}</INP><END>"}}
{"run_id":"0123456789abcdef0123456789abcdef","event":"inputs_patched","step":0,"payload":{"patch":{"k":2}}}
{"run_id":"0123456789abcdef0123456789abcdef","event":"tool_ok","step":0,"payload":{"aid":"AID.A.v1","deterministic":false,"output_json":"{}","tx_patch":[{"op":"add","path":"/slots/0","value":{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}}],"state_digest":"41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902"}}
{"run_id":"0123456789abcdef0123456789abcdef","event":"selector_chosen","step":1,"payload":{"kind":"NOOP","raw":"<NOOP><END>"}}
{"run_id":"0123456789abcdef0123456789abcdef","event":"run_finished","step":1,"payload":{"reason":"noop","steps":2,"state_digest":"41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902"}}
"#;

/// Digest of a state without slots.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Log of one step whose tool ends with this event.
pub(super) fn one_step(aid: &str, event: &str, payload: &str) -> String {
    let line = |event: &str, payload: &str| {
        format!(
            "{{\"run_id\":\"0123456789abcdef0123456789abcdef\",\"event\":\"{event}\",\"step\":0,\"payload\":{payload}}}\n"
        )
    };
    [
        line("run_started", r#"{"goal_id":"g","inputs":{"k":1}}"#),
        line("selector_chosen", &format!(r#"{{"kind":"PICK","sid":"SID0001","aid":"{aid}","raw":""}}"#)),
        line(event, &payload.replace("AID", aid).replace("EMPTY", EMPTY)),
        line("run_finished", &format!(r#"{{"reason":"r","steps":1,"state_digest":"{EMPTY}"}}"#)),
    ]
    .concat()
}

pub(super) const OK: &str =
    r#"{"aid":"AID","deterministic":true,"output_json":"{}","tx_patch":[],"state_digest":"EMPTY"}"#;
pub(super) const ERROR: &str = r#"{"aid":"AID","status":"TOOL_ERROR","error":"e","deterministic":true}"#;

#[test]
fn accepts_the_log_of_the_contract() {
    assert!(accepts(&[], EXAMPLE));
    assert!(replay(&[], EXAMPLE).spawns.is_empty());
    for size in [1, 3, 1000] {
        let crlf = EXAMPLE.replace('\n', "\r\n");
        let seen = replay_by(
            || Box::new(Replayer::new(config(&[]), Box::new(CorrectDecisions))),
            crlf.as_bytes(),
            size,
        );
        assert_eq!(seen.status, Some(0));
    }
}

#[test]
fn runs_deterministic_tools_again_in_order() {
    let log = honest();
    let seen = replay(&[], &log);
    let aids: Vec<_> = seen.spawns.iter().map(|(argv, _)| argv[3].as_str()).collect();
    assert_eq!(
        aids,
        [
            "AID.PEERPROOF.PUT.v1",
            "AID.PEERPROOF.ECHO.v1",
            "AID.PEERPROOF.PUT.v1",
            "SPELLED",
            "AID.PEERPROOF.REMOVE.v1"
        ]
    );
    assert_eq!(seen.spawns[0].0[..3], ["/peer", "--run", "default"]);
    assert!(seen.spawns[1].1.contains(r#"\"k\":{\"a\":[1,2.50]"#) && seen.spawns[1].1.contains("\"3\":"));
    assert!(seen.payloads.is_empty() && seen.status == Some(0));
}

#[test]
fn outputs_are_compared_as_json() {
    let log = |output: &str| one_step("SPELLED", "tool_ok", &OK.replace("\"{}\"", &format!("{output:?}")));
    for same in [r#"{"b":1.0,"a":[1,2]}"#, r#" { "\u0061":[1e0, 2.0] , "b":10e-1}"#] {
        assert!(accepts(&[], &log(same)), "{same}");
    }
    for other in [
        r#"{"b":1,"a":[2,1]}"#,
        r#"{"b":true,"a":[1,2]}"#,
        r#"{"b":"1","a":[1,2]}"#,
        r#"{"b":1,"a":[1,2],"c":null}"#,
        r#"{"b":1,"a":[1,2,[]]}"#,
        r#"{"b\u0000":1,"a":[1,2]}"#,
        "[]",
    ] {
        assert!(!accepts(&[], &log(other)), "{other}");
    }
}

#[test]
fn a_tool_that_fails_at_its_re_run_fails_the_log() {
    for aid in [
        "HANG",
        "MISSING",
        "GARBAGE",
        "CRASH",
        "STATUS",
        "NOT-OK",
        "TRIPS",
        "BAD-OUTPUT",
        "BAD-STATE",
        "BAD-SIZE",
        "DELTA",
        "FLOOD",
        "TWO-LINES",
        "AID.NOWHERE",
    ] {
        let log = one_step(aid, "tool_ok", OK);
        assert!(!accepts(&[], &log), "{aid}");
        assert!(accepts(&[], &log.replace("\"deterministic\":true", "\"deterministic\":false")), "{aid}");
        let failed = one_step(aid, "tool_error", ERROR);
        for rerun in ["true", "false"] {
            assert!(accepts(&[("tool_error_rerun", rerun)], &failed), "{aid}");
        }
    }
    assert_eq!(replay(&[], &one_step("HANG", "tool_ok", OK)).now, 30_000);
    let failed = one_step("AID.PEERPROOF.ANY.v1", "tool_error", ERROR);
    assert!(accepts(&[], &failed) && !accepts(&[("tool_error_rerun", "true")], &failed));
    let random = failed.replace("\"deterministic\":true", "\"deterministic\":false");
    assert!(accepts(&[("tool_error_rerun", "true")], &random));
}

#[test]
fn the_first_failure_ends_it() {
    let log = honest();
    let broken = log.replacen("\"output_json\":\"{}\"", "\"output_json\":\"[]\"", 1);
    let seen = replay(&[], &broken);
    assert_eq!((seen.status, seen.spawns.len()), (Some(1), 1));
}

#[test]
fn open_forms_are_as_chosen() {
    let first = EXAMPLE.lines().next().unwrap();
    let bare = one_step("AID.PEERPROOF.ANY.v1", "tool_error", ERROR);
    let patched = "{\"run_id\":\"0123456789abcdef0123456789abcdef\",\"event\":\"inputs_patched\",\"step\":0,\"payload\":{\"patch\":{}}}\n{\"run_id\":\"0123456789abcdef0123456789abcdef\",\"event\":\"tool_error\"";
    let other = EXAMPLE.replace("0123456789abcdef0123456789abcdef", "00000000000000000000000000000001");
    for (key, yes, no, log) in [
        ("log_bom", "accept", "fail", format!("\u{feff}{EXAMPLE}")),
        ("log_blank_line", "accept", "fail", EXAMPLE.replacen('\n', "\n \n", 2)),
        ("log_blank_line", "accept", "fail", format!("{EXAMPLE}\n")),
        ("log_last_line_without_lf", "accept", "fail", EXAMPLE.trim_end().to_owned()),
        (
            "other_spec_version",
            "accept",
            "fail",
            EXAMPLE.replace("{\"run_id\"", "{\"profile_id\":\"B\",\"run_id\""),
        ),
        (
            "other_spec_version",
            "accept",
            "fail",
            EXAMPLE.replace("{\"run_id\"", "{\"spec_version\":\"2\",\"run_id\""),
        ),
        ("run_id_other_form", "accept", "fail", EXAMPLE.replace("0123456789abcdef0123456789abcdef", "run 1")),
        (
            "patch_extra_members",
            "accept",
            "fail",
            EXAMPLE.replace("\"op\":\"add\"", "\"op\":\"add\",\"x\":1"),
        ),
        ("patch_on_other_state", "accept", "fail", EXAMPLE.replace("\"op\":\"add\"", "\"op\":\"replace\"")),
        (
            "digest_upper_case",
            "accept",
            "fail",
            EXAMPLE.replace(
                "41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902",
                "41C17A4799AAFDB5B340F2CF844B3C6BA5214D379238B585C9C739D4954B8902",
            ),
        ),
        (
            "patch_without_selection_patch",
            "accept",
            "fail",
            bare.replace(
                "{\"run_id\":\"0123456789abcdef0123456789abcdef\",\"event\":\"tool_error\"",
                patched,
            ),
        ),
        ("two_runs", "each", "fail", format!("{EXAMPLE}{other}")),
        ("size_bytes_wrong", "correct", "fail", EXAMPLE.replace("\"size_bytes\":7", "\"size_bytes\":8")),
        (
            "size_bytes_wrong",
            "correct",
            "as_written",
            EXAMPLE.replace("\"size_bytes\":7", "\"size_bytes\":8"),
        ),
        ("duplicate_keys", "last", "refuse", EXAMPLE.replace("{\"k\":1}", "{\"k\":0,\"k\":1}")),
        ("big_integers", "exact", "refuse", EXAMPLE.replace("{\"k\":1}", "{\"k\":1e400}")),
        ("lone_surrogates", "echo", "refuse", EXAMPLE.replace("{\"k\":1}", "{\"k\":\"\\ud800\"}")),
    ] {
        assert_ne!(log, EXAMPLE, "{key}");
        assert!(accepts(&[(key, yes)], &log), "{key}: {}", replay(&[(key, yes)], &log).stdout);
        assert!(!accepts(&[(key, no)], &log), "{key}");
    }
    let each = [("two_runs", "each")];
    assert!(
        !accepts(&each, &format!("{EXAMPLE}{EXAMPLE}")) && !accepts(&each, &format!("{EXAMPLE}{first}\n"))
    );
    assert!(!accepts(&each, &format!("{EXAMPLE}{}", other.replace("\"steps\":2", "\"steps\":3"))));
    for key in ["log_bom", "log_blank_line", "log_last_line_without_lf"] {
        assert!(accepts(&[(key, "accept")], EXAMPLE) && accepts(&[(key, "fail")], EXAMPLE));
    }
}

#[test]
fn other_events_are_passed_over_where_they_may_stand() {
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    let put = |at: usize, step: u64| {
        let other = format!(
            "{{\"run_id\":\"0123456789abcdef0123456789abcdef\",\"event\":\"menu_built\",\"step\":{step},\"payload\":{{}}}}"
        );
        let mut lines = lines.clone();
        lines.insert(at, &other);
        accepts(&[], &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    };
    for (at, step) in [(1, 0), (2, 0), (2, 1), (3, 0), (4, 1), (5, 1), (5, 2)] {
        assert!(put(at, step), "{at} {step}");
    }
    for (at, step) in [(0, 0), (6, 1), (1, 1), (2, 2), (5, 0), (5, 3)] {
        assert!(!put(at, step), "{at} {step}");
    }
}

#[test]
fn lines_of_10_mb_and_64_levels_are_read() {
    let deep = format!("{}1{}", "[".repeat(62), "]".repeat(62));
    assert!(accepts(&[], &EXAMPLE.replace("{\"k\":1}", &format!("{{\"k\":{deep}}}"))));
    for (levels, accepted) in [(128, true), (129, false)] {
        let deep = format!("{}1{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(accepts(&[], &EXAMPLE.replace("{\"k\":1}", &format!("{{\"k\":{deep}}}"))), accepted);
    }
    let head = EXAMPLE.lines().next().unwrap().len();
    for (more, accepted) in [(0, true), (1, false)] {
        let pad = "x".repeat(10 * 1024 * 1024 - head - ",\"n\":\"\"".len() + more);
        let log = EXAMPLE.replace("{\"k\":1}", &format!("{{\"k\":1,\"n\":\"{pad}\"}}"));
        assert_eq!(accepts(&[], &log), accepted);
    }
}

#[test]
fn memory_does_not_grow_with_the_steps() {
    let mut replayer = Replayer::new(config(&[]), Box::new(CorrectDecisions));
    let (mut actions, mut held) = (Vec::new(), 0);
    let mut tell = |text: &str| {
        replayer.handle(Event::Stdin(text.as_bytes()), 0, &mut actions);
        held = held.max(replayer.held_bytes());
        assert!(actions.is_empty(), "{actions:?}");
    };
    let id = "0123456789abcdef0123456789abcdef";
    tell(&format!("{}\n", EXAMPLE.lines().next().unwrap()));
    const STEPS: u64 = 100_000;
    for step in 0..STEPS {
        tell(&format!(
            "{{\"run_id\":\"{id}\",\"event\":\"selector_chosen\",\"step\":{step},\"payload\":{{\"kind\":\"PICK\",\"sid\":\"SID0001\",\"aid\":\"A\",\"raw\":\"\",\"input_patch_json\":\"{{\\\"k\\\":{step}}}\"}}}}\n\
             {{\"run_id\":\"{id}\",\"event\":\"inputs_patched\",\"step\":{step},\"payload\":{{\"patch\":{{\"k\":{step}}}}}}}\n\
             {{\"run_id\":\"{id}\",\"event\":\"tool_ok\",\"step\":{step},\"payload\":{{\"aid\":\"A\",\"deterministic\":false,\"output_json\":\"{{}}\",\"tx_patch\":[],\"state_digest\":\"{EMPTY}\"}}}}\n"
        ));
    }
    tell(&format!(
        "{{\"run_id\":\"{id}\",\"event\":\"run_finished\",\"step\":{STEPS},\"payload\":{{\"reason\":\"r\",\"steps\":{STEPS},\"state_digest\":\"{EMPTY}\"}}}}\n"
    ));
    assert!(held < 1024, "{held}");
    replayer.handle(Event::StdinEof, 0, &mut actions);
    assert_eq!(actions.last(), Some(&Action::Exit(0)));
}

#[test]
fn asked_to_end_it_leaves_nothing() {
    let mut replayer = Replayer::new(config(&[]), Box::new(CorrectDecisions));
    let mut actions = Vec::new();
    replayer.handle(Event::Stdin(one_step("HANG", "tool_ok", OK).as_bytes()), 0, &mut actions);
    assert!(!replayer.wants_stdin());
    replayer.handle(Event::Terminate, 0, &mut actions);
    assert_eq!(actions[actions.len() - 2..], [Action::Kill, Action::Exit(143)]);
}

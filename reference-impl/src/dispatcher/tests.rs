//! The dispatcher in virtual time, at shrunk limits.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Config, Dispatcher, FailureExit, LivesOn, PrintedAs, RequestShape, UnrunnablePath};
use crate::json::{BigNumbers, DuplicateKeys, LoneSurrogates};
use crate::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};

const CALL: &str = r#"{"aid":"AID.T.v1","inputs":{"k":"v"}}"#;
const REPLY: &str =
    r#"{"ok":true,"status":"OK","output_json":"{\"n\":1}","error":"","ds_state":{"slots":{}}}"#;

/// A dispatcher and all actions it has asked for.
struct Driven {
    machine: Dispatcher,
    now: Millis,
    actions: Vec<Action>,
}

impl Driven {
    fn new(config: Config) -> Self {
        Self { machine: Dispatcher::new(config), now: 0, actions: Vec::new() }
    }

    /// A dispatcher that has just started its toolhost.
    fn started(config: Config) -> Self {
        let mut driven = Self::new(config);
        driven.call(CALL.as_bytes());
        assert!(
            matches!(driven.actions[..], [Action::WakeAt(_), Action::Spawn { .. }]),
            "{:?}",
            driven.actions
        );
        driven
    }

    fn tell(&mut self, event: Event<'_>) {
        self.machine.handle(event, self.now, &mut self.actions);
    }

    fn call(&mut self, call: &[u8]) {
        self.tell(Event::Stdin(call));
        self.tell(Event::StdinEof);
    }

    /// Printed answer, if any. Asserts that the answer ends the call in good order.
    fn answer(&self) -> Option<Value> {
        let [before @ .., Action::Stdout(line), Action::Exit(0)] = &self.actions[..] else {
            assert!(!self.actions.iter().any(|a| matches!(a, Action::Stdout(_) | Action::Exit(_))));
            return None;
        };
        assert!(!before.iter().any(|action| matches!(action, Action::Stdout(_) | Action::Exit(_))));
        let spawned = before.iter().any(|action| matches!(action, Action::Spawn { .. }));
        assert_eq!(spawned, before.last() == Some(&Action::Kill), "nothing may outlive the call");
        assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
        Some(serde_json::from_slice(line).unwrap())
    }

    fn error(&self, kind: &str) -> String {
        let answer = self.answer().expect("an answer");
        let members = answer.as_object().unwrap();
        assert_eq!(members.len(), 4, "{answer}");
        assert_eq!((&answer["error"], &answer["type"]), (&json!(true), &json!(kind)), "{answer}");
        assert!(answer["aid"].is_string());
        let detail = answer["detail"].as_str().unwrap();
        assert!(!detail.is_empty());
        detail.to_owned()
    }

    fn spawned(&self) -> (Vec<String>, Vec<u8>) {
        let found = self.actions.iter().find_map(|action| match action {
            Action::Spawn { argv, stdin } => Some((argv.clone(), stdin.clone())),
            _ => None,
        });
        found.expect("a toolhost was started")
    }
}

fn config() -> Config {
    let mut config = Config::new("/peer");
    config.limits.stdin_bytes_max = 64;
    config.limits.toolhost_stdout_bytes_max = 128;
    config.limits.toolhost_timeout_ms = 1000;
    config.limits.toolhost_pipe_grace_ms = 100;
    config.limits.nesting_max = 8;
    config
}

/// Dispatcher after a call that it refuses before it starts a toolhost.
fn refused(call: &[u8]) -> Driven {
    let mut driven = Driven::new(config());
    driven.call(call);
    driven
}

/// Dispatcher after a toolhost that wrote `reply` and exited with status 0.
fn replied(config: Config, reply: &[u8]) -> Driven {
    let mut driven = Driven::started(config);
    driven.tell(Event::ChildStdout(reply));
    driven.tell(Event::ChildStdoutEof);
    driven.tell(Event::ChildExit(ChildExit::Code(0)));
    driven
}

#[test]
fn sends_one_request_in_either_shape() {
    let mut driven = Driven::started(config());
    let (argv, request) = driven.spawned();
    assert_eq!(argv, ["/peer", "--run", "default", "AID.T.v1"]);
    assert_eq!(request, b"{\"aid\":\"AID.T.v1\",\"input_json\":\"{\\\"k\\\":\\\"v\\\"}\"}\n");

    driven = Driven::started(Config { request_shape: RequestShape::Inputs, ..config() });
    assert_eq!(driven.spawned().1, b"{\"aid\":\"AID.T.v1\",\"inputs\":{\"k\":\"v\"}}\n");
}

#[test]
fn request_keeps_the_spelling_and_drops_white_space() {
    let mut driven = Driven::new(Config { request_shape: RequestShape::Inputs, ..config() });
    driven.call(b" { \"inputs\" : { \"a b\" : [ 1.0 , 1e5 ] } ,\n\"aid\":\"\\u0041\" } ");
    assert_eq!(driven.spawned().1, b"{\"aid\":\"\\u0041\",\"inputs\":{\"a b\":[1.0,1e5]}}\n");
    assert_eq!(driven.spawned().0[3], "A");
}

#[test]
fn call_without_inputs_has_none() {
    let mut driven = Driven::new(config());
    driven.call(br#"{"aid":"A","more":[1]}"#);
    assert_eq!(driven.spawned().1, b"{\"aid\":\"A\",\"input_json\":\"{}\"}\n");
}

#[test]
fn refuses_malformed_calls_with_the_aid_they_have() {
    for (call, aid) in [
        (&b""[..], ""),
        (b"{", ""),
        (b"[]", ""),
        (b"{\"aid\":\"A\"} x", ""),
        (b"{\"aid\":\"\xff\"}", ""),
        (b"{}", ""),
        (b"{\"aid\":1}", ""),
        (b"{\"aid\":\"\"}", ""),
        (b"{\"aid\":\"A\",\"inputs\":null}", "A"),
        (b"{\"aid\":\"A\",\"inputs\":[]}", "A"),
        (b"{\"aid\":\"A\",\"inputs\":\"{}\"}", "A"),
        (b"{\"aid\":\"A\",\"inputs\":[[[[[[[[[]]]]]]]]]}", ""),
    ] {
        let driven = refused(call);
        assert_ne!(driven.error("exception"), "");
        assert_eq!(driven.answer().unwrap()["aid"], json!(aid), "{call:?}");
    }
}

#[test]
fn aid_that_no_argument_can_hold_is_an_exception() {
    let driven = refused(br#"{"aid":"\ud800"}"#);
    let [Action::Stdout(line), Action::Exit(0)] = &driven.actions[..] else { panic!("{:?}", driven.actions) };
    let line = String::from_utf8(line.clone()).unwrap();
    assert!(line.starts_with(r#"{"error":true,"aid":"\ud800","type":"exception","detail":""#), "{line}");
}

#[test]
fn call_ends_at_its_limit() {
    let padded = |len: usize| format!("{CALL}{}", " ".repeat(len - CALL.len())).into_bytes();
    assert!(refused(&padded(63)).answer().is_none());
    assert!(refused(&padded(64)).answer().is_none());
    refused(&padded(65)).error("exception");
    let mut driven = Driven::new(config());
    for byte in padded(64) {
        driven.tell(Event::Stdin(&[byte]));
    }
    assert!(driven.actions.is_empty());
    driven.tell(Event::Stdin(b" "));
    driven.error("exception");
    assert_eq!(driven.machine.held_bytes(), 0);
    assert!(!driven.machine.wants_stdin());
}

#[test]
fn success_prints_the_output() {
    assert_eq!(replied(config(), REPLY.as_bytes()).answer(), Some(json!({"n": 1})));
}

#[test]
fn output_may_be_any_value_in_any_presentation() {
    for (output_json, printed) in [
        (r#""1e400""#, "1e400\n"),
        (r#""\"\\ud800\"""#, "\"\\ud800\"\n"),
        (r#"" [ 9007199254740993 ,\n null ] ""#, "[9007199254740993,null]\n"),
        (r#""\u0022\u00e9\u0022""#, "\"é\"\n"),
        (r#""[[[[[[[[]]]]]]]]""#, "[[[[[[[[]]]]]]]]\n"),
    ] {
        let reply =
            format!("\n {{\"\\u006fk\": true, \"status\":\"\\u004fK\",\"output_json\":{output_json}}}\r\n");
        let driven = replied(config(), reply.as_bytes());
        let [.., Action::Stdout(line), Action::Exit(0)] = &driven.actions[..] else {
            panic!("{:?}", driven.actions);
        };
        assert_eq!(std::str::from_utf8(line), Ok(printed), "{output_json}");
    }
}

#[test]
fn what_is_no_reply_is_a_parse_error() {
    for reply in [
        &b""[..],
        b" \n",
        b"hello",
        b"\xef\xbb\xbf{}",
        b"[]",
        b"null",
        b"\"{}\"",
        b"{}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\"",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\"}{}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\"}\0",
        b"banner\n{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"x\":NaN}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"x\":\"\xc3\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"x\":[[[[[[[[0]]]]]]]]}",
        b"{\"ok\":\"true\",\"status\":\"OK\",\"output_json\":\"{}\"}",
        b"{\"ok\":1,\"status\":\"OK\",\"output_json\":\"{}\"}",
        b"{\"ok\":null,\"status\":\"OK\",\"output_json\":\"{}\"}",
        b"{\"status\":\"OK\",\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"status\":\"TOOL_ERROR\",\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"status\":\"ok\",\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"status\":true,\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"output_json\":\"{}\"}",
        b"{\"ok\":true,\"status\":\"OK\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":null}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":{}}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{} {}\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{'a':1}\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"\\ud800\"}",
        b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"[[[[[[[[[0]]]]]]]]]\"}",
    ] {
        let driven = replied(config(), reply);
        let detail = driven.error("parse_error");
        assert!(detail.starts_with("malformed reply: "), "{detail}");
        assert_eq!(driven.answer().unwrap()["aid"], json!("AID.T.v1"));
    }
}

#[test]
fn failed_tool_is_an_exception_with_its_error() {
    let driven = replied(config(), br#"{"ok":false,"status":"TOOL_ERROR","error":"no \"such\" thing"}"#);
    assert!(driven.error("exception").contains("no \"such\" thing"));
    for reply in [
        r#"{"ok":false}"#,
        r#"{"ok":false,"error":""}"#,
        r#"{"ok":false,"error":7}"#,
        r#"{"ok":false,"status":"OK","output_json":"{}","error":""}"#,
    ] {
        replied(config(), reply.as_bytes()).error("exception");
    }
    assert!(replied(config(), br#"{"ok":false,"error":"\ud800!"}"#).error("exception").contains("\u{FFFD}!"));
}

#[test]
fn status_and_signal_are_a_crash_whatever_was_written() {
    for (reply, exit) in [
        (REPLY, ChildExit::Code(1)),
        ("", ChildExit::Code(255)),
        (REPLY, ChildExit::Signal(9)),
        (r#"{"ok":false,"error":"e"}"#, ChildExit::Code(2)),
    ] {
        let mut driven = Driven::started(config());
        driven.tell(Event::ChildStdout(reply.as_bytes()));
        driven.tell(Event::ChildStdoutEof);
        driven.tell(Event::ChildExit(exit));
        let (ChildExit::Code(number) | ChildExit::Signal(number)) = exit;
        assert!(driven.error("crash").contains(&number.to_string()));
    }
}

#[test]
fn failed_start_is_sorted() {
    let mut driven = Driven::started(config());
    driven.tell(Event::ChildSpawnFailed(SpawnFailure::NotFound("/peer: no such file".to_owned())));
    assert!(driven.error("not_found").contains("/peer"));
    driven = Driven::started(config());
    driven.tell(Event::ChildSpawnFailed(SpawnFailure::Other("/peer: permission denied".to_owned())));
    assert!(driven.error("exception").contains("permission"));
}

#[test]
fn program_that_may_not_be_run_is_sorted_by_choice() {
    for (unrunnable_path, kind) in
        [(UnrunnablePath::NotFound, "not_found"), (UnrunnablePath::Exception, "exception")]
    {
        let mut driven = Driven::started(Config { unrunnable_path, ..config() });
        driven.tell(Event::ChildSpawnFailed(SpawnFailure::NotRunnable("/peer: a directory".to_owned())));
        assert!(driven.error(kind).contains("directory"));
        let mut driven = Driven::started(Config { unrunnable_path, ..config() });
        driven.tell(Event::ChildSpawnFailed(SpawnFailure::Other("no memory".to_owned())));
        driven.error("exception");
    }
}

#[test]
fn success_is_printed_as_a_string_by_choice() {
    let text = |reply: &[u8]| replied(Config { printed_as: PrintedAs::Text, ..config() }, reply);
    assert_eq!(text(REPLY.as_bytes()).answer(), Some(json!("{\"n\":1}")));
    let string = br#"{"ok":true,"status":"OK","output_json":" \"a\" "}"#;
    assert_eq!(text(string).answer(), Some(json!("\"a\"")));
    text(b"[]").error("parse_error");
}

#[test]
fn only_a_failure_has_another_exit_status_by_choice() {
    let nonzero = || Config { failure_exit: FailureExit::Nonzero, ..config() };
    assert_eq!(replied(nonzero(), REPLY.as_bytes()).actions.last(), Some(&Action::Exit(0)));
    assert_eq!(replied(nonzero(), b"").actions.last(), Some(&Action::Exit(1)));
    let mut malformed = Driven::new(nonzero());
    malformed.call(b"[]");
    assert_eq!(malformed.actions.last(), Some(&Action::Exit(1)));
}

#[test]
fn refusal_starts_nothing() {
    let mut driven = Driven::new(Config { refusal: Some("no such time".to_owned()), ..config() });
    driven.call(CALL.as_bytes());
    assert_eq!(driven.error("exception"), "no such time");
    assert_eq!(driven.answer().unwrap()["aid"], "AID.T.v1");
}

#[test]
fn reply_without_an_end_is_the_result_by_choice() {
    let after = |reply: &[u8]| {
        let mut driven = Driven::started(Config { lives_on: LivesOn::Result, ..config() });
        driven.tell(Event::ChildStdout(reply));
        driven.now = 999;
        driven.tell(Event::Wake);
        assert_eq!(driven.answer(), None, "its exit status may still make it a crash");
        driven.now = 1000;
        driven.tell(Event::Wake);
        driven
    };
    assert_eq!(after(REPLY.as_bytes()).answer(), Some(json!({"n": 1})));
    after(br#"{"ok":false,"error":"broken"}"#).error("exception");
    after(&REPLY.as_bytes()[..20]).error("timeout");
    after(b"").error("timeout");
}

#[test]
fn stdout_ends_at_its_limit() {
    let padded = |len: usize| format!("{REPLY}{}", " ".repeat(len - REPLY.len())).into_bytes();
    for len in [127, 128] {
        assert_eq!(replied(config(), &padded(len)).answer(), Some(json!({"n": 1})), "{len} bytes");
    }
    let mut driven = Driven::started(config());
    for byte in padded(128) {
        driven.tell(Event::ChildStdout(&[byte]));
    }
    assert_eq!(driven.answer(), None);
    driven.tell(Event::ChildStdout(b"\n"));
    driven.error("parse_error");
    assert_eq!(driven.machine.held_bytes(), 0);
    // Later events change nothing.
    let count = driven.actions.len();
    driven.tell(Event::ChildStdout(&[b'x'; 1000]));
    driven.tell(Event::ChildExit(ChildExit::Signal(9)));
    driven.tell(Event::Wake);
    driven.tell(Event::Terminate);
    assert_eq!((driven.actions.len(), driven.machine.held_bytes()), (count, 0));
}

#[test]
fn time_is_up_at_the_limit_and_not_before() {
    let mut driven = Driven::new(config());
    driven.now = 7;
    driven.call(CALL.as_bytes());
    assert!(driven.actions.contains(&Action::WakeAt(1007)));
    driven.tell(Event::ChildStdout(&REPLY.as_bytes()[..9]));
    driven.now = 1006;
    driven.tell(Event::Wake);
    assert_eq!(driven.answer(), None);
    assert_eq!(driven.actions.last(), Some(&Action::WakeAt(1007)));
    driven.now = 1007;
    driven.tell(Event::Wake);
    driven.error("timeout");
}

#[test]
fn good_reply_without_an_end_is_a_timeout() {
    let mut driven = Driven::started(config());
    driven.tell(Event::ChildStdout(REPLY.as_bytes()));
    driven.tell(Event::ChildStdoutEof);
    assert_eq!(driven.answer(), None);
    driven.now = 1000;
    driven.tell(Event::Wake);
    driven.error("timeout");
}

#[test]
fn held_pipe_delays_the_answer_by_the_grace_at_most() {
    let mut driven = Driven::started(config());
    driven.tell(Event::ChildStdout(REPLY.as_bytes()));
    driven.now = 50;
    driven.tell(Event::ChildExit(ChildExit::Code(0)));
    assert_eq!(driven.actions.last(), Some(&Action::WakeAt(150)));
    driven.now = 149;
    driven.tell(Event::Wake);
    assert_eq!(driven.answer(), None);
    driven.now = 150;
    driven.tell(Event::Wake);
    assert_eq!(driven.answer(), Some(json!({"n": 1})));
}

#[test]
fn output_after_the_exit_is_taken_until_the_pipe_closes() {
    let mut driven = Driven::started(config());
    driven.tell(Event::ChildExit(ChildExit::Code(0)));
    driven.tell(Event::ChildStdout(REPLY.as_bytes()));
    assert_eq!(driven.answer(), None);
    driven.tell(Event::ChildStdoutEof);
    assert_eq!(driven.answer(), Some(json!({"n": 1})));
}

#[test]
fn exit_just_before_the_limit_is_judged_at_the_limit() {
    let mut driven = Driven::started(config());
    driven.tell(Event::ChildStdout(REPLY.as_bytes()));
    driven.now = 990;
    driven.tell(Event::ChildExit(ChildExit::Code(0)));
    driven.now = 1000;
    driven.tell(Event::Wake);
    assert_eq!(driven.answer(), Some(json!({"n": 1})));
}

#[test]
fn termination_kills_and_answers_nothing() {
    let mut driven = Driven::started(config());
    driven.actions.clear();
    driven.tell(Event::Terminate);
    assert_eq!(driven.actions, [Action::Kill, Action::Exit(143)]);
    let mut idle = Driven::new(config());
    idle.tell(Event::Terminate);
    assert_eq!(idle.actions, [Action::Exit(143)]);
}

#[test]
fn policy_settles_what_is_open() {
    let twice = br#"{"ok":false,"ok":true,"status":"OK","output_json":"{\"a\":1,\"a\":2}"}"#;
    assert_eq!(replied(config(), twice).answer(), Some(json!({"a": 2})));
    let mut other = config();
    other.policy.duplicate_keys = DuplicateKeys::First;
    replied(other.clone(), twice).error("exception");
    other.policy.duplicate_keys = DuplicateKeys::Refuse;
    replied(other, twice).error("parse_error");

    let lone = br#"{"ok":true,"status":"OK","output_json":"\"\\ud800\""}"#;
    let mut other = config();
    other.policy.lone_surrogates = LoneSurrogates::Replace;
    assert_eq!(replied(other.clone(), lone).answer(), Some(json!("\u{FFFD}")));
    other.policy.lone_surrogates = LoneSurrogates::Refuse;
    replied(other, lone).error("parse_error");

    let big = br#"{"ok":true,"status":"OK","output_json":"[9007199254740993]"}"#;
    let mut other = config();
    other.policy.big_numbers = BigNumbers::Round;
    assert_eq!(replied(other.clone(), big).answer().unwrap()[0].as_f64(), Some(9_007_199_254_740_992.0));
    other.policy.big_numbers = BigNumbers::Refuse;
    replied(other, big).error("parse_error");

    let mut driven = Driven::new(config());
    driven.call(br#"{"aid":"A","aid":"B","inputs":{"k":1,"k":2}}"#);
    assert_eq!(driven.spawned().1, b"{\"aid\":\"B\",\"input_json\":\"{\\\"k\\\":2}\"}\n");
}

proptest! {
    /// Any order of events leads to at most one answer. It is strict JSON and within the limits.
    #[test]
    fn answers_once_whatever_happens(
        events in proptest::collection::vec((0u8..9, proptest::collection::vec(any::<u8>(), 1..60), 0u64..400), 0..20)
    ) {
        let mut driven = Driven::new(config());
        for (kind, bytes, later) in &events {
            driven.now += later;
            driven.tell(match kind {
                0 => Event::Stdin(bytes),
                1 => Event::Stdin(CALL.as_bytes()),
                2 => Event::StdinEof,
                3 => Event::ChildStdout(bytes),
                4 => Event::ChildStdout(REPLY.as_bytes()),
                5 => Event::ChildStdoutEof,
                6 => Event::ChildExit(ChildExit::Code(i32::from(bytes[0] % 2))),
                7 => Event::ChildSpawnFailed(SpawnFailure::Other("x".to_owned())),
                _ => Event::Wake,
            });
            prop_assert!(driven.machine.held_bytes() <= 128);
            let _ = driven.answer();
        }
        let exits = driven.actions.iter().filter(|action| matches!(action, Action::Exit(_))).count();
        prop_assert!(exits <= 1);
        prop_assert_eq!(exits == 1, matches!(driven.actions.last(), Some(Action::Exit(0))));
    }

    /// The chunks in which a reply arrives do not matter.
    #[test]
    fn chunking_changes_nothing(cuts in proptest::collection::vec(0usize..REPLY.len(), 0..6)) {
        let mut driven = Driven::started(config());
        let mut cuts = cuts;
        cuts.extend([0, REPLY.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            driven.tell(Event::ChildStdout(&REPLY.as_bytes()[pair[0]..pair[1]]));
        }
        driven.tell(Event::ChildStdoutEof);
        driven.tell(Event::ChildExit(ChildExit::Code(0)));
        prop_assert_eq!(driven.answer(), Some(json!({"n": 1})));
    }
}

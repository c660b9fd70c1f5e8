//! Tests of the selector as a machine: bytes, child events and the time in, actions out.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::guard::{FileKind, Files};
use super::settings::Settings;
use super::{Parts, Selector, SelectorChoices, SelectorConfig};
use crate::limits::Limits;
use crate::machine::{Action, ChildExit, DriveOrder, Event, Machine, Millis, SpawnFailure};

const PICK: &[u8] = b"<PICK><SID0002><END>\n";

/// A file system in which every path is an executable.
#[derive(Debug)]
struct Programs;

impl Files for Programs {
    fn kind(&self, path: &str) -> FileKind {
        if path.ends_with("/gone") { FileKind::Missing } else { FileKind::Program(Some(*b"\x7fELF")) }
    }

    fn canonical(&self, path: &str) -> Option<String> {
        Some(path.to_owned())
    }
}

struct Bench {
    selector: Selector,
    now: Millis,
    orders: Vec<DriveOrder>,
    lines: Vec<Value>,
    kills: usize,
    exit: Option<i32>,
}

impl Bench {
    fn with(variables: &[(&str, &str)], choices: &[(&str, &str)], shrink: impl FnOnce(&mut Limits)) -> Self {
        let own = [("MACHINA_POLICY_CMD", "driver -x"), ("MACHINA_POLICY_ALLOWED_EXE", "driver,gone")];
        let variable = |name: &str| {
            let value = |known: &&(&str, &str)| known.0 == name;
            variables.iter().find(value).or(own.iter().find(value)).map(|(_, value)| (*value).to_owned())
        };
        let (mut limits, mut chosen) = (Limits::default(), SelectorChoices::default());
        shrink(&mut limits);
        for (key, value) in choices {
            chosen.set(key, value).unwrap();
        }
        let settings = Settings::read(&variable, &limits, &chosen).unwrap();
        let config = SelectorConfig { settings, choices: chosen, limits, patches: true, merged_inputs: true };
        let parts = Parts::new(&config, Box::new(Programs));
        let selector = Selector::new(config, parts);
        Self { selector, now: 0, orders: Vec::new(), lines: Vec::new(), kills: 0, exit: None }
    }

    fn new(variables: &[(&str, &str)]) -> Self {
        Self::with(variables, &[], |_| {})
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.selector.handle(event, self.now, &mut actions);
        for action in actions {
            assert_eq!(self.exit, None, "nothing comes after the end");
            match action {
                Action::Stdout(bytes) => {
                    assert_eq!(bytes.last(), Some(&b'\n'));
                    self.lines.push(serde_json::from_slice(&bytes).unwrap());
                }
                Action::Drive(order) => self.orders.push(*order),
                Action::Kill => self.kills += 1,
                Action::Exit(status) => self.exit = Some(status),
                Action::WakeAt(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.tell(Event::Stdin(line.as_bytes()));
        self.tell(Event::Stdin(b"\n"));
    }

    /// Sends a request whose fallback is SID0001.
    fn ask(&mut self) {
        self.line(&request("POLICY_ONLY", "{\"a\":1,\"b\":{\"c\":2}}"));
    }

    fn write_and_exit(&mut self, stdout: &[u8], exit: ChildExit) {
        self.tell(Event::ChildStdout(stdout));
        self.tell(Event::ChildStdoutEof);
        self.tell(Event::ChildExit(exit));
    }

    fn last(&self) -> &Value {
        self.lines.last().unwrap()
    }

    fn is_driving(&self) -> bool {
        !self.selector.wants_stdin()
    }

    fn assert_fallback(&self) {
        let last = self.last();
        assert_eq!((last["kind"].as_str(), last["sid"].as_str()), (Some("PICK"), Some("SID0001")), "{last}");
        assert!(
            last.get("input_patch_json").is_none() && !last["raw"].as_str().unwrap().is_empty(),
            "{last}"
        );
    }

    /// Sends a request, and fails the driver if one is started.
    fn fail(&mut self) {
        self.ask();
        if self.is_driving() {
            self.write_and_exit(b"", ChildExit::Code(1));
        }
        self.assert_fallback();
    }
}

fn request(mode: &str, inputs: &str) -> String {
    format!(
        r#"{{"control_mode":"{mode}","goal_digest":"g","state_digest":"s","inputs":{inputs},"menu":[{{"sid":"SID0001"}},{{"sid":"SID0002"}}]}}"#
    )
}

#[test]
fn a_block_becomes_a_selection() {
    for (block, kind, sid, patch, inputs) in [
        ("<PICK><SID0002><END>", "PICK", Some("SID0002"), None, Some(json!({"a": 1, "b": {"c": 2}}))),
        (
            " <PICK><SID0002><INP>{\"b\":null,\n\"d\":[]}</INP><END>\n",
            "PICK",
            Some("SID0002"),
            Some(json!({"b": null, "d": []})),
            Some(json!({"a": 1, "b": null, "d": []})),
        ),
        (
            "<PICK><SID0001><INP64>eyJhIjp7fX0=</INP64><END>",
            "PICK",
            Some("SID0001"),
            Some(json!({"a": {}})),
            Some(json!({"a": {}, "b": {"c": 2}})),
        ),
        ("<ASK_SUP><END>", "ASK_SUP", None, None, None),
        ("<NOOP><END>\r\n", "NOOP", None, None, None),
    ] {
        let mut bench = Bench::new(&[]);
        bench.ask();
        assert!(bench.is_driving() && bench.lines.is_empty());
        bench.write_and_exit(block.as_bytes(), ChildExit::Code(0));
        let last = bench.last();
        assert_eq!((last["kind"].as_str(), last["sid"].as_str()), (Some(kind), sid), "{last}");
        let sent =
            last.get("input_patch_json").map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap());
        assert_eq!((sent, last.get("inputs").cloned()), (patch, inputs), "{last}");
        assert!(last["raw"].as_str().unwrap().contains(block.trim()), "{last}");
        assert_eq!(bench.kills, 1);
    }
}

#[test]
fn the_driver_gets_the_payload_and_the_limits() {
    let mut bench = Bench::new(&[("MACHINA_POLICY_RLIMIT_NOFILE", "9")]);
    bench.ask();
    let order = &bench.orders[0];
    assert_eq!(order.argv, ["driver", "-x"]);
    assert!(order.program.ends_with("/driver"));
    assert_eq!((order.resources.open_files, order.resources.cpu_s), (9, 2));
    let payload: Value = serde_json::from_slice(&order.payload).unwrap();
    let expected: Value = serde_json::from_str(&request("POLICY_ONLY", "{\"a\":1,\"b\":{\"c\":2}}")).unwrap();
    assert_eq!(payload, expected);
}

#[test]
fn every_failure_is_a_counted_fallback() {
    type Behaviour = fn(&mut Bench);
    let behaviours: [(&str, Behaviour); 12] = [
        ("launch", |bench| bench.tell(Event::ChildSpawnFailed(SpawnFailure::Other("x".to_owned())))),
        ("status", |bench| bench.write_and_exit(PICK, ChildExit::Code(3))),
        ("signal", |bench| bench.write_and_exit(PICK, ChildExit::Signal(9))),
        ("empty", |bench| bench.write_and_exit(b" \n", ChildExit::Code(0))),
        ("no block", |bench| bench.write_and_exit(b"SID0002", ChildExit::Code(0))),
        ("two blocks", |bench| bench.write_and_exit(&[PICK, PICK].concat(), ChildExit::Code(0))),
        ("unknown", |bench| bench.write_and_exit(b"<PICK><SID0003><END>", ChildExit::Code(0))),
        ("not text", |bench| bench.write_and_exit(b"\xff<NOOP><END>", ChildExit::Code(0))),
        ("too long", |bench| bench.tell(Event::ChildStdout(&[b' '; 101]))),
        ("hangs", |bench| {
            bench.tell(Event::ChildStdout(PICK));
            bench.now += 50;
            bench.tell(Event::Wake);
        }),
        ("dribbles", |bench| {
            for byte in PICK {
                bench.now += 5;
                bench.tell(Event::ChildStdout(&[*byte]));
                bench.tell(Event::Wake);
            }
        }),
        ("closes", |bench| {
            bench.tell(Event::ChildStdout(PICK));
            bench.tell(Event::ChildStdoutEof);
            assert!(bench.is_driving());
            bench.now += 50;
            bench.tell(Event::Wake);
        }),
    ];
    for (name, behave) in behaviours {
        let variables = [
            ("MACHINA_POLICY_FAIL_THRESHOLD", "1"),
            ("MACHINA_POLICY_COOLDOWN_MS", "1000"),
            ("MACHINA_POLICY_TIMEOUT_MS", "50"),
            ("MACHINA_POLICY_STDOUT_MAX", "100"),
        ];
        let mut bench = Bench::new(&variables);
        bench.ask();
        behave(&mut bench);
        assert_eq!(bench.lines.len(), 1, "{name}");
        bench.assert_fallback();
        assert_eq!(bench.kills, 1, "{name}");
        bench.ask();
        bench.assert_fallback();
        assert_eq!((bench.orders.len(), bench.lines.len()), (1, 2), "{name}: the breaker is open");
    }
}

#[test]
fn a_program_that_is_not_there_is_a_counted_failure_and_a_refused_one_is_not() {
    let variables =
        [("MACHINA_POLICY_CMD", "gone"), ("MACHINA_POLICY_FAIL_THRESHOLD", "2"), ("PATH", "/bin")];
    let mut bench = Bench::new(&variables);
    for _ in 0..3 {
        bench.ask();
        bench.assert_fallback();
    }
    assert!(bench.last()["raw"].as_str().unwrap().contains("left alone"));
    for command in ["other", "'cut"] {
        let mut bench =
            Bench::new(&[("MACHINA_POLICY_CMD", command), ("MACHINA_POLICY_FAIL_THRESHOLD", "1")]);
        for _ in 0..3 {
            bench.ask();
            assert_eq!(bench.last()["kind"], "INVALID");
        }
        assert!(bench.orders.is_empty());
    }
}

#[test]
fn limits_on_output_are_inclusive() {
    let block = [vec![b' '; 100 - PICK.len()], PICK.to_vec()].concat();
    let mut bench = Bench::new(&[("MACHINA_POLICY_STDOUT_MAX", "100")]);
    bench.ask();
    bench.write_and_exit(&block, ChildExit::Code(0));
    assert_eq!(bench.last()["sid"], "SID0002");
}

#[test]
fn modes_decide_whether_a_driver_runs() {
    let mut bench = Bench::new(&[]);
    for mode in ["FALLBACK_ONLY", "policy_only", ""] {
        bench.line(&request(mode, "{}"));
        bench.assert_fallback();
    }
    bench.line("{}");
    assert_eq!(bench.last()["kind"], "NOOP");
    let mut bench = Bench::with(&[], &[("other_modes", "invalid")], |_| {});
    bench.line(&request("X", "{}"));
    assert_eq!(bench.last()["kind"], "INVALID");
    bench.line(&request("FALLBACK_ONLY", "{}"));
    bench.assert_fallback();
    for command in ["", "  "] {
        let mut bench = Bench::new(&[("MACHINA_POLICY_CMD", command)]);
        bench.ask();
        bench.assert_fallback();
        assert!(bench.orders.is_empty());
    }
}

#[test]
fn malformed_lines_are_invalid_and_harmless() {
    let mut bench = Bench::with(&[], &[], |limits| limits.stdin_bytes_max = 200);
    let long = "x".repeat(201);
    for bad in ["{", "[]", "null", r#"{"menu":7}"#, &long] {
        bench.line(bad);
        assert_eq!(bench.last()["kind"], "INVALID", "{bad}");
    }
    bench.line("");
    bench.line(" \t");
    assert_eq!(bench.lines.len(), 5);
    bench.ask();
    bench.write_and_exit(PICK, ChildExit::Code(0));
    assert_eq!(bench.last()["sid"], "SID0002");
    let mut bench = Bench::with(&[], &[("blank_line", "refuse")], |_| {});
    bench.line("");
    assert_eq!(bench.last()["kind"], "INVALID");
}

#[test]
fn lines_that_come_while_a_driver_runs_wait() {
    let mut bench = Bench::new(&[]);
    let line = request("POLICY_ONLY", "{}") + "\n";
    bench.tell(Event::Stdin([line.as_str(), "{\n", &line].concat().as_bytes()));
    assert_eq!((bench.orders.len(), bench.lines.len()), (1, 0));
    bench.tell(Event::StdinEof);
    bench.write_and_exit(PICK, ChildExit::Code(0));
    assert_eq!((bench.orders.len(), bench.lines.len(), bench.exit), (2, 2, None));
    bench.write_and_exit(b"", ChildExit::Code(0));
    assert_eq!((bench.lines.len(), bench.exit), (3, Some(0)));
}

#[test]
fn the_last_line_without_an_end_is_a_choice() {
    let whole = request("FALLBACK_ONLY", "{}");
    for (value, line, kinds) in [
        ("process", whole.as_str(), &["PICK"][..]),
        ("process", "{", &["INVALID"]),
        ("refuse", &whole, &["INVALID"]),
        ("silent", &whole, &["PICK"]),
        ("silent", "{", &[]),
    ] {
        let mut bench = Bench::with(&[], &[("last_line_without_lf", value)], |_| {});
        bench.tell(Event::Stdin(line.as_bytes()));
        bench.tell(Event::StdinEof);
        let got: Vec<_> = bench.lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!((got.as_slice(), bench.exit), (kinds, Some(0)), "{value}");
    }
}

#[test]
fn a_pipe_held_by_a_child_is_a_choice() {
    for (value, sid) in [("pick", "SID0002"), ("failure", "SID0001")] {
        let mut bench = Bench::with(&[], &[("pipe_held_by_child", value)], |_| {});
        bench.ask();
        bench.tell(Event::ChildStdout(PICK));
        bench.tell(Event::ChildExit(ChildExit::Code(0)));
        assert!(bench.is_driving());
        bench.now += 250;
        bench.tell(Event::Wake);
        assert_eq!((bench.last()["sid"].as_str(), bench.kills), (Some(sid), 1), "{value}");
    }
}

#[test]
fn termination_kills_the_driver() {
    let mut bench = Bench::new(&[]);
    bench.ask();
    bench.tell(Event::Terminate);
    assert_eq!((bench.kills, bench.exit, bench.lines.len()), (1, Some(143), 0));
    bench.tell(Event::ChildStdout(PICK));
    bench.tell(Event::ChildExit(ChildExit::Code(0)));
    assert!(bench.lines.is_empty());
}

#[test]
fn patches_may_be_unknown() {
    let mut bench = Bench::new(&[]);
    bench.selector.config_mut().patches = false;
    bench.selector.config_mut().merged_inputs = false;
    bench.ask();
    bench.write_and_exit(b"<PICK><SID0002><INP>{}</INP><END>", ChildExit::Code(0));
    bench.assert_fallback();
    bench.ask();
    bench.write_and_exit(PICK, ChildExit::Code(0));
    assert_eq!((bench.last()["sid"].as_str(), bench.last().get("inputs")), (Some("SID0002"), None));
}

#[test]
fn the_breaker_opens_for_the_cooldown_and_no_longer() {
    let mut bench = Bench::new(&[]);
    for _ in 0..5 {
        bench.fail();
        bench.now += 10;
    }
    // The breaker opened at 40.
    for now in [50, 30_039] {
        bench.now = now;
        bench.fail();
        bench.line(&request("FALLBACK_ONLY", "{}"));
    }
    assert_eq!(bench.orders.len(), 5);
    bench.now = 30_040;
    bench.fail();
    assert_eq!(bench.orders.len(), 6);
    bench.now += 29_999;
    bench.fail();
    assert_eq!(bench.orders.len(), 6, "one failure opened it again");
    bench.now += 1;
    bench.ask();
    bench.write_and_exit(b"<NOOP><END>", ChildExit::Code(0));
    for _ in 0..4 {
        bench.fail();
    }
    assert_eq!(bench.orders.len(), 11, "a success set the count to 0");
}

/// Step of the model.
#[derive(Debug, Clone, Copy)]
enum Step {
    Succeed,
    Fail,
    Fallback,
    Malformed,
    Sleep(Millis),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Succeed),
        6 => Just(Step::Fail),
        1 => Just(Step::Fallback),
        1 => Just(Step::Malformed),
        3 => (0_u64..150).prop_map(Step::Sleep),
    ]
}

proptest! {
    #[test]
    fn drivers_start_when_the_model_says_so(
        steps in proptest::collection::vec(step(), 0..60),
        threshold in 1_u64..5,
        cooldown in prop_oneof![Just(0), 1_u64..200],
    ) {
        let (threshold_text, cooldown_text) = (threshold.to_string(), cooldown.to_string());
        let mut bench = Bench::new(&[
            ("MACHINA_POLICY_FAIL_THRESHOLD", &threshold_text),
            ("MACHINA_POLICY_COOLDOWN_MS", &cooldown_text),
        ]);
        let (mut failures, mut opened, mut started, mut answered) = (0, None, 0, 0);
        for step in steps {
            let is_open = opened.is_some_and(|at: Millis| bench.now < at + cooldown);
            match step {
                Step::Sleep(ms) => {
                    bench.now += ms;
                    bench.tell(Event::Wake);
                    continue;
                }
                Step::Fallback => bench.line(&request("FALLBACK_ONLY", "{}")),
                Step::Malformed => bench.line("{"),
                Step::Succeed | Step::Fail => {
                    bench.ask();
                    prop_assert_eq!(bench.is_driving(), !is_open);
                    if !is_open {
                        started += 1;
                        bench.now += 1;
                        if matches!(step, Step::Succeed) {
                            failures = 0;
                            bench.write_and_exit(PICK, ChildExit::Code(0));
                        } else {
                            failures += 1;
                            if failures >= threshold {
                                opened = Some(bench.now);
                            }
                            bench.write_and_exit(b"", ChildExit::Code(0));
                        }
                    }
                }
            }
            answered += 1;
            prop_assert_eq!(bench.lines.len(), answered);
            prop_assert_eq!(bench.orders.len(), started);
            prop_assert_eq!(bench.kills, started);
        }
    }

    #[test]
    fn no_chunking_changes_anything(sizes in proptest::collection::vec(1_usize..40, 1..6)) {
        let line = request("POLICY_ONLY", "{\"é\":\"\u{2028}\"}");
        let stream = format!("{line}\n\r\n{{}}\r\n{line}\n");
        let mut bench = Bench::new(&[]);
        let (mut rest, mut turn) = (stream.as_bytes(), 0);
        while !rest.is_empty() {
            let (chunk, tail) = rest.split_at(sizes[turn % sizes.len()].min(rest.len()));
            bench.tell(Event::Stdin(chunk));
            if bench.is_driving() {
                bench.write_and_exit(PICK, ChildExit::Code(0));
            }
            (rest, turn) = (tail, turn + 1);
        }
        if bench.is_driving() {
            bench.write_and_exit(PICK, ChildExit::Code(0));
        }
        bench.tell(Event::StdinEof);
        let sids: Vec<_> = bench.lines.iter().map(|line| line["sid"].as_str()).collect();
        prop_assert_eq!(sids, [Some("SID0002"), None, Some("SID0002")]);
        prop_assert_eq!(bench.exit, Some(0));
    }
}

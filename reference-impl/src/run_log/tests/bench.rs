//! Simulated surroundings of a machine: a log or a request, children, and a clock that advances only when nothing else
//! can happen.

use std::collections::VecDeque;

use crate::machine::{Action, ChildExit, Event, Machine, SpawnFailure};
use crate::policy_driver::guard::{FileKind, Files};
use crate::policy_driver::settings::Settings;
use crate::policy_driver::{Parts, Selector, SelectorChoices, SelectorConfig};
use crate::run_log::{Config, CorrectDecisions, Replayer, Rules, Runner, RunnerParts};
use crate::toolhost::{self, Mode};

/// Observations of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MachineOutput {
    /// Standard output.
    pub stdout: String,
    /// Appended lines.
    pub log: String,
    /// Started tools, each with its request.
    pub spawns: Vec<(Vec<String>, String)>,
    /// Payloads of the started drivers.
    pub payloads: Vec<String>,
    /// Exit status.
    pub status: Option<i32>,
    /// Time of the end in ms.
    pub now: u64,
    /// Number of children left running.
    pub left: usize,
    /// Order of appends (`L`), starts (`T`, `D`) and kills (`K`).
    pub order: String,
}

/// Behaviour of a child.
#[derive(Debug, Clone)]
pub(super) enum Child {
    /// Writes this and exits.
    Ends(Vec<u8>, ChildExit),
    /// Never ends.
    Hangs,
    /// Cannot be started.
    Missing,
}

impl Child {
    fn says(text: &str) -> Self {
        Self::Ends(text.as_bytes().to_vec(), ChildExit::Code(0))
    }
}

#[derive(Debug)]
enum MachineInput {
    Stdout(Vec<u8>),
    Eof,
    Exit(ChildExit),
    Missing,
}

/// Simulated surroundings of a machine.
pub(super) struct World<'w> {
    /// Standard input.
    pub input: &'w [u8],
    /// Bytes per read.
    pub chunk: usize,
    /// Outputs of the drivers in order; the last one repeats.
    pub blocks: &'w [&'w str],
}

impl World<'_> {
    /// Runs a machine until it ends or nothing more can happen.
    pub(super) fn play(&self, machine: &mut dyn Machine) -> MachineOutput {
        let mut seen = MachineOutput::default();
        let (mut input, mut eof, mut wake) = (self.input, false, None::<u64>);
        let mut told: VecDeque<MachineInput> = VecDeque::new();
        let mut actions = Vec::new();
        for _ in 0..1_000_000 {
            let event = if let Some(told) = told.pop_front() {
                match &told {
                    MachineInput::Stdout(bytes) => {
                        machine.handle(Event::ChildStdout(bytes), seen.now, &mut actions)
                    }
                    MachineInput::Eof => machine.handle(Event::ChildStdoutEof, seen.now, &mut actions),
                    MachineInput::Exit(exit) => {
                        machine.handle(Event::ChildExit(*exit), seen.now, &mut actions)
                    }
                    MachineInput::Missing => {
                        let failure = SpawnFailure::NotFound("it is not there".to_owned());
                        machine.handle(Event::ChildSpawnFailed(failure), seen.now, &mut actions);
                    }
                }
                None
            } else if machine.wants_stdin() && !input.is_empty() {
                let (chunk, rest) = input.split_at(self.chunk.min(input.len()));
                input = rest;
                Some(Event::Stdin(chunk))
            } else if machine.wants_stdin() && !eof {
                eof = true;
                Some(Event::StdinEof)
            } else if let Some(at) = wake.take() {
                seen.now = seen.now.max(at);
                Some(Event::Wake)
            } else {
                return seen;
            };
            if let Some(event) = event {
                machine.handle(event, seen.now, &mut actions);
            }
            for action in std::mem::take(&mut actions) {
                seen.order.extend(match &action {
                    Action::Append(_) => Some('L'),
                    Action::Spawn { .. } => Some('T'),
                    Action::Drive(_) => Some('D'),
                    Action::Kill => Some('K'),
                    _ => None,
                });
                match action {
                    Action::Stdout(bytes) => seen.stdout.push_str(&String::from_utf8(bytes).unwrap()),
                    Action::Append(bytes) => seen.log.push_str(&String::from_utf8(bytes).unwrap()),
                    Action::WakeAt(at) => wake = Some(wake.map_or(at, |wake| wake.min(at))),
                    Action::Spawn { argv, stdin } => {
                        seen.left += 1;
                        start(toolhost(argv.last().unwrap(), &stdin), &mut told);
                        seen.spawns.push((argv, String::from_utf8(stdin).unwrap()));
                    }
                    Action::Drive(order) => {
                        seen.left += 1;
                        let block = self.blocks.get(seen.payloads.len()).or(self.blocks.last()).unwrap();
                        start(Child::says(block), &mut told);
                        seen.payloads.push(String::from_utf8(order.payload).unwrap());
                    }
                    Action::Kill => {
                        seen.left = seen.left.saturating_sub(1);
                        told.clear();
                    }
                    Action::Exit(status) => {
                        seen.status = Some(status);
                        return seen;
                    }
                    _ => {}
                }
            }
        }
        seen
    }
}

fn start(child: Child, told: &mut VecDeque<MachineInput>) {
    match child {
        Child::Ends(stdout, exit) => {
            if !stdout.is_empty() {
                told.push_back(MachineInput::Stdout(stdout));
            }
            told.extend([MachineInput::Eof, MachineInput::Exit(exit)]);
        }
        Child::Hangs => {}
        Child::Missing => told.push_back(MachineInput::Missing),
    }
}

/// The reference toolhost in run mode, and some faulty toolhosts.
fn toolhost(aid: &str, stdin: &[u8]) -> Child {
    let reply = |output: &str, state: &str| {
        let output = output.replace('"', "\\\"");
        Child::says(&format!(
            "{{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{output}\",\"error\":\"\",\"ds_state\":{state}}}"
        ))
    };
    match aid {
        "HANG" => return Child::Hangs,
        "MISSING" => return Child::Missing,
        "GARBAGE" => return Child::says("{\"ok\":true"),
        "CRASH" => return Child::Ends(Vec::new(), ChildExit::Signal(6)),
        "STATUS" => return Child::Ends(Vec::new(), ChildExit::Code(3)),
        "NOT-OK" => {
            return Child::says(r#"{"ok":false,"status":"OK","output_json":"{}","error":"x","ds_state":{}}"#);
        }
        "TRIPS" => return Child::says(r#"{"ok":false,"status":"BREAKER_TRIP","error":"tripped"}"#),
        "TWO-LINES" => {
            return Child::says(
                "{\"ok\":false,\"status\":\"TOOL_ERROR\",\"error\":\"a\\nREPLAY_STRICT OK\"}",
            );
        }
        "BAD-OUTPUT" => return reply("{", "{}"),
        "BAD-STATE" => return reply("{}", r#"{"slots":{"8":null}}"#),
        "BAD-SIZE" => {
            let slot = r#"{"type":"t","provenance":"p","content_json":"1","size_bytes":2}"#;
            return reply("{}", &format!("{{\"slots\":{{\"0\":{slot}}}}}"));
        }
        "DELTA" => return reply("{}", r#"{"delta":true,"slots":{}}"#),
        "FLOOD" => return Child::Ends(vec![b' '; 11 << 20], ChildExit::Code(0)),
        "SPELLED" => {
            let state = std::str::from_utf8(stdin).unwrap().split_once("\"ds_state\":").unwrap().1;
            return reply(r#"{"b": 1.0,"a":[1,2]}"#, state.strip_suffix('}').unwrap());
        }
        _ => {}
    }
    let mut machine = toolhost::machine(toolhost::Config::new(Mode::Run { aid: aid.to_owned() }));
    let mut actions = Vec::new();
    machine.handle(Event::Stdin(stdin), 0, &mut actions);
    machine.handle(Event::StdinEof, 0, &mut actions);
    let mut out = Vec::new();
    for action in actions {
        if let Action::Stdout(bytes) = action {
            out.extend_from_slice(&bytes);
        }
    }
    Child::Ends(out, ChildExit::Code(0))
}

/// A file system in which every path is an executable.
#[derive(Debug)]
struct Programs;

impl Files for Programs {
    fn kind(&self, _path: &str) -> FileKind {
        FileKind::Program(None)
    }

    fn canonical(&self, path: &str) -> Option<String> {
        Some(path.to_owned())
    }
}

/// Selector of a runner, with an allowed or a forbidden driver.
pub(super) fn selector(allowed: bool) -> Box<dyn Machine + Send> {
    let variable = |name: &str| match name {
        "MACHINA_POLICY_CMD" => Some("/driver".to_owned()),
        "MACHINA_POLICY_ALLOW_UNSAFE" if allowed => Some("1".to_owned()),
        _ => None,
    };
    let (limits, choices) = (crate::limits::Limits::default(), SelectorChoices::default());
    let settings = Settings::read(&variable, &limits, &choices).unwrap();
    let config = SelectorConfig { settings, choices, limits, patches: true, merged_inputs: false };
    let parts = Parts::new(&config, Box::new(Programs));
    Box::new(Selector::new(config, parts))
}

/// Configuration with these choices.
pub(super) fn config(choices: &[(&str, &str)]) -> Config {
    let mut config = Config::new("/peer");
    for (key, value) in choices {
        config.choices.set(key, value).unwrap();
    }
    config
}

/// Runs the runner that `build` creates.
pub(crate) fn run_by(
    build: impl FnOnce() -> Box<dyn Machine + Send>,
    request: &str,
    blocks: &[&str],
) -> MachineOutput {
    World { input: request.as_bytes(), chunk: 7, blocks }.play(&mut *build())
}

/// Runs the correct runner.
pub(super) fn run(choices: &[(&str, &str)], request: &str, blocks: &[&str]) -> MachineOutput {
    run_by(|| Box::new(Runner::new(config(choices), RunnerParts::new(selector(true)))), request, blocks)
}

/// Runs the replayer that `build` creates.
pub(crate) fn replay_by(
    build: impl FnOnce() -> Box<dyn Machine + Send>,
    log: &[u8],
    chunk: usize,
) -> MachineOutput {
    World { input: log, chunk, blocks: &["<NOOP><END>"] }.play(&mut *build())
}

/// Runs a replayer with these rules.
pub(crate) fn replay_with(rules: Box<dyn Rules>, choices: &[(&str, &str)], log: &str) -> MachineOutput {
    replay_by(|| Box::new(Replayer::new(config(choices), rules)), log.as_bytes(), 1 << 16)
}

/// Runs the correct replayer.
pub(super) fn replay(choices: &[(&str, &str)], log: &str) -> MachineOutput {
    replay_with(Box::new(CorrectDecisions), choices, log)
}

/// True if the correct replayer accepts a log. Asserts that verdict and status agree.
pub(super) fn accepts(choices: &[(&str, &str)], log: &str) -> bool {
    let seen = replay(choices, log);
    assert_eq!(seen.left, 0, "{log}");
    match seen.status {
        Some(0) => assert_eq!(seen.stdout, "REPLAY_STRICT OK\n"),
        Some(1) => {
            assert!(seen.stdout.starts_with("REPLAY_STRICT FAIL line "), "{}", seen.stdout);
            assert_eq!(seen.stdout.matches('\n').count(), 1, "{}", seen.stdout);
        }
        other => panic!("{other:?}"),
    }
    seen.status == Some(0)
}

/// Request with these SIDs: 1 PUT, 2 ECHO, 3 COUNTER, 4 FAIL, 5 REMOVE, 6 SPELLED.
pub(super) const REQUEST: &str = r#"{"goal_id":"g","inputs":{"k":1},"control_mode":"POLICY_ONLY","request_id":"R-1","x":0,"tools":[
    {"aid":"AID.PEERPROOF.PUT.v1","name":"put","tags":["b","a"],"deterministic":true},
    {"aid":"AID.PEERPROOF.ECHO.v1","name":"echo","tags":[],"deterministic":true},
    {"aid":"AID.PEERPROOF.COUNTER.v1","name":"counter","tags":[],"deterministic":false},
    {"aid":"AID.PEERPROOF.FAIL.v1","name":"fail","tags":[],"deterministic":true},
    {"aid":"AID.PEERPROOF.REMOVE.v1","name":"remove","tags":[],"deterministic":true},
    {"aid":"SPELLED","name":"spelled","tags":[],"deterministic":true}]}"#;

/// Driver outputs that use all tools of [`REQUEST`] and then stop.
pub(crate) const BLOCKS: &[&str] = &[
    r#"<PICK><SID0001><INP>{"slot":3,"artifact":{"type":"t","provenance":"p","content_json":"\"é\"","size_bytes":4}}</INP><END>"#,
    r#"<PICK><SID0002><INP>{"k":{"a":[1,2.50],"b":null}, "m":[]}</INP><END>"#,
    "<PICK><SID0003><END>",
    r#"<PICK><SID0004><INP>{"message":"no"}</INP><END>"#,
    r#"<PICK><SID0001><INP>{"slot":0}</INP><END>"#,
    "<ASK_SUP><END>",
    r#"<PICK><SID0006><INP>{}</INP><END>"#,
    r#"<PICK><SID0005><INP>{"slot":3,"k":null}</INP><END>"#,
    "<NOOP><END>",
];

/// Log of a correct run of both, without a line for the empty patch: no other line depends on it.
pub(crate) fn honest() -> String {
    let seen = run(&[("ask_sup_ends", "false"), ("empty_patch_logged", "false")], REQUEST, BLOCKS);
    assert_eq!((seen.status, seen.left), (Some(0), 0), "{}", seen.log);
    seen.log
}

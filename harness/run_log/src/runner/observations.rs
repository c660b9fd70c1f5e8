//! Observations of one run: its driver, its toolhost and its log.

use std::collections::BTreeMap;

use peerproof_engine::contract::program::Program as _;
use peerproof_engine::data::ending::Ending;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Act, ActorStep, Fixture};
use peerproof_engine::data::transcript::{EventKind, Exit, SightResult, Transcript};

use super::block::{self, OutputMeaning};
use super::request::{self, RequestTreatment};
use super::{COMMAND_VARIABLE, Names, TIMEOUT_VARIABLE};
use crate::state::State;
use crate::tools::{self, Toolhost};

/// Largest reply of a toolhost, bytes (`ipc` §7).
const REPLY_BYTES_MAX: usize = 1 << 20;

/// One start of the driver.
#[derive(Debug)]
pub(crate) struct Driver {
    /// Payload; `None` if it could not be read.
    pub payload: Option<Json>,
    /// Meaning of its output.
    pub said: OutputMeaning,
    /// Its output.
    pub output: String,
}

/// Outcome of an execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExecutionOutcome {
    /// Success: output and resulting state.
    Success(String, State),
    /// A failure.
    Failure,
    /// Timeout.
    Late,
    /// Success or failure, with output and state in case of success.
    Either(Option<(String, State)>),
}

/// One execution of a tool.
#[derive(Debug)]
pub(crate) struct Execution {
    /// Aid of the requested tool.
    pub aid: String,
    /// Input and state in the request, or the fault of the request.
    pub given: Result<(Json, State), &'static str>,
    /// Outcome.
    pub came: ExecutionOutcome,
}

/// One run.
#[derive(Debug)]
pub(crate) struct RunObservations {
    /// The request of the run.
    pub asked: RequestTreatment,
    /// Starts of the driver.
    pub drivers: Vec<Driver>,
    /// Number of starts of the toolhost in run mode.
    pub run_starts: usize,
    /// Arguments of a toolhost that was started with wrong ones.
    pub odd_start: Option<Vec<String>>,
    /// Executions of tools.
    pub tools: Vec<Execution>,
    /// True if the driver is configured.
    pub has_driver: bool,
    /// True if the toolhost can be started.
    pub has_toolhost: bool,
    /// Content of the log; `None` if it is not a file.
    pub log: Option<Vec<u8>>,
    /// End of the process.
    pub ending: Ending,
    /// True if the harness ended it early, by SIGKILL or SIGTERM.
    pub killed: bool,
    /// True if SIGKILL was planned.
    pub is_target: bool,
}

impl RunObservations {
    /// Observations of a session. `None` without a request or without a look at its log.
    pub(crate) fn of(transcript: &Transcript, session: usize) -> Option<Self> {
        let names = Names::of(session);
        let fixture = |name: &str| transcript.plan.fixtures.iter().find(|fixture| fixture.name() == name);
        let Some(Fixture::File { content, .. }) = fixture(&names.request) else { return None };
        let asked = request::read(&content.expand(&Vars::new()).ok()?);
        let looked = transcript.events.iter().find_map(|event| match &event.kind {
            EventKind::Looked { label, found, .. } if *label == names.log => Some(found),
            _ => None,
        })?;
        let log = looked.first().and_then(|found| found.bytes.as_ref()).map(|bytes| bytes.0.clone());
        let mut own = transcript.plan.steps.iter().filter(|step| step.session == session);
        let signal = own.find_map(|step| match &step.act {
            Act::SignalWhen { signal, .. } => Some(signal.as_str()),
            _ => None,
        });
        let ending = Ending::of(transcript, session);
        let (run_starts, odd_start, tools) = tools(transcript, session, &names.toolhost);
        Some(Self {
            asked,
            drivers: drivers(transcript, &names.driver),
            run_starts,
            odd_start,
            tools,
            has_driver: transcript.plan.sessions[session]
                .env
                .get(COMMAND_VARIABLE)
                .is_some_and(|command| command.contains(&names.driver)),
            has_toolhost: matches!(fixture(&names.toolhost), Some(Fixture::Actor { .. })),
            log,
            // A process that got SIGKILL too late ended by itself.
            killed: match signal {
                Some("KILL") => ending.signalled && ending.exit != Some(Exit::Code(0)),
                _ => ending.signalled,
            },
            is_target: signal == Some("KILL"),
            ending,
        })
    }
}

/// Record of one start.
struct Start<'a> {
    pid: i32,
    payload: Option<&'a [u8]>,
    output: Option<Vec<u8>>,
    exit: Option<Exit>,
}

fn last<'s, 'a>(starts: &'s mut [Start<'a>], pid: i32) -> Option<&'s mut Start<'a>> {
    starts.iter_mut().rev().find(|start| start.pid == pid)
}

fn drivers(transcript: &Transcript, name: &str) -> Vec<Driver> {
    let mut starts: Vec<Start<'_>> = Vec::new();
    let own = |actor: &str| actor == name;
    for event in &transcript.events {
        match &event.kind {
            EventKind::ActorStarted { actor, pid, .. } if own(actor) => {
                starts.push(Start { pid: *pid, payload: None, output: None, exit: None });
            }
            EventKind::ActorSaw { actor, pid, seen: SightResult::Payload { bytes, .. } } if own(actor) => {
                last(&mut starts, *pid).into_iter().for_each(|start| start.payload = Some(&bytes.0));
            }
            EventKind::ActorWrote { actor, pid, bytes, whole: true } if own(actor) => {
                last(&mut starts, *pid)
                    .into_iter()
                    .for_each(|start| start.output = bytes.expand(&Vars::new()).ok());
            }
            EventKind::ActorEnded { actor, pid, exit } if own(actor) => {
                last(&mut starts, *pid).into_iter().for_each(|start| start.exit = Some(*exit));
            }
            _ => {}
        }
    }
    let driver = |start: Start<'_>| {
        let payload = start.payload.and_then(decoded);
        let said = match (start.exit, &start.output) {
            (Some(Exit::Code(0)), Some(output)) => block::read(output),
            (Some(exit), _) if exit != Exit::Code(0) => OutputMeaning::Fails,
            // The driver was killed, or its output was not read.
            _ => OutputMeaning::Open,
        };
        let output = String::from_utf8_lossy(&start.output.unwrap_or_default()).trim().to_owned();
        Driver { payload, said, output }
    };
    starts.into_iter().map(driver).collect()
}

/// Number of starts in run mode, wrong arguments, and executions of a session's toolhost.
fn tools(
    transcript: &Transcript,
    session: usize,
    name: &str,
) -> (usize, Option<Vec<String>>, Vec<Execution>) {
    let plan = &transcript.plan;
    let timeout = plan.sessions.get(session).and_then(|it| it.env.get(TIMEOUT_VARIABLE));
    let timeout_ms = timeout.and_then(|seconds| seconds.parse().ok()).map_or(30_000, |it: u64| it * 1_000);
    let mut hosts: BTreeMap<i32, (Toolhost, bool)> = BTreeMap::new();
    let (mut run_starts, mut odd_start, mut all) = (0, None, Vec::new());
    let ended = |which: i32| {
        let is_end = |kind: &EventKind| matches!(kind, EventKind::ActorEnded { actor, pid, .. } if actor == name && *pid == which);
        transcript.events.iter().any(|event| is_end(&event.kind))
    };
    for event in &transcript.events {
        match &event.kind {
            EventKind::ActorStarted { actor, argv, pid } if actor == name => {
                let is_run = argv.iter().any(|word| word == "--run");
                hosts.insert(*pid, (Toolhost::new(argv), is_run));
                run_starts += usize::from(is_run);
                odd_start = odd_start.or_else(|| (!tools::is_start(argv)).then(|| argv.clone()));
            }
            EventKind::ActorReceived { actor, bytes, pid: Some(pid) } if actor == name => {
                let Some((host, is_run)) = hosts.get_mut(pid) else { continue };
                let asked = host.asked(&bytes.0);
                let steps = host.answer(&bytes.0);
                let (aid, given) = match asked {
                    Ok((aid, input, state)) => (aid, Ok((input, state))),
                    Err(why) => (String::new(), Err(why)),
                };
                let before = given.as_ref().map(|(_, state)| state.clone()).unwrap_or_default();
                let came = match came(&steps, &before, *is_run, timeout_ms) {
                    // A toolhost that was ended before its reply gave none.
                    ExecutionOutcome::Success(output, state)
                        if *is_run && !ended(*pid) && !tools::is_patient(&aid) =>
                    {
                        ExecutionOutcome::Either(Some((output, state)))
                    }
                    came => came,
                };
                all.push(Execution { aid, given, came });
            }
            _ => {}
        }
    }
    (run_starts, odd_start, all)
}

/// Outcome of a toolhost's steps.
fn came(steps: &[ActorStep], before: &State, is_run: bool, timeout_ms: u64) -> ExecutionOutcome {
    let (mut text, mut sleeps_ms, mut is_flood, mut ends_well) = (Vec::new(), 0, false, true);
    for step in steps {
        match step {
            ActorStep::Stdout(payload) => text.extend(payload.expand(&Vars::new()).unwrap_or_default()),
            ActorStep::Sleep { ms } if text.is_empty() => sleeps_ms += ms,
            ActorStep::Flood { .. } => is_flood = true,
            ActorStep::Exit(status) => ends_well &= *status == 0,
            ActorStep::Die(_) => ends_well = false,
            _ => {}
        }
    }
    if sleeps_ms > timeout_ms * 2 {
        return ExecutionOutcome::Late;
    }
    if is_flood {
        return ExecutionOutcome::Failure;
    }
    if !is_run {
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        text.truncate(end);
    }
    let is_large = text.len() > REPLY_BYTES_MAX;
    let Some(reply) = decoded(&text) else { return ExecutionOutcome::Failure };
    match success(&reply, before, is_run) {
        ExecutionOutcome::Success(output, state) if !ends_well || is_large || sleeps_ms * 2 > timeout_ms => {
            ExecutionOutcome::Either(Some((output, state)))
        }
        came => came,
    }
}

/// Outcome of a JSON reply.
fn success(reply: &Json, before: &State, is_run: bool) -> ExecutionOutcome {
    let status = reply.get("status").and_then(Json::as_str);
    if reply.get("ok").and_then(Json::as_bool) != Some(true) || status.is_some_and(|status| status != "OK") {
        return ExecutionOutcome::Failure;
    }
    let Some(output) = reply.get("output_json").and_then(Json::as_str) else {
        return ExecutionOutcome::Failure;
    };
    if decoded(output.as_bytes()).is_none() {
        return ExecutionOutcome::Failure;
    }
    let (state, is_delta) = match reply.get("ds_state") {
        None => return ExecutionOutcome::Either(Some((output.to_owned(), before.clone()))),
        Some(state) => (state, state.get("delta").and_then(Json::as_bool) == Some(true)),
    };
    let mut after = if is_run { State::default() } else { before.clone() };
    if after.change(state).is_err() {
        return ExecutionOutcome::Failure;
    }
    let mut is_plain = status.is_some() && is_delta != is_run;
    is_plain &= reply.get("error").and_then(Json::as_str) == Some("");
    for artifact in after.0.iter_mut().flatten().filter(|artifact| !artifact.has_right_size()) {
        // The runner may refuse or correct a wrong size.
        artifact.size_bytes = artifact.content_json.len() as u64;
        is_plain = false;
    }
    match is_plain {
        true => ExecutionOutcome::Success(output.to_owned(), after),
        false => ExecutionOutcome::Either(Some((output.to_owned(), after))),
    }
}

/// The value of a strict JSON text, possibly with surrounding white space.
pub(crate) fn decoded(text: &[u8]) -> Option<Json> {
    json::decode(json::trim(text), &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

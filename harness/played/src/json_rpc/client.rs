//! The reference client as a peer under test.

use std::fs::File;
use std::io::Write as _;

use peerproof_reference::io;
use peerproof_reference::json_rpc_client::{self, Config, mutants};
use peerproof_reference::machine::{Action, Event, Machine, Millis};

use super::super::arguments::{refuse, split_mutant, variable};
use super::super::inside;
use super::unclaimed;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::machine as engine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Reference};
use peerproof_engine::drive::transport::in_process::UNIX_MS_AT_START;
use peerproof_json_rpc::client::COMMAND;

/// Word that selects the client.
const WORD: &str = "--client";

/// Seed of in-process clients, so that their jitter is always the same.
const RNG_SEED: u64 = 11;

/// Exit status of a client that cannot write its results.
const STATUS_STREAMS: i32 = 70;

/// Arguments after `peerproof peer json_rpc`.
pub(crate) fn command() -> Reference {
    let args = [WORD, "{scenario}", "{results}"].map(str::to_owned).to_vec();
    Reference { side: Side::Consumer, commands: vec![(COMMAND, args)], harmless: Harmless::OF_REQUESTS }
}

/// Arguments of the client; `None` if another peer is selected. It retries whether or not that is claimed.
pub(crate) fn arguments(args: &[String]) -> Option<Vec<String>> {
    args.split_first().filter(|(first, _)| *first == WORD).map(|(_, rest)| unclaimed(rest, "retry"))
}

/// Runs the client, or a mutant of it with `--mutant ID`, on the standard streams of this process.
pub(crate) fn run(args: &[String], env: &[(String, String)]) -> i32 {
    match split_mutant(args, mutants::find) {
        Ok((Some(mutant), args)) if mutant.shell_fault().is_some() => {
            let Some(fault) = mutant.shell_fault() else { return STATUS_STREAMS };
            let Ok(program) = std::env::current_exe() else { return STATUS_STREAMS };
            let words = [program.to_string_lossy().as_ref(), "peer", "json_rpc", WORD].map(str::to_owned);
            let correct: Vec<String> = words.into_iter().chain(args).collect();
            io::faults::run_with_fault(fault, &correct, variable(env)("TMPDIR").map(Into::into))
        }
        Ok((Some(mutant), args)) => io::json_rpc_client::run_with(&args, |config| mutant.machine(config)),
        Ok((None, args)) => io::json_rpc_client::run_json_rpc_client(&args),
        Err(error) => refuse(&error),
    }
}

/// Machine of the client, which writes its results itself. Without a scenario it ends at once.
pub(crate) fn machine(args: &[String]) -> Option<Box<dyn engine::Machine>> {
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let arguments = io::json_rpc_client::parse(&args).ok()?;
    let make = |config: Config| match mutant {
        Some(mutant) => mutant.machine(config),
        None => json_rpc_client::machine(config),
    };
    let ready = arguments.config(RNG_SEED, UNIX_MS_AT_START).and_then(|config| {
        let results = arguments.open_results()?;
        Ok((make(config), results))
    });
    Some(match ready {
        Ok((client, results)) => inside(Filing { client, results }),
        Err(_) => inside(Unready),
    })
}

/// Mutants of the client.
pub(crate) fn mutants() -> Vec<Mutant> {
    let entry = |mutant: mutants::Mutant| Mutant {
        id: mutant.id,
        clauses: mutant.clauses,
        side: Side::Consumer,
        fault: mutant.fault,
        needs_process: mutant.shell_fault().is_some(),
        unclaimed: None,
    };
    mutants::all().into_iter().map(entry).collect()
}

/// Client with its results file.
struct Filing {
    client: Box<dyn Machine + Send>,
    results: File,
}

impl Filing {
    fn file(&mut self, inner: Vec<Action>, actions: &mut Vec<Action>) {
        for action in inner {
            match action {
                Action::Append(bytes) => {
                    if self.results.write_all(&bytes).is_err() {
                        actions.push(Action::Exit(STATUS_STREAMS));
                    }
                }
                other => actions.push(other),
            }
        }
    }
}

impl Machine for Filing {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.client.begin(now, &mut inner);
        self.file(inner, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.client.handle(event, now, &mut inner);
        self.file(inner, actions);
    }
}

/// Client whose files are missing.
struct Unready;

impl Machine for Unready {
    fn begin(&mut self, _now: Millis, actions: &mut Vec<Action>) {
        actions.push(Action::Exit(2));
    }

    fn handle(&mut self, _event: Event<'_>, _now: Millis, actions: &mut Vec<Action>) {
        actions.push(Action::Exit(2));
    }
}

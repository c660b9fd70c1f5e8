//! The reference toolhost and dispatcher as peers under test.

use std::error::Error;

use peerproof_reference::dispatcher::Dispatcher;
use peerproof_reference::toolhost::mutants;
use peerproof_reference::{dispatcher, io, toolhost};
use serde_json::{Value, json};

use super::arguments::{refuse, run_with_fault, split_mutant, split_presentation, split_without, variable};
use super::inside;
use super::presented::wrap_as;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_toolhost::role::{ROLES, reference_aid};

pub mod properties;

struct Toolhost;

/// The reference toolhost and dispatcher.
pub fn played() -> &'static dyn Played {
    &Toolhost
}

impl Played for Toolhost {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_toolhost::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        commands()
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        run(args, env)
    }

    fn least_roles(&self, side: Side) -> Vec<(&'static str, Value)> {
        least_roles(side)
    }

    fn reference_machine(&self, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        machine(args, env)
    }

    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        takes(side, extra)
    }

    fn mutants(&self) -> Vec<Mutant> {
        mutants()
    }
}

/// Arguments after `peerproof peer toolhost`.
pub fn commands() -> Vec<Reference> {
    let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    vec![
        Reference {
            side: Side::Provider,
            commands: vec![("run", own(&["--run", "{aid}"])), ("serve", own(&["--serve"]))],
            harmless: Harmless::ALL,
        },
        Reference {
            side: Side::Consumer,
            // Faults of mutants change bytes of this shape.
            commands: vec![("command", own(&["--dispatch", "{peer}", "--choice", "request_shape=inputs"]))],
            harmless: Harmless::OF_REQUESTS,
        },
    ]
}

/// Minimal role configurations: absent, and a meaningless input for a tool with free output. The contract sets the
/// inputs of other tools, so their minimum is to be absent.
pub(crate) fn least_roles(side: Side) -> Vec<(&'static str, Value)> {
    let absent = ROLES.iter().map(|(role, _)| (*role, Value::Null));
    match side {
        Side::Provider => absent
            .chain([
                ("any", json!({ "aid": reference_aid("noise") })),
                ("any", json!({ "aid": reference_aid("noise"), "input": {} })),
                ("echo", json!({ "aid": reference_aid("echo"), "input": {} })),
            ])
            .collect(),
        Side::Consumer => Vec::new(),
    }
}

/// Runs the reference, or a mutant of it with `--mutant ID`, on the standard streams of this process; returns the exit
/// status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    if args.first().is_some_and(|first| first == "--dispatch") {
        return run_dispatcher(&args[1..], env);
    }
    let (mutant, args) = match split_mutant(args, mutants::find) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let Some(mutant) = mutant else { return io::toolhost::run_toolhost(&args, &variable(env)) };
    if let Some(fault) = mutant.shell_fault() {
        return run_with_fault(fault, &["toolhost"], args, env);
    }
    match io::toolhost::parse(&args, &variable(env)) {
        Ok(io::toolhost::Command::Host(mut config)) => {
            config.token_seed = io::toolhost::random_seed();
            let status_at_rest = config.mode.status_terminated();
            io::stdio::run_machine(mutant.machine(*config), status_at_rest)
        }
        Ok(io::toolhost::Command::List) => io::toolhost::run_toolhost(&args, &variable(env)),
        Err(error) => refuse(&error),
    }
}

fn run_dispatcher(args: &[String], env: &[(String, String)]) -> i32 {
    run_any_dispatcher(args, env).unwrap_or_else(|error| refuse(&error))
}

fn run_any_dispatcher(args: &[String], env: &[(String, String)]) -> Result<i32, Box<dyn Error>> {
    let (how, args) = split_presentation(args)?;
    let (mutant, args) = split_mutant(&args, dispatcher::mutants::find_mutant)?;
    let config = io::dispatcher::parse(&args, &variable(env))?;
    let machine = match mutant {
        Some(mutant) => mutant.machine(config),
        None => Box::new(Dispatcher::new(config)),
    };
    let mut machine = wrap_as(machine, how);
    Ok(io::dispatcher::run_machine(&mut *machine).unwrap_or(70))
}

/// Machine of the reference toolhost, of one without a feature, or of a mutant. The dispatcher needs real processes.
pub fn machine(args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    if args.first().is_some_and(|first| first == "--dispatch") {
        return None;
    }
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let (without, args) = split_without(args);
    match io::toolhost::parse(&args, &variable(env)).ok()? {
        io::toolhost::Command::Host(config) => Some(inside(match (mutant, without) {
            (Some(mutant), _) => mutant.machine(*config),
            (None, Some(feature)) => mutants::without_feature(&feature, toolhost::machine(*config)),
            (None, None) => toolhost::machine(*config),
        })),
        io::toolhost::Command::List => None,
    }
}

/// True if the reference of this side understands these further arguments.
pub fn takes(side: Side, extra: &[String]) -> bool {
    let understands = |args: &[String]| match args.split_first() {
        Some((first, args)) if first == "--dispatch" => io::dispatcher::parse(args, &|_| None).is_ok(),
        _ => machine(args, &[]).is_some(),
    };
    let own = commands().into_iter().find(|reference| reference.side == side);
    let args = own.and_then(|reference| reference.commands.into_iter().next());
    args.is_some_and(|(_, args)| understands(&[args.as_slice(), extra].concat()))
}

/// All mutants, those of the provider first.
pub fn mutants() -> Vec<Mutant> {
    let provider = mutants::all().into_iter().map(|mutant| Mutant {
        id: mutant.id,
        clauses: mutant.clauses,
        side: Side::Provider,
        fault: mutant.fault,
        needs_process: mutant.shell_fault().is_some(),
        unclaimed: mutant.unclaimed,
    });
    let consumer = dispatcher::mutants::all().into_iter().map(|mutant| Mutant {
        id: mutant.id,
        clauses: mutant.clauses,
        side: Side::Consumer,
        fault: mutant.fault,
        needs_process: true,
        unclaimed: None,
    });
    provider.chain(consumer).collect()
}

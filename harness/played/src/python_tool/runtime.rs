//! The reference runtime as a peer under test.

use peerproof_reference::io::python_runtime::{self as shell, WORD};
use peerproof_reference::python_tool::runtime::mutants;

use super::super::arguments::{refuse, run_with_fault, split_mutant, variable};
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::reference_peers::{Mutant, Reference};
use peerproof_python_tool::runtime::COMMAND;

/// Arguments after `peerproof peer python_tool`.
pub(crate) fn command() -> Reference {
    let args = [WORD, "{scenario}", "{results}"].map(str::to_owned).to_vec();
    Reference { side: Side::Consumer, commands: vec![(COMMAND, args)], harmless: &[] }
}

/// Arguments of the runtime; `None` if another peer is selected.
pub(crate) fn arguments(args: &[String]) -> Option<&[String]> {
    args.split_first().filter(|(first, _)| *first == WORD).map(|(_, rest)| rest)
}

/// Runs the runtime, or a mutant of it with `--mutant ID`; returns the exit status.
pub(crate) fn run(args: &[String], env: &[(String, String)]) -> i32 {
    match split_mutant(args, mutants::find) {
        Ok((mutant, args)) => match mutant.as_ref().and_then(|mutant| mutant.shell_fault()) {
            Some(fault) => run_with_fault(fault, &["python_tool", WORD], args, env),
            None => shell::run_python_runtime(&args, variable(env)("http_proxy"), mutant.as_ref()),
        },
        Err(error) => refuse(&error),
    }
}

/// True if the runtime understands these further arguments.
pub(crate) fn takes(extra: &[String]) -> bool {
    let files = ["scenario", "results"].map(str::to_owned);
    shell::parse(&[extra, &files].concat()).is_ok()
}

/// Mutants of the runtime.
pub(crate) fn mutants() -> Vec<Mutant> {
    let entry = |mutant: mutants::Mutant| Mutant {
        id: mutant.id,
        clauses: mutant.clauses,
        side: Side::Consumer,
        fault: mutant.fault,
        // The runtime starts real programs.
        needs_process: true,
        unclaimed: None,
    };
    mutants::all().into_iter().map(entry).collect()
}

//! The reference caller as a peer under test.

use peerproof_reference::envelope_caller::mutants;
use peerproof_reference::io::envelope_caller::{self as shell, WORD};

use super::super::arguments::{refuse, run_with_fault, split_mutant, split_presentation};
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::presentation::{Harmless, Presenter};
use peerproof_engine::drive::reference_peers::{Mutant, Reference};
use peerproof_envelope::caller::COMMAND;

/// Arguments after `peerproof peer envelope`.
pub(crate) fn command() -> Reference {
    let args = [WORD, "{scenario}", "{results}"].map(str::to_owned).to_vec();
    Reference { side: Side::Consumer, commands: vec![(COMMAND, args)], harmless: Harmless::OF_TEXTS }
}

/// Arguments of the caller; `None` if another peer is selected.
pub(crate) fn arguments(args: &[String]) -> Option<&[String]> {
    args.split_first().filter(|(first, _)| *first == WORD).map(|(_, rest)| rest)
}

/// Runs the caller (or, with `--mutant ID`, a mutant of it) and returns its exit status.
pub(crate) fn run(args: &[String], env: &[(String, String)]) -> i32 {
    let (how, args) = match split_presentation(args) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    if let Some(how) = how {
        let present = move |text: Vec<u8>| {
            let mut presented = Vec::new();
            Presenter::new(how).present(text, &mut |bytes| presented.extend(bytes));
            presented
        };
        return shell::run_presented(&args, present);
    }
    match split_mutant(&args, mutants::find) {
        Ok((Some(mutant), args)) => match mutant.shell_fault() {
            Some(fault) => run_with_fault(fault, &["envelope", WORD], args, env),
            None => shell::run_mutant(&mutant, &args),
        },
        Ok((None, args)) => shell::run_envelope_caller(&args),
        Err(error) => refuse(&error),
    }
}

/// True if the caller understands these further arguments.
pub(crate) fn takes(extra: &[String]) -> bool {
    let files = ["scenario", "results"].map(str::to_owned);
    shell::parse(&[extra, &files].concat()).is_ok()
}

/// Mutants of the caller.
pub(crate) fn mutants() -> Vec<Mutant> {
    let entry = |mutant: mutants::Mutant| Mutant {
        id: mutant.id,
        clauses: mutant.clauses,
        side: Side::Consumer,
        fault: mutant.fault,
        // The caller starts real programs.
        needs_process: true,
        unclaimed: None,
    };
    mutants::all().into_iter().map(entry).collect()
}

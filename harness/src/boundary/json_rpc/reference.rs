//! The reference server as a peer under test.

use peerproof_reference::json_rpc::mutants;
use peerproof_reference::machine::Machine;
use peerproof_reference::{io, json_rpc};
use serde_json::json;

use super::role::reference_role;
use crate::boundary::arguments::{refuse, split_mutant, variable};
use crate::boundary::{Mutant, Reference};
use crate::clause::Side;
use crate::facts::Facts;

/// Roles that the reference plays as far as checks ask for them.
const ROLES: [&str; 4] = ["echo", "fail", "named", "counter"];

/// Arguments after `peerproof peer json_rpc`.
pub fn commands() -> Vec<Reference> {
    vec![Reference { side: Side::Provider, commands: vec![("command", vec!["--stdio".to_owned()])] }]
}

/// What a configuration file for the reference server would say.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    if side == Side::Provider {
        facts.commands.insert("command".to_owned());
        for role in ROLES {
            facts.roles.insert(role.to_owned(), reference_role(role));
        }
        facts.features.insert("batch".to_owned(), json!(true));
    }
    facts
}

/// Runs the reference (or, with `--mutant ID`, a mutant of it) on the standard streams of this process and returns its
/// exit status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    let (mutant, args) = match split_mutant(args, mutants::find) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let args = without_stdio(&args);
    let Some(mutant) = mutant else { return io::json_rpc::run_json_rpc(&args) };
    if let Some(fault) = mutant.shell_fault() {
        let Ok(program) = std::env::current_exe() else { return 70 };
        let mut correct =
            vec![program.to_string_lossy().into_owned(), "peer".to_owned(), "json_rpc".to_owned()];
        correct.extend(["--stdio".to_owned()].into_iter().chain(args));
        return io::faults::run_with_fault(fault, &correct, variable(env)("TMPDIR").map(Into::into));
    }
    match io::json_rpc::parse(&args) {
        Ok(config) => io::stdio::run_machine(mutant.machine(config), io::json_rpc::STATUS_TERMINATED),
        Err(error) => refuse(&error),
    }
}

/// The arguments without the word that says that lines are spoken.
fn without_stdio(args: &[String]) -> Vec<String> {
    args.iter().filter(|arg| *arg != "--stdio").cloned().collect()
}

/// The reference server as a machine, or a mutant of it.
pub fn machine(args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let config = io::json_rpc::parse(&without_stdio(&args)).ok()?;
    Some(match mutant {
        Some(mutant) => mutant.machine(config),
        None => json_rpc::machine(config),
    })
}

/// The mutants of clauses that have rows; others have mutants before they have checks.
pub fn mutants() -> Vec<Mutant> {
    let clauses = super::boundary().clauses();
    let known = |clause: &&str| clauses.iter().any(|row| row.id.0 == **clause);
    mutants::all()
        .into_iter()
        .filter(|mutant| mutant.clauses.iter().all(known))
        .map(|mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: mutant.shell_fault().is_some(),
            unclaimed: None,
        })
        .collect()
}

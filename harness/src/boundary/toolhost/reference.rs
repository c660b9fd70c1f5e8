//! The reference toolhost and dispatcher as peers under test.

use peerproof_reference::machine::Machine;
use peerproof_reference::{io, toolhost};
use serde_json::json;

use super::probe::default_lease;
use super::role::{ROLES, reference_aid};
use crate::boundary::{Mutant, Reference};
use crate::clause::Side;
use crate::facts::Facts;

/// Arguments after `peerproof peer toolhost`.
pub fn commands() -> Vec<Reference> {
    let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    vec![
        Reference {
            side: Side::Provider,
            commands: vec![("run", own(&["--run", "{aid}"])), ("serve", own(&["--serve"]))],
        },
        Reference { side: Side::Consumer, commands: vec![("command", own(&["--dispatch", "{peer}"]))] },
    ]
}

/// What a configuration file for the reference peer of this side would say.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    for reference in commands().into_iter().filter(|reference| reference.side == side) {
        facts.commands.extend(reference.commands.into_iter().map(|(name, _)| name.to_owned()));
    }
    if side == Side::Provider {
        for (role, _) in ROLES {
            facts.roles.insert((*role).to_owned(), json!({ "aid": reference_aid(role) }));
        }
        for feature in ["idempotency", "ds_state", "http_get"] {
            facts.features.insert(feature.to_owned(), json!(true));
        }
        facts.features.insert("lease".to_owned(), default_lease());
    }
    facts
}

/// Runs the reference on the standard streams of this process and returns its exit status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    match args.split_first() {
        Some((first, rest)) if first == "--dispatch" => io::dispatch::run_dispatch(rest, &variable(env)),
        _ => io::toolhost::run_toolhost(args, &variable(env)),
    }
}

/// The reference toolhost as a machine; the dispatcher needs real processes around it.
pub fn machine(args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    match io::toolhost::parse(args, &variable(env)).ok()? {
        io::toolhost::Command::Host(config) => Some(toolhost::machine(*config)),
        io::toolhost::Command::List => None,
    }
}

/// All mutants.
pub fn mutants() -> Vec<Mutant> {
    Vec::new()
}

fn variable(env: &[(String, String)]) -> impl Fn(&str) -> Option<String> {
    |name| env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

//! The reference MCP server as a peer under test.

use peerproof_reference::mcp::mutants;
use peerproof_reference::{io, mcp};
use serde_json::Value;

use super::arguments::{refuse, run_with_fault, split_mutant};
use super::inside;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::drive::machine::{Action, Machine, MachineEvent};
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_mcp::role::{CALL, ROLES};
use peerproof_mcp::{full_facts, probe, server_knowledge};

pub mod properties;

struct Mcp;

/// The reference server.
pub fn played() -> &'static dyn Played {
    &Mcp
}

/// Arguments of the reference servers: the newest revision with and without tasks, and older ones.
const SERVERS: [&[&str]; 4] = [
    &["server"],
    &["server", "--without", "tasks"],
    &["server", "--newest", "2025-03-26", "--without", "logging", "--without", "completions"],
    &["server", "--newest", "2024-11-05"],
];

impl Played for Mcp {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_mcp::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let reference = |args: &&[&str]| Reference {
            side: Side::Provider,
            commands: vec![("command", own(args))],
            harmless: Harmless::ALL,
        };
        SERVERS.iter().map(reference).collect()
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        run(args, env)
    }

    fn facts_of(&self, reference: &Reference) -> Facts {
        let args = reference.commands.first().map(|(_, args)| args.as_slice()).unwrap_or_default();
        facts_of(args)
    }

    fn least_roles(&self, _side: Side) -> Vec<(&'static str, Value)> {
        // Each role has everything that a check needs, or is absent.
        full_facts::facts(Side::Provider)
            .roles
            .keys()
            .filter_map(|name| ROLES.iter().find(|role| *role == name))
            .map(|role| (*role, Value::Null))
            .collect()
    }

    fn plays(&self, of: &Reference, mutant: &Mutant) -> bool {
        let needs = mutants::find(mutant.id).and_then(|mutant| mutant.needs);
        let args = of.commands.first().map(|(_, args)| args.as_slice()).unwrap_or_default();
        match needs {
            Some(revision) => args.iter().any(|arg| arg == revision),
            None => args.len() == 1,
        }
    }

    fn reference_machine(&self, args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        machine(args)
    }

    fn mutants(&self) -> Vec<Mutant> {
        let mutant = |mutant: mutants::Mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: mutant.shell_fault().is_some(),
            unclaimed: mutant.unclaimed,
        };
        mutants::all().into_iter().map(mutant).collect()
    }
}

/// Facts about a reference server with these arguments, from its probes.
pub fn facts_of(args: &[String]) -> Facts {
    let mut facts = full_facts::facts(Side::Provider);
    facts.learned = Value::Null;
    for name in probe::CAPABILITIES {
        facts.features.remove(name);
    }
    let asked = |plan: Plan| machine(args).map(|machine| learned(machine, plan)).unwrap_or_default();
    for plan in probe::plans(&facts) {
        facts.learned = asked(plan);
    }
    for plan in probe::further(&facts) {
        server_knowledge::recount(&mut facts.learned, asked(plan));
    }
    probe::complete(&mut facts, &[]);
    facts
}

/// Knowledge from a probe of a machine, which answers at once.
fn learned(mut machine: Box<dyn Machine>, plan: Plan) -> Value {
    let (mut actions, mut requests, mut vars) = (Vec::new(), Vec::new(), Vars::new());
    machine.begin(0, &mut actions);
    let mut out = Vec::new();
    for step in plan.steps {
        let Act::Send { payload, .. } = &step.act else { continue };
        let Ok(bytes) = payload.expand(&vars) else { break };
        requests.extend(serde_json::from_slice::<Value>(&bytes).ok());
        machine.handle(MachineEvent::Stdin(&bytes), 0, &mut actions);
        let mut said = Vec::new();
        for action in actions.drain(..) {
            if let Action::Stdout(bytes) = action {
                said.extend_from_slice(&bytes);
            }
        }
        out.extend_from_slice(&said);
        if let Some(capture) = &step.capture {
            let reply = serde_json::from_slice::<Value>(&said).unwrap_or_default();
            let Some(value) = reply.pointer(&capture.pointer).and_then(Value::as_str) else { break };
            vars.insert(capture.var.clone(), value.to_owned());
        }
    }
    probe::of_messages(&requests, &out)
}

/// Runs the reference, or a mutant of it with `--mutant ID`, on the standard streams of this process; returns the exit
/// status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    let (mutant, args) = match split_mutant(args, mutants::find) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let args = of_server(&args);
    let Some(mutant) = mutant else { return io::mcp::run_mcp(&args) };
    if let Some(fault) = mutant.shell_fault() {
        let words: Vec<&str> = ["mcp"].into_iter().chain(args.first().map(String::as_str)).collect();
        return run_with_fault(fault, &words, args.iter().skip(1).cloned().collect(), env);
    }
    match io::mcp::parse(&args) {
        Ok(config) => io::stdio::run_machine(mutant.machine(config), io::mcp::STATUS_TERMINATED),
        Err(error) => refuse(&error),
    }
}

/// Arguments without those that a server need not know: the requested revision, and the tools that are called.
fn of_server(args: &[String]) -> Vec<String> {
    let is_other = |pair: &[String]| match pair {
        [option, value] if option == "--choice" => value.starts_with("revision="),
        [option, value] if option == "--without" => value == CALL,
        _ => false,
    };
    match args.windows(2).position(is_other) {
        Some(at) => [&args[..at], &args[at + 2..]].concat(),
        None => args.to_vec(),
    }
}

/// Machine of the reference server, or of a mutant.
pub fn machine(args: &[String]) -> Option<Box<dyn Machine>> {
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let config = io::mcp::parse(&of_server(&args)).ok()?;
    Some(inside(match mutant {
        Some(mutant) => mutant.machine(config),
        None => mcp::machine(config),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_server_is_the_reference() {
        let usual = full_facts::facts(Side::Provider);
        let own = facts_of(&["server".to_owned()]);
        assert_eq!(usual.learned, own.learned, "corpora/mcp/usual.json: {}", own.learned);
        assert_eq!(usual, own);
        assert!(!usual.learned.is_null());
    }
}

//! The reference server as a peer under test.

use peerproof_reference::json_rpc::mutants;
use peerproof_reference::{io, json_rpc};
use serde_json::{Value, json};

use super::arguments::{refuse, run_with_fault, split_mutant};
use super::inside;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_engine::drive::transport::in_process::UNIX_MS_AT_START;
use peerproof_json_rpc::full_facts;
use peerproof_json_rpc::role::{ROLES, reference_role};

pub(crate) mod client;
pub mod properties;
#[cfg(test)]
mod shrunk;
#[cfg(test)]
mod signed;

struct JsonRpc;

/// The reference server and client.
pub fn played() -> &'static dyn Played {
    &JsonRpc
}

impl Played for JsonRpc {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_json_rpc::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        commands()
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        run(args, env)
    }

    fn facts_of(&self, of: &Reference) -> Facts {
        facts_of(of)
    }

    fn least_roles(&self, side: Side) -> Vec<(&'static str, Value)> {
        least_roles(side)
    }

    fn plays(&self, of: &Reference, mutant: &Mutant) -> bool {
        of.side == mutant.side && plays(of, mutant.id)
    }

    fn reference_machine(&self, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        machine(args, env)
    }

    fn mutants(&self) -> Vec<Mutant> {
        mutants()
    }
}

/// Arguments of the reference with every feature.
const FEATURED: [&str; 7] =
    ["--auth-key", "peerproof-test-key", "--auth-key-id", "k1", "--rate-limit", "60/1", "--gzip"];

fn is_featured(reference: &Reference) -> bool {
    reference.commands.iter().any(|(_, args)| args.iter().any(|arg| arg == FEATURED[0]))
}

/// Facts from a configuration file for one of the reference servers.
pub fn facts_of(reference: &Reference) -> Facts {
    let mut facts = full_facts::facts(reference.side);
    facts.commands = reference.commands.iter().map(|(name, _)| (*name).to_owned()).collect();
    if is_featured(reference) {
        facts.features.insert("auth".to_owned(), json!({ "key": FEATURED[1], "key_id": FEATURED[3] }));
        facts.features.insert("gzip".to_owned(), json!(true));
        facts.features.insert("rate_limit".to_owned(), json!({ "requests": 60, "window_s": 1 }));
    }
    facts
}

/// True if a mutant is made from this reference: the one with every feature if its fault needs that.
pub(crate) fn plays(reference: &Reference, mutant: &str) -> bool {
    let needs = mutants::find(mutant).is_some_and(|mutant| mutant.needs.is_some());
    needs == is_featured(reference)
}

/// Arguments after `peerproof peer json_rpc`.
pub fn commands() -> Vec<Reference> {
    let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let featured = |how: &[&str]| own(&[how, FEATURED.as_slice()].concat());
    vec![
        Reference {
            side: Side::Provider,
            commands: vec![("command", own(&["--stdio"])), (HTTP, own(&["--http", "{addr}"]))],
            harmless: Harmless::ALL,
        },
        Reference {
            side: Side::Provider,
            commands: vec![("command", featured(&["--stdio"])), (HTTP, featured(&["--http", "{addr}"]))],
            harmless: Harmless::ALL,
        },
        client::command(),
    ]
}

/// Minimal role configurations: absent, and meaningless params for a method with a free result. Other roles need the
/// contract's params or a number from the check, so their minimum is to be absent.
pub(crate) fn least_roles(side: Side) -> Vec<(&'static str, Value)> {
    let free = reference_role("counter")["method"].clone();
    let absent = ROLES.iter().map(|role| (*role, Value::Null));
    let own = vec![
        ("named", json!({ "method": free, "params": {} })),
        (
            "named",
            json!({ "method": reference_role("named")["method"], "params": { "minuend": 42, "subtrahend": 23 } }),
        ),
        ("echo", json!({ "method": reference_role("echo")["method"], "params": {} })),
    ];
    match side {
        Side::Provider => absent.chain(own).collect(),
        Side::Consumer => Vec::new(),
    }
}

/// Runs the reference, or a mutant of it with `--mutant ID`, on the standard streams of this process; returns the exit
/// status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    if let Some(args) = client::arguments(args) {
        return client::run(&args, env);
    }
    let (mutant, args) = match split_mutant(args, mutants::find) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let args = without_stdio(&args);
    let Some(mutant) = mutant else { return io::json_rpc::run_json_rpc(&args) };
    match io::http_server::split_http(&args) {
        Ok((Some(address), rest)) if mutant.shell_fault().is_none() => {
            return match io::json_rpc::parse(&rest) {
                Ok(config) => io::http_faults::serve_mutant(address, &mutant, config),
                Err(error) => refuse(&error),
            };
        }
        Ok(_) => {}
        Err(error) => return refuse(&error),
    }
    if let Some(fault) = mutant.shell_fault() {
        return run_with_fault(fault, &["json_rpc", "--stdio"], args, env);
    }
    match io::json_rpc::parse(&args) {
        Ok(mut config) => {
            config.started_unix_ms = io::json_rpc::unix_ms();
            io::stdio::run_machine(mutant.machine(config), io::json_rpc::STATUS_TERMINATED)
        }
        Err(error) => refuse(&error),
    }
}

/// Arguments without the word for lines, and without the denial of the profile's methods, which the server has anyway.
fn without_stdio(args: &[String]) -> Vec<String> {
    let args: Vec<String> = args.iter().filter(|arg| *arg != "--stdio").cloned().collect();
    unclaimed(&args, "profile_methods")
}

/// Arguments without those that deny `feature`.
pub(super) fn unclaimed(args: &[String], feature: &str) -> Vec<String> {
    match args.windows(2).position(|pair| pair == ["--without", feature]) {
        Some(at) => [&args[..at], &args[at + 2..]].concat(),
        None => args.to_vec(),
    }
}

/// Machine of the reference server, or of a mutant.
pub fn machine(args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    if let Some(args) = client::arguments(args) {
        return client::machine(&args);
    }
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let mut config = io::json_rpc::parse(&without_stdio(&args)).ok()?;
    config.started_unix_ms = UNIX_MS_AT_START;
    Some(inside(match mutant {
        Some(mutant) => mutant.machine(config),
        None => json_rpc::machine(config),
    }))
}

/// Mutants of both sides. One with a clause that has no row survives.
pub fn mutants() -> Vec<Mutant> {
    mutants::all()
        .into_iter()
        .map(|mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: mutant.shell_fault().is_some() || mutant.carrier_fault().is_some(),
            unclaimed: None,
        })
        .chain(client::mutants())
        .collect()
}

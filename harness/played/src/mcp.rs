//! The reference MCP server as a peer under test.

use peerproof_reference::mcp::{Config, mutants};
use peerproof_reference::{io, mcp};
use serde_json::{Value, json};

use super::arguments::{refuse, run_with_fault, split_mutant};
use super::inside;
use peerproof_engine::boundary::Boundary;
use peerproof_engine::clause::Side;
use peerproof_engine::facts::Facts;
use peerproof_engine::machine::{Action, Event, Machine};
use peerproof_engine::played::{Mutant, Played, Reference};
use peerproof_engine::presentation::Harmless;
use peerproof_mcp::connection::{self, INITIALIZE};
use peerproof_mcp::known::{LISTS, Learning};
use peerproof_mcp::probe;
use peerproof_mcp::revision::NEWEST;
use peerproof_mcp::role::ROLES;

struct Mcp;

/// The reference server.
pub fn played() -> &'static dyn Played {
    &Mcp
}

impl Played for Mcp {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_mcp::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        commands()
    }

    fn run_reference(&self, args: &[String], _env: &[(String, String)]) -> i32 {
        run(args)
    }

    fn facts_of(&self, of: &Reference) -> Facts {
        facts_of(of)
    }

    fn least_roles(&self, side: Side) -> Vec<(&'static str, Value)> {
        match side {
            Side::Provider => ROLES.iter().map(|role| (*role, Value::Null)).collect(),
            Side::Consumer => Vec::new(),
        }
    }

    fn plays(&self, of: &Reference, mutant: &Mutant) -> bool {
        let needs = mutants::find(mutant.id).and_then(|mutant| mutant.needs);
        of.side == mutant.side && needs == older(of)
    }

    fn reference_machine(&self, args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        machine(args)
    }

    fn mutants(&self) -> Vec<Mutant> {
        let of = |mutant: mutants::Mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: mutant.shell_fault().is_some(),
            unclaimed: mutant.unclaimed,
        };
        mutants::all().into_iter().map(of).collect()
    }
}

/// Argument before the newest revision that a server takes.
const NEWEST_IS: &str = "--newest";

/// Revisions before the newest one at which faults show that show at no other.
const OLDER: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// Older revision that a reference server speaks, if it is one.
fn older(reference: &Reference) -> Option<&'static str> {
    let (_, args) = reference.commands.first()?;
    OLDER.into_iter().find(|revision| args.iter().any(|arg| arg == revision))
}

/// Arguments after `peerproof peer mcp`: a server of the newest revision, and one of each older one.
pub fn commands() -> Vec<Reference> {
    let server = |args: &[&str]| {
        let args = [io::mcp::WORD].iter().chain(args).map(|arg| (*arg).to_owned()).collect();
        Reference { side: Side::Provider, commands: vec![("command", args)], harmless: Harmless::ALL }
    };
    let older = OLDER.iter().map(|revision| server(&[NEWEST_IS, revision]));
    [server(&[])].into_iter().chain(older).collect()
}

/// Requests that [`learned`] makes at most.
const REQUESTS_MAX: usize = 40;

/// Knowledge that a probe of a reference server brings.
fn learned(reference: &Reference) -> Value {
    let mut learning = Learning::default();
    let Some(mut machine) = reference.commands.first().and_then(|(_, args)| machine(args)) else {
        return learning.done();
    };
    let mut ask = |method: &str, params: &Value| {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut actions = Vec::new();
        machine.handle(Event::Stdin(format!("{request}\n").as_bytes()), 0, &mut actions);
        let text = actions.iter().find_map(|action| match action {
            Action::Stdout(bytes) => serde_json::from_slice::<Value>(bytes).ok(),
            _ => None,
        });
        text.map_or(Value::Null, |reply| reply["result"].clone())
    };
    let revision = older(reference).unwrap_or(NEWEST.date());
    learning.opened(&ask(INITIALIZE, &connection::opening(revision, &json!({}))));
    let mut lists = LISTS.iter();
    let (mut list, mut params) = (lists.next(), json!({}));
    for _ in 0..REQUESTS_MAX {
        let Some(asked) = list else { break };
        let page = ask(asked.method, &params);
        learning.listed(asked, &page);
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => (list, params) = (lists.next(), json!({})),
        }
    }
    learning.done()
}

/// Facts that a configuration file for one of the reference servers would say, and those that a probe would find.
pub fn facts_of(reference: &Reference) -> Facts {
    let mut facts = Facts::new(reference.side);
    facts.commands.insert("command".to_owned());
    for (role, value) in [
        ("any", json!({ "name": "noargs", "arguments": {} })),
        ("echo", json!({ "name": "echo", "arg": "text" })),
        ("sleep", json!({ "name": "sleep", "arguments": { "ms": 400, "text": "{text}" }, "ms": 400 })),
        ("noargs", json!({ "name": "noargs" })),
        ("log", json!({ "name": "log", "arguments": {} })),
        ("ask", json!({ "name": "ask", "arguments": {} })),
        ("blob", json!({ "name": "blob", "arguments": { "bytes": "{bytes}" } })),
        ("counter", json!({ "name": "counter", "arguments": {} })),
    ] {
        facts.roles.insert(role.to_owned(), value);
    }
    facts.learned = learned(reference);
    probe::complete(&mut facts, &[]);
    if let Some(revision) = older(reference) {
        facts.choices.insert("revision".to_owned(), revision.to_owned());
    }
    facts
}

/// Runs the reference (or, with `--mutant ID`, a mutant of it) on the standard streams of this process and returns its
/// exit status.
pub fn run(args: &[String]) -> i32 {
    let (mutant, args) = match split_mutant(args, mutants::find) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let Some(mutant) = mutant else { return io::mcp::run_mcp(&args) };
    if let Some(fault) = mutant.shell_fault() {
        return run_with_fault(fault, &["mcp"], args, &[]);
    }
    match io::mcp::parse(&args) {
        Ok(config) => io::stdio::run_machine(mutant.machine(config), io::mcp::STATUS_TERMINATED),
        Err(error) => refuse(&error),
    }
}

/// The reference server as a machine, or a mutant of it.
pub fn machine(args: &[String]) -> Option<Box<dyn Machine>> {
    let (mutant, args) = split_mutant(args, mutants::find).ok()?;
    let config: Config = io::mcp::parse(&args).ok()?;
    Some(inside(match mutant {
        Some(mutant) => mutant.machine(config),
        None => mcp::machine(config),
    }))
}

//! The reference runner, service and runtime of Python tools as peers under test.

use peerproof_reference::io;
use peerproof_reference::python_tool::mutants;
use serde_json::{Value, json};

use super::arguments::{refuse, run_with_fault, split_mutant, split_presentation};
use super::presented::wrap_as;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_python_tool::face::COMMAND;
use peerproof_python_tool::roles::{ROLES, usual_entry};

pub mod properties;
pub(crate) mod runtime;

struct PythonTool;

/// Words that make this program the runner or the service.
const WORDS: [&str; 2] = ["peer", "python_tool"];

/// The reference peers.
pub fn played() -> &'static dyn Played {
    &PythonTool
}

impl Played for PythonTool {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_python_tool::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let over_http = (HTTP, own(&["service", "--http", "{addr}"]));
        let commands = vec![(COMMAND, own(&["runner"])), over_http];
        vec![Reference { side: Side::Provider, commands, harmless: Harmless::ALL }, runtime::command()]
    }

    fn facts_of(&self, reference: &Reference) -> Facts {
        let mut facts = self.boundary().full_facts(reference.side);
        let lacking = io::python_tool::lacking();
        facts.features.retain(|name, _| !lacking.contains(&name.as_str()));
        facts
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        if let Some(args) = runtime::arguments(args) {
            return runtime::run(args, env);
        }
        let split = split_presentation(args).and_then(|(how, args)| {
            split_mutant(&args, mutants::find).map(|(mutant, args)| (how, mutant, args))
        });
        let (how, mutant, args) = match split {
            Ok(split) => split,
            Err(error) => return refuse(&error),
        };
        if let Some(fault) = mutant.and_then(|mutant| mutant.shell_fault()) {
            return run_with_fault(fault, &WORDS[1..], args, env);
        }
        io::python_tool::run_python_tool(&args, &WORDS, mutant.as_ref(), |machine| wrap_as(machine, how))
    }

    fn least_roles(&self, side: Side) -> Vec<(&'static str, Value)> {
        let absent = ROLES.map(|role| (role, Value::Null));
        // Tool with another name than its role.
        let renamed = ["fail", "write", "connect"]
            .map(|role| (role, json!({ "entry": usual_entry(role), "tool": "t" })));
        match side {
            Side::Provider => [absent.as_slice(), renamed.as_slice()].concat(),
            Side::Consumer => Vec::new(),
        }
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // A tool needs a process.
        None
    }

    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        if side == Side::Consumer {
            return runtime::takes(extra);
        }
        io::python_tool::parse(&[&["runner".to_owned()], extra].concat()).is_ok()
    }

    fn mutants(&self) -> Vec<Mutant> {
        let entry = |mutant: mutants::Mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: true,
            unclaimed: mutant.unclaimed,
        };
        mutants::all().into_iter().map(entry).chain(runtime::mutants()).collect()
    }
}

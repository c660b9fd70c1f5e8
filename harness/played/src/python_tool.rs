//! The reference runner of Python tools as a peer under test.

use peerproof_reference::python_tool::mutants;
use peerproof_reference::{io, python_tool};

use super::arguments::{refuse, split_mutant, split_presentation, variable};
use super::presented::wrap_as;
use peerproof_engine::boundary::Boundary;
use peerproof_engine::clause::Side;
use peerproof_engine::facts::Facts;
use peerproof_engine::machine::Machine;
use peerproof_engine::played::{Mutant, Played, Reference};
use peerproof_engine::selftest::presentation::Harmless;
use peerproof_python_tool::face::COMMAND;

pub mod properties;

struct PythonTool;

/// The words by which this program is the runner.
const WORDS: [&str; 2] = ["peer", "python_tool"];

/// The reference runner.
pub fn played() -> &'static dyn Played {
    &PythonTool
}

impl Played for PythonTool {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_python_tool::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let args = vec!["runner".to_owned()];
        vec![Reference { side: Side::Provider, commands: vec![(COMMAND, args)], harmless: Harmless::ALL }]
    }

    fn facts_of(&self, reference: &Reference) -> Facts {
        let mut facts = self.boundary().usual_facts(reference.side);
        facts.features.retain(|name, _| !io::python_tool::lacking().contains(&name.as_str()));
        facts
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        let split = split_presentation(args).and_then(|(how, args)| {
            split_mutant(&args, mutants::find).map(|(mutant, args)| (how, mutant, args))
        });
        let (how, mutant, args) = match split {
            Ok(split) => split,
            Err(error) => return refuse(&error),
        };
        if let Some(fault) = mutant.and_then(|mutant| mutant.shell_fault()) {
            let Ok(program) = std::env::current_exe() else { return 70 };
            let own = [program.to_string_lossy().as_ref(), WORDS[0], WORDS[1]].map(str::to_owned);
            let correct: Vec<String> = own.into_iter().chain(args).collect();
            return io::faults::run_with_fault(fault, &correct, variable(env)("TMPDIR").map(Into::into));
        }
        io::python_tool::run_python_tool(&args, &WORDS, |config| match mutant {
            Some(mutant) => mutant.machine(config),
            None => wrap_as(python_tool::machine(config), how),
        })
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // A tool needs a process.
        None
    }

    fn reference_takes(&self, _side: Side, extra: &[String]) -> bool {
        io::python_tool::parse(&[&["runner".to_owned()], extra].concat()).is_ok()
    }

    fn mutants(&self) -> Vec<Mutant> {
        let entry = |mutant: mutants::Mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: true,
            unclaimed: None,
        };
        mutants::all().into_iter().map(entry).collect()
    }
}

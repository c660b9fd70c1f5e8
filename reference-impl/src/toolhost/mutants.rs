//! Mutants: the correct toolhost wrapped at a seam so that it breaks a clause on purpose.
//!
//! A suite that judges toolhosts proves with them that its checks can fail. A mutant changes the configuration, replaces
//! a component, rewrites lines on the way in or replies on the way out, or wraps the whole machine. The correct code
//! has no branch for any of them.

mod machines;
mod parts;
mod shell;
mod tools;
mod wire;
mod wire_edit;
mod wire_members;
mod wire_session;
mod wire_state;
mod wire_syntax;
mod wire_table;

use super::{Components, Config, Mode, machine_with};
use crate::machine::Machine;

pub use shell::ShellFault;

/// A toolhost that breaks clauses.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// Stable kebab id.
    pub id: &'static str,
    /// Ids of the clauses that it breaks; a check of each has to notice.
    pub clauses: &'static [&'static str],
    /// One sentence: what it does wrong.
    pub fault: &'static str,
    /// A feature that this peer does not claim to have: the fault lies in having a part of it.
    pub unclaimed: Option<&'static str>,
    seam: Seam,
}

/// Where a mutant is cut in.
#[derive(Clone, Copy)]
enum Seam {
    /// Another configuration.
    Config(fn(&mut Config)),
    /// Other components.
    Parts(fn(&mut Config, &mut Components)),
    /// Lines rewritten on the way in, replies on the way out.
    Wire(wire::Rewrite),
    /// The machine as a whole wrapped.
    Machine(fn(Box<dyn Machine + Send>) -> Box<dyn Machine + Send>),
    /// The process around a correct machine misbehaves.
    Shell(ShellFault),
}

impl Mutant {
    const fn new(
        id: &'static str,
        clauses: &'static [&'static str],
        fault: &'static str,
        seam: Seam,
    ) -> Self {
        Self { id, clauses, fault, unclaimed: None, seam }
    }

    /// As a peer that does not claim `feature`.
    const fn without(mut self, feature: &'static str) -> Self {
        self.unclaimed = Some(feature);
        self
    }

    /// The fault of the process around the machine, if it is one; such a mutant shows in a real process only.
    pub fn shell_fault(&self) -> Option<ShellFault> {
        match self.seam {
            Seam::Shell(fault) => Some(fault),
            _ => None,
        }
    }

    /// The mutant as a machine (a correct one where the fault lies in the shell).
    pub fn machine(&self, mut config: Config) -> Box<dyn Machine + Send> {
        let run = matches!(config.mode, Mode::Run { .. });
        if let Seam::Config(change) = self.seam {
            change(&mut config);
        }
        let mut components = Components::new(&config);
        if let Seam::Parts(change) = self.seam {
            change(&mut config, &mut components);
        }
        let machine = machine_with(config, components);
        match self.seam {
            Seam::Wire(rewrite) => Box::new(wire::Wire::new(machine, rewrite, run)),
            Seam::Machine(wrap) => wrap(machine),
            Seam::Config(_) | Seam::Parts(_) | Seam::Shell(_) => machine,
        }
    }
}

/// A correct peer that does not have a feature: what a request says about it is ignored, as unknown members are.
pub fn without_feature(feature: &str, machine: Box<dyn Machine + Send>) -> Box<dyn Machine + Send> {
    use wire::{Rewrite, Wire, unchanged};
    use wire_edit::dropping;
    let request: wire_edit::OnRequest = match feature {
        "idempotency" => |_, request| dropping(request, |name, _| name == "idempotency_key"),
        "lease" => |_, request| dropping(request, |name, _| name == "_lease_token"),
        _ => return machine,
    };
    Box::new(Wire::new(machine, Rewrite { request, reply: unchanged }, false))
}

/// All mutants, by the order of the clauses.
pub fn all() -> Vec<Mutant> {
    [
        wire_table::MUTANTS,
        wire_syntax::SYNTAX_MUTANTS,
        wire_members::MEMBER_MUTANTS,
        wire_session::SESSION_MUTANTS,
        wire_state::STATE_MUTANTS,
        machines::MUTANTS,
        parts::MUTANTS,
        tools::MUTANTS,
        shell::MUTANTS,
    ]
    .concat()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine::{Action, Event};

    #[test]
    fn ids_are_unique_and_faults_are_sentences() {
        let mut seen = BTreeSet::new();
        for mutant in all() {
            assert!(seen.insert(mutant.id), "{} is there twice", mutant.id);
            assert!(mutant.fault.ends_with('.'), "{}", mutant.id);
            assert!(!mutant.clauses.is_empty(), "{}", mutant.id);
        }
    }

    /// A mutant that breaks everything proves nothing: each answers something to a plain request, but for those that
    /// are about exactly that.
    #[test]
    fn mutants_start_and_take_input() {
        for mutant in all() {
            let mut machine = mutant.machine(Config::new(Mode::Serve));
            let mut actions = Vec::new();
            let request = b"{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{\\\"a\\\":1}\"}\n";
            for now in 0..3 {
                machine.handle(Event::Stdin(request), now, &mut actions);
            }
            machine.handle(Event::Wake, 10, &mut actions);
            let spoke =
                actions.iter().any(|action| matches!(action, Action::Stdout(bytes) if !bytes.is_empty()));
            assert!(spoke, "{} is silent", mutant.id);
        }
    }
}

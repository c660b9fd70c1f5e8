//! Mutants: the correct server wrapped at a seam so that it breaks a clause on purpose.
//!
//! A suite that judges JSON-RPC servers proves with them that its checks can fail. A mutant changes the configuration,
//! replaces a component, rewrites lines on the way in or out, or wraps the whole machine. The correct code has no branch
//! for any of them.
//!
//! Clauses are those of `corpora/json_rpc/clauses.toml`. The topics `SIZE`, `TIME`, `CONC`, `STREAM`, `AUTH`, `RATE`,
//! `EXEC`, `PLAN`, `CTX` and `VALID` have mutants here before they have rows there.

mod edit;
mod incoming;
mod machines;
mod outgoing;
mod parts;
mod wire;

use super::{Components, Config, machine_with};
use crate::machine::Machine;
use crate::toolhost::mutants::ShellFault;

/// Which side a mutant plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The server.
    Provider,
    /// The client.
    Consumer,
}

/// A peer that breaks clauses.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// Stable kebab id.
    pub id: &'static str,
    /// Topics that it breaks; a check of each has to notice.
    pub clauses: &'static [&'static str],
    /// Which side it plays.
    pub side: Side,
    /// One sentence: what it does wrong.
    pub fault: &'static str,
    /// The feature without which the fault does not show: `auth`, `rate_limit` or `gzip` has to be configured.
    pub needs: Option<&'static str>,
    seam: Seam,
}

/// Where a mutant is cut in.
#[derive(Clone, Copy)]
enum Seam {
    /// Another configuration.
    Config(fn(&mut Config)),
    /// Other components.
    Parts(fn(&Config, &mut Components)),
    /// Lines rewritten on the way in and out.
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
        Self { id, clauses, side: Side::Provider, fault, needs: None, seam }
    }

    /// One whose fault shows with this feature only.
    const fn needing(mut self, feature: &'static str) -> Self {
        self.needs = Some(feature);
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
        if let Seam::Config(change) = self.seam {
            change(&mut config);
        }
        let mut components = Components::new(&config);
        if let Seam::Parts(change) = self.seam {
            change(&config, &mut components);
        }
        let machine = machine_with(config, components);
        match self.seam {
            Seam::Wire(rewrite) => Box::new(wire::Wire::new(machine, rewrite)),
            Seam::Machine(wrap) => wrap(machine),
            Seam::Config(_) | Seam::Parts(_) | Seam::Shell(_) => machine,
        }
    }
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [outgoing::MUTANTS, incoming::MUTANTS, parts::MUTANTS, machines::MUTANTS].concat()
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
            assert!(mutant.clauses.iter().all(|clause| clause.starts_with("RPC-")), "{}", mutant.id);
        }
    }

    /// A mutant that breaks everything proves nothing: each answers something to plain requests.
    #[test]
    fn mutants_start_and_take_input() {
        for mutant in all() {
            let mut machine = mutant.machine(Config::default());
            let mut actions = Vec::new();
            for now in 0..3 {
                let request = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.echo\",\"params\":{{\"a\":1}},\"id\":{now}}}\n"
                );
                machine.handle(Event::Stdin(request.as_bytes()), now, &mut actions);
            }
            machine.handle(Event::Wake, 10, &mut actions);
            let spoke =
                actions.iter().any(|action| matches!(action, Action::Stdout(bytes) if !bytes.is_empty()));
            assert!(spoke, "{} is silent", mutant.id);
        }
    }
}

//! Mutants: the correct toolhost, wrapped at a seam, with one deliberate fault.
//!
//! They prove that the checks for toolhosts can fail. A mutant changes the configuration, replaces a component,
//! rewrites lines on the way in or replies on the way out, or wraps the whole machine. The correct code has no branch
//! for any of them.

mod careless;
mod kept;
mod machines;
mod parts;
mod patience;
mod tools;
mod wire;
mod wire_edit;
mod wire_members;
mod wire_session;
mod wire_state;
mod wire_syntax;
mod wire_table;

use super::tool::ToolEntry;
use super::{Components, Config, Mode, machine_with};
use crate::machine::Machine;
use crate::mutant::{self, Inner, ShellFault, shell};

/// A toolhost that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Components, Rewiring>;

/// Wrapper around a correct machine.
#[derive(Clone, Copy)]
pub enum Rewiring {
    /// Rewrites requests on the way in, and replies on the way out.
    Lines(wire::Rewrite),
    /// Wraps the machine in run mode only.
    RunMode(fn(Inner) -> Inner),
}

impl Mutant {
    /// The mutant as a machine. If the fault lies in the shell, the machine is correct.
    pub fn machine(&self, config: Config) -> Box<dyn Machine + Send> {
        let run = matches!(config.mode, Mode::Run { .. });
        let rewire = |machine, rewiring| -> Inner {
            match rewiring {
                Rewiring::Lines(rewrite) => Box::new(wire::Wire::new(machine, rewrite, run)),
                Rewiring::RunMode(wrap) if run => wrap(machine),
                Rewiring::RunMode(_) => machine,
            }
        };
        self.build(config, Components::new, machine_with, rewire)
    }
}

/// Mutants of the process around the machine.
const SHELL_MUTANTS: &[Mutant] = &[
    shell("ignores-sigterm", &["TH-PROC-04"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell("leaves-a-child", &["TH-PROC-05"], "A child process outlives the peer.", ShellFault::LeavesChild),
    shell("leaves-a-file", &["TH-PROC-06"], "A temporary file outlives the peer.", ShellFault::LeavesFile),
];

/// A correct peer without a feature: it ignores the feature's members like unknown ones.
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

/// All mutants in the order of the clauses.
pub fn all() -> Vec<Mutant> {
    [
        wire_table::MUTANTS,
        wire_syntax::SYNTAX_MUTANTS,
        wire_members::MEMBER_MUTANTS,
        wire_session::SESSION_MUTANTS,
        wire_state::STATE_MUTANTS,
        careless::CARELESS_MUTANTS,
        kept::MUTANTS,
        machines::MUTANTS,
        patience::MUTANTS,
        parts::MUTANTS,
        tools::MUTANTS,
        SHELL_MUTANTS,
    ]
    .concat()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

/// Entry of a tool that is to be replaced.
fn entry<'a>(components: &'a mut Components, aid: &str) -> Option<&'a mut ToolEntry> {
    components.tools.entries.iter_mut().find(|entry| *entry.aid == *aid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Action, Event};

    #[test]
    fn the_table_is_sound() {
        mutant::assert_sound(&all(), "TH-");
    }

    /// Each mutant answers a plain request, because one that breaks everything proves nothing. Mutants whose fault is
    /// exactly that are excepted.
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

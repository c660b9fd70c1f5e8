//! Mutants: the correct server, wrapped at a seam, with one deliberate fault.
//!
//! A mutant changes the configuration, replaces a component, rewrites lines on the way in or out, or wraps the whole
//! machine. The correct code has no branch for any of them. Clauses are those of contract §9, parts b and c.

mod calls;
mod client;
mod edit;
mod features;
mod lifecycle;
mod lists;
mod machines;
mod malformed;
mod messages;
mod running;
mod tasks;

use super::{Components, Config, machine_with};
use crate::json_rpc::mutants::wire;
use crate::machine::Machine;
use crate::mutant;

/// A server that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Components, wire::Rewrite>;

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config) -> Box<dyn Machine + Send> {
        let rewire = |machine, rewrite| -> mutant::Inner { Box::new(wire::Wire::new(machine, rewrite)) };
        self.build(config, Components::new, machine_with, rewire)
    }
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [
        messages::MUTANTS,
        malformed::MUTANTS,
        lifecycle::MUTANTS,
        client::MUTANTS,
        lists::MUTANTS,
        calls::MUTANTS,
        running::MUTANTS,
        tasks::MUTANTS,
        features::MUTANTS,
        machines::MUTANTS,
    ]
    .concat()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        mutant::assert_sound(&all(), "MCP-");
    }
}

//! Mutants: the correct client, wrapped at a seam, with one deliberate fault.
//!
//! A mutant changes the configuration, replaces a component, or rewrites lines between the client and its server or
//! its results file. The correct code has no branch for any of them.

mod lines;
mod machines;
mod parts;
mod wire;

use super::{Components, Config, machine_with};
use crate::machine::Machine;
use crate::mutant;

/// A client that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Components, wire::Lines>;

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config) -> Box<dyn Machine + Send> {
        let rewire = |machine, lines| -> mutant::Inner { Box::new(wire::Wire::new(machine, lines)) };
        self.build(config, Components::new, machine_with, rewire)
    }
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [lines::MUTANTS, parts::MUTANTS, machines::MUTANTS].concat()
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
        mutant::assert_sound(&all(), "RPC-CLIENT-");
        assert!(all().iter().all(|mutant| mutant.id.starts_with("client-")));
    }
}

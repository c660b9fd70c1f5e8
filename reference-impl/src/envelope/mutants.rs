//! Mutants: the correct engine wrapped at a seam so that it breaks a clause on purpose.
//!
//! Most of them rewrite the envelope on its way in or out, so that the correct engine has no branch for any of them.
//! Clauses are those of `corpora/envelope/clauses.toml`.

/// Table of mutants that rewrite envelopes: id, clauses, fault and edit.
macro_rules! table {
    ($($id:literal [$($clause:literal),+] $fault:literal => $edit:expr;)*) => {
        &[$($crate::envelope::mutants::Mutant::new($id, &[$($clause),+], $fault, $crate::mutant::Seam::Wire($edit))),*]
    };
}

mod edit;
mod http;
mod incoming;
mod outgoing;
mod whole;

use super::{Config, machine};
use crate::machine::Machine;
use crate::mutant;

pub use edit::Edit;

/// An engine that breaks clauses.
pub type Mutant = mutant::Mutant<Config, (), Edit, mutant::http::HttpFault>;

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config) -> Box<dyn Machine + Send> {
        let rewire = |machine, edit| -> mutant::Inner { Box::new(edit::Edited::new(machine, edit)) };
        self.build(config, |_| (), |config, ()| machine(config), rewire)
    }
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [incoming::MUTANTS, outgoing::MUTANTS, whole::MUTANTS, http::MUTANTS].concat()
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
        mutant::assert_sound(&all(), "ENV-");
    }
}

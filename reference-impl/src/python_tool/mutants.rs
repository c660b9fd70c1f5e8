//! Mutants: the correct runner or service, wrapped at a seam, with one deliberate fault.
//!
//! Most of them rewrite the request on its way in, the reply on its way out, or a line of the shim, so that the
//! correct runner has no branch for any of them. Clauses are those of `corpora/python_tool/clauses.toml`.

/// Table of mutants that rewrite input and output: id, clauses, fault and edit.
macro_rules! table {
    ($($id:literal [$($clause:literal),+] $fault:literal => $edit:expr;)*) => {
        &[$($crate::python_tool::mutants::Mutant::new($id, &[$($clause),+], $fault, $crate::mutant::Seam::Wire($edit))),*]
    };
}

mod edit;
mod guarantees;
mod incoming;
mod near;
mod outgoing;
mod service;
mod whole;

use super::{Config, Runner};
use crate::json::Value;
use crate::machine::Machine;
use crate::mutant;
use crate::mutant::http::HttpFault;

pub use edit::Edit;

/// A runner that breaks clauses.
pub type Mutant = mutant::Mutant<Config, (), Edit, HttpFault>;

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, mut config: Config) -> Box<dyn Machine + Send> {
        if let Some(Edit::Printing { from, to }) = self.rewriting() {
            patch(&mut config, from, to);
        }
        let rewire = |machine, edit| -> mutant::Inner { Box::new(edit::Edited::new(machine, edit)) };
        self.build(config, |_| (), |config, ()| Box::new(Runner::new(config)), rewire)
    }

    /// Configuration with the mutant's change.
    pub fn configured(&self, mut config: Config) -> Config {
        self.configure(&mut config);
        config
    }
}

/// Replaces a line of the shim.
fn patch(config: &mut Config, from: &str, to: &str) {
    debug_assert!(config.shim.contains(from), "the shim has no {from:?}");
    config.shim = config.shim.replacen(from, to, 1);
}

/// Role that a request calls.
fn role(request: &Value) -> &str {
    let entry = request.get("entry").and_then(Value::as_str).unwrap_or_default();
    entry.split_once(':').map_or("", |(_, function)| function)
}

/// True if a request asks for a guarantee.
fn asks(request: &Value) -> bool {
    let given = request.get("capability_context").and_then(|context| context.get("guarantees"));
    let given = given.and_then(Value::as_object).unwrap_or_default();
    given.iter().any(|(_, value)| value.as_bool() == Some(true))
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    let runners =
        [incoming::MUTANTS, outgoing::MUTANTS, guarantees::MUTANTS, guarantees::CONFIGURED, whole::MUTANTS];
    let unusual = [near::MUTANTS, near::CONFIGURED, near::CARRIED].concat();
    [runners.concat(), unusual, [service::MUTANTS, service::CARRIED].concat()].concat()
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
        mutant::assert_sound(&all(), "PT-");
        // Mutants that patch the shim find their lines in it.
        all().iter().for_each(|mutant| drop(mutant.machine(Config::default())));
    }
}

//! Mutants: the correct server, wrapped at a seam, with one deliberate fault.
//!
//! They prove that the checks for JSON-RPC servers can fail. A mutant changes the configuration, replaces a component,
//! rewrites lines on the way in or out, or wraps the whole machine. The correct code has no branch for any of them.
//!
//! Clauses are those of `corpora/json_rpc/clauses.toml`.

pub(crate) mod edit;
mod exact;
mod http;
mod incoming;
mod incoming_profile;
mod machines;
mod near;
mod outgoing;
mod parts;
pub(crate) mod wire;

use super::{Components, Config, machine_with};
use crate::machine::Machine;
use crate::mutant;

/// A server that breaks clauses. Carrier faults break the transport over HTTP. A mutant may need the feature `auth`,
/// `rate_limit` or `gzip`.
pub type Mutant = mutant::Mutant<Config, Components, wire::Rewrite, mutant::http::HttpFault>;

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
        outgoing::MUTANTS,
        incoming::MUTANTS,
        incoming_profile::MUTANTS,
        parts::MUTANTS,
        machines::MUTANTS,
        near::MUTANTS,
        exact::MUTANTS,
        http::MUTANTS,
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
    use crate::machine::{Action, Event};

    #[test]
    fn the_table_is_sound() {
        mutant::assert_sound(&all(), "RPC-");
    }

    /// Each mutant answers plain requests, because one that breaks everything proves nothing.
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

//! Mutants: the correct server wrapped at a seam so that it breaks a clause on purpose.
//!
//! A suite that judges JSON-RPC servers proves with them that its checks can fail. A mutant changes the configuration,
//! replaces a component, rewrites lines on the way in or out, or wraps the whole machine. The correct code has no branch
//! for any of them.
//!
//! The ids of clauses are topics:
//!
//! | topic | what it is about |
//! |---|---|
//! | `RPC-FRAME-01` | one line for each message, nothing else on standard output |
//! | `RPC-FRAME-02` | any chunking means the same |
//! | `RPC-FRAME-03` | a CR before the LF is tolerated |
//! | `RPC-SIZE-01` | 1,000,000 bytes are accepted |
//! | `RPC-SIZE-02` | more than 1,048,576 bytes are refused, once, with -32600 and id null |
//! | `RPC-SIZE-03` | after a refused line the next one is read |
//! | `RPC-SIZE-04` | refusing takes no memory |
//! | `RPC-JSON-01` | malformed JSON is -32700 with id null |
//! | `RPC-JSON-02` | invalid UTF-8 is refused |
//! | `RPC-JSON-03` | 64 levels work; no depth ends the server |
//! | `RPC-JSON-04` | what is echoed keeps its value |
//! | `RPC-ID-01` | an id comes back with its value and type |
//! | `RPC-ID-02` | an id that is no string, number or null is refused |
//! | `RPC-ID-03` | errors carry the id of the request |
//! | `RPC-ID-04` | two requests with one id are both answered |
//! | `RPC-REQ-01` | what is no request is -32600 |
//! | `RPC-REQ-02` | extra members are ignored |
//! | `RPC-REQ-03` | a refused request has no effect |
//! | `RPC-REQ-04` | a response object does no harm |
//! | `RPC-NOTE-01` | notifications are never answered |
//! | `RPC-NOTE-02` | a notification is executed once |
//! | `RPC-REPLY-01` | `jsonrpc` is "2.0" |
//! | `RPC-REPLY-02` | `result` or `error`, not both and not none |
//! | `RPC-REPLY-03` | one response for each request |
//! | `RPC-REPLY-04` | every response has an `id` |
//! | `RPC-ERR-01` | an error has an integer code and a message |
//! | `RPC-ERR-02` | each kind of error has its code |
//! | `RPC-ERR-03` | `data.type` tells the kinds of -32000 apart |
//! | `RPC-BATCH-01` | a batch is answered by an array |
//! | `RPC-BATCH-02` | every element with an id is answered |
//! | `RPC-BATCH-03` | `[]` is one -32600 |
//! | `RPC-BATCH-04` | an invalid element gets its own error |
//! | `RPC-BATCH-05` | a batch of notifications is silent |
//! | `RPC-BATCH-06` | up to 10,000 elements work |
//! | `RPC-PARAM-01` | positional params for named ones are -32602 |
//! | `RPC-PARAM-02` | missing members and unknown enum values are -32602 |
//! | `RPC-METHOD-01` … `04` | `execute_task`, `create_plan`, `validate_code`, `update_context` |
//! | `RPC-TIME-01` | a timeout is -32000/TIMEOUT in its time |
//! | `RPC-TIME-02` | nothing follows a timeout |
//! | `RPC-CONC-01` | a slow call holds up nothing where that is claimed |
//! | `RPC-STREAM-01` … `04` | start, gapless sequence, end with its count, then the response |
//! | `RPC-AUTH-01` … `04` | unsigned and wrongly signed; stale; repeated; canonical form |
//! | `RPC-RATE-01` | more than the limit is -32002 |
//! | `RPC-RATE-02` | `retry_after_ms` tells when |
//! | `RPC-GZIP-01` | limits apply to the inflated size |
//! | `RPC-PROC-01` | the end of input ends the server with 0 after the last reply |
//! | `RPC-PROC-02` | SIGTERM ends it |
//! | `RPC-PROC-03` | nothing outlives it |

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
        let topics = include_str!("mutants.rs");
        let mut seen = BTreeSet::new();
        for mutant in all() {
            assert!(seen.insert(mutant.id), "{} is there twice", mutant.id);
            assert!(mutant.fault.ends_with('.'), "{}", mutant.id);
            assert!(!mutant.clauses.is_empty(), "{}", mutant.id);
            for clause in mutant.clauses {
                let row = format!("//! | `{}", clause.rsplit_once('-').map_or(*clause, |(topic, _)| topic));
                assert!(topics.contains(&row), "{} names {clause}", mutant.id);
            }
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

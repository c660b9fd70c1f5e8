//! Mutants of the rule-based driver.

mod output;
mod payload;
mod process;

use super::super::{Config, Driver, Rules, TagRules};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{self, Inner, Seam};

pub use process::DriverFault;

/// A driver that breaks clauses. Carrier faults lie outside the decision.
pub type Mutant = mutant::Mutant<Config, Box<dyn Rules>, Rewiring, DriverFault>;

/// Rewriting of a driver's input or output.
#[derive(Debug, Clone, Copy)]
pub enum Rewiring {
    /// Edits the payload.
    Payload(fn(&[u8]) -> Vec<u8>),
    /// Refuses payloads for which the function returns true.
    Refusal(fn(&[u8]) -> bool),
    /// Replaces all of standard output, given the block without its LF.
    Block(fn(&str) -> Vec<u8>),
    /// Edits output and exit for a payload.
    Answer(fn(&[u8], Answer) -> Answer),
}

/// Output and exit of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The whole standard output.
    pub stdout: Vec<u8>,
    /// The last action: [`Action::Exit`] or [`Action::Abort`].
    pub end: Action,
}

impl Answer {
    /// Block with its LF, and status 0.
    pub(super) fn block(block: &str) -> Self {
        Self { stdout: format!("{block}\n").into_bytes(), end: Action::Exit(0) }
    }

    /// Text of the block; empty if it is not UTF-8.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_default().trim_end()
    }

    /// True if it is a PICK.
    pub(super) fn is_pick(&self) -> bool {
        self.text().starts_with("<PICK>")
    }

    /// Splits actions into the answer, if there is an end, and all other actions.
    pub(super) fn of(actions: Vec<Action>) -> (Option<Self>, Vec<Action>) {
        let (mut stdout, mut end, mut rest) = (Vec::new(), None, Vec::new());
        for action in actions {
            match action {
                Action::Stdout(bytes) => stdout.extend(bytes),
                Action::Exit(_) | Action::Abort => end = Some(action),
                other => rest.push(other),
            }
        }
        (end.map(|end| Self { stdout, end }), rest)
    }

    /// The answer as actions.
    pub(super) fn actions(self) -> [Action; 2] {
        [Action::Stdout(self.stdout), self.end]
    }
}

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config) -> Inner {
        let build = |config, rules| -> Inner { Box::new(Driver::with_rules(config, rules)) };
        let rewire =
            |inner, rewiring| -> Inner { Box::new(Rewired { inner, rewiring, payload: Vec::new() }) };
        self.build(config, |_| Box::new(TagRules), build, rewire)
    }
}

const fn wire(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewiring: Rewiring,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(rewiring))
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [process::MUTANTS, payload::MUTANTS, output::MUTANTS].concat()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

/// A payload that every driver refuses.
const NO_PAYLOAD: &[u8] = b"!";

/// A driver with rewritten payload and answer.
struct Rewired {
    inner: Inner,
    rewiring: Rewiring,
    payload: Vec<u8>,
}

impl Machine for Rewired {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        match event {
            Event::Stdin(bytes) => {
                self.payload.extend_from_slice(bytes);
                return;
            }
            Event::StdinEof => {
                let payload = match self.rewiring {
                    Rewiring::Payload(rewrite) => rewrite(&self.payload),
                    Rewiring::Refusal(refuses) if refuses(&self.payload) => NO_PAYLOAD.to_vec(),
                    _ => self.payload.clone(),
                };
                if !payload.is_empty() {
                    self.inner.handle(Event::Stdin(&payload), now, &mut inner);
                }
                self.inner.handle(Event::StdinEof, now, &mut inner);
            }
            other => self.inner.handle(other, now, &mut inner),
        }
        let (answer, rest) = Answer::of(inner);
        actions.extend(rest);
        let Some(answer) = answer else { return };
        let answer = match self.rewiring {
            Rewiring::Block(rewrite) if !answer.stdout.is_empty() => {
                Answer { stdout: rewrite(answer.text()), ..answer }
            }
            Rewiring::Answer(rewrite) => rewrite(&self.payload, answer),
            _ => answer,
        };
        actions.extend(answer.actions());
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

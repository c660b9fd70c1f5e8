//! Mutants of the selector.

mod admit;
mod allowed;
mod blocks;
mod breaker;
mod command;
mod launch;
mod payload;
mod rewrite;
mod selections;
mod stream;
mod time;

use super::super::block::{Block, BlockError};
use super::super::guard::{Admitted, Denied, Files, Guard};
use super::super::{Admission, Blocks, Breaker, Failure, Parts, Request, Requests, Selector, SelectorConfig};
use crate::machine::{Action, DriveOrder, Event, Machine, Millis};
use crate::mutant::{self, Inner, Seam};
use crate::refusal::Refusal;

pub use launch::LaunchFault;

/// A selector that breaks clauses. Carrier faults lie in the start and end of drivers.
pub type Mutant = mutant::Mutant<SelectorConfig, Parts, Rewiring, LaunchFault>;

/// Rewriting of a selector's input, decisions or output.
#[derive(Debug, Clone, Copy)]
pub enum Rewiring {
    /// Edits the variables that it reads. The driver still sees the original ones.
    Variables(fn(&mut Vec<(String, String)>)),
    /// Edits an input line before it is read.
    Line(fn(&[u8]) -> Vec<u8>),
    /// Edits a request after it is read.
    Request(fn(&mut Request)),
    /// Replaces the decision on a command.
    Admission(fn(&Guard, &[String], &dyn Files) -> Result<Admitted, Denied>),
    /// Edits the start of a driver.
    Order(fn(&mut DriveOrder)),
    /// Edits a driver's output before it is read.
    Output(fn(&[u8]) -> Vec<u8>),
    /// Counts only failures for which the function returns true.
    Counted(fn(&Failure) -> bool),
    /// Edits a Selection's line.
    Selection(fn(&[u8]) -> Vec<u8>),
}

impl Rewiring {
    /// Installs itself in the parts, if it belongs there.
    fn fit(self, config: &SelectorConfig, mut parts: Parts) -> Parts {
        match self {
            Self::Line(_) | Self::Request(_) => {
                parts.requests = Box::new(Reading { inner: parts.requests, rewiring: self });
            }
            Self::Output(rewrite) => {
                parts.blocks = Box::new(Rewritten { inner: parts.blocks, rewrite });
            }
            Self::Admission(admit) => {
                parts.admission = Box::new(Admitting { guard: Parts::guard(config), admit });
            }
            Self::Counted(counts) => {
                parts.breaker = Box::new(Counting { inner: parts.breaker, counts });
            }
            Self::Variables(_) | Self::Order(_) | Self::Selection(_) => {}
        }
        parts
    }
}

impl Mutant {
    /// Variables as this selector reads them.
    pub fn variables(&self, variables: &[(String, String)]) -> Vec<(String, String)> {
        let mut variables = variables.to_vec();
        if let Some(Rewiring::Variables(change)) = self.rewriting() {
            change(&mut variables);
        }
        variables
    }

    /// The mutant as a machine. If the fault lies around the machine, the machine is correct. `config` must be made
    /// from [`Mutant::variables`].
    pub fn machine(&self, config: SelectorConfig, files: Box<dyn Files>) -> Inner {
        let build = |config, parts| -> Inner {
            let parts = match self.rewriting() {
                Some(rewiring) => rewiring.fit(&config, parts),
                None => parts,
            };
            Box::new(Selector::new(config, parts))
        };
        let rewire = |inner, rewiring| -> Inner { Box::new(Rewired { inner, rewiring }) };
        self.build(config, |config| Parts::new(config, files), build, rewire)
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
    [
        stream::MUTANTS,
        selections::MUTANTS,
        blocks::MUTANTS,
        command::MUTANTS,
        payload::MUTANTS,
        launch::MUTANTS,
        time::MUTANTS,
        breaker::MUTANTS,
        allowed::MUTANTS,
    ]
    .concat()
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

/// A reader with rewritten lines and requests.
#[derive(Debug)]
struct Reading {
    inner: Box<dyn Requests>,
    rewiring: Rewiring,
}

impl Requests for Reading {
    fn read(&mut self, line: &[u8]) -> Result<Request, Refusal> {
        match self.rewiring {
            Rewiring::Line(rewrite) => self.inner.read(&rewrite(line)),
            Rewiring::Request(change) => self.inner.read(line).map(|mut request| {
                change(&mut request);
                request
            }),
            _ => self.inner.read(line),
        }
    }
}

#[derive(Debug)]
struct Rewritten {
    inner: Box<dyn Blocks>,
    rewrite: fn(&[u8]) -> Vec<u8>,
}

impl Blocks for Rewritten {
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        self.inner.read(&(self.rewrite)(stdout)).map(Block::into_owned)
    }
}

#[derive(Debug)]
struct Admitting {
    guard: Guard,
    admit: fn(&Guard, &[String], &dyn Files) -> Result<Admitted, Denied>,
}

impl Admission for Admitting {
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        (self.admit)(&self.guard, words, files)
    }
}

/// A breaker that does not learn of every failure.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn Breaker>,
    counts: fn(&Failure) -> bool,
}

impl Breaker for Counting {
    fn is_open(&self, now: Millis) -> bool {
        self.inner.is_open(now)
    }

    fn succeeded(&mut self) {
        self.inner.succeeded();
    }

    fn failed(&mut self, failure: &Failure, now: Millis) {
        if (self.counts)(failure) {
            self.inner.failed(failure, now);
        }
    }
}

/// A selector with rewritten actions.
struct Rewired {
    inner: Inner,
    rewiring: Rewiring,
}

impl Machine for Rewired {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in actions.iter_mut().skip(from) {
            match (action, self.rewiring) {
                (Action::Drive(order), Rewiring::Order(change)) => change(order),
                (Action::Stdout(line), Rewiring::Selection(rewrite)) => *line = rewrite(line),
                _ => {}
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

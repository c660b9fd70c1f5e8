//! The interface of methods.

use super::context::Context;
use super::params::Params;
pub use super::reply::Outcome;
use crate::limits::Limits;
use crate::machine::Millis;

/// Input of a call.
#[derive(Debug)]
pub struct Call<'t> {
    /// Params of the method.
    pub params: Params<'t>,
    /// Time of receipt.
    pub now: Millis,
    /// Limits in force.
    pub limits: &'t Limits,
    /// Largest result in bytes; a larger one is replaced by an error.
    pub result_bytes_max: usize,
}

/// State that calls leave for later ones.
#[derive(Debug, Default)]
pub struct World {
    /// Context of `update_context`.
    pub context: Context,
    /// Number of calls of `peerproof.counter`.
    pub count: u64,
}

/// A method.
pub trait Method: Send {
    /// Executes a call, or begins to. Invalid params are refused before anything is done.
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer;
}

impl<F: FnMut(&Call<'_>, &mut World) -> Answer + Send> Method for F {
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer {
        self(call, world)
    }
}

/// Answer of a method.
pub enum Answer {
    /// The call is finished.
    Done(Outcome),
    /// The call takes time.
    Later {
        /// Work that remains.
        task: Box<dyn Task>,
        /// Time limit in ms, from the receipt of the call.
        timeout_ms: u64,
        /// True if partial output is sent as a stream, if the transport has streams.
        streams: bool,
    },
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self::Done(outcome)
    }
}

/// A call in progress. It never blocks: it tells the time of its next step.
pub trait Task: Send {
    /// Runs until it has to wait, has output, or is done.
    fn poll(&mut self, now: Millis) -> Step;

    /// Time at which it will be done, if known.
    fn ends_at(&self) -> Option<Millis>;

    /// Approximate memory in bytes.
    fn held_bytes(&self) -> usize;
}

/// Result of one step of a task.
#[derive(Debug)]
pub enum Step {
    /// The next step is at this time.
    WaitUntil(Millis),
    /// Partial output. The next step follows in turn.
    Chunk(String),
    /// The task is done.
    Done(Outcome),
}

/// Methods of a server by name.
#[derive(Default)]
pub struct MethodTable {
    entries: Vec<(&'static str, Box<dyn Method>)>,
}

impl MethodTable {
    /// Adds a method, or replaces the one of this name.
    pub fn set(&mut self, name: &'static str, method: impl Method + 'static) {
        self.entries.retain(|(other, _)| *other != name);
        self.entries.push((name, Box::new(method)));
    }

    /// Returns the table with one more method.
    #[must_use]
    pub fn with(mut self, name: &'static str, method: impl Method + 'static) -> Self {
        self.set(name, method);
        self
    }

    /// Removes a method, so that it can be wrapped and set again.
    pub fn take(&mut self, name: &str) -> Option<Box<dyn Method>> {
        let at = self.entries.iter().position(|(other, _)| *other == name)?;
        Some(self.entries.remove(at).1)
    }

    /// The names of the methods.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|(name, _)| *name)
    }

    /// The method with this name.
    pub(super) fn get(&mut self, name: &[u8]) -> Option<&mut dyn Method> {
        for (other, method) in &mut self.entries {
            if other.as_bytes() == name {
                return Some(&mut **method);
            }
        }
        None
    }
}

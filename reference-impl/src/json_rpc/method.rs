//! What a server can be asked to do: the interface of methods.

use super::context::Context;
use super::params::Params;
use super::reply::{Failure, ResultText};
use crate::limits::Limits;
use crate::machine::Millis;

/// What became of a call: a result or an error.
pub type Outcome = Result<ResultText, Failure>;

/// What a call says.
#[derive(Debug)]
pub struct Call<'t> {
    /// What the method is given.
    pub params: Params<'t>,
    /// Time of receipt.
    pub now: Millis,
    /// Caps in force.
    pub limits: &'t Limits,
    /// Bytes that a result may take; a larger one gives way to an error.
    pub result_bytes_max: usize,
}

/// What calls leave behind for later ones.
#[derive(Debug, Default)]
pub struct World {
    /// What `update_context` keeps.
    pub context: Context,
    /// How often `peerproof.counter` was called.
    pub count: u64,
}

/// A method.
pub trait Method: Send {
    /// Carries out a call, or begins to. Params that do not fit are refused before anything else is done.
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer;
}

impl<F: FnMut(&Call<'_>, &mut World) -> Answer + Send> Method for F {
    fn call(&mut self, call: &Call<'_>, world: &mut World) -> Answer {
        self(call, world)
    }
}

/// What a method answers at once.
pub enum Answer {
    /// The call is done.
    Done(Outcome),
    /// The call takes time.
    Later {
        /// The work.
        task: Box<dyn Task>,
        /// Time for the call from its receipt, in ms.
        timeout_ms: u64,
        /// What the task says on the way is sent as a stream, where the transport has room for one.
        streams: bool,
    },
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self::Done(outcome)
    }
}

/// A call under way. It never blocks: it says when it wants to go on.
pub trait Task: Send {
    /// Goes on until it has to wait, has something to say, or is done.
    fn poll(&mut self, now: Millis) -> Step;

    /// The time at which it will be done if nothing comes between, where it knows.
    fn ends_at(&self) -> Option<Millis>;

    /// Bytes that it holds, about.
    fn held_bytes(&self) -> usize;
}

/// How far a task came.
#[derive(Debug)]
pub enum Step {
    /// It goes on at this time.
    WaitUntil(Millis),
    /// A piece of output; it goes on as soon as it is its turn.
    Chunk(String),
    /// It is done.
    Done(Outcome),
}

/// The methods of a server, by name.
#[derive(Default)]
pub struct MethodTable {
    entries: Vec<(&'static str, Box<dyn Method>)>,
}

impl MethodTable {
    /// Adds a method, or replaces the one with its name.
    pub fn set(&mut self, name: &'static str, method: impl Method + 'static) {
        self.entries.retain(|(other, _)| *other != name);
        self.entries.push((name, Box::new(method)));
    }

    /// With one more method.
    #[must_use]
    pub fn with(mut self, name: &'static str, method: impl Method + 'static) -> Self {
        self.set(name, method);
        self
    }

    /// Takes a method out, so that it can be wrapped and set again.
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

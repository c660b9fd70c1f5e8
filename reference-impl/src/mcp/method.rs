//! Interface of methods and tools.

use std::collections::BTreeSet;

use super::message::Outcome;
use super::{Catalog, Choices, Failure, Revision, Task};
use crate::json::{Text, Value};
use crate::machine::Millis;

/// One request, or the call of one tool.
#[derive(Debug)]
pub struct Call<'c> {
    /// An object: the params of a request, or the arguments of a tool.
    pub params: &'c Value,
    /// True if the member `params` or `arguments` was present.
    pub has_params: bool,
    /// Progress token, if present.
    pub token: Option<Value>,
}

impl Call<'_> {
    /// A required string of the params.
    ///
    /// # Errors
    /// Fails with -32602 if it is missing or not a string.
    pub fn text(&self, name: &str) -> Result<&Text, Failure> {
        let text = self.params.get(name).and_then(Value::as_text);
        text.ok_or_else(|| Failure::invalid_params(format!("{name} is not a string")))
    }
}

/// Progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before `initialize`.
    New,
    /// After `initialize`, before `notifications/initialized`.
    Opened,
    /// After `notifications/initialized`.
    Ready,
}

/// State of a session.
pub struct World {
    /// Choices in force.
    pub choices: Choices,
    /// Newest accepted revision.
    pub newest: Revision,
    /// Revision of the session.
    pub revision: Revision,
    /// Progress of the session.
    pub phase: Phase,
    /// Declared capabilities of the client.
    pub client: Value,
    /// Descriptions of tools, resources and prompts.
    pub catalog: Catalog,
    /// Tools by name.
    pub tools: Methods,
    /// Index of the lowest log level that is sent.
    pub level: usize,
    /// Uris of subscribed resources.
    pub subscriptions: BTreeSet<Text>,
    /// Number of calls of `counter`.
    pub count: i64,
    /// Tasks, oldest first.
    pub tasks: Vec<Task>,
    /// Time of the current request.
    pub now: Millis,
}

/// Answer to a call.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The call is finished.
    Done(Outcome),
    /// The steps follow; the last one gives the outcome.
    Later(Vec<Step>),
    /// The call is answered, and its steps become the work of a task.
    Task {
        /// Answer to the call.
        outcome: Outcome,
        /// Index of the task.
        number: usize,
        /// Steps of the task.
        steps: Vec<Step>,
    },
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self::Done(outcome)
    }
}

impl Answer {
    /// Edits the outcome, if it is known already.
    #[must_use]
    pub fn edit(mut self, mut edit: impl FnMut(&mut Outcome)) -> Self {
        match &mut self {
            Self::Done(outcome) | Self::Task { outcome, .. } => edit(outcome),
            Self::Later(steps) => {
                for step in steps {
                    if let Step::Done(outcome) = step {
                        edit(outcome);
                    }
                }
            }
        }
        self
    }
}

/// Part of a call that takes time.
#[derive(Debug, Clone)]
pub enum Step {
    /// Waits for this time.
    Wait(Millis),
    /// Sends a notification.
    Say(Value),
    /// Sends a request to the client and waits for the response, up to a limit.
    Ask(&'static str, Value),
    /// Ends the call.
    Done(Outcome),
    /// Ends the call with an outcome computed from the client's responses. `null` stands for a missing response.
    Tell(fn(&[Value]) -> Outcome),
    /// Ends the call with the outcome of a task, once it is available.
    Of(usize),
}

/// A method or tool.
pub type Method = Box<dyn Fn(&Call<'_>, &mut World) -> Answer + Send>;

/// Methods or tools by name.
#[derive(Default)]
pub struct Methods(Vec<(&'static str, Method)>);

impl Methods {
    /// Adds a method, or replaces the one of this name.
    pub fn set(
        &mut self,
        name: &'static str,
        method: impl Fn(&Call<'_>, &mut World) -> Answer + Send + 'static,
    ) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Box::new(method)));
    }

    /// Returns the table with one more method.
    #[must_use]
    pub fn with(
        mut self,
        name: &'static str,
        method: impl Fn(&Call<'_>, &mut World) -> Answer + Send + 'static,
    ) -> Self {
        self.set(name, method);
        self
    }

    /// Method with this name.
    pub fn get(&self, name: &Text) -> Option<&Method> {
        self.0.iter().find(|(other, _)| name == other).map(|(_, method)| method)
    }

    /// Removes a method.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(other, _)| *other != name);
    }

    /// Removes the methods of a capability.
    pub(crate) fn forget(&mut self, capability: &str) {
        let prefix = match capability {
            "completions" => "completion",
            other => other,
        };
        self.0.retain(|(name, _)| name.split('/').next() != Some(prefix));
    }

    /// Wraps a method so that each answer goes through `change`.
    pub fn wrap(
        &mut self,
        name: &'static str,
        change: impl Fn(&Call<'_>, &mut World, Answer) -> Answer + Send + 'static,
    ) {
        if let Some(at) = self.0.iter().position(|(other, _)| *other == name) {
            let (_, inner) = self.0.remove(at);
            self.set(name, move |call, world| {
                let answer = inner(call, world);
                change(call, world, answer)
            });
        }
    }
}

//! Checks: experiments with a stable id, each of which tests at least one clause.

mod untestable;

use std::fmt;
use std::sync::Arc;

use crate::data::clause::ClauseId;
use crate::data::facts::Facts;
use crate::data::plan::Plan;
use crate::data::rng::Rng;

pub use untestable::Untestable;

/// Function that makes the plan of a check for a peer.
pub type Planner = Arc<dyn Fn(&Facts, &mut Rng) -> Result<Plan, Untestable> + Send + Sync>;

/// Experiment that tests clauses.
#[derive(Clone)]
pub struct Check {
    /// Kebab path that names stimulus and side, such as `toy/serve/stdin/one-byte-over-limit`. Stable, never reused.
    pub id: String,
    /// One sentence for reports: the stimulus and the required behaviour.
    pub title: String,
    /// Clauses under test; never empty.
    pub clauses: Vec<ClauseId>,
    /// Command of the peer: `run`, `serve`, `command`.
    pub command: String,
    /// Second command of the peer, if needed.
    pub command_too: Option<String>,
    /// Roles that must be mapped.
    pub roles: Vec<String>,
    /// Feature that must be claimed.
    pub feature: Option<String>,
    /// Further features that must be claimed.
    pub features_too: Vec<String>,
    /// Waits for times of the contract (such as 60 s); runs only with `--slow`.
    pub slow: bool,
    /// Takes longer than other slow checks; runs only with `--very-slow`.
    pub very_slow: bool,
    /// Waits idly for a second or two; runs in parallel with other checks on a thread of its own.
    pub waits: bool,
    /// Measures memory or time; runs while no other check does.
    pub exclusive: bool,
    /// Collects findings about its clauses from all other checks, so that one fault is reported once.
    pub ambient: bool,
    /// Is the first canary of its command. If it fails, the other checks have nothing to show.
    pub first_canary: bool,
    /// Runs on processes of its own that no other conversation can harm. Its plan needs no canary, because the first
    /// canary of the command suffices.
    pub vouched: bool,
    /// Needs a real process (memory, signals, leaks, listeners, actors).
    pub needs_process: bool,
    /// Makes the plan.
    pub planner: Planner,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).field("clauses", &self.clauses).finish_non_exhaustive()
    }
}

impl Check {
    /// Check of `command` without special properties; the methods below set them.
    pub fn new<I, C>(
        id: impl Into<String>,
        title: impl Into<String>,
        clauses: I,
        command: &str,
        planner: impl Fn(&Facts, &mut Rng) -> Result<Plan, Untestable> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = C>,
        C: Into<ClauseId>,
    {
        let clauses = clauses.into_iter().map(Into::into).collect();
        Self::of(id.into(), title.into(), clauses, command, Arc::new(planner))
    }

    fn of(id: String, title: String, clauses: Vec<ClauseId>, command: &str, planner: Planner) -> Self {
        Self {
            id,
            title,
            clauses,
            command: command.to_owned(),
            command_too: None,
            roles: Vec::new(),
            feature: None,
            features_too: Vec::new(),
            slow: false,
            very_slow: false,
            waits: false,
            exclusive: false,
            ambient: false,
            first_canary: false,
            vouched: false,
            needs_process: false,
            planner,
        }
    }

    /// Requires these roles.
    #[must_use]
    pub fn roles(mut self, roles: &[&str]) -> Self {
        self.roles = roles.iter().map(|role| (*role).to_owned()).collect();
        self
    }

    /// Requires a second command.
    #[must_use]
    pub fn also_command(mut self, command: &str) -> Self {
        self.command_too = Some(command.to_owned());
        self
    }

    /// Requires a feature.
    #[must_use]
    pub fn feature(mut self, feature: &str) -> Self {
        self.feature = Some(feature.to_owned());
        self
    }

    /// Requires a further feature.
    #[must_use]
    pub fn also_feature(mut self, feature: &str) -> Self {
        self.features_too.push(feature.to_owned());
        self
    }

    /// Runs only with `--slow`: takes up to three minutes.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Runs only with `--very-slow`: takes longer than other slow checks.
    #[must_use]
    pub fn very_slow(mut self) -> Self {
        self.very_slow = true;
        self.slow()
    }

    /// Waits idly for a second or two and runs in parallel with other checks.
    #[must_use]
    pub fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Runs alone, on a real process.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self.needs_process = true;
        self
    }

    /// Runs only on a real process.
    #[must_use]
    pub fn on_process(mut self) -> Self {
        self.needs_process = true;
        self
    }

    /// Collects findings about its clauses from every conversation.
    #[must_use]
    pub fn ambient(mut self) -> Self {
        self.ambient = true;
        self
    }

    /// Is the first canary of its command, one per command. It fails only if the answer is missing; a wrong answer
    /// breaks a clause of its own.
    #[must_use]
    pub fn first_canary(mut self) -> Self {
        self.first_canary = true;
        let planner = self.planner;
        self.planner = Arc::new(move |facts, rng| {
            let mut plan = planner(facts, rng)?;
            plan.let_canaries_speak();
            Ok(plan)
        });
        self
    }

    /// Relies on the first canary of its command instead of one of its own.
    #[must_use]
    pub fn vouched(mut self) -> Self {
        self.vouched = true;
        self
    }

    /// Part of the id before the name, by which console reports group.
    pub fn topic(&self) -> &str {
        topic_of(&self.id)
    }
}

/// Topic of a check id: everything but the last part.
pub fn topic_of(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(topic, _)| topic)
}

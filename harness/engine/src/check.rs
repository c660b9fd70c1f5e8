//! Checks: experiments with a stable id, each putting at least one clause at risk.

mod untestable;

use std::fmt;
use std::sync::Arc;

use crate::clause::ClauseId;
use crate::facts::Facts;
use crate::plan::Plan;
use crate::rng::Rng;

pub use untestable::Untestable;

/// Makes the plan of a check for a peer.
pub type Planner = Arc<dyn Fn(&Facts, &mut Rng) -> Result<Plan, Untestable> + Send + Sync>;

/// One experiment.
#[derive(Clone)]
pub struct Check {
    /// Kebab path that names stimulus and side: `toy/serve/stdin/one-byte-over-limit`. Stable, never reused.
    pub id: String,
    /// One sentence for reports: what is done and what has to happen.
    pub title: String,
    /// Clauses it puts at risk; never empty.
    pub clauses: Vec<ClauseId>,
    /// Command of the peer that it needs: `run`, `serve`, `command`.
    pub command: String,
    /// Another command that it needs as well.
    pub command_too: Option<String>,
    /// Roles that have to be mapped.
    pub roles: Vec<String>,
    /// Feature that has to be claimed.
    pub feature: Option<String>,
    /// Further features that have to be claimed as well.
    pub features_too: Vec<String>,
    /// It has to wait for the contract's own times (such as 60 s) and runs only with `--slow`.
    pub slow: bool,
    /// And for longer than others: `--very-slow`.
    pub very_slow: bool,
    /// It waits for a second or two, doing nothing: it runs beside the others, on a thread that they do not need.
    pub waits: bool,
    /// It measures memory or time and runs while no other check does.
    pub exclusive: bool,
    /// Its clauses are watched in every conversation: findings about them from other checks are counted here, so
    /// that one fault is one red line.
    pub ambient: bool,
    /// It is the first canary of its command: where it fails there is nothing to learn from the others.
    pub first_canary: bool,
    /// Each of its conversations starts processes of its own that no other conversation can harm: the first canary of
    /// the command vouches for them, and its plan needs none.
    pub vouched: bool,
    /// Needs what only a real process shows (memory, signals, leaks, listeners, actors).
    pub needs_process: bool,
    /// Makes its plan.
    pub planner: Planner,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).field("clauses", &self.clauses).finish_non_exhaustive()
    }
}

impl Check {
    /// A check of `command` with nothing special; the rest is set by the methods below.
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
        Self {
            id: id.into(),
            title: title.into(),
            clauses: clauses.into_iter().map(Into::into).collect(),
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
            planner: Arc::new(planner),
        }
    }

    /// Needs these roles.
    #[must_use]
    pub fn roles(mut self, roles: &[&str]) -> Self {
        self.roles = roles.iter().map(|role| (*role).to_owned()).collect();
        self
    }

    /// Speaks to the peer by this command as well.
    #[must_use]
    pub fn also_command(mut self, command: &str) -> Self {
        self.command_too = Some(command.to_owned());
        self
    }

    /// Belongs to a feature.
    #[must_use]
    pub fn feature(mut self, feature: &str) -> Self {
        self.feature = Some(feature.to_owned());
        self
    }

    /// Needs another feature besides its own.
    #[must_use]
    pub fn also_feature(mut self, feature: &str) -> Self {
        self.features_too.push(feature.to_owned());
        self
    }

    /// Runs with `--slow` only: it takes up to three minutes.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Runs with `--very-slow` only: it takes longer than other slow checks.
    #[must_use]
    pub fn very_slow(mut self) -> Self {
        self.very_slow = true;
        self.slow()
    }

    /// Spends a second or two waiting and runs beside the others.
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

    /// Runs on a real process only.
    #[must_use]
    pub fn on_process(mut self) -> Self {
        self.needs_process = true;
        self
    }

    /// Owns clauses that are watched in every conversation.
    #[must_use]
    pub fn ambient(mut self) -> Self {
        self.ambient = true;
        self
    }

    /// Is the first canary of its command; there is one for each. It fails for a missing answer. A wrong answer breaks a clause
    /// of its own.
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

    /// Rests on the first canary of its command instead of one of its own.
    #[must_use]
    pub fn vouched(mut self) -> Self {
        self.vouched = true;
        self
    }

    /// The part of the id between boundary and name: what console reports group by.
    pub fn topic(&self) -> &str {
        topic_of(&self.id)
    }
}

/// The topic in a check id: everything but the last part.
pub fn topic_of(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(topic, _)| topic)
}

//! Clauses: the normative statements of a contract, one row each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::blame::HarnessFault;

/// Id of a clause such as `TOY-IDEM-03`; stable for ever and never reused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClauseId(pub String);

impl fmt::Display for ClauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ClauseId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

/// How much a clause binds; severity comes from here and from nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Contradicting it breaks an interoperating peer.
    Must,
    /// A careful peer does it.
    Should,
    /// Several behaviours are allowed: a named set; the chosen one is recorded.
    Open,
}

impl Level {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Open => "open",
        }
    }
}

/// Which end of the boundary a clause or a peer stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Answers.
    Provider,
    /// Asks.
    Consumer,
}

impl Side {
    /// The word used in configuration and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Consumer => "consumer",
        }
    }
}

/// One row of `corpora/<boundary>/clauses.toml`. Unknown keys are load errors.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// Stable id.
    pub id: ClauseId,
    /// Must, should or open.
    pub level: Level,
    /// The side that has to hold it.
    pub side: Side,
    /// Modes of the boundary it applies to, such as `run` and `serve`.
    pub modes: Vec<String>,
    /// Document and heading it comes from.
    pub source: String,
    /// The statement in our own words.
    pub text: String,
    /// Where sentences conflict or are narrowed: both places and how we read them.
    #[serde(default)]
    pub reading: Option<String>,
    /// Key under `[choices]` that pins an open clause.
    #[serde(default)]
    pub choice: Option<String>,
    /// The named set of outcomes of an open clause.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// Why it cannot be observed from outside; such a clause has no check.
    #[serde(default)]
    pub excluded: Option<String>,
    /// The claimed feature it belongs to.
    #[serde(default)]
    pub feature: Option<String>,
    /// The smallest set of requirements that it belongs to, where the boundary has several.
    #[serde(default)]
    pub set: Option<String>,
    /// Kind of the message that puts it at risk, where the contract sorts them.
    #[serde(default)]
    pub stimulus: Stimulus,
    /// First revision of the contract that has it; without one, all up to `until`.
    #[serde(default)]
    pub since: Option<String>,
    /// Last revision of the contract that has it; without one, all from `since` on.
    #[serde(default)]
    pub until: Option<String>,
}

/// Kind of the messages that put a clause at risk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stimulus {
    /// Messages that a correct counterpart may send.
    #[default]
    Valid,
    /// Messages that the contract forbids its counterpart to send.
    Invalid,
    /// Messages of both kinds.
    Both,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClauseFile {
    clause: Vec<Clause>,
}

/// Loads the rows of a `clauses.toml`.
///
/// # Errors
/// Names the first row that is malformed, holds an unknown key, or repeats an id.
pub fn load(text: &str) -> Result<Vec<Clause>, HarnessFault> {
    let file: ClauseFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut seen = std::collections::BTreeSet::new();
    for clause in &file.clause {
        if !seen.insert(clause.id.clone()) {
            return Err(format!("clause {} is there twice", clause.id).into());
        }
    }
    Ok(file.clause)
}

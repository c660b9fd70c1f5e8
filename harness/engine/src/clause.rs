//! Clauses: the normative statements of a contract, one row each.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Documents and headings that it comes from, by title, with addresses of public documents.
    pub source: String,
    /// Address of its section in the contract page of its boundary; empty if the boundary has none.
    #[serde(skip_deserializing)]
    pub page: String,
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

/// Word of a source that is the contract page itself.
const READINGS: &str = "readings";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClauseFile {
    /// Address of the contract page, which has a section for each clause.
    page: Option<String>,
    /// Source documents, by the words that `source` of a clause begins with. Without any, sources stay as they are.
    #[serde(default)]
    documents: BTreeMap<String, Document>,
    clause: Vec<Clause>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    /// Address of a public document.
    url: Option<String>,
}

impl ClauseFile {
    /// Sources such as `spec §4; readings §7`, with the titles of documents for their words.
    fn sources(&self, source: &str) -> Result<String, String> {
        if self.documents.is_empty() {
            return Ok(source.to_owned());
        }
        let mut parts: Vec<String> = Vec::new();
        for part in source.split(';').map(str::trim) {
            let (word, place) = part.split_once(' ').unwrap_or((part, ""));
            let text = match self.documents.get(word) {
                Some(Document { title, url }) => {
                    let url = url.as_ref().map(|url| format!(" ({url})")).unwrap_or_default();
                    format!("{title} {place}{url}")
                }
                None if word == READINGS => "peerproof's contract page".to_owned(),
                None => return Err(format!("the source {part:?} names no document of [documents]")),
            };
            let text = text.trim().to_owned();
            if !parts.contains(&text) {
                parts.push(text);
            }
        }
        Ok(parts.join("; "))
    }
}

/// Loads the rows of a `clauses.toml`.
///
/// # Errors
/// Names the first row that is malformed, holds an unknown key, repeats an id, or has a source that is no known document.
pub fn load(text: &str) -> Result<Vec<Clause>, HarnessFault> {
    let mut file: ClauseFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    let mut clauses = std::mem::take(&mut file.clause);
    for clause in &mut clauses {
        if !seen.insert(clause.id.clone()) {
            return Err(format!("clause {} is there twice", clause.id).into());
        }
        clause.source =
            file.sources(&clause.source).map_err(|error| format!("clause {}: {error}", clause.id))?;
        if let Some(page) = &file.page {
            clause.page = format!("{page}#{}", clause.id.0.to_lowercase());
        }
    }
    Ok(clauses)
}

//! Clauses: the normative statements of a contract, one row each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::blame::HarnessFault;

/// Id of a clause, such as `TOY-IDEM-03`. Stable, never reused.
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

/// Binding force of a clause. Severity comes only from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Breaking it breaks an interoperating peer.
    Must,
    /// Careful peers do it.
    Should,
    /// Several named behaviours are allowed; the observed one is recorded.
    Open,
}

impl Level {
    /// Word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Open => "open",
        }
    }
}

/// End of a boundary on which a clause or a peer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Answers.
    Provider,
    /// Asks.
    Consumer,
}

impl Side {
    /// Word in configuration and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Consumer => "consumer",
        }
    }
}

/// Row of `corpora/<boundary>/clauses.toml`. Unknown keys are load errors.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// Stable id.
    pub id: ClauseId,
    /// Must, should or open.
    pub level: Level,
    /// Side that must obey it.
    pub side: Side,
    /// Modes of the boundary to which it applies, such as `run` and `serve`.
    pub modes: Vec<String>,
    /// Source documents by title and heading, with addresses of public documents.
    pub source: String,
    /// Address of its section on the contract page of its boundary; empty if the boundary has none.
    #[serde(skip_deserializing)]
    pub page: String,
    /// Statement in our own words.
    pub text: String,
    /// Our reading, if sentences of the sources conflict or are narrowed: both places and the decision.
    #[serde(default)]
    pub reading: Option<String>,
    /// Key under `[choices]` that pins the outcome.
    #[serde(default)]
    pub choice: Option<String>,
    /// Named outcomes of an open clause.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// Reason why it cannot be observed from outside. A clause with a reason has no check.
    #[serde(default)]
    pub excluded: Option<String>,
    /// Feature to which it belongs.
    #[serde(default)]
    pub feature: Option<String>,
    /// Smallest requirement set to which it belongs, if the boundary has several.
    #[serde(default)]
    pub set: Option<String>,
    /// Kind of the messages that test it, if the contract distinguishes them.
    #[serde(default)]
    pub stimulus: StimulusValidity,
    /// First revision of the contract with this clause; `None` for no lower bound.
    #[serde(default)]
    pub since: Option<String>,
    /// Last revision of the contract with this clause; `None` for no upper bound.
    #[serde(default)]
    pub until: Option<String>,
}

/// Kind of the messages that test a clause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StimulusValidity {
    /// Messages that a correct counterpart may send.
    #[default]
    Valid,
    /// Messages that the contract forbids its counterpart to send.
    Invalid,
    /// Messages of both kinds.
    Both,
}

/// Source word for the contract page itself.
const READINGS: &str = "readings";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClauseFile {
    /// Address of the contract page, with one section per clause.
    page: Option<String>,
    /// Source documents by the first word of a `source`. If there are none, sources stay as written.
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
    /// Replaces document words in sources such as `spec §4; readings §7` by titles.
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
                None => return Err(format!("the source {part:?} is not in [documents]")),
            };
            let text = text.trim().to_owned();
            if !parts.contains(&text) {
                parts.push(text);
            }
        }
        Ok(parts.join("; "))
    }
}

/// Loads a `clauses.toml` that is embedded in the program.
///
/// # Panics
/// Panics if it does not load. Tests load the file of each boundary.
pub fn embedded(text: &str) -> Vec<Clause> {
    load(text).unwrap_or_else(|error| unreachable!("the embedded clauses do not load: {error}"))
}

/// Loads the rows of a `clauses.toml`.
///
/// # Errors
/// Names the first row that is malformed, has an unknown key, repeats an id or names an unknown source document.
pub fn load(text: &str) -> Result<Vec<Clause>, HarnessFault> {
    let mut file: ClauseFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    let mut clauses = std::mem::take(&mut file.clause);
    for clause in &mut clauses {
        if !seen.insert(clause.id.clone()) {
            return Err(format!("clause {} occurs twice", clause.id).into());
        }
        clause.source =
            file.sources(&clause.source).map_err(|error| format!("clause {}: {error}", clause.id))?;
        if let Some(page) = &file.page {
            clause.page = format!("{page}#{}", clause.id.0.to_lowercase());
        }
    }
    Ok(clauses)
}

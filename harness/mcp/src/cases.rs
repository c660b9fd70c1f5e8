//! Checks that are rows of the files below `corpora/mcp/cases`.
//!
//! A conversation begins with an opening unless its first row has `bare` or `open`, and ends with a canary unless a
//! row ends it. Most rows write a message; the model derives the allowed replies from its bytes. `clause` names the
//! clause that a row tests; by default the message itself decides.
//!
//! | placeholder | |
//! |---|---|
//! | `$ID` | a number that no request of the conversation has yet |
//! | `$PING` | a whole `ping` with such a number |
//! | `$NONE` | a method that no server has, with quotes |
//! | `$OPENING` | params of `initialize` |
//! | `$LF` | a line feed |

use std::cell::RefCell;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection;
use super::talk::Talk;
use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe, fill_in};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::sizes::padded;
use peerproof_json_rpc::talk::{UNKNOWN_METHOD, call, quoted};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// One row.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Omits the opening of the conversation.
    #[serde(default)]
    bare: bool,
    /// Revision without the rule that the conversation tests.
    unless_revision: Option<String>,
    /// An opening.
    open: Option<Open>,
    /// Method of a request.
    request: Option<String>,
    /// Method of a notification.
    notify: Option<String>,
    /// Params of either, as JSON text.
    params: Option<String>,
    /// Id of a request, as JSON text; by default a fresh number.
    id: Option<String>,
    /// A line, taken literally.
    send: Option<Recipe>,
    /// A line, taken literally, followed by a canary.
    raw: Option<Recipe>,
    /// End of the line; by default a line feed.
    end: Option<String>,
    /// Length of the message, an object, in bytes; a member of padding in front fills it.
    pad_to: Option<Amount>,
    #[serde(default)]
    chunking: Chunking,
    /// Number of responses to wait for; by default the number that is due.
    await_frames: Option<u32>,
    /// Number of canaries.
    canaries: Option<u32>,
    /// Any other action.
    act: Option<Act>,
    /// Process of this row.
    #[serde(default)]
    session: usize,
    /// Time beyond that of a reply, ms.
    #[serde(default)]
    allow_ms: u64,
    /// Clause that the row tests.
    clause: Option<ClauseId>,
    /// Environment of the process; only in the first row.
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
}

/// An opening that differs from the usual one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    /// Requested revision.
    revision: Option<String>,
    /// Client capabilities, as JSON text.
    capabilities: Option<String>,
}

/// All checks of the files.
pub(crate) fn checks() -> Vec<Check> {
    all().iter().map(|loaded| check(&loaded.case)).collect()
}

fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(case::files(&FILES))
            .unwrap_or_else(|error| unreachable!("corpora/mcp/cases does not load: {error}"))
    })
}

fn check(case: &Case<Row>) -> Check {
    let own = case.clone();
    case.check(format!("mcp/stdio/{}", case.id), "command", move |facts, _| plan(&own, facts))
}

fn plan(case: &Case<Row>, facts: &Facts) -> Result<Plan, Untestable> {
    let is_bare = case.steps.first().is_some_and(|row| row.bare || row.open.is_some());
    let mut talk = if is_bare { Talk::bare(facts) } else { Talk::opened(facts) };
    for row in &case.steps {
        row.perform(&mut talk)?;
    }
    Ok(talk.finish())
}

impl Row {
    fn perform(&self, talk: &mut Talk<'_>) -> Result<(), Untestable> {
        if self.unless_revision.as_deref() == Some(connection::revision_asked(talk.facts())) {
            return Err(Untestable::new("other_revision", "the revision of the session has another rule"));
        }
        match &self.clause {
            Some(clause) => talk.aim(&clause.0),
            None => talk.aim_at_nothing(),
        };
        talk.in_session(self.session);
        if !self.env.is_empty() {
            talk.session(|session| session.env.clone_from(&self.env));
        }
        // Another conversation may use an id that a row names.
        if self.id.is_some() {
            talk.apart();
        }
        if let Some(open) = &self.open {
            let capabilities = match &open.capabilities {
                Some(text) => serde_json::from_str(text).map_err(|error| error.to_string())?,
                None => json!({}),
            };
            let asked = connection::revision_asked(talk.facts());
            let revision = open.revision.as_deref().unwrap_or(asked);
            talk.open(revision, &capabilities);
        } else if let Some(method) = self.request.as_ref().or(self.notify.as_ref()) {
            let params = self.params.as_ref().map(|text| filled(text, talk)).transpose()?;
            let id = match (&self.id, &self.request) {
                (Some(id), _) => Some(id.clone()),
                (None, Some(_)) => Some(talk.fresh_id().to_string()),
                (None, None) => None,
            };
            let method = if method == "$NONE" { UNKNOWN_METHOD } else { method };
            self.write(Payload::text(call(method, params.as_deref(), id.as_deref())), talk)?;
        } else if let Some(line) = self.send.as_ref().or(self.raw.as_ref()) {
            let payload = {
                let talk = RefCell::new(&mut *talk);
                line.payload(&|_| None, &|text| filled(text, &mut talk.borrow_mut()))?
            };
            self.write(payload, talk)?;
            if self.raw.is_some() {
                talk.canary();
            }
        } else if let Some(count) = self.canaries {
            for _ in 0..count {
                talk.canary();
            }
        } else if let Some(act) = &self.act {
            talk.act(act.clone()).last(|step| step.allow_ms = self.allow_ms);
        } else if !self.bare {
            return Err("a row does nothing".into());
        }
        Ok(())
    }

    fn write(&self, message: Payload, talk: &mut Talk<'_>) -> Result<(), Untestable> {
        let message = match &self.pad_to {
            Some(bytes) => {
                let bytes = usize::try_from(bytes.resolve(&|_| None)?).unwrap_or(usize::MAX);
                padded(message, "x", bytes)
            }
            None => message,
        };
        let payload = match self.end.as_deref() {
            Some("") => message,
            end => message.then(Payload::text(end.unwrap_or("\n"))).merged(),
        };
        match self.await_frames {
            Some(frames) => talk.push(payload, self.chunking, frames),
            None => talk.send_as(payload, self.chunking),
        };
        talk.last(|step| step.allow_ms = self.allow_ms);
        Ok(())
    }
}

/// A text with its placeholders filled in.
fn filled(text: &str, talk: &mut Talk<'_>) -> Result<String, Untestable> {
    let talk = RefCell::new(talk);
    fill_in(text, &|name, behind| {
        let mut talk = talk.borrow_mut();
        let value = match name {
            "ID" => talk.fresh_id().to_string(),
            "PING" => {
                let id = talk.fresh_id().to_string();
                call(connection::PING, None, Some(&id))
            }
            "LF" => "\n".to_owned(),
            "NONE" => quoted(UNKNOWN_METHOD),
            "OPENING" => {
                let revision = connection::revision_asked(talk.facts()).to_owned();
                connection::opening(&revision, &Value::Object(serde_json::Map::new())).to_string()
            }
            _ => return Err(format!("there is no placeholder ${name}").into()),
        };
        Ok(Some((value, behind)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn every_row_becomes_a_plan_that_stays_small() {
        let facts = crate::full_facts::facts(Side::Provider);
        for Loaded { file, case } in all() {
            assert!(case.modes.is_empty() && case.env.is_empty(), "{file}.toml, {}", case.id);
            let plan = plan(case, &facts);
            let plan = plan.unwrap_or_else(|error| panic!("{file}.toml, {}: {error}", case.id));
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 1 << 20, "{file}.toml, {} is {stored} bytes", case.id);
        }
    }
}

//! Rows about a server.
//!
//! Most steps write a message; the allowed replies follow from its bytes. A canary follows the message of `raw`,
//! none that of `send`. The conversation ends with the end of input unless a step ends it. `words.rs` lists the
//! placeholders.

use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::super::config::KEYS;
use super::super::model::{TIMEOUT_DEFAULT_MS, rate};
use super::super::role::{ROLES, role};
use super::super::talk::Talk;
use super::computed;
use super::ended;
use super::words::filled;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::case::{Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::packing::Packing;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::sizes::padded;

/// Modes of cases; the default mode is stdio.
const MODES: [&str; 2] = ["stdio", HTTP];

/// One step: a written message (`raw` or `send`), or one of `canaries`, `act` and `computed`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// A message, followed by a canary.
    raw: Option<Recipe>,
    /// A message without a canary.
    send: Option<Recipe>,
    /// End of the message; by default a line feed.
    end: Option<String>,
    /// Length of the message, an object, in bytes; a member of padding in front fills it.
    pad_to: Option<Amount>,
    /// Unit of the padding; by default `x`.
    pad_with: Option<String>,
    /// Number of copies of the message in one write.
    lines: Option<Amount>,
    #[serde(default)]
    chunking: Chunking,
    /// Settings of the HTTP request that differ from the usual; `""` removes the content type.
    #[serde(default, deserialize_with = "carriage")]
    http: Option<Carriage>,
    /// Compresses the message.
    gzip: Option<Packing>,
    /// Number of frames to wait for; by default the number of replies that are due.
    await_frames: Option<u32>,
    /// Number of steps whose replies are awaited, even if other frames arrive before.
    #[serde(default)]
    await_answers: u32,
    /// Number of canaries; for a step that sends nothing else.
    canaries: Option<u32>,
    /// Any other action.
    act: Option<Act>,
    /// Name of a function that adds steps.
    computed: Option<String>,
    /// Process of this step.
    #[serde(default)]
    session: usize,
    /// Time beyond that of a reply, ms.
    #[serde(default)]
    allow_ms: u64,
    /// Clause of the step; by default the first clause of the case.
    clause: Option<ClauseId>,
    /// Leaves the aim of the step to its bytes. A canary after it still has the clause of the case.
    #[serde(default)]
    plain: bool,
    /// Leaves the step out unless this feature is claimed, this role is mapped or this is the mode.
    only: Option<String>,
}

fn carriage<'de, D: Deserializer<'de>>(row: D) -> Result<Option<Carriage>, D::Error> {
    let mut carriage = json!(Carriage::post());
    for (name, value) in serde_json::Map::deserialize(row)? {
        carriage[name] = if value == "" { Value::Null } else { value };
    }
    serde_json::from_value(carriage).map(Some).map_err(D::Error::custom)
}

/// The checks of one case file, named without its extension.
pub(crate) fn checks(file: &str) -> Vec<Check> {
    let of_mode = |mode| {
        let cases = all().iter().filter(move |loaded| loaded.file == file).map(|loaded| &loaded.case);
        cases.filter(move |case| runs_in(case, mode)).map(move |case| check(case, mode))
    };
    MODES.into_iter().flat_map(of_mode).collect()
}

fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    super::all("", &CASES)
}

fn runs_in(case: &Case<Row>, mode: &str) -> bool {
    if case.modes.is_empty() { mode == MODES[0] } else { case.modes.iter().any(|own| own == mode) }
}

fn check(case: &Case<Row>, mode: &'static str) -> Check {
    let id = format!("json_rpc/{mode}/{}", case.id);
    let own = case.clone();
    let command = if mode == HTTP { HTTP } else { "command" };
    let check = case.check(id, command, move |facts, rng| plan(&own, mode, facts, rng));
    if mode == HTTP { check.on_process() } else { check }
}

fn plan(case: &Case<Row>, mode: &str, facts: &Facts, rng: &mut Rng) -> Result<Plan, Untestable> {
    let mut talk = Talk::about(facts, &case.clauses[0].0);
    if mode == HTTP {
        talk = talk.over(HTTP);
    }
    for row in &case.steps {
        if row.is_due(mode, facts)? {
            row.perform(case, facts, &mut talk, rng)?;
        }
    }
    Ok(talk.finish())
}

impl Row {
    fn is_due(&self, mode: &str, facts: &Facts) -> Result<bool, Untestable> {
        let is_feature = |name: &str| KEYS.iter().any(|key| (key.table(), key.name) == ("features", name));
        match self.only.as_deref() {
            None => Ok(true),
            Some(only) if MODES.contains(&only) => Ok(only == mode),
            Some(only) if ROLES.contains(&only) => Ok(role(facts, only).is_some()),
            Some(only) if is_feature(only) => Ok(facts.claims(only)),
            Some(only) => Err(format!("{only:?} is neither mode nor role nor feature").into()),
        }
    }

    fn perform(
        &self,
        case: &Case<Row>,
        facts: &Facts,
        talk: &mut Talk<'_>,
        rng: &mut Rng,
    ) -> Result<(), Untestable> {
        let clause = &self.clause.as_ref().unwrap_or(&case.clauses[0]).0;
        talk.aim(clause);
        if self.plain {
            talk.aim_at_nothing();
        }
        match (&self.raw, &self.send, self.canaries, &self.act, &self.computed) {
            (Some(message), None, None, None, None) => {
                self.write(message, case, facts, talk)?;
                talk.aim(clause).canary().in_session(self.session);
            }
            (None, Some(message), None, None, None) => self.write(message, case, facts, talk)?,
            (None, None, Some(count), None, None) => {
                for _ in 0..count {
                    talk.canary()
                        .allow_ms(self.allow_ms)
                        .last(|step| step.await_answers = self.await_answers);
                }
            }
            (None, None, None, Some(act), None) => {
                talk.act(act.clone()).allow_ms(self.allow_ms).in_session(self.session);
            }
            (None, None, None, None, Some(name)) => {
                let add = computed::server(name).ok_or_else(|| format!("nothing is called {name:?}"))?;
                add(talk, facts, rng)?;
            }
            _ => return Err("a step has one of `raw`, `send`, `canaries`, `act` and `computed`".into()),
        }
        Ok(())
    }

    /// Writes all copies of a message in one write.
    fn write(
        &self,
        message: &Recipe,
        case: &Case<Row>,
        facts: &Facts,
        talk: &mut Talk<'_>,
    ) -> Result<(), Untestable> {
        let lines = self.lines.as_ref().map_or(Ok(1), |lines| lines.resolve(&|name| limit(facts, name)))?;
        let takes_ms = match case.feature.as_deref() {
            // A server that does real work may use the whole time limit of a call.
            Some("profile_methods") => TIMEOUT_DEFAULT_MS + 1_000,
            _ => self.allow_ms,
        };
        let mut payload = Payload::default();
        for number in 0..lines {
            payload = payload.then(self.message(message, number, case, facts)?);
        }
        match (self.gzip, self.await_frames.or(self.http.as_ref().map(|_| 1))) {
            (Some(packing), _) => {
                let text = payload.expand(&Vars::new())?;
                talk.send_packed(String::from_utf8_lossy(&text).trim_end_matches('\n'), packing)
            }
            (None, Some(frames)) => talk.push(payload.merged(), self.chunking, frames),
            (None, None) => talk.send_as(payload.merged(), self.chunking),
        };
        talk.allow_ms(takes_ms).last(|step| {
            step.await_answers = self.await_answers;
            if self.http.is_some() {
                step.http.clone_from(&self.http);
            }
        });
        talk.in_session(self.session);
        Ok(())
    }

    /// One message and its end.
    fn message(
        &self,
        message: &Recipe,
        number: u64,
        case: &Case<Row>,
        facts: &Facts,
    ) -> Result<Payload, Untestable> {
        let roles: Vec<&str> = case.roles.iter().chain(&self.only).map(String::as_str).collect();
        let limits = |name: &str| limit(facts, name);
        let body = message.payload(&limits, &|text| filled(text, &roles, number, facts))?;
        let body = match &self.pad_to {
            Some(bytes) => {
                let bytes = usize::try_from(bytes.resolve(&limits)?).unwrap_or(usize::MAX);
                padded(body, self.pad_with.as_deref().unwrap_or("x"), bytes)
            }
            None => body,
        };
        Ok(ended(body, self.end.as_deref()))
    }
}

/// Limits by name: those of all servers, and the server's own rate limit.
fn limit(facts: &Facts, name: &str) -> Option<u64> {
    super::limit(name).or_else(|| {
        let limit = rate::limit(facts)?;
        match name {
            "rate_requests" => Some(limit.requests),
            "rate_requests_twice" => Some(2 * limit.requests),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    /// Facts of a server with everything that any row needs.
    fn facts() -> Facts {
        let mut facts = super::super::super::full_facts::facts(Side::Provider);
        let limit = json!({ "requests": 5, "window_s": 1 });
        facts.features.insert("rate_limit".to_owned(), limit);
        facts
    }

    #[test]
    fn every_row_becomes_a_plan_that_stays_small() {
        let facts = facts();
        for Loaded { file, case } in all() {
            assert!(case.env.is_empty(), "{file}.toml, {}: `env` means nothing here", case.id);
            for mode in &case.modes {
                assert!(MODES.contains(&mode.as_str()), "{file}.toml, {}: no mode {mode}", case.id);
            }
            for row in &case.steps {
                let Row { end, pad_to, lines, http, gzip, await_frames, .. } = row;
                let of_messages =
                    [end.is_some(), pad_to.is_some(), lines.is_some(), http.is_some(), gzip.is_some()];
                let is_message = row.raw.is_some() || row.send.is_some();
                let says_more =
                    of_messages.contains(&true) || await_frames.is_some() || row.chunking != Chunking::Whole;
                assert!(is_message || !says_more, "{file}.toml, {}: {row:?} is no message", case.id);
                assert!(pad_to.is_some() || row.pad_with.is_none(), "{file}.toml, {}: no padding", case.id);
                let has_session = is_message || row.act.is_some();
                assert!(has_session || row.session == 0, "{file}.toml, {}: no session", case.id);
            }
            for mode in MODES.into_iter().filter(|mode| runs_in(case, mode)) {
                let plan = plan(case, mode, &facts, &mut Rng::new(1));
                let plan = plan.unwrap_or_else(|error| panic!("{file}.toml, {}: {error}", case.id));
                let stored = serde_json::to_string(&plan).unwrap().len();
                assert!(stored < 1 << 20, "{file}.toml, {} is {stored} bytes", case.id);
            }
        }
    }
}

//! Rows about a client: the harness plays the server.
//!
//! A step adds a call to the scenario (`call`), sets the server's reaction to requests (`on`, `on_all`), or sets a
//! property of the whole conversation. The allowed ends of each call follow from these steps.

use std::sync::OnceLock;

use serde::Deserialize;

use super::super::client::COMMAND;
use super::super::client::generate::fill;
use super::super::client::scenario::{Auth, Call};
use super::super::client::scene::Scene;
use super::super::client::script::{Reaction, Trigger, error, result, vars};
use super::ended;
use peerproof_engine::data::case::{Amount, Case, Loaded, Recipe, fill_in};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::near_miss::NEAR_IDS_MAX;
use peerproof_engine::data::payload::{Payload, Segment, Vars};
use peerproof_engine::data::plan::{Chunking, Plan};
use peerproof_engine::data::rng::Rng;

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Ref of a call that is added.
    call: Option<String>,
    /// Method of the call; by default derived from its ref.
    method: Option<String>,
    /// Params of the call as JSON text; by default derived from its ref. Empty text: no params.
    params: Option<Recipe>,
    timeout_ms: Option<u64>,
    /// Number of attempts and mean first delay in ms. In a step without a call: the default of all calls.
    retry: Option<(u64, u64)>,
    #[serde(default)]
    notify: bool,
    batch: Option<String>,
    #[serde(default)]
    after: Vec<String>,
    /// Ref of the call whose requests trigger `says`; by default that of `call`.
    on: Option<String>,
    /// Limits `on` to the attempt with this number, counted from 1.
    attempt: Option<u32>,
    /// Refs of calls; `says` is triggered when the first requests of all of them have arrived.
    on_all: Option<Vec<String>>,
    says: Option<Vec<ReactionRow>>,
    /// Extra duration of the conversation, ms.
    #[serde(default)]
    takes_ms: u64,
    /// Makes the client sign its requests; the value is the name of the key, or empty.
    key_id: Option<String>,
    /// Adds a last call which shows that the client still works.
    canary: Option<bool>,
    /// Adds generated calls of every kind, and the server's reactions to them.
    #[serde(default)]
    generated: bool,
}

/// One reaction of the server: one of `line`, `result`, `error`, `stream`, `hang_up` and `die`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReactionRow {
    /// Line to write. `$id` and related words stand for ids ([`vars`]), `$N` for the number of the repetition.
    line: Option<Recipe>,
    /// End of `line`; by default a line feed.
    end: Option<String>,
    /// Number of repetitions; `near_ids` stands for the number of ids that are nearly right.
    times: Option<Amount>,
    #[serde(default)]
    chunking: Chunking,
    /// A response with this result, as JSON text.
    result: Option<String>,
    /// A response with this error, as JSON text.
    error: Option<String>,
    /// Messages of a stream: `s` for the start, `1`–`9` for data, `e` and a total for the end.
    stream: Option<String>,
    /// Id of the stream.
    id: Option<String>,
    /// Time between the messages, ms.
    #[serde(default)]
    every_ms: u64,
    #[serde(default)]
    hang_up: bool,
    #[serde(default)]
    die: bool,
    /// Delay after the trigger, ms.
    after_ms: Option<Amount>,
}

/// The checks of one case file, named without its extension. Each conversation has a process of its own, so that no
/// conversation can harm another. They rest on the first canary.
pub(crate) fn checks(file: &str) -> Vec<Check> {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    let all = super::all("client", &CASES);
    all.iter().filter(|loaded| loaded.file == file).map(|loaded| check(&loaded.case)).collect()
}

fn check(case: &Case<Row>) -> Check {
    let own = case.clone();
    let planner = move |facts: &Facts, rng: &mut Rng| plan(&own, facts, rng);
    case.check(format!("json_rpc/client/{}", case.id), COMMAND, planner).vouched()
}

fn plan(case: &Case<Row>, facts: &Facts, rng: &mut Rng) -> Result<Plan, Untestable> {
    let mut scene = Scene::about(&case.clauses[0].0);
    for row in &case.steps {
        if row.generated {
            fill(&mut scene, facts, rng);
        }
        row.perform(&mut scene)?;
    }
    Ok(scene.plan())
}

impl Row {
    fn perform(&self, scene: &mut Scene) -> Result<(), Untestable> {
        if let Some(name) = &self.call {
            scene.call(self.call(name)?);
        } else if let Some((attempts, base_ms)) = self.retry {
            scene.scenario.retry = Some((attempts, base_ms));
        }
        if let Some(says) = &self.says {
            let on = match (&self.on_all, self.on.as_ref().or(self.call.as_ref())) {
                (Some(names), _) => Trigger::All(names.clone()),
                (None, Some(name)) => Trigger::Call { name: name.clone(), attempt: self.attempt },
                (None, None) => return Err("`says` stands without `call`, `on` and `on_all`".into()),
            };
            let mut deeds = Vec::new();
            for said in says {
                deeds.extend(said.deeds()?);
            }
            scene.rule(on, deeds);
        }
        if let Some(id) = &self.key_id {
            let key_id = Some(id.clone()).filter(|id| !id.is_empty());
            scene.scenario.auth = Some(Auth { key: "peerproof-test-key".to_owned(), key_id });
        }
        if self.canary == Some(false) {
            scene.without_canary();
        }
        scene.extra_ms += self.takes_ms;
        Ok(())
    }

    fn call(&self, name: &str) -> Result<Call, Untestable> {
        let mut call = Call::new(name);
        if let Some(method) = &self.method {
            call.method.clone_from(method);
        }
        if let Some(params) = &self.params {
            let bytes = payload(params, 0)?.expand(&Vars::new())?;
            let text = String::from_utf8_lossy(&bytes);
            let read = || text.parse().map_err(|error| format!("`params` of {name}: {error}"));
            call.params = if text.is_empty() { None } else { Some(read()?) };
        }
        call.timeout_ms = self.timeout_ms.unwrap_or(call.timeout_ms);
        call.retry = self.retry;
        call.notify = self.notify;
        call.batch.clone_from(&self.batch);
        call.after.clone_from(&self.after);
        Ok(call)
    }
}

impl ReactionRow {
    fn deeds(&self) -> Result<Vec<Reaction>, Untestable> {
        let mut deeds = Vec::new();
        let near_ids = |name: &str| (name == "near_ids").then_some(NEAR_IDS_MAX as u64);
        for number in 0..self.times.as_ref().map_or(Ok(1), |times| times.resolve(&near_ids))? {
            if let Some(line) = &self.line {
                let text = ended(payload(line, number)?, self.end.as_deref());
                deeds.push(Reaction::write(with_ids(text)));
            }
        }
        deeds.extend(self.result.as_ref().map(|value| Reaction::line(&result(value))));
        deeds.extend(self.error.as_ref().map(|object| Reaction::line(&error(object))));
        if let Some(form) = &self.stream {
            deeds.extend(
                stream(form, self.id.as_deref().unwrap_or("x")).iter().map(|line| Reaction::line(line)),
            );
        }
        deeds.extend(self.hang_up.then(Reaction::hang_up));
        deeds.extend(self.die.then(Reaction::die));
        if deeds.is_empty() {
            return Err("nothing is said or done".into());
        }
        let from_ms = self.after_ms.as_ref().map_or(Ok(0), |ms| ms.resolve(&|_| None))?;
        let timed =
            |(deed, number): (Reaction, u64)| deed.in_ms(from_ms + number * self.every_ms).cut(self.chunking);
        Ok(deeds.into_iter().zip(0..).map(timed).collect())
    }
}

fn payload(recipe: &Recipe, number: u64) -> Result<Payload, Untestable> {
    recipe.payload(&super::limit, &|text| {
        fill_in(text, &|name, behind| Ok((name == "N").then(|| (number.to_string(), behind))))
    })
}

/// Replaces the ids in the texts of `payload` by variables.
fn with_ids(payload: Payload) -> Payload {
    let parts = payload.0.into_iter().map(|segment| match segment {
        Segment::Text(text) => vars(&text),
        other => Payload(vec![other]),
    });
    parts.fold(Payload::default(), Payload::then)
}

/// Messages of a stream; `form` is that of `ReactionRow::stream`.
fn stream(form: &str, id: &str) -> Vec<String> {
    let mut said = Vec::new();
    let mut signs = form.chars();
    while let Some(sign) = signs.next() {
        let (method, params) = match sign {
            's' => ("stream_start", format!("\"stream_id\":\"{id}\",\"task_id\":$id ")),
            'e' => {
                let total = signs.next().unwrap_or('0');
                ("stream_end", format!("\"stream_id\":\"{id}\",\"total_chunks\":{total}"))
            }
            n => ("stream_data", format!("\"stream_id\":\"{id}\",\"chunk\":\"part {n}\",\"sequence\":{n}")),
        };
        said.push(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{{{params}}}}}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn every_row_becomes_a_plan() {
        let facts = super::super::super::full_facts::facts(Side::Consumer);
        for (name, text) in super::super::files("client") {
            let cases: Vec<Loaded<Row>> = peerproof_engine::data::case::load([(name, text)]).unwrap();
            for Loaded { case, .. } in cases {
                for row in &case.steps {
                    let of_calls = row.method.is_some()
                        || row.params.is_some()
                        || row.timeout_ms.is_some()
                        || row.batch.is_some()
                        || row.notify
                        || !row.after.is_empty();
                    assert!(row.call.is_some() || !of_calls, "{name}, {}: {row:?} is no call", case.id);
                    let of_deeds = row.on.is_some() || row.on_all.is_some() || row.attempt.is_some();
                    assert!(row.says.is_some() || !of_deeds, "{name}, {}: {row:?} says nothing", case.id);
                }
                let plan = plan(&case, &facts, &mut Rng::new(1));
                assert!(plan.is_ok(), "{name}, {}: {plan:?}", case.id);
                let is_plain = case.modes.is_empty() && case.env.is_empty() && case.roles.is_empty();
                assert!(is_plain, "{name}, {}: `modes`, `env` and `roles` mean nothing here", case.id);
            }
        }
    }
}

//! Checks of the envelope boundary: rows of the files below `corpora/envelope/cases`, and one check for each
//! documented member.
//!
//! A step sends an envelope, a base with changed members, to a process of its own, or over HTTP to one server. The
//! allowed replies follow from its bytes, and over HTTP also from the request. A row without `modes` is about
//! standard streams, and about HTTP as well if its clauses hold there. `http` means HTTP alone, `both` a peer with
//! both transports.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::sizes::padded;

use super::face::COMMAND;
use super::generate;
use super::model::BYTES_MAX;
use super::shape;
use super::talk::{self, CHAIN_MAX, Talk};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Limits by name, for recipes.
fn limit(facts: &Facts, name: &str) -> Option<u64> {
    match name {
        "bytes_max" => Some(BYTES_MAX as u64),
        "nesting_max" => Some(facts.limits.get(name).copied().unwrap_or(64)),
        _ => None,
    }
}

/// Pause between the halves of an envelope, ms. Longer than the patience of a reader that takes silence for the
/// end.
const PAUSE_MS: u64 = 1_500;

/// Sizes of the last generated envelopes, from the end, bytes.
const GENERATED_BYTES: [u64; 2] = [64 << 10, 4 << 10];

/// One step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Names of the bases; by default `plain`.
    base: Option<Vec<String>>,
    /// Members as JSON texts; empty text removes a member.
    with: BTreeMap<String, String>,
    /// Members that are strings, taken literally; a line feed stays one.
    texts: BTreeMap<String, String>,
    /// The text itself, instead of an envelope. `$PLAIN` stands for the base, `$OPEN` for it without its last
    /// brace.
    raw: Option<Recipe>,
    /// Length of the envelope, bytes; a member of padding in front fills it.
    pad_to: Option<Amount>,
    /// Unit of the padding; by default `x`.
    pad_with: Option<String>,
    chunking: Chunking,
    /// Sends its second half [`PAUSE_MS`] after the first.
    paused: bool,
    /// Settings of the HTTP request that differ from the usual; `""` removes the content type.
    #[serde(deserialize_with = "case::carriage")]
    http: Option<Carriage>,
    /// Number of replies to wait for over HTTP; by default one, or none if none need come.
    await_frames: Option<u32>,
    /// Omits the canary after it.
    alone: bool,
    /// Gives it ids that no other envelope of the conversation has.
    own_id: bool,
    /// Switches to HTTP for the following steps.
    over_http: bool,
    /// Sends it in each other spelling of JSON as well.
    presented: bool,
    /// Number of repetitions.
    times: Option<usize>,
    /// Feeds its output back until it is terminated.
    chain: bool,
    /// Number of random envelopes that every engine accepts, the last two of them longer; with `chain`, one that
    /// begins the chain.
    generated: Option<usize>,
    /// Sends over-long envelopes and measures the memory that refusing them takes.
    over_size: bool,
    /// Actions, instead.
    acts: Vec<Act>,
    /// Clause of the step; by default the first clause of the case.
    clause: Option<ClauseId>,
}

/// Names and texts of the files about callers or about engines.
pub(crate) fn files(of_callers: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    case::files(&FILES).into_iter().filter(move |(name, _)| name.starts_with("caller") == of_callers)
}

/// All rows. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(files(false))
            .unwrap_or_else(|error| unreachable!("corpora/envelope/cases does not load: {error}"))
    })
}

/// All checks, in the order in which they run.
pub(crate) fn checks() -> impl Iterator<Item = Check> {
    let of_process = all().iter().filter(|loaded| loaded.case.modes.is_empty());
    let of_http = all().iter().filter(|loaded| !loaded.case.modes.is_empty());
    let carried = of_process.clone().filter(|loaded| loaded.case.clauses.iter().all(holds_over_http));
    let case = |command| move |loaded: &Loaded<Row>| of_case(&loaded.case, command);
    let checks = of_process.map(case(COMMAND)).chain(of_members(COMMAND));
    let over_http = of_http.map(case(HTTP)).chain(carried.map(case(HTTP))).chain(of_members(HTTP));
    checks.chain(over_http)
}

fn holds_over_http(id: &ClauseId) -> bool {
    let clauses = super::boundary().clauses();
    clauses.iter().any(|clause| clause.id == *id && clause.modes.iter().any(|mode| mode == HTTP))
}

/// Beginning of check ids.
fn topic(command: &str) -> &'static str {
    if command == HTTP { "envelope/http" } else { "envelope/process" }
}

fn of_case(case: &Case<Row>, command: &'static str) -> Check {
    let own = case.clone();
    let is_of_both = case.modes.iter().any(|mode| mode == BOTH);
    let begin = if is_of_both { COMMAND } else { command };
    let planner = move |facts: &Facts, rng: &mut Rng| plan(&own, begin, facts, rng);
    let topic = if is_of_both { "envelope/both" } else { topic(command) };
    let mut check = case.check(format!("{topic}/{}", case.id), command, planner);
    check.needs_process |= command == HTTP;
    if is_of_both { check.also_command(COMMAND) } else { check }
}

/// Mode of rows about a peer with both transports.
const BOTH: &str = "both";

fn plan(case: &Case<Row>, command: &'static str, facts: &Facts, rng: &mut Rng) -> Result<Plan, Untestable> {
    let mut talk = Talk::new(command);
    for row in &case.steps {
        row.perform(&case.clauses[0].0, facts, &mut talk, rng)?;
    }
    Ok(talk.plan())
}

impl Row {
    fn perform(&self, clause: &str, facts: &Facts, talk: &mut Talk, rng: &mut Rng) -> Result<(), Untestable> {
        let clause = self.clause.as_ref().map_or(clause, |clause| &clause.0);
        if self.over_http {
            talk.over(HTTP);
            return Ok(());
        }
        if self.http.as_ref().is_some_and(|how| how.host.is_some()) && facts.shared {
            return Err(Untestable::new(
                "shared",
                "peerproof does not look at which addresses an already running server listens",
            ));
        }
        if !self.acts.is_empty() {
            talk.acts(clause, &self.acts);
            return Ok(());
        }
        for left in (0..self.generated.unwrap_or(0)).rev() {
            let text = generate::accepted(facts, self.chain, rng);
            if self.chain {
                talk.chain(clause, Payload::text(text), CHAIN_MAX);
            } else {
                let bytes = GENERATED_BYTES.get(left).copied().unwrap_or(0);
                talk.send(clause, generate::sized(&text, bytes, rng), Chunking::Whole);
            }
        }
        if self.generated.is_some() {
            return Ok(());
        }
        if self.over_size {
            talk.over_size(clause);
            return Ok(());
        }
        let plain = vec!["plain".to_owned()];
        for base in self.base.as_ref().unwrap_or(&plain) {
            let text = talk::base(base).ok_or_else(|| format!("no base is called {base:?}"))?;
            let text = talk::changed(&text, &self.with, &self.texts);
            let text = match self.own_id {
                true => talk.with_own_ids(&text),
                false => text,
            };
            let payload = self.payload(&text, facts)?;
            for _ in 0..self.times.unwrap_or(1) {
                if let Some(how) = &self.http {
                    let awaited = self.await_frames.unwrap_or_else(|| u32::from(!how.is_raw()));
                    talk.carry(clause, payload.clone(), self.chunking, how.clone(), awaited);
                    if !self.alone {
                        talk.canary_behind();
                    }
                } else if self.chain {
                    talk.chain(clause, payload.clone(), CHAIN_MAX);
                } else if self.paused {
                    talk.paused(clause, &text, PAUSE_MS);
                } else {
                    talk.send(clause, payload.clone(), self.chunking);
                }
            }
            if self.presented {
                let value: Json = text.parse().map_err(|error| format!("the base is not JSON: {error}"))?;
                for how in Presentation::ALL.into_iter().filter(|how| *how != Presentation::ExtraMembers) {
                    let text = present(&value, how, &mut || rng.next_u64());
                    // Only a SHOULD demands that a counter may be spelled 1.0.
                    let is_number = how == Presentation::NumberSpelling;
                    let clause = if is_number { "ENV-TYPE-02" } else { clause };
                    talk.send(clause, Payload::text(text), self.chunking);
                }
            }
        }
        Ok(())
    }

    fn payload(&self, text: &str, facts: &Facts) -> Result<Payload, Untestable> {
        let limits = |name: &str| limit(facts, name);
        let filled = |recipe: &str| {
            Ok(recipe.replace("$PLAIN", text).replace("$OPEN", text.strip_suffix('}').unwrap_or(text)))
        };
        let payload = match &self.raw {
            Some(recipe) => recipe.payload(&limits, &filled)?,
            None => Payload::text(text),
        };
        Ok(match &self.pad_to {
            Some(bytes) => {
                let bytes = usize::try_from(bytes.resolve(&limits)?).unwrap_or(usize::MAX);
                padded(payload, self.pad_with.as_deref().unwrap_or("x"), bytes)
            }
            None => payload,
        })
    }
}

/// Checks of the documented members: valid values come back, and wrong values are refused.
fn of_members(command: &'static str) -> Vec<Check> {
    let mut checks = Vec::new();
    let kebab = |name: &str| name.replace('_', "-");
    for (name, shape) in shape::envelope().members().iter().filter(|(name, _)| name != "processing_history") {
        let title = format!("`{name}`: the engine keeps valid values and refuses invalid ones.");
        let clause = shape::clause_of(name);
        let planner = move |_: &Facts, _: &mut Rng| {
            let mut talk = Talk::new(command);
            let mut send = |base: &str, text: &str| {
                let base = talk::base(base).unwrap_or_default();
                talk.send(clause, Payload::text(talk::with(&base, [(name.as_str(), text)])), Chunking::Whole);
            };
            for text in shape.samples() {
                send("plain", &text);
                send("done", &text);
            }
            for text in shape.wrong() {
                // Its values are valid only together with `terminated`.
                let is_of_end = ["terminal_reason", "completed_at"].contains(&name.as_str());
                send(if is_of_end { "done" } else { "plain" }, &text);
            }
            Ok(talk.plan())
        };
        let id = format!("{}/member/{}", topic(command), kebab(name));
        checks.push(Check::new(id, title, [clause], command, planner));
    }
    let stage = shape::envelope().member("completed_stages");
    let stage =
        stage.and_then(|it| if let shape::ValueType::List(item) = &it.what { Some(item) } else { None });
    for ((name, shape), clause) in stage.iter().flat_map(|it| it.members()).zip(shape::STAGE_CLAUSES) {
        let title =
            format!("`{name}` of a completed stage: the engine keeps valid values and refuses invalid ones.");
        let planner = move |_: &Facts, _: &mut Rng| {
            let mut talk = Talk::new(command);
            for text in shape.samples().into_iter().chain(shape.wrong()) {
                let stages = format!("[{{\"stage_number\":1}},{{{name:?}:{text}}}]");
                let text = talk::with(talk::PLAIN, [("completed_stages", stages.as_str())]);
                talk.send(clause, Payload::text(text), Chunking::Whole);
            }
            Ok(talk.plan())
        };
        let id = format!("{}/stage/{}", topic(command), kebab(name));
        checks.push(Check::new(id, title, [clause], command, planner));
    }
    checks.iter_mut().for_each(|check| check.needs_process |= command == HTTP);
    checks
}

#[cfg(test)]
mod tests {
    use super::super::model::{Acceptance, Input};
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::payload::Vars;

    /// The name of a topic agrees with the model's verdict about its bytes.
    #[test]
    fn the_model_says_of_every_row_what_its_topic_says() {
        let facts = Facts::new(Side::Provider);
        for check in checks() {
            let plan = (check.planner)(&facts, &mut Rng::new(1))
                .unwrap_or_else(|error| panic!("{}: {error}", check.id));
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 1 << 20, "{} is {stored} bytes", check.id);
            let mut refused = Vec::new();
            for step in plan.steps.iter().filter(|step| !step.canary) {
                let Act::Send { payload, .. } = &step.act else { continue };
                if payload.variables().next().is_some() || payload.len(&Vars::new()) > 1 << 20 {
                    continue;
                }
                let input = Input::read(&facts, &payload.expand(&Vars::new()).unwrap());
                let is = |stand: fn(&Acceptance) -> bool| input.traits.iter().any(|it| stand(&it.stand));
                refused.push(is(|it| matches!(it, Acceptance::Refuse | Acceptance::Doubt)));
                let text = payload.summary(200);
                match check.id.split('/').nth(2).unwrap() {
                    "accepted" => {
                        assert!(
                            !is(|it| matches!(it, Acceptance::Refuse | Acceptance::Doubt)),
                            "{}: {text}",
                            check.id
                        );
                        let mut open =
                            input.traits.iter().filter(|it| matches!(it.stand, Acceptance::Open(..)));
                        assert!(open.all(|it| it.clause == "ENV-TERM-05"), "{}: {text}", check.id);
                    }
                    "refused" => {}
                    "open" => {
                        assert!(
                            is(|it| matches!(it, Acceptance::Open(..))) || !refused.contains(&true),
                            "{}: {text}",
                            check.id
                        );
                    }
                    _ => {}
                }
            }
            if check.id.contains("/refused/") {
                assert!(refused.contains(&false), "{} has no twin that is accepted", check.id);
                assert!(refused.iter().filter(|it| !**it).count() <= 2, "{}: {refused:?}", check.id);
            }
            if check.id.contains("/member/") || check.id.contains("/stage/") {
                assert!(refused.contains(&false), "{}", check.id);
                assert!(refused.iter().filter(|it| **it).count() >= 3, "{}: {refused:?}", check.id);
            }
        }
    }

    /// The end of a chain ends its conversation.
    #[test]
    fn a_chain_is_the_last_of_its_conversation() {
        for Loaded { case, .. } in all() {
            let chains = case.steps.iter().position(|row| row.chain);
            assert!(chains.is_none_or(|at| at + 1 == case.steps.len()), "{}", case.id);
            let is_one = |row: &Row| row.base.as_ref().is_none_or(|it| it.len() == 1) && row.times.is_none();
            assert!(case.steps.iter().all(|row| !row.chain || is_one(row)), "{}", case.id);
        }
    }

    #[test]
    fn right_values_are_right_and_wrong_ones_wrong() {
        let facts = Facts::new(Side::Provider);
        for (name, shape) in
            shape::envelope().members().iter().filter(|(name, _)| name != "processing_history")
        {
            let of = |text: &str| {
                let text = talk::with(talk::PLAIN, [(name.as_str(), text)]);
                let at = format!("/{name}");
                let traits = Input::read(&facts, text.as_bytes()).traits;
                traits.into_iter().any(|it| it.at.starts_with(&at) && it.stand == Acceptance::Refuse)
            };
            for text in shape.samples() {
                assert!(!of(&text), "{name}: {text}");
            }
            for text in shape.wrong() {
                assert!(of(&text), "{name}: {text}");
            }
        }
    }

    #[test]
    fn bases_are_envelopes_by_model_and_schema() {
        for name in ["plain", "done", "full", "full-done"] {
            let text = talk::base(name).unwrap();
            let input = Input::read(&Facts::new(Side::Provider), text.as_bytes());
            assert!(input.traits.iter().all(|it| it.clause == "ENV-TERM-05"), "{name}: {:?}", input.traits);
            assert_eq!(shape::objection("envelope", &text.parse().unwrap()), None, "{name}");
            let missing = shape::envelope()
                .members()
                .iter()
                .filter(|(member, _)| !text.contains(&format!("{member:?}")));
            assert!(!name.starts_with("full") || missing.count() == 0, "{text}");
        }
    }
}

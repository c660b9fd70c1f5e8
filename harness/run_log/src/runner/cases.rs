//! Checks of runners: rows of the files `runner*.toml` below `corpora/run_log/cases`.
//!
//! A step is a run: its request, the driver's answer at each start, and the behaviour of the tools that it picks.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::{COMMAND_VARIABLE, LOGS, Names, TIMEOUT_VARIABLE};
use crate::RUNNER;
use crate::tools::{self, TOOLHOST};
use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::case::{self, Case, Flag, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{
    Act, ActorStep, AwaitedEffect, Fixture, PathKind, Plan, Session, Sight, Step,
};
use peerproof_engine::data::rng::Rng;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Time limit of a tool in runs that do not test time, seconds.
const TIMEOUT_S: &str = "20";

/// Extra time of each run, ms, because it starts other processes.
const RUN_MS: u64 = 5_000;

/// Time for each start of a driver or a toolhost, ms.
const START_MS: u64 = 1_000;

/// Time to wait for the event that a kill follows, ms.
const KILL_MS: u64 = 20_000;

/// One run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Members of the request as JSON texts; empty text removes a member.
    request: BTreeMap<String, String>,
    /// The request itself, instead.
    raw: Option<Recipe>,
    /// Further tools beside `DO`, by name; true if deterministic.
    tools: BTreeMap<String, bool>,
    /// Number of further tools after those.
    more_tools: usize,
    /// Tags of `DO`.
    tags: Vec<String>,
    /// Answers of the driver, start by start. NOOP follows the last.
    driver: Vec<Turn>,
    /// Omits the final NOOP; the last answer repeats.
    goes_on: bool,
    /// Environment of the runner.
    env: BTreeMap<String, String>,
    /// Puts the log at a path where it cannot be created.
    unwritable: bool,
    /// Entry at the path of the toolhost, instead of a program.
    peer: Option<PathKind>,
    /// Points at which the runner is killed, each in a run of its own. `driver N`: its driver is started, `answer
    /// N`: the driver has answered, `tool N`: its toolhost has taken a request, `reply N`: the toolhost has replied
    /// (all counted from 0), `line N`: the log has N lines. Empty text: a run without kill.
    kill_at: Vec<String>,
    /// Signal instead of `KILL`.
    signal: Option<String>,
    /// Extra time of the run, ms.
    allow_ms: u64,
}

/// Behaviour of a driver at one start.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Turn {
    /// Prints this text and exits with status 0.
    Says(String),
    /// Behaves like this.
    Does(Box<DriverBehaviour>),
}

/// Behaviour of a driver: it picks a tool, or follows a script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DriverBehaviour {
    /// Name of the picked tool; by default `DO`.
    pick: Option<String>,
    /// Patch, a JSON object. With `does` there is always a patch.
    patch: Option<String>,
    /// Task of the tool, a JSON object.
    does: Option<String>,
    /// Text that the toolhost writes instead of a reply.
    replies: Option<Recipe>,
    /// Steps of the toolhost after that.
    then: Vec<ActorStep>,
    /// Length of a long string in the patch, bytes.
    pad: Option<u64>,
    /// Encodes the patch in base64.
    base64: bool,
    /// Steps of the driver, instead of everything above.
    script: Vec<ActorStep>,
}

/// All rows. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let own = case::files(&FILES).into_iter().filter(|(name, _)| name.starts_with("runner"));
        case::load(own).unwrap_or_else(|error| unreachable!("corpora/run_log/cases does not load: {error}"))
    })
}

/// All checks, in the order in which they run.
pub(crate) fn checks() -> Vec<Check> {
    let check = |loaded: &Loaded<Row>| {
        let own = loaded.case.clone();
        let planner = move |_: &_, _: &mut _| plan(&own);
        let id = format!("run_log/runner/{}", loaded.case.id);
        loaded.case.check(id, RUNNER, planner).vouched().on_process()
    };
    all().iter().map(check).collect()
}

fn plan(case: &Case<Row>) -> Result<Plan, Untestable> {
    let mut plan = folder();
    for row in &case.steps {
        row.add_all(&case.clauses[0].0, &mut plan)?;
    }
    if case.flags.contains(&Flag::FirstCanary) {
        plan.steps.iter_mut().filter(|step| !step.expect.is_null()).for_each(|step| step.canary = true);
    }
    Ok(plan)
}

fn folder() -> Plan {
    let logs = Fixture::Folder { name: LOGS.to_owned(), folders: Vec::new(), watched: false };
    Plan { fixtures: vec![logs], ..Plan::default() }
}

fn aid(name: &str) -> String {
    format!("AID.PEERPROOF.{name}.v1")
}

impl Row {
    /// Adds the runs of the row about `clause`, one per point.
    fn add_all(&self, clause: &str, plan: &mut Plan) -> Result<(), Untestable> {
        let whole = [String::new()];
        let points = if self.kill_at.is_empty() { &whole[..] } else { &self.kill_at };
        points.iter().try_for_each(|at| self.add(clause, at, plan))
    }

    /// Adds a run about `clause` that is killed at this point.
    fn add(&self, clause: &str, kill_at: &str, plan: &mut Plan) -> Result<(), Untestable> {
        let session = plan.sessions.len();
        let names = Names::of(session);
        let path = |name: &str| format!("{{{{{name}.path}}}}");
        let content = match &self.raw {
            Some(recipe) => recipe.payload(&|_| None, &|text| Ok(text.to_owned()))?,
            None => Payload::text(self.request()?),
        };
        plan.fixtures.push(Fixture::File { name: names.request.clone(), content, mode: None, kept: false });
        let mut turns = self.driver.iter().map(Turn::script).collect::<Result<Vec<_>, _>>()?;
        if !self.goes_on {
            turns.push(Turn::Says("<NOOP><END>".to_owned()).script()?);
        }
        let starts = turns.len() as u64;
        let mut turns = turns.into_iter();
        let script = turns.next().unwrap_or_default();
        plan.fixtures.push(Fixture::Actor { name: names.driver.clone(), script, later: turns.collect() });
        plan.fixtures.push(match &self.peer {
            Some(what) => Fixture::Path { name: names.toolhost.clone(), what: what.clone() },
            None => Fixture::Actor {
                name: names.toolhost.clone(),
                script: vec![ActorStep::Converse(TOOLHOST.to_owned())],
                later: Vec::new(),
            },
        });
        let above = if self.unwritable { &names.request } else { LOGS };
        let log = format!("{}/{}.log", path(above), names.log);
        let variables = [
            (COMMAND_VARIABLE, format!("sh {}", path(&names.driver))),
            ("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", "{{folder}}/policies".to_owned()),
            ("MACHINA_POLICY_TIMEOUT_MS", "20000".to_owned()),
            ("MACHINA_POLICY_FAIL_THRESHOLD", "1000".to_owned()),
            (TIMEOUT_VARIABLE, TIMEOUT_S.to_owned()),
        ];
        let mut env: BTreeMap<_, _> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        env.extend(self.env.clone());
        let placeholders = [("request", path(&names.request)), ("log", log), ("peer", path(&names.toolhost))];
        plan.sessions.push(Session {
            command: RUNNER.to_owned(),
            placeholders: placeholders.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            env,
            shows_start: Some(false),
            ..Session::default()
        });
        let aim = Aim { clause: ClauseId(clause.to_owned()), reason: None };
        let expect = serde_json::to_value(aim).unwrap_or_default();
        let starts_ms = RUN_MS + START_MS * starts + self.allow_ms;
        let (act, allow_ms) = match kill_at {
            "" => (Act::Finish, starts_ms),
            at => {
                let signal = self.signal.clone().unwrap_or_else(|| "KILL".to_owned());
                let (what, within_ms) = (point(at, &names)?, KILL_MS);
                (Act::SignalWhen { signal, what, within_ms }, 0)
            }
        };
        plan.steps.push(Step { session, expect, allow_ms, ..Step::new(act) });
        if !kill_at.is_empty() {
            // The step also ends a run in which the point was not seen.
            plan.steps.push(Step { session, allow_ms: starts_ms, ..Step::new(Act::Finish) });
        }
        let look =
            Payload::default().var(format!("{LOGS}.path")).then(Payload::text(format!("/{}.log", names.log)));
        let look = Act::Look { label: names.log, path: look, after_ms: 0 };
        plan.steps.push(Step { session, ..Step::new(look) });
        Ok(())
    }

    /// The text of the request.
    fn request(&self) -> Result<String, Untestable> {
        let tool = |name: &str, deterministic: bool, tags: &[String]| {
            Json::object([
                ("aid", Json::from(aid(name))),
                ("name", name.to_lowercase().into()),
                ("tags", Json::array(tags.iter().map(String::as_str))),
                ("deterministic", deterministic.into()),
            ])
        };
        let mut tools = vec![tool("DO", true, &self.tags)];
        tools.extend(self.tools.iter().map(|(name, deterministic)| tool(name, *deterministic, &[])));
        tools.extend((1..=self.more_tools).map(|number| tool(&format!("MORE{number}"), false, &[])));
        let mut request = Json::object([
            ("goal_id", Json::from("Goal 1")),
            ("inputs", Json::object([("k", Json::from(1_u64)), ("keep", "é".into())])),
            ("control_mode", "POLICY_ONLY".into()),
            ("request_id", "Request 1 É".into()),
            ("tools", Json::Array(tools)),
        ]);
        for (name, text) in &self.request {
            match text.is_empty() {
                true => _ = request.remove(name),
                false => request.set(name, json(text)?),
            }
        }
        Ok(request.to_text())
    }
}

/// Effect that marks a point of a run, as in [`Row::kill_at`].
fn point(at: &str, names: &Names) -> Result<AwaitedEffect, Untestable> {
    let (what, number) = at.split_once(' ').unwrap_or((at, ""));
    let number = number.parse().map_err(|_| format!("`kill_at` has no number: {at:?}"))?;
    let (driver, toolhost) = (names.driver.clone(), names.toolhost.clone());
    Ok(match what {
        "driver" => AwaitedEffect::Starts { actor: driver, start: number },
        "answer" => AwaitedEffect::Writes { actor: driver, output: number },
        "tool" => AwaitedEffect::Takes { actor: toolhost, request: number },
        "reply" => AwaitedEffect::Writes { actor: toolhost, output: number },
        "line" => AwaitedEffect::Lines {
            folder: LOGS.to_owned(),
            path: format!("{}.log", names.log),
            lines: number,
        },
        other => return Err(format!("`kill_at` is about a driver, a tool or a line, not {other:?}").into()),
    })
}

fn json(text: &str) -> Result<Json, Untestable> {
    text.parse::<Json>().map_err(|error| format!("{error}: {text}").into())
}

impl Turn {
    fn script(&self) -> Result<Vec<ActorStep>, Untestable> {
        let says = match self {
            Self::Says(text) => text.clone(),
            Self::Does(does) if !does.script.is_empty() => {
                let looks = std::iter::once(ActorStep::Look(Sight::Payload));
                return Ok(looks.chain(does.script.iter().cloned()).collect());
            }
            Self::Does(does) => does.block()?,
        };
        Ok(vec![ActorStep::Look(Sight::Payload), ActorStep::Quote(says)])
    }
}

impl DriverBehaviour {
    fn block(&self) -> Result<String, Untestable> {
        let mut told = self.does.as_deref().map(json).transpose()?;
        tools::told(told.as_ref())?;
        let mut steps = Vec::new();
        if let Some(recipe) = &self.replies {
            steps.push(ActorStep::Stdout(recipe.payload(&|_| None, &|text| Ok(text.to_owned()))?));
        }
        steps.extend(self.then.iter().cloned());
        if !steps.is_empty() {
            let steps = serde_json::to_string(&steps).map_err(|error| error.to_string())?;
            told.get_or_insert_with(|| Json::Object(Vec::new())).set("steps", json(&steps)?);
        }
        let mut patch = self.patch.as_deref().map(json).transpose()?;
        for (name, value) in
            [("do", told), ("pad", self.pad.map(|bytes| Json::from("x".repeat(bytes as usize))))]
        {
            if let Some(value) = value {
                patch.get_or_insert_with(|| Json::Object(Vec::new())).set(name, value);
            }
        }
        let sid = format!("⟦/menu/aid={}/sid⟧", aid(self.pick.as_deref().unwrap_or("DO")));
        Ok(match patch {
            None => format!("<PICK><{sid}><END>"),
            Some(patch) if self.base64 => {
                use base64::Engine as _;
                let text = base64::engine::general_purpose::STANDARD.encode(patch.to_text());
                format!("<PICK><{sid}><INP64>{text}</INP64><END>")
            }
            Some(patch) => format!("<PICK><{sid}><INP>{}</INP><END>", patch.to_text()),
        })
    }
}

/// A random run.
pub(crate) fn conversation(rng: &mut Rng) -> Plan {
    let mut row = Row { tools: BTreeMap::from([("FAIL".to_owned(), false)]), ..Row::default() };
    for _ in 0..rng.range(1..=6) {
        row.driver.push(match rng.below(8) {
            0 => Turn::Says(
                ["<ASK_SUP><END>", "no block", "", "<PICK><SID0000><END>"][rng.index(4)].to_owned(),
            ),
            1 => Turn::Does(Box::new(DriverBehaviour {
                pick: Some("FAIL".to_owned()),
                ..DriverBehaviour::default()
            })),
            _ => Turn::Does(Box::new(drawn(rng))),
        });
    }
    if rng.chance(1, 3) {
        row.request.insert("max_steps".to_owned(), rng.range(1..=4).to_string());
    }
    let mut plan = Plan { by_model: true, ..folder() };
    // A generated row is always valid.
    let _ = row.add("LOG-RUN-STATE", "", &mut plan);
    plan
}

fn drawn(rng: &mut Rng) -> DriverBehaviour {
    let values = ["null", "[]", "{\"a\":{\"b\":1}}", "1.50", "\"é\\u0000\"", "true"];
    let value = |rng: &mut Rng| values[rng.index(values.len())];
    let content = Json::from(value(rng)).to_text();
    let size = content.parse::<Json>().ok().and_then(|it| it.as_str().map(str::len)).unwrap_or(0);
    let slot = rng.below(8);
    let artifact =
        format!(r#"{{"type":"t","provenance":"p:1","content_json":{content},"size_bytes":{size}}}"#);
    let does = match rng.below(3) {
        0 => format!(r#"{{"set":{{"{slot}":{artifact}}}}}"#),
        1 => format!(r#"{{"remove":[{slot}]}}"#),
        _ => format!(r#"{{"output":{}}}"#, Json::from(value(rng)).to_text()),
    };
    let patch =
        rng.chance(1, 2).then(|| format!(r#"{{"{}":{}}}"#, ["k", "é", "", "x"][rng.index(4)], value(rng)));
    DriverBehaviour {
        patch,
        does: rng.chance(2, 3).then_some(does),
        base64: rng.chance(1, 4),
        ..DriverBehaviour::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::request::{RequestTreatment, read};

    #[test]
    fn a_task_whose_steps_cannot_be_read_is_an_error() {
        let task = |does: &str| {
            DriverBehaviour { does: Some(does.to_owned()), ..DriverBehaviour::default() }.block()
        };
        assert!(task(r#"{"steps":[{"exit":3}]}"#).is_ok());
        assert!(task(r#"{"steps":[{"exits":3}]}"#).is_err());
    }

    #[test]
    fn every_row_becomes_a_plan_whose_requests_mean_something() {
        for Loaded { case, file } in all() {
            let plan = plan(case).unwrap_or_else(|error| panic!("{file}, {}: {error}", case.id));
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 1 << 20, "{} is {stored} bytes", case.id);
            for fixture in &plan.fixtures {
                if let Fixture::File { content, .. } = fixture {
                    let asked = read(&content.expand(&BTreeMap::new()).unwrap());
                    let is_unclear = ["request/deeper", "request/half-a-pair"].contains(&case.id.as_str());
                    assert!(asked != RequestTreatment::Unclear || is_unclear, "{}", case.id);
                }
            }
        }
    }
}

//! Builder of logs, made by running a model, and of conversations: one process of the replayer per log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, ActorStep, Fixture, PathKind, Plan, Session, Step};

use crate::state::{Artifact, State};
use crate::tools::{self, ExecutionResult};
use crate::{REPLAYER, digest};

/// Name of the actor that stands for a policy driver and counts its starts.
pub(crate) const POLICY: &str = "policies/policy.sh";

/// Time for a replay without its re-runs, and time for one re-run, ms.
const REPLAY_MS: u64 = 4_000;
const RERUN_MS: u64 = 1_000;

/// Name of a fixture or label of session `at`: its folder, its toolhost, or the look at its files.
pub fn named(what: &str, at: usize) -> String {
    format!("{what}-{at}")
}

/// Name of the fixture with the log of a session.
pub(crate) fn log_of(at: usize) -> String {
    format!("{}/log", named("run", at))
}

/// One selection and its outcome.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pick {
    /// PICK or another kind. Only a PICK uses the other members.
    pub kind: String,
    /// Word in the tool's aid.
    pub tool: String,
    /// Patch as JSON text.
    pub patch: Option<String>,
    /// Length of an extra member in the patch, characters.
    pub pad: Option<usize>,
    /// Member `deterministic` of the tool event.
    pub deterministic: bool,
    /// Logged output, if it differs from the tool's.
    pub output: Option<String>,
    /// Makes the tool fail.
    pub fails: bool,
    /// Logs the merged inputs in `inputs_patched`.
    pub shows: bool,
    /// Makes the selection a fallback, which only its `raw` shows.
    pub fallback: bool,
}

impl Default for Pick {
    fn default() -> Self {
        let (kind, tool) = ("PICK".to_owned(), "RANDOM".to_owned());
        Self {
            kind,
            tool,
            patch: None,
            pad: None,
            deterministic: false,
            output: None,
            fails: false,
            shows: false,
            fallback: false,
        }
    }
}

/// A run under construction, with its log.
pub struct Maker {
    header: Json,
    inputs: Json,
    state: State,
    /// SIDs by aid.
    sids: BTreeMap<String, String>,
    step: u64,
    lines: Vec<Json>,
}

impl Maker {
    /// Starts a run. `header` is on each line; `start` is the payload of the first.
    pub fn new(header: Json, start: Json) -> Self {
        let state = start.get("state").and_then(|state| State::read(state).ok()).unwrap_or_default();
        let inputs = start.get("inputs").cloned().unwrap_or_default();
        let mut run = Self { header, inputs, state, sids: BTreeMap::new(), step: 0, lines: Vec::new() };
        run.line("run_started", start);
        run
    }

    fn line(&mut self, event: &str, payload: Json) {
        let mut line = self.header.clone();
        line.set("event", event);
        line.set("step", self.step);
        line.set("payload", payload);
        self.lines.push(line);
    }

    /// Makes a selection and runs its tool.
    pub fn pick(&mut self, pick: &Pick) {
        let aid = format!("AID.PEERPROOF.{}.v1", pick.tool);
        let number = self.sids.len() + 1;
        let sid = self.sids.entry(aid.clone()).or_insert_with(|| format!("SID{number:04}")).clone();
        let is_pick = pick.kind == "PICK";
        let padded = pick.pad.map(|chars| format!("{{\"pad\":\"{}\"}}", "x".repeat(chars)));
        let patch = pick.patch.as_ref().or(padded.as_ref()).filter(|_| is_pick);
        let block = match (is_pick, patch) {
            (true, None) => format!("<PICK><{sid}><END>"),
            (true, Some(patch)) => format!("<PICK><{sid}><INP>{patch}</INP><END>"),
            _ => format!("<{}><END>", pick.kind),
        };
        let raw = if pick.fallback { "the driver ended with status 1".to_owned() } else { block };
        let mut chosen = Json::object([("kind", Json::from(pick.kind.as_str()))]);
        if is_pick {
            chosen.set("sid", sid);
            chosen.set("aid", aid.as_str());
        }
        if let Some(patch) = patch {
            chosen.set("input_patch_json", patch.as_str());
        }
        chosen.set("raw", raw);
        self.line("selector_chosen", chosen);
        if let Some(patch) = patch.and_then(|patch| patch.parse::<Json>().ok()) {
            for (name, value) in patch.as_object().unwrap_or_default() {
                self.inputs.set(name, value.clone());
            }
            let mut payload = Json::object([("patch", patch)]);
            if pick.shows {
                payload.set("inputs", self.inputs.clone());
            }
            self.line("inputs_patched", payload);
        }
        if is_pick {
            self.tool(&aid, pick);
        }
        self.step += 1;
    }

    fn tool(&mut self, aid: &str, pick: &Pick) {
        // The tool did its task in the original run, whatever it does in the replay.
        let ran = tools::run(tools::DO, &self.inputs, &self.state);
        let (true, ExecutionResult::Done(output, after)) = (!pick.fails, ran) else {
            let mut payload = Json::object([
                ("aid", Json::from(aid)),
                ("status", "TOOL_ERROR".into()),
                ("error", "it did not work".into()),
            ]);
            if pick.deterministic {
                payload.set("deterministic", true);
            }
            return self.line("tool_error", payload);
        };
        let payload = Json::object([
            ("aid", Json::from(aid)),
            ("deterministic", pick.deterministic.into()),
            ("output_json", pick.output.clone().unwrap_or(output).into()),
            ("tx_patch", after.patch_from(&self.state)),
            ("state_digest", digest::of_state(&after).into()),
        ]);
        self.state = *after;
        self.line("tool_ok", payload);
    }

    /// The log of the finished run.
    pub fn finish(mut self, reason: &str) -> Vec<Json> {
        let steps = self.step;
        self.step = steps.saturating_sub(1);
        let digest = digest::of_state(&self.state);
        let payload = Json::object([
            ("reason", Json::from(reason)),
            ("steps", steps.into()),
            ("state_digest", digest.into()),
        ]);
        self.line("run_finished", payload);
        self.lines
    }
}

/// Default header of logs.
pub fn header() -> Json {
    Json::object([("run_id", Json::from("0a1b2c3d-4e5f-4678-89ab-cdef01234567"))])
}

/// Default payload of `run_started`.
pub fn start() -> Json {
    let inputs = Json::object([("k", 1.into()), ("kept", Json::array(["é", ""]))]);
    Json::object([
        ("goal_id", Json::from("goal")),
        ("inputs", inputs),
        ("control_mode", "POLICY_ONLY".into()),
    ])
}

/// Default selections: two tools without re-run, a tool that fails, a tool that is re-run, and the end.
pub fn usual() -> Vec<Pick> {
    let held = |slot: usize, text: &str| {
        let artifact = Artifact::new("json", "tool", text).to_json().to_text();
        format!("\"{slot}\":{artifact}")
    };
    let patch = |slot: usize, text: &str, rest: &str| {
        Some(format!("{{\"do\":{{\"set\":{{{}}}{rest}}}}}", held(slot, text)))
    };
    let random = |patch| Pick { patch, ..Pick::default() };
    vec![
        random(patch(0, "{\"a\":1}", "")),
        Pick { shows: true, ..random(patch(5, "\"é\"", ",\"remove\":[0]")) },
        Pick { tool: "FAIL".to_owned(), fails: true, ..Pick::default() },
        Pick { tool: "DO".to_owned(), deterministic: true, ..random(patch(2, "[1,2]", ",\"remove\":[5]")) },
        Pick { kind: "NOOP".to_owned(), ..Pick::default() },
    ]
}

/// The text of a log.
pub fn text(lines: &[Json]) -> String {
    lines.iter().map(|line| line.to_text() + "\n").collect()
}

/// The smallest log; the canary uses it.
fn plain() -> String {
    let mut run = Maker::new(
        header(),
        Json::object([("goal_id", Json::from("g")), ("inputs", Json::Object(Vec::new()))]),
    );
    run.pick(&Pick { patch: Some("{\"k\":2}".to_owned()), ..Pick::default() });
    run.pick(&Pick { kind: "NOOP".to_owned(), ..Pick::default() });
    text(&run.finish("noop"))
}

/// Recomputes the digests of a log from its patches.
pub fn redigest(lines: &mut [Json]) {
    let mut state = State::default();
    for line in lines {
        let Some(payload) = line.get_mut("payload") else { continue };
        for item in payload.get("tx_patch").and_then(Json::as_array).unwrap_or_default() {
            state.follow(item);
        }
        if payload.get("state_digest").is_some() {
            payload.set("state_digest", digest::of_state(&state));
        }
    }
}

/// Settings of a process that gets a log.
#[derive(Debug, Clone, Default)]
pub struct GivenLog {
    /// Entry at the path of the log, instead of a file.
    pub missing: Option<PathKind>,
    /// Entry at the path of the toolhost, instead of a program.
    pub no_toolhost: Option<PathKind>,
    /// Environment of the replayer.
    pub env: BTreeMap<String, String>,
    /// Time that the tools take, ms.
    pub allow_ms: u64,
    /// Actions between start and end of the replayer.
    pub acts: Vec<Act>,
}

/// A conversation under construction.
pub struct Talk {
    plan: Plan,
    /// Valid logs that were given already.
    twins: BTreeSet<String>,
}

impl Default for Talk {
    fn default() -> Self {
        let script = vec![ActorStep::Exit(1)];
        let policy = Fixture::Actor { name: POLICY.to_owned(), script, later: Vec::new() };
        let plan = Plan { by_model: true, fixtures: vec![policy], ..Plan::default() };
        let mut talk = Self { plan, twins: BTreeSet::new() };
        talk.give("LOG-VERDICT-OK", Payload::text(plain()), GivenLog::default());
        talk.plan.steps[0].canary = true;
        talk
    }
}

impl Talk {
    /// Gives a valid log once.
    pub(crate) fn twin(&mut self, clause: &str, log: &str) {
        if self.twins.insert(log.to_owned()) {
            self.give(clause, Payload::text(log), GivenLog::default());
        }
    }

    /// Gives a log about `clause` to a new process. The required verdict follows from its bytes.
    pub fn give(&mut self, clause: &str, log: Payload, how: GivenLog) {
        let at = self.plan.sessions.len();
        let (folder, toolhost) = (named("run", at), named("peer", at));
        let reruns = log.summary(1 << 20).matches("\"deterministic\":true").count() as u64;
        let bytes = log.len(&Vars::new()) as u64;
        self.plan.fixtures.push(Fixture::Folder {
            name: folder.clone(),
            folders: Vec::new(),
            watched: false,
        });
        self.plan.fixtures.push(match how.missing {
            Some(what) => Fixture::Path { name: log_of(at), what },
            None => Fixture::File { name: log_of(at), content: log, mode: None, kept: false },
        });
        self.plan.fixtures.push(match how.no_toolhost {
            Some(what) => Fixture::Path { name: toolhost.clone(), what },
            None => {
                let script = vec![ActorStep::Converse(tools::TOOLHOST.to_owned())];
                Fixture::Actor { name: toolhost.clone(), script, later: Vec::new() }
            }
        });
        let path = |name: &str| format!("{{{{{name}.path}}}}");
        let mut env = how.env;
        env.insert("MACHINA_POLICY_CMD".to_owned(), format!("sh {}", path(POLICY)));
        // Lets a selector start the driver.
        env.insert("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT".to_owned(), "{{folder}}/policies".to_owned());
        self.plan.sessions.push(Session {
            command: REPLAYER.to_owned(),
            placeholders: BTreeMap::from([
                ("log".to_owned(), path(&log_of(at))),
                ("peer".to_owned(), path(&toolhost)),
            ]),
            env,
            ..Session::default()
        });
        let aim = Aim { clause: ClauseId(clause.to_owned()), reason: None };
        let expect = serde_json::to_value(aim).unwrap_or_default();
        let allow_ms = REPLAY_MS + reruns * RERUN_MS + how.allow_ms + bytes / 1_000;
        let acts = how.acts.into_iter().chain([Act::Finish]);
        let first = self.plan.steps.len();
        // SIGTERM leaves only the time of the contract.
        let of = |act: &Act| if matches!(act, Act::Signal(_)) { 0 } else { allow_ms };
        self.plan.steps.extend(acts.map(|act| Step { session: at, allow_ms: of(&act), ..Step::new(act) }));
        self.plan.steps[first].expect = expect;
        let look = Act::Look { label: named("left", at), path: Payload::text(folder), after_ms: 0 };
        self.plan.steps.push(Step { session: at, ..Step::new(look) });
    }

    /// Returns the plan.
    pub fn plan(self) -> Plan {
        self.plan
    }
}

/// Plans with a smaller log in the session of a step: without one selection and its events, or without one other
/// event. Steps, digests and outputs that were right are corrected; damaged ones stay.
pub fn variants(plan: &Plan, step: usize) -> Vec<Plan> {
    let Some(session) = plan.steps.get(step).map(|step| step.session) else { return Vec::new() };
    let name = log_of(session);
    let Some((at, content)) = plan.fixtures.iter().enumerate().find_map(|(at, fixture)| match fixture {
        Fixture::File { name: own, content, .. } if *own == name => Some((at, content)),
        _ => None,
    }) else {
        return Vec::new();
    };
    let text =
        content.expand(&Vars::new()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let event = |line: &str| {
        let value = line.parse::<Json>().ok();
        value.as_ref().and_then(|value| value.get("event")).and_then(Json::as_str).map(str::to_owned)
    };
    let is_head = |line: &&str| matches!(event(line).as_deref(), Some("selector_chosen" | "run_finished"));
    let heads: Vec<usize> = (0..lines.len()).filter(|at| is_head(&lines[*at])).collect();
    let selections = heads.windows(2).map(|pair| (pair[0], pair[1], 1));
    let known = ["run_started", "selector_chosen", "inputs_patched", "tool_ok", "tool_error", "run_finished"];
    let others =
        (0..lines.len()).filter(|at| event(lines[*at]).is_some_and(|own| !known.contains(&own.as_str())));
    let smaller = |(from, to, steps): (usize, usize, u64)| {
        let kept: Vec<&str> = lines[..from].iter().chain(&lines[to..]).copied().collect();
        let mut plan = plan.clone();
        if let Fixture::File { content, .. } = &mut plan.fixtures[at] {
            *content = Payload::text(mended(&lines, &kept, from, steps));
        }
        plan
    };
    selections.chain(others.map(|at| (at, at + 1, 0))).map(smaller).collect()
}

/// The lines `kept` of a log, with steps renumbered from line `from` on. Values that were right in `all` are
/// corrected.
fn mended(all: &[&str], kept: &[&str], from: usize, steps: u64) -> String {
    let is_right = |(value, own): &(Json, [Option<Json>; 2])| {
        ["state_digest", "output_json"].map(|name| {
            let told = value.get("payload").and_then(|payload| payload.get(name));
            let own = &own[usize::from(name == "output_json")];
            own.is_some() && told == own.as_ref()
        })
    };
    let was_right: BTreeMap<&str, [bool; 2]> = all
        .iter()
        .zip(followed(all.iter().copied()))
        .filter_map(|(line, it)| Some((*line, is_right(&it?))))
        .collect();
    let mut text = String::new();
    for (at, (line, followed)) in kept.iter().zip(followed(kept.iter().copied())).enumerate() {
        let Some((mut value, own)) = followed else {
            text.push_str(line);
            continue;
        };
        let before = value.clone();
        for pointer in ["/step", "/payload/steps"] {
            if let Some(number) = value.pointer_mut(pointer).filter(|_| at >= from)
                && let Some(counted) = number.as_u64()
            {
                *number = counted.saturating_sub(steps).into();
            }
        }
        let right = was_right.get(line).copied().unwrap_or_default();
        for ((name, own), is_right) in ["state_digest", "output_json"].into_iter().zip(own).zip(right) {
            if let (Some(own), true, Some(payload)) = (own, is_right, value.get_mut("payload")) {
                payload.set(name, own);
            }
        }
        // An unchanged line keeps its spelling.
        text.push_str(&if value == before { (*line).to_owned() } else { value.to_text() + "\n" });
    }
    text
}

/// JSON of each line, with the digest and the output that follow from the earlier lines. `None` for a line that is
/// not JSON.
fn followed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Option<(Json, [Option<Json>; 2])>> {
    let (mut inputs, mut state) = (Json::Object(Vec::new()), State::default());
    let follow = |line: &str| {
        let value: Json = line.parse().ok()?;
        let payload = value.get("payload")?;
        let mut output = None;
        if let Some(begun) = payload.get("inputs").filter(|_| payload.get("goal_id").is_some()) {
            inputs = begun.clone();
            state = payload.get("state").and_then(|state| State::read(state).ok()).unwrap_or_default();
        }
        for (name, value) in payload.get("patch").and_then(Json::as_object).unwrap_or_default() {
            inputs.set(name, value.clone());
        }
        if payload.get("output_json").is_some()
            && let ExecutionResult::Done(own, _) = tools::run(tools::DO, &inputs, &state)
        {
            output = Some(Json::from(own));
        }
        for item in payload.get("tx_patch").and_then(Json::as_array).unwrap_or_default() {
            state.follow(item);
        }
        let digest = payload.get("state_digest").map(|_| digest::of_state(&state).into());
        Some((value, [digest, output]))
    };
    lines.map(follow).collect()
}

#[cfg(test)]
mod tests {
    use super::super::model;
    use super::*;

    #[test]
    fn a_smaller_log_is_damaged_as_before_and_nowhere_else() {
        let mut run = Maker::new(header(), start());
        for pick in [Pick::default()].iter().chain(&usual()) {
            run.pick(pick);
        }
        let right = text(&run.finish("noop"));
        let wrong = right.replacen("\"steps\":6", "\"steps\":9", 1);
        let found = |log: &str| model::read(log.as_bytes(), true).wrong.map(|wrong| wrong.clause);
        assert_eq!((found(&right), found(&wrong)), (None, Some("LOG-EVENT-STEPS")));
        for log in [&right, &wrong] {
            let mut talk = Talk::default();
            talk.give("LOG-VERDICT-OK", Payload::text(log.as_str()), GivenLog::default());
            let plan = talk.plan();
            let step = plan.steps.iter().position(|step| step.session == 1).unwrap();
            let smaller = variants(&plan, step);
            assert_eq!(smaller.len(), 6);
            for plan in smaller {
                let Some(Fixture::File { content, .. }) =
                    plan.fixtures.iter().find(|fixture| fixture.name() == log_of(1))
                else {
                    panic!("the log is gone");
                };
                let smaller = String::from_utf8(content.expand(&Vars::new()).unwrap()).unwrap();
                assert!(smaller.len() < log.len());
                assert_eq!(found(&smaller), found(log), "{smaller}");
            }
        }
    }
}

//! Model of a log: is it valid, which line shows that it is not, and which points does the contract leave open?

use std::collections::BTreeSet;

use peerproof_engine::data::json::{self, DecodeLimits, Json};

use crate::digest;
use crate::state::{Artifact, State, slot_of};
use crate::tools::{self, ExecutionResult};

/// Longest line that every replayer reads, bytes.
pub const LINE_BYTES_MAX: usize = 10 << 20;

/// Nesting that every replayer reads in each JSON text, levels.
pub(crate) const NESTING_MAX: usize = 64;

/// Clause: a repeated member name in an object.
pub(crate) const KEYS: &str = "LOG-LINE-KEYS";

/// Statuses of a failed tool.
const FAILED: [&str; 3] = ["TOOL_ERROR", "INVALID_PICK", "BREAKER_TRIP"];

/// A fault of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFault {
    /// Number of the line, counted from 1.
    pub line: usize,
    /// The clause.
    pub clause: &'static str,
    /// Description in one phrase.
    pub why: String,
}

/// A point that the contract leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// The clause.
    pub clause: &'static str,
    /// The choice, and its values shown by the verdicts OK and FAIL; several values are joined with `|`.
    pub choice: Option<(&'static str, &'static str, &'static str)>,
}

/// Requirement to re-run a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Must be re-run.
    Must,
    /// May be re-run.
    May,
    /// Must not be re-run, by this clause.
    Never(&'static str),
}

/// An execution that the log records.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Number of its line, counted from 1.
    pub line: usize,
    /// Aid of the tool.
    pub aid: String,
    /// Input of the tool.
    pub input: Json,
    /// State before the execution.
    pub before: State,
    /// Requirement to re-run it.
    pub need: Need,
}

/// Reading of a log.
#[derive(Debug, Clone, Default)]
pub struct LogReading {
    /// First fault.
    pub wrong: Option<LogFault>,
    /// Open points.
    pub open: Vec<Open>,
    /// Executions before the first fault.
    pub runs: Vec<Run>,
    /// Number of lines.
    pub lines: usize,
    /// With repeated member names, the last one counts in this reading. The value is true if the log is also valid
    /// when the first one counts; `None` without repeated names.
    pub first_wins: Option<bool>,
    /// True if an optional re-run was seen; `None` without an optional re-run.
    pub has_rerun: Option<bool>,
    /// True if a tool was started that replies only at the end of its input.
    pub has_waited: bool,
    /// True if the replayer gets a signal before it can reach a verdict.
    pub is_ended: bool,
    /// True if a toolhost got a request.
    pub has_asked: bool,
}

/// Expected next event.
#[derive(Debug, Clone, PartialEq)]
enum ExpectedEvent {
    Start,
    Selection,
    /// The tool event after a PICK. True if its patch event has come.
    Tool(bool),
    End,
}

struct Replay {
    told: LogReading,
    next: ExpectedEvent,
    /// Header of the first line.
    first: Option<Json>,
    runs_before: BTreeSet<String>,
    selections: u64,
    /// Step of the first selection.
    base: u64,
    last_step: u64,
    inputs: Json,
    state: State,
    /// True if a `size_bytes` is wrong; replayers may correct it.
    sizes_differ: bool,
    aid: String,
    patch: Option<Json>,
    line: usize,
    has_toolhost: bool,
}

type Judged = Result<(), (&'static str, String)>;

fn wrong<T>(clause: &'static str, why: impl Into<String>) -> Result<T, (&'static str, String)> {
    Err((clause, why.into()))
}

/// Reads a log. `has_toolhost` is true if a toolhost can be started.
pub fn read(log: &[u8], has_toolhost: bool) -> LogReading {
    let mut told = follow(log, has_toolhost);
    if told.open.iter().any(|open| open.clause == KEYS) {
        let first = |line: &[u8]| match json::decode(line.trim_ascii(), &DecodeLimits::default()) {
            Ok(decoded) if decoded.facts.duplicate_keys && decoded.facts.depth <= NESTING_MAX => {
                with_first_keys(&decoded.value).to_text().into_bytes()
            }
            _ => line.trim_ascii_end().to_vec(),
        };
        let lines: Vec<Vec<u8>> = log.split_inclusive(|byte| *byte == b'\n').map(first).collect();
        let first = follow(&[lines.join(&b'\n'), b"\n".to_vec()].concat(), has_toolhost);
        told.first_wins = Some(first.wrong.is_none());
    }
    told
}

/// A value of few levels in which only the first of equal members is kept.
fn with_first_keys(value: &Json) -> Json {
    match value {
        Json::Array(items) => Json::Array(items.iter().map(with_first_keys).collect()),
        Json::Object(members) => {
            let is_first = |at: usize| members[..at].iter().all(|(known, _)| *known != members[at].0);
            let kept = members.iter().enumerate().filter(|(at, _)| is_first(*at));
            Json::Object(kept.map(|(_, (name, value))| (name.clone(), with_first_keys(value))).collect())
        }
        other => other.clone(),
    }
}

fn follow(log: &[u8], has_toolhost: bool) -> LogReading {
    let mut replay = Replay {
        told: LogReading::default(),
        next: ExpectedEvent::Start,
        first: None,
        runs_before: BTreeSet::new(),
        selections: 0,
        base: 0,
        last_step: 0,
        inputs: Json::Object(Vec::new()),
        state: State::default(),
        sizes_differ: false,
        aid: String::new(),
        patch: None,
        line: 0,
        has_toolhost,
    };
    let log = match log.strip_prefix(b"\xEF\xBB\xBF") {
        Some(rest) => {
            replay.open("LOG-LINE-BOM", Some(("log_bom", "accept", "fail")));
            rest
        }
        None => log,
    };
    let mut judged = Ok(());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        replay.line += 1;
        judged = replay.text(line);
        if judged.is_err() {
            break;
        }
    }
    let judged = judged.and_then(|()| match replay.next {
        ExpectedEvent::End => Ok(()),
        ExpectedEvent::Start if replay.line == 0 => wrong("LOG-ORDER-EMPTY", "an empty log"),
        _ => wrong("LOG-ORDER-END", "no `run_finished`"),
    });
    let line = replay.line.max(1);
    replay.told.wrong = judged.err().map(|(clause, why)| LogFault { line, clause, why });
    replay.told.lines = log.split_inclusive(|byte| *byte == b'\n').count();
    replay.told
}

impl Replay {
    fn open(&mut self, clause: &'static str, choice: Option<(&'static str, &'static str, &'static str)>) {
        let open = Open { clause, choice };
        if !self.told.open.contains(&open) {
            self.told.open.push(open);
        }
    }

    /// Reads a line, with its line feed if it has one.
    fn text(&mut self, line: &[u8]) -> Judged {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > LINE_BYTES_MAX {
            self.open("LOG-LINE-SIZE", None);
        }
        if json::trim(text).is_empty() {
            self.open("LOG-LINE-BLANK", Some(("log_blank_line", "accept", "fail")));
            return Ok(());
        }
        let decoded = match json::decode(text, &DecodeLimits::default()) {
            Ok(decoded) => decoded,
            Err(_) if !line.ends_with(b"\n") => return wrong("LOG-ORDER-END", "the last line is incomplete"),
            Err(error) => return wrong("LOG-LINE-JSON", error.to_string()),
        };
        if !line.ends_with(b"\n") {
            self.open("LOG-LINE-LAST", Some(("log_last_line_without_lf", "accept", "fail")));
        }
        if decoded.facts.duplicate_keys {
            self.open(KEYS, None);
        }
        self.facts(&decoded);
        self.line(&decoded.value)
    }

    /// Notes points in which implementations differ.
    fn facts(&mut self, decoded: &json::Decoded) {
        let facts = &decoded.facts;
        let is_big = decoded.value.has_number(|number| number.is_big() || number.is_beyond_double());
        if facts.depth > NESTING_MAX || is_big {
            self.open("LOG-LINE-DEPTH", None);
        }
        if facts.lone_surrogates {
            self.open("LOG-LINE-HALVES", None);
        }
    }

    /// The JSON value in a string.
    fn embedded(&mut self, text: &str) -> Option<Json> {
        let decoded = json::decode(text.as_bytes(), &DecodeLimits::default()).ok()?;
        if decoded.facts.duplicate_keys {
            self.open("LOG-LINE-DEPTH", None);
        }
        self.facts(&decoded);
        Some(decoded.value)
    }

    fn line(&mut self, line: &Json) -> Judged {
        const CLAUSE: &str = "LOG-LINE-JSON";
        if line.as_object().is_none() {
            return wrong(CLAUSE, "a line is not a JSON object");
        }
        let event = match line.get("event").and_then(Json::as_str) {
            None | Some("") => return wrong(CLAUSE, "`event` is not a non-empty string"),
            Some(event) => event,
        };
        let step =
            self.number(line, "step").ok_or((CLAUSE, "`step` is not an integer of at least 0".to_owned()))?;
        let payload = line.get("payload").filter(|payload| payload.as_object().is_some());
        let payload = payload.ok_or((CLAUSE, "`payload` is not an object".to_owned()))?;
        let run = match line.get("run_id").and_then(Json::as_str) {
            None | Some("") => return wrong(CLAUSE, "`run_id` is not a non-empty string"),
            Some(run) => run,
        };
        if self.next == ExpectedEvent::End && event == "run_started" {
            if self
                .first
                .as_ref()
                .is_some_and(|first| first.get("run_id").and_then(Json::as_str) == Some(run))
                || self.runs_before.contains(run)
            {
                return wrong("LOG-ORDER-SECOND", "a second run with the `run_id` of the first");
            }
            self.open("LOG-ORDER-TWO", Some(("two_runs", "each", "fail")));
            self.runs_before.insert(run.to_owned());
            self.first = None;
            (self.next, self.state, self.selections, self.base) =
                (ExpectedEvent::Start, State::default(), 0, 0);
        }
        let is_second = !self.runs_before.is_empty();
        let of_second = |(clause, why)| if is_second { ("LOG-ORDER-SECOND", why) } else { (clause, why) };
        self.header(line, run).map_err(of_second)?;
        self.event(event, step, payload).map_err(of_second)
    }

    /// A non-negative integer in any spelling.
    fn number(&mut self, of: &Json, name: &str) -> Option<u64> {
        let number = of.get(name)?.as_number()?;
        if !number.text().bytes().all(|byte| byte.is_ascii_digit()) {
            self.open("LOG-EVENT-NUMBER", None);
        }
        number.as_u64()
    }

    fn header(&mut self, line: &Json, run: &str) -> Judged {
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let dashes = |text: &str| text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        if !(run.len() == 32 && hex(run) || dashes(run) && hex(&run.replace('-', ""))) {
            self.open("LOG-HEADER-OTHER", Some(("run_id_other_form", "accept", "fail")));
        }
        for (name, default) in [("spec_version", "1.4.2"), ("profile_id", "A")] {
            match line.get(name) {
                None => {}
                Some(Json::String(text)) if text == default => {}
                Some(Json::String(_)) => {
                    self.open("LOG-HEADER-VERSION", Some(("other_spec_version", "accept", "fail")));
                }
                Some(_) => self.open("LOG-HEADER-CHANGES", None),
            }
        }
        let request = line.get("request_id");
        if !matches!(request, None | Some(Json::Null | Json::String(_))) {
            self.open("LOG-HEADER-CHANGES", None);
        }
        let names = ["run_id", "request_id", "spec_version", "profile_id"];
        let own = Json::object(names.into_iter().filter_map(|name| Some((name, line.get(name)?.clone()))));
        match &self.first {
            None => self.first = Some(own),
            Some(first) if first.get("run_id") != own.get("run_id") => {
                return wrong("LOG-HEADER-RUN", "a line of another run");
            }
            Some(first) if *first != own => self.open("LOG-HEADER-CHANGES", None),
            Some(_) => {}
        }
        Ok(())
    }

    fn event(&mut self, event: &str, step: u64, payload: &Json) -> Judged {
        let has_patch = self.patch.is_some();
        let is_empty_patch = self.patch.as_ref().and_then(Json::as_object).is_some_and(<[_]>::is_empty);
        match (event, &self.next) {
            ("run_started", ExpectedEvent::Start)
            | ("selector_chosen" | "run_finished", ExpectedEvent::Selection)
            | ("tool_ok" | "tool_error", ExpectedEvent::Tool(true)) => {}
            ("inputs_patched", ExpectedEvent::Tool(false)) if is_empty_patch => {
                self.open("LOG-INPUT-EMPTY", None)
            }
            ("inputs_patched", ExpectedEvent::Tool(false)) if has_patch => {}
            ("inputs_patched", ExpectedEvent::Tool(false)) => {
                let choice = ("patch_without_selection_patch", "accept", "fail");
                self.open("LOG-INPUT-UNSELECTED", Some(choice));
            }
            ("tool_ok" | "tool_error", ExpectedEvent::Tool(false)) if !has_patch => {}
            ("tool_ok" | "tool_error", ExpectedEvent::Tool(false)) if is_empty_patch => {
                self.open("LOG-INPUT-EMPTY", None)
            }
            ("tool_ok" | "tool_error", ExpectedEvent::Tool(_)) => {
                return wrong(
                    "LOG-ORDER-PATCHED",
                    "`inputs_patched` is missing after a selection with a patch",
                );
            }
            ("selector_chosen" | "run_finished", ExpectedEvent::Tool(_)) => {
                return wrong("LOG-ORDER-TOOL", "the tool event is missing after a PICK");
            }
            ("tool_ok" | "tool_error", ExpectedEvent::Selection) => {
                return wrong("LOG-ORDER-TOOL", "a tool event without a PICK");
            }
            (
                "run_started" | "selector_chosen" | "inputs_patched" | "tool_ok" | "tool_error"
                | "run_finished",
                next,
            ) => {
                let clause = if *next == ExpectedEvent::End { "LOG-ORDER-LAST" } else { "LOG-ORDER-LINES" };
                return wrong(clause, format!("{event} at the wrong place"));
            }
            (_, ExpectedEvent::Start | ExpectedEvent::End) => {
                self.open("LOG-ORDER-PLACE", None);
                return Ok(());
            }
            _ => {
                let next = self.base + self.selections;
                if !(self.last_step..=next).contains(&step) || self.selections == 0 && step != 0 {
                    self.open("LOG-ORDER-PLACE", None);
                }
                return Ok(());
            }
        }
        self.step(event, step)?;
        match event {
            "run_started" => self.started(payload),
            "selector_chosen" => self.chosen(payload),
            "inputs_patched" => self.patched(payload),
            "tool_ok" => self.tool_ok(payload),
            "tool_error" => self.tool_error(payload),
            _ => self.finished(payload),
        }
    }

    fn step(&mut self, event: &str, step: u64) -> Judged {
        if event == "selector_chosen" && self.selections == 0 && step == 1 {
            self.base = 1;
            self.open("LOG-STEP-FIRST", None);
        }
        let last = (self.base + self.selections).saturating_sub(1);
        let right = match event {
            "run_started" => step == 0,
            "selector_chosen" => step == self.base + self.selections,
            "run_finished" if step >= last => true,
            "run_finished" => {
                return wrong("LOG-STEP-END", "the step of `run_finished` is lower than the last step");
            }
            _ => step == last,
        };
        self.last_step = step;
        if right { Ok(()) } else { wrong("LOG-STEP-NUMBER", format!("{event} with the step {step}")) }
    }

    fn started(&mut self, payload: &Json) -> Judged {
        const CLAUSE: &str = "LOG-EVENT-START";
        filled(payload, "goal_id", CLAUSE)?;
        let inputs = payload.get("inputs").filter(|inputs| inputs.as_object().is_some());
        self.inputs = inputs.ok_or((CLAUSE, "`inputs` is not an object".to_owned()))?.clone();
        if !matches!(payload.get("control_mode"), None | Some(Json::String(_))) {
            self.open("LOG-EVENT-MODE", None);
        }
        match payload.get("state") {
            None => {}
            Some(state) => {
                let is_open = state.is_null()
                    || state.get("delta").is_some()
                    || state.get("removed_slots").is_some()
                    || state.get("slots").is_some_and(Json::is_null);
                if is_open {
                    self.open("LOG-EVENT-MODE", None);
                } else {
                    self.state = State::read(state).map_err(|why| ("LOG-EVENT-STATE", why.to_owned()))?;
                    if self.state.0.iter().flatten().any(|held| !held.has_right_size()) {
                        self.open("LOG-EVENT-MODE", None);
                        self.sizes_differ = true;
                    }
                }
            }
        }
        self.next = ExpectedEvent::Selection;
        Ok(())
    }

    fn chosen(&mut self, payload: &Json) -> Judged {
        const CLAUSE: &str = "LOG-EVENT-CHOSEN";
        let text = |name: &str| payload.get(name).filter(|value| !value.is_null());
        let kind = payload.get("kind").and_then(Json::as_str).unwrap_or_default();
        if !["PICK", "ASK_SUP", "NOOP", "INVALID"].contains(&kind) {
            return wrong("LOG-EVENT-KIND", format!("the unknown kind {kind:?}"));
        }
        if payload.get("raw").and_then(Json::as_str).is_none() {
            return wrong(CLAUSE, "`raw` is not a string");
        }
        self.selections += 1;
        self.patch = None;
        if kind != "PICK" {
            if ["sid", "aid", "input_patch_json"].iter().any(|name| payload.get(name).is_some()) {
                self.open("LOG-EVENT-NOPICK", None);
            }
            return Ok(());
        }
        let sid =
            text("sid").and_then(Json::as_str).and_then(|sid| sid.strip_prefix("SID")).unwrap_or_default();
        if sid.len() != 4 || !sid.bytes().all(|byte| byte.is_ascii_digit()) {
            return wrong("LOG-EVENT-SID", "the `sid` of a PICK is not `SID` and four digits");
        }
        let aid = text("aid").and_then(Json::as_str);
        self.aid = aid.ok_or((CLAUSE, "a PICK without an `aid`".to_owned()))?.to_owned();
        if payload.get("input_patch_json").is_some_and(Json::is_null) {
            self.open("LOG-EVENT-NOPICK", None);
        }
        if let Some(patch) = text("input_patch_json") {
            let value = patch.as_str().and_then(|patch| self.embedded(patch));
            let value = value.filter(|value| value.as_object().is_some());
            self.patch =
                Some(value.ok_or((CLAUSE, "`input_patch_json` does not contain an object".to_owned()))?);
        }
        self.next = ExpectedEvent::Tool(false);
        Ok(())
    }

    fn patched(&mut self, payload: &Json) -> Judged {
        let patch = payload.get("patch").filter(|patch| patch.as_object().is_some());
        let patch = patch.ok_or(("LOG-INPUT-SAME", "`patch` is not an object".to_owned()))?;
        if let Some(selected) = self.patch.clone()
            && !self.same(&selected, patch)
        {
            return wrong("LOG-INPUT-SAME", "`patch` differs from the patch of the selection");
        }
        for (name, value) in patch.as_object().unwrap_or_default() {
            self.inputs.set(name, value.clone());
        }
        match payload.get("inputs") {
            Some(Json::Null) => self.open("LOG-INPUT-SHOWN", None),
            Some(shown) if !self.same(&self.inputs.clone(), shown) => {
                return wrong("LOG-INPUT-SHOWN", "`inputs` differs from the merged object");
            }
            _ => {}
        }
        self.next = ExpectedEvent::Tool(true);
        Ok(())
    }

    /// True if two values are equal. −0 and 0 may be equal.
    fn same(&mut self, one: &Json, other: &Json) -> bool {
        let is_minus = |value: &Json| value.has_number(|number| number.text().starts_with("-0"));
        if one == other && (is_minus(one) || is_minus(other)) && one.to_text() != other.to_text() {
            self.open("LOG-EQUAL-ZERO", None);
        }
        one == other
    }

    fn tool(&mut self, payload: &Json) -> Judged {
        match payload.get("aid").and_then(Json::as_str) {
            Some(aid) if aid == self.aid => Ok(()),
            _ => wrong("LOG-EVENT-AID", "the `aid` differs from the `aid` of the selection"),
        }
    }

    fn tool_ok(&mut self, payload: &Json) -> Judged {
        self.tool(payload)?;
        let is_deterministic = payload.get("deterministic").and_then(Json::as_bool);
        let is_deterministic =
            is_deterministic.ok_or(("LOG-EVENT-FLAG", "`deterministic` is not a boolean".to_owned()))?;
        let (aid, input, line) = (self.aid.clone(), self.inputs.clone(), self.line);
        let before = self.state.clone();
        if is_deterministic {
            // The tool may run before the rest of the line is read.
            let need = Need::May;
            let (aid, input, before) = (aid.clone(), input.clone(), before.clone());
            self.told.runs.push(Run { line, aid, input, before, need });
        }
        let output = payload.get("output_json").and_then(Json::as_str);
        let output = output.ok_or(("LOG-EVENT-OUTPUT", "`output_json` is not a string".to_owned()))?;
        let items = payload.get("tx_patch").and_then(Json::as_array);
        let items = items.ok_or(("LOG-EVENT-PATCH", "`tx_patch` is not an array".to_owned()))?;
        let logged = payload.get("state_digest").and_then(Json::as_str);
        let logged = logged.ok_or(("LOG-EVENT-DIGEST", "`state_digest` is not a string".to_owned()))?;
        for item in items {
            self.item(item)?;
        }
        self.next = ExpectedEvent::Selection;
        self.digest(logged, "LOG-DIGEST-MIDDLE")?;
        let clause = if is_deterministic { "LOG-RERUN-OUTPUT" } else { "LOG-EVENT-JSON" };
        let value = self.embedded(output).ok_or((clause, "`output_json` is not JSON".to_owned()))?;
        if !is_deterministic {
            self.told.runs.push(Run { line, aid, input, before, need: Need::Never("LOG-RERUN-NEVER") });
            return Ok(());
        }
        if let Some(run) = self.told.runs.last_mut() {
            run.need = Need::Must;
        }
        if !self.has_toolhost {
            return wrong("LOG-RERUN-FAILS", "the toolhost cannot be started");
        }
        if tools::is_doubtful(&aid) {
            self.open("LOG-RERUN-LATE", None);
        }
        match tools::run(&aid, &input, &before) {
            ExecutionResult::Done(own, after) => {
                let own = self.embedded(&own);
                if !own.is_some_and(|own| self.same(&own, &value)) {
                    return wrong("LOG-RERUN-OUTPUT", "the tool returns another output");
                }
                if *after != self.state && !self.sizes_differ {
                    return wrong("LOG-RERUN-RESULT", "the tool leads to another state");
                }
                Ok(())
            }
            ExecutionResult::Failed(_) | ExecutionResult::Amiss(_) => {
                wrong("LOG-RERUN-FAILS", "the tool fails when it is run again")
            }
        }
    }

    fn item(&mut self, item: &Json) -> Judged {
        if item.as_object().is_none() {
            return wrong("LOG-PATCH-WHOLE", "an item is not an object");
        }
        let Some(slot) = slot_of(item) else { return wrong("LOG-PATCH-PATH", "an item with a wrong `path`") };
        let mut has_more = item.as_object().is_some_and(|members| {
            members.iter().any(|(name, _)| !["op", "path", "value"].contains(&name.as_str()))
        });
        let op = item.get("op").and_then(Json::as_str).unwrap_or_default();
        let held = match (op, item.get("value")) {
            ("add" | "replace", Some(value)) => {
                let size = value.get("size_bytes").and_then(Json::as_number);
                if size.is_some_and(|size| {
                    !size.text().bytes().all(|byte| byte.is_ascii_digit()) && size.as_u64().is_some()
                }) {
                    self.open("LOG-PATCH-SIZE", None);
                }
                has_more |= value.as_object().is_some_and(|members| members.len() > 4);
                Some(Artifact::read(value).map_err(|why| ("LOG-PATCH-VALUE", why.to_owned()))?)
            }
            ("add" | "replace", None) => return wrong("LOG-PATCH-VALUE", "an item without a `value`"),
            ("remove", None) => None,
            ("remove", Some(Json::Null)) => {
                has_more = true;
                None
            }
            ("remove", Some(_)) => {
                return wrong("LOG-PATCH-REMOVE", "an item that removes and has a `value`");
            }
            _ => return wrong("LOG-PATCH-OP", "an item with a wrong `op`"),
        };
        if has_more {
            self.open("LOG-PATCH-MEMBERS", Some(("patch_extra_members", "accept", "fail")));
        }
        if (op == "add") == self.state.0[slot].is_some() {
            self.open("LOG-PATCH-STATE", Some(("patch_on_other_state", "accept", "fail")));
        }
        self.sizes_differ |= held.as_ref().is_some_and(|held| !held.has_right_size());
        self.state.0[slot] = held;
        Ok(())
    }

    fn digest(&mut self, logged: &str, clause: &'static str) -> Judged {
        let own = digest::of_state(&self.state);
        let corrected = || {
            let mut state = self.state.clone();
            for held in state.0.iter_mut().flatten() {
                held.size_bytes = held.content_json.len() as u64;
            }
            digest::of_state(&state)
        };
        let shown = match logged.to_ascii_lowercase() {
            lower if lower == own => ("as_written", "correct|fail"),
            lower if self.sizes_differ && lower == corrected() => ("correct", "as_written|fail"),
            _ => return wrong(clause, format!("the state has the digest {own}")),
        };
        if self.sizes_differ {
            self.open("LOG-PATCH-SIZE", Some(("size_bytes_wrong", shown.0, shown.1)));
        }
        if logged.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let is_upper = !logged.bytes().any(|byte| byte.is_ascii_lowercase());
            self.open("LOG-DIGEST-UPPER", is_upper.then_some(("digest_upper_case", "accept", "fail")));
        }
        Ok(())
    }

    fn tool_error(&mut self, payload: &Json) -> Judged {
        const CLAUSE: &str = "LOG-EVENT-STATUS";
        self.tool(payload)?;
        if !payload.get("status").and_then(Json::as_str).is_some_and(|status| FAILED.contains(&status)) {
            return wrong(CLAUSE, "the `status` is not TOOL_ERROR, INVALID_PICK or BREAKER_TRIP");
        }
        filled(payload, "error", CLAUSE)?;
        if payload.get("tx_patch").is_some() {
            self.open("LOG-EVENT-DROPPED", None);
        }
        let need = match payload.get("deterministic") {
            Some(Json::Bool(true)) => Need::May,
            None | Some(Json::Bool(false)) => Need::Never("LOG-RERUN-FAILED"),
            Some(_) => {
                self.open("LOG-RERUN-ERROR", None);
                Need::May
            }
        };
        let (aid, input, before, line) =
            (self.aid.clone(), self.inputs.clone(), self.state.clone(), self.line);
        if need == Need::May && matches!(tools::run(&aid, &input, &before), ExecutionResult::Done(..)) {
            self.open("LOG-RERUN-ERROR", None);
        }
        self.told.runs.push(Run { line, aid, input, before, need });
        self.next = ExpectedEvent::Selection;
        Ok(())
    }

    fn finished(&mut self, payload: &Json) -> Judged {
        const CLAUSE: &str = "LOG-EVENT-END";
        filled(payload, "reason", CLAUSE)?;
        let steps = self.number(payload, "steps").ok_or((CLAUSE, "`steps` is not an integer".to_owned()))?;
        let logged = payload.get("state_digest").and_then(Json::as_str);
        let logged = logged.ok_or((CLAUSE, "`state_digest` is not a string".to_owned()))?;
        if steps != self.selections {
            return wrong("LOG-EVENT-STEPS", format!("the log has {} selections", self.selections));
        }
        let is_dropped = self.told.open.iter().any(|open| open.clause == "LOG-EVENT-DROPPED");
        self.digest(logged, if is_dropped { "LOG-EVENT-FAILED" } else { "LOG-DIGEST-LAST" })?;
        self.next = ExpectedEvent::End;
        Ok(())
    }
}

/// Demands a non-empty string member.
fn filled(payload: &Json, name: &str, clause: &'static str) -> Judged {
    match payload.get(name).and_then(Json::as_str) {
        None | Some("") => wrong(clause, format!("`{name}` is not a non-empty string")),
        Some(_) => Ok(()),
    }
}

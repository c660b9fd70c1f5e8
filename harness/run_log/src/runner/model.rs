//! Model of a runner: walks through the log and through the observations of the driver and the toolhost, and
//! compares them.

mod tool;

use std::collections::BTreeMap;

use peerproof_engine::data::json::Json;

use super::block::{self, OutputMeaning};
use super::log::{Entry, Faults, Log};
use super::observations::{Driver, RunObservations};
use super::request::{POLICY_ONLY, Request};
use crate::state::State;
use crate::{digest, only_integers_differ};

/// End of a run according to its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At NOOP, at the largest number of selections, or where the runner may choose.
    Due,
    /// For another reason.
    Early,
}

/// Place at which inputs are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Shown,
    Tool,
    Payload,
}

/// Comparison of one run with its log.
pub(crate) struct Walk<'a> {
    course: &'a RunObservations,
    request: &'a Request,
    log: &'a Log,
    /// Findings.
    pub faults: &'a mut Faults,
    /// Choices that the run shows.
    pub shown: BTreeMap<&'static str, String>,
    /// Menus with their digests.
    pub menus: Vec<(Vec<Offer>, String)>,
    /// Kind of the first selection, if it is a fallback.
    pub fallback: Option<String>,
    /// Number of complete steps in the log.
    pub whole: usize,
    at: usize,
    selections: usize,
    driven: usize,
    picks: usize,
    first_step: u64,
    inputs: Json,
    state: State,
    /// True after a wrong state.
    is_off: bool,
    /// True if the last tool failed.
    has_failed: bool,
    last: LastEvent,
    wrong: Vec<(At, usize, Json, Json)>,
}

/// SID, aid and sorted tags of an entry of a menu.
pub(crate) type Offer = (String, String, Vec<String>);

/// Last selection or tool event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEvent {
    Nothing,
    Noop,
    AskSup,
    Invalid,
    Ok,
    Error,
}

/// Full text of a value. A finding is cut at the first difference.
fn quoted(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Json::to_text)
}

impl<'a> Walk<'a> {
    /// At the start of the log.
    pub(crate) fn new(
        course: &'a RunObservations,
        request: &'a Request,
        log: &'a Log,
        faults: &'a mut Faults,
    ) -> Self {
        Self {
            course,
            request,
            log,
            faults,
            shown: BTreeMap::new(),
            menus: Vec::new(),
            fallback: None,
            whole: 0,
            at: 0,
            selections: 0,
            driven: 0,
            picks: 0,
            first_step: 0,
            inputs: request.inputs.clone(),
            state: State::default(),
            is_off: false,
            has_failed: false,
            last: LastEvent::Nothing,
            wrong: Vec::new(),
        }
    }

    /// Walks through the whole run.
    pub(crate) fn walk(&mut self) -> End {
        let end = self.lines();
        let is_whole = end.is_some();
        self.wrong_inputs();
        let driven = self.course.drivers.len();
        if self.request.mode != POLICY_ONLY && driven > 0 {
            let got = format!("{driven} starts of the driver");
            self.faults.add(
                "LOG-RUN-DEFAULTS",
                "driver",
                "no start of a driver, except with POLICY_ONLY",
                got,
            );
        } else if driven > self.driven && is_whole {
            let got = format!("{driven} starts of the driver and {} selections", self.driven);
            self.faults.add(
                "LOG-WRITE-EVENTS",
                "selection_missing",
                "one selection for each start of the driver",
                got,
            );
        }
        let begun = self.course.tools.len().max(self.course.run_starts);
        if begun > self.picks && is_whole {
            let got = format!("{begun} executions for {} PICKs", self.picks);
            self.faults.add("LOG-RUN-ONCE", "executions", "one execution of a tool for each PICK", got);
        }
        if self.course.killed && self.whole + 1 < driven {
            let expected = format!("the {} steps that ended before the last start of the driver", driven - 1);
            self.faults.add(
                "LOG-WRITE-KEPT",
                "steps_missing",
                expected,
                format!("{} of these steps", self.whole),
            );
        }
        end.unwrap_or(End::Due)
    }

    fn next(&self) -> Option<&'a Entry> {
        self.log.entries.get(self.at)
    }

    fn next_is(&self, names: &[&str]) -> Option<&'a Entry> {
        self.next().filter(|entry| names.contains(&entry.event.as_str()))
    }

    fn out_of_order(&mut self, expected: &str) {
        let got = self.next().map(|entry| format!("`{}` on line {}", entry.event, entry.line));
        self.faults.add(
            "LOG-WRITE-EVENTS",
            "order",
            expected,
            got.unwrap_or_else(|| "the end of the log".to_owned()),
        );
    }

    fn member(&mut self, entry: &Entry, name: &str, what: &str, is_right: bool) -> Option<()> {
        if !is_right {
            let expected = format!("`{name}` of `{}` on line {} is {what}", entry.event, entry.line);
            let got = quoted(entry.payload.get(name));
            self.faults.add("LOG-WRITE-EVENTS", "bad_member", expected, got);
        }
        is_right.then_some(())
    }

    /// Walks through the lines. `None` if the rest has no meaning.
    fn lines(&mut self) -> Option<End> {
        let Some(started) = self.next_is(&["run_started"]) else {
            if self.next().is_some() {
                self.out_of_order("`run_started` first");
            } else if !self.course.killed {
                self.no_end();
            }
            return None;
        };
        if self.log.ends.is_some_and(|(first, _)| first != started.line) {
            self.out_of_order("`run_started` on the first line");
        }
        self.at += 1;
        self.started(started)?;
        while let Some(entry) = self.next() {
            match entry.event.as_str() {
                "selector_chosen" => self.step(entry)?,
                "run_finished" => {
                    self.at += 1;
                    self.finished(entry)?;
                    if self.next().is_some() {
                        self.out_of_order("no line after `run_finished`");
                    } else if let Some((_, last)) = self.log.ends.filter(|(_, last)| *last != entry.line) {
                        let expected = "`run_finished` on the last line";
                        let got = format!("another event on line {last}");
                        self.faults.add("LOG-WRITE-EVENTS", "order", expected, got);
                    }
                    return Some(self.end());
                }
                _ => {
                    self.out_of_order("`selector_chosen` or `run_finished`");
                    return None;
                }
            }
        }
        if !self.course.killed {
            self.no_end();
        }
        None
    }

    fn no_end(&mut self) {
        let got = match (&self.course.log, self.course.ending.exit) {
            (None, _) => "no log".to_owned(),
            (_, Some(exit)) => format!("no such line ({exit})"),
            _ => "no such line".to_owned(),
        };
        self.faults.add("LOG-WRITE-END", "no_end", "`run_finished` as the last line", got);
    }

    fn started(&mut self, entry: &Entry) -> Option<()> {
        let (goal, inputs) = (self.request.goal_id.as_str(), &self.request.inputs);
        let payload = &entry.payload;
        self.step_is(entry, 0);
        let is_right = payload.get("goal_id").and_then(Json::as_str) == Some(goal);
        self.member(entry, "goal_id", &format!("{goal:?}"), is_right)?;
        if payload.get("inputs") != Some(inputs) {
            let expected = format!("`inputs` of `run_started` are {}", inputs.to_text());
            let is_given = inputs.as_object().is_some_and(|members| !members.is_empty());
            let clause = if is_given { "LOG-WRITE-EVENTS" } else { "LOG-RUN-DEFAULTS" };
            self.faults.add(clause, "inputs", expected, quoted(payload.get("inputs")));
        }
        if let Some(mode) = payload.get("control_mode") {
            self.member(entry, "control_mode", "a string", mode.as_str().is_some())?;
            let is_other = [POLICY_ONLY, "FALLBACK_ONLY"].iter().any(|it| mode.as_str() == Some(it));
            if is_other && mode.as_str() != Some(self.request.mode) {
                let expected = format!("`control_mode` is {:?}", self.request.mode);
                self.faults.add("LOG-RUN-DEFAULTS", "control_mode", expected, quoted(Some(mode)));
            }
        }
        if let Some(state) = payload.get("state") {
            let read = State::read(state);
            self.member(entry, "state", "a full state", read.is_ok())?;
            self.state = read.unwrap_or_default();
        }
        Some(())
    }

    fn step_is(&mut self, entry: &Entry, step: u64) {
        if entry.step != step {
            let expected = format!("step {step} of `{}` on line {}", entry.event, entry.line);
            self.faults.add("LOG-WRITE-STEP", "step", expected, format!("step {}", entry.step));
        }
    }

    fn step(&mut self, entry: &'a Entry) -> Option<()> {
        self.at += 1;
        let number = self.selections;
        self.selections += 1;
        if self.last == LastEvent::Noop {
            self.faults.add(
                "LOG-RUN-NOOP",
                "goes_on",
                "no selection after NOOP",
                format!("line {}", entry.line),
            );
        }
        if let Some(key) = ends(self.last) {
            self.shown.insert(key, "false".to_owned());
        }
        let most = self.request.max_steps.unwrap_or(u64::MAX);
        if self.selections as u64 > most {
            let expected = format!("at most {most} selections");
            self.faults.add(
                "LOG-RUN-MAX",
                "too_many",
                expected,
                format!("another selection on line {}", entry.line),
            );
        }
        if number == 0 && entry.step == 1 {
            self.first_step = 1;
        }
        if number == 0 && entry.step < 2 {
            self.shown.insert("first_step", entry.step.to_string());
        }
        let step = self.first_step + number as u64;
        self.step_is(entry, step);
        let course = self.course;
        let is_driven = self.request.mode == POLICY_ONLY;
        let driver = course.drivers.get(self.driven).filter(|_| is_driven);
        // A forbidden command starts nothing.
        let is_invalid = entry.payload.get("kind").and_then(Json::as_str) == Some("INVALID");
        let mut menu = Vec::new();
        match driver {
            Some(driver) => {
                self.driven += 1;
                menu = self.payload(driver, number);
            }
            None if is_driven && course.has_driver && !is_invalid => {
                let got = format!("{} starts of the driver", course.drivers.len());
                let expected = "one start of the driver, with a payload, for each selection";
                self.faults.add("LOG-RUN-PAYLOAD", "no_driver", expected, got);
                return None;
            }
            None => {}
        }
        let chosen = self.chosen(entry, driver, &menu)?;
        self.patched(chosen.patch.as_ref(), step);
        self.last = match chosen.kind.as_str() {
            "NOOP" => LastEvent::Noop,
            "ASK_SUP" => LastEvent::AskSup,
            "PICK" => return self.tool(&chosen.aid, step),
            _ => LastEvent::Invalid,
        };
        self.whole += 1;
        Some(())
    }

    /// Judges the payload of a driver; returns its menu.
    fn payload(&mut self, driver: &Driver, number: usize) -> Vec<Offer> {
        let expected = "a payload with `inputs`, `state_digest`, `goal_digest`, `control_mode` and `menu`";
        let Some(payload) = &driver.payload else {
            if !self.course.killed {
                self.faults.add("LOG-RUN-PAYLOAD", "no_payload", expected, "no readable payload");
            }
            return Vec::new();
        };
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        match payload.get("inputs") {
            Some(inputs) if *inputs == self.inputs => {}
            other => self.wrong.push((
                At::Payload,
                number,
                other.cloned().unwrap_or_default(),
                self.inputs.clone(),
            )),
        }
        if text("control_mode") != Some(self.request.mode) {
            let expected = format!("`control_mode` is {:?}", self.request.mode);
            self.faults.add("LOG-RUN-PAYLOAD", "control_mode", expected, quoted(payload.get("control_mode")));
        }
        let digest = digest::of_state(&self.state);
        if text("state_digest") != Some(&digest) {
            let expected = format!("`state_digest` of the payload of selection {number} is {digest}");
            self.off("LOG-RUN-PAYLOAD", "state_digest", expected, quoted(payload.get("state_digest")));
        }
        let goal = text("goal_digest").unwrap_or_default();
        let parts = goal.strip_prefix(&self.request.goal_id).and_then(|rest| rest.strip_prefix('|'));
        let parts = parts.and_then(|rest| rest.split_once('|'));
        let parts = parts.filter(|(menu, flags)| !menu.is_empty() && flags.starts_with("FLAGS:"));
        if parts.is_none() {
            let expected = format!("`goal_digest` is {}|MENU_DIGEST|FLAGS:…", self.request.goal_id);
            self.faults.add("LOG-RUN-GOAL", "goal_digest", expected, quoted(payload.get("goal_digest")));
        }
        let offers = self.menu(payload.get("menu"));
        if let (Some((told, _)), Some(offers)) = (parts, &offers) {
            let right = digest::of_menu(offers);
            if told != right {
                self.faults.add("LOG-RUN-MENUDIGEST", "menu_digest", right, told);
            }
            self.menus.push((offers.clone(), told.to_owned()));
        }
        offers.unwrap_or_default()
    }

    fn menu(&mut self, menu: Option<&Json>) -> Option<Vec<Offer>> {
        let offer = |entry: &Json| {
            let text = |name: &str| entry.get(name)?.as_str().map(str::to_owned);
            let tags = entry.get("tags")?.as_array()?.iter().map(|tag| tag.as_str().map(str::to_owned));
            let mut tags = tags.collect::<Option<Vec<_>>>()?;
            tags.sort();
            Some((text("sid").filter(|sid| is_sid(sid))?, text("aid")?, tags))
        };
        let offers = menu.and_then(Json::as_array).and_then(|menu| menu.iter().map(offer).collect());
        let mut offers: Vec<Offer> = offers.unwrap_or_default();
        offers.sort();
        let missing =
            self.request.tools.iter().find(|tool| offers.iter().all(|(_, aid, _)| *aid != tool.aid));
        let is_twice = offers.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if missing.is_some() || is_twice {
            let aid = missing.map_or("each tool once", |tool| tool.aid.as_str());
            let expected = format!("an entry for {aid}, with a unique SID, an aid and tags");
            self.faults.add("LOG-RUN-MENU", "menu", expected, quoted(menu));
            return None;
        }
        Some(offers)
    }

    /// Reports the first wrong state.
    fn off(&mut self, clause: &str, reason: &str, expected: String, got: String) {
        if !self.is_off {
            let clause = if self.has_failed { "LOG-RUN-FAILED" } else { clause };
            self.faults.add(clause, reason, expected, got);
        }
        self.is_off = true;
    }

    fn chosen(&mut self, entry: &Entry, driver: Option<&Driver>, menu: &[Offer]) -> Option<LoggedSelection> {
        let payload = &entry.payload;
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        let kind = text("kind").unwrap_or_default();
        let is_known = ["PICK", "ASK_SUP", "NOOP", "INVALID"].contains(&kind);
        self.member(entry, "kind", "PICK, ASK_SUP, NOOP or INVALID", is_known)?;
        self.member(entry, "raw", "a string", text("raw").is_some())?;
        let raw = text("raw").unwrap_or_default();
        let line = entry.line;
        let (sid, aid) = (text("sid").unwrap_or_default(), text("aid").unwrap_or_default());
        // The contract leaves null for an absent member open.
        let has = |name: &str| payload.get(name).is_some_and(|value| !value.is_null());
        let fits = match kind {
            "PICK" => is_sid(sid) && !aid.is_empty(),
            _ => !has("sid") && !has("aid"),
        };
        if !fits {
            let expected = "`sid` and `aid` for PICK and only for PICK";
            self.faults.add(
                "LOG-WRITE-KIND",
                "sid_and_aid",
                expected,
                format!("line {line}: {}", quoted(Some(payload))),
            );
        }
        let told = payload.get("input_patch_json").filter(|told| !told.is_null());
        let patch =
            told.and_then(Json::as_str).and_then(|text| super::observations::decoded(text.as_bytes()));
        let patch = patch.filter(|patch| patch.as_object().is_some());
        let aid_of = |sid: &str| menu.iter().find(|(own, _, _)| own == sid).map(|(_, aid, _)| aid.clone());
        let right = match driver.map(|driver| &driver.said) {
            Some(OutputMeaning::Pick(sid, patch)) => match aid_of(sid) {
                Some(aid) => Some(("PICK", Some((sid.clone(), aid)), patch.clone())),
                None if menu.is_empty() => None,
                None => Some(("", None, None)),
            },
            Some(OutputMeaning::Noop) => Some(("NOOP", None, None)),
            Some(OutputMeaning::AskSup) => Some(("ASK_SUP", None, None)),
            Some(OutputMeaning::Fails) => Some(("", None, None)),
            Some(OutputMeaning::Open) => None,
            // A fallback selected.
            None => Some(("any", None, None)),
        };
        let mut expected_patch = patch.clone();
        if let Some((right, pick, right_patch)) = right {
            let is_fallback = ["", "any"].contains(&right);
            if is_fallback {
                let is_right = raw.is_empty() || block::read(raw.as_bytes()) != OutputMeaning::Fails;
                if told.is_some() || right.is_empty() && is_right {
                    let expected =
                        "a fallback without a patch, and with a reason in `raw` that is not a block";
                    let got = format!("line {line}: {}", quoted(Some(payload)));
                    self.faults.add("LOG-WRITE-RAW", "fallback", expected, got);
                }
                // A patch here is told above; the run goes on with it.
                let is_only = self.request.mode != POLICY_ONLY;
                if self.selections == 1 && (right.is_empty() || is_only) {
                    self.fallback = Some(kind.to_owned());
                }
                if kind == "PICK" && !menu.is_empty() && aid_of(sid).is_none_or(|own| own != aid) {
                    let expected = format!("line {line} has a SID from the menu and the aid of that entry");
                    self.faults.add("LOG-RUN-FALLBACK", "not_offered", expected, quoted(Some(payload)));
                }
            } else {
                let is_same = pick.is_none_or(|(own, of)| own == sid && of == aid);
                if right != kind || !is_same {
                    let said = driver.map_or("", |driver| driver.output.as_str());
                    let expected = format!("line {line} has the selection {} of the driver", said);
                    self.faults.add("LOG-WRITE-KIND", "other_selection", expected, quoted(Some(payload)));
                    return None;
                }
                let block = driver.map_or("", |driver| driver.output.as_str());
                let has_block = raw.contains(block);
                if !has_block {
                    let expected = format!("`raw` on line {line} contains {}", block);
                    self.faults.add("LOG-WRITE-RAW", "raw", expected, raw);
                }
                // Without the block and its patch, the fallback happened to pick the same.
                if !has_block && told.is_none() {
                    return Some(LoggedSelection { kind: kind.to_owned(), aid: aid.to_owned(), patch: None });
                }
                if right_patch != patch || told.is_some() != right_patch.is_some() {
                    let expected = format!(
                        "`input_patch_json` on line {line} contains {}",
                        quoted(right_patch.as_ref())
                    );
                    self.faults.add("LOG-WRITE-PATCH", "input_patch_json", expected, quoted(told));
                }
                expected_patch = right_patch;
            }
        }
        Some(LoggedSelection { kind: kind.to_owned(), aid: aid.to_owned(), patch: expected_patch })
    }

    fn finished(&mut self, entry: &Entry) -> Option<()> {
        let payload = &entry.payload;
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        let steps = payload.get("steps").and_then(Json::as_u64);
        self.member(
            entry,
            "reason",
            "a string that is not empty",
            text("reason").is_some_and(|it| !it.is_empty()),
        )?;
        self.member(entry, "steps", "an integer of at least 0", steps.is_some())?;
        self.member(entry, "state_digest", "a string", text("state_digest").is_some())?;
        if steps != Some(self.selections as u64) {
            let expected = format!("`steps` is {}", self.selections);
            self.faults.add("LOG-WRITE-STEPS", "steps", expected, quoted(payload.get("steps")));
        }
        let last = self.first_step + (self.selections as u64).saturating_sub(1);
        if entry.step < last {
            let expected = format!("`run_finished` has the step {last} or a higher one");
            self.faults.add("LOG-WRITE-STEP", "step", expected, format!("step {}", entry.step));
        }
        let right = digest::of_state(&self.state);
        if text("state_digest") != Some(&right) {
            let expected = format!("`state_digest` of `run_finished` is {right}");
            self.off("LOG-RUN-DIGEST", "state_digest", expected, quoted(payload.get("state_digest")));
        }
        Some(())
    }

    /// End of the run.
    fn end(&mut self) -> End {
        if self.last == LastEvent::Noop {
            return End::Due;
        }
        let is_last = self.request.max_steps.is_some_and(|most| self.selections as u64 >= most);
        let key = ends(self.last);
        if let Some(key) = key.filter(|_| !is_last) {
            self.shown.insert(key, "true".to_owned());
        }
        if is_last || key.is_some() { End::Due } else { End::Early }
    }

    /// True if the run ended with NOOP.
    pub(crate) fn is_stopped(&self) -> bool {
        self.last == LastEvent::Noop
    }

    /// Judges wrong inputs. Inputs that are equally wrong in several places were merged wrongly.
    fn wrong_inputs(&mut self) {
        let wrong = std::mem::take(&mut self.wrong);
        let is_same = |(at, _, got, _): &&(At, usize, Json, Json)| {
            wrong.iter().any(|(other, _, same, _)| other != at && same == got)
        };
        if let Some((_, _, got, expected)) =
            wrong.iter().find(|(_, _, got, right)| only_integers_differ(got, right))
        {
            return self.faults.add("LOG-RUN-INTEGERS", "inputs", expected.to_text(), got.to_text());
        }
        if let Some((_, _, got, expected)) = wrong.iter().find(is_same) {
            return self.faults.add("LOG-RUN-MERGE", "inputs", expected.to_text(), got.to_text());
        }
        for (at, selection, got, expected) in &wrong {
            let (clause, who) = match at {
                At::Shown => ("LOG-WRITE-INPUTS", "`inputs_patched` shows"),
                At::Tool => ("LOG-RUN-INPUT", "the tool gets"),
                At::Payload => ("LOG-RUN-PAYLOAD", "the payload has"),
            };
            let expected = format!("{who} the inputs {} in selection {selection}", expected.to_text());
            self.faults.add(clause, "inputs", expected, got.to_text());
        }
    }
}

/// Choice: does this event end a run?
fn ends(last: LastEvent) -> Option<&'static str> {
    match last {
        LastEvent::AskSup => Some("ask_sup_ends"),
        LastEvent::Invalid => Some("invalid_ends"),
        LastEvent::Error => Some("tool_error_ends"),
        LastEvent::Noop | LastEvent::Nothing | LastEvent::Ok => None,
    }
}

/// A selection of the log.
struct LoggedSelection {
    kind: String,
    aid: String,
    patch: Option<Json>,
}

fn is_sid(text: &str) -> bool {
    text.strip_prefix("SID")
        .is_some_and(|rest| rest.len() == 4 && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use peerproof_engine::data::ending::Ending;
    use peerproof_engine::data::transcript::Exit;

    use super::super::request::{self, RequestTreatment};
    use super::*;

    #[test]
    fn a_runner_may_have_a_tool_of_its_own_and_write_null_for_no_patch() {
        let asked = request::read(
            br#"{"goal_id":"g","tools":[{"aid":"A.DO.v1","name":"n","tags":[],"deterministic":true}]}"#,
        );
        let RequestTreatment::Run(request) = &asked else { panic!("{asked:?}") };
        let line = |event: &str, step: u64, payload: &str| {
            format!(
                r#"{{"run_id":"0123456789abcdef0123456789abcdef","spec_version":"1.4.2","profile_id":"A","event":"{event}","step":{step},"payload":{payload}}}"#
            ) + "\n"
        };
        let text = [
            line("run_started", 0, r#"{"goal_id":"g","inputs":{}}"#),
            line(
                "selector_chosen",
                0,
                r#"{"kind":"PICK","sid":"SID0009","aid":"OWN.v1","input_patch_json":null,"raw":"no driver"}"#,
            ),
            line(
                "tool_ok",
                0,
                r#"{"aid":"OWN.v1","deterministic":true,"output_json":"1","tx_patch":[],"state_digest":"x"}"#,
            ),
            line("selector_chosen", 1, r#"{"kind":"NOOP","input_patch_json":null,"raw":"no driver"}"#),
            line("run_finished", 1, r#"{"reason":"noop","steps":2,"state_digest":"x"}"#),
        ]
        .concat();
        let ending = Ending {
            exit: Some(Exit::Code(0)),
            input_ended: true,
            signalled: false,
            unanswered: false,
            unread: false,
            late: false,
            cut: false,
            waited: None::<Duration>,
            flood: None,
        };
        let course = |aid: &str| {
            let log = text.replace("OWN.v1", aid).into_bytes();
            let mut faults = Faults::default();
            let course = RunObservations {
                asked: asked.clone(),
                drivers: Vec::new(),
                run_starts: 0,
                odd_start: None,
                tools: Vec::new(),
                has_driver: true,
                has_toolhost: true,
                log: Some(log.clone()),
                ending: ending.clone(),
                killed: false,
                is_target: false,
            };
            let log = super::super::log::read(&log, false, request, &mut faults);
            Walk::new(&course, request, &log, &mut faults).walk();
            faults.0.into_iter().map(|it| format!("{} {}", it.clause, it.reason)).collect::<Vec<_>>()
        };
        assert_eq!(course("OWN.v1"), [""; 0]);
        assert_eq!(course("A.DO.v1"), ["LOG-RUN-ONCE no_execution"]);
    }
}

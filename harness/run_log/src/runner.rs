//! The provider: a runner, which gets a request and a toolhost, lets a driver select, and writes the log of its
//! run.
//!
//! A conversation is one run or several, each in a process of its own. The harness plays the driver and the
//! toolhost of each run. [`model`] compares their observations with the log.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::ending::left_behind;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Nature};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Exit, Transcript, strict};

pub(crate) mod block;
pub(crate) mod cases;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod observations;
pub(crate) mod request;

use self::log::Faults;
use self::model::{End, Offer, Walk};
use self::observations::RunObservations;
use self::request::{Request, RequestTreatment};

/// Variable: time limit of a toolhost, seconds (`ipc` §7).
pub(crate) const TIMEOUT_VARIABLE: &str = "MACHINA_TOOLHOST_TIMEOUT";

/// Variable: command of the policy driver (`policy` §1).
pub(crate) const COMMAND_VARIABLE: &str = "MACHINA_POLICY_CMD";

/// Clause: the runner ends in time after SIGTERM.
const SIGTERM: &str = "LOG-RUN-SIGTERM";

/// Folder of the logs.
pub(crate) const LOGS: &str = "logs";

/// Clauses with an open choice, and its key.
const CHOICES: [(&str, &str); 10] = [
    ("LOG-WRITE-FORMS", "run_id_form"),
    ("LOG-WRITE-FIRST", "first_step"),
    ("LOG-WRITE-NOREQUEST", "request_id_absent"),
    ("LOG-WRITE-EMPTY", "empty_patch_logged"),
    ("LOG-RUN-ASKSUP", "ask_sup_ends"),
    ("LOG-RUN-INVALID", "invalid_ends"),
    ("LOG-RUN-TOOLERROR", "tool_error_ends"),
    ("LOG-RUN-MODE", "control_mode_unknown"),
    ("LOG-RUN-BAR", "goal_id_with_bar"),
    ("LOG-RUN-KEYS", "duplicate_keys"),
];

/// Script of a null peer that writes a made-up log.
pub(crate) const CONSTANT: &str = r#"cat > '{log}' <<'END'
{{"run_id":"0123456789abcdef0123456789abcdef","request_id":"Request 1 É","event":"run_started","step":0,"payload":{{"goal_id":"Goal 1","inputs":{{"k":1,"keep":"é"}}}}}}
{{"run_id":"0123456789abcdef0123456789abcdef","request_id":"Request 1 É","event":"selector_chosen","step":0,"payload":{{"kind":"NOOP","raw":"<NOOP><END>"}}}}
{{"run_id":"0123456789abcdef0123456789abcdef","request_id":"Request 1 É","event":"run_finished","step":0,"payload":{{"reason":"noop","steps":1,"state_digest":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}}
END"#;

/// Names of the fixtures and labels of a session.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Fixture with the request.
    pub request: String,
    /// Actor for the driver.
    pub driver: String,
    /// Actor for the toolhost.
    pub toolhost: String,
    /// Label of the look at the log.
    pub log: String,
}

impl Names {
    /// Names of a session.
    pub(crate) fn of(session: usize) -> Self {
        Self {
            request: format!("request{session}"),
            driver: format!("policies/driver{session}.sh"),
            toolhost: format!("toolhost{session}"),
            log: format!("run{session}"),
        }
    }
}

/// All checks of runners.
pub(crate) fn checks() -> Vec<Check> {
    cases::checks()
}

/// A random conversation.
pub(crate) fn conversation(_facts: &Facts, rng: &mut Rng) -> Plan {
    cases::conversation(rng)
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// Facts about all runs of a conversation, for comparison.
#[derive(Default)]
struct All {
    run_ids: Vec<String>,
    menus: Vec<(Vec<Offer>, String)>,
    /// Requests of runs that began with a fallback, and its kind.
    fallbacks: Vec<(Request, String)>,
    shown: BTreeMap<&'static str, String>,
    /// True if an unkilled run reached its end.
    ends_in_time: bool,
    /// Killed sessions whose logs say that the run was over before.
    closed: Vec<usize>,
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let (mut judgement, mut all) = (Judgement::default(), All::default());
    let steps = &transcript.plan.steps;
    let (mut about, mut targets, mut hits) = (None, 0_usize, 0_usize);
    for session in 0..transcript.plan.sessions.len() {
        let step = steps.iter().position(|step| step.session == session && !step.expect.is_null());
        let aim = step.and_then(|step| Aim::of(&steps[step])).map(|aim| aim.clause.0);
        let mut faults = Faults::default();
        match RunObservations::of(transcript, session) {
            Some(course) => {
                let clause = aim.clone().unwrap_or_else(|| "LOG-WRITE-END".to_owned());
                let end = run(&course, &clause, is_writable(transcript, session), &mut faults, &mut all);
                targets += usize::from(course.is_target);
                hits += usize::from(course.is_target && course.killed);
                if end == Some(End::Early) && course.killed {
                    all.closed.push(session);
                } else if end == Some(End::Early) {
                    let why = Untestable::new("ends_early", "the runner ended the run before its driver did");
                    judgement.untestable = Some(why);
                }
                if clause == "LOG-RUN-CLOSED" && course.run_starts == 0 {
                    let why = Untestable::new("not_tried", "the toolhost did not run the tool in run mode");
                    judgement.untestable = Some(why);
                }
                all.ends_in_time |= end == Some(End::Due) && !course.killed;
                // A runner killed by SIGKILL cannot clean up.
                if !(course.is_target && course.killed) {
                    let clause = if course.killed { SIGTERM } else { "LOG-RUN-LEAVES" };
                    faults.0.extend(left_behind(transcript, session, clause, clause));
                }
                let is_canary = step.is_some_and(|step| steps[step].canary);
                // A log that reached its end counts as an answer, whatever else is wrong.
                judgement.canaries_answered += usize::from(is_canary && end == Some(End::Due));
            }
            None => {
                judgement.untestable = Some(Untestable::new("not_seen", "peerproof did not read the log"))
            }
        }
        judgement.findings.extend(faults.0.into_iter().map(|finding| Finding { step, ..finding }));
        about = about.or(aim);
    }
    let mut faults = Faults::default();
    all.compare(&mut faults);
    let missed = targets - hits;
    if missed * 4 > targets && judgement.untestable.is_none() {
        let why = Untestable::new("kill_missed", format!("{missed} of {targets} kills missed their points"));
        judgement.untestable = Some(why);
    }
    judgement.findings.extend(faults.0.into_iter().map(|finding| finding.at(steps.len().saturating_sub(1))));
    let key = CHOICES.iter().find(|(clause, _)| about.as_deref() == Some(*clause)).map(|(_, key)| *key);
    judgement.choice = key.and_then(|key| {
        let value = all.shown.get(key)?.clone();
        Some(ChoiceSeen { pinned: false, key: key.to_owned(), value })
    });
    if key.is_some() && judgement.choice.is_none() && judgement.untestable.is_none() {
        judgement.untestable = Some(Untestable::new("not_shown", "the run did not reach the open point"));
    }
    judgement
}

/// True if the log can be created at its path.
fn is_writable(transcript: &Transcript, session: usize) -> bool {
    let log = transcript.plan.sessions[session].placeholders.get("log");
    log.is_some_and(|path| path.starts_with(&format!("{{{{{LOGS}.path}}}}")))
}

/// Judges one run, which tests `clause`.
fn run(
    course: &RunObservations,
    clause: &str,
    is_writable: bool,
    faults: &mut Faults,
    all: &mut All,
) -> Option<End> {
    if course.ending.late {
        let got = course.ending.in_vain("the process did not end");
        let expected =
            if course.killed { "the runner ends within 2 s of SIGTERM" } else { "the runner ends by itself" };
        faults.add(clause, "does_not_end", expected, got);
        faults.of_nature(Nature::Hang);
        return None;
    }
    if !is_writable {
        if course.ending.exit == Some(Exit::Code(0)) {
            let expected = "an exit status other than 0 where the log cannot be written";
            faults.add("LOG-RUN-UNWRITTEN", "exit", expected, "exit status 0");
        }
        return None;
    }
    let is_refused =
        course.ending.exit != Some(Exit::Code(0)) && course.drivers.is_empty() && course.tools.is_empty();
    match &course.asked {
        RequestTreatment::Unclear => {
            if let Some(exit @ Exit::Signal(_)) = course.ending.exit.filter(|_| !course.killed) {
                faults.add(clause, "crashed", "the request is run or refused", exit.to_string());
                faults.of_nature(Nature::Crash);
            }
            None
        }
        RequestTreatment::Twice(..) if is_refused && !has_selection(course) => {
            all.shown.insert("duplicate_keys", "refuse".to_owned());
            None
        }
        RequestTreatment::Twice(last, first) => {
            let started = payload_of(course, "run_started");
            let goal = started.as_ref().and_then(|payload| payload.get("goal_id")).and_then(Json::as_str);
            let is_first = goal == Some(first.goal_id.as_str());
            let (value, request) = if is_first { ("first", first) } else { ("last", last) };
            all.shown.insert("duplicate_keys", value.to_owned());
            Some(ran(course, request, faults, all))
        }
        RequestTreatment::Refused(why) => {
            refused(course, why, faults);
            None
        }
        RequestTreatment::Open(key, _, _, _) if is_refused && !has_selection(course) => {
            all.shown.insert(key, "refuse".to_owned());
            None
        }
        RequestTreatment::Tagless(_) if is_refused && !has_selection(course) => None,
        RequestTreatment::Tagless(request) => Some(ran(course, request, faults, all)),
        RequestTreatment::Open(key, _, value, request) => {
            all.shown.insert(key, (*value).to_owned());
            Some(ran(course, request, faults, all))
        }
        RequestTreatment::Run(request) => {
            if is_refused && !course.killed && !has_selection(course) {
                let exit = course.ending.exit.map_or_else(String::new, |exit| format!(": {exit}"));
                faults.add(clause, "refused", "the request is run", format!("no selection{exit}"));
                if matches!(course.ending.exit, Some(Exit::Signal(_))) {
                    faults.of_nature(Nature::Crash);
                }
                return None;
            }
            Some(ran(course, request, faults, all))
        }
    }
}

fn has_selection(course: &RunObservations) -> bool {
    payload_of(course, "selector_chosen").is_some()
}

/// Payload of the first line with this event; null if it lacks one.
fn payload_of(course: &RunObservations, event: &str) -> Option<Json> {
    let mut lines = course.log.as_deref().unwrap_or_default().split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let line = observations::decoded(line)?;
        let is_one = line.get("event").and_then(Json::as_str) == Some(event);
        is_one.then(|| line.get("payload").cloned().unwrap_or_default())
    })
}

/// Judges a run whose request must be refused.
fn refused(course: &RunObservations, why: &str, faults: &mut Faults) {
    let got = match () {
        () if course.ending.exit == Some(Exit::Code(0)) => "exit status 0",
        () if !course.drivers.is_empty() => "a driver was started",
        () if course.run_starts > 0 || !course.tools.is_empty() => "a tool was started",
        () if ["tool_ok", "tool_error"].iter().any(|event| payload_of(course, event).is_some()) => {
            "a tool event in the log"
        }
        () => return,
    };
    let expected = format!("the request is refused: {why}");
    faults.add("LOG-RUN-REFUSES", "not_refused", expected, got);
}

/// Judges the log of a run. Returns how it ended.
fn ran(course: &RunObservations, request: &Request, faults: &mut Faults, all: &mut All) -> End {
    let text = course.log.as_deref().unwrap_or_default();
    let log = log::read(text, course.killed, request, faults);
    if let Some(id) = &log.run_id {
        match log::run_id_form(id) {
            Some(form) => _ = all.shown.insert("run_id_form", form.to_owned()),
            None => {
                let expected = "a `run_id` of 8-4-4-4-12 or of 32 hexadecimal digits";
                faults.add("LOG-WRITE-FORM", "run_id_form", expected, id.as_str());
            }
        }
        all.run_ids.push(id.clone());
    }
    if let Some(form) = log.request_id_absent {
        all.shown.insert("request_id_absent", form.to_owned());
    }
    if faults.0.iter().any(|finding| finding.clause.0 == "LOG-WRITE-JSON") {
        return End::Due;
    }
    let before = faults.0.len();
    let mut walk = Walk::new(course, request, &log, faults);
    let end = walk.walk();
    let (is_stopped, fallback) = (walk.is_stopped(), walk.fallback.take());
    let (shown, menus) = (walk.shown, walk.menus);
    all.fallbacks.extend(fallback.map(|kind| (request.clone(), kind)));
    if let Some(argv) = &course.odd_start {
        let expected = "a toolhost is started with --run PLUGIN AID or --serve PLUGIN";
        faults.add("LOG-RUN-START", "other_arguments", expected, format!("{argv:?}"));
    }
    all.shown.extend(shown);
    all.menus.extend(menus);
    let is_exit = course.killed || course.ending.exit == Some(Exit::Code(0));
    if is_stopped && !is_exit {
        let got = course.ending.exit.map_or_else(|| "no exit".to_owned(), |exit| exit.to_string());
        faults.add("LOG-RUN-EXIT", "exit", "exit status 0 after NOOP", got);
    }
    if course.killed {
        // The log is not the beginning of a valid one.
        for finding in &mut faults.0[before..] {
            let is_order = ["order", "selection_missing"].contains(&finding.reason.as_str());
            if finding.clause.0 == "LOG-WRITE-EVENTS" && is_order {
                "LOG-WRITE-ORDER".clone_into(&mut finding.clause.0);
            }
        }
    }
    end
}

impl All {
    /// Compares the runs of a conversation.
    fn compare(&self, faults: &mut Faults) {
        if let Some(session) = self.closed.first().filter(|_| self.ends_in_time) {
            let expected = "no `run_finished` before the run is over";
            let got = format!("`run_finished` in the log of run {session}, which was killed before its end");
            faults.add("LOG-WRITE-ORDER", "finished_early", expected, got);
        }
        for (at, id) in self.run_ids.iter().enumerate() {
            if self.run_ids[..at].contains(id) {
                faults.add("LOG-WRITE-RUN", "run_id_again", "a new `run_id` for every run", id.as_str());
            }
        }
        for (at, (request, kind)) in self.fallbacks.iter().enumerate() {
            let is_like = |other: &&(Request, String)| {
                let like = Request { mode: request.mode, ..other.0.clone() };
                like == *request && other.0.mode != request.mode && other.1 != *kind
            };
            if let Some((_, other)) = self.fallbacks[..at].iter().find(is_like) {
                let expected = "a fallback with the same `kind` as FALLBACK_ONLY";
                faults.add(
                    "LOG-RUN-FALLBACK",
                    "other_kind",
                    expected,
                    format!("the kinds {other} and {kind}"),
                );
            }
        }
        for (at, (menu, told)) in self.menus.iter().enumerate() {
            for (other, other_told) in &self.menus[..at] {
                if (menu == other) != (told == other_told) {
                    let expected = "equal digests for equal menus, and different digests for different menus";
                    let got =
                        format!("the digests {told} and {other_told} for the menus {menu:?} and {other:?}");
                    faults.add("LOG-RUN-DIGESTS", "menu_digests", expected, got);
                }
            }
        }
    }
}

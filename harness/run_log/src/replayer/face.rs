//! The face of a replayer: derives the allowed verdict and the re-runs from a log.

use std::sync::Arc;
use std::time::Duration;

use peerproof_engine::contract::face::{
    Aim, Allowed, Expectation, Expected, ExpectedPart, Face, Frame, Framing, Misfit, Reading, Rule,
    SessionClauses, SessionTrace, Stimulus, StimulusKind, Subject, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::contract::memory;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::finding::{Finding, Judgement, Nature, Repair};
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::{Act, Fixture, Plan};
use peerproof_engine::data::transcript::{EventKind, Exit, FoundKind, Transcript};

use super::model::{self, LogReading};
use super::talk::{POLICY, log_of, named};
use super::toolhost_requests;
use crate::{REPLAYER, tools};

/// Beginning of a verdict.
const VERDICT: &str = "REPLAY_STRICT ";

/// Most characters of a quoted output.
const QUOTED_CHARS: usize = 200;

/// Clause: the replayer closes the input of a toolhost.
const CLOSED: &str = "LOG-RERUN-CLOSED";

const ONCE: &str = "LOG-VERDICT-ONCE";
const EXIT: &str = "LOG-VERDICT-EXIT";
const LEAVES: &str = "LOG-RERUN-LEAVES";
const TIME: &str = "LOG-RERUN-TIME";
const BOUND: &str = "LOG-RERUN-BOUND";
const MEMORY: &str = "LOG-LINE-MEMORY";

/// Clause: the replayer ends at SIGTERM, and takes the toolhost with it.
const SIGTERM: &str = "LOG-RERUN-SIGTERM";
/// Clause: the replayer ends soon after its verdict.
const ENDS: &str = "LOG-VERDICT-ENDS";

/// Time to end after the verdict.
const END: Duration = Duration::from_secs(2);

/// Tolerance for delays of the harness.
const END_SLACK: Duration = Duration::from_millis(500);

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    no_process_left: LEAVES,
    no_file_left: LEAVES,
    ends_at_eof: ENDS,
    ends_at_term: SIGTERM,
    ..SessionClauses::all(ONCE)
};

/// The face of a replayer.
pub(crate) struct Replayer;

/// Verdict of a replayer.
#[derive(Debug)]
pub(crate) enum Message {
    /// OK.
    Ok,
    /// FAIL, with its reason and the exit status.
    Fail(String, i32),
    /// No verdict, with the exit status.
    None(i32),
}

/// Allowed verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedVerdict {
    /// OK.
    Ok,
    /// FAIL.
    Fail,
    /// Anything but OK, with a non-zero exit status.
    NotOk,
}

impl Face for Replayer {
    type Message = Message;
    type Answer = AllowedVerdict;
    type Notes = Arc<LogReading>;
    /// Reading of each session's log; `None` without a log.
    type State = Vec<Option<Arc<LogReading>>>;

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == REPLAYER).then_some(Framing::Whole)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> Self::State {
        let told = |at| {
            let plan = &transcript.plan;
            let mut told = model::read(&log(plan, at)?, has_toolhost(plan, at));
            told.has_rerun = toolhost_requests::has_rerun(transcript, at, &told);
            told.has_waited = toolhost_requests::has_waited(transcript, at);
            told.is_ended = is_signalled(plan, at);
            told.has_asked = toolhost_requests::has_asked(transcript, at);
            Some(Arc::new(told))
        };
        (0..transcript.plan.sessions.len()).map(told).collect()
    }

    fn expect(
        &self,
        state: &mut Self::State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedVerdict, Arc<LogReading>>> {
        let StimulusKind::Begun = stimulus.what else { return None };
        let known = state.get(stimulus.session)?.clone();
        let (clause, allowed, choice) = match &known {
            // A replayer that gets SIGTERM need not give a verdict.
            Some(told) if told.is_ended => {
                (SIGTERM, vec![Allowed::silence(), Allowed::answer(AllowedVerdict::NotOk)], None)
            }
            None => ("LOG-VERDICT-UNREAD", vec![Allowed::answer(AllowedVerdict::NotOk)], None),
            Some(told) => allowed(told),
        };
        let extra = known.unwrap_or_default();
        Some(Expectation::one(Expected {
            clause,
            subject: Subject::Turn,
            allowed,
            choice,
            effects: Vec::new(),
            extra,
        }))
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        let output = String::from_utf8_lossy(frame.bytes);
        let quoted = |exit| format!("{exit}, {:?}", shorten(&output, QUOTED_CHARS));
        let broken = |clause, reason, expected: &str, exit: Exit| {
            Reading::Broken(Finding::new(clause, reason, expected, quoted(exit)))
        };
        let verdicts: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix(VERDICT)).collect();
        let exit = frame.exit.unwrap_or(Exit::Code(0));
        match (exit, verdicts.as_slice()) {
            (Exit::Signal(_), []) => Reading::Blank,
            (Exit::Code(0), []) => Reading::Blank,
            (Exit::Code(status), []) => Reading::Message(Message::None(status)),
            (_, [_, _, ..]) => {
                broken(ONCE, "two_verdicts", "exactly one line that begins with REPLAY_STRICT", exit)
            }
            (_, [verdict]) if verdict.starts_with("OK") => match exit {
                Exit::Code(0) => Reading::Message(Message::Ok),
                _ => broken(EXIT, "exit_status", "exit status 0 after OK", exit),
            },
            (_, [verdict]) => match (verdict.strip_prefix("FAIL"), exit) {
                (None, _) => broken(ONCE, "other_verdict", "REPLAY_STRICT OK or REPLAY_STRICT FAIL", exit),
                (_, Exit::Code(0) | Exit::Signal(_)) => {
                    broken(EXIT, "exit_status", "exit status 1 after FAIL", exit)
                }
                (Some(reason), Exit::Code(_)) if reason.trim().is_empty() => {
                    broken("LOG-VERDICT-REASON", "no_reason", "a reason after FAIL", exit)
                }
                (Some(reason), Exit::Code(status)) => {
                    Reading::Message(Message::Fail(reason.trim().to_owned(), status))
                }
            },
        }
    }

    fn fit(&self, _: &ExpectedPart<Self>, way: &AllowedVerdict, came: &[&Message]) -> Result<(), Misfit> {
        let misfit = |clause, reason, status| {
            Err(Misfit { rank: 0, clause, reason, repair: Repair::Exit(Exit::Code(status)) })
        };
        match (way, came.first()) {
            (AllowedVerdict::Ok, Some(Message::Fail(..))) => misfit(None, "refused", 0),
            (AllowedVerdict::Fail | AllowedVerdict::NotOk, Some(Message::Ok)) => misfit(None, "accepted", 1),
            (AllowedVerdict::Ok, Some(Message::None(_))) => misfit(None, "no_verdict", 0),
            (AllowedVerdict::Fail, Some(Message::None(_))) => misfit(None, "no_verdict", 1),
            (AllowedVerdict::Fail, Some(Message::Fail(_, status))) if *status != 1 => {
                misfit(Some(EXIT), "exit_status", 1)
            }
            _ => Ok(()),
        }
    }

    fn leaves_open(&self, part: &ExpectedPart<Self>, _: Option<&Aim>, _: &[&Message]) -> Option<Untestable> {
        let why = match part.clause {
            CLOSED if !part.extra.has_waited => "the toolhost did not run the tool in run mode",
            SIGTERM if !part.extra.has_asked => "no tool was running at SIGTERM",
            _ => return None,
        };
        Some(Untestable::new("not_tried", why))
    }

    fn phrase(&self, part: &ExpectedPart<Self>, way: &AllowedVerdict) -> String {
        match (way, &part.extra.wrong) {
            (AllowedVerdict::Ok, _) => "REPLAY_STRICT OK with exit status 0".to_owned(),
            (AllowedVerdict::Fail, Some(wrong)) => {
                format!("REPLAY_STRICT FAIL with exit status 1: line {} shows {}", wrong.line, wrong.why)
            }
            (AllowedVerdict::Fail, None) => "REPLAY_STRICT FAIL with exit status 1".to_owned(),
            (AllowedVerdict::NotOk, _) => "no OK, and a non-zero exit status".to_owned(),
        }
    }

    fn text(&self, message: &Message) -> String {
        match message {
            Message::Ok => "OK".to_owned(),
            Message::Fail(reason, status) => format!("FAIL with exit status {status}: {reason}"),
            Message::None(status) => format!("no verdict, exit status {status}"),
        }
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[beside, lines, reruns, end]
    }
}

fn reruns(trace: &Trace<'_, Replayer>, heard: &SessionTrace<'_, Replayer>) -> Vec<Finding> {
    match trace.state.get(heard.session).and_then(Option::as_ref) {
        Some(told) => toolhost_requests::judge(trace.transcript, heard.session, told, is_ok(heard)),
        None => Vec::new(),
    }
}

/// Log of a session; `None` without one.
fn log(plan: &Plan, session: usize) -> Option<Vec<u8>> {
    let name = log_of(session);
    match plan.fixtures.iter().find(|fixture| fixture.name() == name)? {
        Fixture::File { content, .. } => content.expand(&Vars::new()).ok(),
        _ => None,
    }
}

/// True if the process of a session gets a signal.
fn is_signalled(plan: &Plan, session: usize) -> bool {
    plan.steps.iter().any(|step| step.session == session && matches!(step.act, Act::Signal(_)))
}

fn has_toolhost(plan: &Plan, session: usize) -> bool {
    let toolhost = named("peer", session);
    let is_own = |fixture: &Fixture| matches!(fixture, Fixture::Actor { name, .. } if *name == toolhost);
    plan.fixtures.iter().any(is_own)
}

/// Allowed verdicts for a log, with their clause and choice.
fn allowed(told: &LogReading) -> (&'static str, Vec<Allowed<AllowedVerdict>>, Option<&'static str>) {
    if let Some(first_wins) = told.first_wins {
        let shown = match (told.wrong.is_none(), first_wins) {
            (true, true) => Some(("last|first", "refuse")),
            (true, false) => Some(("last", "first|refuse")),
            (false, true) => Some(("first", "last|refuse")),
            (false, false) => None,
        };
        if let Some((ok, fail)) = shown {
            let ways = vec![
                Allowed::answer(AllowedVerdict::Ok).shows(ok),
                Allowed::answer(AllowedVerdict::Fail).shows(fail),
            ];
            let is_clear = told.open.iter().all(|open| open.clause == model::KEYS);
            return (model::KEYS, ways, is_clear.then_some("duplicate_keys"));
        }
    }
    if let Some(wrong) = &told.wrong {
        return (wrong.clause, vec![Allowed::answer(AllowedVerdict::Fail)], None);
    }
    let Some(first) = told.open.first() else {
        if let Some(has_rerun) = told.has_rerun {
            let way = Allowed::answer(AllowedVerdict::Ok).shows(if has_rerun { "true" } else { "false" });
            return ("LOG-RERUN-ERROR", vec![way], Some("tool_error_rerun"));
        }
        let is_patient = told.runs.iter().any(|run| tools::is_patient(&run.aid));
        let clause = if is_patient { CLOSED } else { "LOG-VERDICT-OK" };
        return (clause, vec![Allowed::answer(AllowedVerdict::Ok)], None);
    };
    let either = || vec![Allowed::answer(AllowedVerdict::Ok), Allowed::answer(AllowedVerdict::Fail)];
    match (first.choice, told.open.len()) {
        (Some((key, ok, fail)), 1) => {
            let mut either = either();
            for (way, value) in either.iter_mut().zip([ok, fail]) {
                way.shows = (!value.is_empty()).then_some(value);
            }
            (first.clause, either, Some(key))
        }
        _ => (first.clause, either(), None),
    }
}

fn is_ok(heard: &SessionTrace<'_, Replayer>) -> bool {
    heard.answers().any(|(_, _, answer)| matches!(answer.message, Message::Ok))
}

/// Findings about files beside the log, changes of the log and starts of a policy process.
fn beside(trace: &Trace<'_, Replayer>, heard: &SessionTrace<'_, Replayer>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let label = named("left", heard.session);
    let log = log(&trace.transcript.plan, heard.session);
    for event in trace.transcript.of(heard.session) {
        match &event.kind {
            EventKind::ActorStarted { actor, .. } if actor == POLICY => findings.push(
                Finding::new(
                    "LOG-RERUN-POLICY",
                    "policy_started",
                    "no start of a policy driver",
                    "a policy driver was started",
                )
                .repaired_by(Repair::Undo),
            ),
            EventKind::Looked { label: at, found, cut: false, .. } if *at == label => {
                let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let is_left = |path: &[u8]| !path.is_empty() && path != b"log";
                if let Some(one) = found.iter().find(|one| is_left(&one.path.0)) {
                    let expected = "no other file in the folder of the log";
                    findings.push(Finding::new(LEAVES, "file_left", expected, name(&one.path.0)));
                }
                let Some(log) = &log else { continue };
                let own = found.iter().find(|one| one.path.0 == b"log");
                let is_same = own.is_some_and(|own| {
                    own.kind == FoundKind::File
                        && own.total_bytes == log.len() as u64
                        && own.bytes.as_ref().is_none_or(|bytes| log.starts_with(&bytes.0))
                });
                if !is_same {
                    let got = own.map_or("the log is gone".to_owned(), |own| {
                        format!("the log has {} bytes and differs", own.total_bytes)
                    });
                    findings.push(Finding::new("LOG-RERUN-LOG", "log_changed", "an unchanged log", got));
                }
            }
            _ => {}
        }
    }
    findings
}

/// Finding about a process that ends late after its verdict.
fn end(trace: &Trace<'_, Replayer>, heard: &SessionTrace<'_, Replayer>) -> Vec<Finding> {
    let (mut text, mut said, mut ended) = (Vec::new(), None, None);
    for event in trace.transcript.of(heard.session) {
        match &event.kind {
            EventKind::Received { bytes } if said.is_none() => {
                let whole = bytes.0.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let (whole, rest) = bytes.0.split_at(whole);
                text.extend_from_slice(whole);
                if !whole.is_empty() {
                    let lines = String::from_utf8_lossy(&text);
                    said = lines.lines().any(|line| line.starts_with(VERDICT)).then_some(event.at_us);
                    text.clear();
                }
                text.extend_from_slice(rest);
            }
            EventKind::Exited { .. } => ended = Some(event.at_us),
            _ => {}
        }
    }
    // A process that never ended is reported as such.
    let (Some(said), Some(ended), false) = (said, ended, heard.ending.late) else { return Vec::new() };
    let took = Duration::from_micros(ended.saturating_sub(said));
    if took <= END.mul_f64(trace.transcript.timeout_scale) + END_SLACK {
        return Vec::new();
    }
    let expected = "the process ends within 2 s of its verdict";
    let got = format!("still running {:.1} s later", took.as_secs_f64());
    vec![
        Finding::new(ENDS, "does_not_end", expected, got).of_nature(Nature::Hang).repaired_by(Repair::Sooner),
    ]
}

/// Finding about a FAIL whose reason lacks the number of a line, or names one before the first damaged line.
fn lines(trace: &Trace<'_, Replayer>, heard: &SessionTrace<'_, Replayer>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (asked, part, answer) in heard.answers() {
        let (Message::Fail(reason, _), Some(wrong)) = (answer.message, &part.extra.wrong) else { continue };
        // With open points, or without a toolhost, a FAIL need not be about a damaged line.
        if !part.extra.open.is_empty() || !has_toolhost(&trace.transcript.plan, heard.session) {
            continue;
        }
        let least = first_damaged(&trace.transcript.plan, heard.session, wrong.line);
        let mut numbers = reason.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        if !numbers.any(|number: usize| (least..=part.extra.lines + 1).contains(&number)) {
            let expected = format!("the number of a line, {least} or higher");
            findings.push(
                Finding::new("LOG-VERDICT-LINE", "wrong_line", expected, reason.clone()).at(asked.step),
            );
        }
    }
    findings
}

/// First line that differs from the twin, which is the earlier log with the longest common beginning. If a line is
/// missing or moved, the line before counts, because a replayer may name it.
fn first_damaged(plan: &Plan, session: usize, shown: usize) -> usize {
    let Some(own) = log(plan, session) else { return 1 };
    let compared = |other: Vec<u8>| {
        let lines =
            |log: &[u8]| log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (own, other) = (lines(&own), lines(&other));
        let common = own.iter().zip(&other).take_while(|(one, two)| one == two).count();
        let behind = common + 1;
        (common, own.len() == other.len() && own.get(behind..) == other.get(behind..))
    };
    let twins = (0..session).filter_map(|at| log(plan, at)).map(compared);
    match twins.max().filter(|(common, _)| *common > 0) {
        Some((common, true)) => shown.min(common + 1),
        Some((common, false)) => common.min(shown).saturating_sub(1).max(1),
        None => shown.saturating_sub(1).max(1),
    }
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Replayer, transcript);
    // The contract leaves open how long a replayer waits for a hanging tool, but not that it refuses the log.
    let of_time = |clause: &ClauseId| [TIME, BOUND].contains(&clause.0.as_str());
    for finding in judgement.findings.iter_mut().filter(|it| of_time(&it.clause) && it.reason != "hung") {
        finding.clause = ClauseId("LOG-RERUN-FAILS".to_owned());
    }
    // Processes left after SIGTERM belong to the clause about SIGTERM.
    if (0..transcript.plan.sessions.len()).any(|session| is_signalled(&transcript.plan, session)) {
        for finding in judgement.findings.iter_mut().filter(|it| it.clause.0 == LEAVES) {
            finding.clause = ClauseId(SIGTERM.to_owned());
        }
    }
    memory::judge(transcript, MEMORY, &mut judgement);
    judgement
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    peerproof_engine::data::transcript::strict::expectations::<Aim>(&transcript.plan)
}

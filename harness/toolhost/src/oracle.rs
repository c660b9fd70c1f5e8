//! Judgement of a toolhost's transcripts (provider side): the expectations of the steps, and the general rules for
//! replies and processes.

use serde::Deserialize as _;

use super::align::{ExpectedLine, Frame, align};
use super::dispatcher;
use super::expect::{Allowed, Expect, Outcome};
use super::frames::{self, decode};
use super::reply_rules;
use peerproof_engine::contract::judge::order::Alignment;
use peerproof_engine::contract::memory;
use peerproof_engine::data::ending::{Ending, left_behind};
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, LATE_REPLY, Nature};
use peerproof_engine::data::json;
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

mod relations;

/// Clauses about frames and processes that every conversation can break.
mod clause {
    pub(crate) const ONE_REPLY_A_LINE: &str = "TH-FRAME-01";
    pub(crate) const IN_ORDER: &str = "TH-FRAME-02";
    pub(crate) const FLUSHED: &str = "TH-FRAME-03";
    pub(crate) const PROTOCOL_ONLY: &str = "TH-FRAME-05";
    pub(crate) const ONE_OBJECT: &str = "TH-REPLY-02";
    pub(crate) const RUN_EXIT_ZERO: &str = "TH-RUN-02";
    pub(crate) const RUN_ERROR_EXIT: &str = "TH-RUN-03";
    pub(crate) const RUN_ALWAYS_REPLIES: &str = "TH-RUN-04";
    pub(crate) const SERVE_ENDS_AT_EOF: &str = "TH-PROC-02";
    pub(crate) const RUN_ENDS: &str = "TH-PROC-03";
    pub(crate) const ENDS_AT_TERM: &str = "TH-PROC-04";
    pub(crate) const NO_PROCESS_LEFT: &str = "TH-PROC-05";
    pub(crate) const NO_FILE_LEFT: &str = "TH-PROC-06";
    pub(crate) const RIGHT_SIZES: &str = "TH-STATE-10";
    /// Key of the open choice that an exit status reveals, not a reply.
    pub(crate) const ERROR_EXIT_CHOICE: &str = "host_error_exit";
}

/// Expectation of one line of a step.
pub(super) struct LineExpectation {
    pub step: usize,
    /// Index of the event that began the line, within its session.
    pub sent: usize,
    pub expect: Expect,
    pub canary: bool,
    /// Clauses by reason code, if they differ from the clause of `expect`.
    pub clauses: Vec<(&'static str, &'static str)>,
    /// Expectation of the step itself. If it is contradicted too, the finding gets its clause and reason code.
    pub hint: Option<Expect>,
}

impl LineExpectation {
    fn file(&self, mut finding: Finding) -> Finding {
        if let Some((_, clause)) = self.clauses.iter().find(|(reason, _)| *reason == finding.reason) {
            finding.clause = (*clause).into();
        }
        finding.at(self.step)
    }
}

/// Lines in the form for their assignment to frames.
pub(super) fn dues(asked: &[LineExpectation]) -> Vec<ExpectedLine<'_>> {
    asked.iter().map(|asked| ExpectedLine { expect: &asked.expect, sent: asked.sent }).collect()
}

/// Expectations of a session.
pub(super) struct Expected {
    /// Expectations of its lines, in order.
    pub asked: Vec<LineExpectation>,
    /// Other findings.
    pub findings: Vec<Finding>,
}

/// Function that derives the expectations of a session from its frames.
pub(super) type Expectations<'a> = dyn Fn(&Transcript, usize, &[Frame]) -> Expected + 'a;

/// True if `frame` is surely the answer to a canary: it fits, and no other request has this answer.
pub(crate) fn answers_canary(step: &peerproof_engine::data::plan::Step, frame: &[u8]) -> bool {
    let Ok(expect) = Expect::deserialize(&step.expect) else { return false };
    let unmistakable = expect.allowed.iter().all(|allowed| allowed.output.is_some());
    unmistakable && decode(frame).value.is_ok_and(|value| expect.fit(&value).is_some())
}

/// Judges by the expectations in the plan.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge_with(transcript, &|transcript, session, _| Expected {
        asked: asked(transcript, session),
        findings: Vec::new(),
    });
    relations::judge(transcript, &mut judgement);
    judgement
}

/// Judges by other expectations.
pub(super) fn judge_with(transcript: &Transcript, expectations: &Expectations<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    for (session, peer) in transcript.plan.sessions.iter().enumerate() {
        if peer.command == "command" {
            dispatcher::oracle::judge_session(transcript, session, &mut judgement);
        } else {
            judge_session(transcript, session, expectations, &mut judgement);
        }
    }
    memory::judge(transcript, "TH-LIMIT-06", &mut judgement);
    judgement
}

/// A sent line with its reply, if a strict JSON reply came.
pub(super) struct Answer {
    /// Session of the plan.
    pub session: usize,
    /// Step that sent the line.
    pub step: usize,
    /// Expectation.
    pub expect: Expect,
    /// The reply.
    pub reply: Option<json::Json>,
}

/// Replies assigned to lines, in the order of sending within each session.
pub(super) fn answers(transcript: &Transcript) -> Vec<Answer> {
    let mut answers = Vec::new();
    for session in 0..transcript.plan.sessions.len() {
        let asked = asked(transcript, session);
        let (mut frames, _) = frames::of(transcript, session);
        let alignment = align(&dues(&asked), &frames);
        for (asked, answer) in asked.into_iter().zip(alignment.answers) {
            let reply =
                answer.and_then(|frame| std::mem::replace(&mut frames[frame].value, Err(String::new())).ok());
            answers.push(Answer { session, step: asked.step, expect: asked.expect, reply });
        }
    }
    answers
}

fn judge_session(
    transcript: &Transcript,
    session: usize,
    expectations: &Expectations<'_>,
    judgement: &mut Judgement,
) {
    let serve = transcript.plan.sessions[session].command != "run";
    let (frames, rest) = frames::of(transcript, session);
    let Expected { asked, findings } = expectations(transcript, session, &frames);
    let stray = asked.iter().find_map(|asked| asked.expect.stray.as_ref()).map(|clause| clause.0.as_str());
    let ending = Ending::of(transcript, session);
    let mut alignment = align(&dues(&asked), &frames);
    let mut own = Judgement { findings, ..Judgement::default() };
    if let Some(first) = put_in_order(&mut alignment, &asked, &frames) {
        let reply = alignment.answers[first].map(|frame| String::from_utf8_lossy(&frames[frame].bytes));
        let got = format!("its reply {} out of turn", shorten(&reply.unwrap_or_default(), 200));
        let expected = "replies in the order of the requests";
        own.findings
            .push(Finding::new(clause::IN_ORDER, "out_of_order", expected, got).at(asked[first].step));
    }
    let last_answered = alignment.answers.iter().rposition(Option::is_some);
    // The event that ended the session, allowed or not, explains every later silence.
    let mut over = None;
    for (index, (asked_now, answer)) in asked.iter().zip(&alignment.answers).enumerate() {
        match answer {
            Some(frame) => reply(asked_now, &frames[*frame], stray, &mut own),
            None if last_answered > Some(index) => passed_over(asked_now, &mut own),
            None if over.is_none()
                && outlived(asked_now, &asked[index + 1..], &alignment.answers[index + 1..], &ending) => {}
            None if ending.cut => {}
            None if over.is_none() => {
                over = silence(asked_now, index + 1 == asked.len(), serve, &ending, &mut own);
            }
            None => {}
        }
    }
    own.findings.extend(extra_frames(&asked, &alignment, &frames, stray, serve));
    if !serve && frames::has_blank_lines(&transcript.stdout(session)) {
        own.findings.push(Finding::new(
            clause::PROTOCOL_ONLY,
            "blank_line",
            "one JSON object and at most one newline",
            "blank lines around the reply",
        ));
    }
    if serve && !rest.is_empty() && ending.exit.is_some() && !ending.cut && !asked.is_empty() {
        let got = shorten(&String::from_utf8_lossy(&rest), 200).into_owned();
        own.findings.push(Finding::new(
            clause::PROTOCOL_ONLY,
            "unfinished_line",
            "every reply ends with a line feed",
            got,
        ));
    }
    let mut step_of = vec![None; frames.len()];
    for (asked, answer) in asked.iter().zip(&alignment.answers) {
        if let Some(frame) = answer {
            step_of[*frame] = Some(asked.step);
        }
    }
    for (frame, step) in frames.iter().zip(step_of) {
        own.findings.extend(frames::shape(frame, serve).map(|finding| Finding { step, ..finding }));
        if let Ok(value) = &frame.value {
            // Only the reply to a lease request contains a secret that is removed.
            let asks_lease = step
                .and_then(|step: usize| transcript.plan.steps.get(step)?.capture.as_ref())
                .is_some_and(|capture| capture.secret);
            let bytes = frame.bytes.len();
            for finding in reply_rules::violations(transcript, serve, asks_lease, value, bytes) {
                own.findings.push(Finding { step, ..finding });
            }
        }
    }
    if serve {
        serve_end(&ending, over, &mut own);
    } else {
        run_end(&asked, &ending, &frames, &mut own);
    }
    own.findings.extend(left_behind(transcript, session, clause::NO_PROCESS_LEFT, clause::NO_FILE_LEFT));
    let finish = transcript
        .plan
        .steps
        .iter()
        .position(|step| step.session == session && matches!(step.act, Act::Finish | Act::Signal(_)));
    judgement.findings.extend(own.findings.into_iter().map(|finding| match finding.step {
        Some(_) => finding,
        None => Finding { step: finish, ..finding },
    }));
    judgement.canaries_answered += own.canaries_answered;
    judgement.canaries_misanswered += own.canaries_misanswered;
    judgement.choice = own.choice.or(judgement.choice.take());
}

/// Exchanges replies that are correct in another order; returns the index of the first line with such a reply.
fn put_in_order(alignment: &mut Alignment, asked: &[LineExpectation], frames: &[Frame]) -> Option<usize> {
    let may_be_silent = |line: usize| asked[line].expect.may_be_silent();
    let accepted = |line: usize, frame: usize| {
        let (asked, frame) = (&asked[line], &frames[frame]);
        let value = frame.value.as_ref().ok().filter(|_| frame.place >= asked.sent)?;
        asked.expect.fit(value)
    };
    let fits = |line: usize, frame: usize| accepted(line, frame).is_some();
    // A demanded output tells whose answer it is.
    let proves = |line: usize, frame: usize| {
        asked[line].expect.allowed.iter().any(|allowed| allowed.output.is_some())
            && accepted(line, frame).is_some_and(|allowed| allowed.output.is_some())
    };
    alignment.put_in_order(&may_be_silent, &fits, &proves)
}

/// Findings about frames that answer nothing, one for each kind.
fn extra_frames(
    asked: &[LineExpectation],
    alignment: &Alignment,
    frames: &[Frame],
    stray: Option<&str>,
    serve: bool,
) -> impl Iterator<Item = Finding> + use<> {
    let mut extras: Vec<(Finding, usize)> = Vec::new();
    for frame in &alignment.extra {
        let before = alignment.answers.iter().rposition(|answer| answer.is_some_and(|at| at < *frame));
        let once = before.and_then(|at| asked[at].expect.once.as_ref());
        // A frame that is not a JSON object is foreign output. A JSON object is an extra reply.
        let (clause, reason) = match &frames[*frame].value {
            Ok(value) if value.get("ok").is_some() => {
                let general = if serve { clause::ONE_REPLY_A_LINE } else { clause::ONE_OBJECT };
                (once.map(|clause| clause.0.as_str()).or(stray).unwrap_or(general), "extra_reply")
            }
            _ => (stray.unwrap_or(clause::PROTOCOL_ONLY), "other_output"),
        };
        match extras.iter_mut().find(|(seen, _)| seen.key() == (&clause.into(), reason)) {
            Some((_, more)) => *more += 1,
            None => {
                let got = shorten(&String::from_utf8_lossy(&frames[*frame].bytes), 200).into_owned();
                let finding = Finding::new(clause, reason, "exactly one reply for each request line", got);
                extras.push((finding, 0));
            }
        }
    }
    extras.into_iter().map(|(mut finding, more)| {
        if more > 0 {
            finding.got.push_str(&format!(" (and {more} more)"));
        }
        finding
    })
}

/// Sent lines with their expectations.
fn asked(transcript: &Transcript, session: usize) -> Vec<LineExpectation> {
    let mut asked = Vec::new();
    let begun = lines::begun(transcript, session);
    for event in transcript.of(session) {
        let EventKind::Sent { step: index, .. } = event.kind else { continue };
        let (first, other) = begun.get(&index).copied().unwrap_or_default();
        let Some(step) = transcript.plan.steps.get(index) else { continue };
        let expects: Vec<Expect> = match &step.expect {
            several @ serde_json::Value::Array(_) => Vec::deserialize(several).unwrap_or_default(),
            serde_json::Value::Null => Vec::new(),
            one => Expect::deserialize(one).map(|expect| vec![expect]).unwrap_or_default(),
        };
        asked.extend(expects.into_iter().enumerate().map(|(of_step, expect)| LineExpectation {
            step: index,
            sent: if of_step == 0 { first } else { other },
            expect,
            canary: step.canary,
            clauses: Vec::new(),
            hint: None,
        }));
    }
    asked
}

fn reply(asked: &LineExpectation, frame: &Frame, stray: Option<&str>, judgement: &mut Judgement) {
    let value = match &frame.value {
        Ok(value) => value,
        Err(error) => {
            let finding = match stray {
                Some(clause) => {
                    let got = shorten(&String::from_utf8_lossy(&frame.bytes), 200).into_owned();
                    Finding::new(clause, "other_output", "nothing but replies on standard output", got)
                }
                None => frames::undecodable(frame, error),
            };
            judgement.findings.push(finding.at(asked.step));
            return;
        }
    };
    match asked.expect.fit(value) {
        Some(allowed) => {
            if asked.canary && allowed.outcome != Outcome::Any {
                judgement.canaries_answered += 1;
            }
            note_choice(&asked.expect, allowed, judgement);
        }
        None => {
            judgement.canaries_misanswered += usize::from(asked.canary && value.get("ok").is_some());
            let fits = |value: &json::Json| asked.expect.fit(value).is_some();
            // The general rules report the fault of the reply; there is no other fault.
            if reply_rules::mended(value).iter().any(fits) {
                return;
            }
            if reply_rules::with_right_sizes(value).is_some_and(|right| fits(&right)) {
                let got = String::from_utf8_lossy(&frame.bytes);
                let finding =
                    Finding::new(clause::RIGHT_SIZES, "wrong_size_bytes", asked.expect.phrase(), got);
                judgement.findings.push(finding.at(asked.step));
                return;
            }
            let hint = asked.hint.as_ref().filter(|hint| hint.fit(value).is_none());
            let expect = hint.unwrap_or(&asked.expect);
            let (reason, detail) = expect.misfit(value);
            let text = String::from_utf8_lossy(&frame.bytes).into_owned();
            let got = if detail.is_empty() { text } else { format!("{detail}, in {text}") };
            let finding = Finding::new(expect.clause.0.as_str(), reason, expect.phrase(), got);
            judgement.findings.push(match hint {
                Some(_) => finding.at(asked.step),
                None => asked.file(finding),
            });
        }
    }
}

fn note_choice(expect: &Expect, allowed: &Allowed, judgement: &mut Judgement) {
    if let (Some(key), Some(value)) = (&expect.choice, &allowed.choice) {
        judgement.choice = Some(ChoiceSeen { pinned: false, key: key.clone(), value: value.clone() });
    }
}

/// Reason why no more replies come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyEnd {
    /// The process exited as an expectation allows.
    Rightly,
    /// There is a finding about it.
    Found,
}

/// Handles a request without a reply while later ones were answered.
fn passed_over(asked: &LineExpectation, judgement: &mut Judgement) {
    match asked.expect.silence(None) {
        Some(allowed) => note_choice(&asked.expect, allowed, judgement),
        None => {
            judgement.findings.push(no_reply(asked, "no reply, although later requests were answered"));
        }
    }
}

fn no_reply(asked: &LineExpectation, got: &str) -> Finding {
    let hint = asked.hint.as_ref().filter(|hint| !hint.may_be_silent());
    let expect = hint.unwrap_or(&asked.expect);
    let clause = expect.once.as_ref().unwrap_or(&expect.clause);
    let finding = Finding::new(clause.0.as_str(), "no_reply", expect.phrase(), got);
    if hint.is_some() { finding.at(asked.step) } else { asked.file(finding) }
}

/// True if a silence is allowed because the peer died from a later request, which was allowed.
fn outlived(
    asked: &LineExpectation,
    later: &[LineExpectation],
    answers: &[Option<usize>],
    ending: &Ending,
) -> bool {
    let may = |asked: &LineExpectation, outcome| {
        asked.expect.allowed.iter().any(|allowed| allowed.outcome == outcome)
    };
    may(asked, Outcome::Silence)
        && ending.exit.is_some_and(|exit| exit != Exit::Code(0))
        && later.iter().zip(answers).any(|(later, answer)| answer.is_none() && may(later, Outcome::Dies))
}

/// Handles a request without a reply when all later ones are unanswered too: it is allowed, or the peer died, hangs,
/// or skipped the request.
fn silence(
    asked: &LineExpectation,
    is_last: bool,
    serve: bool,
    ending: &Ending,
    judgement: &mut Judgement,
) -> Option<ReplyEnd> {
    let expect = &asked.expect;
    let ends = expect.allowed.iter().find(|allowed| allowed.outcome == Outcome::EndsInOrder);
    if let Some(allowed) = ends
        && ending.exit == Some(Exit::Code(0))
        && !(is_last && ending.in_order())
    {
        note_choice(expect, allowed, judgement);
        return Some(ReplyEnd::Rightly);
    }
    let by_itself = ending.exit.filter(|_| !ending.in_order());
    if let Some(allowed) = expect.silence(by_itself).or_else(|| expect.silence(ending.exit)) {
        note_choice(expect, allowed, judgement);
        return (allowed.outcome != Outcome::Silence).then_some(ReplyEnd::Rightly);
    }
    let hint = asked.hint.as_ref().filter(|hint| !hint.may_be_silent());
    let expect = hint.unwrap_or(expect);
    // If any reply is allowed, only its absence counts, not the reason for it.
    let any_reply = expect.allowed.iter().all(|allowed| allowed.outcome == Outcome::Reply);
    let clause = expect.once.as_ref().filter(|_| any_reply).unwrap_or(&expect.clause).0.as_str();
    let finding = if let Some((reason, got)) = ending.flood {
        Finding::new(clause, reason, expect.phrase(), got)
    } else if let Some(exit) = by_itself.filter(|exit| serve || *exit != Exit::Code(0)) {
        let reason = if exit == Exit::Code(0) { "ended_early" } else { "crashed" };
        Finding::new(clause, reason, expect.phrase(), format!("no reply, {exit}")).of_nature(Nature::Crash)
    } else if ending.unanswered || ending.unread || (ending.late && ending.exit.is_none()) {
        Finding::new(clause, "hung", expect.phrase(), ending.in_vain("no reply")).of_nature(Nature::Hang)
    } else {
        let got = match ending.exit {
            Some(exit) => format!("no reply until the end of input, then {exit}"),
            None => "no reply".to_owned(),
        };
        judgement.findings.push(no_reply(asked, &got));
        return None;
    };
    judgement.findings.push(if hint.is_some() { finding.at(asked.step) } else { asked.file(finding) });
    Some(ReplyEnd::Found)
}

/// Judges the end of a serve process. A fault that an unanswered request has shown is not reported again.
fn serve_end(ending: &Ending, over: Option<ReplyEnd>, judgement: &mut Judgement) {
    if over.is_some() {
        return;
    }
    let is_missing = judgement.findings.iter().any(|finding| finding.reason == "no_reply");
    let mut add = |finding: Finding| judgement.findings.push(finding);
    if ending.unanswered && !is_missing {
        // No reply is missing, so the late one came only at the end of input.
        add(Finding::new(
            clause::FLUSHED,
            LATE_REPLY,
            "a reply while standard input is still open",
            ending.in_vain("no reply") + ", then one",
        )
        .of_nature(Nature::Hang));
    }
    if ending.late {
        let (clause, expected) = if ending.signalled {
            (clause::ENDS_AT_TERM, "the process ends within 2 s of SIGTERM")
        } else {
            (clause::SERVE_ENDS_AT_EOF, "exit status 0 within 2 s of the last reply")
        };
        add(Finding::new(clause, "does_not_end", expected, "still running; peerproof killed it")
            .of_nature(Nature::Hang));
    }
    match ending.exit {
        Some(_) if ending.signalled => {}
        Some(Exit::Code(0)) if !ending.input_ended => add(Finding::new(
            clause::ONE_REPLY_A_LINE,
            "ended_early",
            "the process keeps serving requests while its standard input is open",
            "exit status 0, although standard input was still open",
        )),
        Some(exit) if exit != Exit::Code(0) => {
            let nature = if matches!(exit, Exit::Signal(_)) { Nature::Crash } else { Nature::Violation };
            add(Finding::new(
                clause::SERVE_ENDS_AT_EOF,
                "exit_status",
                "exit status 0 at the end of input",
                exit.to_string(),
            )
            .of_nature(nature));
        }
        _ => {}
    }
}

/// Judges the end of a run. Its status must agree with its reply.
fn run_end(asked: &[LineExpectation], ending: &Ending, frames: &[Frame], judgement: &mut Judgement) {
    let reply = frames.first().and_then(|frame| frame.value.as_ref().ok());
    let ok = reply.and_then(|value| value.get("ok")).and_then(json::Json::as_bool);
    if ending.late && (ending.signalled || asked.is_empty() || !frames.is_empty()) {
        let (clause, expected) = if ending.signalled {
            (clause::ENDS_AT_TERM, "the process ends within 2 s of SIGTERM")
        } else {
            (clause::RUN_ENDS, "the process ends within 2 s of its reply")
        };
        let finding = Finding::new(clause, "does_not_end", expected, "still running; peerproof killed it");
        judgement.findings.push(finding.of_nature(Nature::Hang));
    }
    let Some(exit) = ending.exit.filter(|_| !ending.signalled) else { return };
    let finding = match (ok, exit) {
        (Some(true), exit) if exit != Exit::Code(0) => Some(Finding::new(
            clause::RUN_EXIT_ZERO,
            "exit_status",
            "exit status 0 after a success reply",
            exit.to_string(),
        )),
        (Some(false), Exit::Signal(_)) => Some(Finding::new(
            clause::RUN_ERROR_EXIT,
            "died_by_signal",
            "an exit status after an error reply",
            exit.to_string(),
        )),
        (None, Exit::Signal(_)) if !frames.is_empty() => Some(Finding::new(
            clause::RUN_ALWAYS_REPLIES,
            "crashed",
            "one JSON object on standard output",
            format!("no complete reply, {exit}"),
        )),
        (None, exit) if frames.is_empty() && asked.is_empty() => Some(
            Finding::new(
                clause::RUN_ALWAYS_REPLIES,
                if exit == Exit::Code(0) { "no_reply" } else { "crashed" },
                "one JSON object on standard output",
                format!("nothing, {exit}"),
            )
            .of_nature(if exit == Exit::Code(0) { Nature::Violation } else { Nature::Crash }),
        ),
        _ => None,
    };
    judgement.findings.extend(finding.map(|finding| match exit {
        Exit::Signal(_) => finding.of_nature(Nature::Crash),
        Exit::Code(_) => finding,
    }));
    let asks_for_status =
        asked.iter().any(|asked| asked.expect.choice.as_deref() == Some(clause::ERROR_EXIT_CHOICE));
    if let (true, Some(false), Exit::Code(code)) = (asks_for_status, ok, exit) {
        let value = if code == 0 { "zero" } else { "nonzero" };
        judgement.choice = Some(ChoiceSeen {
            pinned: false,
            key: clause::ERROR_EXIT_CHOICE.to_owned(),
            value: value.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First line whose answer came out of turn, of two lines: the first takes any success, the second an output. Both
    /// replies come at once, at this place.
    fn out_of_turn(outputs: [u32; 2], place: usize) -> Option<usize> {
        let line = |step: usize, expect: Expect| LineExpectation {
            step,
            sent: step,
            expect,
            canary: false,
            clauses: Vec::new(),
            hint: None,
        };
        let asked =
            [line(0, Expect::ok("TH-PROC-01")), line(1, Expect::output("TH-PROC-01", "{\"canary\":2}"))];
        let frames = outputs.map(|n| {
            let text = format!(
                r#"{{"ok":true,"status":"OK","output_json":"{{\"canary\":{n}}}","error":"","ds_state":{{"delta":true}}}}"#
            );
            Frame { value: decode(text.as_bytes()).value, bytes: text.into_bytes(), place }
        });
        let mut alignment = Alignment { answers: vec![Some(0), Some(1)], extra: Vec::new() };
        let first = put_in_order(&mut alignment, &asked, &frames);
        let answers = if first.is_some() { [Some(1), Some(0)] } else { [Some(0), Some(1)] };
        assert_eq!(alignment.answers, answers);
        first
    }

    #[test]
    fn an_answer_that_an_earlier_line_takes_for_its_own_is_out_of_turn() {
        assert_eq!(out_of_turn([2, 1], 1), Some(0));
        assert_eq!(out_of_turn([1, 2], 1), None);
        assert_eq!(out_of_turn([1, 1], 1), None, "a wrong answer");
        assert_eq!(out_of_turn([2, 1], 0), None, "the first answer came before the second line");
    }
}

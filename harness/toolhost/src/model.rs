//! Model of a toolhost: the allowed replies to any bytes, derived from the bytes that were written.
//!
//! Expectations in a plan hold for the plan as it was built. A generated, mutated or shrunk conversation needs a judge
//! that works from the bytes alone: it checks if a line is strict JSON, has the shape of a request, names a known tool
//! with a valid input, a used key or a good lease, and which slots are set. If the contract leaves a choice, or an
//! earlier line leaves doubt, all outcomes are allowed. The actual reply then resolves the doubt. The model never
//! blames a correct peer.

use serde::Deserialize as _;
use serde_json::Value;

use super::align::Frame;
use super::expect::{Allowed, Expect, Outcome};
use super::oracle::{self, Expected, LineExpectation};
use peerproof_engine::data::finding::{Finding, Judgement, Nature};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines::{self, RequestLine};
use peerproof_engine::data::plan::Step;
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

mod cache;
mod lease;
mod pins;
mod request;
mod run;
mod slots;
mod tools;
mod world;

use lease::Lease;
use pins::Pins;
use request::{Reading, Request};
use world::{Judged, Span, World};

/// Judges a transcript by the bytes that were written.
pub fn judge(transcript: &Transcript) -> Judgement {
    let pins = Pins::of(&transcript.facts);
    let mut judgement =
        oracle::judge_with(
            transcript,
            &|transcript, session, frames| match transcript.plan.sessions[session].command == "run" {
                true => run::expected(transcript, session, frames, &pins),
                false => serve(transcript, session, frames, &pins),
            },
        );
    let slow = |finding: &Finding| {
        finding.nature == Nature::Hang || matches!(finding.reason.as_str(), "no_reply" | "late_reply")
    };
    if judgement.findings.iter().any(slow) && may_sleep_long(transcript, &pins) {
        judgement.findings.retain(|finding| !slow(finding));
    }
    judgement
}

/// Allowed replies of a session, derived from the bytes that were written.
pub(super) fn expected(transcript: &Transcript, session: usize, frames: &[Frame]) -> Expected {
    let pins = Pins::of(&transcript.facts);
    match transcript.plan.sessions[session].command == "run" {
        true => run::expected(transcript, session, frames, &pins),
        false => serve(transcript, session, frames, &pins),
    }
}

/// Longest requested sleep in ms that counts as a hang if it takes too long.
const SLEEP_MS_MAX: u64 = 1_000;

/// True if a request may ask a tool to sleep for longer than the harness waits.
fn may_sleep_long(transcript: &Transcript, pins: &Pins) -> bool {
    let Some(aid) = pins.sleep_aid() else { return false };
    let allowed_ms: u64 = transcript.plan.steps.iter().map(|step| step.allow_ms).sum();
    let mut asked_ms: u64 = 0;
    for session in 0..transcript.plan.sessions.len() {
        let is_run = transcript.plan.sessions[session].command == "run";
        let lines = match is_run {
            true => lines::of_run(transcript, session).into_iter().collect(),
            false => lines::of_session(transcript, session),
        };
        let run_aid = transcript.plan.sessions[session].placeholders.get("aid");
        for line in lines {
            let named = match is_run {
                true => run_aid.is_some_and(|run_aid| run_aid == aid),
                // Only the decoder sees an escaped name.
                false => {
                    memchr::memmem::find(&line.bytes, aid.as_bytes()).is_some() || line.bytes.contains(&b'\\')
                }
            };
            if !named {
                continue;
            }
            match request::read(&line, pins, !is_run) {
                Reading::Request(request) if is_run || request.aid == aid => {
                    let ms = request.input.value.as_ref().and_then(|input| input.get("ms"));
                    let plain = request.input.plain && !request.duplicates;
                    let ms = ms.and_then(Json::as_u64).filter(|_| plain);
                    // An invalid sleep input is refused at once. A doubtful input may mean any time.
                    let otherwise = if plain || request.input.value.is_none() { 0 } else { u64::MAX };
                    asked_ms = asked_ms.saturating_add(ms.unwrap_or(otherwise));
                }
                Reading::Anything => asked_ms = u64::MAX,
                _ => {}
            }
        }
    }
    asked_ms > SLEEP_MS_MAX + allowed_ms
}

/// True if a line of these bytes, without the line feed, may stay unanswered at some peer.
pub(crate) fn may_be_silent(line: &[u8]) -> bool {
    let pins =
        Pins::of(&peerproof_engine::data::facts::Facts::new(peerproof_engine::data::clause::Side::Provider));
    matches!(request::read(&RequestLine::alone(line), &pins, true), Reading::Blank { .. })
}

/// Expectation that a step carries for one of its lines. It names the clause that its author chose.
fn hint(step: Option<&Step>, of_step: usize) -> Option<Expect> {
    match &step?.expect {
        Value::Null => None,
        Value::Array(lines) => Expect::deserialize(lines.get(of_step)?).ok(),
        one if of_step == 0 => Expect::deserialize(one).ok(),
        _ => None,
    }
}

fn asked(transcript: &Transcript, line: &RequestLine, sent: usize, judged: Judged) -> LineExpectation {
    let step = transcript.plan.steps.get(line.step);
    LineExpectation {
        step: line.step,
        sent,
        expect: judged.expect,
        canary: step.is_some_and(|step| step.canary),
        clauses: judged.clauses,
        hint: hint(step, line.of_step),
    }
}

/// Time at which each frame was complete, in microseconds.
fn frame_times(transcript: &Transcript, session: usize) -> Vec<u64> {
    let mut times = Vec::new();
    for event in transcript.of(session) {
        if let EventKind::Received { bytes } = &event.kind {
            let frames = memchr::memchr_iter(b'\n', &bytes.0).count();
            times.extend(std::iter::repeat_n(event.at_us, frames));
        }
    }
    times
}

/// Assignment of frames to lines, as long as it is certain.
struct Follow<'a> {
    frames: &'a [Frame],
    /// Index of the next frame; `None` if it is unknown.
    next: Option<usize>,
    /// Index of the first frame that can still answer a line.
    low: usize,
    /// True if blank lines are answered, once the number of frames shows it.
    blanks_answered: Option<bool>,
    /// True if a reply was lost or wrong. The outcome of a line with an unknown reply is then unknown too.
    lost: bool,
}

impl<'a> Follow<'a> {
    fn new(frames: &'a [Frame], readings: &[(Reading, Span)], all_ended: bool) -> Self {
        let blanks = readings.iter().filter(|(reading, _)| matches!(reading, Reading::Blank { .. })).count();
        let doubtful = readings.iter().any(|(reading, _)| matches!(reading, Reading::Blank { sure: false }));
        let others = readings.len() - blanks;
        let blanks_answered = match frames.len() {
            _ if doubtful || !all_ended => None,
            count if count == others + blanks => Some(true),
            count if count == others => Some(false),
            _ => None,
        };
        Self { frames, next: Some(0), low: 0, blanks_answered, lost: false }
    }

    fn value(&self, at: usize) -> Option<&'a Json> {
        self.frames.get(at).and_then(|frame| frame.value.as_ref().ok())
    }

    /// Frame that answers the next line, if it is certain. A frame that arrived between this line and the next can
    /// answer only this line.
    fn take(&mut self, expect: &Expect, is_blank: bool, (sent, next_sent): (usize, usize)) -> Option<usize> {
        let Some(mut at) = self.next else { return self.find(expect) };
        while self.frames.get(at).is_some_and(|frame| frame.place < sent) {
            at += 1;
        }
        self.next = Some(at);
        let own = self.frames[at.min(self.frames.len())..].iter().take_while(|frame| frame.place < next_sent);
        let own = own.count();
        if own > 0 {
            let fits = |at: &usize| self.value(*at).is_some_and(|value| expect.fit(value).is_some());
            let answer = (at..at + own).find(fits).unwrap_or(at);
            self.next = Some(at + own);
            self.low = at + own;
            return Some(answer);
        }
        if is_blank {
            let is_answered = self.blanks_answered.or_else(|| match self.value(at) {
                None => Some(false),
                Some(value) => expect.fit(value).is_none().then_some(false),
            });
            match is_answered {
                Some(true) => {}
                Some(false) => return None,
                None => {
                    self.next = None;
                    return None;
                }
            }
        }
        let fits = self.value(at).is_some_and(|value| expect.fit(value).is_some());
        if !fits {
            // A reply was lost or is wrong, so later ones are no longer certain.
            self.next = None;
            self.lost = true;
            return self.find(expect);
        }
        self.next = Some(at + 1);
        self.low = at + 1;
        Some(at)
    }

    /// Resumes the assignment if only one reply can answer a line.
    fn find(&mut self, expect: &Expect) -> Option<usize> {
        let telling = expect.allowed.iter().all(|allowed| {
            allowed.output.as_ref().is_some_and(|output| output.len() > UNMISTAKABLE_BYTES_MIN)
        });
        if !telling || expect.allowed.is_empty() {
            return None;
        }
        let mut fitting = (self.low..self.frames.len())
            .filter(|at| self.value(*at).is_some_and(|value| expect.fit(value).is_some()));
        let found = fitting.next().filter(|_| fitting.next().is_none())?;
        self.next = Some(found + 1);
        self.low = found + 1;
        Some(found)
    }
}

/// Length in bytes above which an output counts as unique.
const UNMISTAKABLE_BYTES_MIN: usize = 12;

fn serve(transcript: &Transcript, session: usize, frames: &[Frame], pins: &Pins) -> Expected {
    let env = &transcript.plan.sessions[session].env;
    let mut world = World::new(pins, env.get("MACHINA_LEASE_ENFORCE").map(String::as_str));
    let times = frame_times(transcript, session);
    let end_us = transcript.of(session).last().map_or(0, |event| event.at_us);
    let lines = lines::of_session(transcript, session);
    let all_ended = lines.last().is_none_or(|line| line.ended);
    let readings: Vec<(Reading, Span)> = lines
        .iter()
        .map(|line| (request::read(line, pins, true), Span { from_us: line.at_us, to_us: end_us }))
        .collect();
    let mut follow = Follow::new(frames, &readings, all_ended);
    let mut expected = Expected { asked: Vec::with_capacity(lines.len()), findings: Vec::new() };
    let begun = lines::begun(transcript, session);
    let sent = |line: &RequestLine| lines::sent(&begun, line);
    let exit = transcript.exit(session);
    let mut over: Option<Outcome> = None;
    for (index, (line, (reading, span))) in lines.iter().zip(&readings).enumerate() {
        // The next reply in order cannot have arrived before the line was processed.
        let to_us = follow.next.and_then(|at| times.get(at)).map_or(end_us, |at_us| *at_us);
        let span = Span { to_us: to_us.max(span.from_us), ..*span };
        let mut judged = of_line(&world, reading, pins, span);
        let is_blank = matches!(reading, Reading::Blank { .. });
        if !line.ended {
            unfinished(&mut judged, reading, pins);
        }
        drop_impossible(&mut judged.expect, exit);
        let is_exhausted = follow.next == Some(frames.len());
        if let Some(end) = over {
            judged.expect.allowed.push(Allowed::of(end));
        }
        let window = (sent(line), lines.get(index + 1).map_or(usize::MAX, sent));
        let frame = match line.ended && over.is_none() {
            true => follow.take(&judged.expect, is_blank, window),
            false => None,
        };
        if frame.is_some() {
            judged.expect.allowed.retain(|allowed| !is_silent(allowed.outcome));
        } else if is_blank && line.ended && over.is_none() && follow.next.is_some() {
            // The next frame answers another line.
            judged.expect.allowed.retain(|allowed| is_silent(allowed.outcome));
        }
        if over.is_none() && frame.is_none() && is_exhausted {
            // No further reply came, so this line may have ended the session.
            let ends = |outcome: &Outcome| matches!(outcome, Outcome::EndsInOrder | Outcome::Dies);
            over = judged.expect.allowed.iter().map(|allowed| allowed.outcome).find(ends);
        }
        let reply = frame.and_then(|at| follow.value(at));
        let lost = follow.lost || frame.is_some();
        if let Some(finding) = world.settle(&judged, reply, lost, to_us) {
            expected.findings.push(Finding { step: Some(line.step), ..finding });
        }
        if let Reading::Request(request) = reading
            && pins.issue_aid.as_deref() == Some(request.aid.as_str())
        {
            issued(&mut world, transcript, line, request, reply, span);
        } else if !line.filled.is_empty() && judged.is_refusal() {
            world.doubt_leases();
        }
        expected.asked.push(asked(transcript, line, window.0, judged));
    }
    expected
}

fn is_silent(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Silence | Outcome::EndsInOrder | Outcome::Dies)
}

/// Removes outcomes that contradict the actual end of the session, so that no other line counts as its cause.
fn drop_impossible(expect: &mut Expect, exit: Option<Exit>) {
    let possible = |outcome: Outcome| match outcome {
        Outcome::Dies => exit.is_some_and(|exit| exit != Exit::Code(0)),
        Outcome::EndsInOrder => exit == Some(Exit::Code(0)),
        _ => true,
    };
    if expect.allowed.iter().any(|allowed| possible(allowed.outcome)) {
        expect.allowed.retain(|allowed| possible(allowed.outcome));
    }
}

fn of_line(world: &World<'_>, reading: &Reading, pins: &Pins, span: Span) -> Judged {
    match reading {
        Reading::Blank { sure } => world.blank(blank(pins, *sure)),
        Reading::Malformed(clause) => world.refused(clause),
        Reading::TooLong => {
            let mut judged = world.refused("TH-LIMIT-05");
            // It is not certain that the line is answered at all.
            judged.expect = judged.expect.or(Allowed::of(Outcome::Silence)).once("TH-LIMIT-04");
            judged
        }
        Reading::Anything => world.anything("TH-FRAME-01"),
        Reading::Request(request) if is_issue(request, pins) => world.issue(),
        Reading::Request(request) => world.request(request, span),
    }
}

/// Allowed outcomes of a blank line.
fn blank(pins: &Pins, sure: bool) -> Expect {
    let mut expect = Expect::refused("TH-FRAME-07");
    let silence = Allowed::of(Outcome::Silence);
    let end = Allowed::of(Outcome::EndsInOrder);
    match pins.get("blank_line").filter(|_| sure) {
        Some("refuse") => {}
        Some("ignore") => expect.allowed = vec![silence],
        Some("end") => expect.allowed = vec![end],
        _ => expect = expect.or(silence).or(end),
    }
    expect
}

/// Adjusts the outcomes of a last line without line feed: processed or refused if complete, refused or silent if not.
fn unfinished(judged: &mut Judged, reading: &Reading, pins: &Pins) {
    let silence = Allowed::of(Outcome::Silence);
    match reading {
        Reading::Request(_) | Reading::Anything => {
            let clause = "TH-FRAME-08";
            judged.expect.clause = clause.into();
            judged.expect.allowed.push(Allowed::of(Outcome::Refused));
            // The pinned value refers to incomplete lines, but such a peer may treat all of them alike.
            if pins.is("last_line_without_lf", "silent") {
                judged.expect.allowed.push(silence);
            }
        }
        Reading::Blank { .. } => judged.expect.allowed.extend([silence, Allowed::of(Outcome::Refused)]),
        Reading::Malformed(_) | Reading::TooLong => {
            judged.expect.clause = "TH-FRAME-09".into();
            judged.clauses.clear();
            judged.expect.allowed.push(silence);
        }
    }
}

/// Members of the configured lease request, by placeholder.
fn template(transcript: &Transcript) -> Vec<(String, String)> {
    let issue = transcript.facts.features.get("lease").and_then(|lease| lease.get("issue")?.as_object());
    let member = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    issue.into_iter().flatten().filter_map(member).collect()
}

/// True if a request only issues a lease, without a key or a state.
fn is_issue(request: &Request, pins: &Pins) -> bool {
    let plain = request.key.is_none() && request.state.is_none() && request.may_refuse.is_none();
    plain && pins.issue_aid.as_deref() == Some(request.aid.as_str())
}

/// Handles a lease request: records its terms if its token was captured.
fn issued(
    world: &mut World<'_>,
    transcript: &Transcript,
    line: &RequestLine,
    request: &Request,
    reply: Option<&Json>,
    span: Span,
) {
    world.leases_exist();
    let Some(capture) = transcript.plan.steps.get(line.step).and_then(|step| step.capture.as_ref()) else {
        return;
    };
    let lease = || {
        let reply = reply?;
        reply.pointer(&capture.pointer).filter(|_| line.last_of_step)?;
        let template = template(transcript);
        let member = |placeholder: &str| {
            let (name, _) = template.iter().find(|(_, value)| value == placeholder)?;
            request.whole.get(name)
        };
        let ttl_ms = member("{ttl_ms}").and_then(Json::as_u64).filter(|ms| (1_000..=300_000).contains(ms));
        Some(Lease {
            aid: member("{aid}")?.as_str()?.to_owned(),
            tier: member("{tier}")?.as_u64()?,
            ttl_ms,
            from_us: span.from_us,
            to_us: span.to_us,
            spent: Some(false),
        })
    };
    world.issued(&capture.var, lease());
}

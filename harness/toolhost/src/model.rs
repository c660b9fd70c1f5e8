//! The model of a toolhost: what may come back for any bytes, derived from what was really written.
//!
//! Expectations in a plan hold for the plan as it was made. A generated, mutated or shrunk conversation needs a judge
//! that works them out from the bytes alone: is a line strict JSON, has it the shape of a request, is its tool known,
//! is its input what the tool takes, was its key seen before, is its lease good, what is in the slots. Where the
//! contract leaves a choice, or an earlier line leaves doubt, every outcome that it allows is allowed; what came then
//! tells which one it was, so that doubt does not last. Above all the model never blames a correct peer.

use serde::Deserialize as _;
use serde_json::Value;

use super::align::Frame;
use super::expect::{Allowed, Expect, Outcome};
use super::oracle::{self, Asked, Expected};
use peerproof_engine::finding::{Finding, Judgement, Nature};
use peerproof_engine::json::Json;
use peerproof_engine::lines::{self, Line};
use peerproof_engine::plan::Step;
use peerproof_engine::transcript::{Exit, Kind, Transcript};

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

/// Judges a transcript by what was really written.
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

/// What may come in a session, by what was really written.
pub(super) fn expected(transcript: &Transcript, session: usize, frames: &[Frame]) -> Expected {
    let pins = Pins::of(&transcript.facts);
    match transcript.plan.sessions[session].command == "run" {
        true => run::expected(transcript, session, frames, &pins),
        false => serve(transcript, session, frames, &pins),
    }
}

/// Sleeps that are asked for beyond this many milliseconds are nobody's hang.
const SLEEP_MS_MAX: u64 = 1_000;

/// Whether some request may ask a tool to sleep for longer than anybody waits.
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
                // An escaped name is seen by the decoder only.
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
                    // An input that is no sleep is refused at once; a doubtful one may be anything.
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

/// Whether a line of these bytes (without the line feed) may stay unanswered by right, at any peer.
pub fn may_be_silent(line: &[u8]) -> bool {
    let pins = Pins::of(&peerproof_engine::facts::Facts::new(peerproof_engine::clause::Side::Provider));
    matches!(request::read(&Line::alone(line), &pins, true), Reading::Blank { .. })
}

/// The expectation that a step carries for one of its lines: it names the clause by which its author files the line.
fn hint(step: Option<&Step>, of_step: usize) -> Option<Expect> {
    match &step?.expect {
        Value::Null => None,
        Value::Array(lines) => Expect::deserialize(lines.get(of_step)?).ok(),
        one if of_step == 0 => Expect::deserialize(one).ok(),
        _ => None,
    }
}

fn asked(transcript: &Transcript, line: &Line, sent: usize, judged: Judged) -> Asked {
    let step = transcript.plan.steps.get(line.step);
    Asked {
        step: line.step,
        sent,
        expect: judged.expect,
        canary: step.is_some_and(|step| step.canary),
        clauses: judged.clauses,
        hint: hint(step, line.of_step),
    }
}

/// When each frame was complete, microseconds.
fn frame_times(transcript: &Transcript, session: usize) -> Vec<u64> {
    let mut times = Vec::new();
    for event in transcript.of(session) {
        if let Kind::Received { bytes } = &event.kind {
            let frames = memchr::memchr_iter(b'\n', &bytes.0).count();
            times.extend(std::iter::repeat_n(event.at_us, frames));
        }
    }
    times
}

/// Follows which frame answers which line, as long as that is certain.
struct Follow<'a> {
    frames: &'a [Frame],
    /// The frame that comes next; `None` when that is not known.
    next: Option<usize>,
    /// No frame before this one is still to come.
    low: usize,
    /// Whether blank lines are answered, where the number of frames shows it.
    blanks_answered: Option<bool>,
    /// A reply was lost or is wrong: what became of a line whose reply is not known is not known either.
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

    /// The frame that answers the next line, where it is certain. What came after the line was sent and before the one
    /// behind it answers no other line, right or wrong.
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
            // A reply was lost, or it is wrong: later ones are no longer certain.
            self.next = None;
            self.lost = true;
            return self.find(expect);
        }
        self.next = Some(at + 1);
        self.low = at + 1;
        Some(at)
    }

    /// Finds the way back where only one reply can answer a line.
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

/// Outputs longer than this are taken to be told apart.
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
    let sent = |line: &Line| lines::sent(&begun, line);
    let exit = transcript.exit(session);
    let mut over: Option<Outcome> = None;
    for (index, (line, (reading, span))) in lines.iter().zip(&readings).enumerate() {
        // The reply that is next in order came no earlier than the line was looked at.
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
            // The next frame was looked at, and answers another line.
            judged.expect.allowed.retain(|allowed| is_silent(allowed.outcome));
        }
        if over.is_none() && frame.is_none() && is_exhausted {
            // No further reply came at all: what may have ended the session did.
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

/// Takes out the ends of a session that the one it had rules out, so that no other line is taken for its cause.
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
            // That it is answered at all is a matter of care.
            judged.expect = judged.expect.or(Allowed::of(Outcome::Silence)).once("TH-LIMIT-04");
            judged
        }
        Reading::Anything => world.anything("TH-FRAME-01"),
        Reading::Request(request) if is_issue(request, pins) => world.issue(),
        Reading::Request(request) => world.request(request, span),
    }
}

/// What may come for a blank line.
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

/// A last line without line feed: processed or refused where it is complete, refused or silent where it is not.
fn unfinished(judged: &mut Judged, reading: &Reading, pins: &Pins) {
    let silence = Allowed::of(Outcome::Silence);
    match reading {
        Reading::Request(_) | Reading::Anything => {
            let clause = "TH-FRAME-08";
            judged.expect.clause = clause.into();
            judged.expect.allowed.push(Allowed::of(Outcome::Refused));
            // The value speaks of incomplete lines, but a peer that says so may mean all of them.
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

/// The members of the configured request for a lease, by placeholder.
fn template(transcript: &Transcript) -> Vec<(String, String)> {
    let issue = transcript.facts.features.get("lease").and_then(|lease| lease.get("issue")?.as_object());
    let member = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    issue.into_iter().flatten().filter_map(member).collect()
}

/// Whether a request only issues a lease: a key or a state beside that is a matter of its own.
fn is_issue(request: &Request, pins: &Pins) -> bool {
    let plain = request.key.is_none() && request.state.is_none() && request.may_refuse.is_none();
    plain && pins.issue_aid.as_deref() == Some(request.aid.as_str())
}

/// A lease was asked for: remembers what for, where its token was captured.
fn issued(
    world: &mut World<'_>,
    transcript: &Transcript,
    line: &Line,
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

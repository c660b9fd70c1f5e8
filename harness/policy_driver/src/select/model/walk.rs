//! What is expected of each request of a conversation, computed from what was really sent, scripted and recorded.

use super::super::super::request::{FALLBACK_ONLY, POLICY_ONLY};
use super::super::asked::Asked;
use super::super::expect::{Allowed, Expect};
use super::super::selection::Frame;
use super::super::talk::{COMMAND, COOLDOWN, DRIVER, PROFILE, STDOUT_MAX, THRESHOLD, TIMEOUT};
use super::{Bounds, Breaker, Deed, Span, Start, deed};
use peerproof_engine::json::Json;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{ActorStep, Fixture, Plan};
use peerproof_engine::transcript::{Kind, Transcript};

/// Clause of a block that is taken.
const TAKEN: &str = "PD-GRAM-01";
/// Clause of a driver that is started once a request.
const ONCE: &str = "PD-MODE-01";
/// Clause of requests that start nothing.
const NONE: &str = "PD-MODE-02";
/// Clause of other modes.
const OTHERS: &str = "PD-MODE-06";
/// Clause of a selector without a command.
const NO_COMMAND: &str = "PD-MODE-04";
/// Clause of malformed lines.
const MALFORMED: &str = "PD-SEL-05";
/// Clause of drivers that use up their time.
const OUT_OF_TIME: &str = "PD-FAIL-02";
/// Clause of the Selection while the breaker is open.
const AS_FALLBACK: &str = "PD-BRK-09";

/// Replaces what is expected of the requests of a session by what the model says.
pub(in super::super) fn expect(
    lines: &mut [Asked],
    frames: &[Frame],
    session: usize,
    transcript: &Transcript,
) {
    let mut walk = Walk::of(session, transcript);
    for at in 0..lines.len() {
        let answered = frames.get(at);
        let seen = Seen {
            span: Span { from_us: lines[at].at_us, to_us: answered.map_or(u64::MAX, |frame| frame.at_us) },
            starts: lines[at].starts,
            first_start: walk.starts.partition_point(|start| *start < lines[at].from),
        };
        let expect = walk.line(lines[at].request.as_ref(), &seen);
        // One that starts nothing by design shows that the selector lives: that is what it is about.
        if !lines[at].canary || lines[at].expect.allowed != [Allowed::Anything] {
            lines[at].expect = expect;
        }
        let selection = answered.and_then(|frame| frame.value.as_ref().ok());
        let fallback = lines[at].fallback(lines).and_then(|place| frames.get(place)?.value.as_ref().ok());
        let was_taken = selection.is_some_and(|it| lines[at].fit(it, fallback, transcript) == Ok(0));
        walk.settle(was_taken, seen.span);
        // Where no driver is taken nothing is shown of drivers.
        lines[at].canary &= matches!(lines[at].expect.allowed[..], [Allowed::Taken(_)]);
    }
}

/// What was recorded of a request.
struct Seen {
    /// From its sending to its Selection.
    span: Span,
    /// Drivers started for it.
    starts: u32,
    /// Which of all starts the first of them was.
    first_start: usize,
}

/// What a request comes to, as soon as its Selection is read.
enum Pending {
    /// Nothing that counts.
    Nothing,
    /// A driver fails.
    Failure,
    /// A driver is taken where the Selection is the first one that is allowed.
    Either,
}

struct Walk<'a> {
    breaker: Breaker,
    bounds: Bounds,
    has_command: bool,
    /// What the driver does, start by start.
    turns: Vec<&'a [ActorStep]>,
    /// Places of all its starts among the events.
    starts: Vec<usize>,
    pending: Pending,
}

impl<'a> Walk<'a> {
    fn of(session: usize, transcript: &'a Transcript) -> Self {
        let env = transcript.plan.sessions.get(session).map(|session| &session.env);
        let text = |name: &str| env.and_then(|env| env.get(name)).map(String::as_str);
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        let of_profile = match text(PROFILE) {
            Some("dev") => 60_000,
            Some("prod") => 30_000,
            _ => 2_500,
        };
        let starts =
            transcript.events.iter().enumerate().filter(
                |(_, event)| matches!(&event.kind, Kind::ActorStarted { actor, .. } if actor == DRIVER),
            );
        Self {
            breaker: Breaker::new(number(THRESHOLD).unwrap_or(5), number(COOLDOWN).unwrap_or(30_000)),
            bounds: Bounds {
                timeout_ms: number(TIMEOUT).unwrap_or(of_profile),
                stdout_bytes_max: number(STDOUT_MAX).unwrap_or(65_536),
                patches: transcript.facts.claims("patches"),
            },
            has_command: text(COMMAND).is_some(),
            turns: turns(&transcript.plan),
            starts: starts.map(|(at, _)| at).collect(),
            pending: Pending::Nothing,
        }
    }

    /// What is expected of a line.
    fn line(&mut self, request: Option<&Json>, seen: &Seen) -> Expect {
        self.pending = Pending::Nothing;
        let Some(request) = request.filter(|request| request.as_object().is_some()) else {
            return Expect::invalid(MALFORMED).starts(MALFORMED, 0);
        };
        match request.get("control_mode").and_then(Json::as_str) {
            Some(POLICY_ONLY) if !self.has_command => Expect::as_fallback(NO_COMMAND).starts(NO_COMMAND, 0),
            Some(POLICY_ONLY) => self.driven(request, seen),
            Some(FALLBACK_ONLY) => Expect::new(NONE, Allowed::Anything).starts(NONE, 0),
            _ => Expect::as_fallback(OTHERS).or(Allowed::Invalid).starts(OTHERS, 0),
        }
    }

    /// What is expected of a request that starts a driver where the breaker lets it.
    fn driven(&mut self, request: &Json, seen: &Seen) -> Expect {
        match (self.breaker.start(seen.span), seen.starts) {
            (Start::Must, 0) if self.is_out_of_time(seen) => {
                // A driver may have been ended before it could say that it had started.
                self.pending = Pending::Failure;
                return Expect::fallback(OUT_OF_TIME);
            }
            (Start::Must, 0) => {
                return Expect::new(ONCE, Allowed::Anything).starts(self.breaker.clause_of_start(), 1);
            }
            (Start::MustNot, starts) if starts > 0 => {
                return Expect::new(AS_FALLBACK, Allowed::Anything).starts(self.breaker.clause_of_rest(), 0);
            }
            (_, 0) => return Expect::as_fallback(AS_FALLBACK).starts(AS_FALLBACK, 0),
            _ => {}
        }
        let last = self.turns.len().saturating_sub(1);
        let turn = self.turns.get(seen.first_start.min(last)).copied().unwrap_or_default();
        let (deed, output) = deed(turn, request, &self.bounds);
        let taken = Expect::new(TAKEN, Allowed::Taken(Payload::from_bytes(&output)));
        let expect = match deed {
            Deed::Failure(clause) => {
                self.pending = Pending::Failure;
                return Expect::fallback(clause).starts(ONCE, 1);
            }
            Deed::Block if !self.is_out_of_time(seen) => taken,
            Deed::Block | Deed::Either => taken.or(Allowed::Fallback),
        };
        self.pending = Pending::Either;
        expect.starts(ONCE, 1)
    }

    /// Whether a good driver may have used up its time, the machine being busy.
    fn is_out_of_time(&self, seen: &Seen) -> bool {
        let took_us = seen.span.to_us.saturating_sub(seen.span.from_us);
        took_us >= self.bounds.timeout_ms.saturating_mul(1_000)
    }

    /// Goes on with what was seen.
    fn settle(&mut self, was_taken: bool, span: Span) {
        match self.pending {
            Pending::Nothing => {}
            Pending::Either if was_taken => self.breaker.succeeds(),
            Pending::Either | Pending::Failure => self.breaker.fails(span),
        }
    }
}

/// What the scripted driver does at each of its starts.
fn turns(plan: &Plan) -> Vec<&[ActorStep]> {
    let scripted = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::Actor { name, script, later } if name == DRIVER => Some((script, later)),
        _ => None,
    });
    let turns = scripted.map(|(script, later)| std::iter::once(script).chain(later).map(Vec::as_slice));
    turns.into_iter().flatten().collect()
}

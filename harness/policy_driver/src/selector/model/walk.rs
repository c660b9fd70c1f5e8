//! Expectations about the requests of a conversation, derived from the sent bytes, the scripts and the recorded
//! events.

use super::super::super::request::{FALLBACK_ONLY, POLICY_ONLY};
use super::super::expect::{Allowed, Expect};
use super::super::selection::Frame;
use super::super::sent_requests::SentRequest;
use super::super::talk::{COMMAND, COOLDOWN, DRIVER, PROFILE, STDOUT_MAX, THRESHOLD, TIMEOUT};
use super::{Bounds, Breaker, DriverOutcome, Span, Start, deed};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Fixture, Plan};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Clause about a valid block.
const TAKEN: &str = "PD-GRAM-01";
/// Clause: a driver is started once per request.
const ONCE: &str = "PD-MODE-01";
/// Clause about requests that start nothing.
const NONE: &str = "PD-MODE-02";
/// Clause about other modes.
const OTHERS: &str = "PD-MODE-06";
/// Clause about a selector without a command.
const NO_COMMAND: &str = "PD-MODE-04";
/// Clause about malformed lines.
const MALFORMED: &str = "PD-SEL-05";
/// Clause about drivers that exceed their timeout.
const OUT_OF_TIME: &str = "PD-FAIL-02";
/// Clause about the Selection while the breaker is open.
const AS_FALLBACK: &str = "PD-BRK-09";

/// Replaces the expectations of a session by those of the model.
pub(in super::super) fn expect(
    lines: &mut [SentRequest],
    frames: &[Frame],
    session: usize,
    transcript: &Transcript,
) {
    let mut walk = Walk::of(session, transcript);
    for at in 0..lines.len() {
        let answered = frames.get(at);
        let seen = RequestRecord {
            span: Span { from_us: lines[at].at_us, to_us: answered.map_or(u64::MAX, |frame| frame.at_us) },
            starts: lines[at].starts,
            first_start: walk.starts.partition_point(|start| *start < lines[at].from),
        };
        let expect = walk.line(lines[at].request.as_ref(), &seen);
        // A canary that starts nothing only shows that the selector lives, so it keeps its expectation.
        if !lines[at].canary || lines[at].expect.allowed != [Allowed::Anything] {
            lines[at].expect = expect;
        }
        let selection = answered.and_then(|frame| frame.value.as_ref().ok());
        let fallback = lines[at].fallback(lines).and_then(|place| frames.get(place)?.value.as_ref().ok());
        let was_taken = selection.is_some_and(|it| lines[at].fit(it, fallback, transcript) == Ok(0));
        walk.settle(was_taken, seen.span);
        // A request without a taken block proves nothing about drivers.
        lines[at].canary &= matches!(lines[at].expect.allowed[..], [Allowed::Taken(_)]);
    }
}

/// Record of a request.
struct RequestRecord {
    /// Time from the request to its Selection.
    span: Span,
    /// Number of drivers started for it.
    starts: u32,
    /// Index of its first start among all starts.
    first_start: usize,
}

/// Effect of a request on the breaker, known once its Selection is read.
enum Pending {
    /// No effect.
    Nothing,
    /// A failure.
    Failure,
    /// A success if the Selection fits the first allowed outcome, else a failure.
    Either,
}

struct Walk<'a> {
    breaker: Breaker,
    bounds: Bounds,
    has_command: bool,
    /// Scripts of the driver, start by start.
    turns: Vec<&'a [ActorStep]>,
    /// Event indexes of all its starts.
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
        let starts = transcript.events.iter().enumerate().filter(
            |(_, event)| matches!(&event.kind, EventKind::ActorStarted { actor, .. } if actor == DRIVER),
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

    /// Expectation about a line.
    fn line(&mut self, request: Option<&Json>, seen: &RequestRecord) -> Expect {
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

    /// Expectation about a request that starts a driver if the breaker allows it.
    fn driven(&mut self, request: &Json, seen: &RequestRecord) -> Expect {
        match (self.breaker.start(seen.span), seen.starts) {
            (Start::Must, 0) if self.is_out_of_time(seen) => {
                // The driver may have been killed before it could record its start.
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
            DriverOutcome::Failure(clause) => {
                self.pending = Pending::Failure;
                return Expect::fallback(clause).starts(ONCE, 1);
            }
            DriverOutcome::Block if !self.is_out_of_time(seen) => taken,
            DriverOutcome::Block | DriverOutcome::Either => taken.or(Allowed::Fallback),
        };
        self.pending = Pending::Either;
        expect.starts(ONCE, 1)
    }

    /// True if a good driver may have exceeded its timeout because of a busy machine.
    fn is_out_of_time(&self, seen: &RequestRecord) -> bool {
        let took_us = seen.span.to_us.saturating_sub(seen.span.from_us);
        took_us >= self.bounds.timeout_ms.saturating_mul(1_000)
    }

    /// Updates the breaker with the recorded outcome.
    fn settle(&mut self, was_taken: bool, span: Span) {
        match self.pending {
            Pending::Nothing => {}
            Pending::Either if was_taken => self.breaker.succeeds(),
            Pending::Either | Pending::Failure => self.breaker.fails(span),
        }
    }
}

/// Scripts of the driver, one per start.
fn turns(plan: &Plan) -> Vec<&[ActorStep]> {
    let scripted = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::Actor { name, script, later } if name == DRIVER => Some((script, later)),
        _ => None,
    });
    let turns = scripted.map(|(script, later)| std::iter::once(script).chain(later).map(Vec::as_slice));
    turns.into_iter().flatten().collect()
}

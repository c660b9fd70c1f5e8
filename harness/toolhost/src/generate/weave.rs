//! Assembly of lines into the steps of a conversation.

use super::super::expect::Expect;
use super::super::role::role;
use super::super::talk::{Request, Talk};
use super::{GeneratedLine, Pace, model};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::{Payload, Segment, Vars};
use peerproof_engine::data::plan::{Act, Capture, Chunking, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;

/// Largest payload in bytes that may be written byte by byte, at each pace.
const DRIBBLED_BYTES_MAX: usize = 2_048;
const DRIBBLED_BYTES_MAX_FAST: usize = 160;
/// Largest number of pieces of a larger payload at a fast pace.
const PIECES_MAX: u64 = 6;

/// Builder of steps from lines.
pub(super) struct Weaver<'a> {
    facts: &'a Facts,
    plan: Plan,
    nonce: u64,
    burst: Vec<GeneratedLine>,
    bytes: usize,
    /// True if replies are counted, so that every line must be answered.
    strict: bool,
}

impl<'a> Weaver<'a> {
    /// Creates an empty conversation on one session. With `strict`, every line must be answered.
    pub(super) fn new(facts: &'a Facts, session: Session, strict: bool, rng: &mut Rng) -> Self {
        let plan = Plan { sessions: vec![session], by_model: true, ..Plan::default() };
        Self { facts, plan, nonce: rng.below(1 << 40), burst: Vec::new(), bytes: 0, strict }
    }

    /// Finished conversation, which ends in order.
    pub(super) fn plan(mut self) -> Plan {
        self.plan.steps.push(Step::new(Act::Finish));
        self.plan
    }

    /// Number of lines that wait to be sent.
    pub(super) fn waiting(&self) -> u64 {
        self.burst.len() as u64
    }

    /// Bytes sent so far, without canaries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn add(&mut self, made: GeneratedLine, pace: Pace, rng: &mut Rng) {
        let alone = made.issues.is_some();
        if alone {
            self.flush(pace, rng);
        }
        if self.strict && silent_lines(&made) > 0 {
            return;
        }
        self.burst.push(made);
        if alone {
            self.flush(pace, rng);
        }
    }

    /// Sends the waiting lines in one write, or in chunks.
    pub(super) fn flush(&mut self, pace: Pace, rng: &mut Rng) {
        if self.burst.is_empty() {
            return;
        }
        let mut segments: Vec<Segment> = Vec::new();
        let mut await_frames = 0;
        let mut allow_ms = 0;
        let mut capture = None;
        for made in self.burst.drain(..) {
            await_frames += 1 + extra_lines(&made) - silent_lines(&made);
            allow_ms += made.allow_ms;
            if let Some(var) = made.issues {
                let lease = self.facts.features.get("lease");
                let pointer = lease.and_then(|lease| lease.get("token")?.as_str()).unwrap_or("/token_id");
                capture = Some(Capture { pointer: pointer.to_owned(), var, secret: true, until: None });
            }
            segments.extend(made.payload.0);
            segments.push(Segment::Text("\n".to_owned()));
        }
        let payload = Payload(merged(segments));
        let bytes = payload.len(&Vars::new());
        self.bytes += bytes;
        let chunking = match pace {
            Pace::Close => cut_often(bytes, rng),
            Pace::Fast => cut_seldom(bytes, rng),
        };
        let act = Act::Send { payload, chunking, await_frames };
        self.plan.steps.push(Step { capture, allow_ms, ..Step::new(act) });
    }

    /// Adds a plain valid request with a unique answer.
    pub(super) fn canary(&mut self) {
        self.nonce += 1;
        let (request, expect) = match role(self.facts, "echo") {
            Some(echo) => {
                let input = format!("{{\"canary\":{}}}", self.nonce);
                (Request::aid(&echo.aid).input(&input), Expect::output("TH-SERVE-01", input))
            }
            None => Talk::runs(self.facts).good("TH-SERVE-01"),
        };
        let expect = serde_json::to_value(expect.reason(CANARY_FAILED)).unwrap_or_default();
        let act = Act::Send { payload: request.line(), chunking: Chunking::Whole, await_frames: 1 };
        self.plan.steps.push(Step { expect, canary: true, ..Step::new(act) });
    }
}

fn cut_often(bytes: usize, rng: &mut Rng) -> Chunking {
    let small = bytes <= DRIBBLED_BYTES_MAX;
    match rng.below(24) {
        0 if small => Chunking::Dribble,
        1 => Chunking::Every(u32::try_from(rng.range(1..=300)).unwrap_or(7).max(if small { 1 } else { 64 })),
        _ => Chunking::Whole,
    }
}

/// Chunking with few writes: lines byte by byte, bursts in a few pieces.
fn cut_seldom(bytes: usize, rng: &mut Rng) -> Chunking {
    match rng.below(24) {
        0 if bytes <= DRIBBLED_BYTES_MAX_FAST => Chunking::Dribble,
        1..=3 => {
            let bytes = bytes as u64;
            let piece = rng.range(bytes.div_ceil(PIECES_MAX)..=bytes);
            Chunking::Every(u32::try_from(piece).unwrap_or(u32::MAX))
        }
        _ => Chunking::Whole,
    }
}

/// Number of line feeds within a line, each of which adds a line.
fn extra_lines(made: &GeneratedLine) -> u32 {
    u32::try_from(made.payload.lines()).unwrap_or(0)
}

/// Number of lines that may stay unanswered.
pub(super) fn silent_lines(made: &GeneratedLine) -> u32 {
    // Text that starts with a brace and has no line feed is not blank.
    match made.payload.0.first() {
        Some(Segment::Text(text)) if text.starts_with('{') && made.payload.lines() == 0 => return 0,
        Some(Segment::Repeat { .. } | Segment::Var(_)) => return 0,
        _ => {}
    }
    let Some(bytes) = made.small() else { return 0 };
    let silent = bytes.split(|byte| *byte == b'\n').filter(|line| model::may_be_silent(line)).count();
    u32::try_from(silent).unwrap_or(0)
}

pub(super) fn merged(segments: Vec<Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match (out.last_mut(), segment) {
            (Some(Segment::Text(last)), Segment::Text(text)) => last.push_str(&text),
            (_, segment) => out.push(segment),
        }
    }
    out
}

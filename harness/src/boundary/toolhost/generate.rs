//! Makes conversations of serve mode (and now and then a run): valid, nearly valid and hostile, with keys, slots and
//! leases that come again. Nothing here judges: the model works out what may come back.
//!
//! The same facts and the same stream of random numbers give the same plan.

use std::sync::OnceLock;

use super::expect::Expect;
use super::model;
use super::role::role;
use super::talk::{Request, Talk};
use crate::facts::Facts;
use crate::payload::{Payload, Segment};
use crate::plan::{Act, Capture, Chunking, Plan, Session, Step};
use crate::rng::Rng;

mod mutate;
mod requests;
mod seeds;
mod shrink;
mod values;

pub use shrink::variants;

use requests::Maker;

/// Most requests of one conversation.
const REQUESTS_MAX: u64 = 200;

/// One line in the making, without its line feed.
#[derive(Debug, Clone, Default)]
struct Made {
    payload: Payload,
    /// Time that its tool may take, milliseconds.
    allow_ms: u64,
    /// Variable that the token in its reply goes to.
    issues: Option<String>,
}

impl Made {
    fn bytes(bytes: &[u8]) -> Self {
        let payload = match std::str::from_utf8(bytes) {
            Ok(text) => Payload::text(text),
            Err(_) => Payload::from_bytes(bytes),
        };
        Self { payload, ..Self::default() }
    }

    /// The bytes, where no variable stands in between and they are few.
    fn small(&self) -> Option<Vec<u8>> {
        let vars = crate::payload::Vars::new();
        let short = self.payload.len(&vars) <= 64 << 10;
        if short && self.payload.variables().next().is_none() {
            self.payload.expand(&vars).ok()
        } else {
            None
        }
    }
}

/// What a conversation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Everything that is valid, with a few near misses.
    Mixed,
    /// One tool and one sort of bytes after the other.
    Hostile,
    /// Slots written and removed by tools and requests.
    State,
    /// Keys that come again.
    Keys,
    /// Leases issued, used, reused.
    Leases,
    /// Stored requests and conversations, mutated.
    Seeds,
}

/// A conversation for a peer with these facts.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    if !facts.commands.contains("serve") || (facts.commands.contains("run") && rng.chance(1, 40)) {
        return run(facts, rng);
    }
    let theme = theme(facts, rng);
    let count = match rng.below(8) {
        0 => rng.range(41..=REQUESTS_MAX),
        1 => rng.range(1..=5),
        _ => rng.range(5..=40),
    };
    about(facts, theme, count, rng)
}

/// A conversation of serve mode about `theme`, of so many requests and some canaries.
pub fn about(facts: &Facts, theme: Theme, count: u64, rng: &mut Rng) -> Plan {
    let mut session = Session { command: "serve".to_owned(), ..Session::default() };
    if theme == Theme::Leases {
        session.env.insert("MACHINA_LEASE_ENFORCE".to_owned(), "1".to_owned());
    }
    let mut weaver = Weaver {
        facts,
        plan: Plan { sessions: vec![session], by_model: true, ..Plan::default() },
        nonce: rng.below(1 << 40),
        burst: Vec::new(),
        strict: theme == Theme::Leases,
    };
    let mut maker = Maker::new(facts, theme == Theme::Leases);
    let stored = (theme == Theme::Seeds).then(|| seeds::conversation(facts, rng)).flatten();
    let mut stored = stored.into_iter().flatten();
    let hostility = match theme {
        Theme::Hostile => 60,
        Theme::Seeds => 30,
        Theme::Mixed => 12,
        _ => 6,
    };
    // Bursts of one are a conversation, longer ones show what pipelining breaks and cost less time.
    let burst_max = *rng.pick(&[1, 4, 16, 32, 64]);
    weaver.canary();
    for _ in 0..count {
        let mut made = match theme {
            Theme::Seeds => match stored.next() {
                Some(made) => made,
                None => seeds::request(facts, rng).unwrap_or_else(|| maker.any(rng)),
            },
            Theme::State => maker.state(rng),
            Theme::Keys => maker.keyed(rng),
            Theme::Leases => maker.leased(rng),
            Theme::Mixed | Theme::Hostile => maker.any(rng),
        };
        if made.issues.is_none() && made.allow_ms == 0 && rng.chance(hostility, 100) {
            made = mutate::mutated(made, &mut maker, rng);
        }
        weaver.add(made, rng);
        if weaver.burst.len() as u64 >= rng.range(1..=burst_max) {
            weaver.flush(rng);
        }
        if rng.chance(1, 12) {
            weaver.flush(rng);
            weaver.canary();
        }
    }
    weaver.flush(rng);
    weaver.canary();
    if maker.has("crash") && rng.chance(1, 50) {
        // Whatever comes after it may be lost by right.
        let crash = maker.valid("crash", rng);
        weaver.add(crash, rng);
        weaver.flush(rng);
    }
    weaver.plan.steps.push(Step::new(Act::Finish));
    weaver.plan
}

fn theme(facts: &Facts, rng: &mut Rng) -> Theme {
    let mut themes =
        vec![Theme::Mixed, Theme::Mixed, Theme::Hostile, Theme::Hostile, Theme::Hostile, Theme::Seeds];
    if facts.claims("ds_state") {
        themes.extend([Theme::State, Theme::State]);
    }
    if facts.claims("idempotency") {
        themes.extend([Theme::Keys, Theme::Keys]);
    }
    if requests::can_lease(facts) {
        themes.push(Theme::Leases);
    }
    *rng.pick(&themes)
}

/// One process in run mode.
fn run(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut maker = Maker::new(facts, false);
    let (aid, mut made) = maker.for_run(rng);
    if made.allow_ms == 0 && rng.chance(1, 2) {
        made = mutate::mutated(made, &mut maker, rng);
    }
    let mut talk = Talk::runs(facts);
    talk.run(&aid, made.payload, &[], Expect::ok("TH-RUN-04")).allow_ms(made.allow_ms);
    talk.run_canary();
    let mut plan = talk.plan();
    plan.by_model = true;
    for step in plan.steps.iter_mut().filter(|step| !step.canary) {
        step.expect = serde_json::Value::Null;
    }
    plan
}

/// Puts lines together to steps.
struct Weaver<'a> {
    facts: &'a Facts,
    plan: Plan,
    nonce: u64,
    burst: Vec<Made>,
    /// Replies are counted: no line may stay unanswered by right.
    strict: bool,
}

impl Weaver<'_> {
    fn add(&mut self, made: Made, rng: &mut Rng) {
        let alone = made.issues.is_some();
        if alone {
            self.flush(rng);
        }
        if self.strict && silent_lines(&made) > 0 {
            return;
        }
        self.burst.push(made);
        if alone {
            self.flush(rng);
        }
    }

    /// Sends what is waiting in one write, or cut.
    fn flush(&mut self, rng: &mut Rng) {
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
                capture = Some(Capture { pointer: pointer.to_owned(), var, secret: true });
            }
            segments.extend(made.payload.0);
            segments.push(Segment::Text("\n".to_owned()));
        }
        let payload = Payload(merged(segments));
        let small = payload.len(&crate::payload::Vars::new()) <= 2_048;
        let chunking = match rng.below(24) {
            0 if small => Chunking::Dribble,
            1 => Chunking::Every(u32::try_from(rng.range(1..=300)).unwrap_or(7).max(if small {
                1
            } else {
                64
            })),
            _ => Chunking::Whole,
        };
        let act = Act::Send { payload, chunking, await_frames };
        self.plan.steps.push(Step { capture, allow_ms, ..Step::new(act) });
    }

    /// A plain valid request with an answer of its own.
    fn canary(&mut self) {
        self.nonce += 1;
        let (request, expect) = match role(self.facts, "echo") {
            Some(echo) => {
                let input = format!("{{\"canary\":{}}}", self.nonce);
                (Request::aid(&echo.aid).input(&input), Expect::output("TH-SERVE-01", input))
            }
            None => Talk::runs(self.facts).good("TH-SERVE-01"),
        };
        let expect = serde_json::to_value(expect.reason("canary_failed")).unwrap_or_default();
        let act = Act::Send { payload: request.line(), chunking: Chunking::Whole, await_frames: 1 };
        self.plan.steps.push(Step { expect, canary: true, ..Step::new(act) });
    }
}

/// Line feeds within a line: each makes one more.
fn extra_lines(made: &Made) -> u32 {
    u32::try_from(made.payload.lines()).unwrap_or(0)
}

/// Lines that may stay unanswered by right.
fn silent_lines(made: &Made) -> u32 {
    // What starts with a brace and has no line feed is no white space.
    match made.payload.0.first() {
        Some(Segment::Text(text)) if text.starts_with('{') && made.payload.lines() == 0 => return 0,
        Some(Segment::Repeat { .. } | Segment::Var(_)) => return 0,
        _ => {}
    }
    let Some(bytes) = made.small() else { return 0 };
    let silent = bytes.split(|byte| *byte == b'\n').filter(|line| model::may_be_silent(line)).count();
    u32::try_from(silent).unwrap_or(0)
}

fn merged(segments: Vec<Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match (out.last_mut(), segment) {
            (Some(Segment::Text(last)), Segment::Text(text)) => last.push_str(&text),
            (_, segment) => out.push(segment),
        }
    }
    out
}

/// The reference aid of each role beside the peer's own.
fn reference_aids() -> &'static [(String, &'static str)] {
    static AIDS: OnceLock<Vec<(String, &'static str)>> = OnceLock::new();
    AIDS.get_or_init(|| {
        super::role::ROLES.iter().map(|(role, _)| (super::role::reference_aid(role), *role)).collect()
    })
}

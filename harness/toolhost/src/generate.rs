//! Makes conversations of serve mode (and now and then a run): valid, nearly valid and hostile, with keys, slots and
//! leases that come again. Nothing here judges: the model works out what may come back.
//!
//! The same facts and the same stream of random numbers give the same plan.

use std::sync::OnceLock;

use super::expect::Expect;
use super::model;
use super::talk::Talk;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Plan, Session};
use peerproof_engine::rng::Rng;

mod mutate;
mod requests;
mod seeds;
mod shrink;
mod values;
mod weave;

pub use shrink::variants;

use requests::Maker;
use weave::{Weaver, merged, silent_lines};

/// Most requests of one chapter.
const REQUESTS_MAX: u64 = 200;

/// Chapters of a conversation. Where there is one, a crash costs little and what shows is soon shrunk; where there are
/// many, the start of a process costs little.
const CHAPTERS: [usize; 4] = [1, 8, 64, 64];

/// Chapters about leases: each of these is a round trip, and each token a secret to be replaced.
const LEASE_CHAPTERS_MAX: usize = 8;

/// Chapters of the longest conversation with lines that may stay unanswered.
const SILENCE_CHAPTERS_MAX: usize = 8;

/// Past this many bytes a conversation gets no further chapter.
const BYTES_MAX: usize = 4 << 20;

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
        let vars = peerproof_engine::payload::Vars::new();
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

/// How fast a conversation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Small bursts, many cuts, many canaries.
    Close,
    /// As many messages a second as go: large bursts, and what takes time comes rarely.
    Fast,
}

/// A conversation for a peer with these facts.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    if !facts.commands.contains("serve") || (facts.commands.contains("run") && rng.chance(1, 8)) {
        return run(facts, rng);
    }
    let first = theme(facts, rng);
    let chapters = match *rng.pick(&CHAPTERS) {
        many if first == Theme::Leases => many.min(LEASE_CHAPTERS_MAX),
        many => many,
    };
    let pace = if chapters == 1 { Pace::Close } else { Pace::Fast };
    // A line that may stay unanswered costs certainty about all that follows, or ends the session: not in long ones.
    let strict = first == Theme::Leases || chapters > SILENCE_CHAPTERS_MAX;
    let mut book = Book::new(facts, first == Theme::Leases, strict, pace, rng);
    // One line of which nobody knows what it did leaves doubt about slots and keys to the end.
    book.plain = chapters > 1 && rng.chance(1, 3);
    for chapter in 0..chapters {
        let theme = match (chapter, first) {
            (0, _) | (_, Theme::Leases) => first,
            _ => theme(facts, rng),
        };
        book.chapter(theme, requests(rng), rng);
        if book.weaver.bytes() > BYTES_MAX {
            break;
        }
    }
    book.end(rng)
}

/// Number of requests of a chapter.
fn requests(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => rng.range(41..=REQUESTS_MAX),
        1 => rng.range(1..=5),
        _ => rng.range(5..=40),
    }
}

/// A conversation of serve mode about `theme`, of so many requests and some canaries.
pub fn about(facts: &Facts, theme: Theme, count: u64, rng: &mut Rng) -> Plan {
    let enforce = theme == Theme::Leases;
    let mut book = Book::new(facts, enforce, enforce, Pace::Close, rng);
    book.chapter(theme, count, rng);
    book.end(rng)
}

/// A conversation of serve mode in the making.
struct Book<'a> {
    facts: &'a Facts,
    maker: Maker,
    weaver: Weaver<'a>,
    pace: Pace,
    /// Nothing that leaves doubt about what it did.
    plain: bool,
}

impl<'a> Book<'a> {
    /// `enforce`: leases are asked for; `strict`: no line may stay unanswered by right.
    fn new(facts: &'a Facts, enforce: bool, strict: bool, pace: Pace, rng: &mut Rng) -> Self {
        let mut session = Session { command: "serve".to_owned(), ..Session::default() };
        if enforce {
            session.env.insert("MACHINA_LEASE_ENFORCE".to_owned(), "1".to_owned());
        }
        let mut weaver = Weaver::new(facts, session, strict, rng);
        weaver.canary();
        Self { facts, maker: Maker::new(facts, enforce, pace), weaver, pace, plain: false }
    }

    /// Requests about one theme, and a canary at the end.
    fn chapter(&mut self, theme: Theme, count: u64, rng: &mut Rng) {
        let theme = match theme {
            Theme::Hostile | Theme::Seeds if self.plain => Theme::Mixed,
            theme => theme,
        };
        self.maker.forget();
        let stored = (theme == Theme::Seeds).then(|| seeds::conversation(self.facts, rng)).flatten();
        let mut stored = stored.into_iter().flatten();
        let hostility = match theme {
            _ if self.plain => 0,
            Theme::Hostile => 60,
            Theme::Seeds => 30,
            Theme::Mixed => 12,
            _ => 6,
        };
        // Bursts of one are a conversation, longer ones show what pipelining breaks and cost less time.
        let bursts_max: &[u64] = match self.pace {
            Pace::Close => &[1, 4, 16, 32, 64],
            Pace::Fast => &[1, 4, 16, 64, 64, 64, 64, 64],
        };
        let burst_max = *rng.pick(bursts_max);
        let mut burst = if self.pace == Pace::Fast { rng.range(1..=burst_max) } else { 0 };
        for _ in 0..count {
            let made = self.line(theme, hostility, stored.next(), rng);
            self.weaver.add(made, self.pace, rng);
            match self.pace {
                Pace::Close => {
                    if self.weaver.waiting() >= rng.range(1..=burst_max) {
                        self.weaver.flush(self.pace, rng);
                    }
                    if rng.chance(1, 12) {
                        self.weaver.flush(self.pace, rng);
                        self.weaver.canary();
                    }
                }
                Pace::Fast if self.weaver.waiting() >= burst => {
                    self.weaver.flush(self.pace, rng);
                    // After so much a canary costs nothing, and it tells a lost reply from a dead peer at once.
                    if burst >= 8 || rng.chance(1, 8) {
                        self.weaver.canary();
                    }
                    burst = rng.range(1..=burst_max);
                }
                Pace::Fast => {}
            }
        }
        self.weaver.flush(self.pace, rng);
        self.weaver.canary();
    }

    fn line(&mut self, theme: Theme, hostility: u64, stored: Option<Made>, rng: &mut Rng) -> Made {
        let maker = &mut self.maker;
        let made = match theme {
            Theme::Seeds => match stored {
                Some(made) => made,
                None => seeds::request(self.facts, rng).unwrap_or_else(|| maker.any(rng)),
            },
            Theme::State => maker.state(rng),
            Theme::Keys => maker.keyed(rng),
            Theme::Leases => maker.leased(rng),
            Theme::Mixed | Theme::Hostile => maker.any(rng),
        };
        if made.issues.is_none() && made.allow_ms == 0 && rng.chance(hostility, 100) {
            return mutate::mutated(made, maker, rng);
        }
        made
    }

    fn end(mut self, rng: &mut Rng) -> Plan {
        if self.maker.has("crash") && rng.chance(1, 50) {
            // Whatever comes after it may be lost by right.
            let crash = self.maker.valid("crash", rng);
            self.weaver.add(crash, self.pace, rng);
            self.weaver.flush(self.pace, rng);
        }
        self.weaver.plan()
    }
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
    let mut maker = Maker::new(facts, false, Pace::Close);
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

/// The reference aid of each role beside the peer's own.
fn reference_aids() -> &'static [(String, &'static str)] {
    static AIDS: OnceLock<Vec<(String, &'static str)>> = OnceLock::new();
    AIDS.get_or_init(|| {
        super::role::ROLES.iter().map(|(role, _)| (super::role::reference_aid(role), *role)).collect()
    })
}

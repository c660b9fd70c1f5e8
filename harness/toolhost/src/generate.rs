//! Generates conversations of serve mode (sometimes of run mode): valid, nearly valid and hostile, with repeated keys,
//! slots and leases. Nothing here judges: the model determines the allowed replies.
//!
//! Equal facts and random numbers give equal plans.

use std::sync::OnceLock;

use super::expect::Expect;
use super::model;
use super::talk::Talk;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Plan, Session};
use peerproof_engine::data::rng::Rng;

mod mutate;
mod requests;
mod seeds;
mod shrink;
mod values;
mod weave;

pub(crate) use shrink::variants;

use requests::Maker;
use weave::{Weaver, merged, silent_lines};

/// Largest number of requests in a chapter.
const REQUESTS_MAX: u64 = 200;

/// Numbers of chapters in a conversation. With one chapter a crash is cheap and shrinks fast. With many chapters the
/// start of a process is cheap.
const CHAPTERS: [usize; 4] = [1, 8, 64, 64];

/// Largest number of chapters about leases. Each lease costs a round trip, and each token is a secret to be replaced.
const LEASE_CHAPTERS_MAX: usize = 8;

/// Largest number of chapters in a conversation with lines that may stay unanswered.
const SILENCE_CHAPTERS_MAX: usize = 8;

/// Size in bytes after which a conversation gets no further chapter.
const BYTES_MAX: usize = 4 << 20;

/// One line without its line feed, under construction.
#[derive(Debug, Clone, Default)]
struct GeneratedLine {
    payload: Payload,
    /// Additional time for its tool, in ms.
    allow_ms: u64,
    /// Variable for the token in its reply.
    issues: Option<String>,
}

impl GeneratedLine {
    fn bytes(bytes: &[u8]) -> Self {
        let payload = match std::str::from_utf8(bytes) {
            Ok(text) => Payload::text(text),
            Err(_) => Payload::from_bytes(bytes),
        };
        Self { payload, ..Self::default() }
    }

    /// The bytes, if they are few and contain no variable.
    fn small(&self) -> Option<Vec<u8>> {
        let vars = peerproof_engine::data::payload::Vars::new();
        let short = self.payload.len(&vars) <= 64 << 10;
        if short && self.payload.variables().next().is_none() {
            self.payload.expand(&vars).ok()
        } else {
            None
        }
    }
}

/// Topic of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// All kinds of valid requests, with a few near misses.
    Mixed,
    /// One tool and one kind of bytes after the other.
    Hostile,
    /// Slots written and removed by tools and requests.
    State,
    /// Repeated keys.
    Keys,
    /// Leases issued, used, reused.
    Leases,
    /// Stored requests and conversations, mutated.
    Seeds,
}

/// Pace of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Small bursts, many cuts, many canaries.
    Close,
    /// As many messages per second as possible: large bursts, and few slow requests.
    Fast,
}

/// Generates a conversation for a peer with these facts.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    if !facts.commands.contains("serve") || (facts.commands.contains("run") && rng.chance(1, 8)) {
        return run(facts, rng);
    }
    let first = theme(facts, rng);
    let chapters = match *rng.pick(&CHAPTERS) {
        many if first == Theme::Leases => many.min(LEASE_CHAPTERS_MAX),
        many => many,
    };
    let pace = if chapters == 1 { Pace::Close } else { Pace::Fast };
    // A line that may stay unanswered makes all later ones uncertain, or ends the session, so long conversations have
    // none.
    let strict = first == Theme::Leases || chapters > SILENCE_CHAPTERS_MAX;
    let mut book = ServeConversation::new(facts, first == Theme::Leases, strict, pace, rng);
    // One line with an unknown effect leaves doubt about slots and keys to the end.
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

/// Conversation of serve mode about `theme`, with this many requests and some canaries.
pub(crate) fn about(facts: &Facts, theme: Theme, count: u64, rng: &mut Rng) -> Plan {
    let enforce = theme == Theme::Leases;
    let mut book = ServeConversation::new(facts, enforce, enforce, Pace::Close, rng);
    book.chapter(theme, count, rng);
    book.end(rng)
}

/// Conversation of serve mode under construction.
struct ServeConversation<'a> {
    facts: &'a Facts,
    maker: Maker,
    weaver: Weaver<'a>,
    pace: Pace,
    /// True to avoid requests with an uncertain effect.
    plain: bool,
}

impl<'a> ServeConversation<'a> {
    /// Creates an empty conversation. `enforce` requires leases; with `strict` every line must be answered.
    fn new(facts: &'a Facts, enforce: bool, strict: bool, pace: Pace, rng: &mut Rng) -> Self {
        let mut session = Session { command: "serve".to_owned(), ..Session::default() };
        if enforce {
            session.env.insert("MACHINA_LEASE_ENFORCE".to_owned(), "1".to_owned());
        }
        let mut weaver = Weaver::new(facts, session, strict, rng);
        weaver.canary();
        Self { facts, maker: Maker::new(facts, enforce, pace), weaver, pace, plain: false }
    }

    /// Adds requests about one theme, and a canary at the end.
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
        // Bursts of one are a dialogue. Longer ones test pipelining and take less time.
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
                    // After a large burst a canary is cheap, and it tells a lost reply from a dead peer at once.
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

    fn line(
        &mut self,
        theme: Theme,
        hostility: u64,
        stored: Option<GeneratedLine>,
        rng: &mut Rng,
    ) -> GeneratedLine {
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
            // Requests after it may be lost.
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

/// Reference aid of each role, with the role.
fn reference_aids() -> &'static [(String, &'static str)] {
    static AIDS: OnceLock<Vec<(String, &'static str)>> = OnceLock::new();
    AIDS.get_or_init(|| {
        super::role::ROLES.iter().map(|(role, _)| (super::role::reference_aid(role), *role)).collect()
    })
}

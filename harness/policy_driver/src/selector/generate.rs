//! Generates conversations with selectors: random requests, drivers and pauses. The model derives the expectations.

use super::super::generate::request;
use super::super::request::{FALLBACK_ONLY, Request, sids};
use super::expect::{Allowed, Expect};
use super::talk::{COOLDOWN, STDOUT_MAX, THRESHOLD, Talk, prints, says};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking, Plan};
use peerproof_engine::data::rng::Rng;

/// Most requests in one conversation for fuzzing.
const REQUESTS_MAX: u64 = 12;

/// Configured limit of a driver's output, bytes.
const OUTPUT_MAX: u64 = 300;

/// Cooldowns, ms. Pauses are about as long.
const COOLDOWNS_MS: [u64; 4] = [0, 300, 700, 60_000];

/// Extra time to wait for the end of a cooldown, ms.
const MARGIN_MS: u64 = 200;

/// Outputs without a valid block.
const INVALID: [&str; 10] = [
    "",
    " \n",
    "<PICK>",
    "<pick><sid0001><end>",
    "<NOOP><END><NOOP><END>",
    "<PICK><SID0001><INP>[]</INP><END>",
    "<PICK><SID0001><INP>{}</INP><INP64>e30=</INP64><END>",
    "I pick <PICK><SID0001><END>",
    "<PICK><SID12345><END>",
    "\u{feff}<NOOP><END>",
];

/// A conversation of random length with drivers that pick, refuse, fail and lie.
pub(crate) fn conversation(rng: &mut Rng) -> Plan {
    let requests = rng.range(1..=REQUESTS_MAX);
    let cooldown_ms = *rng.pick(&COOLDOWNS_MS);
    about(requests, cooldown_ms, rng)
}

/// A conversation of this many requests with a breaker with this cooldown.
pub(crate) fn about(requests: u64, cooldown_ms: u64, rng: &mut Rng) -> Plan {
    let mut talk = Talk::new();
    let threshold = rng.range(1..=3);
    talk.env(THRESHOLD, &threshold.to_string()).env(COOLDOWN, &cooldown_ms.to_string());
    talk.env(STDOUT_MAX, &OUTPUT_MAX.to_string());
    talk.canary("PD-SEL-01");
    let mut asked: Vec<Request> = vec![Request::plain()];
    // Drivers fail and succeed in series, so that the breaker opens and closes.
    let mut fails = rng.chance(1, 2);
    for _ in 0..requests {
        if rng.chance(1, 3) {
            fails = !fails;
        }
        let next = if rng.chance(1, 3) { rng.pick(&asked).clone() } else { request(rng) };
        asked.push(next.clone());
        match rng.below(10) {
            0 => between(&mut talk, &next, rng),
            1 if cooldown_ms <= 1_000 => {
                let pauses_ms = [cooldown_ms / 2, cooldown_ms, cooldown_ms + MARGIN_MS];
                talk.wait_ms(*rng.pick(&pauses_ms));
            }
            _ => {
                let turn = if fails { failing(&next, rng) } else { valid(&next, rng) };
                // The expectation only makes the talk ask for the fallback first; the model derives the real one.
                talk.play(&next, turn, Expect::fallback("PD-BRK-09"));
            }
        }
    }
    talk.finish();
    Plan { by_model: true, ..talk.plan() }
}

/// Sends lines that start nothing.
fn between(talk: &mut Talk, request: &Request, rng: &mut Rng) {
    let any = Expect::new("PD-MODE-02", Allowed::Anything);
    let line = match rng.below(3) {
        0 => request.clone().mode(FALLBACK_ONLY).line(),
        1 => request.clone().mode("AUTO").line(),
        _ => Payload::text("{\"control_mode\":\"POLICY_ONLY\"\n"),
    };
    talk.send(line, Chunking::Whole, 1, any);
}

/// SID in the middle of a menu, which a fallback is unlikely to pick.
fn inner(request: &Request) -> String {
    let sids = sids(&request.0);
    sids.get(sids.len() / 2).copied().unwrap_or("SID0000").to_owned()
}

fn valid(request: &Request, rng: &mut Rng) -> Vec<ActorStep> {
    let inner = inner(request);
    let block = match rng.below(6) {
        0 => "<ASK_SUP><END>".to_owned(),
        1 => "<NOOP><END>\r\n".to_owned(),
        2 => format!("<PICK><{inner}><INP>{{\"a\":[1,\"</INP>\"],\"query\":null}}</INP><END>"),
        3 => format!("<PICK><{inner}><INP64>eyJ1cmwiOjF9</INP64><END>\n"),
        4 => format!("\n <PICK><{inner}><END>\t\r\n"),
        _ => format!("<PICK><{inner}><END>"),
    };
    match rng.below(8) {
        0 => {
            let room = OUTPUT_MAX.saturating_sub(block.len() as u64);
            prints(Payload::text(block).repeat(" ", room))
        }
        1 => [says(block), vec![ActorStep::Stderr(Payload::text("<NOOP><END>"))]].concat(),
        2 => [vec![ActorStep::Sleep { ms: 50 }], says(block), vec![ActorStep::CloseStdout]].concat(),
        3 => {
            let pieces = block.chars().map(|piece| ActorStep::Stdout(Payload::text(piece)));
            pieces.collect()
        }
        _ => says(block),
    }
}

fn failing(request: &Request, rng: &mut Rng) -> Vec<ActorStep> {
    let block = || says(format!("<PICK><{}><END>", inner(request)));
    match rng.below(7) {
        0 => [block(), vec![ActorStep::Exit(3)]].concat(),
        1 => [block(), vec![ActorStep::Die(*rng.pick(&[9, 11, 15]))]].concat(),
        2 => prints(Payload::text("<NOOP><END>").repeat("\n", OUTPUT_MAX)),
        3 => [block(), vec![ActorStep::Flood { unit: "x".to_owned(), bytes_max: 1 << 20 }]].concat(),
        4 => vec![ActorStep::CloseStdout],
        _ => says(*rng.pick(&INVALID)),
    }
}

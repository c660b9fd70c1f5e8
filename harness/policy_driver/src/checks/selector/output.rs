//! Checks of the size of a driver's output.

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{STDOUT_MAX, Talk, prints};
use super::check;
use peerproof_engine::contract::memory;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

const BOUND: &str = "PD-TIME-07";
const FLOOD: &str = "PD-TIME-08";
const OVER_LONG: &str = "PD-FAIL-05";

const BLOCK: &str = "<PICK><SID0042><END>";

/// Default limit, bytes.
const DEFAULT_BYTES: u64 = 65_536;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![by_default(), configured(), above_default(), multi_byte(), floods(), endless()]
}

/// Position of the white space that pads a block.
#[derive(Clone, Copy)]
enum Side {
    Before,
    Behind,
    Both,
}

/// A block padded with white space to `bytes`.
fn padded(bytes: u64, side: Side) -> Payload {
    let space = bytes.saturating_sub(BLOCK.len() as u64);
    let (before, behind) = match side {
        Side::Before => (space, 0),
        Side::Behind => (0, space),
        Side::Both => (space / 2, space - space / 2),
    };
    Payload::default().repeat(" ", before).then(Payload::text(BLOCK)).repeat("\n", behind)
}

/// Tests one byte less than the limit, the limit, one byte more, and twice as many.
fn around(talk: &mut Talk, bytes_max: u64) {
    talk.canary(BOUND);
    for side in [Side::Before, Side::Behind, Side::Both] {
        for bytes in [bytes_max - 1, bytes_max] {
            let output = padded(bytes, side);
            let expect = Expect::new(BOUND, Allowed::Taken(output.clone()));
            talk.play(&Request::plain(), prints(output), expect);
        }
        for (bytes, clause) in
            [(bytes_max + 1, BOUND), (bytes_max + 1, OVER_LONG), (2 * bytes_max, OVER_LONG)]
        {
            talk.play(&Request::plain(), prints(padded(bytes, side)), Expect::fallback(clause));
        }
    }
    talk.canary(BOUND);
}

fn by_default() -> Check {
    check(
        "output/around-65536-bytes",
        "Without MACHINA_POLICY_STDOUT_MAX up to 65,536 bytes of a block and white space are accepted, and \
         no more.",
        &[BOUND, OVER_LONG],
        |talk, _| {
            around(talk, DEFAULT_BYTES);
        },
    )
}

fn configured() -> Check {
    check(
        "output/around-100-bytes",
        "With MACHINA_POLICY_STDOUT_MAX=100 up to 100 bytes of a block and white space are accepted, and \
         no more.",
        &[BOUND, OVER_LONG],
        |talk, _| {
            talk.env(STDOUT_MAX, "100");
            around(talk, 100);
        },
    )
}

fn above_default() -> Check {
    check(
        "output/around-200000-bytes",
        "With MACHINA_POLICY_STDOUT_MAX=200000 up to 200,000 bytes of a block and white space are \
         accepted, and no more.",
        &[BOUND, OVER_LONG],
        |talk, _| {
            talk.env(STDOUT_MAX, "200000");
            around(talk, 200_000);
        },
    )
}

fn multi_byte() -> Check {
    check(
        "output/multi-byte",
        "The limit counts bytes: a patch of two-byte characters fits exactly, and not with one more space.",
        &[BOUND],
        |talk, _| {
            let frame = "<PICK><SID0042><INP>{\"a\":\"\"}</INP><END>".len() as u64;
            talk.env(STDOUT_MAX, &(frame + 2_000).to_string());
            let block = |last: &str| {
                let head = Payload::text("<PICK><SID0042><INP>{\"a\":\"");
                head.repeat("é", 1_000).then(Payload::text(format!("\"}}</INP><END>{last}")))
            };
            let expect = Expect::new(BOUND, Allowed::Taken(block("")));
            talk.play(&Request::plain(), prints(block("")), expect).counts_as_canary();
            talk.play(&Request::plain(), prints(block(" ")), Expect::fallback(BOUND));
        },
    )
    .feature("patches")
}

fn floods() -> Check {
    check(
        "output/block-in-a-flood",
        "A block at the beginning or at the end of 1,000,000 bytes of white space or other text is not \
         accepted.",
        &[OVER_LONG],
        |talk, _| {
            talk.canary(OVER_LONG);
            for unit in [" ", "x", "<NOOP><END>\n"] {
                let flood = || Payload::default().repeat(unit, 1_000_000 / unit.len() as u64);
                let behind = Payload::text(BLOCK).then(flood());
                let before = flood().then(Payload::text(BLOCK));
                for output in [behind, before] {
                    talk.play(&Request::plain(), prints(output), Expect::fallback(OVER_LONG));
                }
            }
            talk.canary(OVER_LONG);
        },
    )
}

/// Length of an endless flood, bytes, limited to protect the harness's machine.
const ENDLESS_BYTES: u64 = 300_000_000;

fn endless() -> Check {
    check(
        "output/endless-flood",
        "A driver that floods its stdout and never ends is a failure long before its timeout of 20 s, and \
         costs no memory.",
        &[FLOOD, OVER_LONG],
        |talk, _| {
            talk.canary(FLOOD).act(memory::sample(memory::IDLE));
            for unit in [" ", BLOCK] {
                let flood = ActorStep::Flood { unit: unit.to_owned(), bytes_max: ENDLESS_BYTES };
                let turn = vec![flood, ActorStep::Sleep { ms: 60_000 }];
                let expect = Expect::fallback(OVER_LONG).within_ms(FLOOD, 8_000);
                talk.play(&Request::plain(), turn, expect).allow_ms(22_000);
                talk.act(memory::sample("after a flood"));
            }
            talk.canary(FLOOD);
        },
    )
    .exclusive()
}

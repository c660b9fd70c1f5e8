//! Checks of the breaker: when it opens, and for how long. A cooldown begins at some moment between the request
//! whose driver failed and its Selection. If the machine is too slow to know the state, nothing is expected.

use super::super::super::request::{Entry, FALLBACK_ONLY, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{COOLDOWN, THRESHOLD, Talk, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking};

const THRESHOLD_EXACT: &str = "PD-BRK-01";
const THRESHOLD_DEFAULT: &str = "PD-BRK-02";
const OPEN: &str = "PD-BRK-03";
const COOLS_DOWN: &str = "PD-BRK-04";
const COOLDOWN_DEFAULT: &str = "PD-BRK-05";
const FAILS_AGAIN: &str = "PD-BRK-06";
const SUCCEEDS: &str = "PD-BRK-07";
const NO_COOLDOWN: &str = "PD-BRK-08";
const AS_FALLBACK: &str = "PD-BRK-09";

const BLOCK: &str = "<PICK><SID0042><END>";

/// A cooldown longer than any conversation without pauses, ms.
const LONG_MS: u64 = 60_000;

/// Tolerance for the clocks of selector and harness, ms.
const MARGIN_MS: u64 = 300;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        threshold(1),
        threshold(2),
        threshold(7),
        long_row(),
        default_threshold(),
        open(),
        cooldown(),
        from_the_opening(),
        around_its_end(),
        fails_again(),
        succeeds(),
        no_cooldown(),
        default_cooldown(),
        default_cooldown_to_its_end(),
    ]
}

fn set(talk: &mut Talk, threshold: u32, cooldown_ms: u64) {
    talk.env(THRESHOLD, &threshold.to_string()).env(COOLDOWN, &cooldown_ms.to_string());
}

/// Expects that a driver is started, which fails. Returns the step.
fn fails(talk: &mut Talk, clause: &str) -> usize {
    let expect = Expect::fallback(clause).starts(clause, 1);
    talk.play(&Request::plain(), vec![ActorStep::Exit(1)], expect).last_step()
}

/// Expects that a driver is started, and its block taken.
fn taken(talk: &mut Talk, clause: &str) {
    talk.play(&Request::plain(), says(BLOCK), Expect::taken(clause, BLOCK).starts(clause, 1));
}

/// Expects no start: the breaker opened at the failure of step `since`, and its cooldown has not passed.
fn idle(talk: &mut Talk, clause: &str, since: usize, cooldown_ms: u64) {
    let expect = Expect::as_fallback(clause).starts(clause, 0).certain_since(since, cooldown_ms);
    talk.ask(&Request::plain(), expect);
}

fn opens_at(talk: &mut Talk, clause: &str, threshold: u32, cooldown_ms: u64) {
    talk.canary(clause);
    for _ in 1..threshold {
        fails(talk, clause);
    }
    taken(talk, clause);
    let mut last = 0;
    for _ in 0..threshold {
        last = fails(talk, clause);
    }
    idle(talk, clause, last, cooldown_ms);
}

fn threshold(threshold: u32) -> Check {
    let title = format!(
        "With a threshold of {threshold}, one failure fewer leaves the breaker closed, and after \
         {threshold} in a row nothing is started."
    );
    check(&format!("breaker/threshold-{threshold}"), &title, &[THRESHOLD_EXACT], move |talk, _| {
        set(talk, threshold, LONG_MS);
        opens_at(talk, THRESHOLD_EXACT, threshold, LONG_MS);
    })
}

fn long_row() -> Check {
    check(
        "breaker/threshold-300",
        "With a threshold of 300, the 300th driver is still started after 299 failures in a row, and after \
         its failure none is.",
        &[THRESHOLD_EXACT],
        |talk, _| {
            set(talk, 300, LONG_MS);
            talk.canary(THRESHOLD_EXACT);
            for _ in 0..300 {
                fails(talk, THRESHOLD_EXACT);
            }
            let opened = talk.last_step();
            idle(talk, THRESHOLD_EXACT, opened, LONG_MS);
        },
    )
    .waits()
}

fn default_threshold() -> Check {
    check(
        "breaker/default-threshold",
        "Without MACHINA_POLICY_FAIL_THRESHOLD four failures leave the breaker closed, and after five in a \
         row nothing is started.",
        &[THRESHOLD_DEFAULT],
        |talk, _| {
            talk.unset(THRESHOLD).env(COOLDOWN, &LONG_MS.to_string());
            opens_at(talk, THRESHOLD_DEFAULT, 5, LONG_MS);
        },
    )
}

fn open() -> Check {
    check(
        "breaker/open",
        "While the breaker is open every request is answered as with FALLBACK_ONLY, whatever its content, \
         and nothing is started.",
        &[OPEN, AS_FALLBACK],
        |talk, _| {
            set(talk, 1, LONG_MS);
            talk.canary(OPEN);
            let opened = fails(talk, OPEN);
            let menus: [&[u32]; 4] = [&[3, 7, 42], &[9], &[], &[42, 7]];
            for menu in menus {
                let entries: Vec<Entry> = menu.iter().map(|number| Entry::plain(*number)).collect();
                for inputs in ["{}", r#"{"policy":"stop"}"#] {
                    let request = Request::of(&entries).inputs(inputs);
                    let expect = Expect::as_fallback(AS_FALLBACK).starts(OPEN, 0);
                    talk.ask(&request, expect.certain_since(opened, LONG_MS));
                }
            }
            let expect = Expect::new(OPEN, Allowed::Anything).starts(OPEN, 0);
            talk.send(Request::plain().mode(FALLBACK_ONLY).line(), Chunking::Whole, 1, expect);
            let expect = Expect::new(OPEN, Allowed::Invalid).starts(OPEN, 0);
            talk.send(Payload::text("[]\n"), Chunking::Whole, 1, expect);
            idle(talk, OPEN, opened, LONG_MS);
        },
    )
}

fn cooldown() -> Check {
    check(
        "breaker/cooldown",
        "After a cooldown of 2 s the next driver is started, even if requests came during the cooldown.",
        &[COOLS_DOWN],
        |talk, _| {
            set(talk, 2, 2_000);
            talk.canary(COOLS_DOWN);
            fails(talk, COOLS_DOWN);
            let opened = fails(talk, COOLS_DOWN);
            idle(talk, COOLS_DOWN, opened, 2_000);
            talk.wait_ms(1_200);
            idle(talk, COOLS_DOWN, opened, 2_000);
            // A sliding cooldown would have 1,100 ms left.
            talk.wait_ms(800 + MARGIN_MS);
            taken(talk, COOLS_DOWN);
        },
    )
    .waits()
}

fn from_the_opening() -> Check {
    check(
        "breaker/cooldown-from-the-last-failure",
        "The cooldown counts from the failure that opened the breaker, not from a failure a second before \
         it.",
        &[COOLS_DOWN],
        |talk, _| {
            set(talk, 2, 2_000);
            talk.canary(COOLS_DOWN);
            fails(talk, COOLS_DOWN);
            talk.wait_ms(1_200);
            let opened = fails(talk, COOLS_DOWN);
            talk.wait_ms(1_100);
            idle(talk, COOLS_DOWN, opened, 2_000);
            talk.wait_ms(900 + MARGIN_MS);
            taken(talk, COOLS_DOWN);
        },
    )
    .waits()
}

fn around_its_end() -> Check {
    check(
        "breaker/just-before-the-end-and-just-after",
        "With a cooldown of 4 s nothing is started after 3.5 s, and a driver is started just after its \
         end, also the second time.",
        &[COOLS_DOWN, FAILS_AGAIN],
        |talk, _| {
            set(talk, 1, 4_000);
            talk.canary(COOLS_DOWN);
            let mut opened = fails(talk, COOLS_DOWN);
            for clause in [COOLS_DOWN, FAILS_AGAIN] {
                talk.wait_ms(3_500);
                idle(talk, clause, opened, 4_000);
                talk.wait_ms(500 + MARGIN_MS);
                opened = fails(talk, clause);
            }
        },
    )
    .waits()
}

fn fails_again() -> Check {
    check(
        "breaker/attempt-that-fails",
        "After the cooldown one driver is started; if it fails, nothing is started for a whole cooldown, \
         and then one driver.",
        &[FAILS_AGAIN],
        |talk, _| {
            set(talk, 3, 1_500);
            talk.canary(FAILS_AGAIN);
            for _ in 0..3 {
                fails(talk, FAILS_AGAIN);
            }
            for _ in 0..2 {
                talk.wait_ms(1_500 + MARGIN_MS);
                let reopened = fails(talk, FAILS_AGAIN);
                idle(talk, FAILS_AGAIN, reopened, 1_500);
                talk.wait_ms(800);
                idle(talk, FAILS_AGAIN, reopened, 1_500);
            }
            talk.wait_ms(700 + MARGIN_MS);
            taken(talk, FAILS_AGAIN);
        },
    )
    .waits()
}

fn succeeds() -> Check {
    check(
        "breaker/attempt-that-succeeds",
        "After the cooldown a successful driver closes the breaker: failures count from 0 again.",
        &[SUCCEEDS],
        |talk, _| {
            set(talk, 3, 1_500);
            talk.canary(SUCCEEDS);
            for _ in 0..3 {
                fails(talk, SUCCEEDS);
            }
            talk.wait_ms(1_500 + MARGIN_MS);
            taken(talk, SUCCEEDS);
            fails(talk, SUCCEEDS);
            fails(talk, SUCCEEDS);
            taken(talk, SUCCEEDS);
            fails(talk, SUCCEEDS);
            fails(talk, SUCCEEDS);
            let opened = fails(talk, SUCCEEDS);
            idle(talk, SUCCEEDS, opened, 1_500);
        },
    )
    .waits()
}

fn no_cooldown() -> Check {
    check(
        "breaker/no-cooldown",
        "With a cooldown of 0 a driver is started for every request, however many failed.",
        &[NO_COOLDOWN],
        |talk, _| {
            set(talk, 1, 0);
            talk.canary(NO_COOLDOWN);
            for _ in 0..4 {
                fails(talk, NO_COOLDOWN);
            }
            taken(talk, NO_COOLDOWN);
            fails(talk, NO_COOLDOWN);
            taken(talk, NO_COOLDOWN);
        },
    )
}

fn default_cooldown() -> Check {
    check(
        "breaker/default-cooldown",
        "Without MACHINA_POLICY_COOLDOWN_MS nothing is started 1 s after the breaker opened.",
        &[COOLDOWN_DEFAULT],
        |talk, _| {
            talk.env(THRESHOLD, "1").unset(COOLDOWN);
            talk.canary(COOLDOWN_DEFAULT);
            let opened = fails(talk, COOLDOWN_DEFAULT);
            talk.wait_ms(1_000);
            idle(talk, COOLDOWN_DEFAULT, opened, 30_000);
        },
    )
    .waits()
}

fn default_cooldown_to_its_end() -> Check {
    check(
        "breaker/default-cooldown-30-s",
        "Without MACHINA_POLICY_COOLDOWN_MS nothing is started 28 s after the breaker opened, and a driver \
         is started after 30 s.",
        &[COOLDOWN_DEFAULT],
        |talk, _| {
            talk.env(THRESHOLD, "1").unset(COOLDOWN);
            talk.canary(COOLDOWN_DEFAULT);
            let opened = fails(talk, COOLDOWN_DEFAULT);
            talk.wait_ms(28_000);
            idle(talk, COOLDOWN_DEFAULT, opened, 30_000);
            talk.wait_ms(2_000 + MARGIN_MS);
            taken(talk, COOLDOWN_DEFAULT);
        },
    )
    .slow()
}

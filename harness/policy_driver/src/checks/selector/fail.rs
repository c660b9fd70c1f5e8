//! Checks of failures and of the failure count. The breaker opens at the second failure in a row and then starts
//! nothing, which shows the count.

use super::super::super::request::{FALLBACK_ONLY, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{
    ALLOWED_EXE, COMMAND, COOLDOWN, STDOUT_MAX, THRESHOLD, TIMEOUT, Talk, prints, says,
};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking};

const LAUNCH: &str = "PD-FAIL-01";
const TIMEOUTS: &str = "PD-FAIL-02";
const STATUS: &str = "PD-FAIL-03";
const EMPTY: &str = "PD-FAIL-04";
const OVER_LONG: &str = "PD-FAIL-05";
const NO_BLOCK: &str = "PD-FAIL-06";
const RESETS: &str = "PD-FAIL-07";
const NEITHER: &str = "PD-FAIL-08";
const MALFORMED: &str = "PD-SEL-05";
const SAME_AS_FALLBACK: &str = "PD-SELN-05";

const BLOCK: &str = "<PICK><SID0042><END>";

/// A cooldown longer than any conversation here, ms.
const COOLDOWN_MS: u64 = 60_000;

/// Timeout that some drivers exceed on purpose, ms.
const SHORT_MS: u64 = 1_500;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        counted("exit-status", "A driver that prints a block and ends with status 3", STATUS, || {
            [says(BLOCK), vec![ActorStep::Exit(3)]].concat()
        }),
        // The fallback may also be NOOP; then only the count shows the difference.
        counted(
            "exit-status-of-a-shell",
            "A driver that prints NOOP and ends with status 255",
            STATUS,
            || [says("<NOOP><END>"), vec![ActorStep::Exit(255)]].concat(),
        ),
        every_status(),
        counted("sigkill", "A driver that prints a block and dies of SIGKILL", STATUS, || {
            [says(BLOCK), vec![ActorStep::Die(9)]].concat()
        }),
        counted("sigsegv", "A driver that prints a block and dies of SIGSEGV", STATUS, || {
            [says(BLOCK), vec![ActorStep::Die(11)]].concat()
        }),
        counted("sigterm", "A driver that prints a block and dies of SIGTERM", STATUS, || {
            [says(BLOCK), vec![ActorStep::Die(15)]].concat()
        }),
        counted("empty-output", "A driver that prints nothing and ends with 0", EMPTY, Vec::new),
        counted("white-space", "A driver that prints only white space", EMPTY, || says(" \t\r\n\n ")),
        counted("no-block", "A driver that prints no block", NO_BLOCK, || says("I would pick SID0042.")),
        counted("noop-in-lower-case", "A driver that prints NOOP in lower case", NO_BLOCK, || {
            says("<noop><END>")
        }),
        counted("two-blocks", "A driver that prints two blocks", NO_BLOCK, || says([BLOCK, BLOCK].concat())),
        counted("unknown-sid", "A driver that picks a SID that the menu does not have", NO_BLOCK, || {
            says("<PICK><SID9999><END>")
        }),
        over_long(),
        times_out("timeout", "A driver that prints a block and keeps running", || {
            [says(BLOCK), vec![ActorStep::Sleep { ms: 60_000 }]].concat()
        }),
        times_out(
            "closed-stdout",
            "A driver that prints a block, closes its stdout and keeps running",
            || [says(BLOCK), vec![ActorStep::CloseStdout, ActorStep::Sleep { ms: 60_000 }]].concat(),
        ),
        missing_script(),
        missing_program(),
        never_there(),
        alike(),
        mixed(),
        resets(),
        patch_resets(),
        neither(),
    ]
}

/// Makes the breaker open at the second failure in a row and stay open.
fn sensitive(talk: &mut Talk) {
    talk.env(THRESHOLD, "2").env(COOLDOWN, &COOLDOWN_MS.to_string());
}

fn failing() -> Vec<ActorStep> {
    vec![ActorStep::Exit(1)]
}

/// Expects that a driver is started and its block taken: the breaker is closed, and the count is 0 afterwards.
fn taken(talk: &mut Talk, clause: &str) {
    talk.play(&Request::plain(), says(BLOCK), Expect::taken(clause, BLOCK).starts(clause, 1));
}

/// Expects that a driver is started and fails.
fn fails(talk: &mut Talk, turn: Vec<ActorStep>, clause: &str) {
    talk.play(&Request::plain(), turn, Expect::fallback(clause).starts(clause, 1));
}

/// Expects an open breaker: the failure before opened it.
fn open(talk: &mut Talk, clause: &str) {
    let opened = talk.last_step();
    let expect = Expect::fallback(clause).starts(clause, 0).certain_since(opened, COOLDOWN_MS);
    talk.ask(&Request::plain(), expect);
}

/// A check that `turn` counts as exactly one failure. After one of them the breaker is still closed. After two of
/// them, or one and another failure, it is open.
fn counted(name: &str, what: &str, clause: &'static str, turn: fn() -> Vec<ActorStep>) -> Check {
    let title = format!("{what} counts as one failure.");
    check(&format!("fail/{name}"), &title, &[clause], move |talk, _| {
        sensitive(talk);
        talk.canary(clause);
        fails(talk, turn(), clause);
        taken(talk, clause);
        fails(talk, turn(), clause);
        fails(talk, turn(), clause);
        open(talk, clause);
        talk.again();
        fails(talk, failing(), clause);
        fails(talk, turn(), clause);
        open(talk, clause);
    })
}

/// A shell reports a signal by a status above 128.
fn every_status() -> Check {
    check(
        "fail/every-exit-status",
        "Each exit status from 1 to 255 and each signal is a failure, whatever the driver printed.",
        &[STATUS],
        |talk, _| {
            talk.env(THRESHOLD, "1000");
            talk.canary(STATUS);
            let patch = "<PICK><SID0042><INP>{\"a\":1}</INP><END>";
            for (block, ends) in [
                (BLOCK, [1, 2, 64, 126, 127, 128, 129, 130, 137, 139, 143, 192, 200, 254, 255].as_slice()),
                ("<NOOP><END>", &[1, 128, 143, 255]),
                ("<ASK_SUP><END>", &[2, 137, 254]),
                (patch, &[1, 139, 255]),
            ] {
                for status in ends {
                    fails(talk, [says(block), vec![ActorStep::Exit(*status)]].concat(), STATUS);
                }
                for signal in [1, 9] {
                    fails(talk, [says(block), vec![ActorStep::Die(signal)]].concat(), STATUS);
                }
            }
            taken(talk, STATUS);
        },
    )
}

fn over_long() -> Check {
    check(
        "fail/over-long",
        "A driver that prints a block and exceeds the output limit counts as one failure.",
        &[OVER_LONG],
        |talk, _| {
            sensitive(talk);
            talk.env(STDOUT_MAX, "1000");
            let turn = || prints(Payload::text(BLOCK).repeat("\n", 1_000));
            talk.canary(OVER_LONG);
            fails(talk, turn(), OVER_LONG);
            taken(talk, OVER_LONG);
            fails(talk, turn(), OVER_LONG);
            fails(talk, turn(), OVER_LONG);
            open(talk, OVER_LONG);
        },
    )
}

/// A check that `turn` exceeds its timeout and counts as exactly one failure. A busy machine may also delay good
/// drivers.
fn times_out(name: &str, what: &str, turn: fn() -> Vec<ActorStep>) -> Check {
    let title = format!("{what} counts as one failure after its timeout.");
    check(&format!("fail/{name}"), &title, &[TIMEOUTS], move |talk, _| {
        sensitive(talk);
        talk.env(TIMEOUT, &SHORT_MS.to_string());
        let hangs = |talk: &mut Talk| {
            talk.play(&Request::plain(), turn(), Expect::fallback(TIMEOUTS)).allow_ms(SHORT_MS);
        };
        let taken = || Expect::taken(TIMEOUTS, BLOCK).certain_for_ms(SHORT_MS);
        talk.play(&Request::plain(), says(BLOCK), taken()).allow_ms(SHORT_MS).counts_as_canary();
        hangs(talk);
        talk.play(&Request::plain(), says(BLOCK), taken()).allow_ms(SHORT_MS);
        hangs(talk);
        hangs(talk);
        open(talk, TIMEOUTS);
    })
    .waits()
}

fn missing_script() -> Check {
    check(
        "fail/missing-script",
        "An interpreter whose script does not exist ends with a non-zero status, which counts as one \
         failure.",
        &[STATUS],
        |talk, _| {
            sensitive(talk);
            hidden_at_times(talk, STATUS);
        },
    )
}

fn missing_program() -> Check {
    check(
        "fail/missing-program",
        "A listed program that is no longer in PATH is a launch failure and counts as one failure.",
        &[LAUNCH],
        |talk, _| {
            sensitive(talk);
            as_program(talk, "driver.sh");
            hidden_at_times(talk, LAUNCH);
        },
    )
}

/// Starts the scripted driver by its own name, found through PATH.
fn as_program(talk: &mut Talk, name: &str) {
    talk.env(COMMAND, name).env(ALLOWED_EXE, name).env("PATH", "{{folder}}/policies:{{PATH}}");
}

/// As [`counted`], with a driver that is missing at times.
fn hidden_at_times(talk: &mut Talk, clause: &str) {
    let absent = |talk: &mut Talk| {
        let expect = Expect::fallback(clause).starts(clause, 0);
        talk.hide_driver(true).ask(&Request::plain(), expect).hide_driver(false);
    };
    talk.canary(clause);
    absent(talk);
    taken(talk, clause);
    absent(talk);
    absent(talk);
    let expect = Expect::fallback(clause).starts(clause, 0).certain_for_ms(COOLDOWN_MS / 2);
    talk.ask(&Request::plain(), expect);
}

fn never_there() -> Check {
    check(
        "fail/program-that-never-was",
        "A listed program that does not exist is answered by the fallback each time, with the breaker closed and open.",
        &[LAUNCH],
        |talk, _| {
            sensitive(talk);
            as_program(talk, "peerproof-no-such-program");
            for _ in 0..4 {
                talk.ask(&Request::plain(), Expect::fallback(LAUNCH).starts(LAUNCH, 0));
            }
            // Without a driver, this counts as the canary.
            talk.counts_as_canary();
        },
    )
}

fn alike() -> Check {
    check(
        "fail/answered-alike",
        "The Selection is that of FALLBACK_ONLY if a driver prints nothing or no block, fails with a \
         status, takes too long, floods or does not exist.",
        &[SAME_AS_FALLBACK],
        |talk, _| {
            as_program(talk, "driver.sh");
            talk.env(TIMEOUT, &SHORT_MS.to_string()).env(STDOUT_MAX, "1000");
            let expect = Expect::taken(SAME_AS_FALLBACK, BLOCK).certain_for_ms(SHORT_MS);
            talk.play(&Request::plain(), says(BLOCK), expect).allow_ms(SHORT_MS).counts_as_canary();
            for turn in [
                Vec::new(),
                says("nothing"),
                says("<PICK><SID9999><END>"),
                failing(),
                vec![ActorStep::Die(9)],
                prints(Payload::text(BLOCK).repeat("\n", 1_000)),
                [says(BLOCK), vec![ActorStep::Sleep { ms: 60_000 }]].concat(),
            ] {
                let expect = Expect::fallback(SAME_AS_FALLBACK);
                talk.play(&Request::plain(), turn, expect).allow_ms(SHORT_MS);
            }
            talk.hide_driver(true).ask(&Request::plain(), Expect::fallback(SAME_AS_FALLBACK));
        },
    )
    .waits()
}

fn mixed() -> Check {
    check(
        "fail/of-several-kinds",
        "Failures of different kinds count together: with a threshold of three, the third one in a row \
         opens the breaker.",
        &[STATUS, EMPTY, NO_BLOCK],
        |talk, _| {
            sensitive(talk);
            talk.env(THRESHOLD, "3");
            talk.canary(STATUS);
            for turns in [
                [failing(), Vec::new(), says("no")],
                [says("<PICK><SID9999><END>"), vec![ActorStep::Die(9)], says("\n")],
            ] {
                for (turn, clause) in turns.into_iter().zip([STATUS, EMPTY, NO_BLOCK]) {
                    fails(talk, turn, clause);
                }
                open(talk, STATUS);
                talk.again();
            }
            taken(talk, STATUS);
        },
    )
}

/// Expects that each of these blocks resets the count between two failures.
fn closed_by(talk: &mut Talk, blocks: &[&str]) {
    talk.canary(RESETS);
    for block in blocks {
        fails(talk, failing(), RESETS);
        let expect = Expect::taken(RESETS, *block).starts(RESETS, 1);
        talk.play(&Request::plain(), says(*block), expect);
    }
    fails(talk, failing(), RESETS);
    fails(talk, failing(), RESETS);
    open(talk, RESETS);
}

fn resets() -> Check {
    check(
        "fail/reset-by-any-block",
        "PICK, ASK_SUP and NOOP between failures each set the count to 0.",
        &[RESETS],
        |talk, _| {
            sensitive(talk);
            closed_by(talk, &[BLOCK, "<ASK_SUP><END>", "<NOOP><END>", " <NOOP><END>\n", "<ASK_SUP><END>\n"]);
        },
    )
}

fn patch_resets() -> Check {
    check(
        "fail/reset-by-a-patch",
        "Picks with either form of patch between failures each set the count to 0.",
        &[RESETS],
        |talk, _| {
            sensitive(talk);
            let blocks =
                ["<PICK><SID0042><INP>{\"a\":1}</INP><END>", "<PICK><SID0042><INP64>e30=</INP64><END>"];
            closed_by(talk, &blocks);
        },
    )
    .feature("patches")
}

fn neither() -> Check {
    check(
        "fail/uncounted",
        "FALLBACK_ONLY requests and malformed lines between failures neither increase nor reset the count.",
        &[NEITHER, MALFORMED],
        |talk, _| {
            let between = |talk: &mut Talk| {
                let wrong = |name: &str| Request::plain().with(name, Json::from(7)).line();
                for malformed in [
                    Payload::text("{\"control_mode\":\n"),
                    Payload::text("[]\n"),
                    Payload::text("x\n"),
                    Payload::from_bytes(b"{\"goal_digest\":\"\xFF\"}\n"),
                    wrong("menu"),
                    wrong("inputs"),
                    wrong("goal_digest"),
                ] {
                    let expect = Expect::new(NEITHER, Allowed::Anything).starts(NEITHER, 0);
                    talk.send(Request::plain().mode(FALLBACK_ONLY).line(), Chunking::Whole, 1, expect);
                    let expect = Expect::invalid(MALFORMED).starts(NEITHER, 0);
                    talk.send(malformed, Chunking::Whole, 1, expect);
                }
            };
            sensitive(talk);
            talk.canary(NEITHER);
            fails(talk, failing(), NEITHER);
            between(talk);
            taken(talk, NEITHER);
            fails(talk, failing(), NEITHER);
            between(talk);
            fails(talk, failing(), NEITHER);
            open(talk, NEITHER);
            between(talk);
            let expect = Expect::fallback(NEITHER).starts(NEITHER, 0).certain_for_ms(COOLDOWN_MS / 2);
            talk.ask(&Request::plain(), expect);
        },
    )
}

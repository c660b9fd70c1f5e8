//! Checks of variables whose values are not valid numbers.
//!
//! Of the five resources three are tried. The whole address space is too much for a user's machine, and the system
//! does not limit the processes of root.

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{COOLDOWN, STDOUT_MAX, THRESHOLD, TIMEOUT, Talk, prints, says};
use super::check;
use super::resources::{CPU_VARIABLE, FILE_VARIABLE, MB, OPEN_FILES_VARIABLE, USE_MS, limited_turn, uses};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Resource};

const NO_NUMBER: &str = "PD-TIME-09";
const UNLIMITED: &str = "PD-TIME-11";

const BLOCK: &str = "<PICK><SID0042><END>";

/// Invalid numbers of milliseconds, bytes or failures. The last but one exceeds 64 bits.
const TEXTS: [&str; 5] = ["-1", "1.5", "ten", "99999999999999999999999", ""];

/// Default timeout and default cooldown, ms (`policy` §1, Circuit breaker).
const TIMEOUT_MS: u64 = 2_500;
const COOLDOWN_MS: u64 = 30_000;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let mut all = vec![
        stdout_max(),
        threshold(),
        cooldown(),
        beyond_32_bits(),
        processor_time(),
        file_size(),
        open_files(),
    ];
    // The checks of the timeout take their time, so each value has its own.
    for (name, text) in ["negative", "fraction", "letters", "too-large", "empty"].into_iter().zip(TEXTS) {
        all.push(timeout(name, text));
    }
    all
}

/// A check that proves nothing if the selector refuses to start because of the variable. The first canary has shown
/// that the selector works otherwise.
fn refusable(name: &str, title: &str, make: impl Fn(&mut Talk) + Send + Sync + 'static) -> Check {
    check(&format!("numbers/{name}"), title, &[NO_NUMBER, UNLIMITED], move |talk, _| make(talk)).vouched()
}

/// Expects the default or silence. An empty variable may count as unset, so it shows no choice.
fn or_refused(text: &str, expect: Expect) -> Expect {
    let expect = expect.or(Allowed::Nothing);
    if text.is_empty() { expect } else { expect.choice("invalid_variables", &["default", "refuse"]) }
}

fn taken(text: &str) -> Expect {
    or_refused(text, Expect::taken(NO_NUMBER, BLOCK))
}

fn fallback(text: &str) -> Expect {
    or_refused(text, Expect::fallback(UNLIMITED))
}

fn failing() -> Vec<ActorStep> {
    vec![ActorStep::Exit(1)]
}

fn timeout(name: &str, text: &'static str) -> Check {
    let title = format!(
        "With {text:?} as MACHINA_POLICY_TIMEOUT_MS a quick driver succeeds and one that needs 3.2 s times \
         out, or the selector does not start."
    );
    refusable(&format!("timeout-{name}"), &title, move |talk| {
        talk.env(TIMEOUT, text);
        let expect = taken(text).certain_for_ms(TIMEOUT_MS);
        talk.play(&Request::plain(), says(BLOCK), expect).allow_ms(TIMEOUT_MS);
        let turn = [vec![ActorStep::Sleep { ms: 3_200 }], says(BLOCK)].concat();
        talk.play(&Request::plain(), turn, fallback(text)).allow_ms(3_200);
    })
    .waits()
}

fn stdout_max() -> Check {
    refusable(
        "stdout-max",
        "With an invalid MACHINA_POLICY_STDOUT_MAX 65,536 bytes are accepted and one more is not, or the \
         selector does not start.",
        |talk| {
            for (index, text) in TEXTS.into_iter().enumerate() {
                if index > 0 {
                    talk.again();
                }
                talk.env(STDOUT_MAX, text);
                let output = |bytes: u64| Payload::text(BLOCK).repeat(" ", bytes - BLOCK.len() as u64);
                talk.play(&Request::plain(), prints(output(65_536)), taken(text));
                talk.play(&Request::plain(), prints(output(65_537)), fallback(text));
            }
        },
    )
}

fn threshold() -> Check {
    refusable(
        "fail-threshold",
        "With an invalid MACHINA_POLICY_FAIL_THRESHOLD the fifth failure opens the breaker and no earlier \
         one, or the selector does not start.",
        |talk| {
            for (index, text) in TEXTS.into_iter().enumerate() {
                if index > 0 {
                    talk.again();
                }
                talk.env(THRESHOLD, text);
                for _ in 0..4 {
                    talk.play(&Request::plain(), failing(), fallback(text));
                }
                talk.play(&Request::plain(), says(BLOCK), taken(text));
                for _ in 0..5 {
                    talk.play(&Request::plain(), failing(), fallback(text));
                }
                let opened = talk.last_step();
                let expect = fallback(text).starts(UNLIMITED, 0).certain_since(opened, COOLDOWN_MS);
                talk.ask(&Request::plain(), expect);
            }
        },
    )
}

fn cooldown() -> Check {
    refusable(
        "cooldown",
        "With an invalid MACHINA_POLICY_COOLDOWN_MS nothing is started just after the breaker opened, or \
         the selector does not start.",
        |talk| {
            talk.env(THRESHOLD, "1");
            for (index, text) in TEXTS.into_iter().enumerate() {
                if index > 0 {
                    talk.again();
                }
                talk.env(COOLDOWN, text);
                talk.play(&Request::plain(), says(BLOCK), taken(text));
                talk.play(&Request::plain(), failing(), fallback(text));
                let opened = talk.last_step();
                // Long enough for a cooldown that was read as 1 ms.
                talk.wait_ms(100);
                let expect = fallback(text).starts(NO_NUMBER, 0).certain_since(opened, COOLDOWN_MS);
                talk.ask(&Request::plain(), expect);
            }
        },
    )
}

/// Numbers that are small modulo 2^32. A selector may use them as they are, or treat them as too large.
fn beyond_32_bits() -> Check {
    refusable(
        "beyond-32-bits",
        "Numbers just over 2^32 are not truncated to 32 bits: they are large, mean the default, or are \
         refused.",
        |talk| {
            let or_silent = |expect: Expect| expect.or(Allowed::Nothing);
            let taken = || or_silent(Expect::taken(NO_NUMBER, BLOCK));
            talk.env(STDOUT_MAX, "4294967300");
            talk.play(&Request::plain(), says(BLOCK), taken());
            talk.another().env(TIMEOUT, "4294967297");
            let expect = taken().certain_for_ms(TIMEOUT_MS);
            talk.play(&Request::plain(), says(BLOCK), expect).allow_ms(TIMEOUT_MS);
            talk.another().env(THRESHOLD, "4294967297");
            talk.play(&Request::plain(), failing(), or_silent(Expect::fallback(NO_NUMBER)));
            talk.play(&Request::plain(), says(BLOCK), taken());
            talk.another().env(THRESHOLD, "1").env(COOLDOWN, "4294967296");
            talk.play(&Request::plain(), failing(), or_silent(Expect::fallback(NO_NUMBER)));
            let opened = talk.last_step();
            let expect = or_silent(Expect::fallback(NO_NUMBER)).starts(NO_NUMBER, 0);
            talk.ask(&Request::plain(), expect.certain_since(opened, COOLDOWN_MS));
        },
    )
}

/// Tests a resource for each value of its variable: `within` must work and `beyond` must fail.
fn resource(
    talk: &mut Talk,
    variable: &str,
    texts: &[&str],
    within: &[ActorStep],
    beyond: &ActorStep,
    (row, soft): (&str, u64),
) {
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            talk.again();
        }
        talk.env(variable, text);
        let turn = [within, &says(BLOCK)].concat();
        talk.play(&Request::plain(), turn, taken(text)).allow_ms(USE_MS);
        let (turn, expect) = limited_turn(UNLIMITED, row, soft, Some(beyond.clone()));
        let expect = expect.or(Allowed::Nothing);
        let expect = match text.is_empty() {
            true => expect,
            false => expect.choice("invalid_variables", &["default", "default", "refuse"]),
        };
        talk.play(&Request::plain(), turn, expect).allow_ms(USE_MS);
    }
}

fn processor_time() -> Check {
    refusable(
        "processor-time",
        "With -1 as MACHINA_POLICY_RLIMIT_CPU_SEC a driver has 2 s of processor time, or the selector does not start.",
        |talk| {
            // The value that means unlimited to the system.
            resource(talk, CPU_VARIABLE, &["-1"], &[], &uses(Resource::Cpu, 4), ("Max cpu time", 2));
        },
    )
    .waits()
}

fn file_size() -> Check {
    refusable(
        "file-size",
        "With an invalid MACHINA_POLICY_RLIMIT_FSIZE_MB a driver can write files of 10 MB and no longer \
         ones, or the selector does not start.",
        |talk| {
            let writes = |bytes| uses(Resource::FileBytes, bytes);
            let limit = ("Max file size", 10 * MB);
            resource(talk, FILE_VARIABLE, &TEXTS, &[writes(9 * MB)], &writes(11 * MB), limit);
        },
    )
}

fn open_files() -> Check {
    refusable(
        "open-files",
        "With an invalid MACHINA_POLICY_RLIMIT_NOFILE a driver has 64 descriptors, or the selector does \
         not start.",
        |talk| {
            let opens = |files| uses(Resource::OpenFiles, files);
            resource(talk, OPEN_FILES_VARIABLE, &TEXTS, &[opens(40)], &opens(70), ("Max open files", 64));
        },
    )
}

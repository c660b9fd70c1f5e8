//! Checks of standard streams and environment variables of a driver.

use super::super::super::request::{FALLBACK_ONLY, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::provided::Provided;
use super::super::super::selector::talk::{Talk, says};
use super::check;
use super::starts::PICKED;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking, Sight};

const STDIN: &str = "PD-CMD-04";
const STDERR: &str = "PD-CMD-05";
const HELD_BACK: &str = "PD-CMD-06";
const PASSED_ON: &str = "PD-CMD-07";

/// Variables that control interpreters and the loader; these values do no harm to the selector itself.
const STEERING: [(&str, &str); 5] = [
    ("BASH_ENV", "/dev/null"),
    ("ENV", "/dev/null"),
    ("NODE_OPTIONS", "--no-warnings"),
    ("PYTHONSTARTUP", "/dev/null"),
    ("LD_PRELOAD", "/nonexistent/peerproof.so"),
];

/// Variables whose names suggest secrets.
const SECRETS: [(&str, &str); 5] = [
    ("AWS_SECRET_ACCESS_KEY", "peerproof-1"),
    ("GITHUB_TOKEN", "peerproof-2"),
    ("DB_PASSWORD", "peerproof-3"),
    ("OPENAI_API_KEY", "peerproof-4"),
    ("CLIENT_SECRET", "peerproof-5"),
];

/// Size of a request that fits into no buffer together with the one before, bytes.
const LONG_BYTES: u64 = 150 << 10;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        stdin(),
        block_on_stderr(),
        other_block_on_stderr(),
        stderr_flood(),
        held_back("steering-variables", "Variables that steer interpreters and the loader", &STEERING),
        held_back("secrets", "Variables whose names look like secrets", &SECRETS),
        passed_on(),
        bridge_variables(),
    ]
}

fn stdin() -> Check {
    check(
        "stdin/requests-behind-the-first",
        "A driver finds an empty standard input while further requests wait for the selector.",
        &[STDIN],
        |talk, _| {
            talk.driver([vec![ActorStep::Look(Sight::Stdin)], says(PICKED)].concat());
            talk.driver(says(PICKED));
            talk.send(Request::plain().line(), Chunking::Whole, 0, Expect::taken(STDIN, PICKED));
            let long = Request::plain()
                .mode(FALLBACK_ONLY)
                .with("padding", "x".repeat(LONG_BYTES as usize).as_str());
            for _ in 0..2 {
                talk.send(long.line(), Chunking::Whole, 0, Expect::new(STDIN, Allowed::Anything));
            }
            talk.send(Request::plain().line(), Chunking::Whole, 4, Expect::taken(STDIN, PICKED))
                .counts_as_canary();
        },
    )
}

fn block_on_stderr() -> Check {
    check(
        "stderr/block-on-it-alone",
        "A block on standard error, with empty standard output, does not count as output.",
        &[STDERR],
        |talk, _| {
            let turn = vec![ActorStep::Stderr(Payload::text(PICKED))];
            talk.play(&Request::plain(), turn, Expect::fallback(STDERR));
            talk.canary(STDERR);
        },
    )
}

fn other_block_on_stderr() -> Check {
    check(
        "stderr/other-block-beside-the-output",
        "Another block, text and bytes on standard error, before and after, do not change the block on \
         standard output.",
        &[STDERR],
        |talk, _| {
            for noise in
                ["<PICK><SID0007><END>\n", "Traceback (most recent call last):\n", "<PICK>", "\u{0}\u{FEFF}<"]
            {
                let noise =
                    || ActorStep::Stderr(Payload::text(noise).then(Payload(Vec::new()).repeat("!", 100)));
                let turn = [vec![noise()], says(PICKED), vec![noise()]].concat();
                talk.play(&Request::plain(), turn, Expect::taken(STDERR, PICKED)).counts_as_canary();
            }
        },
    )
}

fn stderr_flood() -> Check {
    check(
        "stderr/flood",
        "Several MB on standard error neither block the driver nor count as its output.",
        &[STDERR],
        |talk, _| {
            let flood = || ActorStep::Stderr(Payload(Vec::new()).repeat("noise on stderr\n", 200_000));
            let turn = [vec![flood()], says(PICKED), vec![flood()]].concat();
            talk.play(&Request::plain(), turn, Expect::taken(STDERR, PICKED)).allow_ms(5_000);
            let turn = vec![flood(), ActorStep::Exit(3)];
            talk.play(&Request::plain(), turn, Expect::fallback(STDERR)).allow_ms(5_000);
            talk.canary(STDERR);
        },
    )
}

/// Plays a driver that reports its variables and picks.
fn looks(talk: &mut Talk, expect: Expect) {
    let turn = [vec![ActorStep::Look(Sight::Environment)], says(PICKED)].concat();
    talk.play(&Request::plain(), turn, expect).counts_as_canary();
}

fn held_back(name: &str, who: &str, variables: &'static [(&str, &str)]) -> Check {
    let title = format!("{who} do not reach the driver.");
    check(&format!("environment/{name}"), &title, &[HELD_BACK], move |talk, _| {
        let mut expect = Expect::taken(HELD_BACK, PICKED);
        for (name, value) in variables {
            talk.env(name, value);
            expect =
                expect.provided(Provided::NoVariable { clause: HELD_BACK.into(), name: (*name).to_owned() });
        }
        looks(talk, expect);
    })
}

fn passes(name: &str, part: &str) -> Provided {
    Provided::Variable { clause: PASSED_ON.into(), name: name.to_owned(), part: part.to_owned() }
}

fn passed_on() -> Check {
    check(
        "environment/path-home-and-temporary-folder",
        "PATH, HOME and TMPDIR reach the driver.",
        &[PASSED_ON],
        |talk, _| {
            talk.env("PATH", "{{folder}}/policies/bin:{{PATH}}").env("HOME", "{{folder}}/policies");
            let expect = Expect::taken(PASSED_ON, PICKED)
                .provided(passes("PATH", "/policies/bin"))
                .provided(passes("HOME", "/policies"))
                .provided(passes("TMPDIR", "/tmp"));
            looks(talk, expect);
        },
    )
}

fn bridge_variables() -> Check {
    check(
        "environment/bridge-variables",
        "MACHINA_POLICY_LLM_URL, MACHINA_POLICY_LLM_AUTH and others of that name reach the driver.",
        &[PASSED_ON],
        |talk, _| {
            let mut expect = Expect::taken(PASSED_ON, PICKED);
            for (name, value) in [
                ("MACHINA_POLICY_LLM_URL", "http://127.0.0.1:9/peerproof?a=b&c=d e"),
                ("MACHINA_POLICY_LLM_AUTH", "Authorization: Bearer peerproof=="),
                ("MACHINA_POLICY_LLM_MODEL", "peerproof"),
            ] {
                talk.env(name, value);
                expect = expect.provided(passes(name, value));
            }
            looks(talk, expect);
        },
    )
}

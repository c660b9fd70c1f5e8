//! Checks of the control mode: which modes start a driver.

use super::super::super::request::{self, FALLBACK_ONLY, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{ALLOWED_EXE, COMMAND, COOLDOWN, THRESHOLD, says};
use super::check;
use super::starts::{SCRIPT, variable_names};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Chunking};

const POLICY_ONLY: &str = "PD-MODE-01";
const NO_DRIVER: &str = "PD-MODE-02";
const OTHERS: &str = "PD-MODE-03";
const NO_COMMAND: &str = "PD-MODE-04";
const NO_OTHER_STARTS: &str = "PD-MODE-06";
const MALFORMED: &str = "PD-SEL-05";
const REFUSED: &str = "PD-ALLOW-03";
const OPEN: &str = "PD-BRK-03";

/// Time after which a delayed start would have happened, ms.
const LATER_MS: u64 = 1_200;

/// Unknown modes, in addition to near misses of the known ones.
const OTHER_MODES: [&str; 11] = [
    "",
    "AUTO",
    "HYBRID",
    "Policy_Only",
    "POLICY_ONLY,FALLBACK_ONLY",
    "POLICY",
    "POLICY_ONLY.v1",
    "X.POLICY_ONLY",
    "POLICY_ONLX",
    "POLICX_ONLY",
    "XOLICY_ONLY",
];

const BLOCK: &str = "<PICK><SID0042><END>";

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        policy_only(),
        fallback_only(),
        others(),
        without_command(),
        variables_of_nearly_that_name(),
        nothing_later(),
    ]
}

fn policy_only() -> Check {
    check(
        "mode/policy-only",
        "Each of eight POLICY_ONLY requests, some of them equal, starts the command once, whatever its \
         driver does.",
        &[POLICY_ONLY],
        |talk, _| {
            for block in [BLOCK, BLOCK, "<ASK_SUP><END>", "<PICK><SID0007><END>", "<NOOP><END>", BLOCK] {
                let expect = Expect::taken(POLICY_ONLY, block).starts(POLICY_ONLY, 1);
                talk.play(&Request::plain(), says(block), expect).counts_as_canary();
            }
            for turn in [vec![ActorStep::Exit(1)], says("nothing")] {
                talk.play(&Request::plain(), turn, Expect::fallback(POLICY_ONLY).starts(POLICY_ONLY, 1));
            }
        },
    )
}

fn fallback_only() -> Check {
    check(
        "mode/fallback-only",
        "FALLBACK_ONLY requests between others start nothing and use no driver output.",
        &[NO_DRIVER, POLICY_ONLY],
        |talk, _| {
            for inputs in [r#"{"n":1}"#, r#"{"n":2}"#, "{}"] {
                let request = Request::plain().inputs(inputs);
                talk.canary(POLICY_ONLY);
                let expect = Expect::new(NO_DRIVER, Allowed::Anything).starts(NO_DRIVER, 0);
                talk.send(request.mode(FALLBACK_ONLY).line(), Chunking::Whole, 1, expect);
            }
            talk.canary(POLICY_ONLY);
        },
    )
}

fn others() -> Check {
    check(
        "mode/others",
        "Another control mode, or none, is answered by the fallback or by INVALID, and nothing is started.",
        &[OTHERS, NO_OTHER_STARTS],
        |talk, _| {
            talk.canary(NO_OTHER_STARTS);
            let near = near_misses(request::POLICY_ONLY);
            let near = near.iter().map(|miss| miss.text.as_str());
            let requests = OTHER_MODES.into_iter().chain(near).map(|mode| Request::plain().mode(mode));
            let without = || Request::plain().without("control_mode");
            // A reader that ignores case finds a mode in these members.
            let names = ["Control_Mode", "CONTROL_MODE", "controlMode"];
            let named = names.map(|name| without().with(name, request::POLICY_ONLY));
            for request in requests.chain([without()]).chain(named) {
                let expect = Expect::as_fallback(NO_OTHER_STARTS)
                    .or(Allowed::Invalid)
                    .choice("other_modes", &["fallback", "invalid"])
                    .starts(NO_OTHER_STARTS, 0);
                talk.ask(&request, expect);
            }
            talk.canary(NO_OTHER_STARTS);
        },
    )
}

fn without_command() -> Check {
    check(
        "mode/without-a-command",
        "Without MACHINA_POLICY_CMD POLICY_ONLY requests are answered by the fallback, one after the other.",
        &[NO_COMMAND],
        |talk, _| {
            talk.unset(COMMAND);
            for inputs in [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":1}"#] {
                let expect = Expect::as_fallback(NO_COMMAND).starts(NO_COMMAND, 0);
                talk.ask(&Request::plain().inputs(inputs), expect);
            }
            // Without a driver, this counts as the canary.
            talk.counts_as_canary();
        },
    )
}

fn variables_of_nearly_that_name() -> Check {
    check(
        "mode/command-in-a-variable-of-nearly-that-name",
        "A command in a variable whose name differs from MACHINA_POLICY_CMD by case, length or a blank \
         does not count.",
        &[NO_COMMAND],
        |talk, _| {
            talk.canary(NO_COMMAND).another().unset(COMMAND);
            for name in variable_names(COMMAND) {
                talk.env(&name, &format!("sh {SCRIPT}"));
            }
            talk.ask(&Request::plain(), Expect::as_fallback(NO_COMMAND).starts(NO_COMMAND, 0));
        },
    )
}

fn nothing_later() -> Check {
    check(
        "mode/nothing-starts-later",
        "Nothing is started later either (1.2 s) after FALLBACK_ONLY, another mode, a malformed line, a \
         refusal and a request in the cooldown.",
        &[NO_DRIVER, NO_OTHER_STARTS, MALFORMED, REFUSED, OPEN],
        |talk, _| {
            let anything = |clause: &str| Expect::new(clause, Allowed::Anything).starts(clause, 0);
            talk.env(THRESHOLD, "1").env(COOLDOWN, "60000");
            talk.canary(NO_DRIVER);
            talk.ask(&Request::plain().mode(FALLBACK_ONLY), anything(NO_DRIVER)).wait_ms(LATER_MS);
            talk.ask(&Request::plain().mode("AUTO"), anything(NO_OTHER_STARTS)).wait_ms(LATER_MS);
            talk.send(Payload::text("[]\n"), Chunking::Whole, 1, anything(MALFORMED)).wait_ms(LATER_MS);
            let expect = Expect::fallback(OPEN).starts(OPEN, 1);
            talk.play(&Request::plain(), vec![ActorStep::Exit(1)], expect);
            let opened = talk.last_step();
            let expect = Expect::fallback(OPEN).starts(OPEN, 0).certain_since(opened, 60_000);
            talk.ask(&Request::plain(), expect).wait_ms(LATER_MS);
            talk.another().env(ALLOWED_EXE, "node");
            talk.ask(&Request::plain(), anything(REFUSED)).wait_ms(LATER_MS);
        },
    )
    .waits()
}

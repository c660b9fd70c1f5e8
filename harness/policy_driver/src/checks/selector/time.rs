//! Checks of a driver's timeout and of its remains.

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{COMMAND, PROFILE, TIMEOUT, Talk, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Fixture};

const TOTAL: &str = "PD-TIME-01";
const OF_PROFILE: &str = "PD-TIME-02";
const BY_DEFAULT: &str = "PD-TIME-03";
const IN_TIME: &str = "PD-TIME-04";
const GONE: &str = "PD-TIME-05";
const PIPE_HELD: &str = "PD-TIME-06";
const TAKEN: &str = "PD-TIME-10";
const FAILED: &str = "PD-FAIL-02";

const BLOCK: &str = "<PICK><SID0042><END>";

/// A pause longer than any timeout here; no actor lives longer.
const FOR_EVER: ActorStep = ActorStep::Sleep { ms: 60_000 };

/// Interval between two bytes of a driver that never ends, ms.
const BEAT_MS: u64 = 250;

/// Number of these intervals in [`FOR_EVER`].
const FOR_EVER_IN_BEATS: usize = 240;

/// Timeout that some drivers exceed on purpose, ms.
const SHORT_MS: u64 = 1_000;

/// Time for a Selection beyond that of its driver (readings §2), ms.
const ANSWER_MS: u64 = 1_000;

/// Delay of the search for processes after a Selection, ms; they may still be dying.
const GONE_AFTER_MS: u64 = 300;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        hangs("before-its-output", TOTAL, "A driver that prints nothing", || vec![FOR_EVER]),
        hangs("amid-its-block", TOTAL, "A driver that stops in the middle of its block", || {
            [says("<PICK><SID0042>"), vec![FOR_EVER]].concat()
        }),
        hangs("after-its-block", IN_TIME, "A driver that prints a block and keeps running", || {
            [says(BLOCK), vec![FOR_EVER]].concat()
        }),
        hangs(
            "with-stdout-closed",
            IN_TIME,
            "A driver that prints a block, closes its stdout and keeps running",
            || [says(BLOCK), vec![ActorStep::CloseStdout, FOR_EVER]].concat(),
        ),
        hangs("ignoring-sigterm", IN_TIME, "A driver that ignores SIGTERM and never ends", || {
            [vec![ActorStep::IgnoreTerm], says(BLOCK), vec![FOR_EVER]].concat()
        }),
        hangs("dribbling", TOTAL, "A driver that prints a space every 250 ms and never a block", || {
            [dribble(" ", FOR_EVER_IN_BEATS, BEAT_MS), says(BLOCK)].concat()
        }),
        hangs(
            "busy-on-stderr",
            TOTAL,
            "A driver that writes to stderr every 250 ms and prints no block",
            || {
                let line = ActorStep::Stderr(Payload::text("thinking\n"));
                vec![[line, ActorStep::Sleep { ms: BEAT_MS }]; FOR_EVER_IN_BEATS].concat()
            },
        ),
        hangs(
            "with-a-child",
            IN_TIME,
            "A driver that never ends and has a child in its process group",
            || vec![holder(false), FOR_EVER],
        ),
        hangs(
            "with-a-child-in-its-own-session",
            IN_TIME,
            "A driver that never ends and has a child in another session",
            || vec![holder(true), FOR_EVER],
        ),
        holds("child-holds-the-pipe", false),
        holds("child-in-its-own-session-holds-the-pipe", true),
        failing_with_a_child(),
        daemons(),
        slow_in_time(),
        pausing(),
        by_default(),
        other_profile("other-profile", "staging"),
        other_profile("upper-case-profile", "PROD"),
        other_profile("longer-profile-production", "production"),
        other_profile("longer-profile-developer", "developer"),
        shorter_by_default(),
        of_profile("prod"),
        of_profile("dev"),
        variable_before_profile("dev", TOTAL),
        variable_before_profile("prod", OF_PROFILE),
        long_profile("prod-28-s", "prod", 28_000, Some(30_000)),
        long_profile("prod-33-s", "prod", 33_000, None),
        long_profile("dev-33-s", "dev", 33_000, Some(60_000)),
        dev_to_its_end(),
    ]
}

fn holder(leave_group: bool) -> ActorStep {
    ActorStep::ForkHolder { ms: 60_000, leave_group }
}

/// Prints each character of `text` this many times, with a pause before each.
fn dribble(text: &str, times: usize, pause_ms: u64) -> Vec<ActorStep> {
    let pieces = text.chars().flat_map(|piece| vec![piece; times]);
    pieces.flat_map(|piece| [vec![ActorStep::Sleep { ms: pause_ms }], says(piece)].concat()).collect()
}

/// A check of a driver that exceeds its timeout: the fallback answers in time, nothing is left, and the next driver
/// works.
fn hangs(name: &str, clause: &'static str, what: &str, turn: fn() -> Vec<ActorStep>) -> Check {
    let title = format!(
        "{what} is ended at its timeout, with everything that it started, and the next driver \
            succeeds."
    );
    check(&format!("time/hangs/{name}"), &title, &[clause, GONE, FAILED], move |talk, _| {
        short(talk);
        let expect = Expect::fallback(clause).within_ms(clause, SHORT_MS + ANSWER_MS).gone(GONE);
        talk.play(&Request::plain(), turn(), expect).allow_ms(SHORT_MS).probe_after(GONE_AFTER_MS);
        canary(talk, FAILED, SHORT_MS);
    })
    .waits()
}

fn short(talk: &mut Talk) {
    talk.env(TIMEOUT, &SHORT_MS.to_string());
}

/// A canary with a timeout that a busy machine may exceed.
fn canary(talk: &mut Talk, clause: &str, time_ms: u64) {
    let expect = Expect::taken(clause, BLOCK).reason(CANARY_FAILED).certain_for_ms(time_ms);
    talk.play(&Request::plain(), says(BLOCK), expect).allow_ms(time_ms).counts_as_canary();
}

/// A check of a driver that ends well while its child holds its output.
fn holds(name: &str, leave_group: bool) -> Check {
    let who = if leave_group { "a child in another session" } else { "a child" };
    let title = format!(
        "A driver that printed a block and ended with 0 while {who} holds its output succeeds or fails, in \
         time, and no process is left."
    );
    check(&format!("time/{name}"), &title, &[PIPE_HELD, IN_TIME, GONE], move |talk, _| {
        talk.env(TIMEOUT, "2000");
        let turn = [vec![holder(leave_group)], says(BLOCK)].concat();
        let expect = Expect::taken(PIPE_HELD, BLOCK)
            .or(Allowed::Fallback)
            .choice("pipe_held_by_child", &["pick", "failure"])
            .within_ms(IN_TIME, 2_000 + ANSWER_MS)
            .gone(GONE);
        talk.play(&Request::plain(), turn, expect).allow_ms(2_000).probe_after(GONE_AFTER_MS);
        canary(talk, PIPE_HELD, 2_000);
    })
    .waits()
}

fn failing_with_a_child() -> Check {
    check(
        "time/failing-with-a-child",
        "A driver that ends with 3 while a child in another session holds its output is a failure in time, \
         and no process is left.",
        &[IN_TIME, GONE],
        |talk, _| {
            talk.env(TIMEOUT, "2000");
            let turn = [vec![holder(true)], says(BLOCK), vec![ActorStep::Exit(3)]].concat();
            let expect = Expect::fallback(IN_TIME).within_ms(IN_TIME, 2_000 + ANSWER_MS).gone(GONE);
            talk.play(&Request::plain(), turn, expect).allow_ms(2_000).probe_after(GONE_AFTER_MS);
            canary(talk, IN_TIME, 2_000);
        },
    )
    .waits()
}

/// Starts a child two sessions away. The remains are looked for after the selector has ended.
const DAEMON: &str = "(setsid setsid sleep 53 </dev/null >/dev/null 2>&1 &)\necho '<PICK><SID0042><END>'\n";

fn daemons() -> Check {
    check(
        "time/children-far-away",
        "No process is left of ten drivers that each leave a child in its own session, without the pipe.",
        &[GONE],
        |talk, _| {
            let content = Payload::text(DAEMON);
            let name = "policies/daemon.sh".to_owned();
            talk.fixture(Fixture::File { name, content, mode: None, kept: false });
            talk.env(COMMAND, "sh {{policies/daemon.sh.path}}");
            for _ in 0..10 {
                // The child holds the output for a moment.
                let expect = Expect::taken(GONE, BLOCK).or(Allowed::Fallback);
                talk.ask(&Request::plain(), expect).counts_as_canary();
            }
        },
    )
}

fn slow_in_time() -> Check {
    check(
        "time/in-time/most-of-it",
        "A driver that prints its block in pieces and needs 3.5 s of its 5 s succeeds.",
        &[TAKEN, TOTAL],
        |talk, _| {
            talk.env(TIMEOUT, "5000");
            let turn = [vec![ActorStep::Sleep { ms: 1_500 }], dribble(BLOCK, 1, 100)].concat();
            let expect = Expect::taken(TAKEN, BLOCK).certain_for_ms(5_000);
            talk.play(&Request::plain(), turn, expect).allow_ms(5_000).counts_as_canary();
        },
    )
    .waits()
}

fn pausing() -> Check {
    check(
        "time/in-time/one-long-pause",
        "With a timeout of 8 s, a driver that pauses for 1.6 s in its block, after it, or after closing \
         its output succeeds.",
        &[TAKEN],
        |talk, _| {
            talk.env(TIMEOUT, "8000");
            let pause = || vec![ActorStep::Sleep { ms: 1_600 }];
            let (head, tail) = BLOCK.split_at(BLOCK.len() / 2);
            for turn in [
                [says(head), pause(), says(tail)].concat(),
                [says(BLOCK), pause()].concat(),
                [says(BLOCK), vec![ActorStep::CloseStdout], pause()].concat(),
            ] {
                let expect = Expect::taken(TAKEN, BLOCK).certain_for_ms(8_000);
                talk.play(&Request::plain(), turn, expect).allow_ms(8_000).counts_as_canary();
            }
        },
    )
    .waits()
}

/// A driver that takes 3.2 s: too long for the default timeout, short enough for profiles.
fn after_3200_ms() -> Vec<ActorStep> {
    after(3_200)
}

fn after(ms: u64) -> Vec<ActorStep> {
    [vec![ActorStep::Sleep { ms }], says(BLOCK)].concat()
}

fn too_late(talk: &mut Talk, clause: &str) {
    let expect = Expect::fallback(clause).within_ms(IN_TIME, 2_500 + ANSWER_MS);
    talk.play(&Request::plain(), after_3200_ms(), expect).allow_ms(3_200);
    canary(talk, clause, 2_500);
}

fn by_default() -> Check {
    check(
        "time/default/3200-ms",
        "Without variables a driver that needs 3.2 s times out after 2.5 s.",
        &[BY_DEFAULT, IN_TIME],
        |talk, _| {
            talk.unset(TIMEOUT);
            too_late(talk, BY_DEFAULT);
        },
    )
    .waits()
}

fn other_profile(name: &str, profile: &'static str) -> Check {
    let title = format!("With the profile {profile} a driver that needs 3.2 s times out after 2.5 s.");
    check(&format!("time/default/{name}"), &title, &[BY_DEFAULT, IN_TIME], move |talk, _| {
        talk.unset(TIMEOUT).env(PROFILE, profile);
        too_late(talk, BY_DEFAULT);
    })
    .waits()
}

fn shorter_by_default() -> Check {
    check(
        "time/default/1500-ms",
        "Without variables drivers that need 1.5 s succeed.",
        &[BY_DEFAULT, TAKEN],
        |talk, _| {
            talk.unset(TIMEOUT);
            for clause in [BY_DEFAULT, TAKEN] {
                let expect = Expect::taken(clause, BLOCK).certain_for_ms(2_500);
                talk.play(&Request::plain(), after(1_500), expect).allow_ms(2_500).counts_as_canary();
            }
        },
    )
    .waits()
}

fn of_profile(profile: &'static str) -> Check {
    let title =
        format!("With the profile {profile} and no other variable a driver that needs 3.2 s succeeds.");
    check(&format!("time/profile/{profile}-3200-ms"), &title, &[OF_PROFILE], move |talk, _| {
        talk.unset(TIMEOUT).env(PROFILE, profile);
        let expect = Expect::taken(OF_PROFILE, BLOCK).certain_for_ms(30_000);
        talk.play(&Request::plain(), after_3200_ms(), expect).allow_ms(30_000).counts_as_canary();
    })
    .waits()
}

fn variable_before_profile(profile: &'static str, clause: &'static str) -> Check {
    let title = format!(
        "With the profile {profile} and MACHINA_POLICY_TIMEOUT_MS=1000 a driver that needs 3.2 s times out \
         after 1 s."
    );
    check(&format!("time/profile/{profile}-with-the-variable"), &title, &[clause, IN_TIME], move |talk, _| {
        short(talk);
        talk.env(PROFILE, profile);
        let expect = Expect::fallback(clause).within_ms(IN_TIME, SHORT_MS + ANSWER_MS);
        talk.play(&Request::plain(), after_3200_ms(), expect).allow_ms(3_200);
        canary(talk, clause, SHORT_MS);
    })
    .waits()
}

/// A check of a profile: a driver that takes `needs_ms` is taken if the timeout is longer, and given up otherwise.
fn long_profile(name: &str, profile: &'static str, needs_ms: u64, has_ms: Option<u64>) -> Check {
    let fate = if has_ms.is_some() { "succeeds" } else { "times out" };
    let title = format!("With the profile {profile} a driver that needs {} s {fate}.", needs_ms / 1_000);
    check(&format!("time/profile/{name}"), &title, &[OF_PROFILE], move |talk, _| {
        talk.unset(TIMEOUT).env(PROFILE, profile);
        talk.canary(OF_PROFILE);
        let expect = match has_ms {
            Some(has_ms) => Expect::taken(OF_PROFILE, BLOCK).certain_for_ms(has_ms),
            None => Expect::fallback(OF_PROFILE),
        };
        talk.play(&Request::plain(), after(needs_ms), expect).allow_ms(needs_ms);
    })
    .slow()
}

fn dev_to_its_end() -> Check {
    check(
        "time/profile/dev-65-s",
        "With the profile dev a driver that needs 65 s times out after 60 s.",
        &[OF_PROFILE, IN_TIME],
        |talk, _| {
            // No actor lives that long, so a real shell script is used.
            let content = Payload::text("sleep 65\necho '<PICK><SID0042><END>'\n");
            let name = "policies/long.sh".to_owned();
            talk.fixture(Fixture::File { name, content, mode: None, kept: false });
            talk.unset(TIMEOUT).env(PROFILE, "dev");
            talk.env(COMMAND, "sh {{policies/long.sh.path}}");
            let expect = Expect::fallback(OF_PROFILE).within_ms(IN_TIME, 60_000 + ANSWER_MS);
            talk.ask(&Request::plain(), expect).allow_ms(65_000).counts_as_canary();
        },
    )
    .very_slow()
}

//! Timing tests of the lab, with shell peers and budgets far below their start-up time.

mod actors;
mod beside;
mod effects;
mod kept;
pub(crate) mod stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Lab;
use crate::data::budget::Budget;
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::data::pace::{Pace, written};
use crate::data::payload::Payload;
use crate::data::plan::{Act, Chunking, Plan, Session, Step};
use crate::data::transcript::{Awaited, EventKind, Transcript};
use crate::drive::fixture::ActorExe;
use crate::drive::peer::{Origin, Peer};
use crate::run::reproducer::conversation;
use crate::toy::Toy;

const SHORT: Duration = Duration::from_millis(100);

/// Reads and echoes lines, 300 ms after its start.
const SLOW_START: &str = "sleep 0.3; while read -r line; do echo \"$line\"; done";

/// Peer that is a shell script.
fn sh(script: &str) -> Peer {
    let words = ["/bin/sh", "-c", script].map(str::to_owned);
    Peer {
        name: "sh".to_owned(),
        boundary: &Toy,
        commands: BTreeMap::from([("command".to_owned(), words.to_vec())]),
        env: Vec::new(),
        facts: Facts::new(Side::Provider),
        features_given: true,
        origin: Origin::Process { base_env: Vec::new(), current_dir: None, cpus: Vec::new() },
        pace: Arc::default(),
    }
}

#[test]
fn placeholders_of_variables_are_filled_or_the_variable_is_left_out() {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let env = vec![variable("OWN", "{\"a\":{}}"), variable("IN", "in {folder}/x")];
    let peer = Peer { env, ..sh("exit") };
    let env = |placeholders: &[(&str, &str)]| {
        let placeholders = placeholders.iter().map(|(name, value)| variable(name, value)).collect();
        let session = Session { command: "command".to_owned(), placeholders, ..Session::default() };
        let spec = peer.child_spec(&session, Path::new("/tmp")).unwrap();
        let own = spec.env.into_iter().filter(|(name, _)| name == "OWN" || name == "IN");
        own.map(|(_, value)| value.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(env(&[("folder", "/a b")]), ["{\"a\":{}}", "in /a b/x"]);
    assert_eq!(env(&[]), ["{\"a\":{}}"]);
}

/// Sends a line for which this many frames are due.
fn hello(await_frames: u32) -> Step {
    Step::new(Act::Send { payload: Payload::text("hello\n"), chunking: Chunking::Whole, await_frames })
}

/// Asks `peer` for several lines one after the other, then ends its input; `start_up` is its time to start.
fn ask(peer: &Peer, start_up: Duration, lines: usize, canary: bool) -> Transcript {
    let mut steps: Vec<Step> = (0..lines).map(|_| Step { canary, ..hello(1) }).collect();
    steps.push(Step::new(Act::Finish));
    talk(peer, start_up, steps)
}

fn talk(peer: &Peer, start_up: Duration, steps: Vec<Step>) -> Transcript {
    let session = Session { command: "command".to_owned(), ..Session::default() };
    let plan = Plan { sessions: vec![session], steps, ..Plan::default() };
    let scratch = tempfile::tempdir().unwrap();
    let lab = Lab {
        peer,
        budget: Budget { start_up, reply: SHORT, exit: SHORT, ..Budget::default() },
        actor_exe: &ActorExe::new(Path::new("/nowhere")),
        scratch: scratch.path(),
        timeout_scale: 1.0,
    };
    lab.execute("time", &plan).unwrap()
}

/// Missed deadlines, each with the milliseconds waited.
fn in_vain(transcript: &Transcript) -> Vec<(Awaited, u64)> {
    let passed = transcript.events.iter().filter_map(|event| match event.kind {
        EventKind::DeadlinePassed { awaited, waited_ms, .. } => Some((awaited, waited_ms)),
        _ => None,
    });
    passed.collect()
}

fn start_up_max(pace: &Pace) -> Duration {
    pace.of("command").start_up_max(Duration::from_secs(30))
}

#[test]
fn a_start_is_no_part_of_the_time_for_a_reply() {
    let peer = sh(SLOW_START);
    let transcript = ask(&peer, Duration::from_secs(20), 2, true);
    assert_eq!(transcript.stdout(0), b"hello\nhello\n", "{:?}", transcript.events);
    let measured = peer.pace.of("command");
    assert!(measured.start_up.is_some_and(|time| time >= 3 * SHORT), "{measured}");
    assert!(measured.latency < measured.start_up, "{measured}");
}

#[test]
fn a_start_is_no_part_of_the_time_for_an_exit() {
    let peer = sh("sleep 0.3; cat");
    let transcript = ask(&peer, Duration::from_secs(20), 0, true);
    assert_eq!(in_vain(&transcript), [], "{:?}", transcript.events);
}

#[test]
fn the_first_answer_of_a_slow_tool_is_not_taken_for_a_start() {
    let peer = sh(SLOW_START);
    ask(&peer, Duration::from_secs(20), 1, false);
    assert_eq!(start_up_max(&peer.pace), Duration::from_secs(30));
}

#[test]
fn a_mute_peer_gets_the_time_of_an_unknown_one_once() {
    let peer = sh("exec sleep 20");
    let transcript = ask(&peer, 3 * SHORT, 1, true);
    let first = in_vain(&transcript);
    assert!(first[0].0 == Awaited::Frames && first[0].1 >= 300, "the wait that was made is told: {first:?}");
    let told = format!("✗ no reply within {}", written(Duration::from_millis(first[0].1)));
    assert!(conversation(&transcript, 80, 9).contains(&told), "{told}");
    assert_eq!(start_up_max(&peer.pace), Duration::ZERO);
}

#[test]
fn a_peer_that_has_answered_is_not_given_the_time_to_start_again() {
    let peer = sh("read -r line; echo one; exec sleep 1000");
    let transcript = talk(&peer, Duration::from_secs(1_000), vec![hello(3)]);
    assert!(matches!(in_vain(&transcript)[..], [(Awaited::Frames, _)]), "{:?}", transcript.events);
}

#[test]
fn answers_are_looked_for_among_as_many_frames_as_a_stream_has() {
    let step = Step { await_answers: 1, allow_ms: 20_000, ..hello(1) };
    let transcript = talk(&sh("yes | head -n 66000; exec sleep 1000"), SHORT, vec![step]);
    assert_eq!(in_vain(&transcript), [], "the answer is waited for behind all of them");
}

#[test]
fn the_start_of_a_process_is_let_pass_and_where_none_was_measured_a_short_one() {
    let peer = sh("sleep 0.6; while read -r line; do echo \"$line\"; done");
    let waited_until_us = || {
        let transcript = talk(&peer, Duration::from_secs(20), vec![Step::new(Act::AwaitStart)]);
        let waited = transcript.events.iter().find(|event| matches!(event.kind, EventKind::Waited { .. }));
        waited.map(|event| event.at_us).unwrap()
    };
    assert!(waited_until_us() >= 300_000);
    ask(&peer, Duration::from_secs(20), 2, true);
    assert!(waited_until_us() >= 600_000, "{}", peer.pace.of("command"));
}

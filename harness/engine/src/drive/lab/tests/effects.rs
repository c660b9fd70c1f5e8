//! Tests of waiting for effects outside a process, and of several processes at once.

use super::beside::{job, look, looked, put, queue, step};
use super::stage::{carry_out, those};
use super::*;
use crate::data::plan::{ActorStep, AwaitedEffect, Placing};
use crate::data::transcript::Exit;
use crate::drive::fixture::{ActorExe, Fixtures};

fn path(glob: &str) -> AwaitedEffect {
    AwaitedEffect::Path { folder: "queue".to_owned(), glob: glob.to_owned() }
}

fn wait(what: AwaitedEffect, within_ms: u64) -> Step {
    step(Act::Await { what, within_ms })
}

/// Starts the process without a message.
fn start() -> Step {
    step(Act::Flush)
}

/// Missed deadlines.
fn missed(transcript: &Transcript) -> Vec<Awaited> {
    in_vain(transcript).into_iter().map(|(awaited, _)| awaited).collect()
}

#[test]
fn waits_until_an_effect_is_seen_or_a_deadline_has_passed() {
    let script = "cd \"$ROOT/queue\"; until [ -e inbox/a ]; do sleep 0.01; done; mv inbox/a processing/; \
        mkdir new; \"$ROOT/job\"; \"$ROOT/job\"; : > new/x; cat";
    let (name, folder) = ("job".to_owned(), "queue".to_owned());
    let transcript = carry_out(
        script,
        vec![queue(), job(vec![ActorStep::Sleep { ms: 20 }])],
        vec![
            wait(path("processing/*"), 30),
            start(),
            put("queue/inbox/a", Placing::Rename),
            wait(path("processing/*"), 20_000),
            look("queue/processing/a"),
            wait(AwaitedEffect::Empty { folder: folder.clone(), path: "inbox".to_owned() }, 20_000),
            wait(AwaitedEffect::Starts { actor: name.clone(), start: 1 }, 20_000),
            wait(AwaitedEffect::Ends { actor: name.clone(), end: 1 }, 20_000),
            wait(path("*/x"), 20_000),
            wait(AwaitedEffect::Ends { actor: name, end: 2 }, 30),
            wait(AwaitedEffect::Empty { folder, path: String::new() }, 30),
            wait(path("x"), 30),
            step(Act::Finish),
        ],
    );
    assert_eq!(missed(&transcript), [Awaited::Effect; 4], "{:?}", transcript.events);
    assert_eq!(looked(&transcript, "queue/processing/a").len(), 1);
}

#[test]
fn a_process_is_killed_once_something_is_seen() {
    let script = "cd \"$ROOT/queue\"; until [ -e inbox/a ]; do sleep 0.01; done; mv inbox/a processing/; \
        sleep 60; mv processing/a done/";
    let kill = |glob: &str, within_ms: u64| {
        step(Act::SignalWhen { signal: "KILL".to_owned(), what: path(glob), within_ms })
    };
    let transcript = carry_out(
        script,
        vec![queue()],
        vec![
            start(),
            kill("none", 30),
            put("queue/inbox/a", Placing::Rename),
            kill("processing/a", 20_000),
            look("queue/processing/a"),
        ],
    );
    assert_eq!(missed(&transcript), [Awaited::Effect], "{:?}", transcript.events);
    assert_eq!(transcript.exit(0), Some(Exit::Signal(9)));
    let signals = those(&transcript, |kind| matches!(kind, EventKind::Signalled { .. }).then_some(()));
    assert_eq!(signals.len(), 1, "none is sent where nothing was seen");
    let counted = ["killed after `path`", "not killed: `path` was not seen"];
    assert_eq!(transcript.kills(), counted.map(|what| (what.to_owned(), 1)).into());
    assert_eq!(looked(&transcript, "queue/processing/a").len(), 1);
}

#[test]
fn a_process_is_killed_once_a_file_has_so_many_lines_or_an_actor_has_written() {
    let script = "cd \"$ROOT/queue\"; echo 1 > log; printf 2 >> log; \"$ROOT/job\"; sleep 60";
    let lines =
        |lines: usize| AwaitedEffect::Lines { folder: "queue".to_owned(), path: "log".to_owned(), lines };
    let kill = |what: AwaitedEffect, within_ms: u64| {
        step(Act::SignalWhen { signal: "KILL".to_owned(), what, within_ms })
    };
    let writes = |output: usize| AwaitedEffect::Writes { actor: "job".to_owned(), output };
    let job = || job(vec![ActorStep::Stdout(Payload::text("done"))]);
    for (whats, missed_in_all) in [([lines(2), lines(1)], 1), ([writes(1), writes(0)], 1)] {
        let [never, once] = whats;
        let transcript =
            carry_out(script, vec![queue(), job()], vec![start(), kill(never, 500), kill(once, 20_000)]);
        assert_eq!(missed(&transcript).len(), missed_in_all, "{:?}", transcript.events);
        assert_eq!(transcript.exit(0), Some(Exit::Signal(9)));
    }
}

#[test]
fn what_is_gone_again_before_anybody_looks_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join("queue").join(path);
    let fixtures = Fixtures::start(&[queue()], dir.path(), &ActorExe::new("/nowhere")).unwrap();
    std::fs::write(at("inbox/a"), "").unwrap();
    let mut eye = fixtures.eye(&path("processing/a")).unwrap();
    assert!(!eye.sees().unwrap());
    std::fs::rename(at("inbox/a"), at("processing/a")).unwrap();
    std::fs::rename(at("processing/a"), at("done/a")).unwrap();
    assert!(eye.sees().unwrap());
}

#[test]
fn a_process_that_floods_is_read_while_another_is_waited_for() {
    let script = "read -r line; if [ $line = flood ]; then head -c 1048576 /dev/zero | tr '\\0' x; \
        head -c 1048576 /dev/zero >&2; : > \"$ROOT/queue/flooded\"; else \
        until [ -e \"$ROOT/queue/flooded\" ]; do sleep 0.01; done; fi; echo; cat";
    let say = |session: usize, text: &str, await_frames: u32| {
        let payload = Payload::text(text);
        Step { session, ..step(Act::Send { payload, chunking: Chunking::Whole, await_frames }) }
    };
    let finish = |session: usize| Step { session, ..step(Act::Finish) };
    let ends = [say(0, "wait\n", 1), finish(0), finish(1)];
    let transcript = carry_out(script, vec![queue()], [vec![say(1, "flood\n", 0)], ends.to_vec()].concat());
    assert_eq!(missed(&transcript), [], "{:?}", transcript.events);
    assert_eq!((transcript.stdout(0).len(), transcript.stdout(1).len()), (1, (1 << 20) + 1));
    let wait = wait(AwaitedEffect::Path { folder: "queue".to_owned(), glob: "flooded".to_owned() }, 20_000);
    let transcript = carry_out(script, vec![queue()], vec![say(0, "flood\n", 0), wait, finish(0)]);
    assert_eq!((missed(&transcript), transcript.stdout(0).len()), (vec![], (1 << 20) + 1));
}

/// Waiting times of missed deadlines, milliseconds.
fn waited_ms(transcript: &Transcript) -> Vec<u64> {
    those(transcript, |kind| match kind {
        EventKind::DeadlinePassed { waited_ms, .. } => Some(*waited_ms),
        _ => None,
    })
}

#[test]
fn little_is_waited_for_once_nothing_lives() {
    let crashes = vec![start(), wait(path("inbox/never"), 30_000), wait(path("inbox/none"), 30_000)];
    let waited = waited_ms(&carry_out("exit 3", vec![queue()], crashes.clone()));
    assert!(waited.len() == 2 && waited.iter().all(|ms| (900..10_000).contains(ms)), "{waited:?}");
    // A process left behind in a session of its own, and another worker.
    let leaves = "cd \"$ROOT/queue\"; setsid sh -c 'sleep 1.6; : > inbox/never; : > inbox/none' </dev/null >/dev/null 2>&1 &";
    let transcript = carry_out(leaves, vec![queue()], crashes.clone());
    assert_eq!(missed(&transcript), [], "{:?}", transcript.events);
    let works = "mkdir \"$ROOT/one\" 2>/dev/null || exit 3; cd \"$ROOT/queue\"; sleep 1.6; : > inbox/never; : > inbox/none";
    let second = Step { session: 1, ..start() };
    let waits = crashes[1..].iter().map(|wait| Step { session: 1, ..wait.clone() });
    let steps = [start(), step(Act::Wait { ms: 100 }), second].into_iter().chain(waits).collect();
    let transcript = carry_out(works, vec![queue()], steps);
    assert_eq!(missed(&transcript), [], "{:?}", transcript.events);
}

#[test]
fn what_an_actor_does_that_outlives_all_is_waited_for() {
    let leaves = "setsid env -i \"$ROOT/job\" </dev/null >/dev/null 2>&1 & sleep 0.3";
    let steps = vec![start(), wait(AwaitedEffect::Ends { actor: "job".to_owned(), end: 0 }, 30_000)];
    let transcript = carry_out(leaves, vec![queue(), job(vec![ActorStep::Sleep { ms: 2_500 }])], steps);
    assert_eq!(missed(&transcript), [], "{:?}", transcript.events);
}

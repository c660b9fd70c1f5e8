//! Tests of consecutive conversations in one process.

use super::*;
use crate::drive::lab::IdleProcess;

/// Prefixes each line with the number of lines so far.
const COUNTING: &str = "n=0; while read -r line; do n=$((n + 1)); echo \"$n $line\"; done";

fn plan(rest: Vec<Step>, apart: bool) -> Plan {
    let opening = Step { setup: true, ..hello(1) };
    let session = Session { command: "command".to_owned(), apart, ..Session::default() };
    Plan { sessions: vec![session], steps: [vec![opening], rest].concat(), ..Plan::default() }
}

/// Runs these conversations, each in the process of the one before if possible.
fn one_by_one(peer: &Peer, plans: Vec<Plan>) -> Vec<(Transcript, bool)> {
    let scratch = tempfile::tempdir().unwrap();
    let lab = Lab {
        peer,
        budget: Budget { reply: 3 * SHORT, exit: SHORT, ..Budget::default() },
        actor_exe: &ActorExe::new(Path::new("/nowhere")),
        scratch: scratch.path(),
        timeout_scale: 1.0,
    };
    let mut kept: Option<IdleProcess> = None;
    let had = plans.into_iter().map(|plan| {
        let (transcript, left) = lab.execute_in("kept", &Arc::new(plan), kept.take()).unwrap();
        kept = left;
        (transcript, kept.is_some())
    });
    had.collect()
}

#[test]
fn a_process_goes_on_with_the_next_conversation_as_if_it_had_just_been_opened() {
    let canary = || Step { canary: true, ..hello(1) };
    let plans =
        vec![plan(vec![canary()], false), plan(vec![canary(), canary()], false), plan(vec![canary()], true)];
    let had = one_by_one(&sh(COUNTING), plans);
    let said: Vec<_> =
        had.iter().map(|(transcript, _)| String::from_utf8(transcript.stdout(0)).unwrap()).collect();
    assert_eq!(said[0], "1 hello\n2 hello\n");
    assert_eq!(said[1], "1 hello\n3 hello\n4 hello\n", "its opening, and what came since then");
    assert_eq!(said[2], "1 hello\n2 hello\n", "a process of its own");
    let starts = |transcript: &Transcript| {
        transcript.events.iter().filter(|event| matches!(event.kind, EventKind::Started { .. })).count()
    };
    for (transcript, _) in &had {
        assert_eq!(starts(transcript), 1, "{:?}", transcript.events);
        assert!(transcript.events.is_sorted_by_key(|event| event.at_us), "{:?}", transcript.events);
        assert_eq!(in_vain(transcript), []);
    }
    let took_us = had[1].0.events.last().unwrap().at_us;
    let first_us = had[0].0.events.last().unwrap().at_us;
    assert!(took_us < first_us + 20_000_000, "the time between is left out");
    assert_eq!(had.iter().map(|(_, is_kept)| *is_kept).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn a_process_that_owes_an_answer_or_ended_is_not_kept() {
    let unanswered = plan(vec![hello(2)], false);
    let ends = "read -r line; echo \"$line\"; read -r line; echo \"$line\"";
    let half = "while read -r line; do printf '%s\\nhalf' \"$line\"; done";
    for (script, plan) in [
        (COUNTING, unanswered),
        (ends, plan(vec![Step { canary: true, ..hello(1) }, hello(1)], false)),
        (half, plan(vec![Step { canary: true, ..hello(1) }], false)),
    ] {
        let had = one_by_one(&sh(script), vec![plan]);
        assert!(!had[0].1, "{script}: {:?}", had[0].0.events);
    }
}

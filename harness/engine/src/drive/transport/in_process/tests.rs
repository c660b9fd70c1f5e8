//! Tests with machines of a few lines, each for one behaviour.

use super::*;
use crate::data::transcript::Awaited;

const LONG: Duration = Duration::from_secs(20);
const MIB: usize = 1 << 20;

#[derive(Default)]
struct Tape(Vec<(u64, EventKind)>);

impl Log for Tape {
    fn record(&mut self, at_us: u64, kind: EventKind) {
        self.0.push((at_us, kind));
    }
}

impl Tape {
    fn stdout(&self) -> Vec<u8> {
        let received = |(_, kind): &(u64, EventKind)| match kind {
            EventKind::Received { bytes } => Some(bytes.0.clone()),
            _ => None,
        };
        self.0.iter().filter_map(received).collect::<Vec<_>>().concat()
    }

    fn last(&self) -> &EventKind {
        &self.0.last().unwrap().1
    }
}

/// Machine made from a function.
struct FnMachine<F>(F);

impl<F: FnMut(MachineEvent<'_>, Millis, &mut Vec<Action>)> Machine for FnMachine<F> {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.0(event, now, actions);
    }
}

fn connect(
    does: impl FnMut(MachineEvent<'_>, Millis, &mut Vec<Action>) + 'static,
) -> (InProcessConnection, Tape) {
    (InProcessConnection::new(Box::new(FnMachine(does)), &Budget::default()), Tape::default())
}

fn echo(event: MachineEvent<'_>, _now: Millis, actions: &mut Vec<Action>) {
    match event {
        MachineEvent::Stdin(bytes) => actions.push(Action::Stdout(bytes.to_vec())),
        MachineEvent::StdinEof => actions.push(Action::Exit(0)),
        MachineEvent::Terminate => actions.extend([Action::Stdout(b"bye\n".to_vec()), Action::Exit(7)]),
        _ => panic!("{event:?}"),
    }
}

#[test]
fn what_is_queued_is_answered_without_time_passing() {
    let (mut connection, mut tape) = connect(echo);
    for n in 1..=3 {
        connection.queue(b"line\n".to_vec(), Chunking::Whole);
        assert_eq!(connection.pump(Until::Frames(n), LONG, &mut tape), Pumped::Reached);
    }
    assert_eq!(connection.now_us(), 0);
    connection.close_stdin();
    assert_eq!(connection.pump(Until::Exited, LONG, &mut tape), Pumped::Reached);
    assert_eq!(connection.exit(), Some(Exit::Code(0)));
    connection.finish(&mut tape);
    assert_eq!(tape.stdout(), b"line\nline\nline\n");
    let tail: Vec<_> = tape.0[3..].iter().map(|(_, kind)| kind.clone()).collect();
    assert_eq!(
        tail,
        [EventKind::StdinClosed, EventKind::StdoutClosed, EventKind::Exited { exit: Exit::Code(0) }]
    );
    assert_eq!(connection.pump(Until::Frames(9), LONG, &mut tape), Pumped::Gone);
}

#[test]
fn chunks_are_events_and_large_ones_are_cut_as_a_pipe_cuts_them() {
    for (chunking, bytes, events) in
        [(Chunking::Every(2), 5, 3), (Chunking::Dribble, 100, 100), (Chunking::Whole, MIB, 16)]
    {
        let mut count = 0;
        let (mut connection, mut tape) = connect(move |event, _, actions| {
            if let MachineEvent::Stdin(bytes) = event {
                count += 1;
                if bytes.ends_with(b"\n") {
                    actions.push(Action::Stdout(format!("{count}\n").into_bytes()));
                }
            }
        });
        connection.queue([vec![b'x'; bytes - 1], vec![b'\n']].concat(), chunking);
        assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
        assert_eq!(tape.stdout(), format!("{events}\n").into_bytes(), "{chunking:?}");
    }
}

#[test]
fn a_wait_jumps_to_the_moment_the_machine_asked_for() {
    let (mut connection, mut tape) = connect(|event, now, actions| match event {
        MachineEvent::Stdin(_) => actions.push(Action::WakeAt(now + 5_000)),
        MachineEvent::Wake => actions.push(Action::Stdout(format!("{now}\n").into_bytes())),
        _ => {}
    });
    connection.queue(b"x".to_vec(), Chunking::Whole);
    let waited = connection.pump(Until::Frames(1), Duration::from_millis(4_000), &mut tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Frames));
    assert_eq!(connection.now_us(), 4_000_000);
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
    assert_eq!(connection.now_us(), 5_000_000);
    assert_eq!(connection.pump(Until::Elapsed(LONG), LONG, &mut tape), Pumped::Reached);
    assert_eq!(connection.now_us(), 25_000_000);
    assert_eq!(tape.stdout(), b"5000\n");
}

#[test]
fn a_machine_that_wakes_for_ever_meets_its_deadline() {
    let (mut connection, mut tape) = connect(|event, now, actions| {
        if matches!(event, MachineEvent::Stdin(_) | MachineEvent::Wake) {
            actions.push(Action::WakeAt(now));
        }
    });
    connection.queue(b"x".to_vec(), Chunking::Whole);
    let waited = connection.pump(Until::Frames(1), Duration::from_millis(10), &mut tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Frames));
    assert_eq!(connection.now_us(), 10_000);
}

/// Takes one byte, then nothing for a second.
#[derive(Default)]
struct Slow {
    busy: bool,
}

impl Machine for Slow {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            MachineEvent::Stdin(bytes) => {
                assert!(!self.busy && bytes.len() == 1);
                self.busy = true;
                actions.push(Action::WakeAt(now + 1_000));
            }
            MachineEvent::Wake => {
                self.busy = false;
                actions.push(Action::Stdout(b"\n".to_vec()));
            }
            _ => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        !self.busy
    }
}

#[test]
fn a_busy_machine_is_not_fed() {
    let mut tape = Tape::default();
    let mut connection = InProcessConnection::new(Box::new(Slow::default()), &Budget::default());
    connection.queue(b"abc".to_vec(), Chunking::Dribble);
    let waited = connection.pump(Until::Written, Duration::from_millis(1_500), &mut tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Writing));
    assert_eq!(connection.pump(Until::Written, LONG, &mut tape), Pumped::Reached);
    assert_eq!(connection.now_us(), 2_000_000);
    assert_eq!(connection.pump(Until::Frames(3), LONG, &mut tape), Pumped::Reached);
    assert_eq!(connection.now_us(), 3_000_000);
    connection.finish(&mut tape);
    assert_eq!(*tape.last(), EventKind::Killed);
}

#[test]
fn fetches_fail() {
    let (mut connection, mut tape) = connect(|event, _, actions| match event {
        MachineEvent::Stdin(_) => actions.push(Action::Fetch {
            host: "127.0.0.1".to_owned(),
            port: 80,
            path: "/".to_owned(),
            host_header: "localhost".to_owned(),
            body_bytes_max: 1_000,
            timeout_ms: 1_000,
        }),
        MachineEvent::Fetched(Err(words)) => actions.push(Action::Stdout(words.into_bytes())),
        _ => {}
    });
    connection.queue(b"x".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Written, LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.stdout(), b"there is no network here");
}

#[test]
fn ends_and_signals_are_recorded_as_a_process_shows_them() {
    for (name, exit) in [("TERM", Exit::Code(7)), ("INT", Exit::Signal(2)), ("KILL", Exit::Signal(9))] {
        let (mut connection, mut tape) = connect(echo);
        connection.signal(name, &mut tape);
        assert_eq!(connection.pump(Until::Exited, LONG, &mut tape), Pumped::Reached);
        assert_eq!(connection.exit(), Some(exit), "{name}");
        assert_eq!(tape.0[0].1, EventKind::Signalled { signal: name.to_owned() });
    }
    let (mut connection, mut tape) = connect(|_, _, actions| {
        actions.extend([Action::Stderr(b"oops".to_vec()), Action::Abort, Action::Stdout(b"late".to_vec())]);
    });
    connection.queue(b"xyz".to_vec(), Chunking::Every(1));
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Gone);
    assert_eq!(connection.exit(), Some(Exit::Signal(6)));
    connection.finish(&mut tape);
    assert_eq!(tape.stdout(), b"");
    assert!(tape.0.iter().any(|(_, kind)| *kind == EventKind::StdinBroken { unwritten_bytes: 2 }));
    assert!(matches!(tape.last(), EventKind::Stderr { total_bytes: 4, .. }));
}

#[test]
fn too_much_output_ends_the_session() {
    let budget = Budget { stdout_bytes_max: 5, ..Budget::default() };
    let mut tape = Tape::default();
    let mut connection = InProcessConnection::new(Box::new(FnMachine(echo)), &budget);
    connection.queue(b"12345\n".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::OverBudget);
    connection.finish(&mut tape);
    assert_eq!(tape.stdout(), b"12345");
    assert_eq!(*tape.last(), EventKind::StdoutOverflow { bytes_max: 5, lines_max: None });
}

//! Tests with tiny real peers, mostly shell scripts. Every wait has a deadline and none is a sleep.

use std::time::Duration;

use rustix::process::Pid;
use tempfile::TempDir;

use super::pump::DRAIN_GRACE;
use super::*;
use crate::data::transcript::{Awaited, Bytes};
use crate::drive::transport::Until;

const LONG: Duration = Duration::from_secs(20);
/// Deadline of waits that should fail.
const SHORT: Duration = Duration::from_millis(60);

#[derive(Default)]
struct Tape(Vec<(u64, EventKind)>);

impl Log for Tape {
    fn record(&mut self, at_us: u64, kind: EventKind) {
        self.0.push((at_us, kind));
    }
}

impl Tape {
    fn stdout(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for (_, kind) in &self.0 {
            if let EventKind::Received { bytes: Bytes(bytes) } = kind {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    fn has(&self, wanted: impl Fn(&EventKind) -> bool) -> bool {
        self.0.iter().any(|(_, kind)| wanted(kind))
    }

    fn leaks(&self) -> Vec<(i32, String)> {
        let leak = |(_, kind): &(u64, EventKind)| match kind {
            EventKind::LeakedProcess { pid, command } => Some((*pid, command.clone())),
            _ => None,
        };
        self.0.iter().filter_map(leak).collect()
    }

    /// Names of the events in order; consecutive `received` count once.
    fn outline(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, kind) in &self.0 {
            let kind = format!("{kind:?}");
            names.push(kind.split([' ', '{']).next().unwrap().to_owned());
        }
        names.dedup();
        names
    }
}

struct Peer {
    connection: ChildConnection,
    tape: Tape,
    temp: TempDir,
}

fn spec(argv: &[&str]) -> (ChildSpec, TempDir) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let temp = TempDir::new().unwrap();
    let value = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let argv = argv.iter().map(OsString::from).collect();
    let mut spec = ChildSpec::new(argv, temp.path().to_owned(), ("PEERPROOF_TEST_MARKER".to_owned(), value));
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    (spec, temp)
}

fn start_with(budget: Budget, argv: &[&str]) -> Peer {
    let (spec, temp) = spec(argv);
    let mut tape = Tape::default();
    let connection = ChildConnection::spawn(&spec, &budget, &mut tape).unwrap();
    Peer { connection, tape, temp }
}

fn start(argv: &[&str]) -> Peer {
    start_with(Budget::default(), argv)
}

fn sh(script: &str) -> Peer {
    start(&["/bin/sh", "-c", script])
}

impl Peer {
    fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.connection.queue(bytes.into(), Chunking::Whole);
    }

    fn pump(&mut self, until: Until) -> Pumped {
        self.connection.pump(until, LONG, &mut self.tape)
    }

    fn finish(&mut self) {
        self.connection.finish(&mut self.tape);
        for (before, after) in self.tape.0.iter().zip(&self.tape.0[1..]) {
            assert!(before.0 <= after.0, "time runs backwards: {before:?} {after:?}");
        }
    }
}

fn is_alive(pid: i32) -> bool {
    rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

#[test]
fn cat_gives_back_what_it_gets_and_ends_at_eof() {
    let mut peer = start(&["cat"]);
    for n in 1..=3 {
        peer.send(format!("line {n}\n"));
        assert_eq!(peer.pump(Until::Frames(n)), Pumped::Reached);
    }
    assert_eq!(peer.connection.exit(), None);
    peer.connection.close_stdin();
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    assert_eq!(peer.connection.exit(), Some(Exit::Code(0)));
    peer.finish();
    assert_eq!(peer.tape.stdout(), b"line 1\nline 2\nline 3\n");
    assert_eq!(peer.tape.outline(), ["Started", "Received", "StdinClosed", "StdoutClosed", "Exited"]);
}

#[test]
fn ten_megabytes_pass_through_while_both_pipes_are_full() {
    let mut peer = start(&["cat"]);
    let line = [vec![b'x'; 10 << 20], vec![b'\n']].concat();
    peer.send(line.clone());
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    peer.finish();
    assert!(peer.tape.stdout() == line);
    assert!(peer.tape.has(|kind| *kind == EventKind::Killed));
}

#[test]
fn true_is_gone_before_any_frame_and_its_exit_is_on_record() {
    let mut peer = start(&["true"]);
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Gone);
    assert_eq!(peer.connection.exit(), Some(Exit::Code(0)));
    assert_eq!(peer.pump(Until::Elapsed(LONG)), Pumped::Gone);
    peer.finish();
    assert_eq!(peer.tape.outline(), ["Started", "StdoutClosed", "Exited"]);
}

#[test]
fn a_silent_peer_meets_the_deadline_and_is_killed_at_the_end() {
    let mut peer = start(&["sleep", "1000"]);
    let waited = peer.connection.pump(Until::Frames(1), SHORT, &mut peer.tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Frames));
    let waited = peer.connection.pump(Until::Exited, SHORT, &mut peer.tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Exit));
    assert_eq!(peer.pump(Until::Elapsed(SHORT)), Pumped::Reached);
    let pid = peer.connection.pid().unwrap();
    peer.finish();
    assert!(!is_alive(pid));
    assert_eq!(peer.connection.exit(), None, "it did not end by itself");
    assert_eq!(peer.tape.outline(), ["Started", "Killed"]);
}

#[test]
fn endless_output_ends_at_the_budget() {
    let budget = Budget { stdout_bytes_max: 100_000, ..Budget::default() };
    let mut peer = start_with(budget, &["yes"]);
    assert_eq!(peer.pump(Until::Exited), Pumped::OverBudget);
    assert_eq!(peer.pump(Until::Exited), Pumped::OverBudget);
    peer.finish();
    assert_eq!(peer.tape.stdout().len(), 100_000);
    assert!(peer.tape.has(|kind| *kind == EventKind::StdoutOverflow { bytes_max: 100_000, lines_max: None }));
    assert!(!peer.tape.has(|kind| matches!(kind, EventKind::Exited { .. })));
}

#[test]
fn endless_short_lines_end_at_the_budget() {
    let budget = Budget { stdout_lines_max: 1_000, ..Budget::default() };
    let mut peer = start_with(budget, &["yes"]);
    assert_eq!(peer.pump(Until::Exited), Pumped::OverBudget);
    peer.finish();
    assert_eq!(memchr::memchr_iter(b'\n', &peer.tape.stdout()).count(), 1_000);
    assert!(peer.tape.has(|kind| matches!(kind, EventKind::StdoutOverflow { lines_max: Some(1_000), .. })));
}

#[test]
fn lines_of_exactly_the_budget_are_no_overflow() {
    let budget = Budget { stdout_lines_max: 3, ..Budget::default() };
    let mut peer = start_with(budget, &["printf", "1\\n2\\n3\\nrest"]);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    assert_eq!(peer.tape.stdout(), b"1\n2\n3\nrest");
}

#[test]
fn output_of_exactly_the_budget_is_no_overflow() {
    let budget = Budget { stdout_bytes_max: 4, ..Budget::default() };
    let mut peer = start_with(budget, &["printf", "abc\\n"]);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    assert_eq!(peer.tape.stdout(), b"abc\n");
}

#[test]
fn a_peer_that_closes_standard_input_breaks_the_writing_alone() {
    let mut peer = sh("exec 0</dev/null; echo closed; exec sleep 1000");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    // More than a pipe holds: a process just forked by another test may hold the pipe's end open until exec.
    peer.send("x".repeat(1 << 20));
    assert_eq!(peer.pump(Until::Written), Pumped::Gone);
    assert!(peer.tape.has(|kind| matches!(kind, EventKind::StdinBroken { unwritten_bytes: 1.. })));
    assert_eq!(peer.connection.exit(), None);
    peer.finish();
}

#[test]
fn a_peer_that_never_reads_does_not_block_reading() {
    let mut peer = sh("echo ready; exec sleep 1000");
    peer.send(vec![b'x'; 1 << 20]);
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    let waited = peer.connection.pump(Until::Written, SHORT, &mut peer.tape);
    assert_eq!(waited, Pumped::Deadline(Awaited::Writing));
    peer.finish();
    assert_eq!(peer.tape.stdout(), b"ready\n");
}

#[test]
fn a_peer_that_is_not_read_is_waited_for_until_it_takes_no_more() {
    let mut peer = sh("echo ready; exec cat");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    let line = [vec![b'x'; 99], b"\n".to_vec()].concat();
    peer.send(line.repeat(4_000));
    peer.connection.write_unread(SHORT, &mut peer.tape);
    let unread = peer.tape.stdout().len();
    assert!((1..64 << 10).contains(&unread), "{unread}");
    assert_eq!(peer.pump(Until::Frames(4_001)), Pumped::Reached);
    peer.finish();
}

#[test]
fn what_a_peer_wrote_before_it_ended_unread_comes_before_its_end() {
    let mut peer = sh("read line; echo $line; exit 3");
    peer.send("x\n");
    peer.connection.write_unread(DRAIN_GRACE * 2, &mut peer.tape);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    let outline = peer.tape.outline();
    let at = |name: &str| outline.iter().position(|it| it == name).unwrap();
    assert!(at("Received") < at("Exited"), "{outline:?}");
}

#[test]
fn what_a_peer_that_ended_did_not_take_is_counted() {
    let mut peer = sh("read line; echo $line; exit 3");
    peer.send([b"hello\n".to_vec(), vec![b'x'; 1 << 20]].concat());
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    assert_eq!(peer.connection.exit(), Some(Exit::Code(3)));
    peer.finish();
    let broken = |kind: &EventKind| matches!(kind, EventKind::StdinBroken { unwritten_bytes } if *unwritten_bytes > 900_000);
    assert!(peer.tape.has(broken), "{:?}", peer.tape.outline());
}

#[test]
fn signals_end_a_peer_and_are_told_from_exits() {
    let mut peer = start(&["sleep", "1000"]);
    peer.connection.signal("TERM", &mut peer.tape);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    assert_eq!(peer.connection.exit(), Some(Exit::Signal(15)));
    peer.finish();
    assert_eq!(peer.tape.outline(), ["Started", "Signalled", "StdoutClosed", "Exited"]);

    let mut peer = sh("kill -ABRT $$");
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    assert_eq!(peer.connection.exit(), Some(Exit::Signal(6)));
    peer.finish();
}

#[test]
fn a_broken_pipe_ends_a_peer_as_it_does_under_a_shell() {
    let mut peer = sh("read line; trap - PIPE; kill -PIPE $$; echo survived");
    peer.send("go\n");
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    assert_eq!(peer.connection.exit(), Some(Exit::Signal(13)));
    peer.finish();
}

#[test]
fn a_flood_on_standard_error_is_drained_counted_and_kept_in_part() {
    let mut peer = sh("head -c 10485760 /dev/zero >&2; echo done");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    let kept = Budget::default().stderr_bytes_kept;
    assert!(peer.tape.has(|kind| {
        matches!(kind, EventKind::Stderr { bytes, total_bytes: 10_485_760 } if bytes.0.len() == kept)
    }));
}

#[test]
fn a_child_that_stays_is_a_leak_and_dies() {
    for script in ["sleep 1000 & echo $!", "setsid sleep 1000 & echo $!", "set -m; sleep 1000 & echo $!"] {
        let mut peer = sh(script);
        // It holds standard output open, which must not delay the exit.
        assert_eq!(peer.pump(Until::Exited), Pumped::Reached, "{script}");
        assert_eq!(peer.connection.exit(), Some(Exit::Code(0)));
        let pid: i32 = String::from_utf8(peer.tape.stdout()).unwrap().trim().parse().unwrap();
        peer.finish();
        assert_eq!(peer.tape.leaks(), [(pid, "sleep".to_owned())], "{script}");
        assert!(!is_alive(pid), "{script}");
    }
}

#[test]
fn a_leak_in_a_session_of_its_own_is_found_through_its_double_fork() {
    let mut peer = sh("(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!; wait' &)");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    let pid: i32 = String::from_utf8(peer.tape.stdout()).unwrap().trim().parse().unwrap();
    peer.finish();
    let leaks = peer.tape.leaks();
    assert_eq!(leaks.len(), 2, "{leaks:?}");
    assert!(leaks.iter().all(|(pid, _)| !is_alive(*pid)));
    assert!(leaks.iter().any(|(leaked, _)| *leaked == pid));
}

#[test]
fn children_of_a_killed_peer_die_with_it_and_are_no_leaks() {
    let mut peer = sh("setsid env -i sleep 1000 & echo $!; wait");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    let pid: i32 = String::from_utf8(peer.tape.stdout()).unwrap().trim().parse().unwrap();
    peer.finish();
    assert_eq!(peer.tape.leaks(), []);
    assert!(!is_alive(pid));
}

#[test]
fn a_child_that_follows_its_peer_is_no_leak() {
    // The child ends with its standard input, whose other end only the peer holds.
    let mut peer = sh("read line | cat >/dev/null & echo started");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    peer.connection.close_stdin();
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    assert_eq!(peer.tape.leaks(), []);
}

#[test]
fn dropping_a_connection_ends_its_peer() {
    let peer = sh("sleep 1000 & wait");
    let pid = peer.connection.pid().unwrap();
    assert!(is_alive(pid));
    drop(peer);
    assert!(!is_alive(pid));
}

#[test]
fn files_left_in_the_temporary_directory_are_named() {
    let mut peer = sh("mkdir $TMPDIR/a $TMPDIR/b; : >$TMPDIR/a/file; : >$TMPDIR/gone; rm $TMPDIR/gone");
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    let left: Vec<&EventKind> = peer
        .tape
        .0
        .iter()
        .map(|(_, kind)| kind)
        .filter(|kind| matches!(kind, EventKind::LeftFile { .. }))
        .collect();
    let expected = ["a/file", "b"].map(|path| EventKind::LeftFile { path: path.to_owned() });
    assert_eq!(left, expected.iter().collect::<Vec<_>>(), "{:?}", peer.temp.path());
}

/// Number of reads by `dd` that were shorter than requested.
fn partial_reads() -> u32 {
    let mut peer = start(&["dd", "bs=64", "of=/dev/null"]);
    // It blocks in a read before anything is written.
    assert_eq!(peer.pump(Until::Elapsed(Duration::from_millis(50))), Pumped::Reached);
    peer.connection.queue(vec![b'x'; 100], Chunking::Dribble);
    peer.connection.close_stdin();
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    let Some((_, EventKind::Stderr { bytes, .. })) = peer.tape.0.last() else {
        panic!("{:?}", peer.tape.0);
    };
    let text = String::from_utf8(bytes.0.clone()).unwrap();
    text.split(['+', ' ']).nth(1).unwrap().parse().unwrap()
}

/// Peer that reads only one block, once a file exists.
#[test]
fn what_is_dribbled_waits_for_the_first_read_of_a_peer_that_starts() {
    let mut peer = sh("until [ -e \"$TMPDIR/go\" ]; do :; done; dd bs=64 count=1 2>/dev/null; echo");
    peer.connection.queue(vec![b'x'; 32], Chunking::Dribble);
    assert_eq!(peer.pump(Until::Elapsed(Duration::from_millis(50))), Pumped::Reached);
    std::fs::write(peer.temp.path().join("go"), "").unwrap();
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    assert_eq!(peer.tape.stdout(), b"x\n", "the first read took one byte alone");
    peer.finish();
}

/// A delayed reader reads everything at once; bytes in one write would never be read separately.
#[test]
fn dribbled_bytes_arrive_in_reads_of_their_own() {
    assert!((0..20).any(|_| partial_reads() > 1));
}

#[test]
fn a_dribbled_payload_arrives_whole() {
    for bytes in [1_000, 65_536, 1 << 20] {
        let mut peer = start(&["cat"]);
        let line = [vec![b'x'; bytes - 1], vec![b'\n']].concat();
        peer.connection.queue(line.clone(), Chunking::Dribble);
        assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
        assert!(peer.tape.stdout() == line);
        peer.finish();
    }
}

#[test]
fn memory_counts_children_and_their_end() {
    let mut peer = sh("sleep 1000 & echo up; wait");
    assert_eq!(peer.pump(Until::Frames(1)), Pumped::Reached);
    let both = peer.connection.memory_hwm_bytes().unwrap();
    let shell = process::hwm_bytes(peer.connection.pid().unwrap()).unwrap();
    assert!(both > shell, "{both} {shell}");
    peer.finish();
    assert_eq!(peer.connection.memory_hwm_bytes(), None);
}

#[test]
fn too_much_memory_ends_the_session() {
    let budget = Budget { memory_bytes_max: 1_000, ..Budget::default() };
    let mut peer = start_with(budget, &["sleep", "1000"]);
    assert_eq!(peer.pump(Until::Exited), Pumped::OverBudget);
    peer.finish();
    // The end of its output may be noticed before pumping stops.
    assert_eq!(peer.tape.outline()[..3], ["Started", "Memory", "Killed"]);
}

#[test]
fn what_cannot_start_says_so() {
    for (argv, kind) in [
        (&["no-such-program-anywhere"][..], io::ErrorKind::NotFound),
        (&["/nonexistent/peer"], io::ErrorKind::NotFound),
        (&["/dev/null"], io::ErrorKind::PermissionDenied),
        (&[], io::ErrorKind::InvalidInput),
    ] {
        for open_files in [None, Some(64)] {
            let (mut spec, _temp) = spec(argv);
            spec.limits.open_files = open_files;
            let mut tape = Tape::default();
            let error = ChildConnection::spawn(&spec, &Budget::default(), &mut tape).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(argv.first().is_none_or(|program| error.to_string().contains(program)), "{error}");
            assert_eq!(tape.0, []);
        }
    }
}

#[test]
fn environment_directory_limits_and_placement_are_what_the_spec_says() {
    let script =
        "echo $A $HOME-; pwd; ulimit -n; [ \"$TMPDIR\" ] && grep Cpus_allowed_list /proc/self/status";
    let (mut spec, _temp) = spec(&["sh", "-c", script]);
    spec.env.push(("A".into(), "b".into()));
    spec.current_dir = Some("/usr".into());
    spec.limits.open_files = Some(40);
    spec.cpus = vec![0];
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let mut tape = Tape::default();
    let mut connection = ChildConnection::spawn(&spec, &Budget::default(), &mut tape).unwrap();
    assert_eq!(connection.pump(Until::Exited, LONG, &mut tape), Pumped::Reached);
    let text = String::from_utf8(tape.stdout()).unwrap();
    assert_eq!(text, "b -\n/usr\n40\nCpus_allowed_list:\t0\n");
    assert!(rustix::thread::sched_getaffinity(None).unwrap() == before);
}

#[test]
fn connections_on_several_threads_do_not_touch_each_other() {
    let talk = || {
        for _ in 0..10 {
            let mut peer = sh("sleep 1000 & cat; kill $!; wait");
            for n in 1..=10 {
                peer.send("ping\n");
                assert_eq!(peer.pump(Until::Frames(n)), Pumped::Reached);
            }
            peer.connection.close_stdin();
            assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
            peer.finish();
            assert_eq!(peer.tape.leaks(), []);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(talk);
        }
    });
}

#[test]
fn a_killer_that_outlives_its_peer_kills_nothing() {
    let mut peer = start(&["true"]);
    let killer = peer.connection.killer();
    assert_eq!(peer.pump(Until::Exited), Pumped::Reached);
    peer.finish();
    // The process or group that has the id now is not the peer.
    let mut stranger = Command::new("/bin/sleep");
    stranger.arg("1000").process_group(0);
    let mut stranger = stranger.spawn().unwrap();
    let killer = Killer { pid: Pid::from_child(&stranger), ..killer };
    killer.kill();
    let lived = is_alive(killer.pid.as_raw_nonzero().get()) && stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(lived);
}

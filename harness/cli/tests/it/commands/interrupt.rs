//! Tests of interrupted and killed runs: their peers end, and measurements are kept.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use peerproof_engine::data::clause::Side;
use peerproof_engine::run::results::{ResultsFile, StoredRun};
use peerproof_engine::run::verdict::CheckResult;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::start::{self, binary};

/// Deadline that only a hanging run reaches.
const LONG: Duration = Duration::from_secs(60);

fn start(folder: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(binary());
    command.current_dir(folder).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    start::start(&mut command)
}

/// Process id in `file`, once written.
fn pid_in(file: &Path) -> Pid {
    let deadline = Instant::now() + LONG;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n').and_then(|pid| Pid::from_raw(pid.parse().ok()?)) {
            return pid;
        }
        assert!(Instant::now() < deadline, "nobody wrote {}", file.display());
        std::thread::yield_now();
    }
}

fn handle(pid: Pid) -> OwnedFd {
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// True if the process ends within a generous deadline.
fn ends(handle: &OwnedFd) -> bool {
    let patience = Timespec::try_from(LONG).unwrap();
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&patience)).unwrap() == 1
}

/// Hangs, with a child in a session of its own; both write their ids.
const HANGS: &str = "setsid sh -c 'echo $$ > child; exec sleep 1000' & echo $$ > peer; exec sleep 1000";

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn peers_of_a_killed_harness_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = start(folder.path(), &["check", "toolhost", "--", "sh", "-c", HANGS]);
    let peers = ["peer", "child"].map(|name| handle(pid_in(&folder.path().join(name))));
    harness.kill().unwrap();
    harness.wait().unwrap();
    for peer in &peers {
        assert!(ends(peer), "a peer outlives its harness");
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn servers_of_a_killed_harness_end() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["sh", "-c", HANGS, "{port}"];
    let url = "http://127.0.0.1:{port}/";
    let config =
        format!("[peer]\nboundary = \"json_rpc\"\nhttp = {{ command = {command:?}, url = {url:?} }}\n");
    fs::write(folder.path().join("peerproof.toml"), config).unwrap();
    let mut harness = start(folder.path(), &["check"]);
    let peers = ["peer", "child"].map(|name| handle(pid_in(&folder.path().join(name))));
    harness.kill().unwrap();
    harness.wait().unwrap();
    for peer in &peers {
        assert!(ends(peer), "a server outlives its harness");
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn peers_end_at_a_second_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = start(folder.path(), &["check", "toolhost", "--", "sh", "-c", HANGS]);
    let peers = ["peer", "child"].map(|name| handle(pid_in(&folder.path().join(name))));
    for _ in 0..2 {
        let _ = kill_process(Pid::from_child(&harness), Signal::INT);
    }
    assert_eq!(harness.wait().unwrap().code(), Some(130));
    for peer in &peers {
        assert!(ends(peer), "a peer outlives its harness");
    }
}

/// Interrupts a command once the results in `file` contain `text`, long before its waiting checks finish.
fn interrupt_at(mut harness: Child, file: &Path, text: &str) {
    let deadline = Instant::now() + LONG / 2;
    while !fs::read_to_string(file).is_ok_and(|results| results.contains(text)) {
        assert!(Instant::now() < deadline, "the results never hold {text}");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&harness), Signal::INT).unwrap();
    assert_eq!(harness.wait().unwrap().code(), Some(130));
}

/// Beginning of the result of a first canary; the waiting checks come after it.
const CANARY_IS_THROUGH: &str = "/canary/plain-request\",\"title";

/// Never answers and never ends.
const SILENT: &str = "echo $$ > peer; exec sleep 1000";

/// Starts a command with a hanging peer, interrupts it once the peer runs, and returns its status. All deadlines are so
/// long that only an interrupted wait ends within [`LONG`].
fn interrupted(folder: &Path, args: &[&str], signal: Signal) -> Option<i32> {
    let mut harness = start(folder, args);
    pid_in(&folder.join("peer"));
    kill_process(Pid::from_child(&harness), signal).unwrap();
    let ended = ends(&handle(Pid::from_child(&harness)));
    let _ = harness.kill();
    let code = harness.wait().unwrap().code();
    ended.then_some(code).flatten()
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn an_interrupt_reaches_every_wait() {
    let peer = ["--timeout-scale", "1000", "--", "sh", "-c", SILENT];
    let peers = format!("[[peer]]\nboundary = \"toolhost\"\nserve = [\"sh\", \"-c\", \"{SILENT}\"]\n");
    for (before, behind) in [
        (&["check", "toolhost"][..], &peer[..]),
        (&["doctor", "toolhost"], &peer),
        (&["fuzz", "toolhost", "--time", "1000s"], &peer),
        (&["init", "toolhost"], &["--timeout-scale", "1000", "--", "sh", "-c", SILENT]),
        (&["bench", "toolhost", "--patience", "1000s"], &["--", "sh", "-c", SILENT]),
        (&["matrix", "peers.toml"], &peer[..2]),
        (&["matrix", "peers.toml", "--differential"], &peer[..2]),
        (&["record", "--boundary", "json_rpc", "--out", "o"], &["--", "sh", "-c", SILENT]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("peers.toml"), &peers).unwrap();
        let args = [before, behind].concat();
        for signal in [Signal::INT, Signal::TERM] {
            let _ = fs::remove_file(folder.path().join("peer"));
            assert_eq!(interrupted(folder.path(), &args, signal), Some(130), "{before:?}");
        }
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn an_interrupt_reaches_the_checks_of_every_boundary() {
    for boundary in peerproof::table::all() {
        let folder = tempfile::tempdir().unwrap();
        // It may start in a folder of its own.
        let script = format!("echo $$ > '{}/peer'; exec sleep 1000", folder.path().display());
        let mut args = vec!["check", boundary.name(), "--timeout-scale", "1000", "--", "sh", "-c", &script];
        args.extend(match boundary.name() {
            "run_log" => &["{log}", "{peer}"][..],
            "run_queue" => &["{queue}"],
            _ => &[],
        });
        assert_eq!(interrupted(folder.path(), &args, Signal::INT), Some(130), "{}", boundary.name());
    }
}

/// Checks that wait for a minute on any machine.
const WAITS: &str = "toolhost/serve/idempotency/repeat-just-*-the-ttl";

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_check_that_was_cut_short_is_untestable_and_the_results_are_whole() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo $$ > peer; exec {binary} peer toolhost --serve");
    let args =
        ["check", "toolhost", "--slow", "-k", WAITS, "-k", "*/canary/*", "--", "sh", "-c", script.as_str()];
    let harness = start(folder.path(), &args);
    // The header precedes the checks, and the checks that wait for a minute do not finish at once.
    let file = folder.path().join("peerproof-out/results.ndjson");
    interrupt_at(harness, &file, CANARY_IS_THROUGH);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let checks = of("check");
    assert_eq!(checks.len(), of("run")[0]["planned"].as_array().unwrap().len());
    assert_eq!(of("end").len(), 1);
    assert!(checks.iter().all(|check| check["verdict"] != "fail" && check["verdict"] != "hang"), "{text}");
    assert!(checks.iter().any(|check| check.to_string().contains("interrupted")), "{text}");
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn parts_beside_one_that_is_cut_short_stand_in_the_results_in_the_order_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    // Each service check starts Python several times. The other references are peers in the harness process.
    let args = ["check", "-k", "python_tool/service/*", "-k", "*/canary/*"];
    let harness = start(folder.path(), &args);
    let file = folder.path().join("peerproof-out/results.ndjson");
    interrupt_at(harness, &file, "\"id\":\"python_tool/");
    let runs = ResultsFile::load(&file).unwrap().whole().unwrap().runs;
    let mut boundaries: Vec<&str> = runs.iter().map(|run| run.header.boundary.as_str()).collect();
    boundaries.dedup();
    assert_eq!(
        boundaries,
        peerproof::table::all().iter().map(|boundary| boundary.name()).collect::<Vec<_>>()
    );
    let was_cut = |check: &CheckResult| check.verdict.is_untestable("interrupted");
    let of_service =
        |run: &&StoredRun| run.header.boundary == "python_tool" && run.header.side == Side::Provider;
    let service = runs.iter().find(of_service).unwrap();
    let cut = service.checks.iter().filter(|check| was_cut(check)).count();
    assert!(cut > 0 && cut < service.checks.len(), "{cut} of {}", service.checks.len());
    assert_eq!(service.footer.as_ref().map(|footer| footer.exit_code), Some(130));
    // Other parts may have finished or not.
    let failed = |check: &&CheckResult| check.verdict.is_failure();
    assert_eq!(runs.iter().flat_map(|run| &run.checks).find(failed), None);
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn peers_beside_one_that_was_cut_short_keep_what_they_came_to() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |argv: &[&str]| format!("[[peer]]\nboundary = \"toolhost\"\nserve = {argv:?}\n");
    let peers = serve(&[binary(), "peer", "toolhost", "--serve"]) + &serve(&["sh", "-c", "exit 3"]);
    fs::write(folder.path().join("peers.toml"), peers).unwrap();
    let args =
        ["matrix", "peers.toml", "--jobs", "2", "--slow", "-k", WAITS, "-k", "toolhost/serve/canary/plain-*"];
    let harness = start(folder.path(), &args);
    // The second finishes at once, and the checks of the first wait for a minute.
    let file = folder.path().join("peerproof-out/results.ndjson");
    interrupt_at(harness, &file, "{\"type\":\"end\"");
    let runs = ResultsFile::load(&file).unwrap().whole().unwrap().runs;
    let cut = |run: &StoredRun| {
        run.checks.iter().filter(|check| check.verdict.is_untestable("interrupted")).count()
    };
    // They are in the file in the order of finishing; the canary may have finished or not.
    let cut = |peer| runs.iter().filter(|run| run.header.peer == peer).map(&cut).collect::<Vec<_>>();
    assert_eq!(cut("sh"), [0], "{runs:?}");
    assert!(matches!(cut("peerproof")[..], [2 | 3]), "{runs:?}");
    assert!(folder.path().join("peerproof-out/matrix.json").exists());
}

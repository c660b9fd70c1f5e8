//! The example peers in other languages hold the contract, as the configuration beside each says.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use peerproof_engine::parallel;
use peerproof_engine::results::ResultsFile;
use peerproof_engine::verdict::Verdict;

/// What of an example peer is not asked: its configuration below `corpora/peers`, and what those checks need.
const WITHOUT: [(&str, &str); 6] = [
    ("node/policy_driver.toml", "bridge"),
    ("python/policy_driver.toml", "bridge"),
    // Its handshake says how far it goes: nothing binds its calls.
    ("python/python_tool_service.toml", "enforced"),
    // It is given a program for its jobs.
    ("python/run_queue_worker.toml", "MACHINA_POLICY_CMD"),
    ("sh/policy_driver.toml", "bridge"),
    ("sh/policy_driver.toml", "pick_inp64"),
];

/// Checks of a peer whose others are asked of the same peer without its features.
const FOLDERS: [(&str, &[&str]); 2] = [
    ("python/json_rpc_server_features.toml", &["auth", "rate", "gzip", "streams"]),
    ("python/json_rpc_http_server_features.toml", &["canary", "batches", "notifications", "sizes"]),
];

/// Every configuration of an example peer, but for the reference, which tests/cargo_test.rs checks, and for those that
/// take libraries, which their own script checks.
fn configurations() -> Vec<String> {
    let peers = Path::new("../../corpora/peers");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(peers).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.is_dir() && !folder.ends_with("third-party") {
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
            found.extend(files.map(|path| path.strip_prefix(peers).unwrap().to_string_lossy().into_owned()));
        }
    }
    found.sort();
    found
}

/// The folder of the interpreter itself, not what a version manager puts in its place: selectors do not start a script
/// for it.
fn python() -> PathBuf {
    let script = "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)), end='')";
    let python = std::process::Command::new("python3").args(["-c", script]).output();
    let python = python
        .ok()
        .filter(|output| output.status.success())
        .expect("the example peers need python3 on the PATH; install it to run this test");
    PathBuf::from(String::from_utf8(python.stdout).unwrap())
}

/// Runs the checks on the peer that `config` describes: none may fail, and nearly all must decide something, or what is
/// wrong with that.
fn fault(config: &str, path: &OsStr) -> Option<String> {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_peerproof"));
    command.env("PATH", path).args(["check", "--format", "plain", "--config"]);
    command.arg(Path::new("../../corpora/peers").join(config)).arg("--out").arg(out.path());
    for (_, folders) in FOLDERS.iter().filter(|(of, _)| *of == config) {
        command.args(folders.iter().flat_map(|folder| ["-k".to_owned(), format!("*/{folder}/*")]));
    }
    let status = command.timeout(Duration::from_secs(900)).output().unwrap().status;
    let results = ResultsFile::load(&out.path().join("results.ndjson")).unwrap().whole().unwrap();
    let without: Vec<String> =
        WITHOUT.iter().filter(|(of, _)| *of == config).map(|(_, what)| format!("`{what}`")).collect();
    // What a peer does not claim is not for it. Those that wait for minutes are not for a test.
    let beyond = |verdict: &Verdict| match verdict {
        Verdict::NotClaimed(_) => true,
        Verdict::NotRun(why) => why.starts_with("slow: "),
        Verdict::Untestable(why) => without.iter().any(|what| why.contains(what)),
        _ => false,
    };
    let checks: Vec<_> = results.checks().filter(|check| !beyond(&check.verdict)).collect();
    let decided = checks.iter().filter(|check| check.verdict.is_good()).count();
    let wrong: Vec<_> = checks
        .iter()
        .filter(|check| {
            !check.verdict.is_good() && !matches!(check.verdict, Verdict::NotRun(_) | Verdict::Untestable(_))
        })
        .map(|check| (&check.id, &check.verdict, &check.findings))
        .collect();
    let is_right = status.code() == Some(0) && wrong.is_empty();
    let is_decided = decided >= 15 && decided * 100 >= checks.len() * 95;
    (!is_right || !is_decided)
        .then(|| format!("{config}: {status}, {decided} of {} decided, {wrong:#?}", checks.len()))
}

#[test]
fn example_peers_hold_the_contract() {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(python()).chain(std::env::split_paths(&usual))).unwrap();
    let has_node = std::process::Command::new("node").arg("--version").output();
    let has_node = has_node.is_ok_and(|output| output.status.success());
    let (asked, skipped): (Vec<String>, Vec<String>) =
        configurations().into_iter().partition(|config| has_node || !config.starts_with("node/"));
    if !skipped.is_empty() {
        eprintln!("SKIPPED: {skipped:?} need node on the PATH");
    }
    assert!(asked.len() > 10, "{asked:?}");
    let known: Vec<&str> = WITHOUT.iter().map(|it| it.0).chain(FOLDERS.iter().map(|it| it.0)).collect();
    let all = configurations();
    assert!(
        known.iter().all(|config| all.iter().any(|it| it == config)),
        "{known:?} name a peer that is gone"
    );
    let faults: Vec<String> =
        parallel::each(2, asked, |config| fault(&config, &path)).into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

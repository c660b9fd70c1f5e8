//! The example peers in other languages hold the contract, as the configuration beside each says.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use peerproof::results::ResultsFile;
use peerproof::verdict::Verdict;

/// Runs all checks on the peer that `config` describes: none may fail, and nearly all must decide something.
fn holds_the_contract(config: &str) {
    let python = std::process::Command::new("python3").arg("--version").output();
    assert!(
        python.is_ok_and(|output| output.status.success()),
        "the example peers need python3 on the PATH; install it to run this test"
    );
    let config = Path::new("../corpora/peers").join(config);
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_peerproof"));
    command.args(["check", "--format", "plain", "--config"]).arg(&config).arg("--out").arg(out.path());
    command.timeout(Duration::from_secs(900)).assert().code(0);
    let results = ResultsFile::load(&out.path().join("results.ndjson")).unwrap().whole().unwrap();
    let checks: Vec<_> = results.checks().collect();
    let decided = checks.iter().filter(|check| check.verdict.is_good()).count();
    let wrong: Vec<_> = checks
        .iter()
        .filter(|check| {
            !check.verdict.is_good() && !matches!(check.verdict, Verdict::NotRun(_) | Verdict::Untestable(_))
        })
        .map(|check| (&check.id, &check.verdict, &check.findings))
        .collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", config.display());
    assert!(
        decided * 100 >= checks.len() * 95,
        "{}: only {decided} of {} decided",
        config.display(),
        checks.len()
    );
}

#[test]
fn python_toolhost() {
    holds_the_contract("python/toolhost.toml");
}

#[test]
fn python_dispatcher() {
    holds_the_contract("python/dispatcher.toml");
}

#[test]
fn python_json_rpc_server() {
    holds_the_contract("python/json_rpc_server.toml");
}

#[test]
fn every_example_peer_is_checked() {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folders = vec![PathBuf::from("../corpora/peers")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path.strip_prefix("../corpora/peers").unwrap().to_owned());
            }
        }
    }
    found.sort();
    // The reference is checked by tests/cargo_test.rs.
    let checked =
        ["python/dispatcher.toml", "python/json_rpc_server.toml", "python/toolhost.toml", "reference.toml"];
    assert_eq!(found, checked.map(PathBuf::from));
}

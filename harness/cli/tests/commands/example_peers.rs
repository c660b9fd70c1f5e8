//! The example peers in other languages hold the contract, as the configuration beside each says.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use peerproof_engine::results::ResultsFile;
use peerproof_engine::verdict::Verdict;

/// Runs all checks on the peer that `config` describes: none may fail, and nearly all must decide something. The
/// features, roles and commands of `without` are those that the peer does not have.
fn holds_the_contract(config: &str, without: &[&str]) {
    holds_in_part(config, &[], without);
}

/// As `holds_the_contract`, with the checks of some folders alone; none: of all.
fn holds_in_part(config: &str, folders: &[&str], without: &[&str]) {
    // The interpreter itself, not what a version manager puts in its place: selectors do not start a script for it.
    let script = "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)), end='')";
    let python = std::process::Command::new("python3").args(["-c", script]).output();
    let python = python
        .ok()
        .filter(|output| output.status.success())
        .expect("the example peers need python3 on the PATH; install it to run this test");
    let python = PathBuf::from(String::from_utf8(python.stdout).unwrap());
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(python).chain(std::env::split_paths(&usual))).unwrap();
    let config = Path::new("../../corpora/peers").join(config);
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_peerproof"));
    command.env("PATH", path);
    command.args(["check", "--format", "plain", "--config"]).arg(&config).arg("--out").arg(out.path());
    for folder in folders {
        command.args(["-k", folder]);
    }
    command.timeout(Duration::from_secs(900)).assert().code(0);
    let results = ResultsFile::load(&out.path().join("results.ndjson")).unwrap().whole().unwrap();
    // A peer speaks on standard streams or over HTTP; what is about the other way is not for it.
    // Those that wait for minutes are not for a test.
    let beyond = |verdict: &Verdict| match verdict {
        Verdict::NotClaimed(what) => what == "http" || what == "stdio" || without.contains(&what.as_str()),
        Verdict::NotRun(why) => why.starts_with("slow: "),
        Verdict::Untestable(why) => without.iter().any(|what| why.contains(&format!("`{what}`"))),
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
    holds_the_contract("python/toolhost.toml", &[]);
}

#[test]
fn python_dispatcher() {
    holds_the_contract("python/dispatcher.toml", &[]);
}

#[test]
fn python_json_rpc_server() {
    holds_the_contract("python/json_rpc_server.toml", &["streaming", "auth", "rate_limit", "gzip"]);
}

#[test]
fn python_json_rpc_client() {
    holds_the_contract("python/json_rpc_client.toml", &[]);
}

#[test]
fn python_json_rpc_http_server() {
    holds_the_contract("python/json_rpc_http_server.toml", &["streaming", "auth", "rate_limit"]);
}

// What a server does besides is checked without features.
#[test]
fn python_json_rpc_server_with_every_feature() {
    let folders = ["auth", "rate", "gzip", "streams"].map(|folder| format!("json_rpc/stdio/{folder}"));
    holds_in_part("python/json_rpc_server_features.toml", &folders.each_ref().map(String::as_str), &[]);
}

#[test]
fn python_json_rpc_http_server_with_every_feature() {
    let folders =
        ["canary", "batches", "notifications", "sizes"].map(|folder| format!("json_rpc/http/{folder}"));
    holds_in_part("python/json_rpc_http_server_features.toml", &folders.each_ref().map(String::as_str), &[]);
}

#[test]
fn python_envelope_engine() {
    holds_the_contract("python/envelope_engine.toml", &[]);
}

#[test]
fn python_policy_selector() {
    holds_the_contract("python/policy_select.toml", &[]);
}

#[test]
fn python_policy_driver() {
    holds_the_contract("python/policy_driver.toml", &["bridge"]);
}

#[test]
fn sh_policy_driver() {
    holds_the_contract("sh/policy_driver.toml", &["bridge", "pick_inp64"]);
}

#[test]
fn node_policy_driver() {
    let node = std::process::Command::new("node").arg("--version").output();
    if node.is_ok_and(|output| output.status.success()) {
        holds_the_contract("node/policy_driver.toml", &["bridge"]);
    } else {
        eprintln!("SKIPPED: the driver in JavaScript needs node on the PATH");
    }
}

#[test]
fn every_example_peer_is_checked() {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folders = vec![PathBuf::from("../../corpora/peers")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Those take libraries; their own script checks them.
                if !path.ends_with("third-party") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path.strip_prefix("../../corpora/peers").unwrap().to_owned());
            }
        }
    }
    found.sort();
    // The reference is checked by tests/cargo_test.rs.
    let checked = [
        "node/policy_driver.toml",
        "python/dispatcher.toml",
        "python/envelope_engine.toml",
        "python/json_rpc_client.toml",
        "python/json_rpc_http_server.toml",
        "python/json_rpc_http_server_features.toml",
        "python/json_rpc_server.toml",
        "python/json_rpc_server_features.toml",
        "python/policy_driver.toml",
        "python/policy_select.toml",
        "python/toolhost.toml",
        "reference.toml",
        "sh/policy_driver.toml",
    ];
    assert_eq!(found, checked.map(PathBuf::from));
}

//! Tests that the example peers in other languages obey the contract, with the configuration next to each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peerproof_engine::run::results::ResultsFile;
use peerproof_engine::run::verdict::Verdict;

use crate::start::{Command, binary};

/// Checks that an example peer cannot run: its configuration below `corpora/peers`, and the missing part.
const WITHOUT: [(&str, &str); 6] = [
    ("node/policy_driver.toml", "bridge"),
    ("python/policy_driver.toml", "bridge"),
    // Its handshake decides how far it goes, so nothing constrains its calls.
    ("python/python_tool_service.toml", "enforced"),
    // It needs a program for its jobs.
    ("python/run_queue_worker.toml", "MACHINA_POLICY_CMD"),
    ("sh/policy_driver.toml", "bridge"),
    ("sh/policy_driver.toml", "pick_inp64"),
];

/// Folders of checks for a peer; the others run against the same peer without its features.
const FOLDERS: [(&str, &[&str]); 2] = [
    ("python/json_rpc_server_features.toml", &["auth", "rate", "gzip", "streams"]),
    ("python/json_rpc_http_server_features.toml", &["canary", "batches", "notifications", "sizes"]),
];

/// Makes a test per peer from its name and its configuration below `corpora/peers`.
macro_rules! tests {
    ($($(#[$attribute:meta])* $name:ident $configuration:literal;)*) => {
        const CONFIGURATIONS: &[&str] = &[$($configuration),*];
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                holds_the_contract($configuration);
            }
        )*
    };
}

tests! {
    #[ignore = "slow, see CONTRIBUTING.md"]
    node_policy_driver "node/policy_driver.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    dispatcher "python/dispatcher.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    envelope_caller "python/envelope_caller.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    envelope_engine "python/envelope_engine.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    json_rpc_client "python/json_rpc_client.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    json_rpc_http_server "python/json_rpc_http_server.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    json_rpc_http_server_features "python/json_rpc_http_server_features.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    json_rpc_server "python/json_rpc_server.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    json_rpc_server_features "python/json_rpc_server_features.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    mcp_server "python/mcp_server.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    policy_driver "python/policy_driver.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    policy_select "python/policy_select.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    python_tool_runner "python/python_tool_runner.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    python_tool_runtime "python/python_tool_runtime.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    python_tool_service "python/python_tool_service.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    run_log_replayer "python/run_log_replayer.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    run_log_runner "python/run_log_runner.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    run_queue_http "python/run_queue_http.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    run_queue_worker "python/run_queue_worker.toml";
    #[ignore = "slow, see CONTRIBUTING.md"]
    toolhost "python/toolhost.toml";
    sh_policy_driver "sh/policy_driver.toml";
}

/// All except the peers that need libraries, which scripts of their own check or install.
#[test]
fn every_example_peer_has_a_test() {
    let peers = Path::new("../../corpora/peers");
    let folders = fs::read_dir(peers).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    let is_own = |path: &PathBuf| !["third-party", "mcp"].iter().any(|folder| path.ends_with(folder));
    for folder in folders.filter(|path| path.is_dir() && is_own(path)) {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        found.extend(files.map(|path| path.strip_prefix(peers).unwrap().to_string_lossy().into_owned()));
    }
    found.sort();
    assert_eq!(found, CONFIGURATIONS);
    let named = WITHOUT.iter().map(|it| it.0).chain(FOLDERS.iter().map(|it| it.0));
    let gone: Vec<&str> = named.filter(|name| !CONFIGURATIONS.contains(name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// Usual `PATH` after the folder of the interpreter itself, bypassing version managers, whose scripts selectors refuse
/// to start.
fn path() -> OsString {
    let script = "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)), end='')";
    let python = Command::new("python3").args(["-c", script]).output();
    assert!(python.status.success(), "{python:?}");
    let own = PathBuf::from(String::from_utf8(python.stdout).unwrap());
    let usual = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&usual))).unwrap()
}

/// Runs the checks on the peer of `configuration`: none may fail, and nearly all must decide.
fn holds_the_contract(configuration: &str) {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.env("PATH", path()).args(["check", "--format", "plain", "--config"]);
    command.arg(Path::new("../../corpora/peers").join(configuration)).arg("--out").arg(out.path());
    for (_, folders) in FOLDERS.iter().filter(|(of, _)| *of == configuration) {
        command.args(folders.iter().flat_map(|folder| ["-k".to_owned(), format!("*/{folder}/*")]));
    }
    let ended = command.timeout(Duration::from_secs(900)).output();
    let said = String::from_utf8_lossy(&ended.stderr);
    let results = ResultsFile::load(&out.path().join("results.ndjson")).unwrap_or_else(|_| panic!("{said}"));
    let results = results.whole().unwrap();
    let without: Vec<String> =
        WITHOUT.iter().filter(|(of, _)| *of == configuration).map(|(_, what)| format!("`{what}`")).collect();
    // Unclaimed checks do not apply, and checks that wait for minutes are too slow for a test.
    let beyond = |verdict: &Verdict| match verdict {
        Verdict::NotClaimed(_) => true,
        Verdict::NotRun(why) => why.starts_with("slow: "),
        Verdict::Untestable(why) => without.iter().any(|what| why.detail.contains(what)),
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
    assert!(ended.status.code() == Some(0) && wrong.is_empty(), "{}, {wrong:#?}", ended.status);
    let is_decided = decided >= 15 && decided * 100 >= checks.len() * 95;
    assert!(is_decided, "{decided} of {} are decided", checks.len());
}

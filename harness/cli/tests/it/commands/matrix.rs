//! Tests of `peerproof matrix` on reference peers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::start::{Command, binary, peerproof};

fn matrix(folder: &Path, list: &str) -> Command {
    fs::write(folder.join("peers.toml"), list).unwrap();
    let mut command = peerproof(folder);
    command.args(["matrix", "peers.toml"]);
    command
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join("peerproof-out").join(name)).unwrap()).unwrap()
}

fn references(boundary: &str, extras: &[&str]) -> String {
    let entry = |extra: &&str| format!("[[peer]]\nboundary = \"{boundary}\"\nreference = [{extra}]\n");
    extras.iter().map(entry).collect()
}

#[test]
fn checks_and_choices_that_differ_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let list =
        references("json_rpc", &["", r#""--choice", "null_id=silent""#, r#""--mutant", "id-as-string""#]);
    let mut command = matrix(folder.path(), &list);
    let assert = command.args(["-k", "json_rpc/stdio/ids"]).assert().code(1);
    assert.stdout(
        contains("≠ json_rpc/stdio/ids/integers")
            .and(contains("≠   null_id"))
            .and(contains("  json_rpc/stdio/ids/strings"))
            .and(contains("3 peers")),
    );
    let found = json(folder.path(), "matrix.json");
    let row = |id: &str| {
        let rows = found["checks"].as_array().unwrap();
        rows.iter().find(|row| row["check"] == id).unwrap_or_else(|| panic!("no {id}")).clone()
    };
    assert_eq!(row("json_rpc/stdio/ids/integers")["cells"][2]["clauses"][0], "RPC-ID-02");
    assert_eq!(row("json_rpc/stdio/ids/null")["cells"][1]["choice"], "silent");
    assert_eq!(row("json_rpc/stdio/ids/strings")["differs"], false);
    let page = fs::read_to_string(folder.path().join("peerproof-out/matrix.md")).unwrap();
    assert!(page.contains("| ≠ | `json_rpc/stdio/ids/integers` | pass | pass | fail"), "{page}");
}

#[test]
fn peers_that_hold_everything_end_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = matrix(folder.path(), &references("toolhost", &["", ""]));
    let assert = command.args(["-k", "toolhost/serve/request/aid-missing", "--differing"]).assert().code(0);
    assert.stdout(contains("aid-missing").not().and(contains("0 checks and 0 open choices differ")));
    let found = json(folder.path(), "matrix.json");
    assert_eq!(found["peers"][1]["name"], "reference toolhost provider (2)");
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn the_one_that_breaks_a_clause_is_named() {
    for (boundary, mutant, clause) in
        [("json_rpc", "id-as-string", "RPC-ID-02"), ("toolhost", "defaults-aid", "TH-REQ-02")]
    {
        let folder = tempfile::tempdir().unwrap();
        let list = references(boundary, &["", &format!("\"--mutant\", {mutant:?}"), ""]);
        let mut command = matrix(folder.path(), &list);
        command.args(["--differential", "--conversations", "24"]).assert().code(1);
        let found = json(folder.path(), "differences.json");
        let differences = found["differences"].as_array().unwrap();
        let apart = format!("reference {boundary} provider --mutant {mutant}");
        assert!(!differences.is_empty());
        let faults: Vec<&Value> = differences.iter().filter(|one| one["sort"] == "fault").collect();
        assert!(faults.iter().all(|one| one["apart"] == serde_json::json!([apart])), "{faults:#?}");
        assert!(differences.iter().all(|one| one["shown"] == 3), "{differences:#?}");
        // The first has enough time.
        let (shortest, steps) = (&faults[0]["shortest"], &faults[0]["shortest"]["steps"]);
        assert!(steps[1].as_u64() <= Some(4) && steps[1].as_u64() < steps[0].as_u64(), "{shortest:#}");
        let file = Path::new("peerproof-out").join(shortest["transcript"].as_str().unwrap());
        peerproof(folder.path()).arg("replay").arg(file).assert().code(1);
        if boundary == "toolhost" {
            assert!(faults.iter().any(|one| one["clause"] == clause), "{faults:#?}");
        }
    }
}

#[test]
fn equal_peers_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = matrix(folder.path(), &references("json_rpc", &["", ""]));
    command.args(["--differential", "--conversations", "8"]).assert().code(0);
    let found = json(folder.path(), "differences.json");
    assert_eq!(found["differences"], serde_json::json!([]));
    assert_eq!(found["exchanges"], found["alike"]);
    assert!(found["exchanges"].as_u64() > Some(20));
}

/// Peer that records its starts, and is a mutant under this sh condition.
fn noted(starts: &Path, is_mutant: &str) -> String {
    let binary = binary();
    let starts = starts.display();
    let script = format!(
        "echo >> {starts}; if {is_mutant}; then set -- --mutant id-as-string --choice null_id=silent; fi\n\
         exec {binary} peer json_rpc --stdio \"$@\""
    );
    format!("[[peer]]\nboundary = \"json_rpc\"\ncommand = [\"sh\", \"-c\", {script:?}]\n")
}

fn differential(folder: &Path, list: &str, conversations: u64) -> Command {
    let mut command = matrix(folder, list);
    command.args(["--differential", "--shrink-time", "0s", "--conversations", &conversations.to_string()]);
    command
}

#[test]
fn a_conversation_is_had_again_once_for_all_its_differences() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let list = references("json_rpc", &[""]) + &noted(&starts, "true");
    let starts_of = |conversations: u64| {
        let _ = fs::remove_file(&starts);
        differential(folder.path(), &list, conversations).output();
        fs::read_to_string(&starts).unwrap().lines().count()
    };
    let probes = starts_of(0);
    let all = starts_of(12);
    let found = json(folder.path(), "differences.json");
    assert_eq!(found["unsteady"], Value::Null);
    let differences = found["differences"].as_array().unwrap();
    let shown: BTreeSet<u64> = differences.iter().filter_map(|one| one["conversation"].as_u64()).collect();
    assert!(differences.len() > shown.len(), "no conversation shows two");
    assert_eq!(all - probes, 12 + 2 * shown.len());
}

#[test]
fn a_difference_that_shows_once_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let list = |is_mutant: &str| references("json_rpc", &[""]) + &noted(&starts, is_mutant);
    differential(folder.path(), &list("false"), 0).output();
    let probes = fs::read_to_string(&starts).unwrap().lines().count();
    // Only one of simultaneous conversations creates the folder.
    let (noted, once) = (starts.display(), folder.path().join("once"));
    let first = format!("[ $(wc -l < {noted}) -gt {} ] && mkdir {}", 2 * probes, once.display());
    let told = contains("not counted, because it did not occur again (occurrences: 1): RPC-");
    differential(folder.path(), &list(&first), 8).assert().code(6).stdout(told);
    assert!(once.exists());
    let found = json(folder.path(), "differences.json");
    assert_eq!(found["differences"], serde_json::json!([]));
    let unsteady = found["unsteady"].as_array().unwrap();
    assert!(!unsteady.is_empty() && unsteady.iter().all(|one| one["shown"] == 1), "{unsteady:#?}");
}

#[test]
fn mistakes_are_one_clear_sentence() {
    for (list, sentence) in [
        ("", "lists no peer"),
        ("[[peer]]\n", "peer 1: it has neither `config` nor `boundary`"),
        ("[[peer]]\nboundary = \"toolhos\"\nreference = []\n", "did you mean \"toolhost\"?"),
        ("[[peer]]\nconfig = \"nowhere.toml\"\n", "peer 1: there is no configuration"),
        ("[[peer]]\nconfig = 1\n", "line 2"),
        ("[[peer]]\nboundary = \"toolhost\"\nserv = [\"x\"]\n", "serv"),
        (
            "[[peer]]\nboundary = \"toolhost\"\nreference = []\n[[peer]]\nboundary = \"json_rpc\"\nreference = []\n",
            "all peers must have the same boundary and side",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let assert = matrix(folder.path(), list).assert().code(2);
        let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(error.contains(sentence) && error.trim_end().lines().count() == 1, "{list}: {error}");
    }
}

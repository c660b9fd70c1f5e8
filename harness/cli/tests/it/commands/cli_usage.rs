//! Tests of a new user's mistakes: each gives one clear sentence and the documented exit status.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use peerproof::table;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

use crate::start::peerproof;

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs `args` in `folder` and expects status 2, nothing on standard output, and one sentence with all of `parts`.
fn refused_in(folder: &Path, args: &[&str], parts: &[&str]) {
    let assert = peerproof(folder).args(args).assert().code(2).stdout("").stderr(starts_with("error: "));
    let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    for part in parts {
        assert!(stderr.contains(part), "{args:?} says {stderr:?}, without {part:?}");
    }
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

fn refused(args: &[&str], parts: &[&str]) {
    refused_in(empty().path(), args, parts);
}

#[test]
fn no_command_shows_the_usage() {
    let folder = empty();
    peerproof(folder.path()).assert().code(2).stderr(contains("Usage: peerproof"));
    peerproof(folder.path()).arg("--help").assert().code(0).stdout(contains("check"));
    peerproof(folder.path()).arg("--version").assert().code(0).stdout(starts_with("peerproof "));
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn the_references_are_fuzzed_where_no_peer_is_named_and_are_clean() {
    let folder = empty();
    for boundary in table::all() {
        let args = ["fuzz", boundary.name(), "--conversations", "24", "--time", "1000s"];
        let said = peerproof(folder.path()).args(args).assert().code(0).get_output().stdout.clone();
        let said = String::from_utf8_lossy(&said).into_owned();
        let references = table::played(boundary).references().len();
        assert_eq!(said.matches("24 conversations").count(), references, "{said}");
    }
    refused(&["fuzz"], &["no peer to test"]);
}

#[test]
fn a_program_that_cannot_be_started_is_named_with_what_is_in_its_place() {
    let folder = empty();
    fs::create_dir(folder.path().join("dir")).unwrap();
    fs::write(folder.path().join("script.py"), "print(1)\n").unwrap();
    let program = folder.path().join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, part) in [
        ("./nope", "there is no file ./nope"),
        ("./dir", "./dir is a directory"),
        ("./script.py", "./script.py is not executable"),
        ("script.py", "put its interpreter before it, as in `python3 script.py`"),
        ("program", "did you mean ./program?"),
        ("no-such-program", "no program \"no-such-program\" in the PATH"),
    ] {
        refused_in(folder.path(), &["check", "toolhost", "--", program], &["`serve`", part]);
    }
}

#[test]
fn a_command_line_without_its_dashes_gets_a_tip() {
    let folder = empty();
    let mut command = peerproof(folder.path());
    command.args(["check", "toolhost", "./host", "--serve"]).assert().code(2).stderr(contains("after `--`"));
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    refused(&["check", "toolhots"], &["unknown boundary \"toolhots\"", "did you mean \"toolhost\"?"]);
    refused(&["check", "-k", "toolhost/serve/framing/nope"], &["matches no check"]);
    refused(
        &["check", "-k", "toolhost/serve/chunking/byte-by-bite"],
        &["did you mean \"toolhost/serve/chunking/byte-by-byte\"?"],
    );
    refused(&["explain", "TH-FRAM-01"], &["no clause or check", "did you mean \"TH-FRAME-01\"?"]);
    refused(&["check", "toolhost", "--feature", "leese", "--", "cat"], &["did you mean \"lease\"?"]);
    refused(&["check", "toolhost", "--choice", "bom=ignroe", "--", "cat"], &["did you mean \"ignore\"?"]);
    refused(&["check", "--report", "junti=x"], &["did you mean \"junit\"?"]);
    refused(&["list", "--config-keys", "toolhots"], &["did you mean \"toolhost\"?"]);
    refused(&["list", "toolhots"], &["did you mean \"toolhost\"?"]);
    refused(&["list", "checks", "clauses"], &["\"clauses\"", "unexpected argument"]);
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    refused(&["check", "--", "cat"], &["no boundary is named"]);
    refused(&["check", "--aid", "A"], &["need a peer"]);
    refused(&["check", "toolhost", "--aid", "A", "--input", "{x", "--", "cat"], &["--input is not JSON"]);
    refused(&["check", "toolhost", "--role", "echo", "--", "cat"], &["NAME=OWN"]);
    let places = ["has no \"params\"", "under [roles] in peerproof.toml", "--role 'named={…}'"];
    refused(&["check", "json_rpc", "--role", "named=x", "--", "cat"], &places);
    refused(&["check", "toolhost", "--", "host", "--run", "plugin"], &["has no {aid}"]);
    refused(&["check", "--jobs", "0"], &["--jobs"]);
    refused(&["check", "--shrink-time", "soon"], &["not a time"]);
    refused(&["doctor"], &["no peer to test"]);
    refused(&["peer", "toolhost"], &["--serve"]);
    let folder = empty();
    peerproof(folder.path()).args(["check", "--shard", "1/2"]).assert().code(2).stderr(contains("hash:k/n"));
    let wrong = [("PEERPROOF_JOBS", "many"), ("PEERPROOF_SLOW", "yes"), ("PEERPROOF_COLOR", "red")];
    for (name, value) in wrong {
        peerproof(folder.path()).arg("check").env(name, value).assert().code(2).stderr(contains(name));
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_with_its_line() {
    let folder = empty();
    let file = folder.path().join("peerproof.toml");
    let peer = "[peer]\nboundary = \"toolhost\"\nserve = [\"./nope\"]\n";
    for (text, parts) in [
        ("[peer\n".to_owned(), vec!["peerproof.toml line 1 is not TOML"]),
        (format!("{peer}comand = []\n"), vec!["line 4", "did you mean \"command\"?"]),
        (format!("{peer}[rolls]\n"), vec!["line 4", "did you mean \"roles\"?"]),
        (String::new(), vec!["has no `boundary`"]),
        (
            "[peer]\nboundary = \"toolhost\"\n".to_owned(),
            vec!["no command is configured", "`run` or `serve`"],
        ),
        (peer.to_owned(), vec!["there is no file", "nope"]),
    ] {
        fs::write(&file, text).unwrap();
        refused_in(folder.path(), &["check"], &parts);
        refused_in(folder.path(), &["doctor"], &parts);
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    refused_in(folder.path(), &["check"], &["not UTF-8"]);
    refused(&["check", "--config", "nope.toml"], &["no configuration nope.toml", "peerproof init"]);
    refused(&["check", "--config", "."], &["is a directory"]);
}

#[test]
fn what_there_is_is_listed_and_explained() {
    let folder = empty();
    for (args, part) in [
        (vec!["list"], "toolhost/serve/canary/plain-request"),
        (vec!["list", "clauses"], "TH-FRAME-01"),
        (vec!["list", "boundaries"], "toolhost"),
        (vec!["list", "mutants"], "TH-"),
        (vec!["list", "json_rpc"], "json_rpc/stdio/canary"),
        (vec!["list", "clauses", "json-rpc"], "RPC-MSG-05"),
        (vec!["list", "--config-keys", "toolhost"], "idempotency"),
        (vec!["explain", "th-frame-01"], "MUST"),
        (vec!["explain", "toolhost/serve/canary/plain-request"], "TH-FRAME-01"),
    ] {
        let assert = peerproof(folder.path()).args(&args).assert().code(0).stderr("");
        assert.stdout(contains(part).and(contains("\u{1b}").not()));
    }
    let assert = peerproof(folder.path()).args(["list", "clauses", "--json"]).assert().code(0);
    for line in String::from_utf8(assert.get_output().stdout.clone()).unwrap().lines() {
        let clause: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(clause["id"].is_string() && clause["checks"].is_array(), "{line}");
    }
}

#[test]
fn colours_come_when_asked_for() {
    let folder = empty();
    let mut command = peerproof(folder.path());
    command.args(["--color", "always", "list"]).assert().code(0).stdout(contains("\u{1b}["));
}

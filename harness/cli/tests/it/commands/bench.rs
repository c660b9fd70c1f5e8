//! Tests of `peerproof bench`: rows, files, exit statuses. No figure is asserted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use peerproof_engine::drive::fixture::no_births;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};
use serde_json::Value;

use crate::start::{self, Command, binary};

fn peerproof(folder: &Path, args: &[&str]) -> Command {
    let mut command = start::peerproof(folder);
    command.args(args);
    command
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["type"] == "row").collect()
}

/// Writes a peer as a shell script; returns its path.
fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    let _nobody_inherits_it = no_births();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("./{name}")
}

/// Answers every line with a success.
const GOOD: &str =
    r#"while read -r line; do echo '{"ok":true,"status":"OK","output_json":"{}","error":""}'; done"#;

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn every_planned_row_of_the_reference_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["bench", "toolhost", "--time", "300ms", "--rounds", "2", "--output", "kept/bench.ndjson"];
    let assert = peerproof(folder.path(), &args).assert().code(0);
    assert.stdout(
        contains("reference toolhost provider")
            .and(contains("serve/64B/ping-pong/"))
            .and(contains("÷ echo"))
            .and(contains("not measured").not()),
    );
    let lines = lines(&fs::read(folder.path().join("kept/bench.ndjson")).unwrap());
    assert_eq!(lines[0]["type"], "bench");
    assert_eq!(lines.last().unwrap()["exit_code"], 0);
    let planned: Vec<&str> =
        lines[0]["planned"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let measured: Vec<&str> = rows(&lines).iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(planned, measured);
    let parts: BTreeSet<&str> = measured.iter().flat_map(|id| id.split('/')).collect();
    for part in [
        "start-up",
        "ping-pong",
        "window-16",
        "window-64",
        "open-50",
        "open-80",
        "open-95",
        "soak",
        "64B",
        "1KiB",
        "64KiB",
        "1MB-string",
        "1MB-records",
        "1MiB-padded",
        "10MiB-padded",
        "serve",
        "run",
    ] {
        assert!(parts.contains(part), "no row about {part}: {measured:?}");
    }
    for row in rows(&lines) {
        for who in ["peer", "echo"] {
            assert_eq!(row[who]["rounds"], 2, "{row}");
            for figure in ["req_s", "mb_s", "p50_us", "max_us", "cpu_us_per_request"] {
                let spread = &row[who][figure];
                let [low, median, high] =
                    ["low", "median", "high"].map(|name| spread[name].as_f64().unwrap());
                assert!(low <= median && median <= high, "{figure}: {row}");
            }
        }
        assert!(row["ratio_to_echo"]["req_s"]["median"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["missing"].is_null(), "{row}");
    }
    let memory = rows(&lines).iter().filter(|row| row["peer"]["rss_peak_bytes"]["median"].is_f64()).count();
    assert!(memory >= rows(&lines).len() - 2, "memory is seen but of processes that end at once");
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn rows_are_chosen_by_patterns_and_ndjson_is_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "bench",
        "toolhost",
        "--time",
        "20ms",
        "--rounds",
        "1",
        "--format",
        "ndjson",
        "-k",
        "serve/64B/open-*",
    ];
    let assert = peerproof(folder.path(), &[&args[..], &["--output", "x"]].concat()).assert().code(0);
    let out = assert.get_output().stdout.clone();
    assert_eq!(out, fs::read(folder.path().join("x")).unwrap());
    let lines = lines(&out);
    assert!(rows(&lines).len() >= 3, "an open loop finds its rate by itself");
    assert!(rows(&lines).iter().all(|row| row["id"].as_str().unwrap().contains("/open-")));

    let ids = peerproof(folder.path(), &["bench", "toolhost", "--rows", "-k", "run/*"]).assert().code(0);
    let ids = String::from_utf8(ids.get_output().stdout.clone()).unwrap();
    assert!(ids.lines().count() >= 2 && ids.lines().all(|id| id.starts_with("run/")), "{ids}");
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_second_peer_is_compared_in_the_same_rounds() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let second = format!("'{binary}' peer toolhost --serve");
    let args =
        ["bench", "toolhost", "--time", "60ms", "--rounds", "3", "--format", "ndjson", "-k", "*/ping-pong/*"];
    let args = [&args[..], &["--against", &second, "--", binary, "peer", "toolhost", "--serve"]].concat();
    let lines = lines(&peerproof(folder.path(), &args).assert().code(0).get_output().stdout);
    for row in rows(&lines) {
        assert_eq!(row["against"]["rounds"], 3, "{row}");
        assert!(row["ratio_to_against"]["req_s"]["median"].is_f64(), "{row}");
        let verdict = row["comparison"]["verdict"].as_str().unwrap();
        assert!(["better", "worse", "cannot_tell"].contains(&verdict), "{row}");
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_budget_that_cannot_hold_is_status_7() {
    let folder = tempfile::tempdir().unwrap();
    let bench = |budget: &str| {
        fs::write(folder.path().join("budget.toml"), budget).unwrap();
        let args = ["bench", "toolhost", "--time", "20ms", "--rounds", "1", "-k", "serve/64B/ping-pong/*"];
        peerproof(folder.path(), &[&args[..], &["--budget", "budget.toml"]].concat()).assert()
    };
    bench("[rows.\"serve/64B/*\"]\nreq_s_min = 1\nreq_s_of_echo_min = 0.0001\n").code(0);
    let assert = bench("[rows.\"serve/64B/*\"]\nreq_s_min = 1e12\nrss_peak_bytes_max = 1\n").code(7);
    assert.stdout(contains("over budget: serve/64B/ping-pong/").and(contains("rss_peak_bytes_max is 1")));
    for (text, part) in [
        ("[rows.\"serve/64B/*\"]\nreq_s_mni = 1\n", "did you mean \"req_s_min\"?"),
        ("[rows.\"run/*\"]\nreq_s_min = 1\n", "matches no row"),
        ("nonsense", "line 1"),
    ] {
        let assert =
            bench(text).code(2).stdout("").stderr(starts_with("error: budget.toml: ").and(contains(part)));
        assert_eq!(assert.get_output().stderr.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn mistakes_are_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for (args, part) in [
        (&["bench"][..], "no boundary is named"),
        (&["bench", "toolhots"], "did you mean \"toolhost\"?"),
        (&["bench", "toolhost", "--", "./nope"], "there is no file ./nope"),
        (&["bench", "toolhost", "--budget", "nope.toml"], "cannot read nope.toml"),
        (&["bench", "toolhost", "--output", "/dev/null/x"], "cannot write"),
        (&["bench", "toolhost", "--rounds", "0"], "--rounds is 0"),
        (&["bench", "toolhost", "-k", "serve/64B/ping-pog/one-core"], "did you mean"),
        (&["bench", "toolhost", "--against", "'"], "not closed"),
        (&["bench", "toolhost", "--against", "./nope --serve"], "there is no file ./nope"),
        (&["bench", "toolhost", "--", "cat"], "--aid AID --input JSON"),
    ] {
        let assert =
            peerproof(folder.path(), args).assert().code(2).stdout("").stderr(starts_with("error: "));
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.contains(part) && stderr.lines().count() == 1, "{args:?}: {stderr}");
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_peer_that_says_nothing_is_one_sentence_and_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let assert = peerproof(folder.path(), &["bench", "toolhost", "--", "true"]).assert().code(1).stdout("");
    assert.stderr(starts_with("error: ").and(contains("did not answer")));
}

/// Benchmarks a peer of one tool.
fn bench_script(text: &str, more: &[&str]) -> (Vec<Value>, i32) {
    let folder = tempfile::tempdir().unwrap();
    let peer = script(folder.path(), "peer.sh", text);
    let args = ["bench", "toolhost", "--time", "100ms", "--rounds", "2", "--format", "ndjson", "--aid", "A"];
    let args = [&args[..], more, &["--", &peer]].concat();
    let output = peerproof(folder.path(), &args).output();
    (lines(&output.stdout), output.status.code().unwrap())
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_peer_of_one_tool_is_measured() {
    let (lines, code) = bench_script(GOOD, &["-k", "serve/{64B,1KiB}/{ping-pong,window-16,start-up}/*"]);
    assert_eq!(code, 0, "{lines:?}");
    assert!(rows(&lines).iter().all(|row| row["peer"]["rounds"] == 2), "{lines:?}");
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_peer_that_dies_in_the_middle_says_so_and_keeps_what_was_measured() {
    let dies = "n=0\nwhile read -r line; do n=$((n+1)); \
                if [ ${#line} -gt 2000 ]; then echo out of memory >&2; exit 3; fi; \
                echo '{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\"}'; done";
    let (lines, code) = bench_script(dies, &["-k", "serve/{1KiB,64KiB}/ping-pong/*"]);
    assert_eq!(code, 1, "{lines:?}");
    for row in rows(&lines) {
        if row["id"].as_str().unwrap().contains("/1KiB/") {
            assert_eq!(row["peer"]["rounds"], 2, "{row}");
        } else {
            let why = row["missing"].as_str().unwrap();
            assert!(why.contains("ended with status 3") && why.contains("out of memory"), "{why}");
        }
    }
    assert_eq!(lines.last().unwrap()["exit_code"], 1);
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_wrong_reply_is_shown() {
    let wrong = "n=0\nwhile read -r line; do n=$((n+1)); \
                 if [ $n -gt 9 ]; then echo '{\"ok\":false,\"error\":\"tired\"}'; \
                 else echo '{\"ok\":true,\"output_json\":\"{}\"}'; fi; done";
    let (lines, code) = bench_script(wrong, &["-k", "serve/64B/window-16/*"]);
    assert_eq!(code, 1, "{lines:?}");
    assert!(
        rows(&lines).iter().any(|row| row["missing"].as_str().is_some_and(|why| why.contains("tired"))),
        "{lines:?}"
    );
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_peer_that_hangs_is_given_up() {
    // The holder keeps standard output open, in a group of its own.
    let hangs = "n=0\nwhile read -r line; do n=$((n+1)); \
                 if [ ${#line} -gt 1000 ]; then setsid sleep 300; fi; \
                 echo '{\"ok\":true,\"output_json\":\"{}\"}'; done";
    let more = ["--patience", "300ms", "-k", "serve/{64B,1KiB,64KiB}/ping-pong/*"];
    let (lines, code) = bench_script(hangs, &more);
    assert_eq!(code, 1, "{lines:?}");
    let why = |part: &str| {
        rows(&lines)
            .iter()
            .filter(|row| row["missing"].as_str().is_some_and(|why| why.contains(part)))
            .count()
    };
    assert!(why("no answer for") >= 1 && why("no answer for") <= 2, "two hangs are enough: {lines:?}");
}

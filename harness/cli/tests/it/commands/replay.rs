//! Tests of the commands for stored conversations and results.

use std::path::{Path, PathBuf};

use predicates::prelude::*;
use predicates::str::contains;

use peerproof_engine::data::clause::{Level, Side};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::run::results::{ResultsFile, ResultsWriter, RunHeader};
use peerproof_engine::run::verdict::{CheckResult, ClauseRef, Verdict};

use crate::start::{self, Command, binary};

fn peerproof(args: &[&str]) -> Command {
    let mut command = start::peerproof(&std::env::temp_dir());
    command.args(args).env("NO_COLOR", "1");
    command
}

/// Stored conversation in which a request without `aid` is accepted.
fn transcript(folder: &Path) -> PathBuf {
    let path = folder.join("transcript.ndjson");
    let expect = r#"{"clause":"TH-REQ-02","allowed":[{"outcome":"refused"}]}"#;
    let facts =
        r#"{"side":"provider","commands":["serve"],"roles":{},"features":{},"choices":{},"limits":{}}"#;
    let send = format!(
        r#"{{"send":{{"payload":[{{"text":"{{\"input_json\":\"{{}}\"}}\n"}}],"chunking":"whole","await_frames":1}},"expect":{expect}}}"#
    );
    let plan = format!(r#"{{"sessions":[{{"command":"serve"}}],"steps":[{send},"finish"]}}"#)
        .replace(r#""finish""#, r#"{"finish":null}"#);
    let reply = r#"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\",\"ds_state\":{\"delta\":true,\"slots\":{},\"removed_slots\":[]}}\n"#;
    let lines = [
        format!(
            r#"{{"peerproof_transcript":1,"boundary":"toolhost","check":"toolhost/serve/request/aid-missing","facts":{facts},"plan":{plan}}}"#
        ),
        r#"{"at_us":0,"session":0,"what":"started","argv":["./host"]}"#.to_owned(),
        r#"{"at_us":1,"session":0,"what":"sent","step":0,"payload":[{"text":"{\"input_json\":\"{}\"}\n"}]}"#
            .to_owned(),
        format!(r#"{{"at_us":2,"session":0,"what":"received","bytes":[{{"text":"{reply}"}}]}}"#),
        r#"{"at_us":3,"session":0,"what":"stdin_closed"}"#.to_owned(),
        r#"{"at_us":4,"session":0,"what":"stdout_closed"}"#.to_owned(),
        r#"{"at_us":5,"session":0,"what":"exited","exit":{"code":0}}"#.to_owned(),
    ];
    std::fs::write(&path, lines.map(|line| line + "\n").concat()).unwrap();
    path
}

#[test]
fn replay_gives_the_same_findings_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = transcript(folder.path());
    let shown = contains("→ {\"input_json\":\"{}\"}").and(contains("TH-REQ-02")).and(contains("(accepted)"));
    let first = peerproof(&["replay", path.to_str().unwrap()]).assert().code(1).stdout(shown);
    let again = peerproof(&["replay", path.to_str().unwrap()]).assert().code(1);
    assert_eq!(first.get_output().stdout, again.get_output().stdout);
}

#[test]
fn replay_live_carries_the_conversation_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = transcript(folder.path());
    let exe = binary();
    let live = ["replay", "--live", path.to_str().unwrap()];
    peerproof(&live).assert().code(0).stderr(contains("TH-REQ-02 (accepted) did not occur"));
    let mutant = ["--", exe, "peer", "toolhost", "--serve", "--mutant", "defaults-aid"];
    peerproof(&[&live[..], &mutant[..]].concat()).assert().code(1).stdout(contains("TH-REQ-02"));
}

#[test]
fn shrink_writes_a_smaller_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let path = transcript(folder.path());
    let exe = binary();
    let out = folder.path().join("out");
    let args = ["shrink", path.to_str().unwrap(), "--out", out.to_str().unwrap(), "--time", "5s"];
    let mutant = ["--", exe, "peer", "toolhost", "--serve", "--mutant", "defaults-aid"];
    peerproof(&[&args[..], &mutant[..]].concat())
        .assert()
        .code(1)
        .stdout(contains("shrunk from 2 to 2 steps and from 20 to 3 bytes").and(contains("confirmed")));
    let stdin = out.join("toolhost__serve__request__aid-missing/stdin.bin");
    assert_eq!(std::fs::read(stdin).unwrap(), b"{}\n");
    let correct = ["--", exe, "peer", "toolhost", "--serve"];
    let note = contains("does not occur with this peer");
    peerproof(&[&args[..], &correct[..]].concat()).assert().code(4).stderr(note);
    peerproof(&[&args[..], &["--finding", "hung"], &mutant[..]].concat())
        .assert()
        .code(2)
        .stderr(contains("TH-REQ-02 (accepted)"));
}

#[test]
fn what_is_no_transcript_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let good = std::fs::read_to_string(transcript(folder.path())).unwrap();
    let cut = &good[..good.len() - 20];
    let other = good.replacen(":1,\"boundary\":\"toolhost\"", ":1,\"boundary\":\"other\"", 1);
    let later = good.replacen("transcript\":1", "transcript\":9", 1);
    let stray = good.replacen("{\"send\"", "{\"session\":7,\"send\"", 1);
    // An unknown member is not the peer's fault: in a step, its expectation or the header.
    let [step, expected, head] =
        [("\"send\":", "\"sned\":"), ("\"clause\":", "\"clasue\":"), ("\"check\":", "\"chekc\":")]
            .map(|(right, wrong)| good.replacen(right, wrong, 1));
    assert!([&step, &expected, &head].iter().all(|text| **text != good), "{good}");
    for text in ["", "{}\n", "hello\n", cut, &other, &later, &stray, &step, &expected, &head] {
        std::fs::write(&path, text).unwrap();
        let output = peerproof(&["replay", path.to_str().unwrap()]).assert().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert_eq!(stderr.lines().count(), 1, "{text:?}: {stderr}");
    }
    peerproof(&["replay", "/nonexistent"]).assert().code(2).stderr(contains("/nonexistent"));
}

fn header(shard: Option<&str>, planned: &[&str]) -> RunHeader {
    RunHeader {
        peerproof: "0.1.0".to_owned(),
        boundary: "toolhost".to_owned(),
        side: Side::Provider,
        peer: "host".to_owned(),
        planned: planned.iter().map(|id| (*id).to_owned()).collect(),
        clauses_sha256: "00".to_owned(),
        rng_seed: 1,
        timeout_scale: 1.0,
        shard: shard.map(str::to_owned),
        selection: serde_json::Value::Null,
        config: serde_json::json!({"serve": ["./host"]}),
        started: "2026-01-02T03:04:05Z".to_owned(),
    }
}

fn check(id: &str, verdict: Verdict) -> CheckResult {
    let findings = if verdict.is_failure() || matches!(verdict, Verdict::Flaky(_)) {
        vec![Finding::new("TH-REQ-02", "accepted", "ok:false", "<b>|ok:true|</b>").at(0)]
    } else {
        Vec::new()
    };
    CheckResult {
        id: id.to_owned(),
        title: "A request without `aid` is refused.".to_owned(),
        rung: peerproof_engine::data::rung::Rung::Ordinary,
        first_canary: None,
        reason: findings.first().map(|finding| finding.reason.clone()),
        verdict,
        clauses: vec![ClauseRef { id: "TH-REQ-02".into(), level: Level::Must }],
        choice: None,
        conversation: findings.iter().map(|_| "→ ```{}\u{1b}".to_owned()).collect(),
        findings,
        rest: None,
        counted: Default::default(),
        confirmed_by: None,
        reproducer: None,
        wrong_line: None,
        others: Vec::new(),
        ms: 1500,
    }
}

fn write(path: &Path, header: &RunHeader, checks: &[CheckResult], exit_code: i32) {
    let mut writer = ResultsWriter::create(path).unwrap();
    writer.begin(header).unwrap();
    for check in checks {
        writer.check(check).unwrap();
    }
    writer.end(exit_code).unwrap();
}

fn why() -> String {
    "why <not>".to_owned()
}

/// Results with one check of each kind.
fn mixed(path: &Path) {
    let checks = [
        check("t/serve/a/pass", Verdict::Pass),
        check("t/serve/a/fail", Verdict::Fail),
        check("t/serve/a/untestable", Verdict::Untestable(why().into())),
        check("t/serve/b/not-claimed", Verdict::NotClaimed(why())),
        check("t/serve/b/not-run", Verdict::NotRun(why())),
        check("t/serve/b/expected", Verdict::Expected(why())),
        check("t/serve/b/harness", Verdict::HarnessError(why())),
        check("t/serve/b/flaky", Verdict::Flaky("1/3".to_owned())),
    ];
    let ids: Vec<&str> = checks.iter().map(|check| check.id.as_str()).collect();
    write(path, &header(None, &ids), &checks, 1);
}

#[test]
fn reports_are_rendered_from_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("r.ndjson");
    let (junit, md) = (folder.path().join("new/j.xml"), folder.path().join("r.md"));
    mixed(&results);
    let (html, sarif) = (folder.path().join("r.html"), folder.path().join("r.sarif"));
    let mut args = vec!["report", "render", results.to_str().unwrap()];
    for (form, path) in [("--junit", &junit), ("--md", &md), ("--html", &html), ("--sarif", &sarif)] {
        args.extend([form, path.to_str().unwrap()]);
    }
    peerproof(&args).assert().code(0);
    let xml = std::fs::read_to_string(&junit).unwrap();
    let count = |part: &str| xml.matches(part).count();
    assert_eq!((count("<testcase "), count("<failure "), count("<error ")), (8, 2, 1), "{xml}");
    assert_eq!(count("<skipped "), 4, "{xml}");
    assert!(xml.contains("not_claimed: why &lt;not&gt;") && xml.contains("type=\"accepted\""), "{xml}");
    let root = xml.lines().find(|line| line.contains("<testsuites")).unwrap();
    assert!(!root.contains("skipped="), "the schema of Jenkins does not know it there: {root}");
    assert!(xml.contains("tests=\"8\"") && !xml.contains('\u{1b}'), "{xml}");
    let text = std::fs::read_to_string(&md).unwrap();
    assert!(text.contains("| fail | 1 |") && text.contains("## Clauses"), "{text}");
    assert!(text.contains("````text\n→ ```{}") && text.contains("&lt;b>"), "{text}");
    assert!(!text.contains("Incomplete"), "{text}");

    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(page.matches("<h3 ").count(), 4, "a cause; fail, harness error and flaky: {page}");
    assert!(page.contains("got: &lt;b&gt;|ok:true|&lt;&#x2f;b&gt;") && !page.contains("<b>|"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains("Incomplete"), "{page}");
    assert_eq!(page.matches("<script").count(), 1, "the filter is the only script: {page}");

    let log: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&sarif).unwrap()).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../schemas/sarif-2.1.0.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&log).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let run = &log["runs"][0];
    let results_of = run["results"].as_array().unwrap();
    assert_eq!(results_of.len(), 1, "fail and flaky are one cause: {log:#}");
    assert_eq!(results_of[0]["partialFingerprints"]["peerproof/v2"].as_str().map(str::len), Some(12));
    assert_eq!(results_of[0]["relatedLocations"].as_array().map(Vec::len), Some(1), "{log:#}");
    assert_eq!(run["invocations"][0]["exitCode"], 1);
    assert_eq!((&results_of[0]["level"], &results_of[0]["ruleId"]), (&"error".into(), &"TH-REQ-02".into()));
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "TH-REQ-02");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let notes = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    let levels: Vec<&str> = notes.iter().filter_map(|note| note["level"].as_str()).collect();
    assert_eq!(levels, ["note", "note", "error"], "untestable, not run, harness error: {log:#}");

    peerproof(&["report", "render", results.to_str().unwrap()]).assert().code(0).stdout(contains("8 checks"));
    peerproof(&["report", "render", results.to_str().unwrap(), "--md", "/dev/full"])
        .assert()
        .code(2)
        .stderr(contains("/dev/full").and(contains("space")));
}

#[test]
fn a_cut_file_is_rendered_as_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (results, junit) = (folder.path().join("r.ndjson"), folder.path().join("j.xml"));
    mixed(&results);
    let text = std::fs::read_to_string(&results).unwrap();
    let cut: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    std::fs::write(&results, &cut).unwrap();
    let (results, junit) = (results.to_str().unwrap(), junit.to_str().unwrap());
    let incomplete = contains("no footer and contains 3 of 8 planned checks");
    peerproof(&["report", "render", results, "--junit", junit]).assert().code(5).stderr(incomplete.clone());
    let xml = std::fs::read_to_string(junit).unwrap();
    assert_eq!(xml.matches("type=\"no_result\"").count(), 5, "{xml}");
    for args in [
        vec!["report", "diff", results, results],
        vec!["report", "merge", results, "--out", "/dev/null"],
        vec!["expect", "init", results, "--file", "/dev/null/x"],
    ] {
        peerproof(&args).assert().code(5).stderr(incomplete.clone());
    }
}

/// Ids in each of two shards.
fn sharded() -> [Vec<String>; 2] {
    let shards = ["hash:1/2", "hash:2/2"].map(|text| text.parse::<peerproof::shard::Shard>().unwrap());
    let ids: Vec<String> = (0..12).map(|n| format!("t/serve/x/{n}")).collect();
    shards.map(|shard| ids.iter().filter(|id| shard.takes(id)).cloned().collect())
}

#[test]
fn shards_are_merged_without_gaps_and_overlaps() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let path = |name: &str| place(name).to_str().unwrap().to_owned();
    let parts = sharded();
    assert!(parts.iter().all(|part| !part.is_empty()));
    for (number, ids) in parts.iter().enumerate() {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let checks: Vec<_> = ids.iter().map(|id| check(id, Verdict::Pass)).collect();
        let shard = format!("hash:{}/2", number + 1);
        write(&place(&format!("s{number}")), &header(Some(&shard), &ids), &checks, 0);
        let other = RunHeader { rng_seed: 7, ..header(Some(&shard), &ids) };
        write(&place(&format!("seed{number}")), &other, &checks, 0);
        let failing: Vec<_> = ids.iter().map(|id| check(id, Verdict::Fail)).collect();
        write(&place(&format!("bad{number}")), &header(Some(&shard), &ids), &failing, 1);
    }
    let stray = ["t/serve/x/0"; 1];
    let wrong = if parts[0].contains(&stray[0].to_owned()) { "hash:2/2" } else { "hash:1/2" };
    write(&place("stray"), &header(Some(wrong), &stray), &[check(stray[0], Verdict::Pass)], 0);
    write(&place("whole"), &header(None, &stray), &[check(stray[0], Verdict::Pass)], 0);

    let merge = |files: &[&str]| {
        let mut args = vec!["report".to_owned(), "merge".to_owned(), "--out".to_owned(), path("merged")];
        args.extend(files.iter().map(|file| path(file)));
        peerproof(&args.iter().map(String::as_str).collect::<Vec<_>>()).assert()
    };
    merge(&["s1", "s0"]).code(0).stdout(contains("12 checks of 2 files"));
    let merged = ResultsFile::load(&place("merged")).unwrap().whole().unwrap();
    assert_eq!((merged.runs.len(), merged.checks().count()), (1, 12));
    assert_eq!(merged.runs[0].header.shard, None);
    merge(&["s0", "bad1"]).code(1);
    merge(&["whole"]).code(0);
    merge(&["s0"]).code(5).stderr(contains("shards of host are missing: hash:2/2"));
    merge(&["s0", "s0", "s1"]).code(5).stderr(contains("are both the shard hash:1/2"));
    merge(&["s0", "seed1"]).code(5).stderr(contains("differ in the rng seed"));
    merge(&["s0", "s1", "whole"]).code(5).stderr(contains("is a whole run of"));
    merge(&["stray", "s0", "s1"]).code(5).stderr(contains("shard"));
}

#[test]
fn a_diff_tells_a_regression_from_other_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let store = |name: &str, checks: &[CheckResult]| {
        let ids: Vec<&str> = checks.iter().map(|check| check.id.as_str()).collect();
        write(Path::new(&path(name)), &header(None, &ids), checks, 0);
    };
    store("old", &[check("t/a", Verdict::Pass), check("t/b", Verdict::Fail), check("t/gone", Verdict::Pass)]);
    store("new", &[check("t/a", Verdict::Hang), check("t/b", Verdict::Pass), check("t/new", Verdict::Fail)]);
    let changes = contains("regressed t/a  pass → hang (accepted)")
        .and(contains("fixed     t/b  fail (accepted) → pass"))
        .and(contains("gone      t/gone  pass → –"))
        .and(contains("new       t/new  – → fail (accepted)"))
        .and(contains("new cause").count(2))
        .and(contains("no cause").count(1));
    peerproof(&["report", "diff", &path("old"), &path("new")]).assert().code(1).stdout(changes);
    let mut other = header(None, &["t/a"]);
    other.boundary = "json_rpc".to_owned();
    write(Path::new(&path("other")), &other, &[check("t/a", Verdict::Pass)], 0);
    let nothing = contains("no check in common").and(contains("of json_rpc provider"));
    peerproof(&["report", "diff", &path("old"), &path("other")]).assert().stderr(nothing);
    peerproof(&["report", "diff", &path("old"), &path("old")])
        .assert()
        .code(0)
        .stdout(contains("no verdict changed"));
    store("lost", &[check("t/a", Verdict::Untestable(why().into())), check("t/b", Verdict::Fail)]);
    peerproof(&["report", "diff", &path("old"), &path("lost")]).assert().code(0).stdout(contains("lost"));
}

#[test]
fn the_list_of_known_failures_is_written_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let id = "toolhost/serve/request/aid-missing";
    let other = "toolhost/serve/request/aid-unknown";
    let (r, list) = (path("r"), path("expected.toml"));
    let store = |first: Verdict, second: Verdict| {
        write(Path::new(&r), &header(None, &[id, other]), &[check(id, first), check(other, second)], 1);
    };
    store(Verdict::Fail, Verdict::Pass);
    peerproof(&["expect", "init", &r, "--file", &list])
        .assert()
        .code(0)
        .stdout(contains("1 expected failure\n"));
    peerproof(&["expect", "init", &r, "--file", &list]).assert().code(2).stderr(contains("already exists"));
    store(Verdict::Pass, Verdict::Fail);
    let update = ["expect", "update", &r, "--file", &list];
    peerproof(&update).assert().code(0).stdout(contains("1 removed, 0 added, 0 kept"));
    peerproof(&[&update[..], &["--add"]].concat()).assert().code(0).stdout(contains("0 removed, 1 added"));
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(text.contains(other) && !text.contains(id), "{text}");
    std::fs::write(&list, text + "expires = \"2020-01-01\"\n").unwrap();
    peerproof(&update).assert().code(3).stderr(contains("expired on 2020-01-01"));
    std::fs::write(&list, "nonsense = 1\n").unwrap();
    peerproof(&update).assert().code(2).stderr(contains("nonsense"));
}

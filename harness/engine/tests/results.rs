//! Tests of the results file: written line by line, read back whole or with a sentence about the missing part.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::path::Path;

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::{Level, Side};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::run::causes::{Cause, causes};
use peerproof_engine::run::results::{self, Explanation, ResultsFile, ResultsWriter, RunHeader, Standing};
use peerproof_engine::run::runner;
use peerproof_engine::run::verdict::{CheckResult, ClauseRef, Verdict};

fn header(planned: &[&str]) -> RunHeader {
    RunHeader {
        peerproof: "0.1.0".to_owned(),
        boundary: "toy".to_owned(),
        side: Side::Provider,
        peer: "peer".to_owned(),
        planned: planned.iter().map(|id| (*id).to_owned()).collect(),
        clauses_sha256: "00".to_owned(),
        rng_seed: u64::MAX,
        timeout_scale: 1.5,
        shard: None,
        selection: serde_json::Value::Null,
        config: serde_json::json!({"serve": ["./host"]}),
        started: "2026-01-02T03:04:05Z".to_owned(),
    }
}

fn check(id: &str, verdict: Verdict) -> CheckResult {
    let findings = if verdict.is_failure() {
        vec![Finding::new("TOY-X-01", "accepted", "ok:false", "ok:true").at(2)]
    } else {
        Vec::new()
    };
    CheckResult {
        id: id.to_owned(),
        title: "What is done.".to_owned(),
        rung: peerproof_engine::data::rung::Rung::Ordinary,
        first_canary: None,
        reason: findings.first().map(|finding| finding.reason.clone()),
        verdict,
        clauses: vec![ClauseRef { id: "TOY-X-01".into(), level: Level::Must }],
        choice: None,
        findings,
        rest: None,
        counted: Default::default(),
        confirmed_by: None,
        reproducer: None,
        wrong_line: None,
        others: Vec::new(),
        conversation: Vec::new(),
        ms: 7,
    }
}

fn write(path: &Path, checks: &[CheckResult]) {
    let ids: Vec<&str> = checks.iter().map(|check| check.id.as_str()).collect();
    let mut writer = ResultsWriter::create(path).unwrap();
    writer.begin(&header(&ids)).unwrap();
    for check in checks {
        writer.check(check).unwrap();
    }
    writer.end(1).unwrap();
}

fn all_verdicts() -> Vec<CheckResult> {
    let text = || "why".to_owned();
    [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Crash,
        Verdict::Hang,
        Verdict::Leak,
        Verdict::Open(text()),
        Verdict::Untestable(Untestable::new("why", "")),
        Verdict::NotClaimed(text()),
        Verdict::NotRun(text()),
        Verdict::Masked(text()),
        Verdict::Expected(text()),
        Verdict::Flaky(text()),
        Verdict::HarnessError(text()),
    ]
    .into_iter()
    .map(|verdict| check(&format!("toy/serve/{}", verdict.word()), verdict))
    .collect()
}

#[test]
fn every_verdict_survives_storage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/results.ndjson");
    let checks = all_verdicts();
    write(&path, &checks);
    let file = ResultsFile::load(&path).unwrap();
    assert_eq!(file.incomplete, None);
    assert_eq!(file.runs.len(), 1);
    assert_eq!(file.runs[0].checks, checks);
    assert_eq!(file.runs[0].header.rng_seed, u64::MAX);
    assert_eq!(file.runs[0].footer.as_ref().unwrap().exit_code, 1);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(r#"{"type":"run","peerproof":"0.1.0","boundary":"toy","side":"provider""#));
    assert!(text.contains(r#"{"type":"check","id":"toy/serve/pass""#), "{text}");
    assert!(text.lines().last().unwrap().starts_with(r#"{"type":"end","counts":{"crash":1"#), "{text}");
}

#[test]
fn causes_are_kept_and_those_of_older_files_are_computed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let checks = all_verdicts();
    write(&path, &checks);
    let older = ResultsFile::load(&path).unwrap();
    assert_eq!(older.runs[0].causes, causes(&checks));
    assert_eq!(older.runs[0].causes.len(), 1);

    let mut writer = ResultsWriter::create(&path).unwrap();
    writer.begin(&older.runs[0].header).unwrap();
    checks.iter().for_each(|check| writer.check(check).unwrap());
    let kept = vec![Cause { clause: "TOY-X-09".into(), ..older.runs[0].causes[0].clone() }];
    writer.causes(&kept).unwrap();
    writer.end(1).unwrap();
    let file = ResultsFile::load(&path).unwrap();
    assert_eq!((file.incomplete, &file.runs[0].causes), (None, &kept));

    let text = std::fs::read_to_string(&path).unwrap();
    let (cut, _footer) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&path, format!("{cut}\n")).unwrap();
    let file = ResultsFile::load(&path).unwrap();
    assert!(file.incomplete.is_some());
    assert_eq!(file.runs[0].causes, causes(&checks), "some lines of a file that was cut may be missing");
}

#[test]
fn several_runs_stand_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = ResultsWriter::create(&path).unwrap();
    for id in ["a/1", "a/2"] {
        writer.begin(&header(&[id])).unwrap();
        writer.check(&check(id, Verdict::Pass)).unwrap();
        writer.end(0).unwrap();
    }
    let file = ResultsFile::load(&path).unwrap();
    assert_eq!((file.runs.len(), file.incomplete), (2, None));
}

#[test]
fn an_explanation_is_folded_into_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut failed = check("a/1", Verdict::Fail);
    let mut writer = ResultsWriter::create(&path).unwrap();
    writer.begin(&header(&["a/1"])).unwrap();
    writer.check(&failed).unwrap();
    let explanation = Explanation {
        id: "a/1".to_owned(),
        reproducer: Some("a__1".to_owned()),
        conversation: vec!["→ {}".to_owned()],
        wrong_line: Some(0),
        others: Vec::new(),
        finding: Some(Finding::new("TOY-X-01", "accepted", "ok:false", "less").at(0)),
    };
    writer.explain(&explanation).unwrap();
    explanation.fold_into(&mut failed);
    let kept = "the step is one of the check's plan, not of the shortest conversation";
    assert_eq!((failed.findings[0].got.as_str(), failed.findings[0].step), ("less", Some(2)), "{kept}");
    writer.end(1).unwrap();
    assert_eq!(ResultsFile::load(&path).unwrap().whole().unwrap().runs[0].checks, [failed]);
}

#[test]
fn a_file_cut_anywhere_says_so_and_keeps_its_complete_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    write(&path, &[check("a/1", Verdict::Pass), check("a/2", Verdict::Fail)]);
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
        let read = ResultsFile::read(&whole[..length], "r");
        // A last line that only lacks its line feed is complete.
        let complete = lines + usize::from(whole[length] == b'\n');
        if complete == 0 {
            assert!(read.unwrap_err().to_string().contains("is not a results file"), "{length}");
            continue;
        }
        let file = read.unwrap();
        assert_eq!(file.runs[0].checks.len(), complete.min(3) - 1, "{length}");
        if length + 1 < whole.len() {
            let sentence = file.incomplete.unwrap();
            assert!(sentence.contains("has no footer"), "{length}: {sentence}");
        }
    }
}

#[test]
fn a_changed_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    write(&path, &[check("a/1", Verdict::Fail), check("a/2", Verdict::Pass)]);
    let text = std::fs::read_to_string(&path).unwrap();
    let sentence = |text: &str| ResultsFile::read(text.as_bytes(), "r").unwrap().incomplete.unwrap();
    assert!(sentence(&text.replace("\"ms\":7", "\"ms\":8")).contains("hash"));
    let without: String =
        text.lines().filter(|line| !line.contains("a/2\",\"title")).map(|l| format!("{l}\n")).collect();
    assert!(sentence(&without).contains("hash"));
    let doubled = text.replacen(
        "{\"type\":\"end\"",
        &format!("{}\n{{\"type\":\"end\"", text.lines().nth(1).unwrap()),
        1,
    );
    assert!(sentence(&doubled).contains("twice"));
    let damaged = text.replacen("\"verdict\":\"fail\"", "\"verdict\":\"pale\"", 1);
    let file = ResultsFile::read(damaged.as_bytes(), "r").unwrap();
    assert!(file.incomplete.unwrap().contains("line 2"));
    assert_eq!(file.runs[0].checks.len(), 1);
}

#[test]
fn what_is_no_results_file_is_refused_in_one_sentence() {
    for text in ["", "{}\n", "hello\n", "{\"type\":\"end\",\"counts\":{},\"exit_code\":0,\"sha256\":\"\"}\n"]
    {
        let error = ResultsFile::read(text.as_bytes(), "r").unwrap_err().to_string();
        assert!(error.starts_with("r is not a results file"), "{text:?}: {error}");
    }
    assert!(
        ResultsFile::load(Path::new("/nonexistent/r")).unwrap_err().to_string().contains("/nonexistent/r")
    );
}

#[test]
fn a_planned_check_without_result_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = ResultsWriter::create(&path).unwrap();
    writer.begin(&header(&["a/1", "a/2"])).unwrap();
    writer.check(&check("a/1", Verdict::Pass)).unwrap();
    writer.end(0).unwrap();
    let error = ResultsFile::load(&path).unwrap().whole().unwrap_err();
    assert!(error.to_string().contains("a/2"), "{error}");
}

#[test]
fn a_full_disk_is_one_sentence_for_ever() {
    let mut writer = ResultsWriter::create(Path::new("/dev/full")).unwrap();
    let error = writer.begin(&header(&["a/1"])).unwrap_err();
    assert!(error.to_string().contains("/dev/full") && error.to_string().contains("space"), "{error}");
    assert_eq!(writer.check(&check("a/1", Verdict::Pass)).unwrap_err(), error);
    assert!(
        ResultsWriter::create(Path::new("/proc/nope/r")).unwrap_err().to_string().contains("/proc/nope/r")
    );
}

#[test]
fn a_clause_is_proved_only_when_every_check_of_it_decided() {
    let standing = |verdicts: Vec<Verdict>| {
        let checks: Vec<_> = verdicts.into_iter().map(|verdict| check("a", verdict)).collect();
        results::standings(&checks).remove(0).1
    };
    let why = || "why".to_owned();
    assert_eq!(standing(vec![Verdict::Pass, Verdict::Pass]), Standing::Proved);
    assert_eq!(standing(vec![Verdict::Pass, Verdict::Untestable(why().into())]), Standing::Partly(1));
    assert_eq!(standing(vec![Verdict::NotRun(why())]), Standing::Undecided("not_run: why".to_owned()));
    assert_eq!(standing(vec![Verdict::NotClaimed(why())]), Standing::NotClaimed);
    assert_eq!(standing(vec![Verdict::Pass, Verdict::Crash]), Standing::Broken(vec!["accepted".to_owned()]));
}

#[test]
fn a_should_that_is_broken_leaves_the_other_clauses_to_what_its_conversation_shows() {
    let must = ClauseRef { id: "TOY-MUST-01".into(), level: Level::Must };
    let told = |rest: Option<Verdict>| {
        let mut check = check("s", Verdict::Fail);
        check.clauses[0].level = Level::Should;
        check.clauses.push(must.clone());
        let check = CheckResult { rest, ..check };
        let standing = results::standings(std::slice::from_ref(&check)).remove(0).1;
        (standing, results::exit_code(std::slice::from_ref(&check), false))
    };
    assert_eq!(told(Some(Verdict::Pass)), (Standing::Proved, 0));
    let why = Untestable::new("step_left_out", "1 of 2");
    let left_out = Standing::Undecided("untestable: step_left_out: 1 of 2".to_owned());
    assert_eq!(told(Some(Verdict::Untestable(why))), (left_out, 4));
    let broken = CheckResult { rest: Some(Verdict::Pass), ..check("m", Verdict::Fail) };
    assert_eq!(
        *broken.of_others(),
        Verdict::Fail,
        "what else a check says that fails for a MUST is not known"
    );
}

#[test]
fn a_result_reads_back_and_so_does_one_of_before() {
    let refuses = Untestable::new(Untestable::NO_WORKING_REPLY, "error: -32601");
    let result =
        CheckResult { first_canary: Some("run".to_owned()), ..check("first", Verdict::Untestable(refuses)) };
    let mut stored = serde_json::to_value(&result).unwrap();
    assert_eq!(stored["detail"], "no_working_reply: error: -32601");
    assert_eq!(serde_json::from_value::<CheckResult>(stored.clone()).unwrap(), result);
    stored.as_object_mut().unwrap().remove("first_canary");
    let before = CheckResult { first_canary: None, ..result };
    assert_eq!(serde_json::from_value::<CheckResult>(stored).unwrap(), before);
}

#[test]
fn the_exit_code_says_whose_fault_it_is_and_never_counts() {
    let code = |checks: &[CheckResult]| results::exit_code(checks, false);
    let good = check("g", Verdict::Pass);
    let skipped = check("u", Verdict::Untestable("x".into()));
    assert_eq!(code(&[]), 4);
    assert_eq!(code(std::slice::from_ref(&skipped)), 4);
    assert_eq!(code(&[good.clone(), skipped]), 0);
    let why = Untestable::new(Untestable::NO_WORKING_REPLY, runner::NO_CANARY_ANSWERED);
    let refuses = Verdict::Untestable(why);
    let first = CheckResult { first_canary: Some("run".to_owned()), ..check("first", refuses.clone()) };
    assert_eq!(code(&[good.clone(), first]), 4);
    assert_eq!(code(&[good.clone(), check("t/run/other", refuses)]), 0);
    assert_eq!(code(&[good.clone(), check("f", Verdict::Flaky("1/3".to_owned()))]), 6);
    assert_eq!(code(&[good.clone(), check("h", Verdict::HarnessError("x".to_owned()))]), 70);
    assert_eq!(code(&[good.clone(), check("x", Verdict::Hang), check("y", Verdict::Fail)]), 1);
    let mut should = check("s", Verdict::Fail);
    should.clauses[0].level = Level::Should;
    assert_eq!(code(&[good.clone(), should.clone()]), 0);
    let now_and_then = CheckResult { verdict: Verdict::Flaky("1/3".to_owned()), ..should.clone() };
    assert_eq!(code(&[good.clone(), now_and_then.clone()]), 0);
    assert_eq!(results::exit_code(&[good.clone(), now_and_then], true), 6);
    assert_eq!(results::exit_code(&[good, should], true), 1);
}

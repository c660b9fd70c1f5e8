//! Tests of expectations: known failures stay quiet, changed ones are stale.

use std::collections::BTreeSet;

use jiff::civil::date;
use peerproof_engine::data::clause::Level;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::run::expectation::{self, Expectations, StaleReason};
use peerproof_engine::run::verdict::{CheckResult, ClauseRef, Verdict};

fn check(id: &str, verdict: Verdict, reasons: &[&str]) -> CheckResult {
    CheckResult {
        id: id.to_owned(),
        title: "What is done.".to_owned(),
        rung: peerproof_engine::data::rung::Rung::Ordinary,
        first_canary: None,
        reason: reasons.first().map(|reason| (*reason).to_owned()),
        verdict,
        clauses: vec![ClauseRef { id: "TH-X-01".into(), level: Level::Must }],
        choice: None,
        findings: reasons.iter().map(|reason| Finding::new("TH-X-01", *reason, "a", "b")).collect(),
        rest: None,
        counted: Default::default(),
        confirmed_by: None,
        reproducer: None,
        wrong_line: None,
        others: Vec::new(),
        conversation: Vec::new(),
        ms: 1,
    }
}

fn entry(check: &str, verdict: &str, reason: &str) -> String {
    format!("[[expect]]\ncheck = \"{check}\"\nverdict = \"{verdict}\"\nreason = \"{reason}\"\n")
}

const IDS: [&str; 3] = ["t/serve/a", "t/serve/b", "t/run/c"];

/// Applies `text` to `results`; returns their verdicts and the stale entries.
fn apply(text: &str, results: &mut [CheckResult]) -> (Vec<&'static str>, Vec<StaleReason>) {
    let expectations = Expectations::parse(text).unwrap();
    for result in results.iter_mut() {
        expectations.apply(result);
    }
    let stale = expectations.stale(results, IDS, date(2026, 6, 1));
    let words = results.iter().map(|result| result.verdict.word()).collect();
    (words, stale.into_iter().map(|stale| stale.why).collect())
}

#[test]
fn an_expected_failure_is_expected_and_nothing_is_stale() {
    let mut results = [check("t/serve/a", Verdict::Fail, &["accepted"])];
    let text = entry("t/serve/a", "fail", "accepted") + "issue = \"#7\"\nexpires = \"2026-06-01\"\n";
    assert_eq!(apply(&text, &mut results), (vec!["expected"], vec![]));
    assert_eq!(results[0].verdict, Verdict::Expected("fail; #7".to_owned()));
}

#[test]
fn an_unexpected_pass_is_stale() {
    let mut results = [check("t/serve/a", Verdict::Pass, &[])];
    let stale = vec![StaleReason::Passes("t/serve/a".to_owned())];
    assert_eq!(apply(&entry("t/serve/a", "fail", "accepted"), &mut results), (vec!["pass"], stale));
}

#[test]
fn another_reason_or_verdict_stays_a_failure_and_is_stale() {
    let text = entry("t/serve/a", "fail", "accepted");
    for (verdict, reason) in [(Verdict::Fail, "hung"), (Verdict::Crash, "accepted")] {
        let word = verdict.word();
        let mut results = [check("t/serve/a", verdict, &[reason])];
        let stale = vec![StaleReason::FailsOtherwise("t/serve/a".to_owned(), format!("{word} ({reason})"))];
        assert_eq!(apply(&text, &mut results), (vec![word], stale));
    }
}

#[test]
fn every_reason_has_to_be_expected() {
    let findings: &[&str] = &["accepted", "no_hit", "accepted"];
    let one = entry("t/serve/a", "fail", "accepted");
    let mut results = [check("t/serve/a", Verdict::Fail, findings)];
    assert_eq!(apply(&one, &mut results), (vec!["fail"], vec![]));
    let both = one + &entry("t/serve/a", "fail", "no_hit");
    let mut results = [check("t/serve/a", Verdict::Fail, findings)];
    assert_eq!(apply(&both, &mut results), (vec!["expected"], vec![]));
}

#[test]
fn an_entry_for_no_check_is_stale_and_one_for_a_check_that_did_not_run_is_not() {
    let mut results = [check("t/serve/a", Verdict::NotRun("slow".to_owned()), &[])];
    let text = entry("t/serve/a", "fail", "x") + &entry("t/run/c", "fail", "x") + &entry("t/z", "fail", "x");
    assert_eq!(apply(&text, &mut results), (vec!["not_run"], vec![StaleReason::NoSuchCheck]));
}

#[test]
fn an_expired_entry_is_stale_and_says_when() {
    let mut results = [check("t/serve/a", Verdict::Fail, &["accepted"])];
    let text = entry("t/serve/a", "fail", "accepted") + "expires = \"2026-05-31\"\n";
    assert_eq!(apply(&text, &mut results), (vec!["expected"], vec![StaleReason::Expired(date(2026, 5, 31))]));
}

#[test]
fn a_glob_covers_checks_of_one_folder_and_each_must_fail() {
    let mut results = [
        check("t/serve/a", Verdict::Hang, &["hung"]),
        check("t/serve/b", Verdict::Pass, &[]),
        check("t/run/c", Verdict::Hang, &["hung"]),
    ];
    let stale = vec![StaleReason::Passes("t/serve/b".to_owned())];
    let words = vec!["expected", "pass", "hang"];
    assert_eq!(apply(&entry("t/serve/*", "hang", "hung"), &mut results), (words, stale));
    let mut results = [check("t/run/c", Verdict::Hang, &["hung"])];
    assert_eq!(
        apply(&entry("t/*", "hang", "hung"), &mut results),
        (vec!["hang"], vec![StaleReason::NoSuchCheck])
    );
}

#[test]
fn a_flaky_check_may_pass() {
    let text = entry("t/serve/a", "flaky", "hung");
    let flaky = Verdict::Flaky("1/3".to_owned());
    let verdicts = [(Verdict::Pass, "pass"), (flaky, "expected"), (Verdict::Hang, "expected")];
    for (verdict, word) in verdicts {
        let reasons: &[&str] = if verdict == Verdict::Pass { &[] } else { &["hung"] };
        let mut results = [check("t/serve/a", verdict, reasons)];
        assert_eq!(apply(&text, &mut results), (vec![word], vec![]));
    }
}

#[test]
fn a_flaky_reason_need_not_show() {
    let text = entry("t/serve/a", "flaky", "hung") + &entry("t/serve/a", "flaky", "late");
    let mut results = [check("t/serve/a", Verdict::Fail, &["late"])];
    assert_eq!(apply(&text, &mut results), (vec!["expected"], vec![]));
    let mut results = [check("t/serve/a", Verdict::Fail, &["late", "accepted"])];
    assert_eq!(apply(&text, &mut results), (vec!["fail"], vec![]));
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    let good = entry("t/serve/a", "fail", "x");
    for (text, word) in [
        (good.clone() + "colour = \"red\"\n", "colour"),
        (good.clone() + "expires = \"soon\"\n", "soon"),
        (entry("t/serve/a", "pass", "x"), "pass"),
        (entry("t/[", "fail", "x"), "expectation 1"),
        (good.clone() + &good, "twice"),
        ("[[expect]]\ncheck = \"a\"\nverdict = \"fail\"\n".to_owned(), "reason"),
    ] {
        let error = Expectations::parse(&text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_init_writes_covers_every_failure_and_add_repeats_nothing() {
    let mut results = [
        check("t/serve/a", Verdict::Fail, &["accepted", "no_hit"]),
        check("t/serve/b", Verdict::Flaky("1/3".to_owned()), &["hung"]),
        check("t/run/c", Verdict::Pass, &[]),
    ];
    let text = expectation::init(&results);
    let expectations = Expectations::parse(&text).unwrap();
    assert_eq!(expectations.entries().count(), 3);
    assert_eq!(expectation::add(&text, &expectations, &results), text);
    assert_eq!(apply(&text, &mut results), (vec!["expected", "expected", "pass"], vec![]));
}

#[test]
fn removing_keeps_other_entries_and_their_comments() {
    let first = "# head\n\n# why a\n[[expect]]\ncheck = \"a\"\nverdict = \"fail\"\nreason = \"x\"\n\n";
    let second = "# why b\n[[ expect ]] # b\ncheck = \"b\"\nverdict = \"fail\"\nreason = \"x\"\n";
    let text = format!("{first}{second}");
    let expectations = Expectations::parse(&text).unwrap();
    let without = |gone: &[usize]| {
        expectation::remove(&text, &expectations, &gone.iter().copied().collect::<BTreeSet<_>>()).unwrap()
    };
    assert_eq!(without(&[]), text);
    assert_eq!(without(&[0]), format!("# head\n\n{second}"));
    assert_eq!(without(&[1]), first);
}

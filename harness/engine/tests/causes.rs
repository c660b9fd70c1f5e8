//! Tests of causes: grouping of findings, names and order.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::collections::BTreeSet;

use peerproof_engine::data::clause::Level;
use peerproof_engine::data::finding::occasion::{MessageKind, NamedPart, Occasion};
use peerproof_engine::data::finding::{Finding, Nature, Repair};
use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::transcript::Exit;
use peerproof_engine::run::causes::{Cause, Certainty, causes};
use peerproof_engine::run::results::Explanation;
use peerproof_engine::run::verdict::{CheckResult, ClauseRef, Verdict, mask};

fn check(name: &str, clauses: &[&str], findings: Vec<Finding>) -> CheckResult {
    let level = |id: &str| if id.starts_with("SHOULD") { Level::Should } else { Level::Must };
    CheckResult {
        id: format!("toy/serve/{name}"),
        title: "Something is done.".to_owned(),
        verdict: Verdict::of_findings(&findings).unwrap_or(Verdict::Pass),
        reason: None,
        clauses: clauses.iter().map(|id| ClauseRef { id: (*id).into(), level: level(id) }).collect(),
        choice: None,
        findings,
        rest: None,
        counted: Default::default(),
        confirmed_by: None,
        reproducer: None,
        wrong_line: None,
        others: Vec::new(),
        rung: peerproof_engine::data::rung::Rung::Ordinary,
        first_canary: None,
        conversation: vec!["→ x".to_owned()],
        ms: 1,
    }
}

fn occasion(stimulus: MessageKind) -> Box<Occasion> {
    Box::new(Occasion {
        program: String::new(),
        by_itself: None,
        died_with: None,
        command: "serve".to_owned(),
        stimulus,
        messages: 1,
        is_vehicle: false,
        is_aimed: true,
        is_echo: false,
        is_uncaught: false,
        is_of_method: false,
    })
}

fn finding(clause: &str, reason: &str) -> Finding {
    let occasion = Some(occasion(MessageKind::Object));
    Finding { occasion, ..Finding::new(clause, reason, "this", "that") }
}

fn misplaced(clause: &str, at: &str, to: &str) -> Finding {
    finding(clause, "wrong_code").repaired_by(Repair::set(at, to))
}

fn clauses(causes: &[Cause]) -> Vec<&str> {
    causes.iter().map(|cause| cause.clause.0.as_str()).collect()
}

#[test]
fn one_place_and_value_is_one_cause_whatever_the_clause() {
    let checks = [
        check("pipelined", &["B", "A"], vec![misplaced("B", "/items/3/code", "7")]),
        check("plain", &["A"], vec![misplaced("A", "/items/0/code", "7"); 3]),
    ];
    let found = causes(&checks);
    assert_eq!(clauses(&found), ["A"]);
    assert_eq!(found[0].place.as_deref(), Some("/items/*/code"));
    assert_eq!((found[0].findings(), found[0].checks.len()), (4, 2));
    assert_eq!(found[0].check, "toy/serve/plain");
    let others = [
        check("value", &["A"], vec![misplaced("A", "/items/0/code", "8")]),
        check("place", &["A"], vec![misplaced("A", "/code", "7")]),
        check("reason", &["A"], vec![finding("A", "accepted")]),
    ];
    let found = causes(&[&checks[..], &others].concat());
    assert_eq!(found.len(), 4, "another value, place or reason is another fault");
}

#[test]
fn a_value_out_of_the_message_says_nothing_of_the_fault() {
    let echo = |to: &str| {
        let mut finding = misplaced("A", "/id", to);
        finding.occasion.as_mut().unwrap().is_echo = true;
        finding
    };
    assert_eq!(causes(&[check("ids", &["A"], vec![echo("1"), echo("2")])]).len(), 1);
    assert_eq!(causes(&[check("ids", &["A"], vec![misplaced("A", "/id", "1"), echo("2")])]).len(), 2);
}

#[test]
fn a_refusal_of_each_method_is_a_fault_of_its_own() {
    let code = |clause: &str, is_of_method| {
        let mut finding = misplaced(clause, "/error/code", "-32602");
        finding.occasion.as_mut().unwrap().is_of_method = is_of_method;
        finding
    };
    let both = |is_of_method| [check("x", &["A"], vec![code("A", is_of_method), code("B", is_of_method)])];
    assert_eq!((causes(&both(false)).len(), causes(&both(true)).len()), (1, 2));
}

#[test]
fn a_place_that_is_the_whole_answer_is_no_sign() {
    let whole = |clause: &str| finding(clause, "wrong_outcome").repaired_by(Repair::other(""));
    assert_eq!(causes(&[check("x", &["A"], vec![whole("A"), whole("B")])]).len(), 2);
}

#[test]
fn a_message_sent_for_a_clause_names_the_cause_before_a_vehicle() {
    let mut carried = misplaced("A", "/code", "7");
    carried.occasion.as_mut().unwrap().is_vehicle = true;
    let mut beside = misplaced("B", "/code", "7");
    beside.occasion.as_mut().unwrap().is_aimed = false;
    let checks = [
        check("in-pieces", &["A"], vec![carried]),
        check("beside", &["B"], vec![beside]),
        check("long", &["C", "D"], vec![misplaced("C", "/code", "7")]),
    ];
    assert_eq!(clauses(&causes(&checks)), ["C"]);
}

#[test]
fn a_manner_that_no_plain_message_shows_is_a_fault_of_the_carriage() {
    let lost = |clause: &str, reason: &str, stimulus, is_vehicle| {
        let mut finding = finding(clause, reason).repaired_by(Repair::Send);
        let occasion = finding.occasion.as_mut().unwrap();
        (occasion.stimulus, occasion.is_vehicle) = (stimulus, is_vehicle);
        finding
    };
    let carried = [
        check("pieces", &["A"], vec![lost("A", "hung", MessageKind::Lines, true)]),
        check("together", &["B"], vec![lost("B", "no_reply", MessageKind::Lines, true)]),
        check("large", &["C"], vec![lost("C", "no_reply", MessageKind::Object, true)]),
    ];
    assert_eq!(causes(&carried).len(), 1);
    let plain = check("plain", &["D"], vec![lost("D", "no_reply", MessageKind::Object, false)]);
    assert_eq!(causes(&[&carried[..], &[plain]].concat()).len(), 4, "the carriage does not explain it");
    let other = check("other", &["D"], vec![finding("D", "refused").repaired_by(Repair::other(""))]);
    assert_eq!(causes(&[&carried[..], &[other]].concat()).len(), 2, "another manner");
}

#[test]
fn a_clause_all_of_whose_checks_fail_names_the_cause_before_one_whose_checks_pass() {
    let checks = [
        check("a-1", &["A"], vec![misplaced("A", "/code", "7")]),
        check("a-2", &["A"], Vec::new()),
        check("b-1", &["B"], vec![misplaced("B", "/code", "7")]),
    ];
    assert_eq!(clauses(&causes(&checks)), ["B"]);
}

#[test]
fn a_breakdown_at_what_is_no_request_is_one_cause() {
    let crash = |clause: &str, stimulus| Finding {
        occasion: Some(occasion(stimulus)),
        ..Finding::new(clause, "crashed", "an answer", "nothing").of_nature(Nature::Crash)
    };
    let malformed = [
        crash("A", MessageKind::Malformed),
        crash("B", MessageKind::Malformed),
        crash("C", MessageKind::Object),
    ];
    assert_eq!(causes(&[check("x", &["A", "B", "C"], malformed.to_vec())]).len(), 2);
    let kinds =
        [MessageKind::Malformed, MessageKind::Binary, MessageKind::Object].map(|kind| crash("A", kind));
    assert_eq!(causes(&[check("x", &["A"], kinds.to_vec())]).len(), 1, "one clause and one reason");
}

#[test]
fn deaths_by_one_error_are_one_cause() {
    let dies = |clause: &str, with: &str| {
        let died_with = Some(with.to_owned());
        let occasion = Some(Box::new(Occasion { died_with, ..*occasion(MessageKind::Object) }));
        Finding {
            occasion,
            ..Finding::new(clause, "crashed", "an answer", "nothing").of_nature(Nature::Crash)
        }
    };
    let of = |name: &str, with: &str| check(name, &[name], vec![dies(name, with)]);
    assert_eq!(causes(&[of("A", "KeyError: id"), of("B", "KeyError: id")]).len(), 1);
    assert_eq!(causes(&[of("A", "KeyError: id"), of("B", "KeyError: method")]).len(), 2);
    let mut at_canary = of("B", "KeyError: id");
    at_canary.findings[0].reason = "canary_failed".to_owned();
    assert_eq!(causes(&[of("A", "KeyError: id"), at_canary]).len(), 1, "the end is noticed later");
    let mut at_end = of("B", "KeyError: id");
    at_end.findings[0].reason = "exit_status".to_owned();
    at_end.findings[0].nature = Nature::Violation;
    assert_eq!(causes(&[of("A", "KeyError: id"), at_end.clone()]).len(), 1, "the input has ended");
    assert_eq!(causes(&[of("A", "KeyError: method"), at_end.clone()]).len(), 2);
    let mut other = at_end.clone();
    other.id = "toy/serve/c".to_owned();
    other.findings[0].occasion.as_mut().unwrap().died_with = None;
    assert_eq!(causes(&[at_end, other]).len(), 1, "a log is no sign of a crash");
}

#[test]
fn crashes_stand_before_musts_and_these_before_shoulds() {
    let crash = finding("Z", "crashed").of_nature(Nature::Crash);
    let checks = [
        check("should", &["SHOULD"], vec![finding("SHOULD", "late")]),
        check("must", &["A"], vec![finding("A", "wrong_output")]),
        check("crash", &["Z"], vec![crash]),
    ];
    let found = causes(&checks);
    assert_eq!(clauses(&found), ["Z", "A", "SHOULD"]);
    let reversed: Vec<CheckResult> = checks.iter().rev().cloned().collect();
    assert_eq!(found, causes(&reversed), "the order in which checks ended does not matter");
}

#[test]
fn every_finding_belongs_to_one_cause_with_an_id_of_its_own() {
    let mut checks = Vec::new();
    for (number, stimulus) in
        [MessageKind::Object, MessageKind::Malformed, MessageKind::Event].into_iter().enumerate()
    {
        for clause in ["A", "B", "SHOULD"] {
            let mut one = finding(clause, ["accepted", "refused", "hung"][number]);
            one.occasion = Some(occasion(stimulus)).filter(|_| number > 0);
            let findings = vec![one; number + 1];
            checks.push(check(&format!("{clause}-{number}"), &[clause], findings));
        }
    }
    checks.push(check("passes", &["A"], Vec::new()));
    let found = causes(&checks);
    let findings: usize = checks.iter().map(|check| check.findings.len()).sum();
    assert_eq!(found.iter().map(Cause::findings).sum::<usize>(), findings);
    let ids: BTreeSet<&str> = found.iter().map(|cause| cause.id.as_str()).collect();
    assert_eq!(ids.len(), found.len());
}

#[test]
fn what_is_expected_or_shows_now_and_then_stands_last() {
    let of = |name: &str, clause: &str, verdict| CheckResult {
        verdict,
        ..check(name, &[clause], vec![finding(clause, "accepted")])
    };
    let found = causes(&[
        of("known", "A", Verdict::Expected("fail".to_owned())),
        of("flaky", "B", Verdict::Flaky("1/3".to_owned())),
        of("sure", "C", Verdict::Fail),
    ]);
    assert_eq!(clauses(&found), ["C", "B", "A"]);
    let standings: Vec<Certainty> = found.iter().map(|cause| cause.certainty).collect();
    assert_eq!(standings, [Certainty::Broken, Certainty::Flaky, Certainty::Expected]);
}

#[test]
fn what_a_correct_counterpart_brings_about_stands_before_the_rest() {
    let crash = finding("Z", "crashed").of_nature(Nature::Crash);
    let mut checks =
        [check("flood", &["Z"], vec![crash]), check("plain", &["A"], vec![finding("A", "wrong_output")])];
    checks[0].rung = Rung::Hostile;
    let found = causes(&checks);
    assert_eq!(clauses(&found), ["A", "Z"]);
    assert_eq!(found.iter().map(|cause| cause.rung).collect::<Vec<_>>(), [Rung::Ordinary, Rung::Hostile]);
}

#[test]
fn a_plain_request_that_is_refused_names_what_else_is_refused() {
    let refused = |clause: &str| finding(clause, "refused").repaired_by(Repair::Exit(Exit::Code(0)));
    let canary =
        CheckResult { first_canary: Some("serve".to_owned()), ..check("canary", &["A"], vec![refused("A")]) };
    let others = [check("x", &["B"], vec![refused("B")]), check("y", &["C"], vec![finding("C", "refused")])];
    let found = causes(&[&others[..], &[canary]].concat());
    assert_eq!(clauses(&found), ["A", "C"], "another repair is another fault");
    assert_eq!(found[0].checks.len(), 2);
    assert_eq!(causes(&others).len(), 2);
}

#[test]
fn a_peer_that_ends_at_a_plain_request_ends_at_others_by_one_fault() {
    let ended = |clause: &str, reason: &str| {
        finding(clause, reason).of_nature(Nature::Crash).repaired_by(Repair::Send)
    };
    let canary = |finding: Finding| CheckResult {
        first_canary: Some("serve".to_owned()),
        ..check("canary", &["A"], vec![finding])
    };
    let others = [
        check("x", &["B"], vec![ended("B", "canary_failed")]),
        check("y", &["C"], vec![Finding { nature: Nature::Violation, ..ended("C", "no_reply") }]),
    ];
    let found = |canary: CheckResult| causes(&[&others[..], &[canary]].concat()).len();
    assert_eq!(found(canary(ended("A", "ended_early"))), 2, "a missing answer is no end");
    assert_eq!(found(canary(finding("A", "refused"))), 3);
}

#[test]
fn many_members_that_are_wrong_in_one_way_are_one_fault() {
    let lost = |name: &str| misplaced("A", &format!("/metadata/{name}"), "1");
    let four = ["a", "b", "c", "d"].map(lost);
    assert_eq!(causes(&[check("kept", &["A"], four[..2].to_vec())]).len(), 2);
    let found = causes(&[check("kept", &["A"], four.to_vec())]);
    assert_eq!(found.iter().map(|cause| cause.place.as_deref()).collect::<Vec<_>>(), [Some("/metadata/*")]);
}

#[test]
fn one_clause_that_is_broken_in_one_way_at_many_places_is_one_fault() {
    let lost = |clause, at: &str| misplaced(clause, at, "1");
    let places = ["/errors/0/at", "/id", "/plans/1/steps"].map(|at| lost("A", at));
    assert_eq!(causes(&[check("kept", &["A"], places[..2].to_vec())]).len(), 2);
    let other = check("other", &["B"], vec![lost("B", "/session")]);
    let found = causes(&[check("kept", &["A"], places.to_vec()), other]);
    assert_eq!(clauses(&found), ["A", "B"]);
    assert_eq!(found[0].place, None);
}

#[test]
fn a_fault_that_the_model_names_for_itself_is_one_whatever_its_steps_are_about() {
    let borrowed = |clause: &str, reason: &str| {
        let mut finding = finding("OWN", "accepted");
        finding.clause = clause.into();
        let named = NamedPart { clause: "A".into(), reason: reason.to_owned() };
        finding.occasion.as_mut().unwrap().by_itself = Some(named);
        finding
    };
    let checks = |reason: &str| {
        let mut plain = check("plain", &["A"], vec![finding("A", reason)]);
        plain.rung = Rung::Hostile;
        let others = ["B", "C"].map(|clause| check(clause, &[clause], vec![borrowed(clause, reason)]));
        [&[plain][..], &others].concat()
    };
    assert_eq!(clauses(&causes(&checks("accepted"))), ["A"]);
    assert_eq!(clauses(&causes(&checks("refused"))), ["A"], "most checks of that clause fail");
    let right = ["d", "e"].map(|name| check(name, &["A"], Vec::new()));
    let found = causes(&[&checks("refused")[..], &right].concat());
    assert_eq!(found.len(), 3, "many faults come to a refusal");
}

#[test]
fn a_clause_that_no_check_of_its_own_shows_broken_names_no_cause_of_another() {
    let mut aimed = finding("B", "other_result");
    aimed.occasion.as_mut().unwrap().by_itself =
        Some(NamedPart { clause: "A".into(), reason: "false_hit".to_owned() });
    let mut generated = finding("A", "false_hit");
    let occasion = generated.occasion.as_mut().unwrap();
    (occasion.is_aimed, occasion.is_vehicle) = (false, true);
    let mut vehicle = check("generated", &["C", "A"], vec![generated]);
    vehicle.rung = Rung::Malformed;
    assert_eq!(clauses(&causes(&[vehicle, check("own", &["B"], vec![aimed])])), ["B"]);
}

#[test]
fn findings_of_one_clause_that_a_check_shows_together_are_one_fault() {
    let both = vec![finding("A", "accepted"), finding("A", "contacted")];
    let other = check("other", &["A"], vec![finding("A", "contacted")]);
    assert_eq!(causes(&[check("both", &["A"], both), other.clone()]).len(), 1);
    let apart = check("apart", &["A"], vec![finding("A", "accepted")]);
    assert_eq!(causes(&[apart, other]).len(), 2);
}

#[test]
fn what_follows_in_a_conversation_belongs_to_what_went_before() {
    let at = |step: usize, clause: &str| finding(clause, "false_hit").at(step);
    let derailed = check("derailed", &["A", "B"], vec![at(1, "A"), at(2, "B")]);
    let found = causes(std::slice::from_ref(&derailed));
    assert_eq!((clauses(&found), found[0].findings()), (vec!["A"], 2));
    let beside = check("beside", &["A", "B"], vec![at(1, "A"), at(1, "B")]);
    assert_eq!(causes(&[beside]).len(), 2, "nothing went before");
    let shows_it_first = check("b", &["B"], vec![at(3, "B")]);
    assert_eq!(causes(&[derailed, shows_it_first]).len(), 2);
}

#[test]
fn a_message_that_has_to_be_refused_is_malformed() {
    for reason in ["accepted", "taken", "was_run"] {
        let found = causes(&[check("x", &["A"], vec![finding("A", reason)])]);
        assert_eq!(found[0].rung, Rung::Malformed, "{reason}");
    }
}

#[test]
fn the_fault_of_the_shorter_conversation_stands_first_then_that_of_more_findings() {
    let mut long = finding("A", "refused");
    long.occasion.as_mut().unwrap().messages = 21;
    let long = ["a", "b"].map(|name| check(name, &["A"], vec![long.clone()]));
    let short = check("z", &["Z"], vec![finding("Z", "refused")]);
    assert_eq!(clauses(&causes(&[&long[..], &[short]].concat())), ["Z", "A"]);
    let one = check("b", &["B"], vec![finding("B", "refused")]);
    let three = check("c", &["C"], vec![finding("C", "refused"); 3]);
    assert_eq!(clauses(&causes(&[one, three])), ["C", "B"]);
}

#[test]
fn many_clauses_broken_in_one_manner_stand_first_and_one_long_conversation_names_them_not() {
    let wrong = |clause: &str, messages: usize| {
        let mut finding = finding(clause, "wrong_output");
        finding.occasion.as_mut().unwrap().messages = messages;
        finding
    };
    let mut checks: Vec<CheckResult> = ["A", "C", "D", "E", "F"]
        .map(|clause| check(clause, &[clause], vec![wrong(clause, 9); if clause == "A" { 50 } else { 1 }]))
        .into();
    checks.extend(["b-1", "b-2"].map(|name| check(name, &["B"], vec![wrong("B", 9); 4])));
    checks.push(check("short", &["S"], vec![finding("S", "refused")]));
    assert_eq!(clauses(&causes(&checks)), ["B", "S"]);
}

#[test]
fn a_lost_message_counts_for_the_clause_that_it_is_sent_for_alone() {
    let lost = |clause: &str, kind: MessageKind| Finding {
        occasion: Some(occasion(kind)),
        ..finding(clause, "no_reply").repaired_by(Repair::Send)
    };
    let alone = |clause: &str| check(clause, &[clause], vec![lost(clause, MessageKind::Object)]);
    let mut checks = vec![check("batch", &["A"], vec![lost("A", MessageKind::Array); 5])];
    checks.extend(["B", "C", "D", "E", "F"].map(alone));
    assert_eq!(clauses(&causes(&checks)), ["B"], "any batch that contains the message loses it");
}

#[test]
fn a_clause_that_several_checks_show_names_the_cause_before_one_of_a_single_check() {
    let both = ["b-1", "b-2"].map(|name| check(name, &["B", "C"], vec![misplaced("B", "/code", "7")]));
    let alone = check("a", &["A"], vec![misplaced("A", "/code", "7")]);
    assert_eq!(clauses(&causes(&[&both[..], &[alone]].concat())), ["B"]);
}

#[test]
fn an_explanation_changes_neither_the_causes_nor_the_checks_that_show_them() {
    let at = |step: usize, clause: &str| finding(clause, "false_hit").at(step);
    let mut checks = [
        check("a", &["A", "B"], vec![at(8, "A"), at(8, "B")]),
        check("c", &["A"], vec![at(3, "A")]),
        check("d", &["A"], vec![at(5, "A")]),
    ];
    checks[1].findings[0].occasion.as_mut().unwrap().messages = 2;
    let before = causes(&checks);
    for (check, lines) in checks.iter_mut().zip([1, 9, 1]) {
        let shrunk = Finding::new("A", "false_hit", "this", "that").at(0);
        let explanation = Explanation {
            id: check.id.clone(),
            reproducer: None,
            conversation: vec!["→ x".to_owned(); lines],
            wrong_line: None,
            others: Vec::new(),
            finding: Some(shrunk),
        };
        explanation.fold_into(check);
    }
    assert_eq!(causes(&checks), before);
}

#[test]
fn a_fault_that_masks_many_checks_stands_before_one_that_masks_none() {
    let masked = |name: &str| {
        let mask = mask(&"B".into(), "late", "toy/serve/b");
        CheckResult { verdict: Verdict::Masked(mask), ..check(name, &["C"], Vec::new()) }
    };
    let failed =
        ["A", "B"].map(|clause| check(&clause.to_lowercase(), &[clause], vec![finding(clause, "late")]));
    assert_eq!(clauses(&causes(&failed)), ["A", "B"]);
    assert_eq!(clauses(&causes(&[&failed[..], &[masked("x"), masked("y")]].concat())), ["B", "A"]);
}

#[test]
fn a_folder_whose_checks_all_fail_in_one_manner_is_one_fault() {
    let accepted = |at: usize| {
        let clause = format!("P-{at}");
        let finding = finding(&clause, "accepted").repaired_by(Repair::Exit(Exit::Code(1)));
        check(&format!("member/{at}"), &[&clause], vec![finding])
    };
    let all: Vec<CheckResult> = (1..=4).map(accepted).collect();
    assert_eq!(causes(&all).len(), 1);
    assert_eq!(causes(&all[..3]).len(), 3);
    let one_passes = [&all[..], &[check("member/5", &["P-5"], Vec::new())]].concat();
    assert_eq!(causes(&one_passes).len(), 4, "the peer does refuse something of the kind");
}

#[test]
fn many_clauses_that_are_broken_in_one_manner_are_one_fault() {
    let untold =
        |at: usize| check(&format!("{at}/x"), &["C"], vec![finding(&format!("C-{at}"), "name_not_told")]);
    let checks: Vec<CheckResult> = (1..=6).map(untold).collect();
    assert_eq!(causes(&checks).len(), 1);
    assert_eq!(causes(&checks[..5]).len(), 5);
}

#[test]
fn a_clause_that_is_broken_in_several_folders_is_one_fault() {
    let late = |at: usize| check(&format!("f-{}/{at}", at % 2), &["A"], vec![finding("A", "late")]);
    assert_eq!(causes(&(0..8).map(late).collect::<Vec<_>>()).len(), 1);
}

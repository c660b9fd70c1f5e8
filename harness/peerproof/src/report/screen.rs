//! Screen of a run: the contents of every report, in reading order.

use std::collections::BTreeMap;

use super::printer::{Printer, Tone};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::{Level, Side};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::causes::{Cause, Certainty};
use peerproof_engine::run::results::StoredRun;
use peerproof_engine::run::runner;
use peerproof_engine::run::verdict::{CheckResult, Verdict, told_by};

mod cause;
mod outcome;
mod tally;

pub use cause::ReportedCause;
use outcome::{interrupted, outcome};
pub use tally::Tally;
use tally::tallies;

/// Code of a check that is undecided because another one reports its fault.
const MASKED: &str = "masked";
/// Maximum number of reasons in the sentence of a group.
const REASONS_MAX: usize = 2;

/// Contents of a report about one run.
pub struct Screen<'r> {
    /// Numbers of causes, failed checks and proved MUSTs, each with its tone.
    pub outcome: Vec<(Option<Tone>, String)>,
    /// Causes, gravest first.
    pub causes: Vec<ReportedCause<'r>>,
    /// Number of expected causes.
    pub expected: usize,
    /// Checks that are undecided until a cause is fixed, by cause.
    pub hidden: Vec<Group<'r>>,
    /// Other undecided checks by reason, the most frequent first.
    pub undecided: Vec<Group<'r>>,
    /// Advice about the peer as a whole.
    pub advice: Vec<String>,
    /// Sentence about unclaimed features and missing commands.
    pub unclaimed: Option<String>,
    /// Sentence about omitted rungs.
    pub left_out: Option<String>,
    /// Standing of the clauses by level.
    pub tallies: Vec<Tally>,
}

/// Checks with a common reason.
pub struct Group<'r> {
    /// Number of checks and their reason.
    pub sentence: String,
    /// All reasons with their numbers of checks, if `sentence` cannot hold them.
    pub reasons: Vec<(String, usize)>,
    /// Advice to get them decided.
    pub hint: Option<String>,
    /// Ids of the checks.
    pub checks: Vec<&'r str>,
}

impl<'r> Screen<'r> {
    /// Computes the screen of a run of `boundary`. With `strict`, a broken SHOULD decides the exit status.
    pub fn new(run: &'r StoredRun, boundary: Option<&'static dyn Boundary>, strict: bool) -> Self {
        let clauses = boundary.map_or(&[][..], Boundary::clauses);
        let tallies = tallies(run, boundary);
        let UndecidedChecks { hidden, undecided, unclaimed } = UndecidedChecks::of(run, boundary);
        Self {
            outcome: outcome(run, &tallies, clauses),
            causes: run
                .causes
                .iter()
                .filter(|cause| cause.is_told())
                .filter_map(|cause| ReportedCause::of(cause, run, clauses, strict))
                .collect(),
            expected: run.causes.iter().filter(|cause| cause.certainty == Certainty::Expected).count(),
            advice: match undecided.is_empty() && hidden.is_empty() {
                true => Vec::new(),
                false => advice(run, boundary),
            },
            left_out: left_out(run),
            hidden,
            undecided,
            unclaimed: unclaimed.sentence(boundary),
            tallies,
        }
    }

    /// Outcome on one line, with `more` appended.
    pub(crate) fn outcome_line(&self, more: Option<String>, printer: &Printer) -> String {
        let painted = self.outcome.iter().map(|(tone, text)| match tone {
            Some(tone) => printer.paint(*tone, text),
            None => text.clone(),
        });
        painted.chain(more).collect::<Vec<_>>().join(" · ")
    }
}

/// Word for the level of a broken clause. An undeclared behaviour for an open clause counts like a broken MUST.
pub(crate) fn level_of_finding(level: Level) -> &'static str {
    match level {
        Level::Must | Level::Open => "MUST",
        Level::Should => "SHOULD",
    }
}

/// Verdict in capitals, with the count of a flaky one.
pub(crate) fn verdict_word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Flaky(times) => format!("FLAKY {times}"),
        verdict => verdict.word().replace('_', " ").to_uppercase(),
    }
}

/// Undecided checks, grouped by remedy.
#[derive(Default)]
struct UndecidedChecks<'r> {
    hidden: Vec<Group<'r>>,
    undecided: Vec<Group<'r>>,
    unclaimed: Unclaimed,
}

/// Numbers of checks by missing feature or command.
#[derive(Default)]
struct Unclaimed {
    features: BTreeMap<String, usize>,
    commands: BTreeMap<String, usize>,
}

impl<'r> UndecidedChecks<'r> {
    fn of(run: &'r StoredRun, boundary: Option<&'static dyn Boundary>) -> Self {
        let mut sorted = Self::default();
        // By index of the cause, then by words.
        let mut hidden: BTreeMap<(usize, String), Vec<&str>> = BTreeMap::new();
        let mut undecided: BTreeMap<(&str, &str), Vec<(&str, String)>> = BTreeMap::new();
        let commands = boundary.map_or(&[][..], |boundary| boundary.description().commands);
        let is_command = |name: &str| commands.iter().any(|(_, names)| names.contains(&name));
        for check in &run.checks {
            let verdict = check.of_others();
            if let Some(key) = hidden_by(check, verdict, run, boundary) {
                hidden.entry(key).or_default().push(&check.id);
                continue;
            }
            let (code, detail) = match verdict {
                Verdict::NotClaimed(name) => {
                    let unclaimed = &mut sorted.unclaimed;
                    let (features, commands) = (&mut unclaimed.features, &mut unclaimed.commands);
                    let names = if is_command(name) { commands } else { features };
                    *names.entry(name.clone()).or_default() += 1;
                    continue;
                }
                Verdict::Untestable(why) if why.code == Untestable::NO_COMMAND => {
                    let name = quoted_name(&why.detail).to_owned();
                    *sorted.unclaimed.commands.entry(name).or_default() += 1;
                    continue;
                }
                Verdict::Untestable(why) if why.code == Untestable::NO_ROLE => {
                    (&*why.code, quoted_name(&why.detail).to_owned())
                }
                Verdict::Untestable(why) if why.detail.is_empty() => (&*why.code, why.code.replace('_', " ")),
                Verdict::Untestable(why) => (&*why.code, one_line(&why.detail)),
                Verdict::NotRun(why) => {
                    ("", one_line(why).replace("slow: run it with", "slow, to be run with"))
                }
                Verdict::Masked(why) => (MASKED, one_line(why)),
                _ => continue,
            };
            // A sentence without a code is a reason of its own.
            let sentence = if code.is_empty() { verdict_text(verdict) } else { "" };
            undecided.entry((code, sentence)).or_default().push((&check.id, detail));
        }
        let missing = run.missing();
        if !missing.is_empty() {
            let missing = missing.into_iter().map(|id| (id, "no result: the run ended early".to_owned()));
            undecided.insert(("", "cut"), missing.collect());
        }
        sorted.hidden = hidden
            .into_iter()
            .map(|((_, by), checks)| {
                let verb = if checks.len() == 1 { "waits" } else { "wait" };
                let sentence = format!("{} {verb} for {by}", plural(checks.len(), "check"));
                Group { sentence, reasons: Vec::new(), hint: None, checks }
            })
            .collect();
        sorted.undecided =
            undecided.into_iter().map(|((code, _), checks)| Group::of(code, checks, run)).collect();
        sorted.undecided.sort_by_key(|group| std::cmp::Reverse(group.checks.len()));
        sorted
    }
}

/// Stored text of a verdict.
fn verdict_text(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Untestable(why) => &why.detail,
        Verdict::NotRun(text) => text,
        _ => "",
    }
}

/// First name in backticks.
fn quoted_name(text: &str) -> &str {
    text.split('`').nth(1).unwrap_or(text)
}

/// Cause that keeps a check from deciding: its index among the causes of the run, and words for it.
fn hidden_by(
    check: &CheckResult,
    verdict: &Verdict,
    run: &StoredRun,
    boundary: Option<&'static dyn Boundary>,
) -> Option<(usize, String)> {
    let (by, reason) = match verdict {
        Verdict::Masked(mask) => told_by(mask)?,
        Verdict::Untestable(why) if why.code == MASKED => told_by(&why.detail)?,
        // Roles are tried by plain requests, so a wrong answer to the first one says more.
        Verdict::Untestable(why)
            if why.code == Untestable::NO_WORKING_REPLY && why.detail != runner::NO_CANARY_ANSWERED
                || why.code == Untestable::ROLE_MISBEHAVES =>
        {
            let canary = first_canary(check, run, boundary)?;
            if why.code == Untestable::ROLE_MISBEHAVES && !canary.verdict.is_failure() {
                return None;
            }
            match &canary.verdict {
                Verdict::Masked(mask) => told_by(mask)?,
                _ => (canary.id.as_str(), ""),
            }
        }
        _ => return None,
    };
    let saw = |cause: &&Cause| cause.is_told() && cause.checks.iter().any(|share| share.check == by);
    let place = |of_reason: bool| {
        run.causes.iter().position(|cause| saw(&cause) && (!of_reason || cause.reason == reason))
    };
    match place(true).or_else(|| place(false)) {
        Some(place) => {
            let cause = &run.causes[place];
            Some((place, format!("{} ({})", cause.clause, cause.check)))
        }
        // A refused plain request is not a cause, but a reason of its own.
        None => (!reason.is_empty()).then(|| (usize::MAX, by.to_owned())),
    }
}

/// First canary of the command of `check`, unless that is `check` itself.
fn first_canary<'r>(
    check: &CheckResult,
    run: &'r StoredRun,
    boundary: Option<&'static dyn Boundary>,
) -> Option<&'r CheckResult> {
    let command = &boundary?.checks().iter().find(|other| other.id == check.id)?.command;
    let is_canary = |other: &&CheckResult| other.first_canary.as_ref() == Some(command);
    run.checks.iter().find(is_canary).filter(|canary| canary.id != check.id)
}

/// Reasons of which no two differ only in measurements; those that stand for others say so.
fn without_repetition(reasons: &[(String, usize)]) -> Vec<String> {
    let kind = |reason: &str| reason.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "");
    let mut kinds: Vec<(String, &str, bool)> = Vec::new();
    for (reason, _) in reasons {
        let own = kind(reason);
        match kinds.iter_mut().find(|(known, ..)| *known == own) {
            Some((_, _, has_more)) => *has_more = true,
            None => kinds.push((own, reason, false)),
        }
    }
    let shown = |(_, reason, has_more): (String, &str, bool)| {
        let similar = if has_more { ", and similar" } else { "" };
        format!("{reason}{similar}")
    };
    kinds.into_iter().map(shown).collect()
}

impl<'r> Group<'r> {
    /// Makes a group of checks with the code `code`, each with its reason.
    fn of(code: &str, checks: Vec<(&'r str, String)>, run: &StoredRun) -> Self {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut ids = Vec::new();
        for (id, reason) in checks {
            *counts.entry(reason).or_default() += 1;
            ids.push(id);
        }
        let mut reasons: Vec<(String, usize)> = counts.into_iter().collect();
        let boundary = &run.header.boundary;
        let checks = plural(ids.len(), "check");
        let (sentence, hint) = if code == Untestable::NO_ROLE {
            let verb = if ids.len() == 1 { "needs" } else { "need" };
            let sentence = format!("{checks} {verb} a role that no tool is mapped to: {}", counted(&reasons));
            reasons.clear();
            let hint = format!(
                "Map roles with `--role NAME=OWN` or under [roles]; `peerproof list --config-keys {boundary}` \
                 describes them."
            );
            (sentence, Some(hint))
        } else {
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let mut named = without_repetition(&reasons);
            let more = named.len().saturating_sub(REASONS_MAX);
            named.truncate(REASONS_MAX);
            named.extend((more > 0).then(|| plural(more, "other reason")));
            let hint = (code == Untestable::ROLE_MISBEHAVES)
                .then(|| "Fix its entry under [roles]; `peerproof doctor` tries every role.".to_owned());
            (format!("{checks}: {}", named.join("; ")), hint)
        };
        if reasons.len() < 2 {
            reasons.clear();
        }
        Self { sentence, reasons, hint, checks: ids }
    }
}

/// Names with their counts: `echo (16), fail (3)`.
fn counted<'n, N: AsRef<str> + 'n>(names: impl IntoIterator<Item = &'n (N, usize)>) -> String {
    let names = names.into_iter().map(|(name, count)| format!("{} ({count})", one_line(name.as_ref())));
    names.collect::<Vec<_>>().join(", ")
}

impl Unclaimed {
    fn sentence(self, boundary: Option<&'static dyn Boundary>) -> Option<String> {
        let sets = boundary.map_or(&[][..], |boundary| boundary.description().requirements);
        let total: usize = self.features.values().chain(self.commands.values()).sum();
        let (beyond, features): (Vec<_>, Vec<_>) =
            self.features.into_iter().partition(|(name, _)| sets.contains(&name.as_str()));
        let commands: Vec<_> = self.commands.into_iter().collect();
        let kinds = [("feature", features), ("command", commands), ("requirement", beyond)];
        let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
        let kind = |(kind, names): &(&str, Vec<_>)| {
            format!("{kind}{} {}", if names.len() == 1 { "" } else { "s" }, counted(names))
        };
        let kinds: Vec<String> = kinds.map(kind).collect();
        (total > 0).then(|| format!("Not claimed, {}: {}", plural(total, "check"), kinds.join("; ")))
    }
}

/// Sentence about the rungs omitted because of `--rung`.
fn left_out(run: &StoredRun) -> Option<String> {
    let farthest = run.header.rung()?;
    let others: Vec<&str> = Rung::ALL.into_iter().filter(|rung| *rung > farthest).map(Rung::word).collect();
    (!others.is_empty()).then(|| format!("Not run because of --rung {farthest}: {}", others.join(", ")))
}

/// Advice if no tool of the peer is known to work.
fn advice(run: &StoredRun, boundary: Option<&'static dyn Boundary>) -> Vec<String> {
    // A cause says more about a peer that does not answer.
    if run.checks.iter().any(|check| check.first_canary.is_some() && check.verdict.is_failure()) {
        return Vec::new();
    }
    let needs_role = |check: &CheckResult| matches!(&check.verdict, Verdict::Untestable(why) if why.code == Untestable::NO_ROLE);
    let is_reached = interrupted(run) == 0 || run.checks.iter().any(needs_role);
    if is_reached && lacks_a_tool(run, boundary) {
        let sentence = "No tool is known to succeed, so almost nothing could be checked: pass \
                        `--aid AID --input JSON`, or map roles under [roles] in peerproof.toml.";
        return vec![sentence.to_owned()];
    }
    // A more specific explanation is the reason of a group instead.
    let is_unexplained = |check: &&CheckResult| matches!(&check.verdict, Verdict::Untestable(why) if why.detail == runner::NO_CANARY_ANSWERED);
    let refused = run.checks.iter().filter(is_unexplained).filter_map(runner::refused_command);
    let sentence = |command| {
        format!(
            "`{command}` refuses the plain request that should succeed, so it could not be checked: map `any` and \
             `echo` to tools that work there, or remove the command from the configuration."
        )
    };
    refused.map(sentence).collect()
}

/// True if the boundary has a role `any` and the configuration maps none.
fn lacks_a_tool(run: &StoredRun, boundary: Option<&'static dyn Boundary>) -> bool {
    let is_any = |table: &str, name: &str| table == "roles" && name == "any";
    let needs = |boundary: &dyn Boundary| {
        let mut roles = boundary.checks().iter().flat_map(|check| &check.roles);
        roles.any(|role| role == "any")
    };
    let known = boundary.is_some_and(|boundary| {
        needs(boundary) && boundary.description().config_keys.iter().any(|key| is_any(key.table(), key.name))
    });
    known && run.header.side == Side::Provider && run.header.config["roles"].get("any").is_none()
}

/// Count with its noun in singular or plural.
pub fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Distinct findings with their numbers of occurrences.
pub(crate) fn distinct(findings: &[Finding]) -> Vec<(&Finding, usize)> {
    let mut distinct: Vec<(&Finding, usize)> = Vec::new();
    for finding in findings {
        let is_same = |other: &Finding| {
            other.key() == finding.key() && (&other.expected, &other.got) == (&finding.expected, &finding.got)
        };
        match distinct.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, times)) => *times += 1,
            None => distinct.push((finding, 1)),
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use peerproof_engine::run::causes::Share;
    use peerproof_engine::run::results::RunHeader;
    use peerproof_engine::run::verdict::ClauseRef;
    use serde_json::json;

    use super::*;
    use crate::table;

    fn check(id: &str, verdict: Verdict, clause: &str, level: Level) -> CheckResult {
        CheckResult {
            id: id.to_owned(),
            title: "It is answered.".to_owned(),
            verdict,
            rung: Rung::Ordinary,
            first_canary: id.ends_with("/canary/plain-request").then(|| "serve".to_owned()),
            reason: None,
            clauses: vec![ClauseRef { id: clause.into(), level }],
            choice: None,
            findings: Vec::new(),
            rest: None,
            counted: BTreeMap::new(),
            confirmed_by: None,
            reproducer: None,
            conversation: Vec::new(),
            wrong_line: None,
            others: Vec::new(),
            ms: 1,
        }
    }

    fn failed(id: &str, clause: &str, level: Level, reason: &str) -> CheckResult {
        let findings = vec![Finding::new(clause, reason, "yes", "no")];
        CheckResult { findings, ..check(id, Verdict::Fail, clause, level) }
    }

    fn undecided(id: &str, code: &'static str, detail: &str) -> CheckResult {
        check(id, Verdict::Untestable(Untestable::new(code, detail)), "TH-REQ-01", Level::Must)
    }

    fn run(checks: Vec<CheckResult>) -> StoredRun {
        let header = RunHeader {
            peerproof: "0".to_owned(),
            boundary: "toolhost".to_owned(),
            side: Side::Provider,
            peer: "peer".to_owned(),
            planned: checks.iter().map(|check| check.id.clone()).collect(),
            clauses_sha256: String::new(),
            rng_seed: 1,
            timeout_scale: 1.0,
            shard: None,
            selection: json!({}),
            config: json!({ "roles": { "any": {} } }),
            started: String::new(),
        };
        StoredRun::new(header, checks)
    }

    fn sentences<'g>(groups: &'g [Group<'_>]) -> Vec<&'g str> {
        groups.iter().map(|group| group.sentence.as_str()).collect()
    }

    #[test]
    fn a_first_canary_tells_its_other_clauses_by_their_text() {
        let canary = |clause: &str| {
            let leak = failed("toolhost/serve/canary/plain-request", clause, Level::Must, "process_left");
            let clauses = check(&leak.id, Verdict::Fail, "TH-FRAME-01", Level::Must).clauses;
            run(vec![CheckResult { clauses: [clauses, leak.clauses.clone()].concat(), ..leak }])
        };
        let boundary = table::find("toolhost").unwrap();
        let rule = |run: &StoredRun| Screen::new(run, Some(boundary), true).causes[0].rule().to_owned();
        assert_eq!(rule(&canary("TH-FRAME-01")), "It is answered.");
        let of_clause = boundary.clauses().iter().find(|it| it.id.0 == "TH-PROC-05");
        assert_eq!(rule(&canary("TH-PROC-05")), of_clause.unwrap().text);
    }

    #[test]
    fn checks_wait_for_the_cause_that_hides_them() {
        let canary = "toolhost/serve/canary/plain-request";
        let masked =
            || Verdict::Masked("TH-PROC-01 exit_status: told by toolhost/serve/process/end".to_owned());
        let boundary = table::find("toolhost").unwrap();
        let serve = boundary.checks().iter().filter(|check| check.command == "serve" && !check.first_canary);
        let mut checks = vec![
            failed("toolhost/serve/process/end", "TH-PROC-01", Level::Must, "exit_status"),
            failed(canary, "TH-FRAME-01", Level::Must, "canary_failed"),
            check("toolhost/serve/a", masked(), "TH-REQ-01", Level::Must),
            check("toolhost/serve/b", masked(), "TH-REQ-01", Level::Must),
        ];
        let dead = "the first canary failed: no";
        let codes = [Untestable::NO_WORKING_REPLY, Untestable::NO_WORKING_REPLY, Untestable::ROLE_MISBEHAVES];
        checks.extend(serve.zip(codes).map(|(check, code)| undecided(&check.id, code, dead)));
        let run = run(checks);
        let screen = Screen::new(&run, Some(boundary), false);
        let mut hidden = sentences(&screen.hidden);
        hidden.sort_unstable();
        let expected = [
            "2 checks wait for TH-PROC-01 (toolhost/serve/process/end)",
            "3 checks wait for TH-FRAME-01 (toolhost/serve/canary/plain-request)",
        ];
        assert_eq!(hidden, expected);
        assert!(screen.undecided.is_empty(), "{:?}", sentences(&screen.undecided));
    }

    #[test]
    fn what_is_undecided_is_one_group_for_each_remedy() {
        let slow = || Verdict::NotRun("slow: run it with --slow".to_owned());
        let of_feature = |name: &str| Verdict::NotClaimed(name.to_owned());
        let run = run(vec![
            undecided("t/1", Untestable::NO_ROLE, "the role `echo` is not mapped"),
            undecided("t/2", Untestable::NO_ROLE, "the role `blob` is not mapped"),
            undecided("t/3", Untestable::NO_ROLE, "the role `echo` is not mapped"),
            undecided("t/4", Untestable::TOO_BUSY, "late: by 3 s"),
            undecided("t/5", Untestable::TOO_BUSY, "late: by 4 s"),
            undecided("t/10", Untestable::TOO_BUSY, "late: by 5 s"),
            undecided("t/6", Untestable::NO_COMMAND, "the peer has no `run` command"),
            check("t/7", slow(), "TH-REQ-01", Level::Must),
            check("t/8", of_feature("ds_state"), "TH-REQ-01", Level::Must),
            check("t/9", of_feature("run"), "TH-REQ-01", Level::Must),
        ]);
        let screen = Screen::new(&run, table::find("toolhost"), false);
        let expected = [
            "3 checks need a role that no tool is mapped to: blob (1), echo (2)",
            "3 checks: late: by 3 s, and similar",
            "1 check: slow, to be run with --slow",
        ];
        assert_eq!(sentences(&screen.undecided), expected);
        let unclaimed = "Not claimed, 3 checks: feature ds_state (1); command run (2)";
        assert_eq!(screen.unclaimed.as_deref(), Some(unclaimed));
    }

    #[test]
    fn a_cause_names_the_other_clauses_that_it_breaks() {
        let share = |check: &str| Share { check: check.to_owned(), findings: 1 };
        let refusals = |count: usize| {
            let of =
                |at: usize| failed(&format!("t/{at}"), &format!("TH-REQ-{at:02}"), Level::Must, "accepted");
            let mut run = run((1..=count).map(of).collect());
            run.causes.truncate(1);
            let own = run.causes[0].check.clone();
            let ids = run.checks.iter().map(|check| share(&check.id)).filter(|share| share.check != own);
            run.causes[0].checks = [share(&own)].into_iter().chain(ids).collect();
            let screen = Screen::new(&run, table::find("toolhost"), false);
            screen.causes[0].also(" (-v lists them)")
        };
        assert_eq!(refusals(1), None);
        let of_three = refusals(3).unwrap();
        assert!(of_three.starts_with("seen in 2 other checks (-v lists them), of TH-REQ-"), "{of_three}");
        assert_eq!(of_three.matches("TH-REQ-").count(), 2, "{of_three}");
        assert!(refusals(12).unwrap().ends_with(", 3 more"));
    }

    #[test]
    fn an_interrupted_run_says_so_first_and_gives_no_advice_about_roles() {
        let stopped = |id: &str| check(id, runner::interrupted(), "TH-REQ-01", Level::Must);
        let said = |checks: Vec<CheckResult>| {
            let mut run = run(checks);
            run.header.config = json!({});
            let screen = Screen::new(&run, table::find("toolhost"), false);
            let outcome: Vec<String> = screen.outcome.into_iter().map(|(_, text)| text).collect();
            (outcome[..outcome.len().min(2)].join(" · "), screen.advice.len())
        };
        let passed = || check("t/3", Verdict::Pass, "TH-REQ-01", Level::Must);
        let (outcome, advice) = said(vec![stopped("t/1"), stopped("t/2")]);
        assert!(
            outcome.starts_with("interrupted before 2 checks") && !outcome.contains("fault"),
            "{outcome}"
        );
        assert_eq!(advice, 0);
        let (outcome, _) = said(vec![stopped("t/1"), passed()]);
        assert_eq!(outcome, "interrupted before 1 check · no fault seen in the others");
        let broken = failed("t/4", "TH-REQ-01", Level::Must, "other");
        assert_eq!(
            said(vec![stopped("t/1"), broken]).0,
            "1 cause, 1 failed check · interrupted before 1 check"
        );
        let unmapped = undecided("t/5", Untestable::NO_ROLE, "the role `echo` is not mapped");
        assert_eq!(said(vec![stopped("t/1"), unmapped]).1, 1, "the check was reached");
        assert_eq!(said(vec![passed()]).0.split(" · ").next(), Some("no fault seen"));
    }

    #[test]
    fn clauses_of_mcp_are_counted_by_the_kind_of_message_that_breaks_them() {
        let malformed = |check| CheckResult { rung: Rung::Malformed, ..check };
        let mut mcp = run(vec![
            failed("mcp/1", "MCP-BAS-04", Level::Must, "wrong_code"),
            failed("mcp/2", "MCP-TOL-01", Level::Should, "accepted"),
            malformed(failed("mcp/3", "MCP-BAS-03", Level::Must, "member_type")),
            check("mcp/4", Verdict::Pass, "MCP-BAS-05", Level::Must),
            malformed(failed("mcp/5", "MCP-BAS-05", Level::Must, "answered")),
            malformed(failed("mcp/6", "MCP-BAS-10", Level::Should, "no_reply")),
        ]);
        mcp.header.config["libraries"] = json!({ "MCP-BAS-04": "SDK X" });
        let screen = Screen::new(&mcp, table::find("mcp"), false);
        assert_eq!(screen.outcome[0].1, "1 MUST broken on valid input");
        let lines: Vec<String> = screen.tallies.iter().map(Tally::line).collect();
        let expected = [
            "MUST   1/3 proved, 1 broken, 1 undecided",
            "MUST   0/2 proved on invalid input, 2 broken",
            "SHOULD 0/1 proved, 1 broken",
            "SHOULD 0/1 proved on invalid input, 1 broken",
        ];
        assert_eq!(lines, expected);
        let told = |id| screen.causes.iter().find(|told| told.cause.clause.0 == id).unwrap();
        assert_eq!((told("MCP-TOL-01").rung(), told("MCP-BAS-10").rung()), ("", ", at malformed input"));
        assert!(told("MCP-BAS-04").advice().unwrap().contains("every server of SDK X"));
        assert_eq!(told("MCP-TOL-01").advice(), None);
    }

    #[test]
    fn an_answer_outside_the_allowed_set_breaks_a_must() {
        let run = run(vec![failed("t/1", "TH-JSON-07", Level::Open, "other")]);
        let screen = Screen::new(&run, table::find("toolhost"), false);
        assert_eq!(screen.causes[0].level(), "MUST (outside the allowed outcomes)");
        let lines: Vec<String> = screen.tallies.iter().map(Tally::line).collect();
        assert_eq!(lines, ["OPEN   0/1 seen within the allowed set, 1 broken"]);
    }
}

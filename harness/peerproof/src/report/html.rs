//! Report as a self-contained HTML page. Without scripts only the filter is missing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use minijinja::{Environment, context};
use serde::Serialize;

use super::printer::Printer;
use super::screen::{Group, ReportedCause, Screen, Tally, distinct, level_of_finding};
use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::clause::Clause;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::rung::Rung;
use peerproof_engine::run::results::{ResultsFile, Standing, StoredRun, standings};
use peerproof_engine::run::verdict::{CheckResult, Verdict};

const TEMPLATE: &str = include_str!("html.jinja");

/// Renders the results as a page: the outcome, the causes with their conversations, undecided checks, counts, the
/// standing of each clause, failed checks, and all checks by topic. The template engine escapes all text of peers.
///
/// # Errors
/// Fails if the template is invalid.
pub(crate) fn html(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> Result<String, HarnessFault> {
    let sentence =
        |error: minijinja::Error| HarnessFault::from(format!("the HTML report cannot be written: {error}"));
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE).map_err(sentence)?;
    let runs: Vec<Page<'_>> = file.runs.iter().map(|run| Page::new(run, boundaries)).collect();
    let template = environment.get_template("report.html").map_err(sentence)?;
    let checks = || file.runs.iter().flat_map(|run| &run.checks);
    let verdicts: BTreeSet<&str> = checks().map(|check| check.verdict.word()).collect();
    let rungs: BTreeSet<Rung> = checks().map(|check| check.rung).collect();
    let rungs: Vec<&str> = rungs.into_iter().map(Rung::word).collect();
    template
        .render(
            context! { incomplete => file.incomplete, runs => runs, verdicts => verdicts, rungs => rungs },
        )
        .map_err(sentence)
}

/// Data of one run for the template.
#[derive(Serialize)]
struct Page<'r> {
    peer: &'r str,
    boundary: &'r str,
    side: &'static str,
    peerproof: &'r str,
    started: &'r str,
    rng_seed: u64,
    planned: usize,
    missing: Vec<&'r str>,
    outcome: String,
    causes: Vec<CauseRow<'r>>,
    hidden: Vec<Undecided<'r>>,
    undecided: Vec<Undecided<'r>>,
    notes: Vec<String>,
    tallies: Vec<String>,
    counts: Vec<(String, u64)>,
    proved: usize,
    failures: Vec<Failure<'r>>,
    clauses: Vec<Row>,
    topics: Vec<(&'r str, Vec<Line<'r>>)>,
}

#[derive(Serialize)]
struct CauseRow<'r> {
    id: &'r str,
    level: &'static str,
    rung: &'static str,
    url: Option<&'static str>,
    shown: Failure<'r>,
    clause: &'r str,
    text: &'static str,
    expected: &'r str,
    got: &'r str,
    reason: &'r str,
    checks: Vec<&'r str>,
}

#[derive(Serialize)]
struct Undecided<'r> {
    sentence: String,
    hint: Option<String>,
    reasons: Vec<(String, usize)>,
    checks: Vec<&'r str>,
}

#[derive(Serialize)]
struct Failure<'r> {
    id: &'r str,
    title: &'r str,
    verdict: &'static str,
    rung: &'static str,
    detail: Option<Cow<'r, str>>,
    findings: Vec<Broken<'r>>,
    /// Lines; true for a wrong one.
    conversation: Vec<(bool, &'r str)>,
    reproducer: Option<&'r str>,
}

#[derive(Serialize)]
struct Broken<'r> {
    clause: &'r str,
    level: &'static str,
    text: &'static str,
    url: Option<&'static str>,
    reason: &'r str,
    expected: &'r str,
    got: &'r str,
    times: usize,
}

#[derive(Serialize)]
struct Row {
    id: String,
    url: Option<&'static str>,
    level: &'static str,
    standing: &'static str,
    detail: String,
    text: &'static str,
}

#[derive(Serialize)]
struct Line<'r> {
    id: &'r str,
    title: &'r str,
    verdict: &'static str,
    rung: &'static str,
    detail: Option<Cow<'r, str>>,
    ms: u64,
}

impl<'r> Page<'r> {
    fn new(run: &'r StoredRun, boundaries: &[&'static dyn Boundary]) -> Self {
        let boundary = boundary::find(boundaries, &run.header.boundary);
        let clauses = boundary.map_or(&[][..], Boundary::clauses);
        let rows = standings(&run.checks);
        let screen = Screen::new(run, boundary, false);
        Self {
            peer: &run.header.peer,
            boundary: &run.header.boundary,
            side: run.header.side.word(),
            peerproof: &run.header.peerproof,
            started: &run.header.started,
            rng_seed: run.header.rng_seed,
            planned: run.header.planned.len(),
            missing: run.missing(),
            outcome: screen.outcome_line(None, &Printer::plain()),
            causes: screen.causes.iter().map(|told| cause(told, clauses)).collect(),
            hidden: screen.hidden.into_iter().map(undecided).collect(),
            undecided: screen.undecided.into_iter().map(undecided).collect(),
            notes: screen.advice.into_iter().chain(screen.unclaimed).chain(screen.left_out).collect(),
            tallies: screen.tallies.iter().map(Tally::line).collect(),
            counts: run.counts().into_iter().collect(),
            proved: rows.iter().filter(|(_, standing)| *standing == Standing::Proved).count(),
            failures: run
                .checks
                .iter()
                .filter(|check| concerns(check))
                .map(|c| failure(c, clauses))
                .collect(),
            clauses: rows
                .iter()
                .map(|(clause, standing)| Row {
                    id: clause.id.0.clone(),
                    url: of(clauses, &clause.id.0).map(|clause| clause.page.as_str()),
                    level: clause.level.word(),
                    standing: standing.word(),
                    detail: standing.detail(),
                    text: of(clauses, &clause.id.0).map_or("", |clause| clause.text.as_str()),
                })
                .collect(),
            topics: topics(run),
        }
    }
}

fn concerns(check: &CheckResult) -> bool {
    check.verdict.is_failure() || matches!(check.verdict, Verdict::Flaky(_) | Verdict::HarnessError(_))
}

fn of(clauses: &'static [Clause], id: &str) -> Option<&'static Clause> {
    clauses.iter().find(|clause| clause.id.0 == id)
}

fn cause<'r>(told: &ReportedCause<'r>, clauses: &'static [Clause]) -> CauseRow<'r> {
    CauseRow {
        id: &told.cause.id,
        level: told.level(),
        rung: told.cause.rung.word(),
        url: told.clause.map(|clause| clause.page.as_str()),
        shown: failure(told.check, clauses),
        clause: &told.cause.clause.0,
        text: told.clause.map_or("", |clause| clause.text.as_str()),
        expected: &told.cause.expected,
        got: &told.cause.got,
        reason: &told.cause.reason,
        checks: told.cause.checks.iter().map(|share| share.check.as_str()).collect(),
    }
}

fn undecided(group: Group<'_>) -> Undecided<'_> {
    let Group { sentence, reasons, hint, checks } = group;
    Undecided { sentence, hint, reasons, checks }
}

fn failure<'r>(check: &'r CheckResult, clauses: &'static [Clause]) -> Failure<'r> {
    let broken = |(finding, times): (&'r Finding, usize)| {
        let clause = of(clauses, &finding.clause.0);
        Broken {
            clause: &finding.clause.0,
            level: clause.map_or("", |clause| level_of_finding(clause.level)),
            text: clause.map_or("", |clause| clause.text.as_str()),
            url: clause.map(|clause| clause.page.as_str()),
            reason: &finding.reason,
            expected: &finding.expected,
            got: &finding.got,
            times,
        }
    };
    Failure {
        id: &check.id,
        title: &check.title,
        verdict: check.verdict.word(),
        rung: check.rung.word(),
        detail: check.verdict.detail(),
        findings: distinct(&check.findings).into_iter().map(broken).collect(),
        conversation: check
            .conversation
            .iter()
            .enumerate()
            .map(|(place, line)| (check.wrong_line == Some(place), line.as_str()))
            .collect(),
        reproducer: check.reproducer.as_deref(),
    }
}

fn topics(run: &StoredRun) -> Vec<(&str, Vec<Line<'_>>)> {
    let mut topics: Vec<(&str, Vec<Line<'_>>)> = Vec::new();
    for check in &run.checks {
        let line = Line {
            id: &check.id,
            title: &check.title,
            verdict: check.verdict.word(),
            rung: check.rung.word(),
            detail: check.verdict.detail(),
            ms: check.ms,
        };
        match topics.iter_mut().find(|(topic, _)| *topic == check.topic()) {
            Some((_, lines)) => lines.push(line),
            None => topics.push((check.topic(), vec![line])),
        }
    }
    topics.sort_by_key(|(topic, _)| *topic);
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of `#rrggbb` as defined by WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_has_the_contrast_of_wcag_aa_in_light_and_dark() {
        let colours = |name: &str| {
            let (_, rest) = TEMPLATE.split_once(&format!("--{name}: light-dark(")).unwrap();
            let (light, rest) = rest.split_once(", ").unwrap();
            [light, rest.split_once(')').unwrap().0]
        };
        let mut pairs = vec![("text", "wrong")];
        for ground in ["ground", "soft"] {
            pairs.extend(["text", "link", "bad", "good", "grey", "note"].map(|text| (text, ground)));
        }
        for (text, ground) in pairs {
            for (text, ground) in colours(text).into_iter().zip(colours(ground)) {
                assert!(contrast(text, ground) >= 4.5, "{text} on {ground}");
            }
        }
    }
}

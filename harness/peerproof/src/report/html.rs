//! A report as one HTML page without scripts, for people who were not there.

use minijinja::{Environment, context};
use serde::Serialize;

use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::clause::Clause;
use peerproof_engine::results::{ResultsFile, Run, Standing, standings};
use peerproof_engine::verdict::{CheckResult, Verdict};
use std::borrow::Cow;

const TEMPLATE: &str = include_str!("html.jinja");

/// The results as a page: counts, failures with their conversations, where each clause stands, all checks by topic.
/// Everything that a peer wrote is escaped by the template engine.
///
/// # Errors
/// The template is at fault.
pub fn html(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> Result<String, String> {
    let sentence = |error: minijinja::Error| format!("the HTML report cannot be written: {error}");
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE).map_err(sentence)?;
    let runs: Vec<Page<'_>> = file.runs.iter().map(|run| Page::new(run, boundaries)).collect();
    let template = environment.get_template("report.html").map_err(sentence)?;
    template.render(context! { incomplete => file.incomplete, runs => runs }).map_err(sentence)
}

/// One run as the template sees it.
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
    counts: Vec<(String, u64)>,
    proved: usize,
    failures: Vec<Failure<'r>>,
    clauses: Vec<Row>,
    topics: Vec<(&'r str, Vec<Line<'r>>)>,
}

#[derive(Serialize)]
struct Failure<'r> {
    id: &'r str,
    title: &'r str,
    verdict: &'static str,
    detail: Option<Cow<'r, str>>,
    findings: Vec<Broken<'r>>,
    conversation: String,
    reproducer: Option<&'r str>,
}

#[derive(Serialize)]
struct Broken<'r> {
    clause: &'r str,
    level: &'static str,
    text: &'static str,
    source: &'static str,
    reason: &'r str,
    expected: &'r str,
    got: &'r str,
}

#[derive(Serialize)]
struct Row {
    id: String,
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
    detail: Option<Cow<'r, str>>,
    ms: u64,
}

impl<'r> Page<'r> {
    fn new(run: &'r Run, boundaries: &[&'static dyn Boundary]) -> Self {
        let clauses = boundary::find(boundaries, &run.header.boundary).map_or(&[][..], Boundary::clauses);
        let rows = standings(&run.checks);
        Self {
            peer: &run.header.peer,
            boundary: &run.header.boundary,
            side: run.header.side.word(),
            peerproof: &run.header.peerproof,
            started: &run.header.started,
            rng_seed: run.header.rng_seed,
            planned: run.header.planned.len(),
            missing: run.missing(),
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

fn failure<'r>(check: &'r CheckResult, clauses: &'static [Clause]) -> Failure<'r> {
    let broken = |finding: &'r peerproof_engine::finding::Finding| {
        let clause = of(clauses, &finding.clause.0);
        Broken {
            clause: &finding.clause.0,
            level: clause.map_or("", |clause| clause.level.word()),
            text: clause.map_or("", |clause| clause.text.as_str()),
            source: clause.map_or("", |clause| clause.source.as_str()),
            reason: &finding.reason,
            expected: &finding.expected,
            got: &finding.got,
        }
    };
    Failure {
        id: &check.id,
        title: &check.title,
        verdict: check.verdict.word(),
        detail: check.verdict.detail(),
        findings: check.findings.iter().map(broken).collect(),
        conversation: check.conversation.join("\n"),
        reproducer: check.reproducer.as_deref(),
    }
}

fn topics(run: &Run) -> Vec<(&str, Vec<Line<'_>>)> {
    let mut topics: Vec<(&str, Vec<Line<'_>>)> = Vec::new();
    for check in &run.checks {
        let line = Line {
            id: &check.id,
            title: &check.title,
            verdict: check.verdict.word(),
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

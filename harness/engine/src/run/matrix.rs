//! Comparison of several peers: the result of every check, and their answers to equal conversations.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::run::results::StoredRun;
use crate::run::verdict::{CheckResult, Verdict};

pub mod canonical;
pub mod confirm;
pub mod differences;
pub mod exchanges;
pub mod stage;

/// Table of checks by peers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Boundary of all peers.
    pub boundary: String,
    /// Seed of every random choice.
    pub rng_seed: u64,
    /// Columns.
    pub peers: Vec<Column>,
    /// Rows in the order of the boundary.
    pub checks: Vec<MatrixRow>,
    /// Choices of the peers for open clauses, by key.
    pub choices: Vec<ChoiceRow>,
}

/// Column of a peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Name of the peer.
    pub name: String,
    /// Requirement set of the peer; empty for the boundary's default.
    pub requirements: String,
    /// Number of checks by verdict.
    pub counts: BTreeMap<String, u64>,
}

/// Row of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixRow {
    /// Id of the check.
    pub check: String,
    /// Title of the check.
    pub title: String,
    /// Set if decided results of the peers differ.
    pub differs: bool,
    /// Results in the order of the peers.
    pub cells: Vec<Cell>,
}

/// Result of a check for one peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Verdict as a word.
    pub verdict: &'static str,
    /// Distinct reason codes of the findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Distinct clauses of the findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
    /// Choice of the peer for an open clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Reason why nothing could be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip)]
    decided: bool,
}

/// Row of an open choice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChoiceRow {
    /// Key of the choice.
    pub key: String,
    /// Set if peers chose differently.
    pub differs: bool,
    /// Observed values in the order of the peers.
    pub seen: Vec<Option<String>>,
}

impl Cell {
    fn of(result: &CheckResult) -> Self {
        let mut reasons: Vec<String> = Vec::new();
        let mut clauses: Vec<String> = Vec::new();
        for finding in &result.findings {
            if !reasons.contains(&finding.reason) {
                reasons.push(finding.reason.clone());
            }
            if !clauses.contains(&finding.clause.0) {
                clauses.push(finding.clause.0.clone());
            }
        }
        let why = match &result.verdict {
            verdict @ (Verdict::Untestable(_)
            | Verdict::NotRun(_)
            | Verdict::Masked(_)
            | Verdict::HarnessError(_)) => verdict.detail().map(Cow::into_owned),
            _ => None,
        };
        Self {
            verdict: result.verdict.word(),
            reasons,
            clauses,
            choice: result.choice.as_ref().map(|choice| choice.value.clone()),
            why,
            decided: result.verdict.is_good() || !result.findings.is_empty(),
        }
    }

    fn missing() -> Self {
        let why = Some("no result".to_owned());
        Self {
            verdict: "untestable",
            reasons: Vec::new(),
            clauses: Vec::new(),
            choice: None,
            why,
            decided: false,
        }
    }

    /// Verdict with the choice or the reason codes.
    pub fn text(&self) -> String {
        match (&self.choice, self.reasons.as_slice()) {
            (Some(choice), []) => format!("{} {choice}", self.verdict),
            (_, []) => self.verdict.to_owned(),
            (_, reasons) => format!("{} {}", self.verdict, reasons.join("+")),
        }
    }
}

/// True if decided cells differ in reason codes or in choices. Undecided cells show nothing.
fn differ(cells: &[Cell]) -> bool {
    let decided = || cells.iter().filter(|cell| cell.decided);
    let reasons: BTreeSet<BTreeSet<&String>> = decided().map(|cell| cell.reasons.iter().collect()).collect();
    let choices: BTreeSet<&String> = decided().filter_map(|cell| cell.choice.as_ref()).collect();
    reasons.len() > 1 || choices.len() > 1
}

impl Matrix {
    /// Builds the table from the runs of several peers.
    pub fn of(runs: &[StoredRun]) -> Self {
        let mut ids: Vec<(&str, &str)> = Vec::new();
        for check in runs.iter().flat_map(|run| &run.checks) {
            if !ids.iter().any(|(id, _)| *id == check.id) {
                ids.push((&check.id, &check.title));
            }
        }
        let row = |(id, title): (&str, &str)| {
            let cell = |run: &StoredRun| {
                run.checks.iter().find(|check| check.id == id).map_or_else(Cell::missing, Cell::of)
            };
            let cells: Vec<Cell> = runs.iter().map(cell).collect();
            MatrixRow { check: id.to_owned(), title: title.to_owned(), differs: differ(&cells), cells }
        };
        let requirements = |run: &StoredRun| {
            run.header.config.get("requirements").and_then(|set| set.as_str()).unwrap_or_default().to_owned()
        };
        Self {
            boundary: runs.first().map(|run| run.header.boundary.clone()).unwrap_or_default(),
            rng_seed: runs.first().map_or(0, |run| run.header.rng_seed),
            peers: runs
                .iter()
                .map(|run| Column {
                    name: run.header.peer.clone(),
                    requirements: requirements(run),
                    counts: run.counts(),
                })
                .collect(),
            checks: ids.into_iter().map(row).collect(),
            choices: choices(runs),
        }
    }
}

fn choices(runs: &[StoredRun]) -> Vec<ChoiceRow> {
    let mut rows: BTreeMap<&str, Vec<Option<String>>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for choice in run.checks.iter().filter_map(|check| check.choice.as_ref()) {
            let seen = rows.entry(&choice.key).or_insert_with(|| vec![None; runs.len()]);
            match &mut seen[at] {
                Some(known) if known.split(", ").any(|value| value == choice.value) => {}
                Some(known) => known.push_str(&format!(", {}", choice.value)),
                none => *none = Some(choice.value.clone()),
            }
        }
    }
    let row = |(key, seen): (&str, Vec<Option<String>>)| ChoiceRow {
        key: key.to_owned(),
        differs: seen.iter().flatten().collect::<BTreeSet<_>>().len() > 1,
        seen,
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(verdict: &'static str, reasons: &[&str], choice: Option<&str>) -> Cell {
        Cell {
            verdict,
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            clauses: Vec::new(),
            choice: choice.map(str::to_owned),
            why: None,
            decided: verdict != "untestable",
        }
    }

    #[test]
    fn only_what_was_decided_differs() {
        let pass = || cell("pass", &[], None);
        assert!(!differ(&[pass(), pass(), cell("untestable", &[], None)]));
        assert!(differ(&[pass(), cell("fail", &["hung"], None)]));
        assert!(differ(&[cell("fail", &["hung"], None), cell("fail", &["accepted"], None)]));
        assert!(!differ(&[cell("fail", &["a", "b"], None), cell("expected", &["b", "a"], None)]));
        assert!(differ(&[cell("open", &[], Some("echo")), cell("open", &[], Some("refuse"))]));
        assert!(!differ(&[cell("open", &[], Some("echo")), pass()]));
    }
}

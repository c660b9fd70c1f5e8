//! Results as comparable text: one line per check, without parts that vary between runs.

use std::borrow::Cow;

use crate::run::results::ResultsFile;
use crate::run::verdict::{CheckResult, Verdict};

/// Line of a check: its id, its verdict with the choice or reason code, and reason code and clause of each finding.
pub fn line(result: &CheckResult) -> String {
    let mut line = format!("{} {}", result.id, result.verdict.word());
    if let Some(detail) = detail(&result.verdict) {
        line.push('(');
        line.push_str(&detail);
        line.push(')');
    }
    let mut findings: Vec<String> =
        result.findings.iter().map(|finding| format!(" {} {}", finding.clause.0, finding.reason)).collect();
    findings.sort();
    findings.dedup();
    line.extend(findings);
    line
}

/// Stable part of a verdict's detail: times, paths and counts follow a colon.
fn detail(verdict: &Verdict) -> Option<Cow<'_, str>> {
    match verdict {
        Verdict::Flaky(_) => None,
        Verdict::Untestable(why) => Some(why.short().into()),
        other => other.detail().map(|detail| detail.split(':').next().unwrap_or_default().to_owned().into()),
    }
}

/// Lines of all checks of a file, sorted.
pub fn verdicts(file: &ResultsFile) -> String {
    let mut lines: Vec<String> = file.checks().map(line).collect();
    lines.sort();
    lines.push(String::new());
    lines.join("\n")
}

//! Annotations and a step summary for GitHub Actions.

use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::clause::{Clause, Level};
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::causes::{Cause, Certainty};
use peerproof_engine::run::results::{ResultsFile, StoredRun};

/// Environment variable with the path of the step summary.
pub const SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// Maximum number of errors, and of warnings, that GitHub shows per step.
const SHOWN_MAX: usize = 10;

/// Workflow commands, one per line: an error or warning per cause, gravest first.
///
/// GitHub reads them from standard output and standard error.
pub fn annotations(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> String {
    let mut out = String::new();
    if let Some(sentence) = &file.incomplete {
        out.push_str(&command("warning", "peerproof: incomplete", sentence));
    }
    let mut shown = [0; 2];
    for run in &file.runs {
        let clauses = boundary::find(boundaries, &run.header.boundary).map_or(&[][..], Boundary::clauses);
        for cause in run.causes.iter().filter(|cause| cause.is_told()) {
            let is_error = cause.certainty == Certainty::Broken && cause.level != Level::Should;
            let shown = &mut shown[usize::from(is_error)];
            *shown += 1;
            if *shown <= SHOWN_MAX {
                out.push_str(&annotation(run, clauses, cause, is_error));
            }
        }
    }
    out
}

/// Step summary: the report in Markdown, which is below GitHub's limit.
pub fn summary(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> String {
    super::markdown::markdown(file, boundaries)
}

fn annotation(run: &StoredRun, clauses: &[Clause], cause: &Cause, is_error: bool) -> String {
    let level = super::screen::level_of_finding(cause.level);
    let title = format!("{} {level} ({})", cause.clause, run.header.peer);
    let check = run.checks.iter().find(|check| check.id == cause.check);
    let mut lines: Vec<String> = check.map(|check| one_line(&check.title)).into_iter().collect();
    lines.push(format!("expected {}", one_line(&cause.expected)));
    lines.push(format!("got {}", one_line(&cause.got)));
    let clause = clauses.iter().find(|clause| clause.id == cause.clause);
    lines.extend(clause.map(|clause| clause.page.clone()));
    command(if is_error { "error" } else { "warning" }, &title, &lines.join("\n"))
}

fn command(word: &str, title: &str, message: &str) -> String {
    format!(
        "::{word} title={}::{}\n",
        escaped(title).replace(':', "%3A").replace(',', "%2C"),
        escaped(message)
    )
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_peer_cannot_end_a_workflow_command() {
        let line = command("error", "A-1, MUST: x", "50 %\n::set-output name=a::b\r");
        assert_eq!(line, "::error title=A-1%2C MUST%3A x::50 %25%0A::set-output name=a::b%0D\n");
    }
}

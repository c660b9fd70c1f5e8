//! A report in Markdown, for pull requests and wikis.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::clause::Clause;
use peerproof_engine::results::{ResultsFile, Run, Standing, standings};
use peerproof_engine::text::one_line;
use peerproof_engine::verdict::{CheckResult, Verdict};

/// The results as Markdown: counts, failures with their conversations, where each clause stands, and what was not
/// decided and why.
pub fn markdown(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> String {
    let mut out = String::new();
    if let Some(sentence) = &file.incomplete {
        let _ = writeln!(out, "> **Incomplete:** {}\n", inline(sentence));
    }
    for run in &file.runs {
        let header = &run.header;
        let _ = writeln!(
            out,
            "# {} · {} {}\n\npeerproof {}, started {}, rng seed {}\n",
            inline(&header.peer),
            header.boundary,
            header.side.word(),
            header.peerproof,
            header.started,
            header.rng_seed
        );
        counts(run, &mut out);
        let known = boundary::find(boundaries, &header.boundary).map_or(&[][..], Boundary::clauses);
        failures(run, known, &mut out);
        clauses(run, known, &mut out);
        undecided(run, &mut out);
    }
    out
}

fn counts(run: &Run, out: &mut String) {
    let _ = writeln!(out, "| verdict | checks |\n|---|---:|");
    for (word, count) in run.counts() {
        let _ = writeln!(out, "| {word} | {count} |");
    }
    let missing = run.missing().len();
    if missing > 0 {
        let _ = writeln!(out, "| **no result** | {missing} |");
    }
    let _ = writeln!(out, "| planned | {} |\n", run.header.planned.len());
}

fn clause_of<'c>(clauses: &'c [Clause], id: &str) -> Option<&'c Clause> {
    clauses.iter().find(|clause| clause.id.0 == id)
}

fn failures(run: &Run, known: &[Clause], out: &mut String) {
    let failed = |check: &&CheckResult| {
        check.verdict.is_failure() || matches!(check.verdict, Verdict::Flaky(_) | Verdict::HarnessError(_))
    };
    let failed: Vec<&CheckResult> = run.checks.iter().filter(failed).collect();
    if failed.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Failures\n");
    for check in failed {
        let _ = writeln!(out, "### {} `{}`\n\n{}\n", check.verdict.word(), check.id, inline(&check.title));
        if let Some(detail) = check.verdict.detail() {
            let _ = writeln!(out, "{}\n", inline(&detail));
        }
        for finding in &check.findings {
            let clause = clause_of(known, &finding.clause.0);
            let level = clause.map_or("", |clause| clause.level.word());
            let text = clause.map_or(String::new(), |clause| format!(" {}", inline(&clause.text)));
            let _ = writeln!(
                out,
                "- **{}** {level} `{}`:{text}\n  - expected: {}\n  - got: {}",
                finding.clause,
                finding.reason,
                inline(&finding.expected),
                inline(&finding.got)
            );
        }
        if !check.conversation.is_empty() {
            out.push('\n');
            fenced(&check.conversation, out);
        }
        if let Some(folder) = &check.reproducer {
            let _ = writeln!(
                out,
                "\nAgain: `sh {folder}/repro.sh` or `peerproof replay {folder}/transcript.ndjson`"
            );
        }
        out.push('\n');
    }
}

fn clauses(run: &Run, known: &[Clause], out: &mut String) {
    let rows = standings(&run.checks);
    if rows.is_empty() {
        return;
    }
    let proved = rows.iter().filter(|(_, standing)| *standing == Standing::Proved).count();
    let _ = writeln!(out, "## Clauses\n\n{proved} of {} proved.\n", rows.len());
    let _ = writeln!(out, "| clause | level | standing | what it says |\n|---|---|---|---|");
    for (clause, standing) in rows {
        let detail = match standing.detail() {
            detail if detail.is_empty() => detail,
            detail => format!(" ({detail})"),
        };
        let text = clause_of(known, &clause.id.0).map_or("", |clause| clause.text.as_str());
        let _ = writeln!(
            out,
            "| {} | {} | {}{} | {} |",
            clause.id,
            clause.level.word(),
            standing.word(),
            cell(&detail),
            cell(text)
        );
    }
    out.push('\n');
}

fn undecided(run: &Run, out: &mut String) {
    let mut reasons: BTreeMap<(&str, Cow<'_, str>), Vec<&str>> = BTreeMap::new();
    for check in &run.checks {
        if let Some(reason) = check.undecided() {
            reasons.entry(reason).or_default().push(&check.id);
        }
    }
    let missing = run.missing();
    if !missing.is_empty() {
        reasons.insert(("no result", "the run was cut".into()), missing);
    }
    if reasons.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Not decided\n");
    for ((word, detail), ids) in reasons {
        let _ = writeln!(out, "- {word}: {} ({} checks)", inline(&detail), ids.len());
        for id in ids {
            let _ = writeln!(out, "  - `{id}`");
        }
    }
    out.push('\n');
}

/// Text of others on one line, without what Markdown or HTML would act on.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}

/// Lines as they are, between fences longer than any run of backticks in them.
fn fenced(lines: &[String], out: &mut String) {
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "{fence}text\n{}\n{fence}", lines.join("\n"));
}

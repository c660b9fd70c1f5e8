//! A report in Markdown, for pull requests and wikis.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::console::{self, plural};
use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::causes::Cause;
use peerproof_engine::clause::Clause;
use peerproof_engine::results::{ResultsFile, Run, Standing, standings};
use peerproof_engine::text::one_line;
use peerproof_engine::verdict::Verdict;

/// The results as Markdown: the outcome, the causes with their conversations, what was not decided and why, counts, and
/// where each clause stands.
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
        let _ = writeln!(out, "{}\n", console::summary(run, boundary::find(boundaries, &header.boundary)));
        let known = boundary::find(boundaries, &header.boundary).map_or(&[][..], Boundary::clauses);
        causes(run, known, &mut out);
        faults_of_the_harness(run, &mut out);
        undecided(run, &mut out);
        counts(run, &mut out);
        clauses(run, known, &mut out);
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

fn causes(run: &Run, known: &[Clause], out: &mut String) {
    let told: Vec<&Cause> = run.causes.iter().filter(|cause| cause.is_told()).collect();
    if told.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Causes\n");
    for cause in told {
        let Some(check) = run.checks.iter().find(|check| check.id == cause.check) else { continue };
        let detail = check.verdict.detail().map(|detail| format!(" {}", inline(&detail))).unwrap_or_default();
        let _ = writeln!(
            out,
            "### {}{detail} {} {}\n\n{}\n",
            check.verdict.word(),
            cause.clause,
            cause.level.word(),
            inline(&check.title)
        );
        if let Some(clause) = clause_of(known, &cause.clause.0) {
            let _ = writeln!(out, "> {}\n", inline(&clause.text));
        }
        if !check.conversation.is_empty() {
            fenced(&check.conversation, out);
            out.push('\n');
        }
        let _ = writeln!(
            out,
            "- expected: {}\n- got: {} (`{}`)",
            inline(&cause.expected),
            inline(&cause.got),
            cause.reason
        );
        if let Some(folder) = &check.reproducer {
            let _ = writeln!(
                out,
                "- again: `sh {folder}/repro.sh` or `peerproof replay {folder}/transcript.ndjson`"
            );
        }
        let _ = writeln!(
            out,
            "\n<details><summary>{}, {}</summary>\n",
            plural(cause.findings(), "finding"),
            plural(cause.checks.len(), "check")
        );
        for share in &cause.checks {
            let times =
                if share.findings > 1 { format!(" ({} times)", share.findings) } else { String::new() };
            let _ = writeln!(out, "- `{}`{times}", share.check);
        }
        let _ = writeln!(out, "\n</details>\n");
    }
}

fn faults_of_the_harness(run: &Run, out: &mut String) {
    for check in &run.checks {
        if let Verdict::HarnessError(error) = &check.verdict {
            let _ = writeln!(out, "### harness error `{}`\n\n{}\n", check.id, inline(error));
        }
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

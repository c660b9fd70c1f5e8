//! A report in Markdown, for pull requests and wikis.

use std::fmt::Write as _;

use super::printer::Printer;
use super::screen::{Group, Screen, plural, verdict_word};
use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::clause::Clause;
use peerproof_engine::results::{ResultsFile, Run, Standing, standings};
use peerproof_engine::text::one_line;
use peerproof_engine::verdict::Verdict;

/// The results as Markdown: the outcome, the causes with their conversations, what they hide, what was not decided and why,
/// counts, where each clause stands, and the outcome again.
pub fn markdown(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> String {
    let mut out = String::new();
    if let Some(sentence) = &file.incomplete {
        let _ = writeln!(out, "> **Incomplete:** {}\n", inline(sentence));
    }
    for run in &file.runs {
        let header = &run.header;
        let boundary = boundary::find(boundaries, &header.boundary);
        let screen = Screen::new(run, boundary, false);
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
        let outcome = screen.outcome_line(None, &Printer::plain());
        let _ = writeln!(out, "{outcome}\n");
        causes(&screen, &mut out);
        groups("Hidden until a cause is mended", &screen.hidden, &mut out);
        faults_of_the_harness(run, &mut out);
        groups("Not decided", &screen.undecided, &mut out);
        for sentence in screen.advice.iter().chain(&screen.unclaimed).chain(&screen.left_out) {
            let _ = writeln!(out, "{}\n", inline(sentence));
        }
        let _ = writeln!(out, "## Counts\n");
        for tally in &screen.tallies {
            let _ = writeln!(out, "- {}", tally.line());
        }
        out.push('\n');
        counts(run, &mut out);
        clauses(run, boundary.map_or(&[][..], Boundary::clauses), &mut out);
        let _ = writeln!(out, "{outcome}");
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

fn causes(screen: &Screen<'_>, out: &mut String) {
    if screen.causes.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Causes\n");
    for told in &screen.causes {
        let (cause, check) = (told.cause, told.check);
        let word = inline(&verdict_word(&check.verdict));
        let _ = writeln!(out, "### {word} {} {}\n\n{}\n", cause.clause, told.level(), inline(&check.title));
        if let Some(clause) = told.clause {
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
        if told.alike > 0 {
            let _ = writeln!(out, "- and {} like it in this check", plural(told.alike, "finding"));
        }
        if let Some(folder) = &check.reproducer {
            let _ = writeln!(
                out,
                "- again: `sh {folder}/repro.sh` or `peerproof replay {folder}/transcript.ndjson`"
            );
        }
        let also =
            told.also().map_or_else(|| "seen in no other check".to_owned(), |also| format!("also {also}"));
        let _ = writeln!(out, "\n<details><summary>{also}</summary>\n");
        for share in &cause.checks {
            let times =
                if share.findings > 1 { format!(" ({} times)", share.findings) } else { String::new() };
            let _ = writeln!(out, "- `{}`{times}", share.check);
        }
        let _ = writeln!(out, "\n</details>\n");
    }
}

/// Checks that decided nothing, by reason, each group with its checks behind a fold.
fn groups(title: &str, groups: &[Group<'_>], out: &mut String) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {title}\n");
    for group in groups {
        let hint = group.hint.iter().map(|hint| format!(" {}", inline(hint))).collect::<String>();
        let _ = writeln!(out, "<details><summary>{}</summary>\n", plain(&group.sentence));
        if !hint.is_empty() {
            let _ = writeln!(out, "{}\n", hint.trim());
        }
        for (reason, count) in &group.reasons {
            let _ = writeln!(out, "- {}: {}", plural(*count, "check"), inline(reason));
        }
        for id in &group.checks {
            let _ = writeln!(out, "- `{id}`");
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
    let _ = writeln!(out, "## Clauses\n\n<details><summary>{proved} of {} proved</summary>\n", rows.len());
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
    let _ = writeln!(out, "\n</details>\n");
}

/// Text of others on one line of HTML.
fn plain(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;")
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

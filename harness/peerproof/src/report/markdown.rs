//! Report in Markdown, for pull requests and wikis.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::printer::Printer;
use super::screen::{Group, ReportedCause, Screen, plural, verdict_word};
use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::clause::Clause;
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::results::{ResultsFile, Standing, StoredRun, standings};
use peerproof_engine::run::verdict::Verdict;

/// Maximum length of a report, bytes: a comment on GitHub holds 65,536 characters, GitLab and step summaries more.
const BYTES_MAX: usize = 60_000;
/// Bytes reserved for counts, outcome and names of omitted sections.
const BYTES_KEPT: usize = 4_000;
/// Maximum number of checks listed in one fold.
const CHECKS_MAX: usize = 40;

/// Renders the results as Markdown: the outcome, the causes with their conversations, checks hidden by them, undecided
/// checks with reasons, counts, the standing of each clause, and the outcome again.
///
/// A report fits a comment: sections that would make it too long are omitted and named at the end.
pub(crate) fn markdown(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> String {
    let mut report = Bounded::default();
    if let Some(sentence) = &file.incomplete {
        report.always(&format!("> **Incomplete:** {}\n\n", inline(sentence)));
    }
    for run in &file.runs {
        one_run(run, boundary::find(boundaries, &run.header.boundary), &mut report);
    }
    report.end()
}

fn one_run(run: &StoredRun, boundary: Option<&'static dyn Boundary>, report: &mut Bounded) {
    let header = &run.header;
    let screen = Screen::new(run, boundary, false);
    let outcome = screen.outcome_line(None, &Printer::plain());
    report.always(&format!(
        "# {} · {} {}\n\npeerproof {}, started {}, rng seed {}\n\n{outcome}\n\n",
        inline(&header.peer),
        header.boundary,
        header.side.word(),
        header.peerproof,
        header.started,
        header.rng_seed
    ));
    if !screen.causes.is_empty() {
        report.always("## Causes\n\n");
    }
    for told in &screen.causes {
        report.section("a cause", &cause(told));
    }
    report.section("hidden checks", &groups("Hidden until a cause is fixed", &screen.hidden));
    report.section("faults of the harness", &faults_of_the_harness(run));
    report.section("undecided checks", &groups("Not decided", &screen.undecided));
    for sentence in screen.advice.iter().chain(&screen.unclaimed).chain(&screen.left_out) {
        report.section("advice", &format!("{}\n\n", inline(sentence)));
    }
    let tallies: String = screen.tallies.iter().map(|tally| format!("- {}\n", tally.line())).collect();
    report.section("counts", &format!("## Counts\n\n{tallies}\n{}", counts(run)));
    report.section("clauses", &clauses(run, boundary.map_or(&[][..], Boundary::clauses)));
    report.section("the outcome again", &format!("{outcome}\n"));
}

/// Report shorter than [`BYTES_MAX`].
#[derive(Default)]
struct Bounded {
    out: String,
    /// Number of omitted sections, by name.
    left_out: BTreeMap<&'static str, usize>,
}

impl Bounded {
    /// Adds a short text of ours.
    fn always(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Adds a section if it fits.
    fn section(&mut self, name: &'static str, text: &str) {
        if self.out.len() + text.len() + BYTES_KEPT <= BYTES_MAX {
            self.out.push_str(text);
        } else {
            *self.left_out.entry(name).or_default() += 1;
        }
    }

    fn end(mut self) -> String {
        if !self.left_out.is_empty() {
            let names: Vec<String> =
                self.left_out.iter().map(|(name, count)| format!("{name} ({count})")).collect();
            let _ = writeln!(
                self.out,
                "\nOmitted because of the size limit: {}. `peerproof report render results.ndjson \
                 --html report.html` shows everything.",
                names.join(", ")
            );
        }
        self.out
    }
}

fn counts(run: &StoredRun) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "| verdict | checks |\n|---|---:|");
    for (word, count) in run.counts() {
        let _ = writeln!(out, "| {word} | {count} |");
    }
    let missing = run.missing().len();
    if missing > 0 {
        let _ = writeln!(out, "| **no result** | {missing} |");
    }
    let _ = writeln!(out, "| planned | {} |\n", run.header.planned.len());
    out
}

fn clause_of<'c>(clauses: &'c [Clause], id: &str) -> Option<&'c Clause> {
    clauses.iter().find(|clause| clause.id.0 == id)
}

fn cause(told: &ReportedCause<'_>) -> String {
    let mut out = String::new();
    let (cause, check) = (told.cause, told.check);
    let word = inline(&verdict_word(&check.verdict));
    let _ = writeln!(
        out,
        "### {word} {} {}{}\n\n{}\n",
        cause.clause,
        told.level(),
        told.rung(),
        inline(&check.title)
    );
    if let Some(clause) = told.clause {
        let _ = writeln!(out, "> {} ([page]({}))\n", inline(&clause.text), clause.page);
    }
    let (conversation, wrong) = told.conversation();
    if !conversation.is_empty() {
        let mut lines = conversation.to_vec();
        if let Some(wrong) = wrong {
            for (place, line) in lines.iter_mut().enumerate() {
                line.insert_str(0, if place == wrong { "> " } else { "  " });
            }
        }
        fenced(&lines, &mut out);
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
        let _ = writeln!(out, "- and {} of the same kind in this check", plural(told.alike, "finding"));
    }
    if let Some(advice) = told.advice() {
        let _ = writeln!(out, "- {}", inline(&advice));
    }
    if let Some(folder) = &check.reproducer {
        let _ =
            writeln!(out, "- again: `sh {folder}/repro.sh` or `peerproof replay {folder}/transcript.ndjson`");
    }
    let also =
        told.also("").map_or_else(|| "seen in no other check".to_owned(), |also| format!("also {also}"));
    let _ = writeln!(out, "\n<details><summary>{also}</summary>\n");
    for share in cause.checks.iter().take(CHECKS_MAX) {
        let times = if share.findings > 1 { format!(" ({} times)", share.findings) } else { String::new() };
        let _ = writeln!(out, "- `{}`{times}", share.check);
    }
    more(cause.checks.len(), &mut out);
    let _ = writeln!(out, "\n</details>\n");
    out
}

/// Adds the number of unlisted checks out of `count`.
fn more(count: usize, out: &mut String) {
    if count > CHECKS_MAX {
        let _ = writeln!(out, "- and {} more", count - CHECKS_MAX);
    }
}

/// Undecided checks by reason, each group in a fold.
fn groups(title: &str, groups: &[Group<'_>]) -> String {
    let mut out = String::new();
    if groups.is_empty() {
        return out;
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
        for id in group.checks.iter().take(CHECKS_MAX) {
            let _ = writeln!(out, "- `{id}`");
        }
        more(group.checks.len(), &mut out);
        let _ = writeln!(out, "\n</details>\n");
    }
    out
}

fn faults_of_the_harness(run: &StoredRun) -> String {
    let mut out = String::new();
    for check in &run.checks {
        if let Verdict::HarnessError(error) = &check.verdict {
            let _ = writeln!(out, "### harness error `{}`\n\n{}\n", check.id, inline(error));
        }
    }
    out
}

fn clauses(run: &StoredRun, known: &[Clause]) -> String {
    let mut out = String::new();
    let rows = standings(&run.checks);
    if rows.is_empty() {
        return out;
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
    out
}

/// Escapes foreign text as one line of HTML.
fn plain(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;")
}

/// Escapes foreign text as one line without Markdown or HTML markup.
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

/// Adds lines unchanged between fences longer than any run of backticks in them.
fn fenced(lines: &[String], out: &mut String) {
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "{fence}text\n{}\n{fence}", lines.join("\n"));
}

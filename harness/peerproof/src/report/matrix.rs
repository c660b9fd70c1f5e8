//! Comparison of peers for people: on the console and in Markdown.

use std::fmt::Write as _;

use super::printer::{Printer, Tone};
use super::screen::plural;
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::matrix::differences::{Difference, Differences, Shortest, Sort};
use peerproof_engine::run::matrix::{Cell, Matrix};

/// Maximum length of a peer's name above a column, characters.
const NAME_CHARS_MAX: usize = 24;

fn tone(cell: &Cell) -> Tone {
    match cell.verdict {
        "pass" | "open" => Tone::Good,
        "fail" | "crash" | "hang" | "leak" => Tone::Bad,
        "not_claimed" | "not_run" => Tone::Dim,
        _ => Tone::Warn,
    }
}

fn cut(name: &str) -> String {
    one_line(name).chars().take(NAME_CHARS_MAX).collect()
}

/// Renders the table with a row per check, marked with `≠` if peers differ. `differing` shows only those.
pub fn render(matrix: &Matrix, differing: bool, printer: &Printer) -> String {
    let mut out = String::new();
    let head: Vec<String> = matrix.peers.iter().map(|peer| cut(&peer.name)).collect();
    let rows = || matrix.checks.iter().filter(|row| row.differs || !differing);
    let width = |at: usize| {
        let cells = rows().map(|row| row.cells[at].text().chars().count());
        let seen =
            matrix.choices.iter().filter_map(|row| row.seen[at].as_ref().map(|seen| seen.chars().count()));
        cells.chain(seen).chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let ids = rows().map(|row| row.check.len()).chain(matrix.choices.iter().map(|row| row.key.len() + 2));
    let first = ids.max().unwrap_or(0);
    let mut line = |mark: &str, name: &str, cells: &mut dyn Iterator<Item = (String, Tone)>| {
        let _ = write!(out, "{mark} {name:first$}");
        for ((text, tone), width) in cells.zip(&widths) {
            let _ = write!(out, "  {}", printer.paint(tone, &format!("{text:width$}")));
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    };
    line(" ", "", &mut head.iter().map(|name| (name.clone(), Tone::Head)));
    for row in rows() {
        let mark = if row.differs { "≠" } else { " " };
        line(mark, &row.check, &mut row.cells.iter().map(|cell| (cell.text(), tone(cell))));
    }
    if !matrix.choices.is_empty() {
        line(" ", "", &mut std::iter::empty());
        line(" ", "open choices", &mut std::iter::empty());
    }
    for row in &matrix.choices {
        let mark = if row.differs { "≠" } else { " " };
        let cells = row.seen.iter().map(|seen| (seen.clone().unwrap_or_else(|| "-".to_owned()), Tone::Name));
        line(mark, &format!("  {}", row.key), &mut { cells });
    }
    let _ = writeln!(out, "\n{}", summary(matrix));
    out
}

fn summary(matrix: &Matrix) -> String {
    let differ = matrix.checks.iter().filter(|row| row.differs).count();
    let open = matrix.choices.iter().filter(|row| row.differs).count();
    format!(
        "{}, {}: {} and {} differ between them",
        plural(matrix.peers.len(), "peer"),
        plural(matrix.checks.len(), "check"),
        plural(differ, "check"),
        plural(open, "open choice")
    )
}

/// Renders the table in Markdown.
pub fn markdown(matrix: &Matrix) -> String {
    let mut out = format!("# {} · {}\n\n", matrix.boundary, summary(matrix));
    let head = |first: &str, out: &mut String| {
        let names: Vec<String> = matrix.peers.iter().map(|peer| cell(&peer.name)).collect();
        let _ = writeln!(out, "|  | {first} | {} |", names.join(" | "));
        let _ = writeln!(out, "|---|---|{}", "---|".repeat(names.len()));
    };
    head("check", &mut out);
    for row in &matrix.checks {
        let cells: Vec<String> = row.cells.iter().map(|found| cell(&found.text())).collect();
        let mark = if row.differs { "≠" } else { "" };
        let _ = writeln!(out, "| {mark} | `{}` | {} |", row.check, cells.join(" | "));
    }
    if !matrix.choices.is_empty() {
        out.push_str("\n## Open choices\n\n");
        head("choice", &mut out);
        for row in &matrix.choices {
            let seen: Vec<String> = row.seen.iter().map(|seen| cell(seen.as_deref().unwrap_or(""))).collect();
            let mark = if row.differs { "≠" } else { "" };
            let _ = writeln!(out, "| {mark} | {} | {} |", cell(&row.key), seen.join(" | "));
        }
    }
    out
}

fn title(sort: Sort) -> &'static str {
    match sort {
        Sort::Fault => "Broken clauses",
        Sort::Choice => "Choices that the contract leaves",
        Sort::Question => {
            "Open questions of the contract: every behaviour is allowed, and no choice is named"
        }
    }
}

const SORTS: [Sort; 3] = [Sort::Fault, Sort::Choice, Sort::Question];

fn about(difference: &Difference) -> String {
    let choice = difference.choice.as_ref().map(|key| format!(" ({key})")).unwrap_or_default();
    let times = if difference.times == 1 { "once".to_owned() } else { format!("{} times", difference.times) };
    format!("{}{choice}: different answers from {}, {times}", difference.clause, difference.apart.join(", "))
}

/// Describes the shortest conversation in a sentence.
fn told(shortest: &Shortest) -> String {
    let place = shortest.transcript.as_ref().map(|file| format!(", {file}")).unwrap_or_default();
    if !shortest.is_shorter() {
        return format!("confirmed{place}");
    }
    format!(
        "confirmed; shrunk from {} to {} steps and from {} to {} bytes in {} conversations with all peers{place}",
        shortest.steps.0, shortest.steps.1, shortest.bytes.0, shortest.bytes.1, shortest.runs
    )
}

fn unsteady(difference: &Difference) -> String {
    let why = match &difference.cut {
        Some(error) => format!("it could not be repeated ({error})"),
        None => format!("it did not occur again (occurrences: {})", difference.shown),
    };
    format!("not counted, because {why}: {} in conversation {}", about(difference), difference.conversation)
}

fn counts(differences: &Differences) -> String {
    let of = |sort: Sort| differences.differences.iter().filter(|found| found.sort == sort).count();
    let many = |count: u64, thing: &str| plural(usize::try_from(count).unwrap_or(usize::MAX), thing);
    format!(
        "{}, {}, {}: {} equal, {} different because of earlier ones; {} by faults, {} by choices, {}",
        plural(differences.peers.len(), "peer"),
        many(differences.conversations, "conversation"),
        many(differences.exchanges, "answer"),
        differences.alike,
        differences.follow,
        plural(of(Sort::Fault), "difference"),
        of(Sort::Choice),
        plural(of(Sort::Question), "open question")
    )
}

/// Renders the differences between the answers of peers.
pub fn differences(found: &Differences, printer: &Printer) -> String {
    let mut out = String::new();
    for sort in SORTS {
        let of_sort: Vec<&Difference> = found.differences.iter().filter(|one| one.sort == sort).collect();
        if of_sort.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{}\n", printer.paint(Tone::Head, title(sort)));
        for difference in of_sort {
            let _ = writeln!(out, "  {}", printer.paint(Tone::Name, &about(difference)));
            let _ = writeln!(out, "    → {}", one_line(&difference.sent));
            for cluster in &difference.clusters {
                let fault = cluster.fault.as_ref().map(|fault| format!(" [{fault}]")).unwrap_or_default();
                let tone = if cluster.fault.is_some() { Tone::Bad } else { Tone::Good };
                let text = format!("{}{fault}", one_line(&cluster.came));
                let _ = writeln!(out, "    ← {}: {}", cluster.peers.join(", "), printer.paint(tone, &text));
            }
            let _ = writeln!(out, "    expected {}", one_line(&difference.expected));
            if let Some(shortest) = &difference.shortest {
                let _ = writeln!(out, "    {}", told(shortest));
                for line in shortest.shown() {
                    let _ = writeln!(out, "      {}", printer.paint(Tone::Dim, &one_line(line)));
                }
            }
            out.push('\n');
        }
    }
    for difference in &found.unsteady {
        let _ = writeln!(out, "{}", printer.paint(Tone::Warn, &unsteady(difference)));
    }
    let _ = writeln!(out, "{}", counts(found));
    out
}

/// Renders the differences in Markdown.
pub fn differences_markdown(found: &Differences) -> String {
    let mut out = format!("# {}\n\n{}, rng seed {}\n", found.boundary, counts(found), found.rng_seed);
    for sort in SORTS {
        let of_sort: Vec<&Difference> = found.differences.iter().filter(|one| one.sort == sort).collect();
        if !of_sort.is_empty() {
            let _ = writeln!(out, "\n## {}\n", title(sort));
        }
        for difference in of_sort {
            let _ = writeln!(out, "### {}\n\n- sent: {}", cell(&about(difference)), cell(&difference.sent));
            for cluster in &difference.clusters {
                let fault = cluster.fault.as_ref().map(|fault| format!(" (**{fault}**)")).unwrap_or_default();
                let _ =
                    writeln!(out, "- {}: {}{fault}", cell(&cluster.peers.join(", ")), cell(&cluster.came));
            }
            let _ = writeln!(out, "- expected: {}", cell(&difference.expected));
            if let Some(shortest) = &difference.shortest {
                let _ = writeln!(out, "- {}", cell(&told(shortest)));
                for line in shortest.shown() {
                    let _ = writeln!(out, "  - {}", cell(line));
                }
            }
            out.push('\n');
        }
    }
    if !found.unsteady.is_empty() {
        out.push_str("\n## Not reproduced\n\n");
        for difference in &found.unsteady {
            let _ = writeln!(out, "- {}", cell(&unsteady(difference)));
        }
    }
    out
}

fn cell(text: &str) -> String {
    super::markdown::inline(text).replace('|', "\\|")
}

//! Report of a run for people: the outcome, the causes, undecided checks, and the outcome again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use super::printer::{Printer, Tone};
use super::screen::{Group, ReportedCause, Screen, distinct, level_of_finding, plural, verdict_word};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::{Untestable, topic_of};
use peerproof_engine::data::clause::{Clause, Level};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::pace::Measured;
use peerproof_engine::data::payload::{shorten, shorten_pair};
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::reproducer::{abridge, explaining_errors, is_contrast, last_sent, quoted};
use peerproof_engine::run::results::StoredRun;
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Maximum number of lines for the expected and for the actual behaviour.
const COMPARED_LINES_MAX: usize = 3;
/// Maximum number of ids per standing.
const IDS_MAX: usize = 60;

/// Contents of a report besides the run.
#[derive(Debug, Clone, Default)]
pub struct ReportContents {
    /// Wall time.
    pub elapsed: Option<Duration>,
    /// Note about a configuration that was found, not named.
    pub configuration: Option<String>,
    /// Folder of the reproducers, as the user may type it.
    pub folder: Option<String>,
    /// Set if broken SHOULDs decide the exit status.
    pub strict: bool,
    /// Measured pace of the peer, by command.
    pub pace: BTreeMap<String, Measured>,
    /// Guess about a peer without any correct answer.
    pub impression: Option<String>,
    /// Level of detail.
    pub detail: Detail,
}

/// Maximum number of lines of a conversation.
const LINES_MAX: usize = 15;
/// Maximum number of rows of the wrong line, and of the message before it.
const WHOLE_ROWS_MAX: usize = 3;
/// Maximum number of causes shown in full by default.
const CAUSES_MAX: usize = 5;

/// Level of detail of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// The causes, and counts of everything else.
    #[default]
    Causes,
    /// The causes with their checks, counts of all topics, and lists of undecided checks.
    Seen,
    /// All of that, plus each failed check with all its findings.
    Checks,
}

/// Renders one run of a peer of `boundary`, if known: outcome, causes, checks hidden by them, undecided checks with
/// advice, numbers of proved clauses, and the outcome again.
pub fn render(
    run: &StoredRun,
    boundary: Option<&'static dyn Boundary>,
    beside: &ReportContents,
    printer: &Printer,
) -> String {
    let clauses = boundary.map_or(&[][..], Boundary::clauses);
    let screen = Screen::new(run, boundary, beside.strict);
    let outcome =
        screen.outcome_line(beside.elapsed.map(|time| format!("{:.1} s", time.as_secs_f64())), printer);
    let report = Report { run, screen, beside, clauses, printer };
    let mut out = String::new();
    report.head(&mut out);
    let _ = writeln!(out, "{outcome}\n");
    if let Some(sentence) = &beside.impression {
        report.hang("", sentence, &mut out);
        out.push('\n');
    }
    report.causes(&mut out);
    report.groups("Hidden until a cause is fixed", &report.screen.hidden, &mut out);
    report.failures(&mut out);
    report.undecided(&mut out);
    if beside.detail >= Detail::Seen {
        report.topics(&mut out);
    }
    report.proved(&mut out);
    report.counts(&mut out);
    let _ = writeln!(out, "{outcome}");
    out
}

/// Text about one failed check, without colours, for test runners. `again` are commands that show it again.
pub(crate) fn failure_text(check: &CheckResult, clauses: &[Clause], again: &[String]) -> String {
    let mut out = String::new();
    failure(check, clauses, again, Tone::Bad, &Printer::plain(), &mut out);
    out
}

struct Report<'a> {
    run: &'a StoredRun,
    screen: Screen<'a>,
    beside: &'a ReportContents,
    clauses: &'a [Clause],
    printer: &'a Printer,
}

impl Report<'_> {
    fn head(&self, out: &mut String) {
        let header = &self.run.header;
        let mut line = format!(
            "{} · {} {} · {} · rng seed {}",
            header.peer,
            header.boundary,
            header.side.word(),
            plural(header.planned.len(), "check"),
            header.rng_seed
        );
        if let Some(configuration) = &self.beside.configuration {
            line.push_str(&format!(" · {configuration}"));
        }
        let _ = writeln!(out, "{}", self.printer.paint(Tone::Head, &line));
        let seen = header.config["seen"].as_array().into_iter().flatten();
        for line in seen.filter_map(serde_json::Value::as_str) {
            let _ = writeln!(out, "  {}", self.printer.paint(Tone::Dim, line));
        }
    }

    fn again(&self, check: &CheckResult) -> Vec<String> {
        self.beside.folder.as_ref().map(|folder| commands(check, folder)).unwrap_or_default()
    }

    fn hang(&self, label: &str, text: &str, out: &mut String) {
        let _ = writeln!(out, "{}", self.printer.hang(label, text));
    }

    fn title(&self, text: &str, out: &mut String) {
        let _ = writeln!(out, "{}", self.printer.paint(Tone::Head, text));
    }

    /// Faults of the peer, each once.
    fn causes(&self, out: &mut String) {
        let shown = if self.beside.detail >= Detail::Seen { usize::MAX } else { CAUSES_MAX };
        let (shown, others) = self.screen.causes.split_at(shown.min(self.screen.causes.len()));
        for told in shown {
            self.cause(told, out);
        }
        if !others.is_empty() {
            self.title(&format!("{} more to fix later (-v lists them)", plural(others.len(), "cause")), out);
            for ReportedCause { cause, .. } in others {
                let _ = writeln!(
                    out,
                    "  {} {} ({})",
                    cause.clause.0,
                    cause.reason,
                    self.printer.paint(Tone::Name, &cause.check)
                );
            }
            out.push('\n');
        }
        if self.screen.expected > 0 {
            let _ =
                writeln!(out, "{} more, expected as known failures\n", plural(self.screen.expected, "cause"));
        }
    }

    fn cause(&self, told: &ReportedCause<'_>, out: &mut String) {
        let ReportedCause { cause, check, .. } = told;
        let is_flaky = matches!(check.verdict, Verdict::Flaky(_));
        let tone = if told.decides && !is_flaky { Tone::Bad } else { Tone::Warn };
        let paint = |tone, text: &str| self.printer.paint(tone, text);
        let word = paint(tone, &verdict_word(&check.verdict));
        let _ =
            writeln!(out, "{word} {} {}{}", paint(Tone::Head, &cause.clause.0), told.level(), told.rung());
        self.hang("  ", told.rule(), out);
        if let Some(clause) = told.clause {
            if self.beside.detail >= Detail::Seen && told.rule() != clause.text {
                out.push('\n');
                self.hang("  ", &clause.text, out);
            }
            if !clause.page.is_empty() {
                let _ = writeln!(out, "  {}", paint(Tone::Dim, &clause.page));
            }
        }
        out.push('\n');
        let (lines, wrong) = told.conversation();
        conversation(lines, wrong, self.printer, out);
        compared(&cause.expected, &cause.got, &cause.reason, "  ", self.printer, out);
        if told.alike > 0 {
            let _ = writeln!(
                out,
                "            and {} of the same kind in this check",
                plural(told.alike, "finding")
            );
        }
        if let Some(advice) = told.advice() {
            self.hang("  library   ", &advice, out);
        }
        again(&self.again(check), out);
        if self.beside.detail >= Detail::Seen {
            let _ = writeln!(out, "  seen in   {}", paint(Tone::Name, &cause.check));
            for id in &told.others {
                let _ = writeln!(out, "            {}", paint(Tone::Name, id));
            }
        } else if let Some(also) = told.also(" (-v lists them)") {
            self.hang("  also      ", &also, out);
        }
        out.push('\n');
    }

    /// Undecided checks, by reason.
    fn groups(&self, title: &str, groups: &[Group<'_>], out: &mut String) {
        if groups.is_empty() {
            return;
        }
        self.title(title, out);
        for group in groups {
            self.hang("  ", &group.sentence, out);
            if self.beside.detail >= Detail::Seen {
                for (reason, count) in &group.reasons {
                    self.hang(&format!("  {count:6} "), reason, out);
                }
            }
            if let Some(hint) = &group.hint {
                self.hang("    ", hint, out);
            }
        }
        out.push('\n');
    }

    /// Undecided checks with advice, and unclaimed features.
    fn undecided(&self, out: &mut String) {
        let Screen { undecided, advice, unclaimed, left_out, .. } = &self.screen;
        self.groups("Not decided", undecided, out);
        for sentence in advice.iter().chain(unclaimed).chain(left_out) {
            self.hang("", sentence, out);
            out.push('\n');
        }
    }

    /// One line per topic with its counts.
    fn topics(&self, out: &mut String) {
        let mut topics: Vec<(&str, BTreeMap<&'static str, usize>)> = Vec::new();
        for check in &self.run.checks {
            let topic = topic_of(&check.id);
            let index = topics.iter().position(|(name, _)| *name == topic).unwrap_or_else(|| {
                topics.push((topic, BTreeMap::new()));
                topics.len() - 1
            });
            *topics[index].1.entry(group(&check.verdict)).or_insert(0) += 1;
        }
        let width = topics.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, counts) in topics {
            let _ = write!(out, "  {name:width$} ");
            for (group, tone) in GROUPS {
                if let Some(count) = counts.get(group) {
                    let _ = write!(out, "  {}", self.printer.paint(*tone, &format!("{count} {group}")));
                }
            }
            out.push('\n');
        }
        out.push('\n');
    }

    /// Faults of the harness, and on demand every failed check.
    fn failures(&self, out: &mut String) {
        for check in &self.run.checks {
            let is_bad = check.verdict.is_failure() || matches!(check.verdict, Verdict::Flaky(_));
            match check.verdict {
                Verdict::HarnessError(_) => self.failure(check, Tone::Warn, out),
                _ if is_bad && self.beside.detail == Detail::Checks => {
                    let decides = self.beside.strict || check.broken_level() != Some(Level::Should);
                    let tone = if decides && check.verdict.is_failure() { Tone::Bad } else { Tone::Warn };
                    self.failure(check, tone, out);
                }
                _ => {}
            }
        }
    }

    fn failure(&self, check: &CheckResult, tone: Tone, out: &mut String) {
        failure(check, self.clauses, &self.again(check), tone, self.printer, out);
    }

    /// Number of proved clauses per level, and the peer's choices.
    fn proved(&self, out: &mut String) {
        for tally in &self.screen.tallies {
            let tone = if tally.is_full() { Tone::Good } else { Tone::Head };
            let _ = writeln!(out, "{}", self.printer.paint(tone, &tally.line()));
            let listed = tally.ids.iter().filter(|(word, _)| !matches!(*word, "proved" | "not claimed"));
            for (word, ids) in listed.filter(|_| self.beside.detail >= Detail::Seen) {
                let mut list = ids.iter().take(IDS_MAX).copied().collect::<Vec<_>>().join(" ");
                if ids.len() > IDS_MAX {
                    let _ = write!(list, " … and {} more", ids.len() - IDS_MAX);
                }
                self.hang(&format!("  {word:9} "), &list, out);
            }
        }
        self.listed(
            "choice",
            "inferred from answers (pin them under [choices] to have them asserted)",
            &self.choices(false),
            out,
        );
        self.listed("choice", "as set under [choices]", &self.choices(true), out);
        self.listed("number", "counted in these conversations", &self.counted(), out);
    }

    /// Number of `entries`, or on demand each of them.
    fn listed(&self, thing: &str, what: &str, entries: &[String], out: &mut String) {
        if entries.is_empty() {
            return;
        }
        let head = format!("{} {what}", plural(entries.len(), thing));
        if self.beside.detail >= Detail::Seen {
            self.hang("", &format!("{head}:"), out);
            self.hang("  ", &entries.join(", "), out);
        } else {
            self.hang("", &format!("{head}; -v lists them"), out);
        }
    }

    /// Choices of the peer, either pinned or inferred.
    fn choices(&self, pinned: bool) -> Vec<String> {
        let mut choices: BTreeMap<&str, Vec<BTreeSet<&str>>> = BTreeMap::new();
        let seen = self.run.checks.iter().filter_map(|check| check.choice.as_ref());
        for choice in seen.filter(|choice| choice.pinned == pinned) {
            // A behaviour that fits several values is written `a|b`.
            choices.entry(&choice.key).or_default().push(choice.value.split('|').collect());
        }
        choices.iter().map(|(key, seen)| format!("{key}={}", in_words(seen))).collect()
    }

    /// Counters of all checks together.
    fn counted(&self) -> Vec<String> {
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        for (what, count) in self.run.checks.iter().flat_map(|check| &check.counted) {
            *counted.entry(what).or_default() += count;
        }
        counted.into_iter().map(|(what, count)| format!("{count} {}", one_line(what))).collect()
    }

    /// Number of checks per verdict.
    fn counts(&self, out: &mut String) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for check in &self.run.checks {
            *counts.entry(group(&check.verdict)).or_insert(0) += 1;
        }
        let mut parts = Vec::new();
        for (group, tone) in GROUPS {
            if let Some(count) = counts.get(group) {
                parts.push(self.printer.paint(*tone, &format!("{count} {group}")));
            }
        }
        let missing = self.run.missing().len();
        if missing > 0 {
            parts.push(self.printer.paint(Tone::Warn, &format!("{missing} missing")));
        }
        for (command, measured) in &self.beside.pace {
            let _ = writeln!(out, "{command}: {measured}");
        }
        let head = format!("{}: ", plural(self.run.checks.len(), "check"));
        let _ = writeln!(out, "{}", self.printer.fill(&head, &parts.join(", ")));
    }
}

/// Values of a choice shown by several answers, each of which may fit several values: those common to all, joined by
/// `or`; if there are none, all of them, joined by `and`.
fn in_words(seen: &[BTreeSet<&str>]) -> String {
    let all: BTreeSet<&str> = seen.iter().flatten().copied().collect();
    let common: Vec<&str> =
        all.iter().copied().filter(|value| seen.iter().all(|values| values.contains(value))).collect();
    if common.is_empty() { all.into_iter().collect::<Vec<_>>().join(" and ") } else { common.join(" or ") }
}

/// Shows a conversation on less than a screen, with a mark at the line `wrong`. That line, the message before it, the
/// standard error that explains it and an input without a fault may take several rows; the others are cut.
fn conversation(lines: &[String], wrong: Option<usize>, printer: &Printer, out: &mut String) {
    let room = printer.columns - 4;
    let (shown, wrong) = abridge(lines.to_vec(), wrong, LINES_MAX);
    let sent = wrong.and_then(|wrong| last_sent(&shown[..=wrong]));
    let errors = explaining_errors(&shown, wrong);
    for (at, line) in shown.iter().enumerate() {
        let (mark, tone) = if wrong == Some(at) { ("  > ", Tone::Bad) } else { ("    ", Tone::Dim) };
        let is_whole = [wrong, sent, errors].contains(&Some(at)) || is_contrast(line);
        let is_whole = is_whole && line.chars().count() > room;
        let cut = if errors == Some(at) { cut_within } else { cut };
        let _ = match is_whole {
            true => {
                let text = printer.paint(tone, &cut(line, room * WHOLE_ROWS_MAX));
                writeln!(out, "{}", printer.fill(mark, &text))
            }
            false => writeln!(out, "{mark}{}", printer.paint(tone, &cut(line, room))),
        };
    }
    if !lines.is_empty() {
        out.push('\n');
    }
}

/// Shortens a line of a conversation to `room` characters and appends its length.
fn cut(line: &str, room: usize) -> String {
    let count = line.chars().count();
    if count <= room {
        return line.to_owned();
    }
    // The stored line may have been shortened before.
    let least = if line.contains('…') { "over " } else { "" };
    let end = format!("… ({least}{count} chars)");
    let head: String = line.chars().take(room.saturating_sub(end.chars().count())).collect();
    head + &end
}

/// Shortens a line of a conversation to `room` characters, keeping its end: the reason of an error.
fn cut_within(line: &str, room: usize) -> String {
    shorten(line, room).into_owned()
}

/// Shows expected and actual behaviour, shortened so that the first difference is visible.
fn compared(expected: &str, got: &str, reason: &str, indent: &str, printer: &Printer, out: &mut String) {
    let (expected, got) = (&*told_apart(expected, got), &*told_apart(got, expected));
    let labels = [format!("{indent}expected  "), format!("{indent}got       ")];
    let room = (printer.columns - labels[0].len()) * COMPARED_LINES_MAX;
    let (expected, got) =
        shorten_pair(&one_line(expected), &one_line(got), room.saturating_sub(reason.len() + 3));
    let _ = writeln!(out, "{}", printer.hang(&labels[0], &expected));
    let _ = writeln!(out, "{}", printer.hang(&labels[1], &format!("{got} ({reason})")));
}

/// Text with escapes for its letters beyond ASCII that `other` lacks, if `other` also has such letters: some look alike.
fn told_apart<'t>(text: &'t str, other: &str) -> Cow<'t, str> {
    let is_own = |c: char, other: &str| !c.is_ascii() && c.is_alphanumeric() && !other.contains(c);
    if !text.contains(|c: char| is_own(c, other)) || !other.contains(|c: char| is_own(c, text)) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|c| match c {
        c if is_own(c, other) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    });
    Cow::Owned(shown.collect())
}

fn failure(
    check: &CheckResult,
    clauses: &[Clause],
    commands: &[String],
    tone: Tone,
    printer: &Printer,
    out: &mut String,
) {
    let paint = |tone, text: &str| printer.paint(tone, text);
    let _ = writeln!(out, "{} {}", paint(tone, &verdict_word(&check.verdict)), paint(Tone::Name, &check.id));
    let _ = writeln!(out, "{}\n", printer.hang("  ", &check.title));
    if let Verdict::HarnessError(error) = &check.verdict {
        let _ = writeln!(out, "{}\n", printer.hang("  ", error));
    }
    conversation(&check.conversation, check.wrong_line, printer, out);
    for (finding, times) in distinct(&check.findings) {
        let _ = writeln!(out, "{}", found(finding, times, clauses, printer));
    }
    again(commands, out);
    out.push('\n');
}

/// Finding with its clause, the expected and the actual behaviour, and its number of occurrences.
pub(super) fn found(finding: &Finding, times: usize, clauses: &[Clause], printer: &Printer) -> String {
    let mut out = String::new();
    let clause = clauses.iter().find(|clause| clause.id == finding.clause);
    let level = level_of_finding(clause.map_or(Level::Must, |clause| clause.level));
    let page = clause.map_or("", |clause| clause.page.as_str());
    let id = printer.paint(Tone::Head, &finding.clause.0);
    let _ = writeln!(out, "  {id} {level}  {}", printer.paint(Tone::Dim, page));
    if let Some(clause) = clause {
        let _ = writeln!(out, "{}", printer.hang("    ", &clause.text));
    }
    let times = if times > 1 { format!(", {times} times") } else { String::new() };
    compared(
        &finding.expected,
        &finding.got,
        &format!("{}{times}", finding.reason),
        "    ",
        printer,
        &mut out,
    );
    out
}

/// Commands that show a failure again, without and with the peer. Paths begin with `folder`.
pub(crate) fn commands(check: &CheckResult, folder: &str) -> Vec<String> {
    let file = |name: &str, file: &str| quoted(&format!("{folder}/{name}/{file}"));
    let of = |name: &String| {
        let replay = format!("peerproof replay {}", file(name, "transcript.ndjson"));
        vec![replay, format!("sh {}", file(name, "repro.sh"))]
    };
    check.reproducer.as_ref().map(of).unwrap_or_default()
}

fn again(commands: &[String], out: &mut String) {
    for (index, command) in commands.iter().enumerate() {
        let _ = writeln!(out, "  {:9} {command}", if index == 0 { "again" } else { "" });
    }
}

/// Words of the counts, in order.
const GROUPS: &[(&str, Tone)] = &[
    ("passed", Tone::Good),
    ("open", Tone::Good),
    ("failed", Tone::Bad),
    ("crashed", Tone::Bad),
    ("hung", Tone::Bad),
    ("leaked", Tone::Bad),
    ("flaky", Tone::Warn),
    ("harness errors", Tone::Warn),
    ("expected to fail", Tone::Warn),
    ("untestable", Tone::Warn),
    ("masked", Tone::Warn),
    ("not claimed", Tone::Dim),
    ("not run", Tone::Dim),
];

fn group(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Open(_) => "open",
        Verdict::Fail => "failed",
        Verdict::Crash => "crashed",
        Verdict::Hang => "hung",
        Verdict::Leak => "leaked",
        Verdict::Flaky(_) => "flaky",
        Verdict::HarnessError(_) => "harness errors",
        Verdict::Expected(_) => "expected to fail",
        // The sentence about unclaimed features and commands counts it, too.
        Verdict::Untestable(why) if why.code == Untestable::NO_COMMAND => "not claimed",
        Verdict::Untestable(_) => "untestable",
        Verdict::Masked(_) => "masked",
        Verdict::NotClaimed(_) => "not claimed",
        Verdict::NotRun(_) => "not run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_keeps_the_difference_and_says_how_long_it_was() {
        let printer = Printer::plain();
        let line = format!("← {}", "x".repeat(200));
        let shown = cut(&line, 76);
        assert!(shown.chars().count() == 76 && shown.ends_with("x… (202 chars)"), "{shown}");
        assert_eq!(cut("short", 76), "short");
        let of = |text: &str| format!("{{\"a\":\"{}{text}\"}}", "long ".repeat(100));
        let mut out = String::new();
        compared(&of("RIGHT"), &of("WRONG"), "wrong_output", "  ", &printer, &mut out);
        assert!(out.contains("RIGHT") && out.contains("WRONG"), "{out}");
        assert!(out.lines().count() <= 2 * COMPARED_LINES_MAX, "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= printer.columns), "{out}");
    }

    #[test]
    fn letters_that_may_look_alike_are_told_apart() {
        let both = |a: &str, b: &str| format!("{} {}", told_apart(a, b), told_apart(b, a));
        assert_eq!(both("\u{c5}é", "\u{212b}é"), "\\u00c5é \\u212bé");
        assert_eq!(both("né", "n?"), "né n?");
    }

    #[test]
    fn a_check_of_a_missing_command_is_counted_as_not_claimed() {
        let why = |code| Verdict::Untestable(Untestable::new(code, "the peer has no `run` command"));
        assert_eq!(group(&why(Untestable::NO_COMMAND)), group(&Verdict::NotClaimed("run".to_owned())));
        assert_eq!(group(&why(Untestable::NO_ROLE)), "untestable");
    }

    #[test]
    fn the_wrong_line_is_marked() {
        let mut out = String::new();
        conversation(&["→ a".to_owned(), "← b".to_owned()], Some(1), &Printer::plain(), &mut out);
        assert_eq!(out, "    → a\n  > ← b\n\n");
    }

    #[test]
    fn standard_error_of_a_dead_process_keeps_its_end() {
        let shown = |length: usize| {
            let errors = format!("· stderr (9 bytes): {} the reason", "word ".repeat(length));
            let mut out = String::new();
            let lines = ["→ a".to_owned(), "✗ exit status 2".to_owned(), errors];
            conversation(&lines, Some(1), &Printer::plain(), &mut out);
            out
        };
        let whole = shown(30);
        assert!(whole.ends_with("the reason\n\n") && !whole.contains('…'), "{whole}");
        let cut = shown(300);
        assert!(cut.ends_with("the reason\n\n") && cut.contains('…'), "{cut}");
        assert!(cut.lines().count() <= 3 + 1 + WHOLE_ROWS_MAX, "{cut}");
    }
}

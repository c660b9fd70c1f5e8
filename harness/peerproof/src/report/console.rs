//! The report of a run for people: the outcome, the causes, what is not decided, and the outcome again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use super::printer::{Printer, Tone};
use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::causes::{Cause, Certainty};
use peerproof_engine::check::Untestable;
use peerproof_engine::check::topic_of;
use peerproof_engine::clause::{Clause, Level};
use peerproof_engine::finding::Finding;
use peerproof_engine::pace::Measured;
use peerproof_engine::payload::{shorten, shorten_pair};
use peerproof_engine::results::{self, Run, Standing};
use peerproof_engine::runner;
use peerproof_engine::text::{one_line, wrap, wrap_to};
use peerproof_engine::verdict::{CheckResult, Verdict};

/// Most ids in one list.
const IDS_MAX: usize = 12;
/// Columns of a sentence about a cause.
const COLUMNS: usize = 78;
/// Most lines of the conversation that shows a cause.
const LINES_MAX: usize = 15;
/// Most characters of one of its lines, and of what was expected and came.
const SHOWN_CHARS: usize = 150;

/// What a report says besides the run.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Wall time.
    pub elapsed: Option<Duration>,
    /// Folder that reproducers were written to, as the user may type it.
    pub folder: Option<String>,
    /// A broken SHOULD decides.
    pub strict: bool,
    /// How quick the peer was, by command.
    pub pace: BTreeMap<String, Measured>,
    /// Level of detail.
    pub detail: Detail,
}

/// Level of detail of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// The causes.
    #[default]
    Causes,
    /// The causes, each with the checks that saw it, and the counts of all topics.
    Seen,
    /// All of that, and each check that failed with all of its findings.
    Checks,
}

/// Renders everything about one run of a peer of `boundary`, where that is known: outcome, causes, what was proved, and what
/// was not decided and why.
pub fn render(
    run: &Run,
    boundary: Option<&'static dyn Boundary>,
    beside: &Beside,
    printer: &Printer,
) -> String {
    let clauses = boundary.map_or(&[][..], Boundary::clauses);
    let report = Report { run, boundary, beside, clauses, printer };
    let mut out = String::new();
    report.head(&mut out);
    let outcome = report.outcome();
    let _ = writeln!(out, "{outcome}\n");
    report.causes(&mut out);
    if beside.detail >= Detail::Seen {
        report.topics(&mut out);
    }
    report.failures(&mut out);
    report.proved(&mut out);
    report.counted(&mut out);
    report.undecided(&mut out);
    report.counts(&mut out);
    let _ = writeln!(out, "{outcome}");
    out
}

/// The outcome of a run on one line, without colours and time.
pub(super) fn summary(run: &Run, boundary: Option<&'static dyn Boundary>) -> String {
    let clauses = boundary.map_or(&[][..], Boundary::clauses);
    let (beside, printer) = (Beside::default(), Printer::plain());
    Report { run, boundary, beside: &beside, clauses, printer: &printer }.outcome()
}

/// What is wrong with one check, without colours: for test runners.
pub fn failure_text(check: &CheckResult, clauses: &[Clause]) -> String {
    let mut out = String::new();
    failure(check, clauses, &Beside::default(), Tone::Bad, &Printer::plain(), &mut out);
    out
}

struct Report<'a> {
    run: &'a Run,
    boundary: Option<&'static dyn Boundary>,
    beside: &'a Beside,
    clauses: &'a [Clause],
    printer: &'a Printer,
}

impl Report<'_> {
    fn head(&self, out: &mut String) {
        let header = &self.run.header;
        let line = format!(
            "{} · {} {} · {} checks · rng seed {}",
            header.peer,
            header.boundary,
            header.side.word(),
            header.planned.len(),
            header.rng_seed
        );
        let _ = writeln!(out, "{}", self.printer.paint(Tone::Head, &line));
    }

    /// The whole run on one line: causes, failed checks, MUSTs proved, seconds.
    fn outcome(&self) -> String {
        let of = |certainty| self.run.causes.iter().filter(|cause| cause.certainty == certainty).count();
        let failed = self.run.checks.iter().filter(|check| check.verdict.is_failure()).count();
        let (broken, flaky) = (of(Certainty::Broken), of(Certainty::Flaky));
        let mut parts = match broken {
            0 => vec![self.printer.paint(Tone::Good, "no fault seen")],
            _ => {
                let causes = format!("{}, {}", plural(broken, "cause"), plural(failed, "failed check"));
                vec![self.printer.paint(Tone::Bad, &causes)]
            }
        };
        if flaky > 0 {
            parts.push(self.printer.paint(Tone::Warn, &format!("{} now and then", plural(flaky, "cause"))));
        }
        let clauses = self.in_question();
        let standings = results::standings(&self.run.checks);
        let standing_of = |clause: &Clause| {
            standings.iter().find(|(other, _)| other.id == clause.id).map(|(_, standing)| standing)
        };
        let musts = clauses.iter().filter(|clause| clause.level == Level::Must).map(|it| standing_of(it));
        let claimed: Vec<_> = musts.filter(|it| !matches!(it, Some(Standing::NotClaimed))).collect();
        let proved = claimed.iter().filter(|it| matches!(it, Some(Standing::Proved))).count();
        if !claimed.is_empty() {
            parts.push(format!("{proved} of {} proved", plural(claimed.len(), "MUST")));
        }
        parts.extend(self.beside.elapsed.map(|time| format!("{:.1} s", time.as_secs_f64())));
        parts.join(" · ")
    }

    /// The faults of the peer, each once.
    fn causes(&self, out: &mut String) {
        for cause in self.run.causes.iter().filter(|cause| cause.is_told()) {
            self.cause(cause, out);
        }
        let expected = self.run.causes.iter().filter(|cause| cause.certainty == Certainty::Expected).count();
        if expected > 0 {
            let _ = writeln!(out, "{} more, as the expectations say\n", plural(expected, "cause"));
        }
    }

    fn cause(&self, cause: &Cause, out: &mut String) {
        let Some(check) = self.run.checks.iter().find(|check| check.id == cause.check) else { return };
        let decides = self.beside.strict || cause.level != Level::Should;
        let (tone, word) = match &check.verdict {
            Verdict::Flaky(times) => (Tone::Warn, format!("FLAKY {times}")),
            verdict if decides => (Tone::Bad, verdict.word().to_uppercase()),
            verdict => (Tone::Warn, verdict.word().to_uppercase()),
        };
        let level = match cause.level {
            // Beyond the named set is as wrong as beyond a MUST.
            Level::Open => "MUST (one of the allowed outcomes)",
            Level::Must => "MUST",
            Level::Should if decides => "SHOULD",
            Level::Should => "SHOULD (decides with --strict alone)",
        };
        let paint = |tone, text: &str| self.printer.paint(tone, text);
        let _ = writeln!(
            out,
            "{} {} {level}\n{}\n",
            paint(tone, &word),
            paint(Tone::Head, &cause.clause.0),
            wrap_to(COLUMNS, &check.title, "  ")
        );
        let clause = self.clauses.iter().find(|clause| clause.id == cause.clause);
        if let Some(clause) = clause.filter(|_| self.beside.detail >= Detail::Seen) {
            let _ = writeln!(out, "{}\n", wrap_to(COLUMNS, &clause.text, "  "));
        }
        for line in excerpt(&check.conversation) {
            let _ = writeln!(out, "    {}", paint(Tone::Dim, &line));
        }
        if !check.conversation.is_empty() {
            out.push('\n');
        }
        let (expected, got) = shorten_pair(&one_line(&cause.expected), &one_line(&cause.got), SHOWN_CHARS);
        let _ = writeln!(out, "  expected  {expected}\n  got       {got} ({})", cause.reason);
        let own = cause.checks.iter().find(|share| share.check == cause.check);
        if let Some(more) = own.map(|share| share.findings - 1).filter(|more| *more > 0) {
            let _ = writeln!(out, "            and {} like it in this check", plural(more, "finding"));
        }
        again(check, self.beside, out);
        let others: Vec<&str> = cause
            .checks
            .iter()
            .map(|share| share.check.as_str())
            .filter(|check| *check != cause.check)
            .collect();
        if self.beside.detail >= Detail::Seen {
            let _ = writeln!(out, "  seen in   {}", paint(Tone::Name, &cause.check));
            for id in others {
                let _ = writeln!(out, "            {}", paint(Tone::Name, id));
            }
        } else if !others.is_empty() {
            let _ =
                writeln!(out, "  also      seen in {} (-v lists them)", plural(others.len(), "other check"));
        }
        out.push('\n');
    }

    /// One line a topic with its counts.
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

    /// What no cause tells: faults of the harness; and on demand every check that failed.
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
        failure(check, self.clauses, self.beside, tone, self.printer, out);
    }

    fn title(&self, text: &str, out: &mut String) {
        let _ = writeln!(out, "{}", self.printer.paint(Tone::Head, text));
    }

    /// Clauses that this run could speak about: all of the side, or those of the selected checks.
    fn in_question(&self) -> Vec<&Clause> {
        let selected = self.run.header.planned.len();
        let all = self
            .boundary
            .map_or(0, |boundary| boundary::checks_of_side(boundary, self.run.header.side).len());
        let at_risk = |clause: &&Clause| {
            self.run.checks.iter().any(|check| check.clauses.iter().any(|risk| risk.id == clause.id))
        };
        self.clauses
            .iter()
            .filter(|clause| clause.side == self.run.header.side && clause.excluded.is_none())
            .filter(|clause| selected >= all || at_risk(clause))
            .collect()
    }

    /// How many clauses of each level were proved, and what the peer chose where it is free.
    fn proved(&self, out: &mut String) {
        use Standing;
        let standings: BTreeMap<String, Standing> = results::standings(&self.run.checks)
            .into_iter()
            .map(|(clause, standing)| (clause.id.0, standing))
            .collect();
        let clauses = self.in_question();
        for level in [Level::Must, Level::Should, Level::Open] {
            let of_level: Vec<&&Clause> = clauses.iter().filter(|clause| clause.level == level).collect();
            if of_level.is_empty() {
                continue;
            }
            let standing = |clause: &Clause| standings.get(&clause.id.0);
            let ids = |wanted: &dyn Fn(Option<&Standing>) -> bool| -> Vec<&str> {
                let those = of_level.iter().filter(|clause| wanted(standing(clause)));
                those.map(|clause| clause.id.0.as_str()).collect()
            };
            let unclaimed = ids(&|standing| matches!(standing, Some(Standing::NotClaimed)));
            let proved = ids(&|standing| matches!(standing, Some(Standing::Proved)));
            let total = of_level.len() - unclaimed.len();
            let word = level.word().to_uppercase();
            let tone = if proved.len() == total { Tone::Good } else { Tone::Head };
            let verb = if level == Level::Open { "seen within the allowed set" } else { "proved" };
            let _ = write!(
                out,
                "{}",
                self.printer.paint(tone, &format!("{word:6} {}/{total} {verb}", proved.len()))
            );
            if !unclaimed.is_empty() {
                let _ = write!(out, ", {} not claimed", unclaimed.len());
            }
            out.push('\n');
            self.ids(
                "broken",
                Tone::Bad,
                &ids(&|standing| matches!(standing, Some(Standing::Broken(_) | Standing::ExpectedBroken(_)))),
                out,
            );
            self.ids("flaky", Tone::Warn, &ids(&|standing| matches!(standing, Some(Standing::Flaky))), out);
            self.ids(
                "in part",
                Tone::Warn,
                &ids(&|standing| matches!(standing, Some(Standing::Partly(_)))),
                out,
            );
            self.ids(
                "undecided",
                Tone::Warn,
                &ids(&|standing| matches!(standing, None | Some(Standing::Undecided(_)))),
                out,
            );
        }
        self.choices("Choices kept, as pinned under [choices]:", true, out);
        self.choices(
            "Choices inferred from answers (pin them under [choices] to have them asserted):",
            false,
            out,
        );
        out.push('\n');
    }

    /// What the peer chose where it is free: as configured, or as it seems.
    fn choices(&self, title: &str, pinned: bool, out: &mut String) {
        let mut choices: BTreeMap<&str, Vec<BTreeSet<&str>>> = BTreeMap::new();
        let seen = self.run.checks.iter().filter_map(|check| check.choice.as_ref());
        for choice in seen.filter(|choice| choice.pinned == pinned) {
            // What fits several values is written `a|b`.
            choices.entry(&choice.key).or_default().push(choice.value.split('|').collect());
        }
        if choices.is_empty() {
            return;
        }
        let list: Vec<String> =
            choices.iter().map(|(key, seen)| format!("{key}={}", in_words(seen))).collect();
        let _ = writeln!(out, "{title}\n{}", wrap(&list.join("  "), "  "));
    }

    fn ids(&self, word: &str, tone: Tone, ids: &[&str], out: &mut String) {
        if ids.is_empty() {
            return;
        }
        let mut list = ids.iter().take(IDS_MAX).copied().collect::<Vec<_>>().join(" ");
        if ids.len() > IDS_MAX {
            let _ = write!(list, " … and {} more", ids.len() - IDS_MAX);
        }
        let _ = writeln!(out, "  {} {list}", self.printer.paint(tone, &format!("{word:9}")));
    }

    /// Whether a peer of the boundary may have a command of this name.
    fn is_command(&self, name: &str) -> bool {
        let commands = self.boundary.map(|boundary| boundary.commands()).unwrap_or_default();
        commands.iter().any(|(_, names)| names.contains(&name))
    }

    /// What checks counted, of all of them together.
    fn counted(&self, out: &mut String) {
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        for (what, count) in self.run.checks.iter().flat_map(|check| &check.counted) {
            *counted.entry(what).or_default() += count;
        }
        if counted.is_empty() {
            return;
        }
        self.title("Counted in these conversations", out);
        for (what, count) in counted {
            let _ = writeln!(out, "  {count:4} {}", one_line(what));
        }
        out.push('\n');
    }

    /// What was not decided, by reason.
    fn undecided(&self, out: &mut String) {
        let mut reasons: BTreeMap<(&'static str, Cow<'_, str>), Vec<&CheckResult>> = BTreeMap::new();
        for check in &self.run.checks {
            let Some(reason) = check.undecided() else { continue };
            reasons.entry(reason).or_default().push(check);
        }
        if reasons.is_empty() {
            return;
        }
        self.title("Not decided", out);
        for ((word, detail), checks) in &reasons {
            let (code, sentence) = match checks[0].of_others() {
                Verdict::Untestable(why) if !why.detail.is_empty() => (&*why.code, &*why.detail),
                _ => detail.split_once(": ").unwrap_or(("", detail)),
            };
            let sentence = match *word {
                "not_claimed" if self.is_command(detail) => format!("no command `{detail}` is configured"),
                "not_claimed" => format!("the feature `{detail}` is not claimed"),
                "masked" => format!("masked by {code}, {sentence}"),
                _ => sentence.to_owned(),
            };
            let hint = match code {
                Untestable::NO_ROLE => " (map it under [roles])",
                Untestable::ROLE_MISBEHAVES => {
                    " (mend its row under [roles]; `peerproof doctor` tries every role)"
                }
                _ => "",
            };
            let _ = writeln!(out, "  {:4} {}{hint}", checks.len(), one_line(&sentence));
        }
        if self.lacks_a_tool() {
            let sentence = "No tool is known that succeeds, so next to nothing could be checked: pass --aid AID \
                            --input JSON, or map roles under [roles] in peerproof.toml.";
            let _ = writeln!(out, "\n{}", wrap(sentence, "  "));
        } else {
            // Where more is known than that nothing was answered, it stands above.
            let unexplained = |check: &&CheckResult| matches!(&check.verdict, Verdict::Untestable(why) if why.detail == runner::NO_CANARY_ANSWERED);
            for command in self.run.checks.iter().filter(unexplained).filter_map(runner::refused_command) {
                let sentence = format!(
                    "`{command}` refuses the plain request that should succeed, so nothing is known about it: map \
                     `any` and `echo` to tools that work there, or leave the command out of the configuration."
                );
                let _ = writeln!(out, "\n{}", wrap(&sentence, "  "));
            }
        }
        out.push('\n');
    }

    /// The boundary knows a role `any`, and no tool of the peer plays it.
    fn lacks_a_tool(&self) -> bool {
        let known = self.boundary.is_some_and(|boundary| {
            boundary.config_keys().iter().any(|key| key.table == "roles" && key.name == "any")
        });
        let sided = self.run.header.side == peerproof_engine::clause::Side::Provider;
        known && sided && self.run.header.config["roles"].get("any").is_none()
    }

    /// Number of checks of each verdict.
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
        let _ = writeln!(out, "{}: {}", plural(self.run.checks.len(), "check"), parts.join(", "));
    }
}

/// The values of a choice that answers showed, each of which may fit several: those that fit all of them, joined by `or`; where
/// there is none, all, joined by `and`.
fn in_words(seen: &[BTreeSet<&str>]) -> String {
    let all: BTreeSet<&str> = seen.iter().flatten().copied().collect();
    let common: Vec<&str> =
        all.iter().copied().filter(|value| seen.iter().all(|values| values.contains(value))).collect();
    if common.is_empty() { all.into_iter().collect::<Vec<_>>().join(" and ") } else { common.join(" or ") }
}

fn failure(
    check: &CheckResult,
    clauses: &[Clause],
    beside: &Beside,
    tone: Tone,
    printer: &Printer,
    out: &mut String,
) {
    let paint = |tone, text: &str| printer.paint(tone, text);
    let word = match &check.verdict {
        Verdict::Flaky(times) => format!("FLAKY {times}"),
        Verdict::HarnessError(_) => "HARNESS ERROR".to_owned(),
        verdict => verdict.word().to_uppercase(),
    };
    let _ = writeln!(out, "{} {}", paint(tone, &word), paint(Tone::Name, &check.id));
    let _ = writeln!(out, "{}", wrap(&check.title, "  "));
    if let Verdict::HarnessError(error) = &check.verdict {
        let _ = writeln!(out, "{}", wrap(error, "  "));
    }
    if !check.conversation.is_empty() {
        out.push('\n');
        for line in &check.conversation {
            let _ = writeln!(out, "    {}", paint(Tone::Dim, line));
        }
    }
    for (finding, times) in distinct(&check.findings) {
        let clause = clauses.iter().find(|clause| clause.id == finding.clause);
        let level = clause.map_or("MUST".to_owned(), |clause| clause.level.word().to_uppercase());
        let source = clause.map_or("", |clause| clause.source.as_str());
        let _ = writeln!(
            out,
            "\n  {} {level}  {}",
            paint(Tone::Head, &finding.clause.0),
            paint(Tone::Dim, source)
        );
        if let Some(clause) = clause {
            let _ = writeln!(out, "{}", wrap(&clause.text, "    "));
        }
        let _ = writeln!(out, "    expected  {}", one_line(&finding.expected));
        let times = if times > 1 { format!(", {times} times") } else { String::new() };
        let _ = writeln!(out, "    got       {} ({}{times})", one_line(&finding.got), finding.reason);
    }
    if check.reproducer.is_some() && beside.folder.is_some() {
        out.push('\n');
    }
    again(check, beside, out);
    out.push('\n');
}

/// The commands that show a failure again.
fn again(check: &CheckResult, beside: &Beside, out: &mut String) {
    if let (Some(name), Some(folder)) = (&check.reproducer, &beside.folder) {
        let _ = writeln!(out, "  again     peerproof replay {folder}/{name}/transcript.ndjson");
        let _ = writeln!(out, "            sh {folder}/{name}/repro.sh");
    }
}

/// Findings that say the same, once each with their number.
pub(super) fn distinct(findings: &[Finding]) -> Vec<(&Finding, usize)> {
    let mut distinct: Vec<(&Finding, usize)> = Vec::new();
    for finding in findings {
        let is_same = |other: &Finding| {
            other.key() == finding.key() && (&other.expected, &other.got) == (&finding.expected, &finding.got)
        };
        match distinct.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, times)) => *times += 1,
            None => distinct.push((finding, 1)),
        }
    }
    distinct
}

/// A conversation on less than a screen: its beginning and its end.
pub(super) fn excerpt(conversation: &[String]) -> Vec<String> {
    let shown = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| shorten(line, SHOWN_CHARS).into_owned()).collect()
    };
    if conversation.len() <= LINES_MAX {
        return shown(conversation);
    }
    let (head, tail) = (LINES_MAX / 2, LINES_MAX - LINES_MAX / 2 - 1);
    let left_out = conversation.len() - head - tail;
    let mut lines = shown(&conversation[..head]);
    lines.push(format!("… {left_out} more lines"));
    lines.extend(shown(&conversation[conversation.len() - tail..]));
    lines
}

/// A number of things.
pub(super) fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The words of the counts, in their order.
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
        Verdict::Untestable(_) => "untestable",
        Verdict::Masked(_) => "masked",
        Verdict::NotClaimed(_) => "not claimed",
        Verdict::NotRun(_) => "not run",
    }
}

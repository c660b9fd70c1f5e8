//! Files that a process is given on its command line, and files put while it runs: shown by their difference from those
//! with which the peer shows no fault.

use std::collections::BTreeSet;

use super::excerpt::{difference, sent};
use super::{PASSES, ShownLine, WROTE};
use crate::data::finding::Finding;
use crate::data::payload::{Payload, shorten};
use crate::data::plan::{Fixture, PathKind, Plan, Session};
use crate::data::text::visible;
use crate::data::transcript::{EventKind, Transcript};

/// Maximum number of other inputs that an input is compared with.
const COMPARED_MAX: usize = 40;

/// File named by a placeholder of a command line.
pub(super) struct Input {
    placeholder: String,
    pub(super) text: String,
}

impl Input {
    /// Line that shows `text` as the content.
    pub(super) fn line(&self, text: &str, chars_max: usize) -> String {
        let text = shorten(text, chars_max).replace('\n', "⏎");
        format!("{WROTE}{}: {text}", self.placeholder)
    }
}

/// Fixture whose path is the whole value of a placeholder.
fn fixture_of<'p>(plan: &'p Plan, value: &str) -> Option<&'p Fixture> {
    let name = value.strip_prefix("{{")?.strip_suffix(".path}}")?;
    plan.fixtures.iter().find(|fixture| fixture.name() == name)
}

fn input(plan: &Plan, placeholder: &str, value: &str) -> Option<Input> {
    let text = match fixture_of(plan, value)? {
        Fixture::File { content, kept, .. } if !(*kept && content.0.is_empty()) => text_of(content),
        Fixture::Path { what, .. } => match what {
            PathKind::Missing => "no such file",
            PathKind::Directory => "a directory",
            PathKind::NotExecutable => "a file without execute permission",
            PathKind::Fifo => "a named pipe without a writer",
            PathKind::Socket => "a socket without a listener",
            PathKind::Copy { .. } => return None,
            PathKind::Link { to } => return input(plan, placeholder, to),
        }
        .to_owned(),
        _ => return None,
    };
    Some(Input { placeholder: placeholder.to_owned(), text })
}

/// Files that a process is given by its placeholders.
pub(super) fn of_session(plan: &Plan, session: usize) -> Vec<Input> {
    let placeholders = plan.sessions.get(session).into_iter().flat_map(|session| &session.placeholders);
    placeholders.filter_map(|(name, value)| input(plan, name, value)).collect()
}

/// Placeholders and variables of a process that name no such file.
pub(super) fn other_placeholders<'p>(
    plan: &'p Plan,
    session: &'p Session,
) -> impl Iterator<Item = (&'p String, &'p String)> {
    let all = session.placeholders.iter().chain(&session.env);
    all.filter(|(name, value)| input(plan, name, value).is_none())
}

/// Value of a placeholder with the plain names of fixtures: `logs/run0.log` for `{{logs.path}}/run0.log`.
pub(super) fn plain_names(value: &str) -> String {
    value.replace(".path}}", "").replace("{{", "").replace("}}", "")
}

fn text_of(content: &Payload) -> String {
    content.summary(usize::MAX)
}

/// Shows the inputs of process `session` by their difference from those of a process without a finding, and names that
/// process in a last line. `line` is the line of the file that the finding is about.
pub(super) fn by_difference(
    lines: &mut Vec<ShownLine>,
    transcript: &Transcript,
    session: usize,
    findings: &[Finding],
    (line, chars_max): (Option<usize>, usize),
) {
    let plan = &*transcript.plan;
    let faulty: BTreeSet<usize> = findings
        .iter()
        .filter_map(|finding| finding.step.and_then(|step| plan.steps.get(step)))
        .map(|step| step.session)
        .collect();
    let Some(command) = plan.sessions.get(session).map(|session| &session.command) else { return };
    let is_right = |other: &usize| !faulty.contains(other) && plan.sessions[*other].command == *command;
    let own = of_session(plan, session);
    let others = (0..plan.sessions.len()).filter(is_right).take(COMPARED_MAX);
    let differences = others.filter_map(|other| {
        let given = of_session(plan, other);
        // A process differs from a neighbour in one file.
        let pairs = own.iter().filter_map(|own| {
            let its = given.iter().find(|its| its.placeholder == own.placeholder)?;
            Some((own, difference(&own.text, &its.text, line, chars_max)?))
        });
        pairs.min_by_key(length).map(|pair| (other, pair))
    });
    let Some((other, (input, (text, its)))) = differences.min_by_key(|(_, pair)| length(pair)) else {
        return;
    };
    let name = format!("{WROTE}{}: ", input.placeholder);
    let is_it = |shown: &ShownLine| shown.session == session && shown.text.starts_with(&name);
    let Some(at) = lines.iter().position(is_it) else { return };
    let show = |text: String| shorten(&visible(&text), chars_max).into_owned();
    lines[at].text = show(input.line(&text, chars_max));
    let behind = lines.iter().rposition(|shown| shown.session == session).map_or(lines.len(), |at| at + 1);
    let its = its.replace('\n', "⏎");
    let text = show(format!("· process {}{PASSES}{}: {its}", other + 1, input.placeholder));
    lines.insert(behind, ShownLine { text, step: None, session, event: None });
}

fn length<T>((_, (a, b)): &(T, (String, String))) -> usize {
    a.chars().count() + b.chars().count()
}

/// Shows the files that the finding names, and that were put into a folder, by their difference from another one that no
/// finding names.
pub(super) fn puts_by_difference(
    lines: &mut Vec<ShownLine>,
    transcript: &Transcript,
    (names, all_names): (&BTreeSet<String>, &BTreeSet<String>),
    chars_max: usize,
) {
    let put = |line: &ShownLine| match &transcript.events.get(line.event?)?.kind {
        EventKind::FilePut { path, bytes, error: None } => {
            let path = String::from_utf8_lossy(&path.0).into_owned();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            Some((path, name, text_of(bytes)))
        }
        _ => None,
    };
    let puts: Vec<_> = lines.iter().enumerate().filter_map(|(at, line)| Some((at, put(line)?))).collect();
    let (about, others): (Vec<_>, Vec<_>) =
        puts.into_iter().partition(|(_, (_, name, _))| names.contains(name));
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut last = None;
    for (at, (path, name, text)) in &about {
        let right = others.iter().filter(|(_, (_, other, _))| !all_names.contains(other)).take(COMPARED_MAX);
        let differences = right.filter_map(|(_, (_, other, its))| {
            // Each file holds its own name.
            let its = its.replace(&stem(other), &stem(name));
            Some((other, difference(text, &its, None, chars_max)?))
        });
        let Some((other, (text, its))) = differences.min_by_key(length) else { continue };
        lines[*at].text = format!("{WROTE}{path} is created: {}", sent(&Payload::text(text), chars_max));
        last = Some((*at, format!("· {other}{PASSES}{}", its.replace('\n', "⏎"))));
    }
    if let Some((at, text)) = last.filter(|_| about.len() == 1) {
        let (step, session) = (lines[at].step, lines[at].session);
        let text = shorten(&visible(&text), chars_max).into_owned();
        lines.insert(at + 1, ShownLine { text, step, session, event: None });
    }
    for (at, ..) in &about {
        lines[*at].text = shorten(&visible(&lines[*at].text), chars_max).into_owned();
    }
}

//! Parts of a conversation that have nothing to do with a fault.

use std::collections::{BTreeMap, BTreeSet};

use super::excerpt::printable;
use super::lines::found_entry;
use super::{ShownLine, TITLE};
use crate::data::crash::error_line;
use crate::data::finding::Finding;
use crate::data::payload::shorten;
use crate::data::plan::{Act, Fixture, Plan};
use crate::data::text::visible;
use crate::data::transcript::{EventKind, Exit, Transcript};

/// Maximum number of lines of which all are shown.
const FEW_LINES: usize = 6;
/// Minimum length of a file name in a finding.
const NAME_BYTES_MIN: usize = 4;

/// Session of the step that a finding is about.
pub(super) fn session_of(plan: &Plan, finding: &Finding) -> Option<usize> {
    finding.step.and_then(|step| plan.steps.get(step)).map(|step| step.session)
}

/// Removes all processes but `session` and those that share a file, a folder or a value with it.
pub(super) fn without_other_processes(lines: &mut Vec<ShownLine>, plan: &Plan, session: usize) {
    let Some(own) = shared(plan, session) else { return };
    let is_needed =
        |other: usize| other == session || shared(plan, other).is_some_and(|other| !own.is_disjoint(&other));
    let needed: BTreeSet<usize> = (0..plan.sessions.len()).filter(|other| is_needed(*other)).collect();
    lines.retain(|line| needed.contains(&line.session));
    // The title of a process repeats only behind another process.
    let mut titled = None;
    lines.retain(|line| !line.text.starts_with(TITLE) || titled.replace(line.session) != Some(line.session));
}

/// Everything that processes may share: files and folders on the command line, and values captured from replies.
fn shared(plan: &Plan, session: usize) -> Option<BTreeSet<&str>> {
    let own = plan.sessions.get(session)?;
    let is_place = |value: &&String| {
        let places = plan
            .fixtures
            .iter()
            .filter(|fixture| matches!(fixture, Fixture::File { .. } | Fixture::Folder { .. }));
        places.into_iter().any(|fixture| value.contains(&format!("{{{{{}.path}}}}", fixture.name())))
    };
    let values = own.placeholders.values().chain(own.env.values()).chain(&own.arguments).filter(is_place);
    let steps = plan.steps.iter().filter(|step| step.session == session);
    let captured: BTreeSet<&str> =
        plan.steps.iter().filter_map(|step| Some(step.capture.as_ref()?.var.as_str())).collect();
    let used = steps.clone().flat_map(|step| match &step.act {
        Act::Send { payload, .. } => payload.variables().collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let used = used.filter(|name| captured.contains(name.split('~').next().unwrap_or(name)));
    let captures = steps.clone().filter_map(|step| Some(step.capture.as_ref()?.var.as_str()));
    let used = used.map(|name| name.split('~').next().unwrap_or(name));
    Some(values.map(String::as_str).chain(used).chain(captures).collect())
}

/// Names of files in the texts of a finding.
pub(super) fn names_in(finding: &Finding) -> BTreeSet<String> {
    paths_in(&format!("{} {}", finding.expected, finding.got))
        .map(|path| path.rsplit('/').next().unwrap_or(path).to_owned())
        .collect()
}

/// Words of a text that look like names or paths of files.
pub(super) fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c)));
    words.map(|word| word.trim_matches(['.', '/', '-'])).filter(|word| {
        let (stem, suffix) =
            word.rsplit('/').next().and_then(|name| name.rsplit_once('.')).unwrap_or_default();
        word.len() >= NAME_BYTES_MIN
            && !stem.is_empty()
            && !suffix.is_empty()
            && suffix.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// Number of the line of a file that a finding is about: `line 5`.
pub(super) fn line_number(finding: &Finding) -> Option<usize> {
    let number = |text: &str| {
        let (_, behind) = text.split_once("line ")?;
        let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|number| *number > 0)
    };
    number(&finding.got).or_else(|| number(&finding.expected))
}

/// Kind of an event for a reader.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Message, failure, or output that explains it.
    Main,
    /// Event that mostly says that nothing unusual happened.
    Side,
    /// Change of a file, a look, or a part of the life of another program.
    Beside,
}

fn weight(kind: &EventKind) -> Weight {
    match kind {
        EventKind::ActorEnded { exit: Exit::Code(0), .. }
        | EventKind::ActorStarted { .. }
        | EventKind::ActorSaw { .. }
        | EventKind::FolderChanged { .. }
        | EventKind::Looked { .. }
        | EventKind::FileHeld { .. }
        | EventKind::FilePut { error: None, .. }
        | EventKind::FileMoved { error: None, .. }
        | EventKind::Memory { .. }
        | EventKind::Processor { .. }
        | EventKind::Waited { .. } => Weight::Beside,
        EventKind::ActorEnded { .. }
        | EventKind::ActorReceived { .. }
        | EventKind::ActorWrote { .. }
        | EventKind::ListenerHit { .. }
        | EventKind::Exited { exit: Exit::Code(0) }
        | EventKind::StdinClosed
        | EventKind::Signalled { .. }
        | EventKind::Killed => Weight::Side,
        EventKind::Stderr { bytes, .. } if error_line(&String::from_utf8_lossy(&bytes.0)).is_none() => {
            Weight::Side
        }
        _ => Weight::Main,
    }
}

/// Shows the line and the entries that a finding names instead of whole logs and listings.
pub(super) fn only_named_entries(
    lines: &mut [ShownLine],
    transcript: &Transcript,
    (names, number): (&BTreeSet<String>, Option<usize>),
    chars_max: usize,
) {
    for line in lines {
        let Some(event) = line.event.and_then(|event| transcript.events.get(event)) else { continue };
        let EventKind::Looked { path, found, .. } = &event.kind else { continue };
        let place = printable(&path.0, chars_max);
        let is_named = |path: &str| names.iter().any(|name| path.contains(name.as_str()));
        let (named, others): (Vec<_>, Vec<_>) =
            found.iter().partition(|entry| is_named(&String::from_utf8_lossy(&entry.path.0)));
        let numbered = number.and_then(|number| {
            let [only] = found.as_slice() else { return None };
            let bytes = &only.bytes.as_ref()?.0;
            Some((
                number,
                bytes.split(|byte| *byte == b'\n').nth(number - 1).filter(|text| !text.is_empty())?,
            ))
        });
        let text = if let Some((number, text)) = numbered {
            format!("· {place}, line {number}: {}", printable(text, chars_max))
        } else if !named.is_empty() && !others.is_empty() {
            let named = named.into_iter().map(|entry| found_entry(entry, chars_max));
            let named = named.collect::<Vec<_>>().join(", ");
            format!("· at {place}: {named}, and {} more", others.len())
        } else {
            continue;
        };
        line.text = shorten(&visible(&text), chars_max).into_owned();
    }
}

/// Removes lines that have nothing to do with the finding from a conversation of more than a few lines, and counts them in
/// a last line. The line at `wrong` stays, and so do lines with one of `names`; of the messages behind a wrong answer, only
/// the next. Returns its new index.
pub(super) fn fold(
    lines: &mut Vec<ShownLine>,
    transcript: &Transcript,
    (finding, names): (&Finding, &BTreeSet<String>),
    mut wrong: Option<usize>,
) -> Option<usize> {
    let kind =
        |line: &ShownLine| line.event.and_then(|event| transcript.events.get(event)).map(|event| &event.kind);
    let is_named = |text: &str| names.iter().any(|name| text.contains(name.as_str()));
    // What a program does with a named file belongs to the file.
    let mut actors: BTreeMap<i32, bool> = BTreeMap::new();
    for line in &*lines {
        if let Some(pid) = kind(line).and_then(actor) {
            *actors.entry(pid).or_default() |= is_named(&line.text);
        }
    }
    let is_about = |line: &ShownLine| {
        let is_actor = kind(line).and_then(actor).is_some_and(|pid| actors[&pid]);
        is_named(&line.text) || is_actor && !matches!(kind(line), Some(EventKind::ActorSaw { .. }))
    };
    // What follows a silence shows it.
    let is_answer = !finding.is_of_time() && !finding.lacks_answer();
    let mut left_out = 0;
    for least in [Weight::Beside, Weight::Side] {
        if lines.len() <= FEW_LINES {
            break;
        }
        let (mut kept, mut place, mut is_signalled) = (Vec::with_capacity(lines.len()), None, false);
        for (at, line) in lines.drain(..).enumerate() {
            let is_wrong = wrong == Some(at);
            let is_behind = is_answer && line.is_message() && wrong.is_some_and(|wrong| at > wrong + 1);
            let weight = match kind(&line) {
                // The end that a signal of the harness causes.
                Some(EventKind::Exited { exit: Exit::Signal(_) }) if is_signalled => Weight::Side,
                _ if is_behind => Weight::Side,
                kind => kind.map_or(Weight::Main, weight),
            };
            is_signalled = matches!(kind(&line), Some(EventKind::Signalled { .. }));
            if is_wrong || is_about(&line) || weight < least {
                place = place.or(is_wrong.then_some(kept.len()));
                kept.push(line);
            } else {
                left_out += 1;
            }
        }
        (*lines, wrong) = (kept, place);
    }
    if left_out > 0 {
        let lines_word = if left_out == 1 { "line" } else { "lines" };
        let session = lines.last().map_or(0, |line| line.session);
        let text = format!("… {left_out} more {lines_word}");
        lines.push(ShownLine { text, step: None, session, event: None });
    }
    wrong
}

/// Process of another program that an event is about.
fn actor(kind: &EventKind) -> Option<i32> {
    match kind {
        EventKind::ActorStarted { pid, .. }
        | EventKind::ActorSaw { pid, .. }
        | EventKind::ActorWrote { pid, .. }
        | EventKind::ActorEnded { pid, .. } => Some(*pid),
        EventKind::ActorReceived { pid, .. } => *pid,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::payload::Payload;
    use crate::data::plan::{Session, Step};
    use crate::data::transcript::{Bytes, Event, FolderChange};

    #[test]
    fn names_are_files_and_not_numbers_or_tools() {
        let names = |got: &str| {
            names_in(&Finding::new("C", "wrong", "the job in failed/", got)).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(names("q1.json is in done/q2.json."), ["q1.json", "q2.json"]);
        assert_eq!(names("AID.A.v1 1.0.0 step 2.5 done/"), Vec::<String>::new());
        let of = |expected: &str, got: &str| line_number(&Finding::new("C", "wrong", expected, got));
        assert_eq!(
            (of("step 1 on line 5", "step 2"), of("a line", "line 0"), of("line 2", "line 3: x")),
            (Some(5), None, Some(3))
        );
    }

    #[test]
    fn a_process_stays_if_the_fault_may_need_it() {
        let session = |value: &str| Session {
            placeholders: [("log".to_owned(), value.to_owned())].into(),
            ..Session::default()
        };
        let folder = Fixture::Folder { name: "q".to_owned(), folders: Vec::new(), watched: false };
        let sessions = ["{{q.path}}", "{{q.path}}/b", "{{q.path}}", "no"].map(session).to_vec();
        let plan = Plan { fixtures: vec![folder], sessions, ..Plan::default() };
        let kept = |own: usize| {
            let line =
                |session: usize| ShownLine { text: "← x".to_owned(), step: None, session, event: None };
            let mut lines: Vec<ShownLine> = (0..4).map(line).collect();
            without_other_processes(&mut lines, &plan, own);
            lines.iter().map(|line| line.session).collect::<Vec<_>>()
        };
        assert_eq!((kept(0), kept(1), kept(3)), (vec![0, 2], vec![1], vec![3]));
    }

    #[test]
    fn only_lines_about_the_named_file_stay_in_a_long_conversation() {
        let change = |path: &str| EventKind::FolderChanged {
            folder: "queue".to_owned(),
            path: Bytes(path.as_bytes().to_vec()),
            change: FolderChange::Appeared,
            is_folder: false,
            pair: 0,
        };
        let sent = EventKind::Sent { step: 0, payload: Payload::text("x\n") };
        let paths = (0..9).map(|at| change(&format!("done/q{at}.json")));
        let events =
            [sent].into_iter().chain(paths).map(|kind| Event { at_us: 0, session: 0, kind }).collect();
        let plan = Plan {
            sessions: vec![Session::default()],
            steps: vec![Step::new(Act::Finish)],
            ..Plan::default()
        };
        let transcript = super::super::tests::transcript(plan, events);
        let finding = Finding::new("C", "not_failed", "failed/", "q4.json is in done/q4.json").at(0);
        let (lines, wrong) = super::super::conversation_about(&transcript, &finding, &[], 80, 40);
        assert_eq!(lines, ["→ x", "· queue: done/q4.json appears", "… 8 more lines"]);
        assert_eq!(wrong, Some(1));
    }
}

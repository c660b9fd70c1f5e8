//! Transcripts as short lines for people.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::data::crash::error_line;
use crate::data::finding::{Finding, Repair};
use crate::data::payload::shorten;
use crate::data::plan::Act;
use crate::data::text::{is_blank, visible};
use crate::data::transcript::{EventKind, Transcript};
use fold::session_of;
use lines::all;

mod calls;
mod excerpt;
mod fold;
mod inputs;
mod lines;

/// Maximum size of output that is searched or shown as one document.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;

/// Conversation of `transcript`, one line per message or event: `→` sent, `←` received, `·` other events, `✗` failures
/// of the process. Lines have at most `chars_max` characters, with control characters escaped. Beyond `lines_max` lines
/// the middle is omitted and counted.
pub fn conversation(transcript: &Transcript, chars_max: usize, lines_max: usize) -> Vec<String> {
    let lines = all(transcript, chars_max, lines_max).into_iter().map(|line| line.text).collect();
    abridge(lines, None, lines_max).0
}

/// Conversation as by [`conversation`], without canaries, openings, processes and events that have nothing to do with the
/// fault, and the index of the line that shows `finding`. `findings` are all findings of the transcript.
pub(crate) fn conversation_about(
    transcript: &Transcript,
    finding: &Finding,
    findings: &[Finding],
    chars_max: usize,
    lines_max: usize,
) -> (Vec<String>, Option<usize>) {
    let mut lines = all(transcript, chars_max, lines_max);
    join_documents(&mut lines, transcript, chars_max);
    let steps = &transcript.plan.steps;
    let session = session_of(&transcript.plan, finding);
    let is_canary =
        |step: Option<usize>| step.and_then(|step| steps.get(step)).is_some_and(|step| step.canary);
    // Keep a canary's answer if it shows that an earlier answer is missing.
    let is_missing = finding.is_of_time() || finding.lacks_answer();
    if !is_missing && !is_canary(finding.step) {
        let is_answered = |step: Option<usize>| {
            let mut answers = lines.iter().filter(|line| line.step == step && line.text.starts_with(CAME));
            answers.next().is_some_and(|line| !quotes(finding, line)) && answers.next().is_none()
        };
        let canaries: BTreeSet<usize> =
            (0..steps.len()).filter(|step| is_canary(Some(*step)) && is_answered(Some(*step))).collect();
        let is_canary =
            |line: &ShownLine| line.is_message() && line.step.is_some_and(|step| canaries.contains(&step));
        without_idle_processes(&mut lines, &is_canary, session);
        lines.retain(|line| !is_canary(line));
    }
    let opens = |step: Option<usize>| step.and_then(|step| steps.get(step)).is_some_and(|step| step.setup);
    let of_opening = |line: &ShownLine| line.is_message() && opens(line.step);
    if !opens(finding.step) && !lines.iter().any(|line| of_opening(line) && quotes(finding, line)) {
        without_openings(&mut lines, &of_opening);
    }
    let (mut names, number) = (fold::names_in(finding), fold::line_number(finding));
    let call = session
        .and_then(|session| calls::only_named_call(&mut lines, transcript, finding, (session, chars_max)));
    names.extend(call.iter().flat_map(|call| call.fixtures.clone()));
    if let Some(session) = session {
        fold::without_other_processes(&mut lines, &transcript.plan, session);
        inputs::by_difference(&mut lines, transcript, session, findings, (number, chars_max));
    }
    let all_names: BTreeSet<String> = findings.iter().flat_map(fold::names_in).collect();
    inputs::puts_by_difference(&mut lines, transcript, (&names, &all_names), chars_max);
    fold::only_named_entries(&mut lines, transcript, (&names, number), chars_max);
    let wrong = call
        .and_then(|call| call.result(&lines, transcript))
        .or_else(|| wrong_line(&lines, finding, session))
        .map(|wrong| quoting(transcript, &lines, finding, wrong));
    if let Some(wrong) = wrong
        && let Some(text) = around_place(transcript, &lines, finding, wrong, chars_max - CAME.len())
    {
        lines[wrong].text = shorten(&visible(&format!("{CAME}{text}")), chars_max).into_owned();
    }
    let wrong = fold::fold(&mut lines, transcript, (finding, &names), wrong);
    abridge(lines.into_iter().map(|line| line.text).collect(), wrong, lines_max)
}

/// Shows an object or array that is all output of a process, over several lines, in one.
fn join_documents(lines: &mut Vec<ShownLine>, transcript: &Transcript, chars_max: usize) {
    for session in 0..transcript.plan.sessions.len() {
        let is_output = |line: &ShownLine| line.session == session && line.text.starts_with(CAME);
        let Some(last) = lines.iter().rposition(is_output) else { continue };
        let is_spread = lines.iter().filter(|line| is_output(line)).count() > 1;
        let Some(document) = is_spread.then(|| whole_document(transcript, session)).flatten() else {
            continue;
        };
        lines[last].text = shorten(&visible(&format!("{CAME}{document}")), chars_max).into_owned();
        let mut at = 0;
        lines.retain(|line| {
            at += 1;
            at > last || !is_output(line)
        });
    }
}

/// All output of a process that answers at its end, if it is one object or array. Elsewhere a message is one line.
fn whole_document(transcript: &Transcript, session: usize) -> Option<String> {
    let awaits_lines = transcript.plan.steps.iter().any(|step| {
        step.session == session && matches!(step.act, Act::Send { await_frames, .. } if await_frames > 0)
    });
    if awaits_lines {
        return None;
    }
    let output = String::from_utf8(transcript.stdout(session)).ok()?;
    let is_one = output.len() <= DOCUMENT_BYTES_MAX && output.trim_start().starts_with(['{', '[']);
    is_one.then(|| excerpt::compact(&output)).flatten()
}

/// Removes the processes whose only messages are canaries, except for that of session `wrong` and those that failed or wrote
/// about an error. Without any other process, all stay.
fn without_idle_processes(
    lines: &mut Vec<ShownLine>,
    is_canary: &dyn Fn(&ShownLine) -> bool,
    wrong: Option<usize>,
) {
    let busy = |line: &&ShownLine| {
        line.is_message() && !is_canary(line)
            || line.text.starts_with(FAILED)
            || line.text.starts_with(STDERR) && error_line(&line.text).is_some()
            || wrong == Some(line.session)
    };
    let kept: BTreeSet<usize> = lines.iter().filter(busy).map(|line| line.session).collect();
    let idle: BTreeSet<usize> =
        lines.iter().filter(|line| is_canary(line)).map(|line| line.session).collect();
    if kept.is_empty() {
        return;
    }
    lines.retain(|line| kept.contains(&line.session) || !idle.contains(&line.session));
    // The title of a process repeats only behind another process.
    let mut titled = None;
    lines.retain(|line| !line.text.starts_with(TITLE) || titled.replace(line.session) != Some(line.session));
}

/// Replaces each run of lines that open a session by one line.
fn without_openings(lines: &mut Vec<ShownLine>, opens: &dyn Fn(&ShownLine) -> bool) {
    let mut kept: Vec<ShownLine> = Vec::new();
    for line in lines.drain(..) {
        if !opens(&line) {
            kept.push(line);
        } else if kept.last().is_none_or(|last| last.text != OPENED) {
            kept.push(ShownLine { text: OPENED.to_owned(), step: None, event: None, session: line.session });
        }
    }
    *lines = kept;
}

/// At most `lines_max` lines of a conversation: its beginning, its end and the lines around index `wrong`, with the new
/// index of that line. Omitted lines are counted.
pub fn abridge(lines: Vec<String>, wrong: Option<usize>, lines_max: usize) -> (Vec<String>, Option<usize>) {
    let count = lines.len();
    let lines_max = lines_max.max(LINES_LEAST);
    if count <= lines_max {
        return (lines, wrong);
    }
    let head = lines_max / 2;
    let tail = lines_max - head - 1;
    let about = wrong.map(|wrong| exchange(&lines, wrong, lines_max / 2 - 1));
    let is_kept =
        |line: usize| match about.as_ref().filter(|about| about.end > head && about.start < count - tail) {
            None => line < head || line >= count - tail,
            // Part of the beginning, the message with its answer, and part of the end.
            Some(about) => line < head / 2 || about.contains(&line) || line >= count - tail / 2,
        };
    let (mut kept, mut place, mut left_out) = (Vec::new(), None, 0);
    for (at, line) in lines.into_iter().enumerate() {
        if !is_kept(at) {
            left_out += stands_for(&line);
            continue;
        }
        if left_out > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            kept.push(format!("… {left_out} more {lines}"));
            left_out = 0;
        }
        if wrong == Some(at) {
            place = Some(kept.len());
        }
        kept.push(line);
    }
    (kept, place)
}

/// Lines of the exchange that ends at index `wrong`: the title of its process, the message sent last before, and standard
/// error. If these are more than `lines_max`, the lines just before and at `wrong`.
fn exchange(lines: &[String], wrong: usize, lines_max: usize) -> Range<usize> {
    let sent = last_sent(&lines[..wrong]).unwrap_or(wrong.saturating_sub(1));
    let has_title = sent > 0 && lines[sent - 1].starts_with(TITLE);
    let begin = if has_title { sent - 1 } else { sent };
    let has_errors = lines.get(wrong + 1).is_some_and(|line| line.starts_with(STDERR));
    let end = if has_errors { wrong + 2 } else { wrong + 1 };
    if end - begin <= lines_max { begin..end } else { wrong.saturating_sub(1)..wrong + 1 }
}

/// Index of the last sent message among the lines of a conversation.
pub fn last_sent(lines: &[String]) -> Option<usize> {
    lines.iter().rposition(|line| line.starts_with(WROTE))
}

/// True for a line about an input of which the peer makes no fault.
pub fn is_contrast(line: &str) -> bool {
    line.starts_with(EVENT) && line.contains(PASSES)
}

/// Index of the line of standard error that explains the line at `wrong`: the first of the same process at or behind it,
/// or else the last of the conversation.
pub fn explaining_errors(lines: &[String], wrong: Option<usize>) -> Option<usize> {
    let is_errors = |line: &String| line.starts_with(STDERR);
    let of_process = |wrong: usize| {
        let mut lines = lines[wrong..].iter().take_while(|line| !line.starts_with(TITLE));
        lines.position(is_errors).map(|at| wrong + at)
    };
    wrong.map_or_else(|| lines.iter().rposition(is_errors), of_process)
}

/// Number of lines that a line of a conversation stands for.
fn stands_for(line: &str) -> usize {
    let count = line.strip_prefix("… ").and_then(|line| line.split_once(" more line"));
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or(1)
}

/// Minimum number of lines: a beginning, an end and the count between them.
const LINES_LEAST: usize = 3;
/// Prefixes of lines: sent, received, failure of a process.
const EVENT: &str = "· ";
const WROTE: &str = "→ ";
const CAME: &str = "← ";
const FAILED: &str = "✗ ";
/// Prefixes of the title of a process and of its standard error.
const TITLE: &str = "— process ";
const STDERR: &str = "· stderr ";
/// Words between an input without a fault and its content.
const PASSES: &str = " passes with ";
/// Words about the start of another program.
const STARTED: &str = " started: ";
/// Words before a line of a log.
const NUMBERED: &str = ", line ";
/// Prefix of the head of an HTTP reply.
const HTTP: &str = "· HTTP ";
/// Line that replaces an opening.
const OPENED: &str = "· session opened";
/// Suffix of a line that is cut off.
const NO_LINE_FEED: &str = " (no line feed)";
/// Minimum length of a line that counts as quoted within a sentence.
const QUOTE_BYTES_MIN: usize = 4;
/// Number of characters by which an answer is compared with a finding.
const ALIKE_CHARS: usize = 120;

/// Line of a conversation.
struct ShownLine {
    text: String,
    /// Step of its message, or of the message before it in the session.
    step: Option<usize>,
    session: usize,
    /// Index of its event.
    event: Option<usize>,
}

impl ShownLine {
    fn is_message(&self) -> bool {
        self.text.starts_with(WROTE) || self.text.starts_with(CAME)
    }
}

/// Index of the line that shows a finding: the HTTP status or the answer it quotes, or else the failure, the last answer
/// or the message of its step.
fn wrong_line(lines: &[ShownLine], finding: &Finding, session: Option<usize>) -> Option<usize> {
    let bare = |text: &str| bare(text).chars().take(ALIKE_CHARS).collect::<String>();
    let got = bare(&finding.got);
    let is_text = |came: &str| !is_blank(came.strip_suffix(NO_LINE_FEED).unwrap_or(came));
    let is_quoted = |line: &ShownLine| {
        let came = line.text.strip_prefix(CAME).filter(|came| is_text(came)).map(bare);
        came.is_some_and(|came| got.starts_with(&came) || came.starts_with(&got))
    };
    let of_step = |line: &ShownLine| finding.step.is_none() || line.step == finding.step;
    let of_session = |line: &ShownLine| session.is_none() || session == Some(line.session);
    let last = |is_it: &dyn Fn(&ShownLine) -> bool| lines.iter().rposition(is_it);
    // Other lines do not stand for the missing answer.
    let is_answer = |line: &ShownLine| !finding.lacks_answer() && line.text.starts_with(CAME);
    let is_status = |line: &ShownLine| {
        let status = line.text.strip_prefix(HTTP).and_then(|head| head.get(..3));
        status.is_some_and(|status| finding.got.contains(&format!("status {status}")))
    };
    let path = fold::paths_in(&finding.got).max_by_key(|path| path.len());
    let is_place = |line: &ShownLine, path: &str| {
        of_session(line) && line.text.starts_with(EVENT) && line.text.contains(path)
    };
    let is_start = |line: &ShownLine| finding.expected.contains("start") && line.text.contains(STARTED);
    let is_last_quote = |line: &ShownLine| {
        let came = line.text.strip_prefix(CAME).filter(|came| !came.is_empty());
        came.is_some_and(|came| finding.got.ends_with(&format!(": \"{came}\"")))
    };
    // A program that prints nothing is judged by its log.
    let is_silent = !lines.iter().any(|line| of_step(line) && is_answer(line));
    last(&|line| of_step(line) && is_status(line))
        .or_else(|| last(&|line| of_step(line) && is_quoted(line)))
        .or_else(|| last(&is_quoted))
        .or_else(|| lines.iter().position(|line| of_step(line) && quotes(finding, line)))
        .or_else(|| lines.iter().position(is_last_quote))
        .or_else(|| last(&|line| of_session(line) && line.text.contains(NUMBERED)).filter(|_| is_silent))
        .or_else(|| path.and_then(|path| last(&|line| is_place(line, path) && is_start(line))))
        .or_else(|| path.and_then(|path| last(&|line| is_place(line, path))))
        .or_else(|| lines.iter().position(|line| of_step(line) && line.text.starts_with(FAILED)))
        // Output that belongs to no message is a finding about the end of its session.
        .or_else(|| lines.iter().position(|line| quotes(finding, line)))
        .or_else(|| last(&|line| of_step(line) && is_answer(line) && is_text(&line.text[CAME.len()..])))
        .or_else(|| last(&|line| of_step(line) && is_answer(line)))
        .or_else(|| last(&|line| of_step(line) && line.text.starts_with(WROTE)))
}

/// Index of the first answer of the same step that has the place of a finding or the value that it quotes, if the answer at
/// `wrong` has neither.
fn quoting(transcript: &Transcript, lines: &[ShownLine], finding: &Finding, wrong: usize) -> usize {
    let ShownLine { session, step, .. } = lines[wrong];
    let is_beside = |line: &ShownLine| line.session == session && [step, None].contains(&line.step);
    let own = set_place(finding);
    let whole = |at: usize| {
        let is_answer = is_beside(&lines[at]) && lines[at].text.starts_with(CAME);
        is_answer.then(|| whole_output(transcript, lines, at)).flatten()
    };
    let has_place =
        |at: &usize| whole(*at).is_some_and(|whole| excerpt::place(&whole, own, &finding.got).is_some());
    let has_value =
        |at: &usize| whole(*at).is_some_and(|whole| excerpt::place(&whole, None, &finding.got).is_some());
    if transcript.stdout(session).len() > DOCUMENT_BYTES_MAX || has_place(&wrong) {
        return wrong;
    }
    let first = |is_it: &dyn Fn(&usize) -> bool| (0..lines.len()).find(is_it);
    first(&has_value).or_else(|| first(&has_place)).unwrap_or(wrong)
}

/// Place whose value a finding wants to be another.
fn set_place(finding: &Finding) -> Option<&str> {
    match &finding.repair {
        Some(Repair::Set { at, .. }) => Some(at),
        _ => None,
    }
}

/// Part of a shortened answer that a finding is about. `None` if it has no place there.
fn around_place(
    transcript: &Transcript,
    lines: &[ShownLine],
    finding: &Finding,
    at: usize,
    room: usize,
) -> Option<String> {
    let whole = whole_output(transcript, lines, at).filter(|_| lines[at].text.contains('…'))?;
    let own = set_place(finding);
    let place = excerpt::place(&whole, own, &finding.got).or_else(|| own.map(str::to_owned))?;
    excerpt::around(&whole, &place, room)
}

/// Whole text of a received line, which may begin as others do.
fn whole_output(transcript: &Transcript, lines: &[ShownLine], at: usize) -> Option<String> {
    let ShownLine { text, session, event, .. } = &lines[at];
    if text.starts_with(CAME)
        && let Some(document) = whole_document(transcript, *session)
    {
        return Some(document);
    }
    let head = text.strip_prefix(CAME)?.split('…').next()?;
    let head = head.strip_suffix(NO_LINE_FEED).unwrap_or(head);
    let events = transcript.events.iter().take(event.map_or(usize::MAX, |event| event + 1));
    let bytes = events.filter(|event| event.session == *session).filter_map(|event| match &event.kind {
        EventKind::Received { bytes } => Some(bytes.0.as_slice()),
        _ => None,
    });
    let output = String::from_utf8(bytes.collect::<Vec<_>>().concat()).ok()?;
    let begins = |text: &str| visible(text).starts_with(head);
    let later = lines[at + 1..]
        .iter()
        .filter(|line| line.event == *event && line.text.strip_prefix(CAME).is_some_and(begins))
        .count();
    // A carriage return is shown, too.
    output.rsplit('\n').filter(|text| begins(text)).nth(later).map(str::to_owned)
}

/// True if a finding quotes a received line behind other words, as in `byte 0: expected a value: hello`.
fn quotes(finding: &Finding, line: &ShownLine) -> bool {
    let Some(came) = line.text.strip_prefix(CAME) else { return false };
    let whole = came.strip_suffix(NO_LINE_FEED).unwrap_or(came).trim_end_matches("\\r");
    let (head, got) = (bare(whole.split('…').next().unwrap_or(whole)), bare(&visible(&finding.got)));
    head.len() >= QUOTE_BYTES_MIN && got.contains(&head)
}

/// Text without white space, in which harness and peer may differ.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::payload::Payload;
    use crate::data::plan::{Chunking, Plan, Session, Step};
    use crate::data::transcript::{Bytes, Event};

    fn shown_line(text: &str, step: Option<usize>, session: usize) -> ShownLine {
        ShownLine { text: text.to_owned(), step, session, event: None }
    }

    #[test]
    fn a_process_that_only_answered_a_canary_is_left_out() {
        let of = |session: usize, texts: &[&str]| {
            let title = format!("{TITLE}{}: serve", session + 1);
            let texts = [title.as_str()].into_iter().chain(texts.iter().copied());
            let step = |text: &str| (!text.starts_with(TITLE)).then_some(session);
            texts.map(|text| shown_line(text, step(text), session)).collect::<Vec<_>>()
        };
        let ended = ["→ canary", "← {}", "· stdin closed", "· exit status 0"];
        let wrote = ["→ canary", "· exit status 0", "· stderr (9 bytes): TypeError: x"];
        let left = |all: Vec<Vec<ShownLine>>, wrong| {
            let mut lines: Vec<ShownLine> = all.into_iter().flatten().collect();
            without_idle_processes(&mut lines, &|line| line.text == "→ canary" || line.text == "← {}", wrong);
            let titles = lines.iter().filter(|line| line.text.starts_with(TITLE));
            titles.map(|line| line.session).collect::<Vec<_>>()
        };
        let other = || of(1, &["→ {}", "← []"]);
        assert_eq!(left(vec![of(0, &ended), other()], None), [1]);
        assert_eq!(left(vec![other(), of(0, &ended), other()], Some(1)), [1], "one title");
        assert_eq!(left(vec![of(0, &ended), other()], Some(0)), [0, 1], "the finding is about it");
        assert_eq!(left(vec![of(0, &wrote), other()], None), [0, 1], "it wrote an error");
        assert_eq!(left(vec![of(0, &["→ canary", "✗ SIGSEGV"]), other()], None), [0, 1]);
        assert_eq!(left(vec![of(0, &ended)], None), [0], "nothing else is shown");
        assert_eq!(left(vec![of(0, &["· stdin closed"]), other()], None), [0, 1], "without a canary");
    }

    #[test]
    fn a_document_over_several_lines_is_one_line_unless_messages_are_lines() {
        let shown = |await_frames: u32| {
            let payload = Payload::text("{}\n");
            let send = Act::Send { payload: payload.clone(), chunking: Chunking::Whole, await_frames };
            let came = EventKind::Received { bytes: Bytes(b"{\n \"a\": [1,\n  \"b  c\"]\n}\n".to_vec()) };
            let plan = Plan {
                sessions: vec![Session::default()],
                steps: vec![Step { session: 0, ..Step::new(send) }],
                ..Plan::default()
            };
            let transcript = transcript(plan, of_one_session([EventKind::Sent { step: 0, payload }, came]));
            let finding = Finding::new("C", "wrong", "1", "2").at(0);
            conversation_about(&transcript, &finding, &[], 60, 9)
        };
        assert_eq!(shown(0), (["→ {}", "← {\"a\":[1,\"b  c\"]}"].map(str::to_owned).to_vec(), Some(1)));
        assert_eq!(shown(1).0.len(), 5);
    }

    pub(super) fn transcript(plan: Plan, events: Vec<Event>) -> Transcript {
        Transcript {
            boundary: "toy".to_owned(),
            check: "progress".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events,
        }
    }

    fn of_one_session(events: impl IntoIterator<Item = EventKind>) -> Vec<Event> {
        events.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect()
    }

    #[test]
    fn the_message_that_holds_the_quoted_value_is_the_wrong_one() {
        let came = |text: &str| EventKind::Received { bytes: Bytes(text.as_bytes().to_vec()) };
        let progress = |token: &str| {
            let method = r#""jsonrpc":"2.0","method":"notifications/progress","params""#;
            came(&format!("{{{method}:{{\"progress\":1,\"progressToken\":{token}}}}}\r\n"))
        };
        let call = Payload::text("{\"id\":1}\n");
        let events = [
            EventKind::Sent { step: 0, payload: call },
            progress("7004"),
            progress("\"7004\""),
            came("{\"id\":1,\"result\":{\"content\":[]}}\r\n"),
        ];
        let plan = Plan { sessions: vec![Session::default()], ..Plan::default() };
        let transcript = transcript(plan, of_one_session(events));
        let finding = Finding::new("C", "unknown_token", "7004", "\"7004\"");
        let (lines, wrong) = conversation_about(&transcript, &finding, &[], 60, 9);
        assert_eq!(wrong.map(|at| lines[at].contains("\"7004\"")), Some(true), "{lines:?} {wrong:?}");
        let finding = finding.repaired_by(Repair::other("/params/progressToken".to_owned()));
        let (lines, wrong) = conversation_about(&transcript, &finding, &[], 60, 9);
        assert_eq!(wrong.map(|at| lines[at].contains("\"7004\"")), Some(true), "{lines:?} {wrong:?}");
    }

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|at| at.to_string()).collect()
    }

    #[test]
    fn a_long_conversation_keeps_its_ends_and_the_wrong_line() {
        assert_eq!(abridge(lines(5), Some(4), 5), (lines(5), Some(4)));
        let (kept, place) = abridge(lines(100), None, 5);
        assert_eq!(
            (kept, place),
            (["0", "1", "… 96 more lines", "98", "99"].map(str::to_owned).to_vec(), None)
        );
        let (kept, place) = abridge(lines(100), Some(50), 9);
        assert_eq!(kept[place.unwrap()], "50");
        assert_eq!(kept[place.unwrap() - 1], "49", "the message stands before its answer");
        assert!(kept.len() <= 9, "{kept:?}");
        let counted: usize = kept.iter().map(|line| stands_for(line)).sum();
        assert_eq!(counted, 100);
        let (kept_again, again) = abridge(lines(40), Some(20), 15);
        assert_eq!(
            (kept_again.len() <= 15, kept_again[again.unwrap()].as_str()),
            (true, "20"),
            "{kept_again:?}"
        );
        assert_eq!(kept_again.last().unwrap(), "39");
        let (kept_again, again) = abridge(lines(40), None, 15);
        let seen = (kept_again.len(), kept_again[7].as_str(), kept_again[14].as_str(), again);
        assert_eq!(seen, (15, "… 26 more lines", "39", None));
        assert_eq!(abridge(lines(15), Some(14), 15), (lines(15), Some(14)));
        assert_eq!(abridge(kept, place, 5).0.iter().map(|line| stands_for(line)).sum::<usize>(), 100);
    }

    #[test]
    fn standard_error_of_the_process_explains_the_wrong_line() {
        let lines =
            ["— process 1: a", "→ {}", "✗ exit status 2", "· stderr (3 bytes): bad", "— process 2: b"];
        let lines = [&lines[..], &["→ {}", "· stderr (1 bytes): x"]].concat();
        let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        assert_eq!(explaining_errors(&lines, Some(2)), Some(3));
        assert_eq!(explaining_errors(&lines, Some(5)), Some(6));
        assert_eq!(explaining_errors(&lines, None), Some(6));
        assert_eq!(explaining_errors(&lines[..5], Some(4)), None, "that of another process");
    }

    #[test]
    fn a_long_conversation_keeps_the_exchange_of_the_failure() {
        let exchange =
            ["— process 9: engine", "→ {}", "· stdin closed", "✗ exit status 4", "· stderr (3 bytes): bad"];
        let all: Vec<String> = [lines(30), exchange.map(str::to_owned).to_vec(), lines(30)].concat();
        let (kept, place) = abridge(all.clone(), Some(33), 15);
        assert_eq!((kept.len(), place), (13, Some(7)), "{kept:?}");
        assert_eq!(kept[4..9], exchange);
        assert_eq!(abridge(all, Some(33), 9).0.len(), 8, "an exchange that is too long loses its beginning");
    }

    #[test]
    fn the_wrong_line_is_the_answer_that_is_quoted_or_the_failure_of_its_step() {
        let shown = |step: usize, text: &str| shown_line(text, Some(step), 0);
        let lines = [
            shown(0, "→ {\"id\":1}"),
            shown(1, "→ {\"id\":2}"),
            shown(1, "← {\"id\": 1}"),
            shown(1, "← {\"id\": 2}"),
            shown(2, "→ {}"),
            shown(2, "✗ exit status 1"),
            shown(3, "→ []"),
        ];
        let wrong = |step: usize, got: &str| {
            wrong_line(&lines, &Finding::new("C", "wrong", "other", got).at(step), None)
        };
        assert_eq!(wrong(0, "{\"id\":1}"), Some(2), "an answer that came later");
        assert_eq!(wrong(2, "no reply, exit status 1"), Some(5));
        assert_eq!(wrong(1, "something"), Some(3));
        assert_eq!(wrong(3, "nothing"), Some(6));
    }

    #[test]
    fn a_line_that_a_sentence_quotes_is_the_wrong_one() {
        let lines = ["→ {}", "← {\"ok\": true}", "← hello  banner (no line feed)", "✗ exit status 1"];
        let lines = lines.map(|text| shown_line(text, Some(0), 0));
        let wrong = |got: &str| wrong_line(&lines, &Finding::new("C", "other_output", "other", got), None);
        assert_eq!(wrong("byte 0: expected a value, found `h`: hello banner"), Some(2));
        assert_eq!(wrong("exit status 1, {\"ok\":true}"), Some(1));
        assert_eq!(wrong("exit status 1"), Some(3));
        let at_end = Finding::new("C", "other_output", "other", "byte 0: `h`: hello banner").at(7);
        assert_eq!(wrong_line(&lines, &at_end, None), Some(2), "the step of the end shows no line");
    }

    #[test]
    fn the_wrong_line_of_a_wrong_status_is_the_head_of_the_reply() {
        let lines = ["→ {}", "· HTTP 202, 2 bytes", "← {}", "→ {", "· HTTP 500 on connection 4, 0 bytes"];
        let lines = lines.map(|text| shown_line(text, None, 0));
        let finding = Finding::new("C", "http_status", "400", "status 500");
        assert_eq!(wrong_line(&lines, &finding, None), Some(4));
    }
}

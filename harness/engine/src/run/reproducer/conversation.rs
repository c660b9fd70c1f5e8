//! Transcripts as short lines for people.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use crate::data::crash::error_line;
use crate::data::finding::Finding;
use crate::data::pace::written;
use crate::data::payload::{Payload, shorten};
use crate::data::text::visible;
use crate::data::transcript::{
    Awaited, EventKind, Exit, FolderChange, FoundKind, SightResult, StdinState, Transcript,
};

/// Conversation of `transcript`, one line per message or event: `→` sent, `←` received, `·` other events, `✗` failures
/// of the process. Lines have at most `chars_max` characters, with control characters escaped. Beyond `lines_max` lines
/// the middle is omitted and counted.
pub fn conversation(transcript: &Transcript, chars_max: usize, lines_max: usize) -> Vec<String> {
    let lines = all(transcript, chars_max, lines_max).into_iter().map(|line| line.text).collect();
    abridge(lines, None, lines_max).0
}

/// Conversation as by [`conversation`], without canaries and openings that have nothing to do with the fault, and the
/// index of the line that shows `finding`.
pub(crate) fn conversation_about(
    transcript: &Transcript,
    finding: &Finding,
    chars_max: usize,
    lines_max: usize,
) -> (Vec<String>, Option<usize>) {
    let mut lines = all(transcript, chars_max, lines_max);
    let steps = &transcript.plan.steps;
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
        let wrong = finding.step.and_then(|step| steps.get(step)).map(|step| step.session);
        without_idle_processes(&mut lines, &is_canary, wrong);
        lines.retain(|line| !is_canary(line));
    }
    let opens = |step: Option<usize>| step.and_then(|step| steps.get(step)).is_some_and(|step| step.setup);
    let of_opening = |line: &ShownLine| line.is_message() && opens(line.step);
    if !opens(finding.step) && !lines.iter().any(|line| of_opening(line) && quotes(finding, line)) {
        without_openings(&mut lines, &of_opening);
    }
    let wrong = wrong_line(&lines, finding);
    abridge(lines.into_iter().map(|line| line.text).collect(), wrong, lines_max)
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
            kept.push(ShownLine { text: OPENED.to_owned(), step: None, session: line.session });
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
const WROTE: &str = "→ ";
const CAME: &str = "← ";
const FAILED: &str = "✗ ";
/// Prefixes of the title of a process and of its standard error.
const TITLE: &str = "— process ";
const STDERR: &str = "· stderr ";
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
}

impl ShownLine {
    fn is_message(&self) -> bool {
        self.text.starts_with(WROTE) || self.text.starts_with(CAME)
    }
}

/// Index of the line that shows a finding: the HTTP status or the answer it quotes, or else the failure, the last answer
/// or the message of its step.
fn wrong_line(lines: &[ShownLine], finding: &Finding) -> Option<usize> {
    let bare = |text: &str| bare(text).chars().take(ALIKE_CHARS).collect::<String>();
    let got = bare(&finding.got);
    let is_quoted = |line: &ShownLine| {
        let came = line.text.strip_prefix(CAME).map(bare);
        came.is_some_and(|came| !came.is_empty() && (got.starts_with(&came) || came.starts_with(&got)))
    };
    let of_step = |line: &ShownLine| finding.step.is_none() || line.step == finding.step;
    let last = |is_it: &dyn Fn(&ShownLine) -> bool| lines.iter().rposition(is_it);
    // Other lines do not stand for the missing answer.
    let is_answer = |line: &ShownLine| !finding.lacks_answer() && line.text.starts_with(CAME);
    let is_status = |line: &ShownLine| {
        let status = line.text.strip_prefix(HTTP).and_then(|head| head.get(..3));
        status.is_some_and(|status| finding.got.contains(&format!("status {status}")))
    };
    last(&|line| of_step(line) && is_status(line))
        .or_else(|| last(&|line| of_step(line) && is_quoted(line)))
        .or_else(|| last(&is_quoted))
        .or_else(|| lines.iter().position(|line| of_step(line) && quotes(finding, line)))
        .or_else(|| lines.iter().position(|line| of_step(line) && line.text.starts_with(FAILED)))
        // Output that belongs to no message is a finding about the end of its session.
        .or_else(|| lines.iter().position(|line| quotes(finding, line)))
        .or_else(|| last(&|line| of_step(line) && is_answer(line)))
        .or_else(|| last(&|line| of_step(line) && line.text.starts_with(WROTE)))
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

fn all(transcript: &Transcript, chars_max: usize, lines_max: usize) -> Vec<ShownLine> {
    let mut lines = Vec::new();
    let sessions = transcript.plan.sessions.len();
    let mut open: Vec<Vec<u8>> = vec![Vec::new(); sessions];
    let mut steps: Vec<Option<usize>> = vec![None; sessions];
    let mut current = None;
    for event in &transcript.events {
        let Some(partial) = open.get_mut(event.session) else { continue };
        if let EventKind::Sent { step, .. } = &event.kind {
            steps[event.session] = Some(*step);
        }
        let step = steps[event.session];
        let mut said = Vec::new();
        match &event.kind {
            EventKind::Received { bytes } => {
                partial.extend_from_slice(&bytes.0);
                let count = memchr::memchr_iter(b'\n', partial).count();
                let mut begin = 0;
                for (index, end) in memchr::memchr_iter(b'\n', partial).enumerate() {
                    // An endless peer writes millions of lines.
                    if index < lines_max || index + lines_max >= count {
                        said.push(format!("{CAME}{}", printable(&partial[begin..end], chars_max)));
                    } else if index == lines_max {
                        said.push(format!("… {} more lines", count - 2 * lines_max));
                    }
                    begin = end + 1;
                }
                partial.drain(..begin);
            }
            kind => {
                // Show text without a line feed at the end of the peer's output.
                if ends_output(kind) && !partial.is_empty() {
                    let rest = std::mem::take(partial);
                    said.push(format!("{CAME}{}{NO_LINE_FEED}", printable(&rest, chars_max)));
                }
                said.extend(line(kind, chars_max));
            }
        }
        let has_head = || lines.last().is_some_and(|line: &ShownLine| line.text.starts_with(HTTP));
        let is_empty_body = || said == [CAME] && has_head();
        if said.is_empty() || is_empty_body() {
            continue;
        }
        if sessions > 1 && current != Some(event.session) {
            current = Some(event.session);
            let session = &transcript.plan.sessions[event.session];
            let mut title = format!("{TITLE}{}: {}", event.session + 1, session.command);
            for (name, value) in session.placeholders.iter().chain(&session.env) {
                title.push_str(&format!(" {name}={value}"));
            }
            lines.push(ShownLine { text: title, step: None, session: event.session });
        }
        lines.extend(said.into_iter().map(|text| ShownLine { text, step, session: event.session }));
    }
    for line in &mut lines {
        line.text = shorten(&visible(&line.text), chars_max).into_owned();
    }
    lines
}

fn ends_output(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::StdoutClosed
            | EventKind::StdoutOverflow { .. }
            | EventKind::Exited { .. }
            | EventKind::Killed
            | EventKind::DeadlinePassed { .. }
    )
}

fn line(kind: &EventKind, chars_max: usize) -> Option<String> {
    Some(match kind {
        EventKind::Started { .. }
        | EventKind::ClientStarted { .. }
        | EventKind::Clock { .. }
        | EventKind::StdoutClosed
        | EventKind::Received { .. } => {
            return None;
        }
        EventKind::StartFailed { error } => format!("✗ not started: {error}"),
        EventKind::Sent { payload, .. } if payload.0.is_empty() => return None,
        EventKind::Sent { payload, .. } => format!("→ {}", sent(payload, chars_max)),
        EventKind::Answered { bytes } => {
            format!("→ {} (answer to the peer)", sent(&Payload::from_bytes(&bytes.0), chars_max))
        }
        EventKind::HttpReply { status, content_type, body_bytes, connection, .. } => {
            let on = if *connection == 0 { String::new() } else { format!(" on connection {connection}") };
            let of = content_type.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
            format!("{HTTP}{status}{on}, {body_bytes} bytes{of}")
        }
        EventKind::HttpFailed { reason, .. } => format!("✗ no HTTP reply: {reason}"),
        EventKind::StdinClosed => "· stdin closed".to_owned(),
        EventKind::StdinBroken { unwritten_bytes } => {
            format!("✗ stdin closed by the peer, {unwritten_bytes} bytes not read")
        }
        EventKind::StdoutOverflow { lines_max: Some(lines), .. } => {
            format!("✗ more than {lines} lines of output, killed")
        }
        EventKind::StdoutOverflow { bytes_max, .. } => {
            format!("✗ more than {bytes_max} bytes of output, killed")
        }
        EventKind::Stderr { bytes, total_bytes } => {
            if *total_bytes == 0 {
                return None;
            }
            format!("{STDERR}({total_bytes} bytes): {}", shorten(&gist(&bytes.0), chars_max))
        }
        EventKind::ClientStderr { bytes, total_bytes } => {
            format!("· stderr of the client ({total_bytes} bytes): {}", shorten(&gist(&bytes.0), chars_max))
        }
        EventKind::Signalled { signal } => format!("· SIG{signal} sent"),
        EventKind::Exited { exit: Exit::Code(0) } => "· exit status 0".to_owned(),
        EventKind::Exited { exit } => format!("✗ {exit}"),
        EventKind::DeadlinePassed { waited_ms: 0, .. } => "✗ no reply, and the peer is idle".to_owned(),
        EventKind::DeadlinePassed { awaited, waited_ms, .. } => {
            let waited = written(Duration::from_millis(*waited_ms));
            match awaited {
                Awaited::Frames => format!("✗ no reply within {waited}"),
                Awaited::Writing => format!("✗ does not read its input within {waited}"),
                Awaited::Exit => format!("✗ still running after {waited}"),
                Awaited::Effect => format!("✗ not seen within {waited}"),
            }
        }
        EventKind::Killed => "· killed".to_owned(),
        EventKind::Waited { ms } => format!("· {ms} ms pass"),
        EventKind::Processor { label, used_ms } => format!("· processor time ({label}): {used_ms} ms"),
        EventKind::Memory { label, hwm_bytes } => format!("· memory ({label}): {} KiB", hwm_bytes / 1024),
        EventKind::LeakedProcess { pid, command } => format!("✗ process {pid} ({command}) left behind"),
        EventKind::LeftFile { path } => format!("✗ file {path} left behind"),
        EventKind::ListenerHit { listener, head, .. } => {
            let text = String::from_utf8_lossy(&head.0);
            format!("· connection to {listener}: {}", text.lines().next().unwrap_or_default())
        }
        EventKind::ListenerReplied { whole: true, .. } => return None,
        EventKind::ListenerReplied { listener, bytes, .. } => {
            format!("· {bytes} bytes of the reply of {listener} read")
        }
        EventKind::ClientDeaf { unwritten_bytes } => {
            format!("✗ the client stopped reading, {unwritten_bytes} bytes not read")
        }
        EventKind::ClientExited { exit } => format!("· client: {exit}"),
        EventKind::RecordingStopped { why } => format!("✗ recording stopped: {why}"),
        EventKind::ActorStarted { actor, argv, .. } => format!("· {actor} started: {}", argv.join(" ")),
        EventKind::ActorReceived { actor, bytes, .. } => {
            format!("· {actor} read {}", Payload::from_bytes(&bytes.0).summary(chars_max))
        }
        EventKind::ActorSaw { actor, seen, .. } => format!("· {actor} saw {}", sight(seen, chars_max)),
        EventKind::ActorWrote { bytes, whole: true, .. } if bytes.0.is_empty() => return None,
        EventKind::ActorWrote { actor, bytes, whole, .. } => {
            let cut = if *whole { "" } else { ", and not all of it was read" };
            format!("· {actor} wrote {}{cut}", sent(bytes, chars_max))
        }
        EventKind::ActorEnded { actor, exit, .. } => format!("· {actor}: {exit}"),
        EventKind::FileHeld { .. }
        | EventKind::Looked { .. }
        | EventKind::FilePut { .. }
        | EventKind::FileMoved { .. }
        | EventKind::FolderChanged { .. } => return of_file(kind, chars_max),
        EventKind::WatchOverflow => "✗ the system dropped events of the watched folders".to_owned(),
        EventKind::ActorAlive { actor, label, role } => format!("✗ {actor} ({role}) still alive at {label}"),
        EventKind::ActorFileStays { actor, label, path } => {
            format!("✗ {path}, given to {actor}, still exists at {label}")
        }
    })
}

/// Line about files; `None` for any other event.
fn of_file(kind: &EventKind, chars_max: usize) -> Option<String> {
    Some(match kind {
        EventKind::FileHeld { file, bytes } => {
            format!("· {file} holds {}", sent(&Payload::from_bytes(&bytes.0), chars_max))
        }
        EventKind::Looked { path, found, .. } if found.is_empty() => {
            format!("· nothing at {}", printable(&path.0, chars_max))
        }
        EventKind::Looked { path, found, cut, .. } => {
            let what = found.iter().map(|one| match (one.kind, &one.bytes) {
                (FoundKind::File, Some(bytes)) => {
                    format!("{} {}", printable(&one.path.0, chars_max), printable(&bytes.0, chars_max))
                }
                (FoundKind::Folder, _) => format!("{}/", printable(&one.path.0, chars_max)),
                _ => printable(&one.path.0, chars_max),
            });
            let what = what.collect::<Vec<_>>().join(", ");
            let more = if *cut { ", and more" } else { "" };
            format!("· at {}: {}{more}", printable(&path.0, chars_max), what.trim_start_matches("/, "))
        }
        EventKind::FilePut { path, error: Some(error), .. } => {
            format!("✗ cannot create {}: {error}", printable(&path.0, chars_max))
        }
        EventKind::FilePut { path, bytes, .. } => {
            format!("→ {} is created: {}", printable(&path.0, chars_max), sent(bytes, chars_max))
        }
        EventKind::FileMoved { from, error: Some(error), .. } => {
            format!("✗ cannot move {}: {error}", printable(&from.0, chars_max))
        }
        EventKind::FileMoved { from, to, .. } => {
            format!("→ {} is moved to {}", printable(&from.0, chars_max), printable(&to.0, chars_max))
        }
        EventKind::FolderChanged { folder, path, change, .. } => {
            let change = match change {
                FolderChange::Appeared => "appears",
                FolderChange::Written => "is written to",
                FolderChange::Vanished => "vanishes",
                FolderChange::MovedIn => "is moved in",
                FolderChange::MovedOut => "is moved away",
            };
            format!("· {folder}/{} {change}", printable(&path.0, chars_max))
        }
        _ => return None,
    })
}

/// Most informative line of standard error: the first that names an error, or else the last.
fn gist(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = || text.lines().rev().find(|line| !line.trim().is_empty());
    error_line(&text).or_else(last).unwrap_or_default().trim().to_owned()
}

/// Describes an actor's look in one phrase.
fn sight(seen: &SightResult, chars_max: usize) -> String {
    match seen {
        SightResult::Payload { bytes, mode, is_own, .. } => {
            let whose = if *is_own { "" } else { ", not its own" };
            format!("a file (mode {mode:04o}{whose}): {}", printable(&bytes.0, chars_max))
        }
        SightResult::NoPayload { path, error } => format!("no file at {path:?}: {error}"),
        SightResult::Environment { bytes } => {
            // Values may be long, and secret.
            let variables = bytes.0.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
            let names = variables.map(|variable| {
                String::from_utf8_lossy(variable.split(|byte| *byte == b'=').next().unwrap_or_default())
            });
            format!("the variables {}", shorten(&names.collect::<Vec<_>>().join(" "), chars_max))
        }
        SightResult::Limits { .. } => "its resource limits".to_owned(),
        SightResult::Stdin { state, bytes } => {
            let state = match state {
                StdinState::Ended => "ended",
                StdinState::Open => "open",
                StdinState::Unreadable => "unreadable",
            };
            let after = match bytes.0.is_empty() {
                true => String::new(),
                false => format!(" after {}", printable(&bytes.0, chars_max)),
            };
            format!("standard input {state}{after}")
        }
        SightResult::Status { .. } => "its signals and groups".to_owned(),
    }
}

/// Text of a payload; line feeds become `⏎`.
fn sent(payload: &Payload, chars_max: usize) -> String {
    payload.summary(chars_max).replace('\n', "⏎")
}

fn printable(bytes: &[u8], chars_max: usize) -> String {
    Payload::from_bytes(bytes).summary(chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_line(text: &str, step: Option<usize>, session: usize) -> ShownLine {
        ShownLine { text: text.to_owned(), step, session }
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
        let wrong =
            |step: usize, got: &str| wrong_line(&lines, &Finding::new("C", "wrong", "other", got).at(step));
        assert_eq!(wrong(0, "{\"id\":1}"), Some(2), "an answer that came later");
        assert_eq!(wrong(2, "no reply, exit status 1"), Some(5));
        assert_eq!(wrong(1, "something"), Some(3));
        assert_eq!(wrong(3, "nothing"), Some(6));
    }

    #[test]
    fn a_line_that_a_sentence_quotes_is_the_wrong_one() {
        let lines = ["→ {}", "← {\"ok\": true}", "← hello  banner (no line feed)", "✗ exit status 1"];
        let lines = lines.map(|text| shown_line(text, Some(0), 0));
        let wrong = |got: &str| wrong_line(&lines, &Finding::new("C", "other_output", "other", got));
        assert_eq!(wrong("byte 0: expected a value, found `h`: hello banner"), Some(2));
        assert_eq!(wrong("exit status 1, {\"ok\":true}"), Some(1));
        assert_eq!(wrong("exit status 1"), Some(3));
        let at_end = Finding::new("C", "other_output", "other", "byte 0: `h`: hello banner").at(7);
        assert_eq!(wrong_line(&lines, &at_end), Some(2), "the step of the end shows no line");
    }

    #[test]
    fn the_wrong_line_of_a_wrong_status_is_the_head_of_the_reply() {
        let lines = ["→ {}", "· HTTP 202, 2 bytes", "← {}", "→ {", "· HTTP 500 on connection 4, 0 bytes"];
        let lines = lines.map(|text| shown_line(text, None, 0));
        let finding = Finding::new("C", "http_status", "400", "status 500");
        assert_eq!(wrong_line(&lines, &finding), Some(4));
    }

    #[test]
    fn standard_error_is_told_by_its_first_error() {
        let python = "Traceback (most recent call last):\n  File \"a.py\"\nTypeError: no\n";
        assert_eq!(gist(python.as_bytes()), "TypeError: no");
        let node = "/a.js:1\n    throw x\nTypeError: no\n    at a.js:1\n\nNode.js v18\n";
        assert_eq!(gist(node.as_bytes()), "TypeError: no");
        let npm = "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run\n";
        assert_eq!(gist(npm.as_bytes()), "npm error 404 Not Found");
        assert_eq!(gist(b"a\nb\n\n"), "b");
        assert_eq!(gist(b""), "");
    }
}

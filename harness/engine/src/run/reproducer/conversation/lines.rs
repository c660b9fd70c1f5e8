//! Events of a transcript as short lines.

use std::borrow::Cow;
use std::time::Duration;

use super::excerpt::{printable, sent};
use super::inputs::{self, plain_names};
use super::{CAME, HTTP, NO_LINE_FEED, STDERR, ShownLine, TITLE};
use crate::data::crash::error_line;
use crate::data::pace::written;
use crate::data::payload::{Payload, shorten};
use crate::data::plan::PUT_PREFIX;
use crate::data::text::visible;
use crate::data::transcript::{
    Awaited, Event, EventKind, Exit, FolderChange, FoundEntry, FoundKind, SightResult, StdinState, Transcript,
};

/// All lines of a transcript, with the titles of its processes if there are several.
pub(super) fn all(transcript: &Transcript, chars_max: usize, lines_max: usize) -> Vec<ShownLine> {
    let mut lines = Vec::new();
    let sessions = transcript.plan.sessions.len();
    let mut open: Vec<Vec<u8>> = vec![Vec::new(); sessions];
    // Files on its command line are the input of a process that is sent nothing.
    let first_of = |session: usize| transcript.plan.steps.iter().position(|step| step.session == session);
    let mut steps: Vec<Option<usize>> = (0..sessions).map(first_of).collect();
    let mut current = None;
    for (index, event) in whole_lines(transcript) {
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
            EventKind::FolderChanged { .. } => said.extend(change(transcript, index)),
            EventKind::Started { .. } => {
                let given = inputs::of_session(&transcript.plan, event.session).into_iter();
                said.extend(given.map(|input| input.line(&input.text, chars_max)));
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
            for (name, value) in inputs::other_placeholders(&transcript.plan, session) {
                title.push_str(&format!(" {name}={}", plain_names(value)));
            }
            lines.push(ShownLine { text: title, step: None, session: event.session, event: None });
        }
        let shown = |text| ShownLine { text, step, session: event.session, event: Some(index) };
        lines.extend(said.into_iter().map(shown));
    }
    for line in &mut lines {
        line.text = shorten(&visible(&line.text), chars_max).into_owned();
    }
    lines
}

/// Events of a transcript with their indices. A recorded client may write a line in pieces: these are one event here.
fn whole_lines(transcript: &Transcript) -> Vec<(usize, Cow<'_, Event>)> {
    let mut events: Vec<(usize, Cow<'_, Event>)> = Vec::new();
    for (index, event) in transcript.events.iter().enumerate() {
        if transcript.plan.recorded
            && let EventKind::Sent { step, payload } = &event.kind
            && let Some((_, last)) = events.last_mut()
            && matches!(&last.kind, EventKind::Sent { payload, .. } if !payload.ends_line())
            && let EventKind::Sent { step: step_of_line, payload: line } = &mut last.to_mut().kind
        {
            *step_of_line = *step;
            line.0.extend(payload.0.iter().cloned());
        } else {
            events.push((index, Cow::Borrowed(event)));
        }
    }
    events
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
        EventKind::ActorStarted { actor, argv, .. } => {
            let argv = argv.iter().map(|word| without_folders(word)).collect::<Vec<_>>();
            format!("· {actor} started: {}", argv.join(" "))
        }
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
        | EventKind::FileMoved { .. } => return of_file(kind, chars_max),
        EventKind::FolderChanged { .. } => return None,
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
            let what = found.iter().map(|entry| found_entry(entry, chars_max)).collect::<Vec<_>>().join(", ");
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
        _ => return None,
    })
}

/// Line about the change of a watched folder. Both ends of a move are one line. The temporary files of the harness have
/// none, because the line of the file that it puts says all.
fn change(transcript: &Transcript, index: usize) -> Option<String> {
    let change_at = |index: usize| match &transcript.events.get(index)?.kind {
        EventKind::FolderChanged { folder, path, change, pair, .. } => {
            Some((folder, String::from_utf8_lossy(&path.0), *change, *pair))
        }
        _ => None,
    };
    let (folder, path, change, pair) = change_at(index)?;
    let of_move = |index: Option<usize>, wanted: FolderChange| {
        let (_, path, change, other) = change_at(index?)?;
        (pair != 0 && other == pair && change == wanted).then_some(path)
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let text = match change {
        _ if name(&path).starts_with(PUT_PREFIX) => return None,
        FolderChange::MovedOut if of_move(Some(index + 1), FolderChange::MovedIn).is_some() => return None,
        FolderChange::MovedIn => match of_move(index.checked_sub(1), FolderChange::MovedOut) {
            Some(from) if name(&from).starts_with(PUT_PREFIX) => return None,
            Some(from) => {
                let to = path.strip_suffix(&name(&from)).filter(|to| to.ends_with('/')).unwrap_or(&path);
                format!("{from} moves to {to}")
            }
            None => format!("{path} is moved in"),
        },
        FolderChange::MovedOut => format!("{path} is moved away"),
        FolderChange::Appeared => format!("{path} appears"),
        FolderChange::Written => format!("{path} is written to"),
        FolderChange::Vanished => format!("{path} vanishes"),
    };
    Some(format!("· {folder}: {text}"))
}

/// Entry of a folder with its content.
pub(super) fn found_entry(entry: &FoundEntry, chars_max: usize) -> String {
    let path = printable(&entry.path.0, chars_max);
    match (entry.kind, &entry.bytes) {
        (FoundKind::File, Some(bytes)) => format!("{path} {}", printable(&bytes.0, chars_max)),
        (FoundKind::Folder, _) => format!("{path}/"),
        _ => path,
    }
}

/// Absolute path without the folders above its last one.
fn without_folders(word: &str) -> String {
    let mut parts = word.rsplitn(3, '/');
    match (word.starts_with('/'), parts.next(), parts.next(), parts.next()) {
        (true, Some(name), Some(folder), Some(above)) if !above.is_empty() => format!("…/{folder}/{name}"),
        _ => word.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::plan::{Plan, Session};

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

    #[test]
    fn a_line_that_a_recorded_client_wrote_in_pieces_is_shown_once() {
        let sent = |step: usize, text: &str| Event {
            at_us: 0,
            session: 0,
            kind: EventKind::Sent { step, payload: Payload::text(text) },
        };
        let mut plan = Plan { sessions: vec![Session::default()], recorded: true, ..Plan::default() };
        let events = vec![sent(0, "{"), sent(1, "}"), sent(2, "\n"), sent(3, "[]\n"), sent(4, "\n")];
        let mut transcript = super::super::tests::transcript(plan.clone(), events);
        assert_eq!(super::super::conversation(&transcript, 80, 9), ["→ {}", "→ []", "→ "]);
        assert_eq!(all(&transcript, 80, 9)[0].step, Some(2), "the step that ended the line");
        plan.recorded = false;
        transcript.plan = Arc::new(plan);
        assert_eq!(super::super::conversation(&transcript, 80, 9).len(), 5, "a check means its pieces");
    }
}

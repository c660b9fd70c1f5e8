//! A transcript as short lines for humans.

use std::time::Duration;

use crate::pace::written;
use crate::payload::{Payload, shorten};
use crate::text::visible;
use crate::transcript::{Awaited, Exit, FolderChange, FoundKind, Kind, Seen, StdinState, Transcript};

/// The conversation of `transcript`, one line a message or event: `→` what was written, `←` what came, `·` what else
/// happened, `✗` what went wrong with the process. No line has more than `chars_max` characters, control characters
/// are escaped; past `lines_max` lines the middle is left out and counted.
pub fn conversation(transcript: &Transcript, chars_max: usize, lines_max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let sessions = transcript.plan.sessions.len();
    let mut open: Vec<Vec<u8>> = vec![Vec::new(); sessions];
    let mut current = None;
    let mut untold = 0;
    for event in &transcript.events {
        let Some(partial) = open.get_mut(event.session) else { continue };
        let mut said = Vec::new();
        match &event.kind {
            Kind::Received { bytes } => {
                partial.extend_from_slice(&bytes.0);
                let count = memchr::memchr_iter(b'\n', partial).count();
                let mut begin = 0;
                for (index, end) in memchr::memchr_iter(b'\n', partial).enumerate() {
                    // An endless peer writes millions of lines; those that are left out below need no text.
                    if index < lines_max || index + lines_max >= count {
                        said.push(format!("← {}", printable(&partial[begin..end], chars_max)));
                    } else {
                        untold += 1;
                    }
                    begin = end + 1;
                }
                partial.drain(..begin);
            }
            kind => {
                // What came without a line feed is shown where the peer's output ends.
                if ends_output(kind) && !partial.is_empty() {
                    let rest = std::mem::take(partial);
                    said.push(format!("← {} (no line feed)", printable(&rest, chars_max)));
                }
                said.extend(line(kind, chars_max));
            }
        }
        if said.is_empty() {
            continue;
        }
        if sessions > 1 && current != Some(event.session) {
            current = Some(event.session);
            let session = &transcript.plan.sessions[event.session];
            let mut title = format!("— process {}: {}", event.session + 1, session.command);
            for (name, value) in session.placeholders.iter().chain(&session.env) {
                title.push_str(&format!(" {name}={value}"));
            }
            lines.push(title);
        }
        lines.extend(said);
    }
    let mut lines: Vec<String> =
        lines.into_iter().map(|line| shorten(&visible(&line), chars_max).into_owned()).collect();
    if lines.len() > lines_max.max(3) {
        let head = lines_max / 2;
        let tail = lines_max.saturating_sub(head + 1).max(1);
        let left_out = lines.len() - head - tail + untold;
        lines.splice(head..lines.len() - tail, [format!("… {left_out} more lines")]);
    }
    lines
}

fn ends_output(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::StdoutClosed
            | Kind::StdoutOverflow { .. }
            | Kind::Exited { .. }
            | Kind::Killed
            | Kind::DeadlinePassed { .. }
    )
}

fn line(kind: &Kind, chars_max: usize) -> Option<String> {
    Some(match kind {
        Kind::Started { .. }
        | Kind::ClientStarted { .. }
        | Kind::Clock { .. }
        | Kind::StdoutClosed
        | Kind::Received { .. } => {
            return None;
        }
        Kind::StartFailed { error } => format!("✗ not started: {error}"),
        Kind::Sent { payload, .. } if payload.0.is_empty() => return None,
        Kind::Sent { payload, .. } => format!("→ {}", sent(payload, chars_max)),
        Kind::HttpReply { status, content_type, body_bytes, connection, .. } => {
            let on = if *connection == 0 { String::new() } else { format!(" on connection {connection}") };
            let of = content_type.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
            format!("· HTTP {status}{on}, {body_bytes} bytes{of}")
        }
        Kind::HttpFailed { reason, .. } => format!("✗ no HTTP reply: {reason}"),
        Kind::StdinClosed => "· stdin closed".to_owned(),
        Kind::StdinBroken { unwritten_bytes } => {
            format!("✗ stdin closed by the peer, {unwritten_bytes} bytes not taken")
        }
        Kind::StdoutOverflow { lines_max: Some(lines), .. } => {
            format!("✗ more than {lines} lines of output, killed")
        }
        Kind::StdoutOverflow { bytes_max, .. } => format!("✗ more than {bytes_max} bytes of output, killed"),
        Kind::Stderr { bytes, total_bytes } => {
            if *total_bytes == 0 {
                return None;
            }
            let text = String::from_utf8_lossy(&bytes.0);
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("· stderr ({total_bytes} bytes): {}", shorten(last, 100))
        }
        Kind::ClientStderr { bytes, total_bytes } => {
            let text = String::from_utf8_lossy(&bytes.0);
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("· stderr of the client ({total_bytes} bytes): {}", shorten(last, 100))
        }
        Kind::Signalled { signal } => format!("· SIG{signal} sent"),
        Kind::Exited { exit: Exit::Code(0) } => "· exit status 0".to_owned(),
        Kind::Exited { exit } => format!("✗ {exit}"),
        Kind::DeadlinePassed { waited_ms: 0, .. } => "✗ no reply, and none is under way".to_owned(),
        Kind::DeadlinePassed { awaited, waited_ms } => {
            let waited = written(Duration::from_millis(*waited_ms));
            match awaited {
                Awaited::Frames => format!("✗ no reply within {waited}"),
                Awaited::Writing => format!("✗ does not read its input within {waited}"),
                Awaited::Exit => format!("✗ still running after {waited}"),
                Awaited::Effect => format!("✗ not seen within {waited}"),
            }
        }
        Kind::Killed => "· killed".to_owned(),
        Kind::Waited { ms } => format!("· {ms} ms pass"),
        Kind::Processor { label, used_ms } => format!("· processor time ({label}): {used_ms} ms"),
        Kind::Memory { label, hwm_bytes } => format!("· memory ({label}): {} KiB", hwm_bytes / 1024),
        Kind::LeakedProcess { pid, command } => format!("✗ process {pid} ({command}) left behind"),
        Kind::LeftFile { path } => format!("✗ file {path} left behind"),
        Kind::ListenerHit { listener, head, .. } => {
            let text = String::from_utf8_lossy(&head.0);
            format!("· connection to {listener}: {}", text.lines().next().unwrap_or_default())
        }
        Kind::ListenerReplied { whole: true, .. } => return None,
        Kind::ListenerReplied { listener, bytes, .. } => {
            format!("· {bytes} bytes of the reply of {listener} taken")
        }
        Kind::ClientDeaf { unwritten_bytes } => {
            format!("✗ the client reads no more, {unwritten_bytes} bytes not taken")
        }
        Kind::ClientExited { exit } => format!("· client: {exit}"),
        Kind::RecordingStopped { why } => format!("✗ not recorded any further: {why}"),
        Kind::ActorStarted { actor, argv, .. } => format!("· {actor} started: {}", argv.join(" ")),
        Kind::ActorReceived { actor, bytes, .. } => {
            format!("· {actor} read {}", Payload::from_bytes(&bytes.0).summary(chars_max))
        }
        Kind::ActorSaw { actor, seen, .. } => format!("· {actor} saw {}", sight(seen, chars_max)),
        Kind::ActorWrote { bytes, whole: true, .. } if bytes.0.is_empty() => return None,
        Kind::ActorWrote { actor, bytes, whole, .. } => {
            let cut = if *whole { "" } else { ", and not all of it was taken" };
            format!("· {actor} wrote {}{cut}", sent(bytes, chars_max))
        }
        Kind::ActorEnded { actor, exit, .. } => format!("· {actor}: {exit}"),
        Kind::FileHeld { file, bytes } => {
            format!("· {file} holds {}", sent(&Payload::from_bytes(&bytes.0), chars_max))
        }
        Kind::Looked { path, found, .. } if found.is_empty() => {
            format!("· nothing at {}", printable(&path.0, chars_max))
        }
        Kind::Looked { path, found, cut, .. } => {
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
        Kind::FilePut { path, error: Some(error), .. } => {
            format!("✗ cannot put {}: {error}", printable(&path.0, chars_max))
        }
        Kind::FilePut { path, bytes, .. } => {
            format!("→ {} is put: {}", printable(&path.0, chars_max), sent(bytes, chars_max))
        }
        Kind::FileMoved { from, error: Some(error), .. } => {
            format!("✗ cannot move {}: {error}", printable(&from.0, chars_max))
        }
        Kind::FileMoved { from, to, .. } => {
            format!("→ {} is moved to {}", printable(&from.0, chars_max), printable(&to.0, chars_max))
        }
        Kind::FolderChanged { folder, path, change, .. } => {
            let change = match change {
                FolderChange::Appeared => "appears",
                FolderChange::Written => "is written to",
                FolderChange::Vanished => "vanishes",
                FolderChange::MovedIn => "is moved in",
                FolderChange::MovedOut => "is moved away",
            };
            format!("· {folder}/{} {change}", printable(&path.0, chars_max))
        }
        Kind::WatchOverflow => "✗ more changes of folders than could be seen".to_owned(),
        Kind::ActorAlive { actor, label, role } => format!("✗ {actor} ({role}) still alive at {label}"),
        Kind::ActorFileStays { actor, label, path } => {
            format!("✗ {path}, which {actor} was given, still there at {label}")
        }
    })
}

/// What an actor saw, in one phrase.
fn sight(seen: &Seen, chars_max: usize) -> String {
    match seen {
        Seen::Payload { bytes, mode, is_own, .. } => {
            let whose = if *is_own { "" } else { ", not its own" };
            format!("a file (mode {mode:04o}{whose}): {}", printable(&bytes.0, chars_max))
        }
        Seen::NoPayload { path, error } => format!("no file at {path:?}: {error}"),
        Seen::Environment { bytes } => {
            // Values may be long, and secret.
            let variables = bytes.0.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
            let names = variables.map(|variable| {
                String::from_utf8_lossy(variable.split(|byte| *byte == b'=').next().unwrap_or_default())
            });
            format!("the variables {}", shorten(&names.collect::<Vec<_>>().join(" "), chars_max))
        }
        Seen::Limits { .. } => "its resource limits".to_owned(),
        Seen::Stdin { state, bytes } => {
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
        Seen::Status { .. } => "its signals and groups".to_owned(),
    }
}

/// A payload of several lines is shown as its first lines, joined by `⏎`.
fn sent(payload: &Payload, chars_max: usize) -> String {
    payload.summary(chars_max).replace('\n', "⏎")
}

fn printable(bytes: &[u8], chars_max: usize) -> String {
    Payload::from_bytes(bytes).summary(chars_max)
}

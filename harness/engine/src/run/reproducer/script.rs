//! `repro.sh`: a failing conversation as a shell script.

use std::fmt::Write as _;
use std::path::Path;

use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::data::finding::Finding;
use crate::data::payload::Vars;
use crate::data::plan::{Act, Chunking, Plan, Session};
use crate::data::secrets::{is_secret_name, redact_argv};
use crate::data::text::visible;
use crate::drive::lab::Lab;
use crate::drive::peer::{Origin, Peer, launchers};
use crate::run::runner::Failure;

/// Quotes a word for sh if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Maximum number of parts of a paced script, each of which is a process.
const PARTS_MAX: usize = 300;
/// Maximum number of pauses for replies.
const REPLIES_MAX: usize = 10;
/// Pause that replaces waiting for a reply, milliseconds.
const REPLY_MS: u64 = 1_000;

/// Part of a script's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptPart {
    /// Range of `stdin.bin`.
    Bytes {
        /// Offset of the first byte.
        from: usize,
        /// Number of bytes.
        length: usize,
    },
    /// Pause, milliseconds.
    Pause(u64),
}

/// Input of a session whose bytes are known in advance, in the order and with the pauses of its plan. `None` if the
/// session needs more than standard input: fixtures, values from replies, signals, files, HTTP, or too many parts.
pub(crate) fn paced_input(plan: &Plan, session: usize) -> Option<Vec<ScriptPart>> {
    let spec = plan.sessions.get(session)?;
    if plan.needs_folder() || spec.command == HTTP || !spec.limits.is_empty() {
        return None;
    }
    let (mut parts, mut from, mut replies) = (Vec::new(), 0, 0);
    for step in plan.steps.iter().filter(|step| step.session == session) {
        match &step.act {
            Act::Send { payload, chunking, await_frames } => {
                if payload.variables().next().is_some() || step.unread_ms > 0 {
                    return None;
                }
                let length = payload.len(&Vars::default());
                let size = match chunking {
                    Chunking::Whole => length,
                    Chunking::Dribble => 1,
                    Chunking::Every(size) => *size as usize,
                };
                if length.div_ceil(size.max(1)) > PARTS_MAX {
                    return None;
                }
                let end = from + length;
                while from < end {
                    let length = size.min(end - from);
                    parts.push(ScriptPart::Bytes { from, length });
                    from += length;
                }
                if *await_frames > 0 {
                    replies += 1;
                    parts.push(ScriptPart::Pause(REPLY_MS + step.allow_ms));
                }
            }
            Act::Wait { ms } => parts.push(ScriptPart::Pause(*ms)),
            Act::AwaitStart => parts.push(ScriptPart::Pause(REPLY_MS)),
            Act::Finish | Act::CloseStdin => break,
            Act::Flush => {}
            _ => return None,
        }
    }
    // A pause after the last part is useless.
    if let Some(ScriptPart::Pause(_)) = parts.last() {
        parts.pop();
    }
    (replies <= REPLIES_MAX && parts.len() <= PARTS_MAX).then_some(parts)
}

/// Input as one part without pauses.
pub(super) fn at_once(parts: &[ScriptPart]) -> Vec<ScriptPart> {
    let length =
        parts.iter().map(|part| if let ScriptPart::Bytes { length, .. } = part { *length } else { 0 }).sum();
    vec![ScriptPart::Bytes { from: 0, length }]
}

/// Comment at the head of every script: the finding in words.
fn head(check: &str, finding: &Finding, lines: &[String]) -> String {
    let mut text = String::from("#!/bin/sh\n");
    let mut comment = |line: &str| {
        for line in line.split(['\n', '\r']) {
            let _ = writeln!(text, "# {}", visible(line));
        }
    };
    comment(&format!("{check}: clause {}, {}", finding.clause, finding.reason));
    comment("");
    comment(&format!("expected: {}", finding.expected));
    comment(&format!("got:      {}", finding.got));
    comment("");
    for line in lines {
        comment(line);
    }
    text
}

/// Changes to the folder to which the command line refers; `$here` is the script's own.
fn go_to(folder: Option<&Path>, text: &mut String) {
    text.push_str("here=$(cd \"$(dirname \"$0\")\" && pwd) || exit 2\n");
    if let Some(folder) = folder.and_then(|folder| std::path::absolute(folder).ok()) {
        let _ = writeln!(text, "cd {} || exit 2", quoted(&folder.to_string_lossy()));
    }
}

/// Script that needs only sh and the peer, which gets `input`.
///
/// # Errors
/// Fails if a placeholder of the command line lacks a value.
pub(crate) fn static_script(
    check: &str,
    finding: &Finding,
    peer: &Peer,
    session: &Session,
    input: &[ScriptPart],
) -> Result<String, Misconfigured> {
    let argv = peer.command_line(session)?;
    let is_paced = input.len() > 1;
    let mut lines = vec![
        "Needs sh and the peer. Compare its output and its exit status with the expected ones.".to_owned(),
    ];
    if is_paced {
        lines.push("Pauses replace the replies and the times for which peerproof waits.".to_owned());
    }
    let mut text = head(check, finding, &lines);
    let mut assignments = Vec::new();
    let own = std::env::current_dir().ok();
    if let Origin::Process { base_env, current_dir, .. } = &peer.origin {
        go_to(current_dir.as_deref().or(own.as_deref()), &mut text);
        let own = peer.own_env("\"$PWD\"").into_iter();
        assignments.extend(own.map(|(name, value)| format!("{name}={}", value.display())));
        for (name, _) in base_env {
            // The user who runs the script has other folders.
            assignments.push(match launchers::default_folder(name) {
                Some(folder) => format!("{name}=\"${{{name}:-$HOME/{folder}}}\""),
                None => format!("{name}=\"${name}\""),
            });
        }
        if !base_env.iter().any(|(name, _)| name == "TMPDIR") {
            assignments.push("TMPDIR=\"${TMPDIR:-/tmp}\"".to_owned());
        }
    }
    let configured = peer.env.iter().map(|(name, value)| (name, value));
    for (name, value) in configured.chain(&session.env) {
        if is_secret_name(name) {
            let _ = writeln!(text, ": \"${{{name}:?set it: this file does not contain its value}}\"");
            assignments.push(format!("{name}=\"${name}\""));
        } else {
            assignments.push(quoted(&format!("{name}={value}")));
        }
    }
    let command: Vec<String> = redact_argv(&argv).iter().map(|word| quoted(word)).collect();
    if is_paced {
        text.push_str("part() { tail -c \"+$1\" \"$here/stdin.bin\" | head -c \"$2\"; }\n{\n");
        for part in input {
            let _ = match part {
                ScriptPart::Bytes { from, length } => writeln!(text, "  part {} {length}", from + 1),
                ScriptPart::Pause(ms) => writeln!(text, "  sleep {}.{:03}", ms / 1_000, ms % 1_000),
            };
        }
        text.push_str("} | ");
    }
    text.push_str("env -i");
    for assignment in assignments {
        let _ = write!(text, " \\\n  {assignment}");
    }
    let input = if is_paced { "" } else { " < \"$here/stdin.bin\"" };
    let _ = writeln!(text, " \\\n  {}{input}", command.join(" "));
    text.push_str("status=$?\necho \"exit status $status\" >&2\nexit $status\n");
    Ok(text)
}

/// Script that lets peerproof repeat the conversation. `peer_args` select the peer.
pub(crate) fn live_script(check: &str, failure: &Failure, lab: &Lab<'_>, peer_args: &[String]) -> String {
    let mut text = head(
        check,
        &failure.finding,
        &["The conversation depends on replies, time, signatures, files or processes, so peerproof repeats \
            it."
        .to_owned()],
    );
    go_to(std::env::current_dir().ok().as_deref(), &mut text);
    let exe = quoted(&lab.actor_exe.program.to_string_lossy());
    let _ = write!(text, "exec \"${{PEERPROOF:-{exe}}}\" replay --live \"$here/transcript.ndjson\"");
    let words = redact_argv(peer_args);
    for (word, original) in words.iter().zip(peer_args) {
        match original.split_once('=') {
            Some((name, _)) if word != original && is_variable(name) => {
                let _ = write!(text, " \"{name}=${{{name}:?set it: this file does not contain its value}}\"");
            }
            _ => {
                let _ = write!(text, " {}", quoted(word));
            }
        }
    }
    text.push('\n');
    text
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_input_is_paced_by_its_plan() {
        let mut plan = Plan::default();
        plan.sessions.push(Session::default());
        let step = crate::data::plan::Step::new;
        let send = |text: &str, chunking, await_frames| {
            step(Act::Send { payload: crate::data::payload::Payload::text(text), chunking, await_frames })
        };
        plan.steps = vec![
            send("abc", Chunking::Whole, 1),
            step(Act::Wait { ms: 50 }),
            send("defgh", Chunking::Every(2), 1),
            step(Act::Finish),
        ];
        let bytes = |from, length| ScriptPart::Bytes { from, length };
        let parts = paced_input(&plan, 0).unwrap();
        let pause = ScriptPart::Pause(REPLY_MS);
        assert_eq!(parts, [bytes(0, 3), pause, ScriptPart::Pause(50), bytes(3, 2), bytes(5, 2), bytes(7, 1)]);
        assert_eq!(at_once(&parts), [bytes(0, 8)]);
        plan.steps.insert(0, step(Act::Signal("TERM".to_owned())));
        assert_eq!(paced_input(&plan, 0), None);
    }

    #[test]
    fn quotes_what_sh_would_read_otherwise() {
        assert_eq!(quoted("./a-b_c.py"), "./a-b_c.py");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }
}

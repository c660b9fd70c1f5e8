//! `repro.sh`: one failing conversation as a shell script.

use std::fmt::Write as _;
use std::path::Path;

use crate::blame::Misconfigured;
use crate::carriage::HTTP;
use crate::finding::Finding;
use crate::lab::Lab;
use crate::peer::{Origin, Peer};
use crate::plan::{Act, Chunking, Plan, Session};
use crate::runner::Failure;
use crate::secrets::{is_secret_name, redact_argv};
use crate::text::visible;

/// A word for sh, quoted where it has to be.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The one session whose input, written at once, is the whole stimulus; `None` where more is needed than `< stdin.bin`:
/// fixtures, captured values, signals, time, chunks, files that are put or awaited, HTTP.
pub fn static_session(plan: &Plan, session: usize) -> Option<&Session> {
    let spec = plan.sessions.get(session)?;
    let still = plan.steps.iter().filter(|step| step.session == session).all(|step| match &step.act {
        Act::Send { payload, chunking, .. } => {
            *chunking == Chunking::Whole && payload.variables().next().is_none()
        }
        Act::Finish | Act::CloseStdin | Act::Flush => true,
        Act::Signal(_)
        | Act::Wait { .. }
        | Act::AwaitStart
        | Act::SampleMemory { .. }
        | Act::SampleProcessor { .. }
        | Act::Play { .. }
        | Act::Hide { .. }
        | Act::Look { .. }
        | Act::Put { .. }
        | Act::Await { .. }
        | Act::SignalWhen { .. }
        | Act::Move { .. }
        | Act::ProbeActor { .. } => false,
    });
    (still && !plan.needs_folder() && spec.command != HTTP).then_some(spec)
}

/// The comment at the head of every script: what is wrong, in the words of the finding.
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

/// Goes to the folder in which the command line means what it meant; `$here` is the script's own.
fn go_to(folder: Option<&Path>, text: &mut String) {
    text.push_str("here=$(cd \"$(dirname \"$0\")\" && pwd) || exit 2\n");
    if let Some(folder) = folder.and_then(|folder| std::path::absolute(folder).ok()) {
        let _ = writeln!(text, "cd {} || exit 2", quoted(&folder.to_string_lossy()));
    }
}

/// A script that needs only sh and the peer.
///
/// # Errors
/// The command line has a placeholder without a value.
pub fn static_script(
    check: &str,
    finding: &Finding,
    peer: &Peer,
    session: &Session,
) -> Result<String, Misconfigured> {
    let argv = peer.command_line(session)?;
    let mut text = head(
        check,
        finding,
        &["Needs sh and the peer. Compare what it prints, and how it ends, with what is expected."
            .to_owned()],
    );
    let mut assignments = Vec::new();
    let own = std::env::current_dir().ok();
    if let Origin::Process { base_env, current_dir, .. } = &peer.origin {
        go_to(current_dir.as_deref().or(own.as_deref()), &mut text);
        for (name, _) in base_env {
            // The user's own values: PATH, HOME.
            assignments.push(format!("{name}=\"${name}\""));
        }
        if !base_env.iter().any(|(name, _)| name == "TMPDIR") {
            assignments.push("TMPDIR=\"${TMPDIR:-/tmp}\"".to_owned());
        }
    }
    let configured = peer.env.iter().map(|(name, value)| (name, value));
    for (name, value) in configured.chain(&session.env) {
        if is_secret_name(name) {
            let _ = writeln!(text, ": \"${{{name}:?set it: its value was kept out of this file}}\"");
            assignments.push(format!("{name}=\"${name}\""));
        } else {
            assignments.push(quoted(&format!("{name}={value}")));
        }
    }
    let command: Vec<String> = redact_argv(&argv).iter().map(|word| quoted(word)).collect();
    text.push_str("env -i");
    for assignment in assignments {
        let _ = write!(text, " \\\n  {assignment}");
    }
    let _ = writeln!(text, " \\\n  {} < \"$here/stdin.bin\"", command.join(" "));
    text.push_str("status=$?\necho \"exit status $status\" >&2\nexit $status\n");
    Ok(text)
}

/// A script that lets peerproof carry the conversation out again. `peer_args` are the arguments that name the peer.
pub fn live_script(check: &str, failure: &Failure, lab: &Lab<'_>, peer_args: &[String]) -> String {
    let mut text = head(
        check,
        &failure.finding,
        &["The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again."
            .to_owned()],
    );
    go_to(std::env::current_dir().ok().as_deref(), &mut text);
    let exe = quoted(&lab.actor_exe.program.to_string_lossy());
    let _ = write!(text, "exec \"${{PEERPROOF:-{exe}}}\" replay --live \"$here/transcript.ndjson\"");
    let words = redact_argv(peer_args);
    for (word, original) in words.iter().zip(peer_args) {
        match original.split_once('=') {
            Some((name, _)) if word != original && is_variable(name) => {
                let _ = write!(text, " \"{name}=${{{name}:?set it: its value was kept out of this file}}\"");
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
    fn quotes_what_sh_would_read_otherwise() {
        assert_eq!(quoted("./a-b_c.py"), "./a-b_c.py");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }
}

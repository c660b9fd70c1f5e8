//! Judges transcripts of a toolhost (provider side): expectations of the steps, and what holds of every reply and of
//! every process.

use super::align::{Frame, align};
use super::dispatch;
use super::expect::{Allowed, Expect, Outcome};
use super::reply_rules;
use crate::finding::{ChoiceSeen, Finding, Judgement, Nature};
use crate::json::{self, DecodeLimits};
use crate::payload::shorten;
use crate::plan::Act;
use crate::transcript::{Awaited, Exit, Kind, Transcript};

/// Clauses about frames and processes that every conversation watches.
mod clause {
    pub const ONE_REPLY_A_LINE: &str = "TH-FRAME-01";
    pub const PROTOCOL_ONLY: &str = "TH-FRAME-05";
    pub const REPLY_STRICT_JSON: &str = "TH-REPLY-01";
    pub const RUN_EXIT_ZERO: &str = "TH-RUN-02";
    pub const RUN_ERROR_EXIT: &str = "TH-RUN-03";
    pub const RUN_ALWAYS_REPLIES: &str = "TH-RUN-04";
    pub const SERVE_ENDS_AT_EOF: &str = "TH-PROC-02";
    pub const RUN_ENDS: &str = "TH-PROC-03";
    pub const ENDS_AT_TERM: &str = "TH-PROC-04";
    pub const NO_PROCESS_LEFT: &str = "TH-PROC-05";
    pub const NO_FILE_LEFT: &str = "TH-PROC-06";
}

/// What was expected of one line of one step.
struct Asked {
    step: usize,
    expect: Expect,
    canary: bool,
}

/// Whether `frame` is certainly the answer of a canary: it fits, and nothing but this request has that answer.
pub fn answers_canary(step: &crate::plan::Step, frame: &[u8]) -> bool {
    let Ok(expect) = serde_json::from_value::<Expect>(step.expect.clone()) else { return false };
    let unmistakable = expect.allowed.iter().all(|allowed| allowed.output.is_some());
    unmistakable && decode(frame).value.is_ok_and(|value| expect.fit(&value).is_some())
}

/// Judges by the expectations in the plan.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = Judgement::default();
    for (session, peer) in transcript.plan.sessions.iter().enumerate() {
        if peer.command == "command" {
            dispatch::oracle::judge_session(transcript, session, &mut judgement);
        } else {
            judge_session(transcript, session, &mut judgement);
        }
    }
    judgement
}

fn judge_session(transcript: &Transcript, session: usize, judgement: &mut Judgement) {
    let asked = asked(transcript, session);
    let serve = transcript.plan.sessions[session].command != "run";
    let out = transcript.stdout(session);
    let (frames, rest) = if serve { lines(&out) } else { (whole(&out), &[][..]) };
    let exit = transcript.exit(session);
    let expects: Vec<&Expect> = asked.iter().map(|asked| &asked.expect).collect();
    let alignment = align(&expects, &frames);
    for (asked, answer) in asked.iter().zip(&alignment.answers) {
        match answer {
            Some(frame) => reply(asked, &frames[*frame], judgement),
            None => silence(transcript, session, asked, exit, judgement),
        }
    }
    for frame in &alignment.extra {
        let got = shorten(&String::from_utf8_lossy(&frames[*frame].bytes), 200).into_owned();
        // What is no JSON object is output beside the protocol; what is one is a reply too many.
        let (clause, reason) = match &frames[*frame].value {
            Ok(value) if value.get("ok").is_some() => (clause::ONE_REPLY_A_LINE, "extra_reply"),
            _ => (clause::PROTOCOL_ONLY, "other_output"),
        };
        judgement.findings.push(Finding::new(clause, reason, "exactly one reply for each request line", got));
    }
    if serve && !rest.is_empty() && exit.is_some() && !asked.is_empty() {
        let got = shorten(&String::from_utf8_lossy(rest), 200).into_owned();
        judgement.findings.push(Finding::new(
            clause::PROTOCOL_ONLY,
            "unfinished_line",
            "every reply ends with a line feed",
            got,
        ));
    }
    for (index, frame) in frames.iter().enumerate() {
        let answers = alignment.answers.iter().position(|answer| *answer == Some(index));
        let step = answers.map(|at| asked[at].step);
        if let Ok(value) = &frame.value {
            for finding in reply_rules::violations(transcript, serve, value, frame.bytes.len()) {
                judgement.findings.push(Finding { step, ..finding });
            }
        }
    }
    process(transcript, session, serve, &frames, judgement);
}

/// The lines that were sent with what each lets one expect.
fn asked(transcript: &Transcript, session: usize) -> Vec<Asked> {
    let mut asked = Vec::new();
    for event in transcript.of(session) {
        let Kind::Sent { step: index, .. } = event.kind else { continue };
        let Some(step) = transcript.plan.steps.get(index) else { continue };
        let expects: Vec<Expect> = match &step.expect {
            serde_json::Value::Array(_) => serde_json::from_value(step.expect.clone()).unwrap_or_default(),
            serde_json::Value::Null => Vec::new(),
            one => serde_json::from_value(one.clone()).map(|expect| vec![expect]).unwrap_or_default(),
        };
        asked.extend(expects.into_iter().map(|expect| Asked { step: index, expect, canary: step.canary }));
    }
    asked
}

fn decode(bytes: &[u8]) -> Frame {
    let value = json::decode(bytes, &DecodeLimits::default())
        .map(|decoded| decoded.value)
        .map_err(|error| error.to_string());
    Frame { bytes: bytes.to_vec(), value }
}

fn lines(out: &[u8]) -> (Vec<Frame>, &[u8]) {
    let end = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let frames = out[..end]
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| &line[..line.len() - 1])
        .map(|line| decode(line.strip_suffix(b"\r").unwrap_or(line)))
        .collect();
    (frames, &out[end..])
}

/// In run mode all of standard output is one reply.
fn whole(out: &[u8]) -> Vec<Frame> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    if out.iter().all(|byte| blank(byte)) {
        return Vec::new();
    }
    vec![decode(out)]
}

fn reply(asked: &Asked, frame: &Frame, judgement: &mut Judgement) {
    let value = match &frame.value {
        Ok(value) => value,
        Err(error) => {
            let got = format!("{error}: {}", shorten(&String::from_utf8_lossy(&frame.bytes), 160));
            judgement.findings.push(
                Finding::new(clause::REPLY_STRICT_JSON, "reply_not_json", "a reply in strict JSON", got)
                    .at(asked.step),
            );
            return;
        }
    };
    match asked.expect.fit(value) {
        Some(allowed) => {
            if asked.canary && allowed.outcome != Outcome::Any {
                judgement.canaries_answered += 1;
            }
            note_choice(&asked.expect, allowed, judgement);
        }
        None => {
            let (reason, detail) = asked.expect.misfit(value);
            let text = shorten(&String::from_utf8_lossy(&frame.bytes), 240).into_owned();
            let got = if detail.is_empty() { text } else { format!("{text} ({detail})") };
            judgement.findings.push(
                Finding::new(asked.expect.clause.0.as_str(), reason, asked.expect.phrase(), got)
                    .at(asked.step),
            );
        }
    }
}

fn note_choice(expect: &Expect, allowed: &Allowed, judgement: &mut Judgement) {
    if let (Some(key), Some(value)) = (&expect.choice, &allowed.choice) {
        judgement.choice = Some(ChoiceSeen { key: key.clone(), value: value.clone() });
    }
}

/// A request without a reply: allowed, or lost, or the peer hangs, or it died.
fn silence(
    transcript: &Transcript,
    session: usize,
    asked: &Asked,
    exit: Option<Exit>,
    judgement: &mut Judgement,
) {
    let hung = transcript.of(session).any(|event| {
        matches!(event.kind, Kind::DeadlinePassed { awaited: Awaited::Frames | Awaited::Writing, .. })
    });
    // A peer that ended only because its input ended did not die of this request.
    let finished = transcript.of(session).any(|event| matches!(event.kind, Kind::StdinClosed));
    let died = exit.filter(|exit| !(finished && *exit == Exit::Code(0)));
    let overflow = transcript.of(session).any(|event| matches!(event.kind, Kind::StdoutOverflow { .. }));
    let ended =
        if finished && exit == Some(Exit::Code(0)) && !asked_ends_in_order(asked) { None } else { exit };
    if !hung && let Some(allowed) = asked.expect.silence(ended) {
        note_choice(&asked.expect, allowed, judgement);
        return;
    }
    let clause = asked.expect.clause.0.as_str();
    let expected = asked.expect.phrase();
    let already = judgement.findings.iter().any(|finding| {
        matches!(finding.reason.as_str(), "crashed" | "hung" | "ended_early" | "output_flood")
    });
    if already {
        // One death or hang is one finding: what came after it was never answered.
        return;
    }
    let finding = if overflow {
        Finding::new(clause, "output_flood", expected, "endless output").of_nature(Nature::Violation)
    } else if let Some(exit) = died {
        let reason = if exit == Exit::Code(0) { "ended_early" } else { "crashed" };
        Finding::new(clause, reason, expected, format!("no reply, {exit}")).of_nature(Nature::Crash)
    } else if hung {
        Finding::new(clause, "hung", expected, "no reply in time").of_nature(Nature::Hang)
    } else {
        Finding::new(
            clause,
            "no_reply",
            expected,
            "no reply, though later requests were answered or input ended",
        )
    };
    judgement.findings.push(finding.at(asked.step));
}

fn asked_ends_in_order(asked: &Asked) -> bool {
    asked.expect.allowed.iter().any(|allowed| allowed.outcome == Outcome::EndsInOrder)
}

/// How the process ended, and what it left.
fn process(
    transcript: &Transcript,
    session: usize,
    serve: bool,
    frames: &[Frame],
    judgement: &mut Judgement,
) {
    let finish = transcript
        .plan
        .steps
        .iter()
        .position(|step| step.session == session && matches!(step.act, Act::Finish | Act::Signal(_)));
    let signalled = transcript.of(session).any(|event| matches!(event.kind, Kind::Signalled { .. }));
    let dead_already = judgement.findings.iter().any(|finding| finding.nature >= Nature::Hang);
    let late = transcript
        .of(session)
        .any(|event| matches!(event.kind, Kind::DeadlinePassed { awaited: Awaited::Exit, .. }));
    let mut add = |finding: Finding| {
        judgement.findings.push(Finding { step: finish, ..finding });
    };
    if late && !dead_already {
        let (clause, expected) = match (signalled, serve) {
            (true, _) => (clause::ENDS_AT_TERM, "the process ends within 2 s of SIGTERM"),
            (false, true) => (clause::SERVE_ENDS_AT_EOF, "exit status 0 within 2 s of the last reply"),
            (false, false) => (clause::RUN_ENDS, "the process ends within 2 s of its reply"),
        };
        add(Finding::new(clause, "does_not_end", expected, "still running, killed").of_nature(Nature::Hang));
    }
    let ok = frames
        .first()
        .and_then(|frame| frame.value.as_ref().ok())
        .and_then(|value| value.get("ok"))
        .and_then(json::Json::as_bool);
    if let Some(exit) = transcript.exit(session)
        && !signalled
        && !dead_already
    {
        match (serve, exit, ok) {
            (true, Exit::Code(0), _) | (false, Exit::Code(0), Some(_)) => {}
            (true, exit, _) if !expected_death(transcript, session) => add(Finding::new(
                clause::SERVE_ENDS_AT_EOF,
                "exit_status",
                "exit status 0 at the end of input",
                exit.to_string(),
            )),
            (true, ..) => {}
            (false, exit, Some(true)) => add(Finding::new(
                clause::RUN_EXIT_ZERO,
                "exit_status",
                "exit status 0 after a success reply",
                exit.to_string(),
            )),
            (false, exit @ Exit::Signal(_), Some(false)) => add(Finding::new(
                clause::RUN_ERROR_EXIT,
                "died_by_signal",
                "an exit status after an error reply",
                exit.to_string(),
            )),
            (false, Exit::Code(_), Some(false)) => {}
            (false, _, None) => {}
        }
        if !serve && frames.is_empty() && asked(transcript, session).is_empty() {
            add(Finding::new(
                clause::RUN_ALWAYS_REPLIES,
                "no_reply",
                "one JSON object on standard output",
                format!("nothing, {exit}"),
            ));
        }
    }
    for event in transcript.of(session) {
        match &event.kind {
            Kind::LeakedProcess { command, .. } => add(Finding::new(
                clause::NO_PROCESS_LEFT,
                "process_left",
                "no process of the peer is left after it ended",
                format!("{command} was still running"),
            )
            .of_nature(Nature::Leak)),
            Kind::LeftFile { path } => add(Finding::new(
                clause::NO_FILE_LEFT,
                "file_left",
                "no temporary file is left after the peer ended",
                path.clone(),
            )
            .of_nature(Nature::Leak)),
            _ => {}
        }
    }
}

/// Whether a step of this session allows the process to die of it.
fn expected_death(transcript: &Transcript, session: usize) -> bool {
    asked(transcript, session)
        .iter()
        .any(|asked| asked.expect.allowed.iter().any(|allowed| allowed.outcome == Outcome::Dies))
}

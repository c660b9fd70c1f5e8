//! Occasions of findings: the message that a peer was sent, and its circumstances.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::clause::ClauseId;
use crate::data::crash::{error_identity, shows_uncaught_error};
use crate::data::finding::{Finding, Nature, Repair};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::payload::{Payload, Vars};
use crate::data::plan::{Act, Chunking, Plan, Step};
use crate::data::transcript::{EventKind, Exit, Transcript};

/// Circumstances of a finding. With the finding they identify the fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occasion {
    /// Command of the peer.
    pub command: String,
    /// Name shared by the commands of one program: `provider` or `consumer`, or the command itself if it is a program
    /// of its own.
    #[serde(default)]
    pub program: String,
    /// Clause and reason that the model alone gives to the fault, whatever the step is about, if they differ from the
    /// finding's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_itself: Option<NamedPart>,
    /// Error that a peer wrote before it died, ended with a wrong exit status or refused the only message of its session,
    /// without parts that vary between messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_with: Option<String>,
    /// Set if the process wrote no output and ended with an uncaught error that it did not raise itself, at a place that
    /// its traceback shows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncaught: bool,
    /// Kind of the message.
    pub stimulus: MessageKind,
    /// Number of messages in the conversation, without canaries.
    pub messages: usize,
    /// Set if the conversation cuts a message, writes several at once or sends a large one. A fault may then come from
    /// that rather than from the message's content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_vehicle: bool,
    /// Set if the message was sent to test the finding's clause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aimed: bool,
    /// Set if the correct value stands in the message, so that it says nothing about the fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_echo: bool,
    /// Set if the clause alone identifies the fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_method: bool,
}

/// Name of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// The broken clause.
    pub clause: ClauseId,
    /// Reason code.
    pub reason: String,
}

/// Reason codes that only say that a valid message was answered wrongly. Many faults have this effect, so the model's
/// clause does not tell them apart.
const OF_RIGHT_MESSAGES: [&str; 12] = [
    "refused",
    "failed",
    "wrong_output",
    "wrong_result",
    "wrong_value",
    "wrong_outcome",
    "no_reply",
    "late_reply",
    "hung",
    "crashed",
    "ended_early",
    "not_json",
];

impl NamedPart {
    /// True if the name tells the fault from others.
    pub fn tells(&self) -> bool {
        tells(&self.reason)
    }
}

/// True if a reason code tells a fault from others.
pub(crate) fn tells(reason: &str) -> bool {
    !OF_RIGHT_MESSAGES.contains(&reason)
}

/// Kind of a message to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// JSON value of another type.
    Scalar,
    /// Several lines in one write.
    Lines,
    /// White space only.
    Blank,
    /// Text that is not JSON.
    Malformed,
    /// Bytes that are not text.
    Binary,
    /// Message of more than 64 KiB.
    Large,
    /// Plain request that shows that the peer still works.
    Canary,
    /// Script that the harness plays for a peer that asks.
    Script,
    /// File, signal or end of the input.
    Event,
}

impl MessageKind {
    /// True if the message holds no request, so that a peer that breaks down at it never reached its content.
    pub(crate) fn has_no_meaning(self) -> bool {
        matches!(
            self,
            Self::Scalar | Self::Lines | Self::Blank | Self::Malformed | Self::Binary | Self::Large
        )
    }

    /// True for one line that is not JSON.
    pub(crate) fn is_no_json(self) -> bool {
        matches!(self, Self::Malformed | Self::Binary)
    }
}

/// Reason code of an end with another exit status than 0, which may be that of an uncaught error.
pub(crate) const EXIT_STATUS: &str = "exit_status";

/// Size above which a message is [`MessageKind::Large`].
const LARGE_BYTES: usize = 64 << 10;

/// Fills in the occasion of each finding. `by_model` are findings about the conversation without the aims of its steps;
/// `program` maps a command to its program.
pub fn fill_in(
    transcript: &Transcript,
    findings: &mut [Finding],
    by_model: &[Finding],
    program: &dyn Fn(&str) -> String,
    is_by_method: bool,
) {
    if findings.is_empty() {
        return;
    }
    let plan = &*transcript.plan;
    let written: BTreeMap<usize, &Payload> = transcript
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Sent { step, payload } => Some((*step, payload)),
            _ => None,
        })
        .collect();
    let (messages, is_vehicle) = (messages(plan), is_vehicle(plan));
    let mut heard: BTreeMap<Option<usize>, Message> = BTreeMap::new();
    let name = |finding: &Finding| (finding.step, finding.clause.clone(), finding.reason.clone());
    let told: BTreeMap<_, String> =
        findings.iter().map(|finding| (name(finding), finding.got.clone())).collect();
    for finding in findings {
        let at = finding.step.and_then(|at| message_of(plan, at));
        let at = at.map(|at| fatal(plan, &written, finding, at));
        let message = heard.entry(at).or_insert_with(|| message(plan, &written, at));
        let (stimulus, is_echo) = (message.kind, message.holds(finding.repair.as_ref()));
        let session = finding.step.and_then(|at| plan.steps.get(at)).map_or(0, |step| step.session);
        let command = plan.sessions.get(session).map(|session| session.command.clone()).unwrap_or_default();
        let is_aimed = match finding.step {
            Some(step) => {
                [Some(step), at].into_iter().flatten().any(|at| is_about(plan, at, &finding.clause))
            }
            // It shows beside the conversation, whose messages are all behind it.
            None => (0..plan.steps.len()).any(|at| is_about(plan, at, &finding.clause)),
        };
        let program = program(&command);
        let is_uncaught = has_uncaught_error(transcript, session);
        let ends_it = finding.nature == Nature::Crash
            || is_uncaught
            || finding.reason == EXIT_STATUS
            || is_refusal_of_all(plan, session, finding);
        let died_with = ends_it.then(|| last_words(transcript, session)).flatten();
        // A finding that the model makes too needs no other name, and a name that another finding uses for another answer
        // is taken.
        let is_own = by_model.iter().any(|other| name(other) == name(finding));
        let by_itself = by_model
            .iter()
            .filter(|_| !is_own)
            .find(|other| {
                is_of_one_answer(other, finding)
                    && told.get(&name(other)).is_none_or(|got| is_undecodable(other) && *got == finding.got)
            })
            .map(|other| NamedPart { clause: other.clause.clone(), reason: other.reason.clone() });
        finding.occasion = Some(Box::new(Occasion {
            command,
            program,
            by_itself,
            died_with,
            is_uncaught,
            stimulus,
            messages,
            is_vehicle,
            is_aimed,
            is_echo,
            is_of_method: is_by_method && finding.is_of_refusal(),
        }));
    }
}

/// True for an answer without repair that came: it could not be decoded.
fn is_undecodable(finding: &Finding) -> bool {
    finding.repair.is_none() && !finding.lacks_answer()
}

/// True if the only message of a session was refused.
fn is_refusal_of_all(plan: &Plan, session: usize, finding: &Finding) -> bool {
    let sends = |step: &&Step| step.session == session && matches!(step.act, Act::Send { .. });
    finding.reason == "refused" && plan.steps.iter().filter(sends).count() == 1
}

/// Error that the process of a session wrote.
fn last_words(transcript: &Transcript, session: usize) -> Option<String> {
    log(transcript, session).and_then(|log| error_identity(&log))
}

/// True if the process of a session ended with an uncaught error that it did not raise itself, and wrote no output.
fn has_uncaught_error(transcript: &Transcript, session: usize) -> bool {
    matches!(transcript.exit(session), Some(Exit::Code(1..)))
        && !transcript
            .of(session)
            .any(|event| matches!(&event.kind, EventKind::Received { bytes } if !bytes.0.is_empty()))
        && log(transcript, session).is_some_and(|log| shows_uncaught_error(&log))
}

/// Standard error of the process of a session.
fn log(transcript: &Transcript, session: usize) -> Option<Cow<'_, str>> {
    transcript.of(session).find_map(|event| match &event.kind {
        EventKind::Stderr { bytes, .. } => Some(String::from_utf8_lossy(&bytes.0)),
        _ => None,
    })
}

/// True if two findings are about one answer that is wrong in one way.
fn is_of_one_answer(one: &Finding, other: &Finding) -> bool {
    let is_same_edit = match (&one.repair, &other.repair) {
        (Some(one), Some(other)) => one == other,
        _ => one.lacks_answer() == other.lacks_answer(),
    };
    one.step.is_some() && one.step == other.step && one.nature == other.nature && is_same_edit
}

fn writes(step: &Step) -> bool {
    matches!(step.act, Act::Send { .. } | Act::Play { .. })
}

/// Step of the message that a step is about: its own, or the only one of its session.
fn message_of(plan: &Plan, at: usize) -> Option<usize> {
    let step = plan.steps.get(at)?;
    if writes(step) {
        return Some(at);
    }
    let mut others = plan.steps.iter().enumerate().filter(|(_, it)| it.session == step.session && writes(it));
    let only = others.next().map(|(at, _)| at);
    only.filter(|_| others.next().is_none())
}

/// Step of the message that a peer died of: the unanswered one, or the one before it if that held no request.
fn fatal(plan: &Plan, written: &BTreeMap<usize, &Payload>, finding: &Finding, at: usize) -> usize {
    if finding.nature != Nature::Crash || message(plan, written, Some(at)).kind.has_no_meaning() {
        return at;
    }
    let session = plan.steps[at].session;
    let before = (0..at).rev().find(|at| plan.steps[*at].session == session && writes(&plan.steps[*at]));
    before.filter(|before| message(plan, written, Some(*before)).kind.has_no_meaning()).unwrap_or(at)
}

/// True if the `expect` of a step names the clause, as [`Aim`](crate::contract::face::Aim) does. Boundaries may use other forms,
/// such as one aim per line.
fn is_about(plan: &Plan, at: usize, clause: &ClauseId) -> bool {
    let Some(step) = plan.steps.get(at) else { return false };
    let names = |expect: &Value| expect.get("clause").and_then(Value::as_str) == Some(&clause.0);
    match &step.expect {
        Value::Array(each) => each.iter().any(names),
        one => names(one),
    }
}

/// Number of messages, files and signals of a plan, without canaries.
fn messages(plan: &Plan) -> usize {
    let count = |step: &Step| match &step.act {
        _ if step.canary => 0,
        Act::Send { payload, .. } => payload.lines().max(1),
        Act::Play { .. } | Act::Put { .. } | Act::Signal(_) | Act::SignalWhen { .. } => 1,
        _ => 0,
    };
    plan.steps.iter().map(count).sum()
}

fn is_vehicle(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| match &step.act {
        Act::Send { payload, chunking, .. } => {
            *chunking != Chunking::Whole || payload.lines() > 1 || payload.len(&Vars::new()) > LARGE_BYTES
        }
        _ => false,
    })
}

/// Message with its first bytes.
struct Message {
    kind: MessageKind,
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: MessageKind) -> Self {
        Self { kind, bytes: Vec::new() }
    }

    fn holds(&self, repair: Option<&Repair>) -> bool {
        let Some(Repair::Set { to: Some(to), .. }) = repair else { return false };
        memchr::memmem::find(&self.bytes, to.as_bytes()).is_some()
    }
}

fn message(plan: &Plan, written: &BTreeMap<usize, &Payload>, at: Option<usize>) -> Message {
    let Some((at, step)) = at.and_then(|at| Some((at, plan.steps.get(at)?))) else {
        return Message::new(MessageKind::Event);
    };
    let Act::Send { payload, .. } = &step.act else { return Message::new(MessageKind::Script) };
    let payload = written.get(&at).copied().unwrap_or(payload);
    let bytes = payload.prefix(LARGE_BYTES as u64).expand(&Vars::new()).unwrap_or_default();
    let kind = match payload.len(&Vars::new()) > LARGE_BYTES {
        true => MessageKind::Large,
        false if step.canary => MessageKind::Canary,
        false => kind(json::trim(&bytes)),
    };
    Message { kind, bytes }
}

fn kind(text: &[u8]) -> MessageKind {
    match json::decode(text, &DecodeLimits::default()) {
        Ok(decoded) => match decoded.value {
            Json::Object(_) => MessageKind::Object,
            Json::Array(_) => MessageKind::Array,
            _ => MessageKind::Scalar,
        },
        Err(_) if text.is_empty() => MessageKind::Blank,
        Err(_) if text.contains(&b'\n') => MessageKind::Lines,
        Err(_) if std::str::from_utf8(text).is_err() => MessageKind::Binary,
        Err(_) => MessageKind::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::plan::Session;
    use crate::data::transcript::{Bytes, Event};

    /// Conversation of these lines, each awaited, with a finding about the last one.
    fn occasion_of_last(lines: &[&str], finding: Finding, by_model: &[Finding]) -> Box<Occasion> {
        let sends = |line: &&str| {
            let payload = Payload::text(format!("{line}\n"));
            Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 })
        };
        let plan = Plan {
            sessions: vec![Session { command: "serve".to_owned(), ..Session::default() }],
            steps: lines.iter().map(sends).collect(),
            ..Plan::default()
        };
        let sent = |(step, line): (usize, &&str)| {
            let kind = EventKind::Sent { step, payload: Payload::text(format!("{line}\n")) };
            Event { at_us: 0, session: 0, kind }
        };
        let bytes = Bytes(b"KeyError: 'id'\n".to_vec());
        let stderr = Event { at_us: 0, session: 0, kind: EventKind::Stderr { bytes, total_bytes: 15 } };
        let transcript = Transcript {
            boundary: "toy".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            events: lines.iter().enumerate().map(sent).chain([stderr]).collect(),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
        };
        let mut findings = [finding.at(lines.len() - 1)];
        fill_in(&transcript, &mut findings, by_model, &|_| "provider".to_owned(), false);
        let [finding] = findings;
        finding.occasion.unwrap_or_else(|| unreachable!("each finding has its occasion"))
    }

    fn finding(clause: &str, reason: &str) -> Finding {
        Finding::new(clause, reason, "this", "that")
    }

    #[test]
    fn a_peer_that_ends_behind_what_is_no_request_died_of_that() {
        let crash = || finding("A", "ended_early").of_nature(Nature::Crash);
        let stimulus = |lines: &[&str]| occasion_of_last(lines, crash(), &[]).stimulus;
        assert_eq!(stimulus(&["not json", "{}"]), MessageKind::Malformed);
        assert_eq!(stimulus(&["{}", "{}"]), MessageKind::Object);
        assert_eq!(stimulus(&["not json", "1"]), MessageKind::Scalar);
        let answered = occasion_of_last(&["not json", "{}"], finding("A", "refused"), &[]);
        assert_eq!(answered.stimulus, MessageKind::Object, "it lives");
    }

    #[test]
    fn the_error_behind_a_death_or_a_refusal_of_all_is_kept() {
        let refused = |lines: &[&str]| occasion_of_last(lines, finding("A", "refused"), &[]).died_with;
        assert_eq!(refused(&["{}"]).as_deref(), Some("KeyError: id"));
        assert_eq!(refused(&["{}", "{}"]), None, "it may be about another message");
        let crash = finding("A", "crashed").of_nature(Nature::Crash);
        assert!(occasion_of_last(&["{}", "{}"], crash, &[]).died_with.is_some());
        assert_eq!(occasion_of_last(&["{}"], finding("A", "accepted"), &[]).died_with, None);
    }

    #[test]
    fn the_model_names_the_fault_of_the_same_answer() {
        let named = |by_model: &[Finding]| {
            let occasion = occasion_of_last(&["{}"], finding("AIM", "false_hit"), by_model);
            occasion.by_itself.map(|named| named.clause.0)
        };
        let model = finding("MODEL", "accepted").at(0);
        assert_eq!(named(std::slice::from_ref(&model)).as_deref(), Some("MODEL"));
        let same = finding("AIM", "false_hit").at(0);
        assert_eq!(named(std::slice::from_ref(&same)), None, "it is the same name");
        assert_eq!(named(&[model.clone(), same]), None, "the model finds both");
        assert_eq!(named(&[model.clone().at(1)]), None, "another answer");
        assert_eq!(named(&[model.of_nature(Nature::Hang)]), None, "another nature");
    }
}

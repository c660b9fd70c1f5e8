//! The occasions of findings: what a peer was sent, and how, when something was wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clause::ClauseId;
use crate::finding::{Finding, Repair};
use crate::json::{self, DecodeLimits, Json};
use crate::payload::{Payload, Vars};
use crate::plan::{Act, Chunking, Plan, Step};
use crate::transcript::{Kind, Transcript};

/// The occasion on which a finding was made. Together with the finding it tells which fault that belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occasion {
    /// Command of the peer that was spoken to.
    pub command: String,
    /// Kind of the message that the finding is about.
    pub stimulus: Stimulus,
    /// Number of messages in the conversation, without canaries.
    pub messages: usize,
    /// The conversation carries a message in pieces, several in one write, or a large one: what it shows of a message may be
    /// the doing of how that was carried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_vehicle: bool,
    /// The message was sent for the clause that the finding names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aimed: bool,
    /// The value that would have been right stands in the message: it says nothing of the fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_echo: bool,
}

/// Kind of a message to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stimulus {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// Another JSON value.
    Scalar,
    /// Several lines in one write.
    Lines,
    /// White space alone.
    Blank,
    /// Text that is not JSON.
    Malformed,
    /// Bytes that are not text.
    Binary,
    /// A message of more than 64 KiB.
    Large,
    /// A plain request that shows that the peer still works.
    Canary,
    /// A script that the harness plays to a peer that asks.
    Script,
    /// A file, a signal or the end of the input.
    Event,
}

impl Stimulus {
    /// Whether a peer that breaks down at it never got as far as what it says: it holds no request.
    pub fn has_no_meaning(self) -> bool {
        matches!(
            self,
            Self::Scalar | Self::Lines | Self::Blank | Self::Malformed | Self::Binary | Self::Large
        )
    }
}

/// Size from which a message is [`Stimulus::Large`].
const LARGE_BYTES: usize = 64 << 10;

/// Gives each finding its occasion.
pub fn fill_in(transcript: &Transcript, findings: &mut [Finding]) {
    if findings.is_empty() {
        return;
    }
    let plan = &*transcript.plan;
    let written: BTreeMap<usize, &Payload> = transcript
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::Sent { step, payload } => Some((*step, payload)),
            _ => None,
        })
        .collect();
    let (messages, is_vehicle) = (messages(plan), is_vehicle(plan));
    let mut heard: BTreeMap<Option<usize>, Message> = BTreeMap::new();
    for finding in findings {
        let at = finding.step.and_then(|at| message_of(plan, at));
        let message = heard.entry(at).or_insert_with(|| message(plan, &written, at));
        let (stimulus, is_echo) = (message.kind, message.holds(finding.repair.as_ref()));
        let session = finding.step.and_then(|at| plan.steps.get(at)).map_or(0, |step| step.session);
        let command = plan.sessions.get(session).map(|session| session.command.clone()).unwrap_or_default();
        let is_aimed = [finding.step, at].into_iter().flatten().any(|at| is_about(plan, at, &finding.clause));
        finding.occasion = Some(Occasion { command, stimulus, messages, is_vehicle, is_aimed, is_echo });
    }
}

fn writes(step: &Step) -> bool {
    matches!(step.act, Act::Send { .. } | Act::Play { .. })
}

/// The message that a step is about: its own, or the only one of its session.
fn message_of(plan: &Plan, at: usize) -> Option<usize> {
    let step = plan.steps.get(at)?;
    if writes(step) {
        return Some(at);
    }
    let mut others = plan.steps.iter().enumerate().filter(|(_, it)| it.session == step.session && writes(it));
    let only = others.next().map(|(at, _)| at);
    only.filter(|_| others.next().is_none())
}

/// Whether what a step expects names a clause, as [`Aim`](crate::face::Aim) does; boundaries may expect more, or the like of
/// each line.
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

/// A message with its text, where that is short enough to be looked at.
struct Message {
    kind: Stimulus,
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: Stimulus) -> Self {
        Self { kind, bytes: Vec::new() }
    }

    fn holds(&self, repair: Option<&Repair>) -> bool {
        let Some(Repair::Set { to: Some(to), .. }) = repair else { return false };
        memchr::memmem::find(&self.bytes, to.as_bytes()).is_some()
    }
}

fn message(plan: &Plan, written: &BTreeMap<usize, &Payload>, at: Option<usize>) -> Message {
    let Some((at, step)) = at.and_then(|at| Some((at, plan.steps.get(at)?))) else {
        return Message::new(Stimulus::Event);
    };
    let Act::Send { payload, .. } = &step.act else { return Message::new(Stimulus::Script) };
    let payload = written.get(&at).copied().unwrap_or(payload);
    if payload.len(&Vars::new()) > LARGE_BYTES {
        return Message::new(Stimulus::Large);
    }
    let bytes = payload.expand(&Vars::new()).unwrap_or_default();
    let kind = if step.canary { Stimulus::Canary } else { kind(json::trim(&bytes)) };
    Message { kind, bytes }
}

fn kind(text: &[u8]) -> Stimulus {
    match json::decode(text, &DecodeLimits::default()) {
        Ok(decoded) => match decoded.value {
            Json::Object(_) => Stimulus::Object,
            Json::Array(_) => Stimulus::Array,
            _ => Stimulus::Scalar,
        },
        Err(_) if text.is_empty() => Stimulus::Blank,
        Err(_) if text.contains(&b'\n') => Stimulus::Lines,
        Err(_) if std::str::from_utf8(text).is_err() => Stimulus::Binary,
        Err(_) => Stimulus::Malformed,
    }
}

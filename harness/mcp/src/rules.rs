//! Rules about a whole conversation: form of messages, results by method, and messages beside answers.

mod contents;
mod lists;
mod messages;
mod opening;
mod server_messages;
mod tasks;
mod tools;

use std::collections::BTreeSet;

use super::model::{RequestPart, Server};
use super::revision::{NEWEST, Revision};
use peerproof_engine::contract::face::{PlacedExpectation, Rule, SessionTrace, Trace};
use peerproof_engine::data::clause::Clause;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::Transcript;

use super::server_knowledge::ServerKnowledge;

pub(crate) use lists::PAGES_MAX;
pub(crate) use messages::faulty_places;
pub(crate) use server_messages::BESIDE_CALLS;

/// All rules, in the order of their findings.
pub(crate) const ALL: &[Rule<Server>] = &[
    messages::judge,
    opening::judge,
    opening::revisions,
    lists::judge,
    tools::judge,
    tasks::judge,
    contents::judge,
    server_messages::judge,
];

/// Collects findings about the form of one value.
struct Form<'a> {
    value: &'a Json,
    /// JSON pointer to it in the message.
    prefix: String,
    /// Name of the value, for messages.
    label: String,
    step: Option<usize>,
    found: Vec<Finding>,
}

impl<'a> Form<'a> {
    fn of(value: &'a Json, step: Option<usize>) -> Self {
        Self { value, prefix: String::new(), label: String::new(), step, found: Vec::new() }
    }

    /// Form of a part of a result.
    fn part(value: &'a Json, prefix: impl Into<String>, label: impl Into<String>, step: usize) -> Self {
        Self { prefix: prefix.into(), label: label.into(), ..Self::of(value, Some(step)) }
    }

    /// Reports a fault at a JSON pointer into the value.
    fn fault(&mut self, clause: &str, reason: &str, at: &str, expected: &str) {
        let text = |value: &Json| shorten(&value.to_text(), 200).into_owned();
        let shown = match self.value.pointer(at) {
            Some(value) => text(value),
            None => format!("not in {}", text(self.value)),
        };
        let got = if self.label.is_empty() { shown } else { format!("{}: {shown}", self.label) };
        let repair = Repair::other(format!("{}{at}", self.prefix));
        let finding = Finding::new(clause, reason, expected, got).repaired_by(repair);
        self.found.push(Finding { step: self.step, ..finding });
    }

    /// Requires a member of this type at a pointer. If it is required, its absence is a fault.
    fn member(&mut self, clause: &str, at: &str, kind: Kind, need: Need) {
        let value = self.value.pointer(at);
        let name = at.rsplit('/').next().unwrap_or_default();
        match value {
            None if need == Need::Optional => {}
            Some(value) if kind.is(value) => {}
            _ => {
                let reason = if value.is_none() { "member_missing" } else { "member_type" };
                self.fault(clause, reason, at, &format!("`{name}` is {}", kind.phrase()));
            }
        }
    }
}

/// Keeps the first finding of each clause and reason.
fn first_of_each(found: Vec<Finding>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let is_first = |finding: &Finding| seen.insert((finding.clause.0.clone(), finding.reason.clone()));
    let mut is_first = is_first;
    found.into_iter().filter(|finding| is_first(finding)).collect()
}

/// Types of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Object,
    Array,
    Bool,
    Number,
}

impl Kind {
    fn is(self, value: &Json) -> bool {
        match self {
            Self::Text => value.as_str().is_some(),
            Self::Object => value.as_object().is_some(),
            Self::Array => value.as_array().is_some(),
            Self::Bool => value.as_bool().is_some(),
            Self::Number => value.as_number().is_some(),
        }
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Bool => "a boolean",
            Self::Number => "a number",
        }
    }
}

/// Presence of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

/// Results of a method in one session, each with its request.
fn results<'a>(
    heard: &SessionTrace<'a, Server>,
    method: &str,
) -> Vec<(&'a PlacedExpectation<Server>, &'a RequestPart, &'a Json)> {
    let of_method = heard.answers().filter(|(_, unit, _)| unit.extra.method.as_deref() == Some(method));
    // A result that is not an object, or that stands beside an error, breaks the form of messages, and nothing else.
    let result = |message: &'a Json| {
        let is_only = message.get("error").is_none_or(Json::is_null);
        message.get("result").filter(|result| is_only && result.as_object().is_some())
    };
    of_method.filter_map(|(asked, unit, answer)| Some((asked, unit, result(answer.message)?))).collect()
}

/// Revision of a session: that of its opening, else that of the probe.
fn revision_of(trace: &Trace<'_, Server>, session: usize) -> Revision {
    let opened = trace.state.session(session).and_then(|session| session.revision);
    opened.or_else(|| ServerKnowledge::of(&trace.transcript.facts).revision()).unwrap_or(NEWEST)
}

/// Removes findings about clauses that the revision of the conversation lacks.
pub(crate) fn keep_those_of_revision(transcript: &Transcript, judgement: &mut Judgement) {
    if judgement.findings.is_empty() {
        return;
    }
    let revision =
        spoken(transcript).or_else(|| ServerKnowledge::of(&transcript.facts).revision()).unwrap_or(NEWEST);
    let row = |finding: &Finding| {
        let rows: &'static [Clause] = super::boundary().clauses();
        rows.iter().find(|clause| clause.id == finding.clause)
    };
    judgement.findings.retain(|finding| row(finding).is_none_or(|clause| revision.has(clause)));
}

/// Revision that the last opening of a conversation agreed on.
fn spoken(transcript: &Transcript) -> Option<Revision> {
    let out = transcript.stdout(0);
    let messages = peerproof_json_rpc::frames::messages(&out, 100);
    let dates = messages.iter().filter_map(|message| message.pointer("/result/protocolVersion"));
    dates.filter_map(|date| Revision::of(date.as_str()?)).next_back()
}

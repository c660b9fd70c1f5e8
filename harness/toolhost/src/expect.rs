//! Expected replies of a step in a toolhost conversation, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars, shorten};

/// Allowed outcomes of one request. `Step::expect` stores one of these, or an array with one per line of the payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Clause that is broken if no allowed outcome fits, no reply comes, or the peer dies.
    pub clause: ClauseId,
    /// Allowed outcomes.
    pub allowed: Vec<Allowed>,
    /// Reason code for a reply that fits none of them. The default is derived from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Key of the open choice that this step reveals. The fitting alternative has the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Clause that is broken if the request is skipped or answered more than once; `None` for `clause` and the general
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<ClauseId>,
    /// Clause that output beside the replies breaks in this conversation; `None` for the general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stray: Option<ClauseId>,
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Kind of reply.
    pub outcome: Outcome,
    /// JSON text that `output_json` must equal as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Expected `output_json` as a recipe, for large outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Payload>,
    /// Expected `idempotent_hit`; `false` also allows its absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<bool>,
    /// Demands on other members of the reply, by JSON Pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Match>,
    /// Demands on parts of the value in `output_json`, by JSON Pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub output_members: BTreeMap<String, Match>,
    /// Value of the open choice that this outcome reveals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// Kinds of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// `ok:true`.
    Ok,
    /// `ok:false`: a host error or a tool's own refusal.
    Refused,
    /// `ok:false` with status `TOOL_ERROR`.
    ToolError,
    /// `ok:false` with error `lease_required`, an integer `tier` and the `aid`.
    LeaseRequired,
    /// `ok:false` with error `lease_rejected` and a non-empty `reason`.
    LeaseRejected,
    /// Any well-formed reply.
    Any,
    /// One reply with any content. The general rules still apply.
    Reply,
    /// No reply; the session goes on.
    Silence,
    /// No reply; the session ends in order with status 0.
    EndsInOrder,
    /// No reply; the process exits at once with a status other than 0 or by a signal.
    Dies,
}

/// Demand on a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Equal to this JSON text as a value.
    Equals(String),
    /// Equal to one of these JSON texts.
    OneOf(Vec<String>),
    /// A string that contains this, in any letter case.
    Contains(String),
    /// A string that does not contain this.
    Lacks(String),
    /// This string, as a recipe for large texts.
    Text(Payload),
    /// An integer.
    Integer,
    /// A number of any sort.
    Number,
    /// A non-empty string.
    NonEmptyString,
    /// Absent.
    Absent,
}

impl Expect {
    /// One outcome for `clause`.
    pub fn new(clause: impl Into<ClauseId>, allowed: Allowed) -> Self {
        Self::any_of(clause, vec![allowed])
    }

    /// Any one of several outcomes for `clause`.
    pub(crate) fn any_of(clause: impl Into<ClauseId>, allowed: Vec<Allowed>) -> Self {
        Self { clause: clause.into(), allowed, reason: None, choice: None, once: None, stray: None }
    }

    /// Success with any output.
    pub fn ok(clause: &str) -> Self {
        Self::new(clause, Allowed::of(Outcome::Ok))
    }

    /// Success with this output (JSON text, compared as a value).
    pub fn output(clause: &str, output: impl Into<String>) -> Self {
        Self::new(clause, Allowed::output(output))
    }

    /// Success with an output that has at least the members of this JSON object.
    pub(crate) fn holding(clause: &str, output: &str) -> Self {
        Self::new(clause, Allowed::holding(output))
    }

    /// Success with `{"count":n}`: the `count`th execution of a counting tool.
    pub fn count(clause: &str, count: u64) -> Self {
        Self::new(clause, Allowed::count(count))
    }

    /// `ok:false`.
    pub fn refused(clause: &str) -> Self {
        Self::new(clause, Allowed::of(Outcome::Refused))
    }

    /// Adds another allowed outcome.
    #[must_use]
    pub fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Sets the reason code for a wrong reply.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Sets the open choice that the alternatives reveal.
    #[must_use]
    pub fn choice(mut self, key: &str) -> Self {
        self.choice = Some(key.to_owned());
        self
    }

    /// Sets the clause that demands exactly one reply.
    #[must_use]
    pub fn once(mut self, clause: &str) -> Self {
        self.once = Some(clause.into());
        self
    }

    /// Sets the clause that output beside the replies breaks in this conversation.
    #[must_use]
    pub fn stray(mut self, clause: &str) -> Self {
        self.stray = Some(clause.into());
        self
    }

    /// True if a missing reply is allowed.
    pub(crate) fn may_be_silent(&self) -> bool {
        self.allowed
            .iter()
            .any(|a| matches!(a.outcome, Outcome::Silence | Outcome::EndsInOrder | Outcome::Dies))
    }

    /// True if a missing reply is allowed while later requests are answered.
    pub(crate) fn may_be_passed_over(&self) -> bool {
        self.allowed.iter().any(|allowed| allowed.outcome == Outcome::Silence)
    }

    /// True if the session may end here, so that later requests get no answer.
    pub fn may_end(&self) -> bool {
        self.allowed.iter().any(|a| matches!(a.outcome, Outcome::EndsInOrder | Outcome::Dies))
    }

    /// First alternative that fits a missing reply. `ended` is the exit of the session, if it ended.
    pub(crate) fn silence(
        &self,
        ended: Option<peerproof_engine::data::transcript::Exit>,
    ) -> Option<&Allowed> {
        use peerproof_engine::data::transcript::Exit;
        self.allowed.iter().find(|allowed| match allowed.outcome {
            Outcome::Silence => ended.is_none_or(|exit| exit == Exit::Code(0)),
            Outcome::EndsInOrder => ended == Some(Exit::Code(0)),
            Outcome::Dies => ended.is_some_and(|exit| exit != Exit::Code(0)),
            _ => false,
        })
    }

    /// The first alternative that a reply fits.
    pub(crate) fn fit(&self, reply: &Json) -> Option<&Allowed> {
        self.allowed.iter().find(|allowed| allowed.misfit(reply).is_none())
    }

    /// Reason code for a reply that fits no alternative, and its wrong member, if that decides.
    pub(crate) fn misfit(&self, reply: &Json) -> (String, String) {
        let mut misfits: Vec<(&'static str, Option<Place<'_>>)> =
            self.allowed.iter().filter_map(|allowed| allowed.misfit(reply)).collect();
        // The closest alternative is the most informative: a wrong output says more than a wrong kind of reply.
        misfits.sort_by_key(|(code, _)| matches!(*code, "accepted" | "refused" | "replied"));
        let (code, place) = misfits.into_iter().next().unwrap_or(("unexpected", None));
        let phrase = place.map(|place| place.phrase(reply)).unwrap_or_default();
        (self.reason.clone().unwrap_or_else(|| code.to_owned()), phrase)
    }

    /// Expectation in one phrase.
    pub fn phrase(&self) -> String {
        let phrases: Vec<String> = self.allowed.iter().map(Allowed::phrase).collect();
        phrases.join(", or ")
    }
}

impl Allowed {
    /// A reply of this kind.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            output: None,
            recipe: None,
            hit: None,
            members: BTreeMap::new(),
            output_members: BTreeMap::new(),
            choice: None,
        }
    }

    /// Success with this output.
    pub fn output(output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..Self::of(Outcome::Ok) }
    }

    /// Success with an output that has at least the members of this JSON object. A role defines its tool's answer, but
    /// does not exclude other members.
    pub(crate) fn holding(output: &str) -> Self {
        let members = parse(output).and_then(|output| output.into_object().ok()).unwrap_or_default();
        members.into_iter().fold(Self::of(Outcome::Ok), |allowed, (name, value)| {
            allowed.output_member(&format!("/{name}"), Match::Equals(value.to_text()))
        })
    }

    /// Success with an output (JSON text) given as a recipe.
    pub(crate) fn large_output(output: Payload) -> Self {
        Self { recipe: Some(output), ..Self::of(Outcome::Ok) }
    }

    /// Success with `{"count":n}`.
    pub fn count(count: u64) -> Self {
        Self::of(Outcome::Ok).output_member("/count", Match::Equals(count.to_string()))
    }

    /// Adds a demand on a part of the output.
    #[must_use]
    pub(crate) fn output_member(mut self, pointer: &str, what: Match) -> Self {
        self.output_members.insert(pointer.to_owned(), what);
        self
    }

    /// Demands or forbids `idempotent_hit`.
    #[must_use]
    pub(crate) fn hit(mut self, hit: bool) -> Self {
        self.hit = Some(hit);
        self
    }

    /// Adds a demand on a member.
    #[must_use]
    pub fn member(mut self, pointer: &str, what: Match) -> Self {
        self.members.insert(pointer.to_owned(), what);
        self
    }

    /// Sets the value of the open choice that this outcome reveals.
    #[must_use]
    pub fn shows(mut self, value: &str) -> Self {
        self.choice = Some(value.to_owned());
        self
    }

    /// Reason code if `reply` does not fit, and the place of the wrong member, if that decides.
    fn misfit(&self, reply: &Json) -> Option<(&'static str, Option<Place<'_>>)> {
        let ok = reply.get("ok").and_then(Json::as_bool);
        let error = reply.get("error").and_then(Json::as_str).unwrap_or_default();
        let code = |code: &'static str| Some((code, None));
        match self.outcome {
            Outcome::Ok if ok != Some(true) => return code("refused"),
            Outcome::Refused if ok != Some(false) => return code("accepted"),
            Outcome::ToolError if ok != Some(false) => return code("accepted"),
            Outcome::ToolError if reply.get("status").and_then(Json::as_str) != Some("TOOL_ERROR") => {
                return code("no_tool_error");
            }
            Outcome::LeaseRequired | Outcome::LeaseRejected if ok != Some(false) => {
                return code("lease_not_enforced");
            }
            Outcome::LeaseRequired => {
                if error != "lease_required" {
                    return code("not_lease_required");
                }
                if !Match::Integer.holds(reply.get("tier")) || !Match::NonEmptyString.holds(reply.get("aid"))
                {
                    return code("lease_members");
                }
            }
            Outcome::LeaseRejected => {
                if error != "lease_rejected" {
                    return code("not_lease_rejected");
                }
                if !Match::NonEmptyString.holds(reply.get("reason")) {
                    return code("lease_members");
                }
            }
            Outcome::Silence | Outcome::EndsInOrder | Outcome::Dies => return code("replied"),
            Outcome::Any if ok.is_none() => return code("not_a_reply"),
            Outcome::Ok | Outcome::Refused | Outcome::ToolError | Outcome::Any | Outcome::Reply => {}
        }
        if let Some(hit) = self.hit {
            let member = reply.get("idempotent_hit");
            if hit && member != Some(&Json::Bool(true)) {
                return code("no_hit");
            }
            if !hit && !matches!(member, None | Some(Json::Bool(false))) {
                return code("false_hit");
            }
        }
        let demands_value = self.output.is_some() || self.recipe.is_some();
        if demands_value || !self.output_members.is_empty() {
            let text = reply.get("output_json").and_then(Json::as_str);
            if self.output_members.is_empty() && self.output.is_some() && text == self.output.as_deref() {
                // The demanded text itself is this value, if it is JSON.
                if !text.is_some_and(is_strict) {
                    return code("wrong_output");
                }
                return self.member_misfit(reply);
            }
            let got = text.and_then(parse);
            if got.is_none() || (demands_value && got != self.expected_output()) {
                return code("wrong_output");
            }
            for (pointer, what) in &self.output_members {
                if !what.holds(got.as_ref().and_then(|got| got.pointer(pointer))) {
                    return Some(("wrong_output", Some(Place::Output(pointer))));
                }
            }
        }
        self.member_misfit(reply)
    }

    fn member_misfit(&self, reply: &Json) -> Option<(&'static str, Option<Place<'_>>)> {
        let (pointer, _) = self.members.iter().find(|(pointer, what)| !what.holds(reply.pointer(pointer)))?;
        Some(("wrong_member", Some(Place::Reply(pointer))))
    }

    fn expected_output(&self) -> Option<Json> {
        match (&self.output, &self.recipe) {
            (Some(text), _) => parse(text),
            (None, Some(recipe)) => {
                let bytes = recipe.expand(&Vars::new()).ok()?;
                json::decode(&bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value)
            }
            (None, None) => None,
        }
    }

    fn phrase(&self) -> String {
        let mut text = match self.outcome {
            Outcome::Ok => "ok:true".to_owned(),
            Outcome::Refused => "ok:false".to_owned(),
            Outcome::ToolError => "ok:false with status TOOL_ERROR".to_owned(),
            Outcome::LeaseRequired => "lease_required with an integer tier and the aid".to_owned(),
            Outcome::LeaseRejected => "lease_rejected with a reason".to_owned(),
            Outcome::Any => "a well-formed reply".to_owned(),
            Outcome::Reply => "one reply".to_owned(),
            Outcome::Silence => "no reply".to_owned(),
            Outcome::EndsInOrder => "the end of the session with exit status 0".to_owned(),
            Outcome::Dies => "an immediate end with a non-zero status".to_owned(),
        };
        if let Some(output) = &self.output {
            text.push_str(&format!(" with output {output}"));
        }
        if let Some(recipe) = &self.recipe {
            text.push_str(&format!(" with output {}", recipe.summary(120)));
        }
        match self.hit {
            Some(true) => text.push_str(" and idempotent_hit:true"),
            Some(false) => text.push_str(" and no idempotent_hit"),
            None => {}
        }
        for (pointer, what) in &self.output_members {
            text.push_str(&format!(", {pointer} of the output {}", what.phrase()));
        }
        for (pointer, what) in &self.members {
            text.push_str(&format!(", {pointer} {}", what.phrase()));
        }
        text
    }
}

/// Place of a wrong member: a JSON Pointer into the output or into the reply.
#[derive(Clone, Copy)]
enum Place<'a> {
    Output(&'a str),
    Reply(&'a str),
}

impl Place<'_> {
    /// Place and the value that it holds in `reply`, worded as by [`Match::phrase`].
    fn phrase(self, reply: &Json) -> String {
        let is = |held: Option<&Json>| {
            held.map_or_else(|| "absent".to_owned(), |value| format!("= {}", shorten(&value.to_text(), 120)))
        };
        match self {
            Self::Output(pointer) => {
                let output = reply.get("output_json").and_then(Json::as_str).and_then(parse);
                format!("{pointer} of the output {}", is(output.as_ref().and_then(|it| it.pointer(pointer))))
            }
            Self::Reply(pointer) => format!("{pointer} {}", is(reply.pointer(pointer))),
        }
    }
}

impl Match {
    /// True if a member, or its absence, satisfies the demand.
    pub fn holds(&self, value: Option<&Json>) -> bool {
        match self {
            Self::Equals(text) => value.is_some() && parse(text).as_ref() == value,
            Self::OneOf(texts) => value.is_some() && texts.iter().any(|text| parse(text).as_ref() == value),
            Self::Contains(part) => value
                .and_then(Json::as_str)
                .is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase())),
            Self::Lacks(part) => value.and_then(Json::as_str).is_none_or(|text| !text.contains(part)),
            Self::Text(recipe) => value
                .and_then(Json::as_str)
                .is_some_and(|text| recipe.expand(&Vars::new()).is_ok_and(|bytes| bytes == text.as_bytes())),
            Self::Integer => match value {
                Some(Json::Number(number)) => number.is_integral(),
                _ => false,
            },
            Self::Number => matches!(value, Some(Json::Number(_))),
            Self::NonEmptyString => value.and_then(Json::as_str).is_some_and(|text| !text.is_empty()),
            Self::Absent => value.is_none(),
        }
    }

    /// Demand as a phrase.
    pub fn phrase(&self) -> String {
        match self {
            Self::Equals(text) => format!("= {text}"),
            Self::OneOf(texts) => format!("one of {}", texts.join(", ")),
            Self::Contains(part) => format!("contains {part:?}"),
            Self::Lacks(part) => format!("does not contain {part:?}"),
            Self::Text(recipe) => format!("= {:?}", recipe.summary(120)),
            Self::Integer => "an integer".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::NonEmptyString => "a non-empty string".to_owned(),
            Self::Absent => "absent".to_owned(),
        }
    }
}

/// True if a text is strict JSON.
pub(crate) fn is_strict(text: &str) -> bool {
    json::check(text.as_bytes(), &DecodeLimits::default()).is_ok()
}

/// Parses strict JSON of an expectation or an `output_json`.
pub fn parse(text: &str) -> Option<Json> {
    json::decode(text.as_bytes(), &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

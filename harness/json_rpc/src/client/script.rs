//! Scripts: the reactions of the harness as a server, as data.

use serde::{Deserialize, Serialize};

use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

/// All reactions of the server. A request without a rule is answered at once with `{"answer":REF}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// Rules of the server.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Trigger.
    pub on: Trigger,
    /// Reactions, in order.
    pub deeds: Vec<Reaction>,
}

/// Trigger of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// The client was started.
    Start,
    /// A request or notification of this call came.
    Call {
        /// Its ref.
        name: String,
        /// Only this attempt, counted from 1. A rule for one attempt takes precedence over a rule for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// The first requests of all these calls have come. Applies once.
    All(Vec<String>),
}

/// One reaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reaction {
    /// Delay after the trigger, ms.
    #[serde(default)]
    pub after_ms: u64,
    /// Action.
    pub what: ReactionAction,
}

/// Action of a reaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReactionAction {
    /// Writes a payload. Its variables are JSON texts: `id` is the id of the triggering request;
    /// `id-of-the-other-type` is that id as text if it is an integer, and as a number if it is the text of one;
    /// `id-near-N` is the `N`th near miss of that id; `id:REF` is the last id of that call; `id:REF:N` is the id of
    /// its `N`th attempt. If a variable has no value, nothing is written.
    Write {
        /// Bytes to write.
        payload: Payload,
        /// Division into chunks.
        #[serde(default)]
        chunking: Chunking,
    },
    /// Closes the client's standard input.
    HangUp,
    /// Closes it and stops reading, as a process that ends does.
    Die,
}

impl Script {
    /// True if the server goes away at some time, in either way.
    pub(crate) fn goes_away(&self) -> bool {
        self.dies() || self.deeds().any(|deed| deed.what == ReactionAction::HangUp)
    }

    /// True if the server goes away and messages of the client may be lost.
    pub(crate) fn dies(&self) -> bool {
        self.deeds().any(|deed| deed.what == ReactionAction::Die)
    }

    /// Refs of the calls that are answered together with this one.
    pub(crate) fn answered_with(&self, call: &str) -> Vec<String> {
        let together = self.rules.iter().filter_map(|rule| match &rule.on {
            Trigger::All(names) if names.iter().any(|name| name == call) => Some(names.clone()),
            _ => None,
        });
        together.flatten().collect()
    }

    fn deeds(&self) -> impl Iterator<Item = &Reaction> {
        self.rules.iter().flat_map(|rule| &rule.deeds)
    }
}

impl Reaction {
    /// Writes a line at once: text in which `$id`, `$id:REF` and `$id:REF:N`, each followed by a blank, a comma or a
    /// brace, stand for ids.
    pub(crate) fn line(text: &str) -> Self {
        Self::write(vars(&format!("{text}\n")))
    }

    /// Writes bytes at once.
    pub(crate) fn write(payload: Payload) -> Self {
        Self { after_ms: 0, what: ReactionAction::Write { payload, chunking: Chunking::Whole } }
    }

    /// Closes the client's input.
    pub(crate) fn hang_up() -> Self {
        Self { after_ms: 0, what: ReactionAction::HangUp }
    }

    /// Goes away as a process that ends does.
    pub(crate) fn die() -> Self {
        Self { after_ms: 0, what: ReactionAction::Die }
    }

    /// Delays the reaction.
    #[must_use]
    pub(crate) fn in_ms(mut self, ms: u64) -> Self {
        self.after_ms = ms;
        self
    }

    /// Writes the payload in chunks.
    #[must_use]
    pub(crate) fn cut(mut self, cut: Chunking) -> Self {
        if let ReactionAction::Write { chunking, .. } = &mut self.what {
            *chunking = cut;
        }
        self
    }
}

/// Turns each `$id…` of `text` into a variable.
pub(crate) fn vars(text: &str) -> Payload {
    let mut payload = Payload::default();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('$') {
        let end = tail.find([' ', ',', '}', ']', '"', '\n']).unwrap_or(tail.len());
        payload = payload.then(Payload::text(before)).var(&tail[..end]);
        rest = &tail[end..];
    }
    payload.then(Payload::text(rest))
}

/// Response with this result (JSON text) to the triggering request.
pub(crate) fn result(value: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"result\":{value},\"id\":$id}}")
}

/// Response with this error (JSON text of the object) to the triggering request.
pub(crate) fn error(object: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"error\":{object},\"id\":$id}}")
}

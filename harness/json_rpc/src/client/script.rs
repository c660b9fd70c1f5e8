//! Scripts: what the harness as a server says, as data.

use serde::{Deserialize, Serialize};

use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;

/// All that the server does. What no rule is about it answers at once by `{"answer":REF}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it does when.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// When.
    pub on: On,
    /// What.
    pub deeds: Vec<Deed>,
}

/// What makes a rule apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The client was started.
    Start,
    /// A request or notification of this call came.
    Call {
        /// Its ref.
        name: String,
        /// Only for this attempt, from 1 on; a rule for one stands above a rule for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// The first requests of all these calls have come; once.
    All(Vec<String>),
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deed {
    /// So long after what made the rule apply, ms.
    #[serde(default)]
    pub after_ms: u64,
    /// What.
    pub what: What,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Write. Variables: `id` is the id of the request that made the rule apply, `id-of-the-other-type` the same as text
    /// where it is an integer and as a number where it is the text of one, `id-near-N` the `N`th of what is nearly that id, `id:REF` the last one of that call,
    /// `id:REF:N` that of its `N`th attempt; all as JSON texts. Without a value for one nothing is written.
    Write {
        /// The bytes.
        payload: Payload,
        /// How to cut them.
        #[serde(default)]
        chunking: Chunking,
    },
    /// Close the client's standard input.
    HangUp,
    /// Close it and read no more: a process that ended.
    Die,
}

impl Script {
    /// Whether the server goes away at some time, in either way.
    pub fn goes_away(&self) -> bool {
        self.dies() || self.deeds().any(|deed| deed.what == What::HangUp)
    }

    /// Whether the server goes away in such a way that what the client sends may be lost.
    pub fn dies(&self) -> bool {
        self.deeds().any(|deed| deed.what == What::Die)
    }

    /// Refs of the calls that are answered together with this one.
    pub fn answered_with(&self, call: &str) -> Vec<String> {
        let together = self.rules.iter().filter_map(|rule| match &rule.on {
            On::All(names) if names.iter().any(|name| name == call) => Some(names.clone()),
            _ => None,
        });
        together.flatten().collect()
    }

    fn deeds(&self) -> impl Iterator<Item = &Deed> {
        self.rules.iter().flat_map(|rule| &rule.deeds)
    }
}

impl Deed {
    /// Writes a line at once: text in which `$id`, `$id:REF` and `$id:REF:N`, each followed by a blank, a comma or a
    /// brace, stand for ids.
    pub fn line(text: &str) -> Self {
        Self::write(vars(&format!("{text}\n")))
    }

    /// Writes bytes at once.
    pub fn write(payload: Payload) -> Self {
        Self { after_ms: 0, what: What::Write { payload, chunking: Chunking::Whole } }
    }

    /// Closes the client's input.
    pub fn hang_up() -> Self {
        Self { after_ms: 0, what: What::HangUp }
    }

    /// Goes away as a process that ends does.
    pub fn die() -> Self {
        Self { after_ms: 0, what: What::Die }
    }

    /// Does it later.
    #[must_use]
    pub fn in_ms(mut self, ms: u64) -> Self {
        self.after_ms = ms;
        self
    }

    /// Writes it in chunks.
    #[must_use]
    pub fn cut(mut self, cut: Chunking) -> Self {
        if let What::Write { chunking, .. } = &mut self.what {
            *chunking = cut;
        }
        self
    }
}

/// A payload in which `$id…` are variables.
pub fn vars(text: &str) -> Payload {
    let mut payload = Payload::default();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('$') {
        let end = tail.find([' ', ',', '}', ']', '"', '\n']).unwrap_or(tail.len());
        payload = payload.then(Payload::text(before)).var(&tail[..end]);
        rest = &tail[end..];
    }
    payload.then(Payload::text(rest))
}

/// A response with this result (JSON text) to the request at hand.
pub fn result(value: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"result\":{value},\"id\":$id}}")
}

/// An error (JSON text of the object) for the request at hand.
pub fn error(object: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"error\":{object},\"id\":$id}}")
}

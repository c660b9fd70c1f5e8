//! Choices that an outcome of a driver or selector shows.

use serde::{Deserialize, Serialize};

use peerproof_engine::data::finding::ChoiceSeen;

/// Choice whose value is shown by the allowed outcome that came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Key under `[choices]`.
    pub key: String,
    /// Value of each allowed outcome, in order; empty text: the outcome shows nothing.
    pub values: Vec<String>,
}

impl Choice {
    /// The choice `key` with the value of each allowed outcome.
    pub fn new(key: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Self { key: key.to_owned(), values }
    }

    /// Value shown by the allowed outcome with this index.
    pub fn seen(&self, place: usize) -> Option<ChoiceSeen> {
        let value = self.values.get(place).filter(|value| !value.is_empty())?;
        Some(ChoiceSeen { pinned: false, key: self.key.clone(), value: value.clone() })
    }
}

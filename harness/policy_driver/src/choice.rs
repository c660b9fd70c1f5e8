//! A choice that an outcome shows, of a driver or of a selector.

use serde::{Deserialize, Serialize};

use peerproof_engine::finding::ChoiceSeen;

/// Which of the allowed outcomes of an expectation came is the value of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Key under `[choices]`.
    pub key: String,
    /// One value for each allowed outcome, in order; an empty one shows nothing.
    pub values: Vec<String>,
}

impl Choice {
    /// The choice `key`, with the value that each allowed outcome shows.
    pub fn new(key: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Self { key: key.to_owned(), values }
    }

    /// What the outcome at this place among the allowed ones shows.
    pub fn seen(&self, place: usize) -> Option<ChoiceSeen> {
        let value = self.values.get(place).filter(|value| !value.is_empty())?;
        Some(ChoiceSeen { pinned: false, key: self.key.clone(), value: value.clone() })
    }
}

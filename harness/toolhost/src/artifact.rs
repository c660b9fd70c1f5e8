//! Artifacts: contents of the slots of a state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::expect::Match;
use super::frames::quoted;
use peerproof_engine::data::json::Json;

/// An artifact. Its content determines its `size_bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Member `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Member `provenance`.
    pub provenance: String,
    /// Member `content_json`: any string.
    pub content_json: String,
}

/// Slots by name (`"0"` to `"7"`). Empty ones are absent.
pub(crate) type Slots = BTreeMap<String, Artifact>;

impl Artifact {
    /// Creates an artifact with this content.
    pub fn new(content_json: &str) -> Self {
        Self {
            kind: "peerproof.note".to_owned(),
            provenance: "peerproof".to_owned(),
            content_json: content_json.to_owned(),
        }
    }

    /// Reads an artifact of a peer; `None` if a member is missing.
    pub fn read(artifact: &Json) -> Option<Self> {
        let text = |name: &str| artifact.get(name).and_then(Json::as_str).map(str::to_owned);
        Some(Self {
            kind: text("type")?,
            provenance: text("provenance")?,
            content_json: text("content_json")?,
        })
    }

    /// The JSON object.
    pub fn text(&self) -> String {
        self.sized(&self.content_json.len().to_string())
    }

    /// The JSON object with this JSON text as `size_bytes`.
    pub(crate) fn sized(&self, size_bytes: &str) -> String {
        format!(
            "{{\"type\":{},\"provenance\":{},\"content_json\":{},\"size_bytes\":{size_bytes}}}",
            quoted(&self.kind),
            quoted(&self.provenance),
            quoted(&self.content_json),
        )
    }

    /// Demands on the members of this artifact at `pointer`.
    pub(super) fn members(&self, pointer: &str) -> [(String, Match); 4] {
        let at = |name: &str| format!("{pointer}/{name}");
        [
            (at("type"), Match::Equals(quoted(&self.kind))),
            (at("provenance"), Match::Equals(quoted(&self.provenance))),
            (at("content_json"), Match::Equals(quoted(&self.content_json))),
            (at("size_bytes"), Match::Equals(self.content_json.len().to_string())),
        ]
    }
}

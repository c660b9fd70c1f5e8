//! Requests for a decision: the object that a selector reads as a line and a driver as its payload.

use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;

/// Control mode in which a driver is started (`policy` §1).
pub(crate) const POLICY_ONLY: &str = "POLICY_ONLY";

/// Control mode in which no driver is started (`policy` §3a).
pub const FALLBACK_ONLY: &str = "FALLBACK_ONLY";

/// One entry of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `SID` and four digits.
    pub sid: String,
    /// Aid of the tool.
    pub aid: String,
    /// Human-readable name.
    pub name: String,
    /// Tags.
    pub tags: Vec<String>,
}

impl Entry {
    /// A plain entry.
    pub fn plain(number: u32) -> Self {
        Self {
            sid: format!("SID{number:04}"),
            aid: format!("AID.PEERPROOF.T{number}.v1"),
            name: format!("tool {number}"),
            tags: vec!["peerproof".to_owned()],
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the tags.
    #[must_use]
    pub(crate) fn tagged(mut self, tags: &[&str]) -> Self {
        self.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self
    }

    /// The entry as JSON.
    pub fn json(&self) -> Json {
        Json::object([
            ("sid", Json::from(self.sid.as_str())),
            ("aid", Json::from(self.aid.as_str())),
            ("name", Json::from(self.name.as_str())),
            ("tags", Json::array(self.tags.iter().map(|tag| Json::from(tag.as_str())))),
        ])
    }
}

/// A request under construction. Members can be removed, replaced and added.
#[derive(Debug, Clone)]
pub struct Request(pub Json);

impl Request {
    /// A plain request with this menu.
    pub fn of(menu: &[Entry]) -> Self {
        Self(Json::object([
            ("goal_digest", Json::from("goal.peerproof|0123456789abcdef|FLAGS:")),
            ("state_digest", Json::from("0123456789abcdef")),
            ("control_mode", Json::from(POLICY_ONLY)),
            ("inputs", Json::object([("query", Json::from("test"))])),
            ("menu", Json::array(menu.iter().map(Entry::json))),
        ]))
    }

    /// A plain request with a menu of four. Drivers pick SID0042 or SID0007. A fallback will probably pick another
    /// one, because these are neither first nor last, have neither the smallest nor the largest SID, and not the
    /// longest name.
    pub fn plain() -> Self {
        Self::of(&[3, 7, 42, 977].map(Entry::plain))
    }

    /// Sets a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.set(name, value);
        self
    }

    /// Removes a member.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Sets the inputs (JSON text of an object).
    ///
    /// # Panics
    /// The text is not JSON, which is a mistake in a check.
    #[must_use]
    pub fn inputs(self, text: &str) -> Self {
        let value = text.parse::<Json>().unwrap_or_else(|error| unreachable!("{text}: {error}"));
        self.with("inputs", value)
    }

    /// Sets the control mode.
    #[must_use]
    pub fn mode(self, mode: &str) -> Self {
        self.with("control_mode", mode)
    }

    /// Compact JSON text.
    pub fn text(&self) -> String {
        self.0.to_text()
    }

    /// JSON text with a line feed.
    pub fn line(&self) -> Payload {
        Payload::text(self.text() + "\n")
    }
}

/// SIDs in the menu of a request, in order; empty without a menu.
pub(crate) fn sids(request: &Json) -> Vec<&str> {
    let menu = match request.get("menu") {
        Some(Json::Array(menu)) => menu.as_slice(),
        _ => &[],
    };
    menu.iter().filter_map(|entry| entry.get("sid")?.as_str()).collect()
}

//! DSState: eight slots, each empty or with an artifact.

use peerproof_engine::data::json::Json;

/// Number of slots.
pub(crate) const SLOTS: usize = 8;

/// Content of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// `type`.
    pub kind: String,
    /// `provenance`.
    pub provenance: String,
    /// `content_json`, not re-encoded.
    pub content_json: String,
    /// `size_bytes` as given, possibly wrong.
    pub size_bytes: u64,
}

/// A state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State(pub [Option<Artifact>; SLOTS]);

impl Artifact {
    /// An artifact with the right size.
    pub fn new(kind: &str, provenance: &str, content_json: &str) -> Self {
        let (kind, provenance) = (kind.to_owned(), provenance.to_owned());
        Self {
            kind,
            provenance,
            size_bytes: content_json.len() as u64,
            content_json: content_json.to_owned(),
        }
    }

    /// Reads an artifact with all four members.
    ///
    /// # Errors
    /// Names the absent or wrong member.
    pub fn read(value: &Json) -> Result<Self, &'static str> {
        let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
        Ok(Self {
            kind: text("type").ok_or("`type` of an Artifact is not a string")?,
            provenance: text("provenance").ok_or("`provenance` of an Artifact is not a string")?,
            content_json: text("content_json").ok_or("`content_json` of an Artifact is not a string")?,
            size_bytes: value
                .get("size_bytes")
                .and_then(Json::as_u64)
                .ok_or("`size_bytes` of an Artifact is not an integer of at least 0")?,
        })
    }

    /// True if `size_bytes` is the length of `content_json`.
    pub(crate) fn has_right_size(&self) -> bool {
        self.size_bytes == self.content_json.len() as u64
    }

    /// The artifact as JSON.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("type", Json::from(self.kind.as_str())),
            ("provenance", self.provenance.as_str().into()),
            ("content_json", self.content_json.as_str().into()),
            ("size_bytes", self.size_bytes.into()),
        ])
    }
}

/// Slot in the path of a `tx_patch` item.
pub(crate) fn slot_of(item: &Json) -> Option<usize> {
    match item.get("path")?.as_str()?.strip_prefix("/slots/")?.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(usize::from(digit - b'0')),
        _ => None,
    }
}

impl State {
    /// Reads a full state.
    ///
    /// # Errors
    /// Describes the fault: it is malformed, or a delta.
    pub fn read(value: &Json) -> Result<Self, &'static str> {
        let mut state = Self::default();
        match value.get("delta") {
            None | Some(Json::Bool(false)) => state.change(value).map(|()| state),
            _ => Err("a delta instead of a full state"),
        }
    }

    /// Applies a full state or a delta. A malformed one changes nothing.
    ///
    /// # Errors
    /// Describes the fault.
    pub fn change(&mut self, value: &Json) -> Result<(), &'static str> {
        value.as_object().ok_or("the state is not an object")?;
        let is_delta = value.get("delta").and_then(Json::as_bool) == Some(true);
        let mut next = if is_delta { self.clone() } else { Self::default() };
        let slots = match value.get("slots") {
            None => &[],
            Some(slots) => slots.as_object().ok_or("`slots` is not an object")?,
        };
        for (slot, artifact) in slots {
            let place =
                slot.parse().ok().filter(|_| slot.len() == 1).and_then(|at: usize| next.0.get_mut(at));
            *place.ok_or("the name of a slot is not from 0 to 7")? = Some(Artifact::read(artifact)?);
        }
        for slot in value.get("removed_slots").and_then(Json::as_array).unwrap_or_default() {
            let place = slot.as_u64().and_then(|slot| next.0.get_mut(usize::try_from(slot).ok()?));
            *place.ok_or("a removed slot is not from 0 to 7")? = None;
        }
        *self = next;
        Ok(())
    }

    /// Applies a `tx_patch` item by its apparent meaning, however malformed.
    pub fn follow(&mut self, item: &Json) {
        let path = item.get("path").and_then(Json::as_str).and_then(|path| path.strip_prefix("/slots/"));
        let slot = path.and_then(|slot| slot.parse().ok()).and_then(|at: usize| self.0.get_mut(at));
        if let Some(slot) = slot {
            *slot = item.get("value").and_then(|value| Artifact::read(value).ok());
        }
    }

    /// The full state as JSON.
    pub fn to_json(&self) -> Json {
        Json::object([("slots", Json::object(self.used()))])
    }

    /// Delta from `before` to this state, as JSON.
    pub(crate) fn delta_from(&self, before: &Self) -> Json {
        let is_new = |slot: &String| slot.parse().ok().is_some_and(|at: usize| self.0[at] != before.0[at]);
        let set = self.used().filter(|(slot, _)| is_new(slot));
        let gone = (0..SLOTS).filter(|at| self.0[*at].is_none() && before.0[*at].is_some());
        Json::object([
            ("delta", true.into()),
            ("slots", Json::object(set)),
            ("removed_slots", Json::array(gone)),
        ])
    }

    /// Smallest `tx_patch` from `before` to this state.
    pub(crate) fn patch_from(&self, before: &Self) -> Json {
        let changed = (0..SLOTS).filter(|at| self.0[*at] != before.0[*at]);
        Json::Array(
            changed
                .map(|at| {
                    let path = Json::from(format!("/slots/{at}"));
                    match (&before.0[at], &self.0[at]) {
                        (_, None) => Json::object([("op", Json::from("remove")), ("path", path)]),
                        (before, Some(held)) => {
                            let op = if before.is_none() { "add" } else { "replace" };
                            Json::object([("op", op.into()), ("path", path), ("value", held.to_json())])
                        }
                    }
                })
                .collect(),
        )
    }

    fn used(&self) -> impl Iterator<Item = (String, Json)> {
        let used = self.0.iter().enumerate();
        used.filter_map(|(slot, held)| Some((slot.to_string(), held.as_ref()?.to_json())))
    }
}

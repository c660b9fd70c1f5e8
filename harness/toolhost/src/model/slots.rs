//! Knowledge about the eight slots, and the effect of a `ds_state`.

use std::rc::Rc;

use super::pins::Pins;
use peerproof_engine::data::json::Json;

/// Knowledge about one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    Empty(EmptiedBy),
    /// The artifact is shared, because the model keeps the states before and after every request.
    Holds(Rc<Artifact>),
    Unknown,
}

impl Slot {
    /// Slot that no `ds_state` emptied.
    pub(super) const EMPTY: Self = Self::Empty(EmptiedBy(None));
}

/// Clause about the `ds_state` that emptied a slot, which an artifact shown there breaks. Equal for all empty slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmptiedBy(pub Option<&'static str>);

impl PartialEq for EmptiedBy {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EmptiedBy {}

/// An artifact. Its content determines its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Artifact {
    pub kind: String,
    pub provenance: String,
    pub content: String,
}

impl Artifact {
    /// The artifact as JSON.
    pub(super) fn to_json(&self) -> Json {
        Json::object([
            ("type", Json::from(self.kind.as_str())),
            ("provenance", Json::from(self.provenance.as_str())),
            ("content_json", Json::from(self.content.as_str())),
            ("size_bytes", Json::from(self.content.len())),
        ])
    }
}

pub(super) type Slots = [Slot; 8];

pub(super) fn unknown() -> Slots {
    std::array::from_fn(|_| Slot::Unknown)
}

pub(super) fn empty() -> Slots {
    std::array::from_fn(|_| Slot::EMPTY)
}

pub(super) fn known(slots: &Slots) -> bool {
    !slots.contains(&Slot::Unknown)
}

/// Slots on which both states agree; all others are unknown.
pub(super) fn merge(left: &Slots, right: &Slots) -> Slots {
    std::array::from_fn(|at| if left[at] == right[at] { left[at].clone() } else { Slot::Unknown })
}

/// Effect of an accepted `ds_state`.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// True if all other slots are emptied.
    full: bool,
    /// True if all slots are unknown afterwards.
    blurred: bool,
    slots: [Option<Slot>; 8],
    /// Clause for which a peer may refuse it.
    pub may_refuse: Option<&'static str>,
}

impl Change {
    pub(super) fn apply(&self, before: &Slots) -> Slots {
        if self.blurred {
            return unknown();
        }
        std::array::from_fn(|at| match &self.slots[at] {
            Some(slot) => slot.clone(),
            None if self.full => Slot::Empty(EmptiedBy(Some("TH-STATE-03"))),
            None => before[at].clone(),
        })
    }
}

const SHAPE: &str = "TH-STATE-08";
const SLOT: &str = "TH-STATE-07";

/// Reads the `ds_state` of a request. `doubtful` is true if the request has duplicate names or lone surrogates, so
/// that readers disagree.
///
/// # Errors
/// Clause for which every peer refuses it.
pub(super) fn read(state: &Json, doubtful: bool, pins: &Pins) -> Result<Change, &'static str> {
    let blurred = |clause| Change {
        full: false,
        blurred: true,
        slots: std::array::from_fn(|_| None),
        may_refuse: Some(clause),
    };
    if doubtful || !pins.ds_state {
        return Ok(blurred("TH-JSON-07"));
    }
    let mut change =
        Change { full: true, blurred: false, slots: std::array::from_fn(|_| None), may_refuse: None };
    match state.get("delta") {
        None => {}
        Some(Json::Bool(delta)) => change.full = !delta,
        Some(_) => {
            change.blurred = true;
            change.may_refuse = Some("TH-STATE-13");
        }
    }
    match state.get("slots") {
        None => {}
        Some(Json::Null) => change.may_refuse = Some(SHAPE),
        Some(Json::Object(slots)) => {
            for (name, artifact) in slots {
                let [digit @ b'0'..=b'7'] = name.as_bytes() else { return Err(SLOT) };
                let slot = read_artifact(artifact, pins, &mut change.may_refuse)?;
                change.slots[usize::from(digit - b'0')] = Some(slot);
            }
        }
        Some(_) => return Err(SHAPE),
    }
    match state.get("removed_slots") {
        None => {}
        Some(removed) if change.full || change.blurred => {
            change.may_refuse = Some("TH-STATE-14");
            for item in removed.as_array().unwrap_or_default() {
                if let Some(slot) = number(item).filter(|at| change.slots[*at].is_some()) {
                    change.slots[slot] = Some(Slot::Unknown);
                }
            }
        }
        Some(Json::Array(removed)) => {
            for item in removed {
                let slot = number(item).ok_or(SLOT)?;
                change.slots[slot] = match &change.slots[slot] {
                    None | Some(Slot::Empty(_)) => Some(Slot::Empty(EmptiedBy(Some("TH-STATE-04")))),
                    Some(_) => {
                        change.may_refuse = Some("TH-STATE-12");
                        Some(Slot::Unknown)
                    }
                };
            }
        }
        Some(Json::Null) => change.may_refuse = Some(SLOT),
        Some(_) => return Err(SLOT),
    }
    Ok(change)
}

/// Slot with this number.
pub(super) fn number(value: &Json) -> Option<usize> {
    value.as_u64().filter(|slot| *slot <= 7).and_then(|slot| usize::try_from(slot).ok())
}

/// Reads an artifact of a request. Sets `may_refuse` if a refusal is allowed.
///
/// # Errors
/// Clause for which every peer refuses it.
pub(super) fn read_artifact(
    value: &Json,
    pins: &Pins,
    may_refuse: &mut Option<&'static str>,
) -> Result<Slot, &'static str> {
    let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned).ok_or(SHAPE);
    let artifact =
        Artifact { kind: text("type")?, provenance: text("provenance")?, content: text("content_json")? };
    let size = value.get("size_bytes").and_then(Json::as_number).ok_or(SHAPE)?;
    if size.as_u64() != Some(artifact.content.len() as u64) {
        match pins.get("size_bytes_wrong") {
            Some("refuse") => return Err("TH-STATE-09"),
            // A negative or fractional size is never valid.
            Some("correct") if size.as_u64().is_some() => {}
            _ => *may_refuse = Some("TH-STATE-09"),
        }
    }
    Ok(Slot::Holds(Rc::new(artifact)))
}

/// State after the delta of a reply; `None` if it is malformed, which other rules judge.
pub(super) fn apply_reply(state: &Json, before: &Slots) -> Option<Slots> {
    let delta = state.get("delta").and_then(Json::as_bool) == Some(true);
    let mut after = if delta { before.clone() } else { empty() };
    if let Some(slots) = state.get("slots") {
        for (name, artifact) in slots.as_object()? {
            let [digit @ b'0'..=b'7'] = name.as_bytes() else { return None };
            let text = |name: &str| artifact.get(name).and_then(Json::as_str).map(str::to_owned);
            after[usize::from(digit - b'0')] = Slot::Holds(Rc::new(Artifact {
                kind: text("type")?,
                provenance: text("provenance")?,
                content: text("content_json")?,
            }));
        }
    }
    if let Some(removed) = state.get("removed_slots") {
        for slot in removed.as_array()? {
            after[number(slot)?] = Slot::EMPTY;
        }
    }
    Some(after)
}

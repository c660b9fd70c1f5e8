//! DSState: eight slots of artifacts, read as full states or deltas and written as either (IPC §3, contract §1).

use std::sync::Arc;

use super::choices::{Choices, OddDelta, RemovedInFull, SetAndRemoved, SizeBytesWrong};
use crate::json::{Raw, Text, Value, write_text};
use crate::refusal::Refusal;

/// Number of slots; they are numbered from 0.
pub(crate) const SLOTS: usize = 8;

/// An artifact. Its `size_bytes` is the length of `content_json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Member `type`.
    pub kind: Text,
    /// Member `provenance`.
    pub provenance: Text,
    /// Member `content_json`: any string.
    pub content_json: Text,
}

impl Artifact {
    /// Reads an artifact. Unknown members are ignored.
    ///
    /// # Errors
    /// A sentence that names the missing or invalid member.
    pub fn from_value(value: &Value, choices: &Choices) -> Result<Self, Refusal> {
        if value.as_object().is_none() {
            return Err("an artifact must be an object".into());
        }
        let text = |name: &str| {
            let found = value.get(name).and_then(Value::as_text);
            found.cloned().ok_or_else(|| format!("an artifact needs a string {name}"))
        };
        let artifact = Self {
            kind: text("type")?,
            provenance: text("provenance")?,
            content_json: text("content_json")?,
        };
        let size = value.get("size_bytes").and_then(Value::as_i64);
        let size = size.ok_or("an artifact needs an integer size_bytes")?;
        let right = usize::try_from(size).is_ok_and(|size| size == artifact.size_bytes());
        if !right && choices.size_bytes_wrong == SizeBytesWrong::Refuse {
            return Err(
                format!("size_bytes is {size}, content_json has {} bytes", artifact.size_bytes()).into()
            );
        }
        Ok(artifact)
    }

    /// Length of `content_json` in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.content_json.as_bytes().len()
    }

    /// Appends the artifact as a JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":");
        write_text(out, &self.kind);
        out.extend_from_slice(b",\"provenance\":");
        write_text(out, &self.provenance);
        out.extend_from_slice(b",\"content_json\":");
        write_text(out, &self.content_json);
        out.extend_from_slice(format!(",\"size_bytes\":{}}}", self.size_bytes()).as_bytes());
    }
}

/// Slots of a state. They share artifacts, so that copies are cheap.
pub type Slots = [Option<Arc<Artifact>>; SLOTS];

/// A well-formed `ds_state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// True to drop the previous state.
    pub full: bool,
    /// Slots that get an artifact.
    pub set: Vec<(usize, Arc<Artifact>)>,
    /// Slots that are emptied afterwards.
    pub removed: Vec<usize>,
}

impl StateChange {
    /// Reads a `ds_state`. With `"delta":true` it lists changes, else it is the whole state. `choices` decide the
    /// treatment of a `delta` that is not a boolean, of `removed_slots` in a full state, and of a slot that a delta
    /// both sets and removes.
    ///
    /// # Errors
    /// A sentence that names the fault.
    pub fn read(raw: Raw<'_>, nesting_max: usize, choices: &Choices) -> Result<Self, Refusal> {
        let value = Value::parse(raw.text().as_bytes(), nesting_max, &choices.policy())
            .map_err(Refusal::of("ds_state"))?;
        Self::from_value(&value, choices)
    }

    /// [`StateChange::read`] from a parsed value.
    ///
    /// # Errors
    /// A sentence that names the fault.
    pub fn from_value(value: &Value, choices: &Choices) -> Result<Self, Refusal> {
        if value.as_object().is_none() {
            return Err("ds_state must be an object".into());
        }
        let full = match value.get("delta") {
            None => true,
            Some(delta) => match (delta.as_bool(), choices.delta_not_boolean) {
                (Some(delta), _) => !delta,
                (None, OddDelta::Delta) => false,
                (None, OddDelta::Full) => true,
                (None, OddDelta::Refuse) => return Err("ds_state: delta must be a boolean".into()),
            },
        };
        let mut change = Self { full, set: Vec::new(), removed: Vec::new() };
        if let Some(slots) = value.get("slots") {
            let slots = slots.as_object().ok_or("ds_state: slots must be an object")?;
            for (name, artifact) in slots {
                let slot =
                    slot_name(name).ok_or_else(|| format!("ds_state: no slot {:.40}", name.to_lossy()))?;
                let artifact = Artifact::from_value(artifact, choices)
                    .map_err(Refusal::of(format!("ds_state: slot {slot}")))?;
                change.set.push((slot, Arc::new(artifact)));
            }
        }
        if let Some(removed) = value.get("removed_slots") {
            match choices.removed_slots_in_full_state {
                RemovedInFull::Ignore if full => {}
                RemovedInFull::Refuse if full => {
                    return Err("ds_state: only a delta has removed_slots".into());
                }
                _ => change.read_removed(removed, choices)?,
            }
        }
        Ok(change)
    }

    /// Reads `removed_slots`, after the set slots.
    fn read_removed(&mut self, removed: &Value, choices: &Choices) -> Result<(), Refusal> {
        for slot in removed.as_array().ok_or("ds_state: removed_slots must be an array")? {
            let slot = slot_number(slot).ok_or("ds_state: removed_slots must hold slot numbers")?;
            if !self.full && self.set.iter().any(|(set, _)| *set == slot) {
                match choices.slot_set_and_removed {
                    SetAndRemoved::Set => continue,
                    SetAndRemoved::Removed => {}
                    SetAndRemoved::Refuse => {
                        return Err(format!("ds_state: slot {slot} is both set and removed").into());
                    }
                }
            }
            self.removed.push(slot);
        }
        Ok(())
    }
}

fn slot_name(name: &Text) -> Option<usize> {
    match name.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(usize::from(digit - b'0')),
        _ => None,
    }
}

/// Slot with this number, an integer in 0..8.
pub(crate) fn slot_number(value: &Value) -> Option<usize> {
    usize::try_from(value.as_i64()?).ok().filter(|slot| *slot < SLOTS)
}

/// Store of a session's state.
pub trait StateStore: Send {
    /// Current slots.
    fn slots(&self) -> &Slots;
    /// Applies the `ds_state` of a request.
    fn apply(&mut self, change: &StateChange);
    /// Writes a slot below [`SLOTS`] for a tool.
    fn put(&mut self, slot: usize, artifact: Arc<Artifact>);
    /// Empties a slot below [`SLOTS`] for a tool.
    fn remove(&mut self, slot: usize);
    /// Restores an earlier result of [`StateStore::slots`].
    fn restore(&mut self, slots: Slots);
}

/// The correct [`StateStore`].
#[derive(Debug, Default)]
pub struct MemoryState {
    slots: Slots,
}

impl StateStore for MemoryState {
    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn apply(&mut self, change: &StateChange) {
        if change.full {
            self.slots = Slots::default();
        }
        for (slot, artifact) in &change.set {
            self.put(*slot, Arc::clone(artifact));
        }
        for slot in &change.removed {
            self.remove(*slot);
        }
    }

    fn put(&mut self, slot: usize, artifact: Arc<Artifact>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(artifact);
        }
    }

    fn remove(&mut self, slot: usize) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = None;
        }
    }

    fn restore(&mut self, slots: Slots) {
        self.slots = slots;
    }
}

/// Appends the full state, `{"slots":{…}}`.
pub(crate) fn write_full(out: &mut Vec<u8>, slots: &Slots) {
    out.extend_from_slice(b"{\"slots\":{");
    write_slots(out, slots.iter().enumerate().filter_map(|(slot, held)| Some((slot, held.as_ref()?))));
    out.extend_from_slice(b"}}");
}

/// Delta between equal states.
pub(super) const UNCHANGED: &[u8] = b"{\"delta\":true,\"slots\":{}}";

/// Appends the delta from `before` to `after`, `{"delta":true,"slots":{…},"removed_slots":[…]}`.
pub(crate) fn write_delta(out: &mut Vec<u8>, before: &Slots, after: &Slots) {
    let changed = |slot: &usize| match (&before[*slot], &after[*slot]) {
        (None, None) => false,
        (Some(before), Some(after)) => !Arc::ptr_eq(before, after),
        _ => true,
    };
    if !(0..SLOTS).any(|slot| changed(&slot)) {
        return out.extend_from_slice(UNCHANGED);
    }
    out.extend_from_slice(b"{\"delta\":true,\"slots\":{");
    write_slots(out, (0..SLOTS).filter(changed).filter_map(|slot| Some((slot, after[slot].as_ref()?))));
    out.push(b'}');
    let mut removed = (0..SLOTS).filter(changed).filter(|slot| after[*slot].is_none()).peekable();
    if removed.peek().is_some() {
        let numbers: Vec<_> = removed.map(|slot| slot.to_string()).collect();
        out.extend_from_slice(format!(",\"removed_slots\":[{}]", numbers.join(",")).as_bytes());
    }
    out.push(b'}');
}

fn write_slots<'a>(out: &mut Vec<u8>, slots: impl Iterator<Item = (usize, &'a Arc<Artifact>)>) {
    for (index, (slot, artifact)) in slots.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        out.extend_from_slice(format!("{comma}\"{slot}\":").as_bytes());
        artifact.write(out);
    }
}

//! DSState in a log: full states, and `tx_patch` (contract §3 "`tx_patch`"; `policy` §3c).

use std::sync::Arc;

use super::choices::{Choices, SizeBytes};
use super::fault::LogFault;
use super::line::object;
use crate::json::{Value, write_value};
use crate::refusal::Refusal;
use crate::toolhost::{self, Artifact, SLOTS, SizeBytesWrong, Slots, StateChange, write_full};

/// Slots of a state with the `size_bytes` of each, which a log may state wrongly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The artifacts.
    pub slots: Slots,
    /// `size_bytes` in force of each used slot.
    pub sizes: [u64; SLOTS],
}

/// An artifact and its `size_bytes` in force.
pub(crate) type Held = (Arc<Artifact>, u64);

impl State {
    /// Reads a full state.
    ///
    /// # Errors
    /// One sentence: it is malformed, or a delta.
    pub(crate) fn from_ds_state(value: &Value, choices: &Choices) -> Result<Self, Refusal> {
        let change = StateChange::from_value(value, &toolhost_choices(choices))?;
        if !change.full {
            return Err("the state is a delta".into());
        }
        let mut state = Self::default();
        for (slot, artifact) in change.set {
            let size = value.get("slots").and_then(|slots| slots.get(&slot.to_string()));
            let size = size_of(size.unwrap_or(&Value::Null), &artifact, choices)?;
            state.put(slot, Some((artifact, size)));
        }
        Ok(state)
    }

    fn put(&mut self, slot: usize, held: Option<Held>) {
        let (artifact, size) = held.map_or((None, 0), |(artifact, size)| (Some(artifact), size));
        if let (Some(place), Some(of)) = (self.slots.get_mut(slot), self.sizes.get_mut(slot)) {
            (*place, *of) = (artifact, size);
        }
    }

    /// Applies all items in the order of the array.
    ///
    /// # Errors
    /// An item does not fit the state, unless that is allowed. The state itself stays unchanged.
    pub fn apply(&self, items: &[Item], choices: &Choices) -> Result<Self, LogFault> {
        let mut state = self.clone();
        for Item { slot, adds, held } in items {
            let used = state.slots.get(*slot).is_some_and(Option::is_some);
            if used == *adds {
                choices.patch_on_other_state.allow(LogFault::Slot { slot: *slot, used })?;
            }
            state.put(*slot, held.clone());
        }
        Ok(state)
    }

    /// Items that lead from this state to `after`, one per slot.
    pub(crate) fn patch_to(&self, after: &Self) -> Vec<Item> {
        let changed = (0..SLOTS).filter(|slot| self.slots.get(*slot) != after.slots.get(*slot));
        changed
            .map(|slot| {
                let held = after.slots.get(slot).cloned().flatten();
                let size = after.sizes.get(slot).copied().unwrap_or_default();
                Item {
                    slot,
                    adds: self.slots.get(slot).is_some_and(Option::is_none),
                    held: held.map(|held| (held, size)),
                }
            })
            .collect()
    }

    /// Appends the full state as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_full(out, &self.slots);
    }

    /// Size of the artifacts in bytes.
    pub fn held_bytes(&self) -> usize {
        let bytes = |artifact: &Arc<Artifact>| {
            artifact.kind.as_bytes().len() + artifact.provenance.as_bytes().len() + artifact.size_bytes()
        };
        self.slots.iter().flatten().map(bytes).sum()
    }
}

/// Choices for the reader of the reference toolhost. A wrong size is checked here instead.
fn toolhost_choices(choices: &Choices) -> toolhost::Choices {
    toolhost::Choices {
        duplicate_keys: choices.duplicate_keys,
        lone_surrogates: choices.lone_surrogates,
        big_integers: choices.big_integers,
        size_bytes_wrong: SizeBytesWrong::Correct,
        ..toolhost::Choices::default()
    }
}

/// `size_bytes` in force of an artifact.
fn size_of(value: &Value, artifact: &Artifact, choices: &Choices) -> Result<u64, Refusal> {
    let right = u64::try_from(artifact.size_bytes()).unwrap_or(u64::MAX);
    let written = value.get("size_bytes").and_then(Value::as_i64).and_then(|size| u64::try_from(size).ok());
    let written = written.ok_or("size_bytes is not an integer of at least 0")?;
    match choices.size_bytes_wrong {
        _ if written == right => Ok(right),
        SizeBytes::AsWritten => Ok(written),
        SizeBytes::Correct => Ok(right),
        SizeBytes::Fail => Err(format!("size_bytes is {written}, content_json has {right} bytes").into()),
    }
}

/// Item of a `tx_patch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The slot.
    pub slot: usize,
    /// True for `add`, which requires an empty slot. The other operations require a used one.
    pub adds: bool,
    /// New artifact of the slot; `None` for `remove`.
    pub held: Option<Held>,
}

impl Item {
    /// Reads an item.
    ///
    /// # Errors
    /// One sentence: `op`, `path` or `value` is invalid.
    pub fn read(item: &Value, choices: &Choices) -> Result<Self, Refusal> {
        let members = item.as_object().ok_or("an item of the patch is not an object")?;
        let path = item.get("path").and_then(Value::as_text).ok_or("an item of the patch has no path")?;
        let slot = match path.as_bytes().strip_prefix(b"/slots/") {
            Some([digit @ b'0'..=b'7']) => usize::from(digit - b'0'),
            _ => return Err(format!("{:.40?} is not the path of a slot", path.to_lossy()).into()),
        };
        let named =
            |(name, _): &&(crate::json::Text, Value)| *name == "op" || *name == "path" || *name == "value";
        let mut extra = members.iter().filter(named).count() != members.len();
        let op = item.get("op").and_then(Value::as_text).map_or(&b""[..], |op| op.as_bytes());
        let held = match (op, item.get("value")) {
            (b"add" | b"replace", Some(value)) => {
                let artifact = Artifact::from_value(value, &toolhost_choices(choices))?;
                extra |= value.as_object().is_some_and(|members| members.len() > 4);
                let size = size_of(value, &artifact, choices)?;
                Some((Arc::new(artifact), size))
            }
            (b"remove", None) => None,
            (b"remove", Some(Value::Null)) => {
                extra = true;
                None
            }
            (b"add" | b"replace", None) => return Err("an item of the patch has no value".into()),
            (b"remove", Some(_)) => return Err("remove has a value".into()),
            _ => return Err("the op of an item is not add, replace or remove".into()),
        };
        if extra {
            choices.patch_extra_members.allow("an item of the patch has other members")?;
        }
        Ok(Self { slot, adds: op == b"add", held })
    }

    /// Reads a whole patch. One invalid item fails all of it.
    ///
    /// # Errors
    /// One sentence about the first invalid item.
    pub(crate) fn read_all(tx_patch: &[Value], choices: &Choices) -> Result<Vec<Self>, Refusal> {
        tx_patch.iter().map(|item| Self::read(item, choices)).collect()
    }

    /// The item as JSON.
    pub fn to_value(&self) -> Value {
        let path = Value::from(format!("/slots/{}", self.slot).as_str());
        let Some((artifact, size)) = &self.held else {
            return object([("op", "remove".into()), ("path", path)]);
        };
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        let value = object([
            ("type", Value::String(artifact.kind.clone())),
            ("provenance", Value::String(artifact.provenance.clone())),
            ("content_json", Value::String(artifact.content_json.clone())),
            ("size_bytes", Value::Number(size.into())),
        ]);
        object([("op", if self.adds { "add" } else { "replace" }.into()), ("path", path), ("value", value)])
    }
}

/// Request of run mode (`ipc` §3a) with an input, which is a JSON text, and a state.
pub(crate) fn request(input: &str, state: &State) -> Vec<u8> {
    let mut request = b"{\"input_json\":".to_vec();
    write_value(&mut request, &Value::from(input));
    request.extend_from_slice(b",\"ds_state\":");
    state.write(&mut request);
    request.push(b'}');
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Policy;

    const VALUE: &str = r#"{"type":"t","provenance":"p","content_json":"[1]","size_bytes":3}"#;

    fn items(text: &str, choices: &Choices) -> Result<Vec<Item>, Refusal> {
        let text = text.replace("VALUE", VALUE);
        let value = Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap();
        Item::read_all(value.as_array().unwrap(), choices)
    }

    fn applied(text: &str, choices: &Choices) -> Result<State, LogFault> {
        State::default().apply(&items(text, choices)?, choices)
    }

    #[test]
    fn items_apply_in_order() {
        let choices = Choices::default();
        let twice = r#"[{"op":"add","path":"/slots/7","value":VALUE},{"op":"remove","path":"\u002fslots/7"},
            {"op":"add","path":"/slots/0","value":VALUE}]"#;
        let state = applied(twice, &choices).unwrap();
        assert!(state.slots[0].is_some() && state.slots[7].is_none());
        let back = State::default().patch_to(&state);
        assert_eq!(State::default().apply(&back, &choices).unwrap(), state);
        assert_eq!(state.patch_to(&State::default())[0].to_value().get("op"), Some(&"remove".into()));
    }

    #[test]
    fn one_invalid_item_fails_the_whole_patch() {
        let right = r#"{"op":"add","path":"/slots/1","value":VALUE}"#;
        let before = applied(&format!("[{right}]"), &Choices::default()).unwrap();
        for wrong in [
            "1",
            "null",
            "{}",
            r#"{"op":"Add","path":"/slots/0","value":VALUE}"#,
            r#"{"op":"test","path":"/slots/0","value":VALUE}"#,
            r#"{"op":1,"path":"/slots/0","value":VALUE}"#,
            r#"{"path":"/slots/0","value":VALUE}"#,
            r#"{"op":"add","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/8","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/00","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/-1","value":VALUE}"#,
            r#"{"op":"add","path":"slots/0","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/0/","value":VALUE}"#,
            r#"{"op":"add","path":"/slots/٣","value":VALUE}"#,
            r#"{"op":"add","path":"/Slots/0","value":VALUE}"#,
            r#"{"op":"add","path":0,"value":VALUE}"#,
            r#"{"op":"add","path":"/slots/0"}"#,
            r#"{"op":"add","path":"/slots/0","value":null}"#,
            r#"{"op":"add","path":"/slots/0","value":[]}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":"[1]"}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":1,"provenance":"p","content_json":"[1]","size_bytes":3}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","content_json":"[1]","size_bytes":3}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":[1],"size_bytes":3}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":"[1]","size_bytes":true}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":"[1]","size_bytes":-1}}"#,
            r#"{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":"[1]","size_bytes":2.5}}"#,
            r#"{"op":"remove","path":"/slots/1","value":VALUE}"#,
        ] {
            for whole in [format!("[{right},{wrong}]"), format!("[{wrong},{right}]")] {
                assert!(applied(&whole, &Choices::default()).is_err(), "{whole}");
            }
            assert!(before.slots[1].is_some() && before.slots[0].is_none());
        }
    }

    #[test]
    fn open_forms_are_as_chosen() {
        let chosen = |key: &str, value: &str, text: &str| {
            let mut choices = Choices::default();
            choices.set(key, value).unwrap();
            applied(text, &choices)
        };
        for text in [
            r#"[{"op":"add","path":"/slots/0","value":VALUE,"x":1}]"#,
            r#"[{"op":"add","path":"/slots/0","value":{"x":1,"type":"t","provenance":"p","content_json":"[1]","size_bytes":3}}]"#,
            r#"[{"op":"add","path":"/slots/0","value":VALUE},{"op":"remove","path":"/slots/0","value":null}]"#,
        ] {
            assert!(chosen("patch_extra_members", "accept", text).is_ok(), "{text}");
            assert!(chosen("patch_extra_members", "fail", text).is_err(), "{text}");
        }
        for text in [
            r#"[{"op":"add","path":"/slots/0","value":VALUE},{"op":"add","path":"/slots/0","value":VALUE}]"#,
            r#"[{"op":"replace","path":"/slots/0","value":VALUE}]"#,
            r#"[{"op":"remove","path":"/slots/0"}]"#,
        ] {
            assert!(chosen("patch_on_other_state", "accept", text).is_ok(), "{text}");
            assert!(chosen("patch_on_other_state", "fail", text).is_err(), "{text}");
        }
        let wrong = r#"[{"op":"add","path":"/slots/0","value":{"type":"t","provenance":"p","content_json":"[1]","size_bytes":9}}]"#;
        assert_eq!(chosen("size_bytes_wrong", "as_written", wrong).unwrap().sizes[0], 9);
        assert_eq!(chosen("size_bytes_wrong", "correct", wrong).unwrap().sizes[0], 3);
        assert!(chosen("size_bytes_wrong", "fail", wrong).is_err());
    }
}

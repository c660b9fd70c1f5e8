//! Building blocks of conversations with a toolhost.
#![cfg_attr(not(any(test, feature = "arbitrary")), allow(dead_code, reason = "only `arbitrary` makes these"))]

use peerproof_engine::data::json::Json;

use crate::input::{Choice, ShortList, Text, Value};

const ROLES: [&str; 9] = ["ECHO", "COUNTER", "PUT", "GET", "REMOVE", "FAIL", "BLOB", "ANY", "NOBODY"];

/// Request of serve mode.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Request {
    role: Choice,
    slot: Slot,
    input: Input,
    key: Option<Key>,
    state: Option<State>,
    more: Option<(Text, Value)>,
}

/// Slot of the state: 0 to 7, and some invalid ones.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
struct Slot(u8);

impl Slot {
    fn number(self) -> u64 {
        u64::from(self.0 % 9)
    }
}

/// Input of a tool.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Input {
    /// Valid input of its role, with a number to use.
    Usual(u8),
    /// JSON text.
    Text(Value),
    /// JSON value instead of a text.
    Value(Value),
    /// Text that may not be JSON.
    Malformed(Text),
    Missing,
}

/// Idempotency key.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Key {
    /// One of a few, so that it repeats.
    Usual(u8),
    Value(Value),
}

/// State sent with a request.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum State {
    Full(ShortList<(Slot, Artifact), 4>),
    Delta(ShortList<(Slot, Artifact), 4>, ShortList<Slot, 4>),
    Value(Value),
}

/// Content of a slot.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Artifact {
    Usual(Text),
    /// Content with a size that is wrong by this many bytes.
    Missized(Text, i8),
    Value(Value),
}

impl Artifact {
    fn json(&self) -> Json {
        let of = |content: &Text, more: i64| {
            let content = content.text();
            let bytes = i64::try_from(content.len()).unwrap_or_default() + more;
            Json::object([
                ("type", Json::from("t")),
                ("provenance", Json::from("p")),
                ("content_json", Json::from(content)),
                ("size_bytes", Json::from(bytes)),
            ])
        };
        match self {
            Artifact::Usual(content) => of(content, 0),
            Artifact::Missized(content, more) => of(content, i64::from(*more)),
            Artifact::Value(value) => value.json(),
        }
    }
}

impl State {
    fn json(&self) -> Json {
        let slots = |held: &[(Slot, Artifact)]| {
            let mut slots = Json::Object(Vec::new());
            held.iter().for_each(|(slot, it)| slots.set(&slot.number().to_string(), it.json()));
            slots
        };
        match self {
            State::Full(held) => Json::object([("slots", slots(held))]),
            State::Delta(held, removed) => {
                let mut state = Json::object([("delta", Json::from(true))]);
                if !held.is_empty() {
                    state.set("slots", slots(held));
                }
                if !removed.is_empty() {
                    let removed: Vec<Json> = removed.iter().map(|slot| Json::from(slot.number())).collect();
                    state.set("removed_slots", Json::array(removed));
                }
                state
            }
            State::Value(value) => value.json(),
        }
    }
}

impl Request {
    /// JSON text.
    pub fn text(&self) -> String {
        let role = self.role.of(&ROLES);
        let mut request = Json::object([("aid", Json::from(format!("AID.PEERPROOF.{role}.v1")))]);
        let input = match &self.input {
            Input::Usual(number) => Some(Json::from(self.usual(role, *number).to_text())),
            Input::Text(value) => Some(Json::from(value.json().to_text())),
            Input::Value(value) => Some(value.json()),
            Input::Malformed(text) => Some(Json::from(text.text())),
            Input::Missing => None,
        };
        let key = self.key.as_ref().map(|key| match key {
            Key::Usual(number) => Json::from(format!("k{}", number % 8)),
            Key::Value(value) => value.json(),
        });
        let state = self.state.as_ref().map(State::json);
        for (name, value) in [("input_json", input), ("idempotency_key", key), ("ds_state", state)] {
            if let Some(value) = value {
                request.set(name, value);
            }
        }
        if let Some((name, value)) = &self.more {
            request.set(&name.text(), value.json());
        }
        request.to_text()
    }

    fn usual(&self, role: &str, number: u8) -> Json {
        let slot = ("slot", Json::from(self.slot.number()));
        match role {
            "PUT" => Json::object([slot, ("artifact", Artifact::Usual(Text::Long(number % 16)).json())]),
            "GET" | "REMOVE" => Json::object([slot]),
            "FAIL" => Json::object([("message", Json::from("m"))]),
            "BLOB" => Json::object([("bytes", Json::from(u64::from(number)))]),
            _ => Json::object([("n", Json::from(u64::from(number)))]),
        }
    }
}

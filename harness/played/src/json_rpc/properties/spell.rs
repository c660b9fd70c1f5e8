//! Building blocks of conversations with a JSON-RPC server.
#![cfg_attr(not(any(test, feature = "arbitrary")), allow(dead_code, reason = "only `arbitrary` makes these"))]

use peerproof_engine::data::json::Json;
use peerproof_json_rpc::talk::{call, quoted};

use crate::input::{Choice, Member, ShortList, Text, Value};

const METHODS: [&str; 8] = [
    "peerproof.echo",
    "peerproof.counter",
    "peerproof.fail",
    "peerproof.named",
    "peerproof.no_such_method",
    "validate_code",
    "rpc.x",
    "",
];
const PARAMS: [&str; 8] = [
    "{}",
    "[]",
    r#"{"minuend":42,"subtrahend":23}"#,
    "[1,[2],{}]",
    r#"{"code":"(]","language":"rust"}"#,
    "null",
    "7",
    r#"{"a":9007199254740993,"b":"\ud800"}"#,
];
const IDS: [&str; 8] = ["1", "\"a\"", "0", "-7", "null", "1.5", "[]", "\"\\u00e9\""];

/// Names of further or repeated members of a call.
const NAMES: [&str; 6] = ["x", "jsonrpc", "id", "method", "params", "result"];

/// Line of a client.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Sent {
    /// One message.
    One(Message),
    /// A batch of messages.
    Batch(ShortList<Message, 16>),
}

impl Sent {
    /// The JSON text.
    pub fn text(&self) -> String {
        match self {
            Sent::One(message) => message.text(),
            Sent::Batch(messages) => {
                format!("[{}]", messages.iter().map(Message::text).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Call, or without an id a notification.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Message {
    method: Choice,
    params: Option<Member>,
    id: Option<Member>,
    more: Option<(Choice, Value)>,
}

impl Message {
    fn text(&self) -> String {
        let params = self.params.as_ref().map(|it| it.text(&PARAMS));
        let id = self.id.as_ref().map(|it| it.text(&IDS));
        let mut text = call(self.method.of(&METHODS), params.as_deref(), id.as_deref());
        if let Some((name, value)) = &self.more {
            text.pop();
            text.push_str(&format!(",{}:{}}}", quoted(name.of(&NAMES)), value.json().to_text()));
        }
        text
    }
}

/// Element of a batch whose answers are counted.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Element {
    /// Invalid request.
    NoRequest(Choice),
    /// Notification with one named parameter.
    Notification(Choice, Value),
    /// Call with one named parameter.
    Call(Choice, Value),
}

impl Element {
    /// JSON text, with this id for a call.
    pub fn text(&self, id: &str) -> String {
        const NO_REQUESTS: [&str; 8] =
            ["1", "null", "[]", "{}", "\"x\"", "{\"jsonrpc\":\"2.0\"}", "true", "[[]]"];
        let of = |method: &Choice, value: &Value, id: Option<&str>| {
            call(method.of(&METHODS), Some(&format!("{{\"n\":{}}}", value.json().to_text())), id)
        };
        match self {
            Element::NoRequest(choice) => choice.of(&NO_REQUESTS).to_owned(),
            Element::Notification(method, value) => of(method, value, None),
            Element::Call(method, value) => of(method, value, Some(&quoted(id))),
        }
    }
}

/// Step of a conversation about streams.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Step {
    /// Request for a task.
    Task(Task),
    /// Passing of this many milliseconds.
    Pass(u16),
    /// Unanswered message.
    Notification,
}

/// Task, streaming or not.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Task {
    prompt: Text,
    /// Interval between two pieces of its stream, in units of four milliseconds.
    pace: u8,
    timeout: Choice,
    streams: bool,
    /// Unknown option.
    more: Option<Value>,
}

impl Task {
    /// Request with this number as its id.
    pub fn text(&self, id: usize) -> String {
        const TIMEOUTS_MS: [u64; 4] = [1, 100, 1_000, 600_000];
        let mut options = Json::object([
            ("stream", Json::from(self.streams)),
            ("pace_ms", Json::from(u64::from(self.pace) * 4)),
            ("timeout_ms", Json::from(self.timeout.of(&TIMEOUTS_MS))),
        ]);
        if let Some(more) = &self.more {
            options.set("x", more.json());
        }
        let params = Json::object([
            ("task_type", Json::from("analysis")),
            ("prompt", Json::from(self.prompt.text())),
            ("options", options),
        ]);
        call("execute_task", Some(&params.to_text()), Some(&id.to_string()))
    }
}

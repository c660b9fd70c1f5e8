//! The six events of a log, with their payloads (contract §3 "Events").

use super::line::object;
use crate::json::{Policy, Text, Value};
use crate::policy_driver::{SelectionKind, Sid};
use crate::refusal::Refusal;

/// Settings for reading payloads.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Levels of arrays and objects within one JSON text.
    pub nesting_max: usize,
    /// Treatment of ambiguous JSON.
    pub policy: Policy,
}

/// An event with its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `run_started`: the first line.
    Started {
        /// `goal_id`, not empty.
        goal_id: Text,
        /// `inputs`, an object.
        inputs: Value,
        /// `control_mode`.
        control_mode: Option<Text>,
        /// `state`, not yet read.
        state: Option<Value>,
    },
    /// `selector_chosen`: a selection.
    Chosen(SelectorChosen),
    /// `inputs_patched`: the patch of a selection.
    Patched {
        /// `patch`, an object.
        patch: Value,
        /// `inputs`, the merged object.
        inputs: Option<Value>,
    },
    /// `tool_ok`: a tool succeeded.
    ToolOk(ToolOk),
    /// `tool_error`: a tool failed.
    ToolError {
        /// `aid`.
        aid: Text,
        /// `status`.
        status: Text,
        /// `error`, not empty.
        error: Text,
        /// `deterministic`, which is optional.
        deterministic: bool,
    },
    /// `run_finished`: the last line.
    Finished {
        /// `reason`, not empty.
        reason: Text,
        /// `steps`: number of selections.
        steps: u64,
        /// `state_digest` of the final state.
        state_digest: Text,
    },
    /// An unknown event.
    Other,
}

/// The payload of `selector_chosen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorChosen {
    /// `kind`, and for PICK `sid`.
    pub kind: SelectionKind,
    /// `aid`, present only for PICK.
    pub aid: Option<Text>,
    /// `input_patch_json`: the text, and its JSON object.
    pub patch: Option<(Text, Value)>,
    /// `raw`.
    pub raw: Text,
}

/// The payload of `tool_ok`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOk {
    /// `aid`.
    pub aid: Text,
    /// `deterministic`.
    pub deterministic: bool,
    /// `output_json`.
    pub output_json: Text,
    /// `tx_patch`, with unread items.
    pub tx_patch: Vec<Value>,
    /// `state_digest` of the state after the patch.
    pub state_digest: Text,
}

/// Statuses of a failed tool.
pub(crate) const FAILED: [&str; 3] = ["TOOL_ERROR", "INVALID_PICK", "BREAKER_TRIP"];

/// JSON value in a string.
///
/// # Errors
/// One sentence: the string holds no valid JSON.
pub(crate) fn embedded(name: &'static str, text: &Text, reading: Reading) -> Result<Value, Refusal> {
    Value::parse(text.as_bytes(), reading.nesting_max, &reading.policy).map_err(Refusal::of(name))
}

impl Event {
    /// Reads the payload of the event `name`. Unknown members are ignored.
    ///
    /// # Errors
    /// One sentence: a member is missing or of a wrong type.
    pub fn read(name: &Text, payload: &Value, reading: Reading) -> Result<Self, Refusal> {
        let of = Payload(payload);
        match name.as_bytes() {
            b"run_started" => Ok(Self::Started {
                goal_id: of.filled("goal_id")?,
                inputs: of.object("inputs")?,
                control_mode: of.optional("control_mode", Payload::text)?,
                state: payload.get("state").cloned(),
            }),
            b"selector_chosen" => SelectorChosen::read(of, reading).map(Self::Chosen),
            b"inputs_patched" => Ok(Self::Patched {
                patch: of.object("patch")?,
                inputs: of.optional("inputs", Payload::object)?,
            }),
            b"tool_ok" => {
                let output_json = of.text("output_json")?;
                embedded("output_json", &output_json, reading)?;
                let tx_patch = payload.get("tx_patch").and_then(Value::as_array);
                Ok(Self::ToolOk(ToolOk {
                    aid: of.filled("aid")?,
                    deterministic: of.flag("deterministic")?,
                    output_json,
                    tx_patch: tx_patch.ok_or("tx_patch is not an array")?.to_vec(),
                    state_digest: of.text("state_digest")?,
                }))
            }
            b"tool_error" => {
                let status = of.text("status")?;
                if !FAILED.iter().any(|known| status == *known) {
                    return Err("status is not that of a failure".into());
                }
                Ok(Self::ToolError {
                    aid: of.filled("aid")?,
                    status,
                    error: of.filled("error")?,
                    deterministic: of.flag("deterministic").unwrap_or(false),
                })
            }
            b"run_finished" => {
                let steps = payload.get("steps").and_then(Value::as_i64);
                let steps = steps.and_then(|steps| u64::try_from(steps).ok());
                Ok(Self::Finished {
                    reason: of.filled("reason")?,
                    steps: steps.ok_or("steps is not an integer of at least 0")?,
                    state_digest: of.text("state_digest")?,
                })
            }
            _ => Ok(Self::Other),
        }
    }

    /// Name and payload for a line.
    pub fn write(self) -> (&'static str, Value) {
        match self {
            Self::Started { goal_id, inputs, control_mode, state } => {
                let mut payload = members([("goal_id", Value::String(goal_id)), ("inputs", inputs)]);
                payload.extend(control_mode.map(|mode| ("control_mode".into(), Value::String(mode))));
                payload.extend(state.map(|state| ("state".into(), state)));
                ("run_started", Value::Object(payload))
            }
            Self::Chosen(chosen) => ("selector_chosen", chosen.write()),
            Self::Patched { patch, inputs } => {
                let mut payload = members([("patch", patch)]);
                payload.extend(inputs.map(|inputs| ("inputs".into(), inputs)));
                ("inputs_patched", Value::Object(payload))
            }
            Self::ToolOk(ToolOk { aid, deterministic, output_json, tx_patch, state_digest }) => {
                let payload = object([
                    ("aid", Value::String(aid)),
                    ("deterministic", Value::Bool(deterministic)),
                    ("output_json", Value::String(output_json)),
                    ("tx_patch", Value::Array(tx_patch)),
                    ("state_digest", Value::String(state_digest)),
                ]);
                ("tool_ok", payload)
            }
            Self::ToolError { aid, status, error, deterministic } => {
                let mut payload = members([
                    ("aid", Value::String(aid)),
                    ("status", Value::String(status)),
                    ("error", Value::String(error)),
                ]);
                payload.extend(deterministic.then(|| ("deterministic".into(), Value::Bool(true))));
                ("tool_error", Value::Object(payload))
            }
            Self::Finished { reason, steps, state_digest } => {
                let steps = i64::try_from(steps).unwrap_or(i64::MAX);
                let payload = object([
                    ("reason", Value::String(reason)),
                    ("steps", Value::Number(steps.into())),
                    ("state_digest", Value::String(state_digest)),
                ]);
                ("run_finished", payload)
            }
            Self::Other => ("other", Value::Object(Vec::new())),
        }
    }
}

impl SelectorChosen {
    fn read(of: Payload<'_>, reading: Reading) -> Result<Self, Refusal> {
        let sid = of.optional("sid", Payload::text)?;
        let aid = of.optional("aid", Payload::filled)?;
        let kind = match of.text("kind")?.as_bytes() {
            b"PICK" => {
                let sid = sid.as_ref().and_then(|sid| Sid::parse(sid.as_bytes()));
                SelectionKind::Pick(sid.ok_or("a PICK needs a sid of SID and four digits")?)
            }
            b"ASK_SUP" => SelectionKind::AskSup,
            b"NOOP" => SelectionKind::Noop,
            b"INVALID" => SelectionKind::Invalid,
            _ => return Err("kind is not PICK, ASK_SUP, NOOP or INVALID".into()),
        };
        let picks = matches!(kind, SelectionKind::Pick(_));
        let patch = of.optional("input_patch_json", Payload::text)?;
        if picks && aid.is_none() {
            return Err("a PICK needs an aid".into());
        }
        if !picks && (sid.is_some() || aid.is_some() || patch.is_some()) {
            return Err("only a PICK has sid, aid or input_patch_json".into());
        }
        let patch = match patch {
            None => None,
            Some(text) => match embedded("input_patch_json", &text, reading)? {
                value @ Value::Object(_) => Some((text, value)),
                _ => return Err("input_patch_json does not hold an object".into()),
            },
        };
        Ok(Self { kind, aid, patch, raw: of.text("raw")? })
    }

    fn write(self) -> Value {
        let (kind, sid) = match self.kind {
            SelectionKind::Pick(sid) => ("PICK", Some(sid)),
            SelectionKind::AskSup => ("ASK_SUP", None),
            SelectionKind::Noop => ("NOOP", None),
            SelectionKind::Invalid => ("INVALID", None),
        };
        let mut payload = members([("kind", kind.into())]);
        payload.extend(sid.map(|sid| ("sid".into(), sid.to_string().as_str().into())));
        payload.extend(self.aid.map(|aid| ("aid".into(), Value::String(aid))));
        payload.extend(self.patch.map(|(text, _)| ("input_patch_json".into(), Value::String(text))));
        payload.push(("raw".into(), Value::String(self.raw)));
        Value::Object(payload)
    }
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Vec<(Text, Value)> {
    members.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Members of a payload by type.
#[derive(Clone, Copy)]
struct Payload<'p>(&'p Value);

impl<'p> Payload<'p> {
    fn text(self, name: &str) -> Result<Text, Refusal> {
        let text = self.0.get(name).and_then(Value::as_text);
        text.cloned().ok_or_else(|| format!("{name} is not a string").into())
    }

    fn filled(self, name: &str) -> Result<Text, Refusal> {
        let text = self.text(name)?;
        if text.as_bytes().is_empty() { Err(format!("{name} is empty").into()) } else { Ok(text) }
    }

    fn object(self, name: &str) -> Result<Value, Refusal> {
        let object = self.0.get(name).filter(|value| value.as_object().is_some());
        object.cloned().ok_or_else(|| format!("{name} is not an object").into())
    }

    fn flag(self, name: &str) -> Result<bool, Refusal> {
        self.0.get(name).and_then(Value::as_bool).ok_or_else(|| format!("{name} is not a boolean").into())
    }

    fn optional<T>(
        self,
        name: &str,
        read: fn(Payload<'p>, &str) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        self.0.get(name).map(|_| read(self, name)).transpose()
    }
}

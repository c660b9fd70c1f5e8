//! The request of a runner (contract §3 "RunRequest").

use super::Config;
use super::choices::UnknownMode;
use super::digest::menu_digest;
use super::line::{object, text_of};
use crate::json::{Text, Value};
use crate::refusal::Refusal;

/// Largest number of tools: four digits, from `SID0001` on.
const TOOLS_MAX: usize = 9_999;

/// Mode of selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The policy driver selects, with the fallback if it fails.
    PolicyOnly,
    /// The fallback selects.
    FallbackOnly,
}

impl Mode {
    /// Value of `control_mode`.
    pub fn word(self) -> &'static str {
        match self {
            Self::PolicyOnly => "POLICY_ONLY",
            Self::FallbackOnly => "FALLBACK_ONLY",
        }
    }
}

/// A tool that can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// `aid`, not empty.
    pub aid: Text,
    /// `name`, by default the aid.
    pub name: Text,
    /// `tags`.
    pub tags: Vec<Text>,
    /// `deterministic`, by default false.
    pub deterministic: bool,
}

/// A RunRequest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// `goal_id`, not empty.
    pub goal_id: Text,
    /// `inputs`, an object.
    pub inputs: Value,
    /// `control_mode`.
    pub mode: Mode,
    /// `request_id`.
    pub request_id: Option<Text>,
    /// `tools`.
    pub tools: Vec<ToolEntry>,
    /// `max_steps`.
    pub max_steps: Option<u64>,
}

impl RunRequest {
    /// Reads a request. Unknown members are ignored.
    ///
    /// # Errors
    /// One sentence: it is not a strict JSON object, or a member is missing or of a wrong type.
    pub fn read(text: &[u8], config: &Config) -> Result<Self, Refusal> {
        let choices = &config.choices;
        let value = Value::parse(text, config.limits.nesting_max, &choices.policy())?;
        if value.as_object().is_none() {
            return Err("the request is not an object".into());
        }
        let goal_id = string(&value, "goal_id")?.filter(|goal| !goal.as_bytes().is_empty());
        let goal_id = goal_id.ok_or("the request has no goal_id")?;
        if goal_id.as_bytes().contains(&b'|') {
            choices.goal_id_with_bar.allow("goal_id holds |")?;
        }
        let inputs = match value.get("inputs") {
            None => Value::Object(Vec::new()),
            Some(inputs @ Value::Object(_)) => inputs.clone(),
            Some(_) => return Err("inputs is not an object".into()),
        };
        let mode = match string(&value, "control_mode")?.as_ref().map(Text::as_bytes) {
            Some(b"POLICY_ONLY") => Mode::PolicyOnly,
            None | Some(b"FALLBACK_ONLY") => Mode::FallbackOnly,
            Some(_) if choices.control_mode_unknown == UnknownMode::Default => Mode::FallbackOnly,
            Some(_) => return Err("control_mode is neither POLICY_ONLY nor FALLBACK_ONLY".into()),
        };
        let max_steps = match value.get("max_steps") {
            None => None,
            Some(steps) => {
                let steps = steps.as_i64().and_then(|steps| u64::try_from(steps).ok());
                Some(steps.filter(|steps| *steps > 0).ok_or("max_steps is not an integer of at least 1")?)
            }
        };
        let tools = match value.get("tools") {
            None => Vec::new(),
            Some(tools) => {
                let tools = tools.as_array().ok_or("tools is not an array")?;
                tools.iter().map(ToolEntry::read).collect::<Result<_, _>>()?
            }
        };
        if tools.len() > TOOLS_MAX {
            return Err(format!("there are more than {TOOLS_MAX} tools").into());
        }
        Ok(Self { goal_id, inputs, mode, request_id: string(&value, "request_id")?, tools, max_steps })
    }

    /// SID of the tool at index `place`.
    pub fn sid(place: usize) -> String {
        format!("SID{:04}", place + 1)
    }

    /// Menu as JSON.
    pub fn menu(&self) -> String {
        let entry = |(place, tool): (usize, &ToolEntry)| {
            object([
                ("sid", Self::sid(place).as_str().into()),
                ("aid", Value::String(tool.aid.clone())),
                ("name", Value::String(tool.name.clone())),
                ("tags", Value::Array(tool.tags.iter().cloned().map(Value::String).collect())),
            ])
        };
        text_of(&Value::Array(self.tools.iter().enumerate().map(entry).collect()))
    }

    /// Digest of the menu.
    pub(crate) fn menu_digest(&self) -> String {
        let entry =
            |(place, tool): (usize, &ToolEntry)| (Self::sid(place), tool.aid.clone(), tool.tags.clone());
        menu_digest(&self.tools.iter().enumerate().map(entry).collect::<Vec<_>>())
    }
}

impl ToolEntry {
    fn read(entry: &Value) -> Result<Self, Refusal> {
        if entry.as_object().is_none() {
            return Err("a tool is not an object".into());
        }
        let aid = string(entry, "aid")?.filter(|aid| !aid.as_bytes().is_empty());
        let aid = aid.ok_or("a tool has no aid")?;
        let tags = match entry.get("tags") {
            None => Some(Vec::new()),
            Some(tags) => {
                let texts = |tags: &[Value]| tags.iter().map(|tag| tag.as_text().cloned()).collect();
                tags.as_array().and_then(texts)
            }
        };
        let deterministic = entry.get("deterministic").map_or(Some(false), Value::as_bool);
        Ok(Self {
            name: string(entry, "name")?.unwrap_or_else(|| aid.clone()),
            aid,
            tags: tags.ok_or("tags is not a list of strings")?,
            deterministic: deterministic.ok_or("deterministic is not a boolean")?,
        })
    }
}

fn string(value: &Value, name: &str) -> Result<Option<Text>, Refusal> {
    let text = value.get(name).map(|text| text.as_text().cloned().ok_or(()));
    text.transpose().map_err(|()| format!("{name} is not a string").into())
}

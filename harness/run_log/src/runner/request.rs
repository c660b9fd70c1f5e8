//! The RunRequest of a runner.

use peerproof_engine::data::json::{self, DecodeLimits, Json};

/// The driver selects.
pub(crate) const POLICY_ONLY: &str = "POLICY_ONLY";

/// The fallback selects: the default.
pub(crate) const FALLBACK_ONLY: &str = "FALLBACK_ONLY";

/// Levels of nesting that every runner reads.
const DEPTH_MAX: usize = 64;

/// A tool that a run may pick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    /// Its aid.
    pub aid: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// True if its output depends only on its input and the state.
    pub deterministic: bool,
}

/// A valid request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// Goal of the run.
    pub goal_id: String,
    /// Initial inputs.
    pub inputs: Json,
    /// `POLICY_ONLY`, or `FALLBACK_ONLY`.
    pub mode: &'static str,
    /// Id that goes on each line of the log.
    pub request_id: Option<String>,
    /// Tools that may be picked.
    pub tools: Vec<Tool>,
    /// Largest number of selections.
    pub max_steps: Option<u64>,
}

/// Allowed treatment of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestTreatment {
    /// Must be run.
    Run(Request),
    /// May be run or refused: key of the choice, its clause, the value for a run, and the request.
    Open(&'static str, &'static str, &'static str, Request),
    /// May be run as if no tool had tags, or refused. No choice names this.
    Tagless(Request),
    /// May be refused, or run with repeated members: the request if the last one counts, and that if the first one
    /// counts.
    Twice(Request, Request),
    /// Must be refused, for this reason.
    Refused(&'static str),
    /// The contract does not say.
    Unclear,
}

/// Reads a request.
pub(crate) fn read(text: &[u8]) -> RequestTreatment {
    let Ok(decoded) = json::decode(text, &DecodeLimits::default()) else {
        return RequestTreatment::Refused("it is not strict JSON");
    };
    let (value, facts) = (decoded.value, decoded.facts);
    if facts.lone_surrogates || facts.depth > DEPTH_MAX {
        return RequestTreatment::Unclear;
    }
    if facts.duplicate_keys {
        let first = Json::object(value.as_object().unwrap_or_default().iter().rev().cloned());
        return match (request(&value), request(&first)) {
            (Ok(Some((last, _))), Ok(Some((first, _)))) if last.goal_id != first.goal_id => {
                RequestTreatment::Twice(last, first)
            }
            _ => RequestTreatment::Unclear,
        };
    }
    match request(&value) {
        Ok(Some((request, mode))) => match mode {
            _ if request.goal_id.contains('|') => {
                RequestTreatment::Open("goal_id_with_bar", "LOG-RUN-BAR", "accept", request)
            }
            Some(mode) if ![POLICY_ONLY, FALLBACK_ONLY].contains(&mode) => {
                RequestTreatment::Open("control_mode_unknown", "LOG-RUN-MODE", "default", request)
            }
            _ if has_wrong_tags(&value) => RequestTreatment::Tagless(request),
            _ => RequestTreatment::Run(request),
        },
        Ok(None) => RequestTreatment::Unclear,
        Err(why) => RequestTreatment::Refused(why),
    }
}

/// A request and its literal `control_mode`. `None` if the contract does not define its meaning.
fn request(value: &Json) -> Result<Option<(Request, Option<&str>)>, &'static str> {
    value.as_object().ok_or("it is not an object")?;
    let goal_id = value.get("goal_id").and_then(Json::as_str).filter(|goal| !goal.is_empty());
    let goal_id = goal_id.ok_or("its `goal_id` is not a non-empty string")?.to_owned();
    let is_null = |name: &&str| value.get(name).is_some_and(Json::is_null);
    let mode = text(value, "control_mode", "`control_mode` is not a string");
    let request_id = text(value, "request_id", "`request_id` is not a string");
    let max_steps = value.get("max_steps");
    if ["inputs", "control_mode", "request_id", "tools", "max_steps"].iter().any(is_null)
        || max_steps.and_then(Json::as_i64).is_some_and(|most| most < 1)
    {
        return Ok(None);
    }
    let (mode, request_id) = (mode?, request_id?);
    let inputs = value.get("inputs").cloned().unwrap_or_else(|| Json::Object(Vec::new()));
    inputs.as_object().ok_or("`inputs` is not an object")?;
    let max_steps = max_steps.map(|most| most.as_u64().ok_or("`max_steps` is not an integer")).transpose()?;
    let mut all = Vec::new();
    if let Some(tools) = value.get("tools") {
        for entry in tools.as_array().ok_or("`tools` is not a list")? {
            let Some(tool) = tool(entry)? else { return Ok(None) };
            all.push(tool);
        }
    }
    let is_driven = mode == Some(POLICY_ONLY);
    let request = Request {
        goal_id,
        inputs,
        mode: if is_driven { POLICY_ONLY } else { FALLBACK_ONLY },
        request_id: request_id.map(str::to_owned),
        tools: all,
        max_steps,
    };
    Ok(Some((request, mode)))
}

/// True if the `tags` of some tool are no list.
fn has_wrong_tags(request: &Json) -> bool {
    let tools = request.get("tools").and_then(Json::as_array).unwrap_or_default();
    tools.iter().filter_map(|tool| tool.get("tags")).any(|tags| tags.as_array().is_none())
}

fn tool(entry: &Json) -> Result<Option<Tool>, &'static str> {
    entry.as_object().ok_or("an entry of `tools` is not an object")?;
    let aid = entry.get("aid").and_then(Json::as_str).filter(|aid| !aid.is_empty());
    let aid = aid.ok_or("the `aid` of an entry of `tools` is not a non-empty string")?;
    let name = text(entry, "name", "`name` of a tool is not a string")?;
    let tags = match entry.get("tags") {
        None => None,
        // The contract does not define a list with values other than strings.
        Some(tags) => {
            let tags = tags.as_array().unwrap_or_default();
            tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        }
    };
    let deterministic = match entry.get("deterministic") {
        None => None,
        Some(flag) => Some(flag.as_bool().ok_or("`deterministic` is not a boolean")?),
    };
    // An absent member has no default.
    let (Some(name), Some(tags), Some(deterministic)) = (name, tags, deterministic) else { return Ok(None) };
    Ok(Some(Tool { aid: aid.to_owned(), name: name.to_owned(), tags, deterministic }))
}

fn text<'a>(value: &'a Json, name: &str, why: &'static str) -> Result<Option<&'a str>, &'static str> {
    value.get(name).map(|text| text.as_str().ok_or(why)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_are_refused_and_what_is_left_open_is_not_judged() {
        let read = |text: &str| read(text.as_bytes());
        for text in [
            "",
            "[]",
            "{}",
            r#"{"goal_id":""}"#,
            r#"{"goal_id":1}"#,
            r#"{"goal_id":"g","inputs":[]}"#,
            r#"{"goal_id":"g","max_steps":"1"}"#,
            r#"{"goal_id":"g","tools":[{"aid":1,"name":"n","tags":[],"deterministic":true}]}"#,
            r#"{"goal_id":"g","tools":[{"aid":"a","name":1,"tags":[],"deterministic":true}]}"#,
            r#"{"goal_id":"g","tools":[{"aid":"a","name":"n","tags":[],"deterministic":"true"}]}"#,
        ] {
            assert!(matches!(read(text), RequestTreatment::Refused(_)), "{text}");
        }
        for tags in ["7", "\"x\"", "{}", "null"] {
            let text = format!(
                r#"{{"goal_id":"g","tools":[{{"aid":"a","name":"n","tags":{tags},"deterministic":true}}]}}"#
            );
            assert!(
                matches!(read(&text), RequestTreatment::Tagless(request) if request.tools[0].tags.is_empty()),
                "{text}"
            );
        }
        for text in [
            r#"{"goal_id":"g","inputs":null}"#,
            r#"{"goal_id":"g","max_steps":0}"#,
            r#"{"goal_id":"g","tools":[{"aid":"a","name":"n","tags":[1],"deterministic":true}]}"#,
        ] {
            assert_eq!(read(text), RequestTreatment::Unclear, "{text}");
        }
        assert!(matches!(read(r#"{"goal_id":"g","x":1}"#), RequestTreatment::Run(_)));
        let twice = read(r#"{"goal_id":"g","inputs":{},"goal_id":"h"}"#);
        assert!(
            matches!(twice, RequestTreatment::Twice(last, first) if (last.goal_id.as_str(), first.goal_id.as_str()) == ("h", "g"))
        );
        assert!(matches!(read(r#"{"goal_id":"g|h"}"#), RequestTreatment::Open("goal_id_with_bar", ..)));
        assert!(matches!(
            read(r#"{"goal_id":"g","control_mode":"X"}"#),
            RequestTreatment::Open(_, "LOG-RUN-MODE", ..)
        ));
    }
}

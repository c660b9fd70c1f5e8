//! Roles of a server's tools, and the tools that may be called.

use serde_json::{Value, json};

use super::model::arguments::required;
use super::revision::Revision;
use super::server_knowledge::ServerKnowledge;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::text::visible;

/// Key of the setting for tools that may be called.
pub const CALL: &str = "call";

/// Values of that setting.
pub(crate) const CALLS: &[&str] = &["read_only", "named", "any", "none"];

/// Roles that a configuration may map to tools.
pub const ROLES: [&str; 8] = ["any", "echo", "sleep", "noargs", "log", "ask", "blob", "counter"];

/// Tools that may be called: read-only tools, and those that the configuration names.
pub(crate) fn callable(facts: &Facts) -> Vec<&Value> {
    let known = ServerKnowledge::of(facts);
    let setting = facts.features.get(CALL).and_then(Value::as_str).unwrap_or(CALLS[0]);
    let is_named = |name: &Value| facts.roles.values().any(|role| role["name"] == *name);
    let may_be = |tool: &&Value| match setting {
        "none" => false,
        "any" => true,
        "named" => is_named(&tool["name"]),
        _ => is_named(&tool["name"]) || reads(known, tool),
    };
    known.tools().iter().filter(may_be).collect()
}

/// True for a tool that declares itself read-only.
pub(crate) fn reads(known: ServerKnowledge<'_>, tool: &Value) -> bool {
    known.revision() >= Some(Revision::R2025Mar)
        && tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true))
}

/// Params of `tools/call`.
pub fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// Tool with a role.
pub fn role<'a>(facts: &'a Facts, name: &str) -> Option<&'a Value> {
    facts.roles.get(name)
}

/// Params of a call of the tool that takes time and returns `text`, and its time, milliseconds.
///
/// # Errors
/// Fails if no tool has the role.
pub(crate) fn sleeping(facts: &Facts, text: &str) -> Result<(Value, u64), Untestable> {
    let sleep = role(facts, "sleep").ok_or("the role `sleep` is not mapped")?;
    let filled = sleep["arguments"].to_string().replace("{text}", text);
    let arguments = serde_json::from_str(&filled).map_err(|error| error.to_string())?;
    let ms = sleep["ms"].as_u64().unwrap_or(1_000);
    Ok((call(sleep["name"].as_str().unwrap_or_default(), arguments), ms))
}

/// Most names in a line of the report.
const NAMES_MAX: usize = 20;

/// Report lines about a server: its identity, the tools that are called, and those that are not.
pub fn seen(facts: &Facts) -> Vec<String> {
    let known = ServerKnowledge::of(facts);
    let Some(revision) = known.revision_named() else { return Vec::new() };
    let of_server = |name: &str| known.server().and_then(|server| server[name].as_str()).unwrap_or("?");
    let server = format!("server {} {}, revision {revision}", of_server("name"), of_server("version"));
    let names = |tools: &[&Value]| {
        let shown = tools.iter().take(NAMES_MAX).filter_map(|tool| tool["name"].as_str());
        let mut shown: Vec<String> = shown.map(str::to_owned).collect();
        if tools.len() > NAMES_MAX {
            shown.push(format!("{} more", tools.len() - NAMES_MAX));
        }
        shown.join(", ")
    };
    let called = callable(facts);
    let others: Vec<&Value> = known
        .tools()
        .iter()
        .filter(|tool| !called.iter().any(|other| other["name"] == tool["name"]))
        .collect();
    let lines = [("tools that checks call", &called), ("tools that no check calls", &others)];
    let tools = lines.into_iter().filter(|(_, tools)| !tools.is_empty());
    let tools = tools.map(|(what, tools)| format!("{what}: {}", names(tools)));
    std::iter::once(server).chain(tools).map(|line| visible(&line).into_owned()).collect()
}

/// Report lines about each tool: name, arguments, and read-only or not.
pub fn inventory(facts: &Facts) -> Vec<String> {
    let known = ServerKnowledge::of(facts);
    let line = |tool: &Value| {
        let required = required(tool);
        let members = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
        let member = |(name, schema): (&String, &Value)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let kind = schema["type"].as_str().map(|kind| format!(": {kind}")).unwrap_or_default();
            format!("{name}{mark}{kind}")
        };
        let members: Vec<String> = members.into_iter().flatten().map(member).collect();
        let hint = if reads(known, tool) { ", reads only" } else { "" };
        let line = format!("  {}({}){hint}", tool["name"].as_str().unwrap_or_default(), members.join(", "));
        visible(&line).into_owned()
    };
    let tools = known.tools().iter().map(line);
    seen(facts).into_iter().take(1).chain(tools).collect()
}

//! Arguments of tools against the schemas that the tools list.

use serde_json::Value;

use peerproof_engine::json::Json;
use peerproof_engine::schema::{Schema, Schemas};

/// Keywords whose violation no tool may take for a success.
const STRICT: [&str; 4] = ["required", "type", "enum", "const"];

/// Relation of arguments to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// The arguments are valid.
    Yes,
    /// They break `required`, `type`, `enum` or `const`.
    No,
    /// They break another keyword, or the schema cannot be used.
    Unclear,
}

/// Compares arguments with the `inputSchema` of a tool.
pub fn fit(tool: &Value, arguments: &Json) -> Fits {
    if !Schemas::enabled() {
        return Fits::Unclear;
    }
    let Some(schema) = tool.get("inputSchema") else { return Fits::Unclear };
    let Ok(schema) = schema.to_string().parse::<Json>() else { return Fits::Unclear };
    let Ok(schema) = Schema::of_peer(&schema) else { return Fits::Unclear };
    let violations = schema.validate(arguments);
    if violations.is_empty() {
        return Fits::Yes;
    }
    // Behind `anyOf` and the like nobody can tell which branch was meant.
    match violations.iter().all(|violation| STRICT.contains(&violation.keyword.as_str())) {
        true => Fits::No,
        false => Fits::Unclear,
    }
}

/// Names of the members that the schema of a tool requires.
pub fn required(tool: &Value) -> Vec<&str> {
    let names = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

//! Libraries of servers, identified by the texts of their errors.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::unknown::UNKNOWN_TOOL;
use peerproof_json_rpc::talk::UNKNOWN_METHOD;

/// A library, with the clauses that it breaks in every server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    name: String,
    method: Option<String>,
    tool: Option<String>,
    clauses: Vec<String>,
}

fn all() -> &'static [Library] {
    static ALL: OnceLock<BTreeMap<String, Vec<Library>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        toml::from_str(include_str!("../corpora/libraries.toml"))
            .unwrap_or_else(|error| unreachable!("corpora/mcp/libraries.toml does not load: {error}"))
    });
    all.get("library").map_or(&[], Vec::as_slice)
}

/// An answer in the notation of the table.
pub(crate) fn answer(response: &Value) -> Option<String> {
    if let Some(error) = response.get("error") {
        let data = error.get("data").map(|data| format!(" {data}")).unwrap_or_default();
        return Some(format!("{} {}{data}", error["code"], error["message"].as_str()?));
    }
    let result = response.get("result").filter(|result| result["isError"] == true)?;
    Some(format!("isError {}", result.pointer("/content/0/text")?.as_str()?))
}

/// Clauses that a server's library breaks, each with its name. The library is identified by answers about an
/// unknown method and an unknown tool.
pub(crate) fn faults(method: Option<&str>, tool: Option<&str>) -> BTreeMap<String, String> {
    let fits = |pattern: &Option<String>, came: Option<&str>| {
        let Some(pattern) = pattern else { return true };
        let pattern = pattern.replace("$METHOD", UNKNOWN_METHOD).replace("$TOOL", UNKNOWN_TOOL);
        came.is_some_and(|came| match pattern.strip_suffix('*') {
            Some(beginning) => came.starts_with(beginning),
            None => came == pattern,
        })
    };
    let rows = all().iter().filter(|row| fits(&row.method, method) && fits(&row.tool, tool));
    rows.flat_map(|row| row.clauses.iter().map(|clause| (clause.clone(), row.name.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_library_is_told_by_its_errors_alone() {
        let known = crate::boundary().clauses();
        for row in all() {
            assert!(row.method.is_some() || row.tool.is_some(), "{}", row.name);
            assert!(
                row.clauses.iter().all(|id| known.iter().any(|clause| clause.id.0 == *id)),
                "{}",
                row.name
            );
        }
        let error =
            json!({ "error": { "code": -32602, "message": "Invalid request parameters", "data": "" } });
        let python = faults(answer(&error).as_deref(), None);
        assert!(python["MCP-BAS-04"].starts_with("Python SDK 1"));
        assert!(!python.contains_key("MCP-TOL-01"), "that depends on the class of the server");
        let usual = json!({ "error": { "code": -32601, "message": "Method not found" } });
        assert!(faults(answer(&usual).as_deref(), None).is_empty(), "everybody says so");
    }
}

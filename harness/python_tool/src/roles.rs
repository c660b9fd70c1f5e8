//! Roles of tools: entries, usual payloads and outcomes.

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use serde_json::Value;

/// Roles with external effects. Their module is larger, and Python compiles a module for each call.
const EFFECTS: [&str; 6] = ["write", "read", "connect", "process", "env_read", "env_write"];

/// Entry of the module that acts at import.
const IMPORTED_ENTRY: &str = "tools.peerproof_import:any";

/// Entry of the document's example.
const GREET: &str = "tools.sample_tool:greet";

/// Entry of a plain tool in a top-level module.
const TOP: &str = "peerproof_top:any";

/// True if the peer maps roles to entries of its own, outside the scratch project.
pub(crate) fn maps_own(facts: &Facts) -> bool {
    let is_usual =
        |name: &str, entry: &str| entry == usual_entry(name) || entry == format!("tools.peerproof:{name}");
    let entry = |role: &Value| role.get("entry").and_then(Value::as_str).map(str::to_owned);
    facts.roles.iter().any(|(name, role)| !entry(role).is_some_and(|entry| is_usual(name, &entry)))
}

/// Entry of a plain tool in the module of the roles with external effects. A plain call of it compiles the module
/// of the probe that follows, for runners that cache compiled modules.
const ANY_OF_EFFECTS: &str = "tools.peerproof_effects:any";

/// Nesting of the object that `deep64` returns, levels; the reply around it makes 64.
const DEEP_LEVELS: usize = 63;

/// Names of all roles.
pub const ROLES: [&str; 18] = [
    "any",
    "echo",
    "value",
    "fail",
    "sleep",
    "blob",
    "noise",
    "quit",
    "spawn",
    "stdin",
    "write",
    "read",
    "connect",
    "process",
    "env_read",
    "env_write",
    "greet",
    "imported",
];

/// Name of the module in `tools` with a role.
pub(crate) fn module_of(role: &str) -> &'static str {
    if EFFECTS.contains(&role) { "peerproof_effects" } else { "peerproof" }
}

/// Entry of the scratch project for a role.
pub fn usual_entry(role: &str) -> String {
    match role {
        "imported" => IMPORTED_ENTRY.to_owned(),
        "greet" => GREET.to_owned(),
        _ => format!("tools.{}:{role}", module_of(role)),
    }
}

/// Entry for a role, configured or usual.
pub(crate) fn entry_of(facts: &Facts, role: &str) -> String {
    let mapped = facts.roles.get(role).and_then(|role| role.get("entry")?.as_str());
    mapped.map_or_else(|| usual_entry(role), str::to_owned)
}

/// Entry of a plain tool in the module of a role with external effects; `None` if the peer has entries of its own.
pub(crate) fn any_of_effects(facts: &Facts) -> Option<&'static str> {
    (!maps_own(facts)).then_some(ANY_OF_EFFECTS)
}

/// Tool name for a role.
pub(crate) fn tool_of<'a>(facts: &'a Facts, role: &'a str) -> &'a str {
    facts.roles.get(role).and_then(|role| role.get("tool")?.as_str()).unwrap_or(role)
}

/// Role of an entry; `imported` for the module that acts at import.
pub(crate) fn role_of(facts: &Facts, entry: &str) -> Option<&'static str> {
    let own = ROLES.into_iter().find(|role| entry_of(facts, role) == entry);
    own.or_else(|| ([TOP, ANY_OF_EFFECTS].contains(&entry) && !maps_own(facts)).then_some("any"))
}

/// Default payload of a role, as JSON text.
pub(crate) fn usual_payload(role: &str) -> &'static str {
    match role {
        "echo" => r#"{"a":[1,null,{"b":"é"}],"c":{}}"#,
        "greet" => r#"{"name":"Ada"}"#,
        "value" => r#"{"kind":"list"}"#,
        "fail" => r#"{"type":"ValueError","message":"Missing input"}"#,
        "sleep" => r#"{"ms":1}"#,
        "blob" => r#"{"bytes":10}"#,
        "noise" => r#"{"route":"print","text":"NOISE"}"#,
        "quit" => r#"{"how":"sys","code":1}"#,
        "spawn" => r#"{"ms":3000,"hold":false}"#,
        "write" => r#"{"route":"open","path":"$PATH","text":"ran"}"#,
        _ => "{}",
    }
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// This result, under this clause.
    Result(&'static str, Json),
    /// This result or a failure, under this clause.
    ResultOrFailure(&'static str, Json),
    /// Any result.
    Any,
    /// An exception: clause, class name, true if the class is in the tool's own module, and text.
    Raises(&'static str, String, bool, String),
    /// A failure, because the returned value is not JSON.
    Fails(&'static str),
    /// The end of the tool's process.
    Ends,
    /// Any outcome.
    Open(&'static str),
}

fn parsed(text: &str) -> Json {
    text.parse().unwrap_or_default()
}

/// Outcome of `role` with `payload` if nothing forbids it; `None` if the payload is not valid for the role.
pub fn outcome(role: &str, payload: &Json) -> Option<Outcome> {
    let text = |name: &str| payload.get(name).and_then(Json::as_str);
    let whole = |name: &str| payload.get(name).and_then(Json::as_u64);
    Some(match role {
        "any" | "imported" => Outcome::Result("PT-RES-01", parsed(r#"{"any":1}"#)),
        "echo" => Outcome::Result("PT-RES-01", payload.clone()),
        "greet" => {
            let message = format!("Hello {}", text("name")?);
            let result = [("message", Json::from(message)), ("ok", Json::from(true))];
            Outcome::Result("PT-REPLY-04", Json::object(result))
        }
        "value" => return value(text("kind")?),
        "fail" => {
            let (kind, message) = (text("type")?, text("message")?);
            let is_own = kind == "Own";
            let clause = if is_own { "PT-FAIL-02" } else { "PT-FAIL-01" };
            Outcome::Raises(clause, kind.to_owned(), is_own, message.to_owned())
        }
        "sleep" => Outcome::Result("PT-TIME-01", Json::object([("slept_ms", payload.get("ms")?.clone())])),
        "blob" => {
            let data = "x".repeat(usize::try_from(whole("bytes")?).ok().filter(|bytes| *bytes <= 64 << 20)?);
            Outcome::Result("PT-SIZE-01", Json::object([("data", Json::from(data))]))
        }
        "noise" if text("route") == Some("close") => Outcome::Open("PT-OUT-04"),
        "noise" => Outcome::Result("PT-OUT-01", parsed("{}")),
        "quit" => {
            text("how")?;
            Outcome::Ends
        }
        "spawn" => Outcome::Any,
        // It reads nothing, or fails.
        "stdin" => Outcome::ResultOrFailure("PT-OUT-03", parsed(r#"{"read":""}"#)),
        "write" | "read" | "connect" | "process" | "env_read" | "env_write" => {
            text("route")?;
            Outcome::Any
        }
        _ => return None,
    })
}

fn value(kind: &str) -> Option<Outcome> {
    let equal = |text: &str| Outcome::Result("PT-RES-02", parsed(text));
    let or_failure = |text: &str| Outcome::ResultOrFailure("PT-RES-03", parsed(text));
    Some(match kind {
        "nan" | "inf" | "cycle" => Outcome::Fails("PT-RES-04"),
        "late_nan" => Outcome::Fails("PT-RES-06"),
        "bytes" | "set" | "object" | "generator" | "date" | "decimal" => Outcome::Fails("PT-RES-05"),
        "late_bytes" => Outcome::Fails("PT-RES-06"),
        "tuple" => or_failure(r#"{"v":[1,2]}"#),
        "intkeys" => or_failure(r#"{"1":"a","2":"b"}"#),
        "boolkeys" => Outcome::Open("PT-RES-03"),
        "none" => equal("null"),
        "list" => equal(r#"[1,"a",null]"#),
        "text" => equal(r#""a""#),
        "number" => equal("7"),
        "true" => equal("true"),
        "bigint" => Outcome::Open("PT-JSON-07"),
        "surrogate" => Outcome::Open("PT-JSON-06"),
        "deep64" => {
            let deep = "{\"d\":".repeat(DEEP_LEVELS) + "1" + &"}".repeat(DEEP_LEVELS);
            Outcome::Result("PT-JSON-03", parsed(&deep))
        }
        "text_é" => Outcome::Result("PT-FRAME-06", parsed("{\"v\":\"é€😀\\u2028\\u0000\"}")),
        "ok_false" => Outcome::Result("PT-REPLY-04", parsed(r#"{"ok":false}"#)),
        _ => return None,
    })
}

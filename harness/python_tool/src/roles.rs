//! Roles of tools: their entries, usual payloads, and what comes of a call that nothing forbids.

use super::config::maps_own;
use peerproof_engine::facts::Facts;
use peerproof_engine::json::Json;

/// Roles that reach out of their process. Their module is larger, and Python compiles a module for each call.
const EFFECTS: [&str; 6] = ["write", "read", "connect", "process", "env_read", "env_write"];

/// The module that does something while it is imported.
const IMPORTED_ENTRY: &str = "tools.peerproof_import:any";

/// The document's own example.
const GREET: &str = "tools.sample_tool:greet";

/// The same plain tool as that of `any`, in a module that lies in no package.
const TOP: &str = "peerproof_top:any";

/// A plain tool as that of `any`, in the module of the roles that reach out. A runner that keeps compiled modules has kept one of two
/// modules when only the other was called.
const ANY_OF_EFFECTS: &str = "tools.peerproof_effects:any";

/// Levels of the object that `deep64` returns; with the reply that holds it, 64.
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

/// Name of the module in `tools` that plays a role.
pub fn module_of(role: &str) -> &'static str {
    if EFFECTS.contains(&role) { "peerproof_effects" } else { "peerproof" }
}

/// The entry of the scratch project that plays a role.
pub fn usual_entry(role: &str) -> String {
    match role {
        "imported" => IMPORTED_ENTRY.to_owned(),
        "greet" => GREET.to_owned(),
        _ => format!("tools.{}:{role}", module_of(role)),
    }
}

/// The entry that plays a role.
pub fn entry_of(facts: &Facts, role: &str) -> String {
    let mapped = facts.roles.get(role).and_then(|role| role.get("entry")?.as_str());
    mapped.map_or_else(|| usual_entry(role), str::to_owned)
}

/// The entry of a plain tool in the module of a role that reaches out; `None` where the peer has entries of its own.
pub fn any_of_effects(facts: &Facts) -> Option<&'static str> {
    (!maps_own(facts)).then_some(ANY_OF_EFFECTS)
}

/// The name of the tool that plays a role.
pub fn tool_of<'a>(facts: &'a Facts, role: &'a str) -> &'a str {
    facts.roles.get(role).and_then(|role| role.get("tool")?.as_str()).unwrap_or(role)
}

/// The role that an entry plays; `imported` for the module that does something while it is imported.
pub fn role_of(facts: &Facts, entry: &str) -> Option<&'static str> {
    let own = ROLES.into_iter().find(|role| entry_of(facts, role) == entry);
    own.or_else(|| ([TOP, ANY_OF_EFFECTS].contains(&entry) && !maps_own(facts)).then_some("any"))
}

/// The payload of a role where a row says nothing, as JSON text.
pub fn usual_payload(role: &str) -> &'static str {
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

/// What comes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// This result.
    Result(&'static str, Json),
    /// This result, or the call fails.
    ResultOrFailure(&'static str, Json),
    /// A result of any value.
    Any,
    /// The tool raises: name of the class, whether it is of the tool's own module, and text.
    Raises(&'static str, String, bool, String),
    /// The call fails; what it returned is no JSON.
    Fails(&'static str),
    /// The tool ends its process.
    Ends,
    /// Whatever comes is right.
    Open(&'static str),
}

fn parsed(text: &str) -> Json {
    text.parse().unwrap_or_default()
}

/// What comes of `role` with `payload`, where nothing forbids it; `None` where the payload is not that of the role.
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
        // What it reads is nothing, or it fails.
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

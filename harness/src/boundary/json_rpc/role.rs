//! Conformance roles: the peer's own methods that play known parts.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::facts::Facts;

/// Every role.
pub const ROLES: &[&str] = &["echo", "fail", "sleep", "named", "counter", "blob", "stream"];

/// A mapped role.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Name of the peer's method.
    pub method: String,
    /// Template of its params; `"{ms}"` and `"{bytes}"` stand for the numbers that a check asks for.
    #[serde(default)]
    pub params: Option<Value>,
    /// What the result of role `named` is: `difference` of `minuend` and `subtrahend`. Without it, anything.
    #[serde(default)]
    pub expect: Option<String>,
}

/// The name of the reference's method for `role`.
pub fn reference_method(role: &str) -> String {
    match role {
        "stream" => "execute_task".to_owned(),
        _ => format!("peerproof.{role}"),
    }
}

/// The mapping of `role` to the reference's method, with the params that the table of roles gives it.
pub fn reference_role(role: &str) -> Value {
    let method = reference_method(role);
    match role {
        "sleep" => json!({ "method": method, "params": { "ms": "{ms}" } }),
        "blob" => json!({ "method": method, "params": { "bytes": "{bytes}" } }),
        "named" => {
            json!({ "method": method, "params": { "minuend": 42, "subtrahend": 23 }, "expect": "difference" })
        }
        "stream" => json!({
            "method": method,
            "params": { "task_type": "analysis", "prompt": "Count to three.", "options": { "stream": true } },
        }),
        _ => json!({ "method": method }),
    }
}

/// A role of this peer, if it is mapped.
pub fn role(facts: &Facts, name: &str) -> Option<Role> {
    facts.roles.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}

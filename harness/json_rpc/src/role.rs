//! Conformance roles: methods of the peer with known behaviour.

use serde::Deserialize;
use serde_json::{Value, json};

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::drive::peer::fill_template;

/// All roles.
pub const ROLES: &[&str] = &["echo", "fail", "sleep", "named", "counter", "blob", "stream"];

/// A mapped role.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Name of the peer's method.
    pub method: String,
    /// Template of its params; `"{ms}"` and `"{bytes}"` stand for numbers that a check chooses.
    #[serde(default)]
    pub params: Option<Value>,
    /// Result of the role `named`: `difference` means that of `minuend` and `subtrahend`. Without it any result is
    /// allowed.
    #[serde(default)]
    pub expect: Option<String>,
}

/// Name of the reference's method for `role`.
pub(crate) fn reference_method(role: &str) -> String {
    match role {
        "stream" => "execute_task".to_owned(),
        _ => format!("peerproof.{role}"),
    }
}

/// Mapping of `role` to the reference's method, with the params from the table of roles.
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

/// A role of this peer, if its method passed the probe.
pub fn role(facts: &Facts, name: &str) -> Option<Role> {
    mapped(facts, name).filter(|_| !facts.misfits.contains_key(name))
}

/// A role of this peer, if it is mapped. The default params are those of the table of roles.
pub fn mapped(facts: &Facts, name: &str) -> Option<Role> {
    let mut role: Role =
        facts.roles.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())?;
    if role.params.is_none() && matches!(name, "sleep" | "blob") {
        role.params = reference_role(name).get("params").cloned();
    }
    Some(role)
}

/// The method that returns the difference of the named params `minuend` and `subtrahend`.
///
/// # Errors
/// The role `named` does not promise this result, so checks cannot tell whether params arrived.
pub fn difference(facts: &Facts) -> Result<Role, Untestable> {
    role(facts, "named").filter(|role| role.expect.as_deref() == Some("difference")).ok_or_else(|| {
        Untestable::new(
            "role_probes_nothing",
            "the role `named` does not describe its result; map it to a method that subtracts, with expect \
             = \"difference\"",
        )
    })
}

impl Role {
    /// Params with `value` for the placeholder `name`.
    ///
    /// # Errors
    /// The template lacks this placeholder, or has another one.
    pub fn filled(&self, name: &str, value: u64) -> Result<Value, Untestable> {
        let has_place = |params: &Value| params.to_string().contains(&format!("{{{name}}}"));
        if !self.params.as_ref().is_some_and(has_place) {
            return Err(Untestable::new(
                "role_probes_nothing",
                format!(
                    "the params of the method {:?} lack \"{{{name}}}\"; add it to its role in [roles]",
                    self.method
                ),
            ));
        }
        let params = self.params.as_ref().unwrap_or(&Value::Null);
        Ok(fill_template(params, &[(name, Value::from(value))])?)
    }

    /// The number at the placeholder `name`, if `params` otherwise equal the template. Members of `options` are
    /// ignored, because a request may always set a timeout.
    pub fn amount(&self, name: &str, params: &Json) -> Option<u64> {
        let mut found = None;
        let fits = matches(&self.params.as_ref()?.to_string().parse().ok()?, params, name, 0, &mut found);
        found.filter(|_| fits)
    }
}

fn matches(template: &Json, value: &Json, name: &str, depth: usize, found: &mut Option<u64>) -> bool {
    match (template, value) {
        (Json::String(text), value) if text.contains(&format!("{{{name}}}")) => {
            let (before, after) = text.split_once(&format!("{{{name}}}")).unwrap_or_default();
            *found = match value {
                Json::String(text) => {
                    let inner = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
                    inner.and_then(|text| text.parse().ok())
                }
                value if before.is_empty() && after.is_empty() => value.as_u64(),
                _ => None,
            };
            found.is_some()
        }
        (Json::Array(template), Json::Array(items)) => {
            template.len() == items.len()
                && template
                    .iter()
                    .zip(items)
                    .all(|(template, item)| matches(template, item, name, depth + 1, found))
        }
        (Json::Object(template), Json::Object(members)) => {
            let of = |all: &[(String, Json)], name: &str| {
                all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            };
            let is_option = |known: &str| depth == 0 && known == "options";
            let known = |known: &String| is_option(known) || of(template, known).is_some();
            members.iter().all(|(name, _)| known(name))
                && template.iter().filter(|(name, _)| !is_option(name)).all(|(member, template)| {
                    of(members, member).is_some_and(|value| matches(template, &value, name, depth + 1, found))
                })
        }
        (template, value) => template == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_found_where_the_template_has_them() {
        let of = |template: Value, params: &str| {
            let role = Role { method: "m".to_owned(), params: Some(template), expect: None };
            role.amount("ms", &params.parse().unwrap())
        };
        let plain = || json!({ "ms": "{ms}", "why": ["so"] });
        assert_eq!(of(plain(), r#"{"why":["so"],"ms":5}"#), Some(5));
        assert_eq!(of(plain(), r#"{"why":["so"],"ms":5,"options":{"timeout_ms":1}}"#), Some(5));
        assert_eq!(of(plain(), r#"{"why":["no"],"ms":5}"#), None);
        assert_eq!(of(plain(), r#"{"why":["so"],"ms":5,"more":1}"#), None);
        assert_eq!(of(plain(), r#"{"why":["so"],"ms":-5}"#), None);
        assert_eq!(of(json!(["{ms}"]), "[7]"), Some(7));
        assert_eq!(of(json!({ "for": "{ms} ms" }), r#"{"for":"7 ms"}"#), Some(7));
        assert_eq!(of(json!({ "s": 1, "options": {} }), r#"{"s":1}"#), None);
    }

    #[test]
    fn a_role_without_its_placeholder_probes_nothing() {
        let role = |params| Role { method: "m".to_owned(), params, expect: None };
        for params in [None, Some(json!({})), Some(json!({ "bytes": "{bytes}" }))] {
            assert_eq!(role(params).filled("ms", 1).unwrap_err().code, "role_probes_nothing");
        }
    }

    #[test]
    fn what_is_filled_in_is_found_again() {
        for params in [json!({ "ms": "{ms}" }), json!(["sleep", "{ms}"]), json!({ "for": "{ms}ms" })] {
            let role = Role { method: "m".to_owned(), params: Some(params), expect: None };
            let filled = role.filled("ms", 250).unwrap().to_string();
            assert_eq!(role.amount("ms", &filled.parse().unwrap()), Some(250), "{filled}");
        }
    }
}

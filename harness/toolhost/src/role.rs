//! Conformance roles: tools of the peer with known behaviour.

use serde::Deserialize;

use peerproof_engine::data::facts::Facts;

/// Every role, with the input for its probe.
pub const ROLES: &[(&str, &str)] = &[
    ("any", "{}"),
    ("echo", "{\"probe\":\"echo\"}"),
    ("counter", "{}"),
    (
        "put",
        "{\"slot\":7,\"artifact\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}}",
    ),
    ("get", "{\"slot\":7}"),
    ("remove", "{\"slot\":7}"),
    ("fail", "{\"message\":\"probe\"}"),
    ("sleep", "{\"ms\":1}"),
    ("blob", "{\"bytes\":3}"),
    ("noise", "{\"stdout\":\"\",\"stderr\":\"\"}"),
    ("crash", "{}"),
    ("tier1", "{}"),
    ("tier2", "{}"),
    ("tier3", "{}"),
    ("http_get", "{\"url\":\"\"}"),
];

/// A mapped role.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Action id of the peer's tool.
    pub aid: String,
    /// Input known to succeed, for the role `any`. Other roles define their own.
    #[serde(default)]
    pub input: Option<serde_json::Value>,
    /// Lease tier of the tool, if it differs from the role's.
    #[serde(default)]
    pub tier: Option<u64>,
}

/// Action id of the reference's tool for `role`.
pub fn reference_aid(role: &str) -> String {
    match role {
        "http_get" => "AID.NET.HTTP_GET.v1".to_owned(),
        _ => format!("AID.PEERPROOF.{}.v1", role.to_uppercase()),
    }
}

/// Role of this peer, if it is mapped.
pub fn role(facts: &Facts, name: &str) -> Option<Role> {
    facts.roles.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}

//! Descriptions of tools, resources and prompts in each revision.

use super::revision::Revision;
use crate::json::{Policy, Text, Value};

/// Descriptions in the form of the newest revision. A member `since` names the first revision with the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog(pub Value);

/// Members of list items, with the first revision of each.
const MEMBERS: [(&str, Revision); 5] = [
    ("annotations", Revision::V25a),
    ("title", Revision::V25b),
    ("outputSchema", Revision::V25b),
    ("size", Revision::V25a),
    ("execution", Revision::V25c),
];

impl Default for Catalog {
    fn default() -> Self {
        let text = include_bytes!("catalog.json");
        Self(Value::parse(text, 32, &Policy::default()).unwrap_or(Value::Null))
    }
}

impl Catalog {
    /// Items of a list, such as `tools`, at a revision.
    pub fn list(&self, name: &str, revision: Revision) -> Vec<Value> {
        let items = self.0.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(|item| at(item, revision)).collect()
    }

    /// Item of a list whose member `key` is `value`.
    pub fn item(&self, list: &str, key: &str, value: &Text, revision: Revision) -> Option<Value> {
        let items = self.list(list, revision);
        items.into_iter().find(|item| item.get(key).and_then(Value::as_text) == Some(value))
    }

    /// The object `capabilities` or `serverInfo` at a revision.
    pub fn object(&self, name: &str, revision: Revision) -> Value {
        let Some(object) = self.0.get(name).and_then(|object| at(object, revision)) else {
            return Value::Null;
        };
        let Value::Object(members) = object else { return object };
        let known = |(name, value): (Text, Value)| {
            if value.as_object().is_some() {
                Some((name, at(&value, revision)?))
            } else {
                Some((name, value))
            }
        };
        Value::Object(members.into_iter().filter_map(known).collect())
    }

    /// True if the revision declares the capability.
    pub fn declares(&self, capability: &str, revision: Revision) -> bool {
        self.object("capabilities", revision).get(capability).is_some()
    }

    /// Removes a capability.
    pub(crate) fn forget(&mut self, capability: &str) {
        if let Value::Object(members) = &mut self.0
            && let Some((_, Value::Object(capabilities))) =
                members.iter_mut().find(|(name, _)| name == "capabilities")
        {
            capabilities.retain(|(name, _)| name != capability);
        }
    }
}

/// An item in the form of a revision; `None` if the revision lacks it.
fn at(item: &Value, revision: Revision) -> Option<Value> {
    let members = item.as_object()?;
    let since = item.get("since").and_then(Value::as_str).and_then(Revision::find);
    if since.is_some_and(|since| since > revision) {
        return None;
    }
    let is_known = |name: &Text| {
        name != "since" && !MEMBERS.iter().any(|(member, since)| name == member && *since > revision)
    };
    Some(Value::Object(members.iter().filter(|(name, _)| is_known(name)).cloned().collect()))
}

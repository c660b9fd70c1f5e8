//! Adapter that lets the validator read our values in place, with a limit on nesting.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ptr;

use jsonschema::JsonType;
use jsonschema::json::{Array, Node, NodeIdentity, Object};
use serde_json::Value;

use crate::data::json::{Json, Number};

/// Maximum size of objects in which repeated names are found by comparing all pairs.
const PAIRWISE_MEMBERS_MAX: usize = 16;

/// Representation of our values for the validator.
pub(super) struct Instances;

/// Value; containers count as empty if no level is left.
#[derive(Clone, Copy)]
pub(super) struct Instance<'a> {
    json: &'a Json,
    levels: usize,
}

/// Members of an object.
pub(super) struct ObjectMembers<'a> {
    members: &'a [(String, Json)],
    /// Levels left in the values of the members.
    levels: usize,
}

/// Items of an array.
pub(super) struct Items<'a> {
    items: &'a [Json],
    /// Levels left in the items.
    levels: usize,
}

impl<'a> Instance<'a> {
    pub(super) fn new(json: &'a Json, levels: usize) -> Self {
        Self { json, levels }
    }
}

impl jsonschema::json::Json for Instances {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = Json;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Json, string: &str, f: impl FnOnce(Instance<'_>) -> T) -> T {
        *buffer = string.into();
        f(Instance::new(buffer, 0))
    }
}

impl<'a> Node<'a, Instances> for Instance<'a> {
    type Object = ObjectMembers<'a>;
    type Array = Items<'a>;
    type Number = serde_json::Number;

    fn as_object(&self) -> Option<ObjectMembers<'a>> {
        let members = self.json.as_object()?;
        Some(match self.levels.checked_sub(1) {
            Some(levels) => ObjectMembers { members, levels },
            None => ObjectMembers { members: &[], levels: 0 },
        })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        let items = self.json.as_array()?;
        Some(match self.levels.checked_sub(1) {
            Some(levels) => Items { items, levels },
            None => Items { items: &[], levels: 0 },
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.json.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<serde_json::Number> {
        self.json.as_number().map(number)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.json.as_bool()
    }

    fn is_null(&self) -> bool {
        self.json.is_null()
    }

    fn is_number(&self) -> bool {
        matches!(self.json, Json::Number(_))
    }

    fn json_type(&self) -> JsonType {
        match self.json {
            Json::Null => JsonType::Null,
            Json::Bool(_) => JsonType::Boolean,
            Json::Number(_) => JsonType::Number,
            Json::String(_) => JsonType::String,
            Json::Array(_) => JsonType::Array,
            Json::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self.json, expected) {
            (Json::String(string), expected) => expected.as_str() == Some(string.as_str()),
            (Json::Bool(value), expected) => expected.as_bool() == Some(*value),
            (_, expected) => jsonschema::json::cmp::equal(&self.to_value(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(to_value(self.json, self.levels))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(ptr::from_ref(self.json) as usize))
    }
}

impl<'a> Object<'a, Instances> for ObjectMembers<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = std::vec::IntoIter<(&'a str, Instance<'a>)>;

    /// Number of distinct names.
    fn len(&self) -> usize {
        if self.members.len() > PAIRWISE_MEMBERS_MAX {
            return self.members.iter().map(|(name, _)| name.as_str()).collect::<HashSet<_>>().len();
        }
        let is_last = |at: usize, name: &str| !self.members[at + 1..].iter().any(|(later, _)| later == name);
        self.members.iter().enumerate().filter(|(at, (name, _))| is_last(*at, name)).count()
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let (_, json) = self.members.iter().rev().find(|(name, _)| name == key)?;
        Some(Instance::new(json, self.levels))
    }

    /// Members sorted by name, so that messages do not depend on their order. The last of several members with one name
    /// counts.
    fn members(&self) -> Self::MembersIter {
        let node = |(name, json): &'a (String, Json)| (name.as_str(), Instance::new(json, self.levels));
        let mut members: Vec<(&'a str, Instance<'a>)> = self.members.iter().rev().map(node).collect();
        members.sort_by_key(|(name, _)| *name);
        members.dedup_by_key(|(name, _)| *name);
        members.into_iter()
    }
}

impl<'a> Array<'a, Instances> for Items<'a> {
    type Node = Instance<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements { items: self.items.iter(), levels: self.levels }
    }
}

/// Iterator over the items of an array.
pub(super) struct Elements<'a> {
    items: std::slice::Iter<'a, Json>,
    levels: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        self.items.next().map(|json| Instance::new(json, self.levels))
    }
}

/// Number for the validator: a 64-bit integer, or else the nearest double, or else the largest one.
fn number(number: &Number) -> serde_json::Number {
    let double = || number.as_f64().and_then(serde_json::Number::from_f64);
    let largest = if number.text().starts_with('-') { f64::MIN } else { f64::MAX };
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => value.into(),
        (_, Some(value)) => value.into(),
        // The largest double is finite: the default is never used.
        _ => double().or_else(|| serde_json::Number::from_f64(largest)).unwrap_or_else(|| 0.into()),
    }
}

pub(super) fn to_value(json: &Json, levels: usize) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(value) => Value::Number(number(value)),
        Json::String(string) => Value::String(string.clone()),
        Json::Array(_) if levels == 0 => Value::Array(Vec::new()),
        Json::Array(items) => items.iter().map(|item| to_value(item, levels - 1)).collect(),
        Json::Object(_) if levels == 0 => Value::Object(serde_json::Map::new()),
        Json::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), to_value(value, levels - 1))).collect()
        }
    }
}

//! Drop, clone and equality of deep values with a worklist, because derived ones would recurse.

use std::collections::HashMap;
use std::mem;

use super::{Json, Number};

impl Json {
    fn children(&self) -> impl Iterator<Item = &Json> {
        let (items, members): (&[Json], &[(String, Json)]) = match self {
            Json::Array(items) => (items, &[]),
            Json::Object(members) => (&[], members),
            _ => (&[], &[]),
        };
        items.iter().chain(members.iter().map(|(_, value)| value))
    }

    fn children_mut(&mut self) -> impl Iterator<Item = &mut Json> {
        let (items, members): (&mut [Json], &mut [(String, Json)]) = match self {
            Json::Array(items) => (items, &mut []),
            Json::Object(members) => (&mut [], members),
            _ => (&mut [], &mut []),
        };
        items.iter_mut().chain(members.iter_mut().map(|(_, value)| value))
    }

    fn is_container(&self) -> bool {
        matches!(self, Json::Array(_) | Json::Object(_))
    }

    fn holds_containers(&self) -> bool {
        self.children().any(Json::is_container)
    }

    /// True if this value or any value in it is a number for which `is` holds.
    pub fn has_number(&self, is: impl Fn(&Number) -> bool) -> bool {
        self.has(|value| value.as_number().is_some_and(&is))
    }

    /// True if `is` holds for this value or any value in it.
    pub fn has(&self, is: impl Fn(&Json) -> bool) -> bool {
        let mut pending = vec![self];
        while let Some(value) = pending.pop() {
            if is(value) {
                return true;
            }
            pending.extend(value.children());
        }
        false
    }

    /// Calls `change` with every object in this value, itself included.
    pub(crate) fn for_each_object(&mut self, mut change: impl FnMut(&mut Vec<(String, Json)>)) {
        let mut pending = vec![self];
        while let Some(value) = pending.pop() {
            if let Json::Object(members) = value {
                change(members);
            }
            pending.extend(value.children_mut().filter(|child| child.is_container()));
        }
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        // Moves out only children that hold containers: the rest is dropped in at most two levels.
        if !self.holds_containers() {
            return;
        }
        let mut pending = Vec::new();
        let take = |value: &mut Json, pending: &mut Vec<Json>| {
            pending.extend(value.children_mut().filter(|child| child.holds_containers()).map(mem::take));
        };
        take(self, &mut pending);
        while let Some(mut value) = pending.pop() {
            take(&mut value, &mut pending);
        }
    }
}

/// Partly copied container: its source and the copies of its first children.
enum Copying<'a> {
    Array(&'a [Json], Vec<Json>),
    Object(&'a [(String, Json)], Vec<(String, Json)>),
}

impl<'a> Copying<'a> {
    /// Starts the copy of a container; returns the copy of a scalar at once, as the error.
    fn start(source: &'a Json) -> Result<Copying<'a>, Json> {
        match source {
            Json::Null => Err(Json::Null),
            Json::Bool(value) => Err(Json::Bool(*value)),
            Json::Number(number) => Err(Json::Number(number.clone())),
            Json::String(string) => Err(Json::String(string.clone())),
            Json::Array(items) => Ok(Copying::Array(items, Vec::with_capacity(items.len()))),
            Json::Object(members) => Ok(Copying::Object(members, Vec::with_capacity(members.len()))),
        }
    }

    fn next_child(&self) -> Option<&'a Json> {
        match self {
            Copying::Array(source, copies) => source.get(copies.len()),
            Copying::Object(source, copies) => source.get(copies.len()).map(|(_, value)| value),
        }
    }

    fn push(&mut self, copy: Json) {
        match self {
            Copying::Array(_, copies) => copies.push(copy),
            Copying::Object(source, copies) => copies.push((source[copies.len()].0.clone(), copy)),
        }
    }

    fn finish(self) -> Json {
        match self {
            Copying::Array(_, copies) => Json::Array(copies),
            Copying::Object(_, copies) => Json::Object(copies),
        }
    }
}

impl Clone for Json {
    fn clone(&self) -> Json {
        let mut inner = match Copying::start(self) {
            Ok(container) => container,
            Err(copy) => return copy,
        };
        let mut outer = Vec::new();
        loop {
            match inner.next_child().map(Copying::start) {
                Some(Ok(container)) => outer.push(mem::replace(&mut inner, container)),
                Some(Err(copy)) => inner.push(copy),
                None => {
                    let copy = inner.finish();
                    match outer.pop() {
                        Some(container) => inner = container,
                        None => return copy,
                    }
                    inner.push(copy);
                }
            }
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        let mut pending = Vec::new();
        if !same_level(self, other, &mut pending) {
            return false;
        }
        while let Some((left, right)) = pending.pop() {
            let same = match (left, right) {
                (Json::Array(left), Json::Array(right)) => {
                    left.len() == right.len()
                        && left.iter().zip(right).all(|(left, right)| same_level(left, right, &mut pending))
                }
                (Json::Object(left), Json::Object(right)) => same_members(left, right, &mut pending),
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }
}

impl Eq for Json {}

/// Compares scalars at once and postpones containers.
fn same_level<'a>(left: &'a Json, right: &'a Json, pending: &mut Vec<(&'a Json, &'a Json)>) -> bool {
    match (left, right) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(left), Json::Bool(right)) => left == right,
        (Json::Number(left), Json::Number(right)) => left == right,
        (Json::String(left), Json::String(right)) => left == right,
        (Json::Array(_), Json::Array(_)) | (Json::Object(_), Json::Object(_)) => {
            pending.push((left, right));
            true
        }
        _ => false,
    }
}

type MemberSlice = [(String, Json)];

/// Maximum number of members that are searched linearly.
const WALKED_MEMBERS_MAX: usize = 16;

/// Compares members; the last of several with one name counts.
fn same_members<'a>(
    left: &'a MemberSlice,
    right: &'a MemberSlice,
    pending: &mut Vec<(&'a Json, &'a Json)>,
) -> bool {
    if left.len().max(right.len()) > WALKED_MEMBERS_MAX {
        let index = |members: &'a MemberSlice| -> HashMap<&'a str, &'a Json> {
            members.iter().map(|(key, value)| (key.as_str(), value)).collect()
        };
        let (left, right) = (index(left), index(right));
        return left.len() == right.len()
            && left
                .iter()
                .all(|(key, value)| right.get(key).is_some_and(|other| same_level(value, other, pending)));
    }
    let counting = |members: &'a MemberSlice| {
        let counts = move |at: usize, key: &str| !members[at + 1..].iter().any(|(later, _)| later == key);
        members.iter().enumerate().filter(move |(at, (key, _))| counts(*at, key)).map(|(_, member)| member)
    };
    counting(left).count() == counting(right).count()
        && counting(left).all(|(key, value)| {
            let other = right.iter().rev().find(|(name, _)| name == key);
            other.is_some_and(|(_, other)| same_level(value, other, pending))
        })
}

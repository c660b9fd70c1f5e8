//! Facts that the server keeps for later calls.

use std::collections::BTreeMap;

use crate::json::{Text, write_text};

/// The kinds of context, in the words of the protocol.
pub(super) const TYPES: [&str; 3] = ["file", "dependency", "state"];

/// Facts about files, dependencies and state: members by name, each with the JSON text of its value.
#[derive(Debug, Default)]
pub struct Context {
    pub(super) sections: [BTreeMap<Text, Vec<u8>>; 3],
    pub(super) bytes: usize,
}

impl Context {
    /// Names of the members of a section.
    pub fn names(&self, context_type: &str) -> impl Iterator<Item = &Text> {
        self.section(context_type).into_iter().flat_map(BTreeMap::keys)
    }

    /// The whole context as one JSON object.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes + 64);
        for (name, section) in TYPES.iter().zip(&self.sections) {
            out.extend_from_slice(if out.is_empty() { b"{\"" } else { b",\"" });
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":{");
            for (at, (name, value)) in section.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_text(&mut out, name);
                out.push(b':');
                out.extend_from_slice(value);
            }
            out.push(b'}');
        }
        out.push(b'}');
        out
    }

    fn section(&self, context_type: &str) -> Option<&BTreeMap<Text, Vec<u8>>> {
        self.sections.get(TYPES.iter().position(|name| *name == context_type)?)
    }
}

/// Size of a member in bytes.
pub(super) fn cost(name: &Text, value: &[u8]) -> usize {
    name.as_bytes().len() + value.len()
}

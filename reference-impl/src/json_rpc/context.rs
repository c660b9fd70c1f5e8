//! `update_context` (RPC "Context Update"): facts that the server keeps for later calls.

use std::collections::BTreeMap;

use super::method::{Call, Outcome, World};
use super::reply::{Failure, FailureKind};
use crate::json::{Text, write_text, write_value};

/// The kinds of context, in the words of the protocol.
const TYPES: [&str; 3] = ["file", "dependency", "state"];

/// Facts about files, dependencies and state: members by name, each with the JSON text of its value.
#[derive(Debug, Default)]
pub struct Context {
    sections: [BTreeMap<Text, Vec<u8>>; 3],
    bytes: usize,
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
fn cost(name: &Text, value: &[u8]) -> usize {
    name.as_bytes().len() + value.len()
}

/// Adds, changes or removes the members of `data` and returns their number. Unknown names to be changed or removed
/// count as missing. Nothing changes if the context would exceed its limit.
pub(super) fn update_context(call: &Call<'_>, world: &mut World) -> Outcome {
    let params = call.params.named(call.limits)?;
    let params = params.members();
    let action = params.one_of("action", &["add", "remove", "modify"])?;
    let context_type = params.one_of("context_type", &TYPES)?;
    let data = params.object("data")?.all();
    let at = TYPES.iter().position(|name| *name == context_type).unwrap_or_default();
    let Context { sections, bytes } = &mut world.context;
    let Some(section) = sections.get_mut(at) else { return Err(Failure::invalid_params("context_type")) };

    let mut changes = Vec::new();
    let mut bytes_after = *bytes;
    let mut missing = 0;
    for (name, value) in data {
        let before = section.get(name).map(|old| cost(name, old));
        if before.is_none() && action != "add" {
            missing += 1;
            continue;
        }
        bytes_after -= before.unwrap_or_default();
        if action == "remove" {
            changes.push((name, None));
        } else {
            let mut text = Vec::new();
            write_value(&mut text, value);
            bytes_after += cost(name, &text);
            changes.push((name, Some(text)));
        }
    }
    if bytes_after > call.limits.rpc_context_bytes_max {
        return Err(Failure::new(FailureKind::Unavailable, "the context would grow too large"));
    }
    let changed = changes.len();
    *bytes = bytes_after;
    for (name, value) in changes {
        match value {
            Some(value) => section.insert(name.clone(), value),
            None => section.remove(name),
        };
    }
    Ok(format!(
        "{{\"status\":\"success\",\"action\":\"{action}\",\"context_type\":\"{context_type}\",\
         \"changed\":{changed},\"missing\":{missing},\"total\":{}}}",
        section.len()
    )
    .into())
}

//! `update_context` (RPC "Context Update").

use super::context::{Context, TYPES, cost};
use super::method::{Call, Outcome, World};
use super::reply::{Failure, FailureKind};
use crate::json::write_value;

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

//! DSState: eight slots of artifacts, as full states and as deltas.

use peerproof_engine::data::json::Json;

/// Fault in the shape of a reply's `ds_state`; `None` if there is none.
pub(crate) fn fault(state: &Json) -> Option<String> {
    let Json::Object(_) = state else { return Some("`ds_state` is an object".to_owned()) };
    if let Some(slots) = state.get("slots") {
        let Json::Object(slots) = slots else { return Some("`slots` is an object".to_owned()) };
        for (name, artifact) in slots {
            if !matches!(name.as_bytes(), [b'0'..=b'7']) {
                return Some("slot names are \"0\" to \"7\"".to_owned());
            }
            if let Some(fault) = artifact_fault(artifact) {
                return Some(fault);
            }
        }
    }
    match state.get("removed_slots") {
        None => None,
        Some(Json::Array(removed)) => {
            let in_range = |slot: &Json| slot.as_u64().is_some_and(|slot| slot <= 7);
            (!removed.iter().all(in_range))
                .then(|| "`removed_slots` contains integers from 0 to 7".to_owned())
        }
        Some(_) => Some("`removed_slots` is an array".to_owned()),
    }
}

/// Slot of a `ds_state` whose `size_bytes` differs from the number of UTF-8 bytes of its `content_json`.
pub(crate) fn size_fault(state: &Json) -> Option<String> {
    let slots = state.get("slots").and_then(Json::as_object).unwrap_or_default();
    slots.iter().find_map(|(name, artifact)| {
        let content = artifact.get("content_json").and_then(Json::as_str)?;
        let size = artifact.get("size_bytes").and_then(Json::as_u64)?;
        (size != content.len() as u64).then(|| {
            format!("`size_bytes` of slot {name} is {size}; its `content_json` has {} bytes", content.len())
        })
    })
}

fn artifact_fault(artifact: &Json) -> Option<String> {
    let text = |name: &str| artifact.get(name).and_then(Json::as_str);
    for name in ["type", "provenance", "content_json"] {
        if text(name).is_none() {
            return Some(format!("an Artifact has a string `{name}`"));
        }
    }
    if artifact.get("size_bytes").and_then(Json::as_u64).is_none() {
        return Some("an Artifact has an integer `size_bytes`".to_owned());
    }
    None
}

//! Rules about results of tools.

use super::{Form, Kind, Need, first_of_each, results, revision_of};
use crate::model::{Server, arguments};
use crate::revision::Revision;
use crate::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::schema::Schema;

const FORM: &str = "MCP-TOL-07";
const STRUCTURED: &str = "MCP-TOL-08";
const CONFORMS: &str = "MCP-TOL-09";
const SAME_TEXT: &str = "MCP-TOL-10";

/// Findings about the results of tools.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let revision = revision_of(trace, heard.session);
    let known = ServerKnowledge::of(&trace.transcript.facts);
    let mut found = Vec::new();
    for (asked, unit, result) in results(heard, "tools/call") {
        // The result of a task comes later.
        if unit.extra.params.as_ref().is_some_and(|params| arguments::makes_task(known, params)) {
            continue;
        }
        let name = unit.extra.params.as_ref().and_then(|params| params.get("name")).and_then(Json::as_str);
        let label = format!("tool {:?}", name.unwrap_or_default());
        let mut form = Form::part(result, "/result", label, asked.step);
        form.member(FORM, "/content", Kind::Array, Need::Required);
        form.member(FORM, "/isError", Kind::Bool, Need::Optional);
        let blocks = result.get("content").and_then(Json::as_array).map_or(0, <[Json]>::len);
        (0..blocks).for_each(|at| block(&mut form, FORM, &format!("/content/{at}"), revision));
        let structured = result.get("structuredContent");
        if structured.is_some_and(|value| value.as_object().is_none()) {
            form.fault(
                STRUCTURED,
                "structured_type",
                "/structuredContent",
                "`structuredContent` is an object",
            );
        }
        let is_error = result.get("isError").and_then(Json::as_bool) == Some(true);
        if let Some(schema) =
            name.and_then(|name| known.tool(name)?.get("outputSchema")).filter(|_| !is_error)
        {
            conforms(&mut form, &schema.to_string(), structured);
        }
        let has_content = result.get("content").is_none_or(|content| content.as_array().is_some());
        if let Some(structured) = structured.filter(|value| value.as_object().is_some() && !is_error)
            && has_content
            && !has_text(result, structured)
        {
            let expected = "a text block with the JSON of `structuredContent`";
            form.fault(SAME_TEXT, "text_differs", "/content", expected);
        }
        found.append(&mut form.found);
    }
    first_of_each(found)
}

/// Checks structured content against the tool's schema.
fn conforms(form: &mut Form<'_>, schema: &str, structured: Option<&Json>) {
    let Some(value) = structured else {
        let expected = "`structuredContent`, because the tool has an `outputSchema`";
        form.fault(CONFORMS, "structured_missing", "/structuredContent", expected);
        return;
    };
    let Some(schema) = schema.parse::<Json>().ok().and_then(|schema| Schema::of_peer(&schema).ok()) else {
        return;
    };
    if let Some(violation) = schema.validate(value).first() {
        let at = format!("/structuredContent{}", violation.instance_path);
        let expected = format!("content that conforms to `outputSchema`; {}", violation.message);
        form.fault(CONFORMS, "structured_differs", &at, &expected);
    }
}

/// True if a text block has the JSON of structured content, or of its only value.
fn has_text(result: &Json, structured: &Json) -> bool {
    let only = match structured.as_object() {
        Some([(_, value)]) => Some(value),
        _ => None,
    };
    let blocks = result.get("content").and_then(Json::as_array).unwrap_or_default();
    let mut texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
    let is_same = |text: &str| {
        let parsed = text.parse::<Json>().ok();
        let is_value = |value: &Json| parsed.as_ref() == Some(value) || value.as_str() == Some(text);
        is_value(structured) || only.is_some_and(is_value)
    };
    // Items of a list may come in one block each.
    let items = only.and_then(Json::as_array);
    texts.any(is_same) || items.is_some_and(|items| items.len() == blocks.len())
}

/// Checks a block of content at a pointer into a form.
pub(super) fn block(form: &mut Form<'_>, clause: &str, at: &str, revision: Revision) {
    let Some(block) = form.value.pointer(at).filter(|block| block.as_object().is_some()) else {
        return form.fault(clause, "block_type", at, "a block of content is an object");
    };
    let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
    let mut member = |name: &str, kind| form.member(clause, &format!("{at}/{name}"), kind, Need::Required);
    match kind {
        "text" => member("text", Kind::Text),
        "image" | "audio" if kind == "image" || revision >= Revision::R2025Mar => {
            member("data", Kind::Text);
            member("mimeType", Kind::Text);
            base64(form, clause, &format!("{at}/data"));
        }
        "resource_link" if revision >= Revision::R2025Jun => {
            member("uri", Kind::Text);
            member("name", Kind::Text);
        }
        "resource" => {
            member("resource", Kind::Object);
            contents(form, clause, &format!("{at}/resource"));
        }
        _ => {
            let expected = format!("a content type of revision {}", revision.date());
            form.fault(clause, "block_kind", &format!("{at}/type"), &expected);
        }
    }
}

/// Checks contents of a resource at a pointer into a form.
pub(super) fn contents(form: &mut Form<'_>, clause: &str, at: &str) {
    let Some(contents) = form.value.pointer(at).filter(|value| value.as_object().is_some()) else {
        return form.fault(clause, "contents_type", at, "contents of a resource are an object");
    };
    let (text, blob) = (contents.get("text"), contents.get("blob"));
    form.member(clause, &format!("{at}/uri"), Kind::Text, Need::Required);
    match (text, blob) {
        (None, None) => form.fault(clause, "no_contents", at, "either `text` or `blob`"),
        (Some(_), _) => form.member(clause, &format!("{at}/text"), Kind::Text, Need::Required),
        (None, Some(_)) => {
            form.member(clause, &format!("{at}/blob"), Kind::Text, Need::Required);
            base64(form, clause, &format!("{at}/blob"));
        }
    }
}

fn base64(form: &mut Form<'_>, clause: &str, at: &str) {
    let text = form.value.pointer(at).and_then(Json::as_str);
    if text.is_some_and(|text| !is_base64(text)) {
        form.fault(clause, "no_base64", at, "data in base64");
    }
}

/// True for base64 with or without padding, of either alphabet, possibly with line ends.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let count = body.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).count();
    let is_of_it =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\r' | b'\n');
    body.bytes().all(is_of_it) && padding <= 2 && count % 4 != 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_known() {
        for text in ["", "AAE=", "AAE", "AA==", "ab-_", "AAEC\nAAEC"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["not base64!", "A", "AAE===", "é"] {
            assert!(!is_base64(text), "{text}");
        }
    }
}

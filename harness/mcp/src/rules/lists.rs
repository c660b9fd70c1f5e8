//! Rules about pages and items of lists.

use std::collections::BTreeSet;

use super::{Form, Kind, Need, first_of_each, results};
use crate::model::Server;
use crate::server_knowledge::{LISTS, List};
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::schema::Schema;

const FORM: &str = "MCP-LST-01";
const SAME: &str = "MCP-LST-02";
const CURSOR: &str = "MCP-LST-03";
const ENDS: &str = "MCP-LST-04";
const EMPTY_CURSOR: &str = "MCP-LST-05";
const NULLS: &str = "MCP-LST-07";
const TOOL_NAMES: &str = "MCP-LST-08";
const UNIQUE: &str = "MCP-LST-09";
const URIS: &str = "MCP-LST-10";
const SCHEMAS: &str = "MCP-LST-11";
const OUTPUT_TYPE: &str = "MCP-LST-12";
const IS_THERE: &str = "MCP-CAP-01";

/// Most pages of a list that are followed.
pub(crate) const PAGES_MAX: usize = 200;
/// Longest name of a tool, characters.
const TOOL_NAME_CHARS_MAX: usize = 128;

/// Faults of lists.
pub(super) fn judge(_: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    LISTS
        .iter()
        .flat_map(|list| first_of_each([of_list(list, heard), refused(list, heard)].concat()))
        .collect()
}

/// Finding about a list with a result for one form of params and an error for the other.
fn refused(list: &List, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let plain = heard.answers().filter(|(_, unit, _)| {
        let params = unit.extra.params.as_ref();
        unit.extra.method.as_deref() == Some(list.method)
            && params.is_none_or(|params| params.as_object().is_some_and(<[_]>::is_empty))
    });
    let (errors, results): (Vec<_>, Vec<_>) =
        plain.partition(|(_, _, answer)| answer.message.get("error").is_some());
    let Some((asked, _, answer)) = errors.first().filter(|_| !results.is_empty()) else { return Vec::new() };
    let mut form = Form::of(answer.message, Some(asked.step));
    form.fault(SAME, "one_refused", "/error", "the same list without params and with an empty object");
    form.found
}

/// First page of a list.
struct FirstPage<'a> {
    /// False for a request without `params`.
    has_params: bool,
    /// True for the only page.
    is_whole: bool,
    /// Names or uris of its items.
    keys: Vec<&'a str>,
}

impl FirstPage<'_> {
    /// True if two forms of params get different lists. Their order is free, and with it the items of a page.
    fn differs(&self, other: &Self) -> bool {
        let set = |page: &Self| page.keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
        let is_alike = match self.is_whole && other.is_whole {
            true => set(self) == set(other),
            false => self.is_whole == other.is_whole && self.keys.is_empty() == other.keys.is_empty(),
        };
        self.has_params != other.has_params && !is_alike
    }
}

fn of_list(list: &List, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut cursors: BTreeSet<&str> = BTreeSet::new();
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    let mut first: Option<FirstPage<'_>> = None;
    let pages = results(heard, list.method);
    // A list may change meanwhile, if the server reports it.
    let mut told = heard.output.iter().filter_map(|output| output.held.whole()?.get("method")?.as_str());
    let changes = told.any(|method| method.ends_with("/list_changed"));
    for (number, (asked, unit, result)) in pages.iter().enumerate() {
        let mut form = Form::of(result, Some(asked.step));
        let cursor = unit.extra.params.as_ref().and_then(|params| params.get("cursor"));
        let is_first_page = cursor.is_none();
        // A reply to an unknown cursor is not a page of the list.
        let is_page = cursor.is_none_or(|cursor| cursor.as_str().is_some_and(|text| cursors.contains(text)));
        let of_page = if is_first_page { IS_THERE } else { ENDS };
        form.member(of_page, &format!("/{}", list.member), Kind::Array, Need::Required);
        match result.get("nextCursor") {
            None => {}
            Some(Json::String(cursor)) if cursor.is_empty() => {
                form.fault(EMPTY_CURSOR, "empty_cursor", "/nextCursor", "a non-empty cursor, or no cursor");
            }
            Some(Json::String(cursor)) => {
                if is_first_page {
                    cursors.clear();
                }
                if is_page && (!cursors.insert(cursor) || number + 1 >= PAGES_MAX) {
                    let expected = "a list that ends: no cursor twice";
                    form.fault(ENDS, "endless_list", "/nextCursor", expected);
                }
            }
            Some(_) => form.fault(CURSOR, "cursor_type", "/nextCursor", "`nextCursor` is a string or absent"),
        }
        let items = result.get(list.member).and_then(Json::as_array).unwrap_or_default();
        let own: Vec<&str> = items.iter().filter_map(|item| item.get(list.key)?.as_str()).collect();
        if is_first_page {
            keys.clear();
            let own = FirstPage {
                has_params: unit.extra.params.is_some(),
                is_whole: result.get("nextCursor").is_none(),
                keys: own,
            };
            match &first {
                Some(first) if first.differs(&own) && !changes => {
                    let expected = format!("the list of the other form of params: {:?}", first.keys);
                    let finding = Finding::new(SAME, "lists_differ", expected, format!("{:?}", own.keys));
                    found
                        .push(finding.repaired_by(Repair::other(format!("/{}", list.member))).at(asked.step));
                }
                Some(_) => {}
                None => first = Some(own),
            }
        }
        for (at, item) in items.iter().enumerate() {
            let name = item.get(list.key).and_then(Json::as_str).unwrap_or("?");
            let label = format!("{} {name:?}", list.member.trim_end_matches('s'));
            let mut of_item = Form::part(item, format!("/result/{}/{at}", list.member), label, asked.step);
            item_form(list, &mut of_item);
            if let Some(key) = item.get(list.key).and_then(Json::as_str)
                && is_page
                && !keys.insert(key)
            {
                let expected = format!("unique values of `{}` in the list", list.key);
                of_item.fault(UNIQUE, "listed_twice", &format!("/{}", list.key), &expected);
            }
            found.append(&mut of_item.found);
        }
        found.append(&mut form.found);
    }
    found
}

/// Members of an item: name, type and presence.
type Members = &'static [(&'static str, Kind, Need)];

const TOOL: Members = &[
    ("name", Kind::Text, Need::Required),
    ("inputSchema", Kind::Object, Need::Required),
    ("title", Kind::Text, Need::Optional),
    ("description", Kind::Text, Need::Optional),
    ("outputSchema", Kind::Object, Need::Optional),
    ("annotations", Kind::Object, Need::Optional),
    ("_meta", Kind::Object, Need::Optional),
];
const RESOURCE: Members = &[
    ("uri", Kind::Text, Need::Required),
    ("name", Kind::Text, Need::Required),
    ("title", Kind::Text, Need::Optional),
    ("description", Kind::Text, Need::Optional),
    ("mimeType", Kind::Text, Need::Optional),
    ("annotations", Kind::Object, Need::Optional),
    ("size", Kind::Number, Need::Optional),
    ("_meta", Kind::Object, Need::Optional),
];
const TEMPLATE: Members = &[
    ("uriTemplate", Kind::Text, Need::Required),
    ("name", Kind::Text, Need::Required),
    ("title", Kind::Text, Need::Optional),
    ("description", Kind::Text, Need::Optional),
    ("mimeType", Kind::Text, Need::Optional),
    ("annotations", Kind::Object, Need::Optional),
    ("_meta", Kind::Object, Need::Optional),
];
const PROMPT: Members = &[
    ("name", Kind::Text, Need::Required),
    ("title", Kind::Text, Need::Optional),
    ("description", Kind::Text, Need::Optional),
    ("arguments", Kind::Array, Need::Optional),
    ("_meta", Kind::Object, Need::Optional),
];
const ANNOTATIONS: Members = &[
    ("title", Kind::Text, Need::Optional),
    ("readOnlyHint", Kind::Bool, Need::Optional),
    ("destructiveHint", Kind::Bool, Need::Optional),
    ("idempotentHint", Kind::Bool, Need::Optional),
    ("openWorldHint", Kind::Bool, Need::Optional),
];
const ARGUMENT: Members = &[
    ("name", Kind::Text, Need::Required),
    ("title", Kind::Text, Need::Optional),
    ("description", Kind::Text, Need::Optional),
    ("required", Kind::Bool, Need::Optional),
];

fn members(form: &mut Form<'_>, at: &str, members: Members) {
    for (name, kind, need) in members {
        let at = format!("{at}/{name}");
        match form.value.pointer(&at) {
            Some(Json::Null) if *need == Need::Optional => {
                form.fault(NULLS, "null_member", &at, &format!("`{name}` is {} or absent", kind.phrase()));
            }
            _ => form.member(FORM, &at, *kind, *need),
        }
    }
}

fn item_form(list: &List, form: &mut Form<'_>) {
    let item = form.value;
    if item.as_object().is_none() {
        form.fault(FORM, "item_type", "", "an item is an object");
        return;
    }
    let rows = match list.member {
        "tools" => TOOL,
        "resources" => RESOURCE,
        "resourceTemplates" => TEMPLATE,
        _ => PROMPT,
    };
    members(form, "", rows);
    match list.member {
        "tools" => tool(form),
        "resources" => {
            if let Some(uri) = item.get("uri").and_then(Json::as_str)
                && !is_uri(uri)
            {
                form.fault(URIS, "no_uri", "/uri", "a uri with a scheme and without blanks");
            }
        }
        "resourceTemplates" => {
            if let Some(template) = item.get("uriTemplate").and_then(Json::as_str)
                && !is_template(template)
            {
                form.fault(URIS, "no_template", "/uriTemplate", "a URI template (RFC 6570)");
            }
        }
        _ => {
            let count = item.get("arguments").and_then(Json::as_array).map_or(0, <[Json]>::len);
            (0..count).for_each(|at| members(form, &format!("/arguments/{at}"), ARGUMENT));
        }
    }
}

fn tool(form: &mut Form<'_>) {
    let item = form.value;
    if item.get("annotations").and_then(Json::as_object).is_some() {
        members(form, "/annotations", ANNOTATIONS);
    }
    if item.get("inputSchema").and_then(Json::as_object).is_some()
        && item.pointer("/inputSchema/type").and_then(Json::as_str) != Some("object")
    {
        form.fault(FORM, "input_type", "/inputSchema/type", "the type of an `inputSchema` is \"object\"");
    }
    if item.get("outputSchema").and_then(Json::as_object).is_some()
        && item.pointer("/outputSchema/type").and_then(Json::as_str) != Some("object")
    {
        form.fault(
            OUTPUT_TYPE,
            "output_type",
            "/outputSchema/type",
            "the type of an `outputSchema` is \"object\"",
        );
    }
    for at in ["/inputSchema", "/outputSchema"] {
        let schema = item.pointer(at).filter(|schema| schema.as_object().is_some());
        if let Some(fault) = schema.and_then(Schema::fault_of_peer) {
            let expected = format!("a valid JSON Schema; {fault}");
            form.fault(SCHEMAS, "invalid_schema", at, &expected);
        }
    }
    if let Some(name) = item.get("name").and_then(Json::as_str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_good = (1..=TOOL_NAME_CHARS_MAX).contains(&name.chars().count()) && name.chars().all(is_plain);
        if !is_good {
            form.fault(TOOL_NAMES, "tool_name", "/name", "1 to 128 letters, digits, `_`, `-` and `.`");
        }
    }
}

/// True for a text with a scheme, without blanks and control characters.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_of_scheme)
        && !rest.is_empty()
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// True if the braces of a template are paired and not empty.
fn is_template(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        if !rest[at..].starts_with('{') {
            return false;
        }
        let Some(end) = rest[at..].find('}') else { return false };
        let inside = &rest[at + 1..at + end];
        let name = inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        if name.is_empty() || name.contains(|c: char| c == '{' || c.is_whitespace()) {
            return false;
        }
        rest = &rest[at + end + 1..];
    }
    !rest.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_a_scheme() {
        for uri in ["file:///a", "mem://one", "a+b.c-1:x", "demo:tools"] {
            assert!(is_uri(uri), "{uri}");
        }
        for text in ["one", "://x", "1a:x", "file:///a b", "x:"] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn templates_have_pairs_of_braces() {
        for text in ["mem://{name}", "x:{+path}/{a,b}{?q*}", "mem://fixed"] {
            assert!(is_template(text), "{text}");
        }
        for text in ["mem://{name", "mem://}", "mem://{}", "mem://{a b}"] {
            assert!(!is_template(text), "{text}");
        }
    }
}

//! Knowledge about a server from its probe: revision, capabilities, and the items of its lists.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::library;
use super::revision::Revision;
use peerproof_engine::data::facts::Facts;
use peerproof_json_rpc::talk::UNKNOWN_METHOD;

/// Most items that are kept of a list.
const ITEMS_MAX: usize = 100;
/// Longest error text that may identify a library, bytes.
const REFUSAL_BYTES_MAX: usize = 200;
/// Members of list items that checks need. Others may be long.
const MEMBERS: [&str; 12] = [
    "name",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
    "uri",
    "uriTemplate",
    "mimeType",
    "arguments",
    "required",
    "size",
    "title",
];

/// View of the knowledge about a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerKnowledge<'a>(&'a Value);

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    /// Method that gives it.
    pub method: &'static str,
    /// Member of the result that has the items. It has the name of the capability, except for templates.
    pub member: &'static str,
    /// Capability that declares it.
    pub capability: &'static str,
    /// Member that identifies an item.
    pub key: &'static str,
}

/// All lists.
pub(crate) const LISTS: [List; 4] = [
    List { method: "tools/list", member: "tools", capability: "tools", key: "name" },
    List { method: "resources/list", member: "resources", capability: "resources", key: "uri" },
    List {
        method: "resources/templates/list",
        member: "resourceTemplates",
        capability: "resources",
        key: "uriTemplate",
    },
    List { method: "prompts/list", member: "prompts", capability: "prompts", key: "name" },
];

/// List that a method returns.
pub(crate) fn list_of(method: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| list.method == method)
}

impl<'a> ServerKnowledge<'a> {
    /// Knowledge in the facts of a server.
    pub fn of(facts: &'a Facts) -> Self {
        Self(&facts.learned)
    }

    /// Name of the revision that the server accepted.
    pub(crate) fn revision_named(self) -> Option<&'a str> {
        self.0.get("revision")?.as_str()
    }

    /// Revision that the server accepted.
    pub fn revision(self) -> Option<Revision> {
        Revision::of(self.revision_named()?)
    }

    /// Revisions that a server named as it refused the one that was asked for, where no other was tried yet.
    pub(crate) fn offered(self) -> Option<Vec<Revision>> {
        let names = self.0.get("offered")?.as_array()?;
        Some(names.iter().filter_map(|name| Revision::of(name.as_str()?)).collect())
    }

    /// A declared capability, or a part of it, by JSON Pointer.
    pub(crate) fn capability(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(&format!("/capabilities/{pointer}"))
    }

    /// True if the server declares a capability.
    pub(crate) fn declares(self, name: &str) -> bool {
        self.capability(name).is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    }

    /// Name and version of the server.
    pub fn server(self) -> Option<&'a Value> {
        self.0.get("server")
    }

    /// True if the server answered `notifications/initialized`. Only the time of such an answer distinguishes it
    /// from others.
    pub(crate) fn answers_initialized(self) -> bool {
        self.0.get("answers_initialized").is_some()
    }

    /// Clauses that the server's library breaks in every server, each with the name of the library.
    pub(crate) fn libraries(self) -> BTreeMap<String, String> {
        let answer = |method: &str| self.0.get("refusals").and_then(|all| all[method].as_str());
        library::faults(answer(UNKNOWN_METHOD), answer("tools/call"))
    }

    /// Items of a list, by the member that has them.
    pub fn items(self, member: &str) -> &'a [Value] {
        self.0.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Number of pages of a list, one at least.
    pub fn pages(self, method: &str) -> usize {
        let pages = self.0.pointer("/pages").and_then(|pages| pages.get(method)).and_then(Value::as_u64);
        pages.map_or(1, |pages| usize::try_from(pages).unwrap_or(1).max(1))
    }

    /// True if the server gave a list.
    pub(crate) fn answers_lists(self) -> bool {
        self.0.get("pages").is_some()
    }

    /// Lists with further pages that have not been counted.
    pub(crate) fn uncounted(self) -> Vec<&'static List> {
        let is_open = |list: &&List| {
            self.0.pointer("/more").and_then(|more| more.get(list.method)) == Some(&Value::Bool(true))
        };
        LISTS.iter().filter(is_open).collect()
    }

    /// Tools of the server.
    pub fn tools(self) -> &'a [Value] {
        self.items("tools")
    }

    /// Tool with this name.
    pub fn tool(self, name: &str) -> Option<&'a Value> {
        self.tools().iter().find(|tool| tool["name"] == name)
    }

    /// True if all tools of the server are known and none has this name.
    pub(crate) fn lacks_tool(self, name: &str) -> bool {
        let more = self.0.get("more").and_then(|more| more.get("tools/list"));
        more == Some(&Value::Bool(false)) && self.tools().len() < ITEMS_MAX && self.tool(name).is_none()
    }
}

/// Results of a probe, by member of the knowledge.
#[derive(Debug, Default)]
pub struct Learning(Map<String, Value>);

impl Learning {
    /// Records the result of `initialize`.
    pub fn opened(&mut self, result: &Value) {
        self.0.insert("revision".to_owned(), result["protocolVersion"].clone());
        self.0.insert("capabilities".to_owned(), result["capabilities"].clone());
        self.0.insert("server".to_owned(), result["serverInfo"].clone());
    }

    /// Records that `notifications/initialized` was answered.
    pub(crate) fn answered_initialized(&mut self) {
        self.0.insert("answers_initialized".to_owned(), json!(true));
    }

    /// Records an answer about an unknown method or tool.
    pub fn refused(&mut self, method: &str, response: &Value) {
        if let Some(text) = library::answer(response).filter(|text| text.len() < REFUSAL_BYTES_MAX) {
            self.0.entry("refusals").or_insert_with(|| json!({}))[method] = Value::from(text);
        }
    }

    /// Records a page of a list.
    pub fn listed(&mut self, list: &List, result: &Value) {
        let Some(items) = result[list.member].as_array() else { return };
        let kept = |item: &Value| {
            let members = item.as_object().into_iter().flatten();
            let members = members.filter(|(name, _)| MEMBERS.contains(&name.as_str()));
            Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        let all = self.0.entry(list.member).or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            let room = ITEMS_MAX.saturating_sub(all.len());
            all.extend(items.iter().take(room).map(kept));
        }
        let is_more = result.get("nextCursor").is_some_and(Value::is_string);
        let more = self.0.entry("more").or_insert_with(|| json!({}));
        more[list.method] = json!(is_more);
        let pages = self.0.entry("pages").or_insert_with(|| json!({}));
        let count = pages[list.method].as_u64().unwrap_or(0);
        pages[list.method] = json!(count + 1);
    }

    /// The knowledge; null if the server was not opened.
    pub fn done(self) -> Value {
        if self.0.contains_key("revision") { Value::Object(self.0) } else { Value::Null }
    }
}

/// Records the lists that another conversation followed to their end.
pub fn recount(learned: &mut Value, followed: Value) {
    for list in &LISTS {
        let Some(pages) = followed.pointer("/pages").and_then(|pages| pages.get(list.method)) else {
            continue;
        };
        learned["pages"][list.method] = pages.clone();
        learned["more"][list.method] = json!(false);
        if let Some(items) = followed.get(list.member) {
            learned[list.member] = items.clone();
        }
    }
}

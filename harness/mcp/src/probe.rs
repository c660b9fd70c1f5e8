//! Detects the revision and capabilities of a server, and reads the first page of each list.

use serde_json::{Value, json};

use super::checks;
use super::connection::INITIALIZE;
use super::model::UNKNOWN_TOOL;
use super::revision::{NEWEST, Revision};
use super::role::call;
use super::rules::PAGES_MAX;
use super::server_knowledge::{self, LISTS, Learning, List, ServerKnowledge, list_of};
use super::talk::Talk;
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines;
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::Transcript;
use peerproof_json_rpc::frames;
use peerproof_json_rpc::talk::UNKNOWN_METHOD;

/// Codes of an error about the revision that was asked for.
const REFUSED_REVISION: [i64; 2] = [-32602, -32022];

/// Probe conversations.
pub fn plans(facts: &Facts) -> Vec<Plan> {
    if !facts.learned.is_null() {
        return Vec::new();
    }
    vec![plan(facts)]
}

fn plan(facts: &Facts) -> Plan {
    let mut talk = Talk::opened(facts);
    for list in LISTS {
        // Each request gets an answer, whatever the server supports.
        talk.queue_request(list.method, None);
        talk.last(|step| {
            if let Act::Send { await_frames, .. } = &mut step.act {
                *await_frames = 1;
            }
        });
    }
    // The errors may identify the library. They come last, in case the server does not answer.
    talk.canary().request(UNKNOWN_METHOD, None);
    talk.request("tools/call", Some(call(UNKNOWN_TOOL, json!({}))));
    talk.canary().finish()
}

/// Features that are capabilities of the server.
pub const CAPABILITIES: [&str; 6] = ["tools", "resources", "prompts", "logging", "completions", "tasks"];

/// Conversations that count the pages of lists with more than one.
pub fn further(facts: &Facts) -> Vec<Plan> {
    if let Some(offered) = ServerKnowledge::of(facts).offered() {
        let is_asked_for = facts.choices.contains_key("revision");
        let tried = Revision::ALL.iter().rev().filter(|revision| {
            !is_asked_for && **revision < NEWEST && (offered.is_empty() || offered.contains(revision))
        });
        let asking = |revision: &Revision| {
            let mut facts = facts.clone();
            facts.choices.insert("revision".to_owned(), revision.date().to_owned());
            plan(&facts)
        };
        return tried.map(asking).collect();
    }
    let lists = ServerKnowledge::of(facts).uncounted();
    let count = |list: &&List| {
        let mut talk = Talk::opened(facts);
        checks::count_pages(&mut talk, list, PAGES_MAX + 1);
        talk.plan()
    };
    lists.iter().map(count).collect()
}

/// Completes the facts from the answers to the probes.
pub fn complete(facts: &mut Facts, probes: &[Transcript]) {
    if ServerKnowledge::of(facts).revision_named().is_some() {
        probes.iter().for_each(|probe| server_knowledge::recount(&mut facts.learned, learned(probe)));
    } else {
        let was_refused = !facts.learned.is_null();
        let offered = || probes.iter().filter(|_| !was_refused).find_map(offered);
        facts.learned = probes
            .iter()
            .map(learned)
            .find(|learned| !learned.is_null())
            .unwrap_or_else(|| offered().map_or(Value::Null, |offered| json!({ "offered": offered })));
    }
    if ServerKnowledge::of(facts).revision_named().is_none() {
        return;
    }
    for name in CAPABILITIES {
        if !facts.features.contains_key(name) {
            let is_declared = ServerKnowledge::of(facts).declares(name);
            facts.features.insert(name.to_owned(), Value::Bool(is_declared));
        }
    }
    for (role, tool) in unlisted(facts) {
        let why = format!("the server lists no tool {tool:?}, which is configured as role `{role}`");
        facts.enter(&role, RoleTrial::Misplays(why));
    }
}

/// Roles with tools that the server does not list, each with the name of its tool.
fn unlisted(facts: &Facts) -> Vec<(String, String)> {
    let known = ServerKnowledge::of(facts);
    let named = facts.roles.iter().filter_map(|(role, tool)| Some((role, tool["name"].as_str()?)));
    let missing = named.filter(|(_, tool)| known.lacks_tool(tool));
    missing.map(|(role, tool)| (role.clone(), tool.to_owned())).collect()
}

/// Revisions that the error about the one that was asked for names; none where it names none.
fn offered(probe: &Transcript) -> Option<Value> {
    let messages = frames::messages(&probe.stdout(0), 1);
    let error = messages.first()?.get("error")?;
    let code = error.get("code").and_then(Json::as_i64)?;
    let named = error.pointer("/data/supported").and_then(Json::as_array).unwrap_or_default();
    let named: Vec<&str> = named.iter().filter_map(Json::as_str).collect();
    REFUSED_REVISION.contains(&code).then(|| json!(named))
}

/// Knowledge that a conversation shows.
pub fn learned(transcript: &Transcript) -> Value {
    let requests = lines::of_session(transcript, 0);
    let requests: Vec<Value> =
        requests.iter().filter_map(|line| serde_json::from_slice(&line.bytes).ok()).collect();
    of_messages(&requests, &transcript.stdout(0))
}

/// Knowledge that requests and the output of a server show.
pub fn of_messages(requests: &[Value], out: &[u8]) -> Value {
    let mut learning = Learning::default();
    let lines = out.split(|byte| *byte == b'\n');
    let messages: Vec<Value> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if is_initialized_answered(requests, &messages) {
        learning.answered_initialized();
    }
    for message in &messages {
        let Some(request) = request_of(requests, message) else { continue };
        let method = request["method"].as_str().unwrap_or_default();
        if method == UNKNOWN_METHOD || request["params"]["name"] == UNKNOWN_TOOL {
            learning.refused(method, message);
        }
        let Some(result) = message.get("result") else { continue };
        if method == INITIALIZE {
            learning.opened(result);
        } else if let Some(list) = list_of(method) {
            learning.listed(list, result);
        }
    }
    learning.done()
}

/// Request that a message answers. An id of the wrong type counts, and the result of `initialize` is known by its
/// content.
fn request_of<'a>(requests: &'a [Value], message: &Value) -> Option<&'a Value> {
    let find = |is_its: &dyn Fn(&Value) -> bool| requests.iter().find(|request| is_its(request));
    let id = message.get("id").filter(|id| !id.is_null());
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let opens = message.pointer("/result/protocolVersion").is_some();
    find(&|request| id.is_some_and(|id| is_same(id, &request["id"])))
        .or_else(|| find(&|request| id.is_some_and(|id| text(id) == text(&request["id"]))))
        .or_else(|| find(&|request| opens && request["method"] == INITIALIZE))
}

/// True for equal ids: 1.0 is the number 1.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

/// True if a response without an id follows the one to `initialize`, and each request has its own.
fn is_initialized_answered(requests: &[Value], messages: &[Value]) -> bool {
    let is_response = |message: &&Value| message.get("result").or(message.get("error")).is_some();
    let id = |message: &Value| message.get("id").filter(|id| !id.is_null()).cloned();
    let mut responses = messages.iter().filter(is_response).map(id);
    let mut asked = requests.iter().filter(|request| request["method"].is_string()).filter_map(id);
    let opens = responses.next().flatten().is_some()
        && requests.first().is_some_and(|first| first["method"] == INITIALIZE);
    opens && responses.next() == Some(None) && asked.all(|id| messages.iter().any(|came| came["id"] == id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::transcript::{Bytes, Event, EventKind};

    /// A probe that came to this output.
    fn probe(facts: &Facts, out: &str) -> Transcript {
        let plan = plan(facts);
        let sent = plan.steps.iter().enumerate().filter_map(|(step, planned)| match &planned.act {
            Act::Send { payload, .. } => Some(EventKind::Sent { step, payload: payload.clone() }),
            _ => None,
        });
        let came = EventKind::Received { bytes: Bytes(format!("{out}\n").into_bytes()) };
        let kinds = sent.chain([came]).collect::<Vec<_>>().into_iter();
        Transcript {
            boundary: "mcp".to_owned(),
            check: "probe".to_owned(),
            facts: Arc::new(facts.clone()),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: kinds.map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
        }
    }

    #[test]
    fn a_server_that_refuses_the_newest_revision_is_asked_for_those_that_it_names() {
        let mut facts = Facts::new(Side::Provider);
        facts.commands.insert("command".to_owned());
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"supported":["2025-06-18","1"]}}}"#;
        let refusal = [probe(&facts, refused)];
        complete(&mut facts, &refusal);
        assert_eq!(further(&facts).len(), 1);
        assert!(serde_json::to_string(&further(&facts)[0].steps[0]).unwrap().contains("2025-06-18"));
        let mut broken = facts.clone();
        complete(&mut broken, &refusal);
        assert_eq!(broken.learned, Value::Null, "nothing more is asked of a server that refuses everything");
    }

    const OPENED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}}"#;

    #[test]
    fn a_server_with_ids_of_the_wrong_type_is_known() {
        let mut facts = Facts::new(Side::Provider);
        facts.commands.insert("command".to_owned());
        for id in [r#""id":"1""#, r#""id":null"#] {
            let opened = probe(&facts, &OPENED.replace(r#""id":1"#, id));
            assert_eq!(learned(&opened)["revision"], "2025-11-25", "{id}");
        }
    }

    #[test]
    fn a_role_needs_a_tool_that_the_server_lists() {
        let listed = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo"}]"#;
        for (end, is_known) in [("}}", true), (r#","nextCursor":"2"}}"#, false)] {
            let mut facts = Facts::new(Side::Provider);
            facts.commands.insert("command".to_owned());
            facts.roles.insert("echo".to_owned(), json!({ "name": "ecko", "arg": "text" }));
            facts.roles.insert("noargs".to_owned(), json!({ "name": "echo" }));
            let probes = [probe(&facts, &format!("{OPENED}\n{listed}{end}"))];
            complete(&mut facts, &probes);
            assert_eq!(facts.roles.contains_key("echo"), !is_known, "{end}");
            assert_eq!(facts.misfits.get("echo").is_some_and(|why| why.contains("\"ecko\"")), is_known);
            assert!(facts.roles.contains_key("noargs") && !facts.misfits.contains_key("noargs"));
        }
    }
}

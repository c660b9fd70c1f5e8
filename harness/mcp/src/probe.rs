//! Detects the revision and capabilities of a server, and reads the first page of each list.

use serde_json::{Value, json};

use super::checks;
use super::connection::INITIALIZE;
use super::known::{self, Known, LISTS, Learning, List, list_of};
use super::model::UNKNOWN_TOOL;
use super::role::call;
use super::rules::PAGES_MAX;
use super::talk::Talk;
use peerproof_engine::facts::Facts;
use peerproof_engine::lines;
use peerproof_engine::plan::{Act, Plan};
use peerproof_engine::transcript::Transcript;
use peerproof_json_rpc::talk::UNKNOWN_METHOD;

/// Probe conversations.
pub fn plans(facts: &Facts) -> Vec<Plan> {
    if !facts.learned.is_null() {
        return Vec::new();
    }
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
    vec![talk.canary().finish()]
}

/// Features that are capabilities of the server.
pub const CAPABILITIES: [&str; 6] = ["tools", "resources", "prompts", "logging", "completions", "tasks"];

/// Conversations that count the pages of lists with more than one.
pub fn further(facts: &Facts) -> Vec<Plan> {
    let lists = Known::of(facts).uncounted();
    let count = |list: &&List| {
        let mut talk = Talk::opened(facts);
        checks::count_pages(&mut talk, list, PAGES_MAX + 1);
        talk.plan()
    };
    lists.iter().map(count).collect()
}

/// Completes the facts from the answers to the probes.
pub fn complete(facts: &mut Facts, probes: &[Transcript]) {
    if facts.learned.is_null() {
        if let Some(learned) = probes.iter().map(learned).find(|learned| !learned.is_null()) {
            facts.learned = learned;
        }
    } else {
        probes.iter().for_each(|probe| known::recount(&mut facts.learned, learned(probe)));
    }
    if facts.learned.is_null() {
        return;
    }
    for name in CAPABILITIES {
        if !facts.features.contains_key(name) {
            let is_declared = Known::of(facts).declares(name);
            facts.features.insert(name.to_owned(), Value::Bool(is_declared));
        }
    }
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
        let of_request = |request: &&Value| message.get("id").is_some_and(|id| request.get("id") == Some(id));
        let Some(request) = requests.iter().find(of_request) else { continue };
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

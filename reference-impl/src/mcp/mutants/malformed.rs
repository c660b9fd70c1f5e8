//! Mutants of invalid messages: text, JSON and objects that are not requests, unusual ids, batches.

use super::Mutant;
use super::edit::{
    Pass, asked_id, dies_of, edited, ended, error, find, has, incoming, mute_after, outgoing, remove, set,
    success, swap_all, text, value,
};
use crate::json::Value;
use crate::machine::Event;
use crate::mutant::{machine, wrap as wrapped};

fn is_json(line: &[u8]) -> bool {
    value(line).is_some()
}

fn is_nonsense(line: &[u8]) -> bool {
    !line.trim_ascii().is_empty() && !is_json(line)
}

fn is_batch(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"[")
}

/// True for JSON that is neither an object nor an array.
fn is_no_object(line: &[u8]) -> bool {
    value(line).is_some_and(|value| value.as_object().is_none() && value.as_array().is_none())
}

/// Id of an object that is neither a request nor a response.
fn no_request(line: &[u8]) -> Option<Value> {
    let message = value(line)?;
    let id = message.get("id").filter(|id| id.as_text().is_some() || id.as_i64().is_some())?;
    let is_request = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0")
        && message.get("method").and_then(Value::as_str).is_some();
    let is_response = message.get("result").is_some() || message.get("error").is_some();
    (!is_request && !is_response).then(|| id.clone())
}

/// Id of a request whose params are an array or a scalar.
fn wrong_params(line: &[u8]) -> Option<Value> {
    let message = value(line)?;
    let params = message.get("params")?;
    let is_right = params.as_object().is_some() || *params == Value::Null;
    if is_right { None } else { message.get("id").cloned() }
}

/// Answers a request whose id `is_taken` accepts, as if it were valid.
fn takes_id(line: &[u8], is_taken: fn(&Value) -> bool) -> Pass {
    match asked_id(line) {
        Some(id) if is_taken(&id) => success(&id),
        _ => Pass::Forward,
    }
}

/// Mutants of malformed messages and of batches.
pub(super) const MUTANTS: &[Mutant] = &[
    incoming("drops-no-requests", &["MCP-BAS-07"], "An object that is no request is dropped.", |_, line| {
        if no_request(line).is_some() { Pass::Drop } else { Pass::Forward }
    }),
    incoming("needs-no-version", &["MCP-BAS-07"], "A request without jsonrpc is executed.", |_, line| {
        edited(line, |message| {
            let is_bare = find(message, "method").is_some() && find(message, "jsonrpc").is_none();
            set(message, "jsonrpc", "2.0".into());
            is_bare
        })
    }),
    incoming("takes-any-version", &["MCP-BAS-07"], "A request of JSON-RPC 1.0 is executed.", |_, line| {
        edited(line, |message| {
            let is_other = find(message, "jsonrpc").is_some_and(|version| version.as_str() != Some("2.0"));
            set(message, "jsonrpc", "2.0".into());
            is_other
        })
    }),
    incoming(
        "no-requests-are-internal-errors",
        &["MCP-BAS-08"],
        "What is no request is an internal error.",
        |_, line| no_request(line).map_or(Pass::Forward, |id| error(&id, -32603)),
    ),
    incoming(
        "wrong-params-are-internal-errors",
        &["MCP-BAS-08"],
        "Params that are an array are an internal error.",
        |_, line| wrong_params(line).map_or(Pass::Forward, |id| error(&id, -32603)),
    ),
    incoming(
        "drops-wrong-params",
        &["MCP-BAS-09"],
        "A request whose params are no object is dropped.",
        |_, line| wrong_params(line).map_or(Pass::Forward, |_| Pass::Drop),
    ),
    incoming(
        "overlooks-wrong-params",
        &["MCP-BAS-09"],
        "Params that are no object are taken for none.",
        |_, line| {
            edited(line, |message| {
                let is_wrong = find(message, "params")
                    .is_some_and(|params| params.as_object().is_none() && *params != Value::Null);
                if is_wrong {
                    remove(message, "params");
                }
                is_wrong
            })
        },
    ),
    outgoing("no-json-is-silent", &["MCP-BAS-10"], "Text that is no JSON is not answered.", |_, line| {
        if has(line, "-32700") { Vec::new() } else { ended(line.to_vec()) }
    }),
    outgoing(
        "no-json-is-internal",
        &["MCP-BAS-10"],
        "Text that is no JSON is an internal error.",
        |_, line| swap_all(&ended(line.to_vec()), "-32700", "-32603"),
    ),
    incoming("no-objects-are-silent", &["MCP-BAS-11"], "JSON that is no object is dropped.", |_, line| {
        if is_no_object(line) { Pass::Drop } else { Pass::Forward }
    }),
    incoming(
        "no-objects-are-internal",
        &["MCP-BAS-11"],
        "JSON that is no object is an internal error.",
        |_, line| {
            if is_no_object(line) { error(&Value::Null, -32603) } else { Pass::Forward }
        },
    ),
    incoming("dies-of-no-json", &["MCP-BAS-12"], "Text that is no JSON ends the process.", |_, line| {
        dies_of(line, is_nonsense)
    }),
    incoming("dies-of-no-objects", &["MCP-BAS-12"], "JSON that is no object ends the process.", |_, line| {
        dies_of(line, is_no_object)
    }),
    incoming(
        "dies-of-no-requests",
        &["MCP-BAS-12"],
        "An object that is no request ends the process.",
        |_, line| dies_of(line, |line| no_request(line).is_some()),
    ),
    incoming(
        "mute-after-no-json",
        &["MCP-BAS-12"],
        "Nothing is answered after text that is no JSON.",
        |memory, line| mute_after(memory, line, is_nonsense),
    ),
    incoming(
        "mute-after-no-requests",
        &["MCP-BAS-12"],
        "Nothing is answered after an object that is no request.",
        |memory, line| mute_after(memory, line, |line| no_request(line).is_some()),
    ),
    machine(
        "loses-what-follows-no-json",
        &["MCP-BAS-13"],
        "The rest of a write is lost behind text that is no JSON.",
        |inner| {
            wrapped(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let mut taken = 0;
                    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                        taken += line.len();
                        if line.ends_with(b"\n") && is_nonsense(line) {
                            break;
                        }
                    }
                    inner.handle(Event::Stdin(bytes.get(..taken).unwrap_or_default()), now, actions);
                }
                event => inner.handle(event, now, actions),
            })
        },
    ),
    incoming("takes-null-ids", &["MCP-BAS-14"], "A request with the id null has a result.", |_, line| {
        takes_id(line, |id| *id == Value::Null)
    }),
    incoming("takes-truth-as-id", &["MCP-BAS-14"], "A request with a boolean id has a result.", |_, line| {
        takes_id(line, |id| id.as_bool().is_some())
    }),
    incoming(
        "takes-objects-as-ids",
        &["MCP-BAS-14"],
        "A request whose id is an object has a result.",
        |_, line| takes_id(line, |id| id.as_object().is_some()),
    ),
    incoming(
        "takes-arrays-as-ids",
        &["MCP-BAS-14"],
        "A request whose id is an array has a result.",
        |_, line| takes_id(line, |id| id.as_array().is_some()),
    ),
    incoming(
        "refuses-all-batches",
        &["MCP-BAS-17"],
        "A batch is refused whatever the revision.",
        |_, line| {
            if is_batch(line) { error(&Value::Null, -32600) } else { Pass::Forward }
        },
    )
    .needing("2025-03-26"),
    incoming(
        "answers-the-first-of-a-batch",
        &["MCP-BAS-17"],
        "Of a batch the first message is looked at.",
        |_, line| match value(line) {
            Some(Value::Array(elements)) if elements.len() > 1 => {
                Pass::Replace(vec![text(&elements.into_iter().take(1).collect::<Vec<_>>().into())])
            }
            _ => Pass::Forward,
        },
    )
    .needing("2025-03-26"),
    incoming("dies-of-batches", &["MCP-BAS-18"], "A batch ends the process.", |_, line| {
        dies_of(line, is_batch)
    }),
    incoming("mute-after-a-batch", &["MCP-BAS-18"], "Nothing is answered after a batch.", |memory, line| {
        mute_after(memory, line, is_batch)
    }),
];

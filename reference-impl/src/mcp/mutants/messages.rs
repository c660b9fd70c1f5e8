//! Mutants of messages: ids, shapes, notifications, invalid messages, batches.

use super::Mutant;
use super::edit::{
    Memory, Object, Pass, answers, asked_id, asks, ended, error, find, has, incoming, messages, number,
    object_mut, outgoing, parts, remove, set, success, swap_all, value, with_code, wrap,
};
use crate::json::Value;
use crate::machine::{Action, Event};
use crate::mutant::{machine, wrap as wrapped};

/// Existing methods.
const METHODS: [&str; 13] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "logging/setLevel",
    "completion/complete",
];

/// Edits the id of answers.
fn ids(line: &[u8], edit: fn(&Value) -> Option<Value>) -> Vec<u8> {
    messages(line, |message| {
        if find(message, "method").is_none()
            && let Some(id) = find(message, "id").and_then(edit)
        {
            set(message, "id", id);
        }
    })
}

/// True for an answer to tools/list or to an unknown method.
pub(super) fn is_marked(memory: &Memory, line: &[u8]) -> bool {
    answers(memory, line, "tools/list") || has(line, "\"code\":-32601")
}

/// Edits errors.
fn errors(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |message| {
        if let Some(error) = object_mut(message, "error") {
            edit(error);
        }
    })
}

/// Mutants of messages.
pub(super) const MUTANTS: &[Mutant] = &[
    outgoing("loses-the-id-zero", &["MCP-BAS-01"], "The id 0 comes back as null.", |_, line| {
        ids(line, |id| (id.as_i64() == Some(0)).then_some(Value::Null))
    }),
    outgoing("loses-empty-ids", &["MCP-BAS-01"], "The id \"\" comes back as null.", |_, line| {
        ids(line, |id| (id.as_str() == Some("")).then_some(Value::Null))
    }),
    outgoing("cuts-long-ids", &["MCP-BAS-01"], "Ids come back with 64 characters at most.", |_, line| {
        ids(line, |id| Some(id.as_str()?.chars().take(64).collect::<String>().into()))
    }),
    outgoing("rounds-large-ids", &["MCP-BAS-01"], "Ids of 16 digits come back rounded.", |_, line| {
        ids(line, |id| {
            let large = id.as_i64().filter(|id| id.unsigned_abs() > 1_000_000_000_000_000)?;
            Some(number(large / 10 * 10))
        })
    }),
    outgoing("negative-ids-as-text", &["MCP-BAS-01"], "A negative id comes back as a string.", |_, line| {
        ids(line, |id| Some(id.as_i64().filter(|id| *id < 0)?.to_string().into()))
    }),
    outgoing("loses-line-separators-in-ids", &["MCP-BAS-01"], "U+2028 in an id is lost.", |_, line| {
        ids(line, |id| Some(id.as_str()?.replace('\u{2028}', "").into()))
    }),
    outgoing(
        "answers-twice",
        &["MCP-BAS-02"],
        "Lists of tools and unknown methods are answered twice.",
        |memory, line| {
            let count = if is_marked(memory, line) { 2 } else { 1 };
            ended(line.to_vec()).repeat(count)
        },
    ),
    outgoing(
        "answers-unasked",
        &["MCP-BAS-02"],
        "An answer that nobody asked for follows lists of tools and unknown methods.",
        |memory, line| {
            let mut out = ended(line.to_vec());
            if is_marked(memory, line) {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":\"stray\",\"result\":{}}\n");
            }
            out
        },
    ),
    incoming("forgets-completions", &["MCP-BAS-02"], "completion/complete is never answered.", |_, line| {
        if asks(line, "completion/complete") { Pass::Drop } else { Pass::Forward }
    }),
    outgoing("error-beside-null-result", &["MCP-BAS-03"], "Errors have a result that is null.", |_, line| {
        messages(line, |message| {
            if find(message, "error").is_some() {
                set(message, "result", Value::Null);
            }
        })
    }),
    outgoing("errors-without-version", &["MCP-BAS-03"], "Errors have no jsonrpc.", |_, line| {
        messages(line, |message| {
            if find(message, "error").is_some() {
                remove(message, "jsonrpc");
            }
        })
    }),
    outgoing("codes-are-text", &["MCP-BAS-03"], "The code of an error is a string.", |_, line| {
        errors(line, |error| {
            let code = find(error, "code").and_then(Value::as_i64).unwrap_or_default();
            set(error, "code", code.to_string().into());
        })
    }),
    outgoing("errors-without-message", &["MCP-BAS-03"], "Errors have no message.", |_, line| {
        errors(line, |error| remove(error, "message"))
    }),
    outgoing("errors-forget-the-id", &["MCP-BAS-01"], "Errors have the id null.", |_, line| {
        messages(line, |message| {
            if find(message, "error").is_some() {
                set(message, "id", Value::Null);
            }
        })
    }),
    parts(
        "lists-are-arrays",
        &["MCP-BAS-03"],
        "The result of tools/list is the array itself.",
        |_, parts| {
            wrap(parts, "tools/list", |_, _, answer| {
                answer.edit(|outcome| {
                    if let Ok(result) = outcome
                        && let Some(tools) = result.get("tools").cloned()
                    {
                        *outcome = Ok(tools);
                    }
                })
            });
        },
    ),
    outgoing(
        "log-params-are-an-array",
        &["MCP-BAS-03"],
        "The params of a log message are an array.",
        |_, line| {
            messages(line, |message| {
                if find(message, "method").and_then(Value::as_str) == Some("notifications/message")
                    && let Some(params) = find(message, "params").cloned()
                {
                    set(message, "params", vec![params].into());
                }
            })
        },
    ),
    outgoing(
        "unknown-methods-are-32600",
        &["MCP-BAS-04"],
        "An unknown method is an invalid request.",
        |_, line| swap_all(&ended(line.to_vec()), "-32601", "-32600"),
    ),
    outgoing(
        "unknown-methods-are-silent",
        &["MCP-BAS-02"],
        "An unknown method is not answered.",
        |_, line| {
            if has(line, "-32601") { Vec::new() } else { ended(line.to_vec()) }
        },
    ),
    outgoing(
        "unknown-methods-succeed",
        &["MCP-BAS-04"],
        "An unknown method has an empty result.",
        |_, line| {
            messages(line, |message| {
                let code = find(message, "error").and_then(|error| error.get("code")).and_then(Value::as_i64);
                if code == Some(-32601) {
                    remove(message, "error");
                    set(message, "result", Value::Object(Vec::new()));
                }
            })
        },
    ),
    incoming(
        "unknown-methods-with-params-are-32602",
        &["MCP-BAS-04"],
        "An unknown method with params has invalid params.",
        |_, line| match value(line) {
            Some(message)
                if message.get("params").is_some() && !METHODS.iter().any(|method| asks(line, method)) =>
            {
                match (message.get("id"), message.get("method")) {
                    (Some(id), Some(_)) => error(id, -32602),
                    _ => Pass::Forward,
                }
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "answers-unknown-notifications",
        &["MCP-BAS-05"],
        "A notification that is not known is refused.",
        |_, line| match value(line) {
            Some(message) if asked_id(line).is_none() && method_is_unknown(&message) => {
                error(&Value::Null, -32601)
            }
            _ => Pass::Forward,
        },
    ),
    machine(
        "answers-the-opening",
        &["MCP-BAS-05"],
        "notifications/initialized is answered by a result without id.",
        |inner| {
            wrapped(inner, |inner, event, now, actions| {
                if let Event::Stdin(bytes) = event
                    && has(bytes, "notifications/initialized")
                {
                    actions.push(Action::Stdout(b"{\"jsonrpc\":\"2.0\",\"result\":null}\n".to_vec()));
                }
                inner.handle(event, now, actions);
            })
        },
    ),
    incoming("answers-ping-without-id", &["MCP-BAS-05"], "A ping without id is answered.", |_, line| {
        if asks(line, "ping") && asked_id(line).is_none() { success(&Value::Null) } else { Pass::Forward }
    }),
    incoming(
        "refuses-bad-notifications",
        &["MCP-BAS-05"],
        "A notification whose params are an array is refused.",
        |_, line| match value(line) {
            Some(message)
                if message.get("id").is_none()
                    && message.get("method").is_some()
                    && message.get("params").is_some_and(|params| params.as_array().is_some()) =>
            {
                error(&Value::Null, -32602)
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "drops-unknown-members",
        &["MCP-BAS-06"],
        "A request with a member that is not known is dropped.",
        |_, line| {
            let known = ["jsonrpc", "id", "method", "params"];
            match value(line) {
                Some(Value::Object(members))
                    if find(&members, "method").is_some()
                        && members.iter().any(|(name, _)| !known.iter().any(|known| name == known)) =>
                {
                    Pass::Drop
                }
                _ => Pass::Forward,
            }
        },
    ),
    incoming("refuses-meta", &["MCP-BAS-19"], "A request with _meta has invalid params.", |_, line| {
        with_meta(line, |_| true)
    }),
    incoming(
        "refuses-progress-tokens",
        &["MCP-BAS-19"],
        "A request with a progress token has invalid params.",
        |_, line| with_meta(line, |meta| meta.get("progressToken").is_some()),
    ),
    incoming(
        "refuses-unknown-params",
        &["MCP-BAS-20"],
        "A ping or list with other params than a cursor is refused.",
        |_, line| {
            let known = ["cursor", "_meta"];
            let Some(message) = value(line) else { return Pass::Forward };
            let lists = ["ping", "tools/list", "resources/list", "prompts/list", "resources/templates/list"];
            let params = message.get("params").and_then(Value::as_object).unwrap_or_default();
            let is_strange = params.iter().any(|(name, _)| !known.iter().any(|known| name == known));
            match message.get("id") {
                Some(id) if is_strange && lists.iter().any(|method| asks(line, method)) => error(id, -32602),
                _ => Pass::Forward,
            }
        },
    ),
    machine(
        "loses-what-is-pipelined",
        &["MCP-BAS-21"],
        "Of one read, no more than three lines are looked at.",
        |inner| {
            wrapped(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let end = memchr::memchr_iter(b'\n', bytes).nth(2).map_or(bytes.len(), |end| end + 1);
                    inner.handle(Event::Stdin(bytes.get(..end).unwrap_or_default()), now, actions);
                }
                event => inner.handle(event, now, actions),
            })
        },
    ),
    parts("invents-codes", &["MCP-BAS-22"], "An unknown prompt has the reserved code -32500.", |_, parts| {
        wrap(parts, "prompts/get", |_, _, answer| with_code(answer, -32500));
    }),
    parts(
        "invents-codes-of-tools",
        &["MCP-BAS-22"],
        "An unknown tool has the reserved code -32604.",
        |_, parts| {
            wrap(parts, "tools/call", |_, _, answer| with_code(answer, -32604));
        },
    ),
];

fn method_is_unknown(message: &Value) -> bool {
    let known = ["notifications/initialized", "notifications/cancelled", "notifications/progress"];
    message.get("method").and_then(Value::as_str).is_some_and(|method| {
        method.starts_with("notifications/") && !known.contains(&method) && !method.ends_with("list_changed")
    })
}

/// Refuses a request if `is_strange` returns true for its `_meta`.
fn with_meta(line: &[u8], is_strange: fn(&Value) -> bool) -> Pass {
    let Some(message) = value(line) else { return Pass::Forward };
    let meta = message.get("params").and_then(|params| params.get("_meta"));
    match (message.get("id"), meta) {
        (Some(id), Some(meta)) if is_strange(meta) => error(id, -32602),
        _ => Pass::Forward,
    }
}

//! Mutants of a server's messages on its own initiative: requests, log messages, changes.

use super::Mutant;
use super::edit::{
    Memory, Object, Pass, answers, both_ways, dies_of, ended, find, find_mut, has, incoming, messages,
    mute_after, object, object_mut, outgoing, parts, remove, said, saying, set, swap_all, value,
};
use super::lifecycle::no_params;
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mcp::message::{notification, request};
use crate::mcp::{Answer, Components, Step};
use crate::mutant::{Inner, machine};

/// Sends a request to the client when the tool `ask` is called.
fn asks_by(parts: &mut Components, method: &'static str, params: fn() -> Value) {
    parts.tools.set("ask", move |_, _| {
        Answer::Later(vec![Step::Ask(method, params()), Step::Done(Ok(said("asked")))])
    });
}

/// Edits requests to the client.
fn questions(line: &[u8], method: &str, edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |message| {
        if find(message, "id").is_some()
            && find(message, "method")
                .and_then(Value::as_str)
                .is_some_and(|m| method.is_empty() || m == method)
        {
            edit(message);
        }
    })
}

fn is_response(line: &[u8]) -> bool {
    value(line).is_some_and(|message| message.get("method").is_none() && message.get("id").is_some())
}

/// Sends a message after the result of `initialize`.
fn behind_opening(memory: &Memory, line: &[u8], message: &Value) -> Vec<u8> {
    let mut out = ended(line.to_vec());
    if answers(memory, line, "initialize") && has(line, "protocolVersion") {
        out.extend(ended(super::edit::text(message)));
    }
    out
}

/// Mutants of messages to the client.
pub(super) const MUTANTS: &[Mutant] = &[
    outgoing(
        "asks-at-once",
        &["MCP-INI-14", "MCP-CAP-05"],
        "roots/list follows the result of initialize.",
        |memory, line| behind_opening(memory, line, &request("early".into(), "roots/list", no_params())),
    ),
    parts("logs-undeclared", &["MCP-CAP-03"], "Tools log, and logging is not declared.", |_, parts| {
        parts.catalog.forget("logging");
        parts.methods.forget("logging");
        for tool in ["noargs", "log"] {
            parts.tools.wrap(tool, |_, _, answer| {
                let params = object([("level", "info".into()), ("data", "called".into())]);
                saying(answer, notification("notifications/message", params))
            });
        }
    }),
    both_ways(
        "logs-what-is-no-json",
        &["MCP-CAP-03"],
        "Text that is no JSON brings a log message, and logging is not declared.",
        |_, _| Pass::Forward,
        |_, line| {
            let mut out = swap_all(&ended(line.to_vec()), "\"logging\":{},", "");
            if has(line, "-32700") {
                let params = object([("level", "error".into()), ("data", "no JSON".into())]);
                out.extend(ended(super::edit::text(&notification("notifications/message", params))));
            }
            out
        },
    ),
    parts(
        "asks-for-roots-undeclared",
        &["MCP-CAP-05"],
        "A tool asks for roots, whatever the client declared.",
        |_, parts| {
            asks_by(parts, "roots/list", no_params);
        },
    ),
    parts(
        "samples-undeclared",
        &["MCP-CAP-05"],
        "A tool asks for a message, whatever the client declared.",
        |_, parts| {
            asks_by(parts, "sampling/createMessage", || {
                object([("messages", Vec::new().into()), ("maxTokens", 8.into())])
            });
        },
    ),
    parts(
        "elicits-undeclared",
        &["MCP-CAP-05"],
        "A tool asks the user, whatever the client declared.",
        |_, parts| {
            asks_by(parts, "elicitation/create", || {
                let schema = object([("type", "object".into()), ("properties", no_params())]);
                object([("message", "Well?".into()), ("requestedSchema", schema)])
            });
        },
    ),
    parts(
        "tells-of-lists-undeclared",
        &["MCP-CAP-06"],
        "tools/list_changed comes, and is not declared.",
        |_, parts| {
            parts.tools.wrap("noargs", |_, _, answer| {
                saying(answer, notification("notifications/tools/list_changed", no_params()))
            });
        },
    ),
    parts(
        "tells-of-changes-unasked",
        &["MCP-CAP-06"],
        "resources/updated comes without a subscription.",
        |_, parts| {
            parts.tools.wrap("noargs", |_, _, answer| {
                let params = object([("uri", "peerproof:///counter".into())]);
                saying(answer, notification("notifications/resources/updated", params))
            });
        },
    ),
    outgoing("asks-by-one-id", &["MCP-SRQ-01"], "Each request to the client has the id 1.", |_, line| {
        questions(line, "", |message| set(message, "id", 1.into()))
    }),
    outgoing("asks-by-null", &["MCP-SRQ-01"], "Requests to the client have the id null.", |_, line| {
        questions(line, "", |message| set(message, "id", Value::Null))
    }),
    incoming("dies-of-refusals", &["MCP-SRQ-02"], "An error of the client ends the process.", |_, line| {
        dies_of(line, |line| {
            is_response(line) && value(line).is_some_and(|message| message.get("error").is_some())
        })
    }),
    incoming(
        "mute-after-a-response",
        &["MCP-SRQ-02"],
        "Nothing is answered after a response of the client.",
        |memory, line| mute_after(memory, line, is_response),
    ),
    machine(
        "waits-for-the-client",
        &["MCP-SRQ-02"],
        "Nothing else is answered until the client has responded.",
        |inner| Box::new(Waiting { inner, is_waiting: false, held: Vec::new() }),
    ),
    outgoing("samples-without-limit", &["MCP-SRQ-03"], "Sampling has no maxTokens.", |_, line| {
        questions(line, "sampling/createMessage", |message| {
            if let Some(params) = object_mut(message, "params") {
                remove(params, "maxTokens");
            }
        })
    }),
    outgoing("elicits-objects", &["MCP-SRQ-03"], "Elicitation asks for an object.", |_, line| {
        questions(line, "elicitation/create", |message| {
            if let Some(schema) =
                object_mut(message, "params").and_then(|params| object_mut(params, "requestedSchema"))
                && let Some(properties) = object_mut(schema, "properties")
                && let Some(name) = find_mut(properties, "name")
            {
                *name = object([("type", "object".into()), ("properties", no_params())]);
            }
        })
    }),
    outgoing("elicits-without-message", &["MCP-SRQ-03"], "Elicitation has no message.", |_, line| {
        questions(line, "elicitation/create", |message| {
            if let Some(params) = object_mut(message, "params") {
                remove(params, "message");
            }
        })
    }),
    outgoing(
        "elicits-by-url",
        &["MCP-SRQ-03"],
        "Elicitation is by url, and the client takes forms.",
        |_, line| {
            questions(line, "elicitation/create", |message| {
                if let Some(params) = object_mut(message, "params") {
                    remove(params, "requestedSchema");
                    set(params, "mode", "url".into());
                    set(params, "url", "https://example.org/form".into());
                    set(params, "elicitationId", "1".into());
                }
            })
        },
    ),
    outgoing(
        "samples-with-tools",
        &["MCP-SRQ-03"],
        "Sampling has tools, and the client has none.",
        |_, line| {
            questions(line, "sampling/createMessage", |message| {
                if let Some(params) = object_mut(message, "params") {
                    let schema = object([("type", "object".into())]);
                    let tool = object([("name", "look".into()), ("inputSchema", schema)]);
                    set(params, "tools", vec![tool].into());
                }
            })
        },
    ),
];

/// A mutant that handles only responses while it waits for the client.
struct Waiting {
    inner: Inner,
    is_waiting: bool,
    held: Vec<u8>,
}

impl Machine for Waiting {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        match event {
            Event::Stdin(bytes) if self.is_waiting && !is_response(bytes) => {
                self.held.extend_from_slice(bytes);
                return;
            }
            Event::Wake if self.is_waiting => return,
            event => {
                self.is_waiting = self.is_waiting && !matches!(event, Event::Stdin(_));
                self.inner.handle(event, now, actions);
            }
        }
        let asked = |action: &Action| matches!(action, Action::Stdout(bytes) if has(bytes, "\"method\":\"roots/list\"") || has(bytes, "\"method\":\"sampling/createMessage\"") || has(bytes, "\"method\":\"elicitation/create\""));
        self.is_waiting |= actions.iter().skip(from).any(asked);
        if !self.is_waiting && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.handle(Event::Stdin(&held), now, actions);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

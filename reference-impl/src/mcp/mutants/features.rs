//! Mutants of resources, prompts, logging, completion and ping.

use super::Mutant;
use super::edit::{
    Object, each, elements, find, instead, messages, number, object, object_mut, outgoing, parts, remove,
    set, with_code, with_result, wrap,
};
use crate::json::Value;
use crate::mcp::{Answer, Call, Components, Failure, Step};

/// Edits the contents of resources.
fn contents(parts: &mut Components, edit: fn(&mut Object)) {
    wrap(parts, "resources/read", move |_, _, answer| {
        with_result(answer, |result| each(result, "contents", edit))
    });
}

/// Edits the messages of prompts.
fn prompted(parts: &mut Components, edit: fn(&mut Object)) {
    wrap(parts, "prompts/get", move |_, _, answer| {
        with_result(answer, |result| each(result, "messages", edit))
    });
}

/// Edits log messages.
fn logged(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |message| {
        if find(message, "method").and_then(Value::as_str) == Some("notifications/message")
            && let Some(params) = object_mut(message, "params")
        {
            edit(params);
        }
    })
}

/// Edits completions.
fn completed(parts: &mut Components, edit: fn(&mut Object)) {
    wrap(parts, "completion/complete", move |_, _, answer| {
        with_result(answer, |result| {
            if let Some(completion) = object_mut(result, "completion") {
                edit(completion);
            }
        })
    });
}

fn names(call: &Call<'_>, member: &str) -> bool {
    call.params.get(member).and_then(Value::as_text).is_some()
}

fn level(call: &Call<'_>, name: &str) -> bool {
    call.params.get("level").and_then(Value::as_str) == Some(name)
}

/// Mutants of resources, prompts and utilities.
pub(super) const MUTANTS: &[Mutant] = &[
    parts("has-no-ping", &["MCP-UTL-01"], "ping is an unknown method.", |_, parts| {
        parts.methods.remove("ping");
    }),
    parts("pings-with-members", &["MCP-UTL-01b"], "The result of ping has a member.", |_, parts| {
        wrap(parts, "ping", |_, _, answer| with_result(answer, |result| set(result, "pong", true.into())));
    }),
    parts("contents-without-uri", &["MCP-RES-01"], "What is read of a resource has no uri.", |_, parts| {
        contents(parts, |contents| remove(contents, "uri"));
    }),
    parts(
        "contents-without-text",
        &["MCP-RES-01"],
        "What is read of a resource has neither text nor blob.",
        |_, parts| {
            contents(parts, |contents| {
                remove(contents, "text");
                remove(contents, "blob");
            });
        },
    ),
    parts("blobs-are-no-base64", &["MCP-RES-01"], "A blob is no base64.", |_, parts| {
        contents(parts, |contents| {
            if find(contents, "blob").is_some() {
                set(contents, "blob", "\u{fffd}PNG".into());
            }
        });
    }),
    parts(
        "contents-are-no-array",
        &["MCP-RES-01"],
        "What is read of a resource is one object.",
        |_, parts| {
            wrap(parts, "resources/read", |_, _, answer| {
                with_result(answer, |result| {
                    if let Some(first) = elements(result, "contents").first().cloned() {
                        set(result, "contents", first);
                    }
                })
            });
        },
    ),
    parts(
        "unknown-resources-are-empty",
        &["MCP-RES-02"],
        "An unknown resource has empty contents.",
        |_, parts| {
            wrap(parts, "resources/read", |call, _, answer| {
                if names(call, "uri") {
                    instead(answer, || object([("contents", Vec::new().into())]))
                } else {
                    answer
                }
            });
        },
    ),
    parts(
        "unknown-resources-are-internal",
        &["MCP-RES-03"],
        "An unknown resource is an internal error.",
        |_, parts| {
            wrap(parts, "resources/read", |call, _, answer| {
                if names(call, "uri") { with_code(answer, -32603) } else { answer }
            });
        },
    ),
    parts(
        "reading-nothing-is-internal",
        &["MCP-RES-04"],
        "resources/read without uri is an internal error.",
        |_, parts| {
            wrap(parts, "resources/read", |call, _, answer| {
                if names(call, "uri") { answer } else { with_code(answer, -32603) }
            });
        },
    ),
    parts(
        "reading-nothing-is-empty",
        &["MCP-RES-04"],
        "resources/read without uri has empty contents.",
        |_, parts| {
            wrap(parts, "resources/read", |call, _, answer| {
                if names(call, "uri") {
                    answer
                } else {
                    instead(answer, || object([("contents", Vec::new().into())]))
                }
            });
        },
    ),
    parts(
        "no-subscriptions",
        &["MCP-RES-05"],
        "subscribe is declared, and resources/subscribe is not known.",
        |_, parts| {
            parts.methods.remove("resources/subscribe");
        },
    ),
    parts(
        "no-unsubscriptions",
        &["MCP-RES-05"],
        "subscribe is declared, and resources/unsubscribe is not known.",
        |_, parts| {
            parts.methods.remove("resources/unsubscribe");
        },
    ),
    parts("lists-what-is-gone", &["MCP-RES-06"], "A listed resource cannot be read.", |_, parts| {
        wrap(parts, "resources/read", |call, _, answer| {
            if call.params.get("uri").and_then(Value::as_str) == Some("peerproof:///readme") {
                return Answer::Done(Err(Failure::new(-32002, "it is gone")));
            }
            answer
        });
    }),
    parts(
        "prompts-of-the-system",
        &["MCP-PRM-01"],
        "A message of a prompt has the role system.",
        |_, parts| {
            prompted(parts, |message| set(message, "role", "system".into()));
        },
    ),
    parts(
        "prompts-are-text",
        &["MCP-PRM-01"],
        "The content of a message of a prompt is a string.",
        |_, parts| {
            prompted(parts, |message| set(message, "content", "Say something.".into()));
        },
    ),
    parts(
        "prompts-have-blocks",
        &["MCP-PRM-01"],
        "The content of a message of a prompt is an array.",
        |_, parts| {
            prompted(parts, |message| {
                if let Some(content) = find(message, "content").cloned() {
                    set(message, "content", vec![content].into());
                }
            });
        },
    ),
    parts(
        "unknown-prompts-are-internal",
        &["MCP-PRM-02"],
        "An unknown prompt is an internal error.",
        |_, parts| {
            wrap(parts, "prompts/get", |call, world, answer| {
                if is_prompt(call, world) { answer } else { with_code(answer, -32603) }
            });
        },
    ),
    parts("unknown-prompts-are-empty", &["MCP-PRM-02"], "An unknown prompt has no messages.", |_, parts| {
        wrap(parts, "prompts/get", |call, world, answer| {
            if is_prompt(call, world) { answer } else { instead(answer, no_messages) }
        });
    }),
    parts(
        "missing-arguments-are-internal",
        &["MCP-PRM-03"],
        "A prompt without a required argument is an internal error.",
        |_, parts| {
            wrap(parts, "prompts/get", |call, world, answer| {
                if is_prompt(call, world) { with_code(answer, -32603) } else { answer }
            });
        },
    ),
    parts(
        "prompts-need-no-arguments",
        &["MCP-PRM-03"],
        "A prompt without a required argument is given.",
        |_, parts| {
            wrap(parts, "prompts/get", |call, world, answer| {
                if is_prompt(call, world) { instead(answer, no_messages) } else { answer }
            });
        },
    ),
    parts("slow-pong", &["MCP-UTL-01"], "A ping with params is answered after 3 s.", |_, parts| {
        wrap(parts, "ping", |call, _, answer| match answer {
            Answer::Done(outcome) if call.has_params => {
                Answer::Later(vec![Step::Wait(3_000), Step::Done(outcome)])
            }
            answer => answer,
        });
    }),
    parts("pings-have-no-params", &["MCP-UTL-01"], "A ping with params is refused.", |_, parts| {
        wrap(parts, "ping", |call, _, answer| {
            if call.has_params { Answer::Done(Err(Failure::invalid_params("no"))) } else { answer }
        });
    }),
    parts("no-notices", &["MCP-UTL-02"], "The level notice is refused.", |_, parts| {
        wrap(parts, "logging/setLevel", |call, _, answer| {
            if level(call, "notice") { Answer::Done(Err(Failure::invalid_params("no"))) } else { answer }
        });
    }),
    parts(
        "levels-are-not-known",
        &["MCP-UTL-02"],
        "Logging is declared, and logging/setLevel is not known.",
        |_, parts| {
            parts.methods.remove("logging/setLevel");
        },
    ),
    parts("every-level-is-taken", &["MCP-UTL-03"], "A level that is not known has a result.", |_, parts| {
        wrap(parts, "logging/setLevel", |_, _, answer| instead(answer, || Value::Object(Vec::new())));
    }),
    parts(
        "unknown-levels-are-internal",
        &["MCP-UTL-03"],
        "A level that is not known is an internal error.",
        |_, parts| {
            wrap(parts, "logging/setLevel", |_, _, answer| with_code(answer, -32603));
        },
    ),
    outgoing("logs-warn", &["MCP-UTL-04"], "Log messages have the level warn.", |_, line| {
        logged(line, |params| set(params, "level", "warn".into()))
    }),
    outgoing("logs-without-data", &["MCP-UTL-04"], "Log messages have no data.", |_, line| {
        logged(line, |params| remove(params, "data"))
    }),
    outgoing(
        "loggers-are-numbers",
        &["MCP-UTL-04"],
        "The logger of a log message is a number.",
        |_, line| logged(line, |params| set(params, "logger", 1.into())),
    ),
    parts("logs-below-the-level", &["MCP-UTL-05"], "The level that was set is forgotten.", |_, parts| {
        wrap(parts, "logging/setLevel", |_, world, answer| {
            world.level = 0;
            answer
        });
    }),
    parts("completes-without-end", &["MCP-UTL-06"], "A completion has 150 values.", |_, parts| {
        completed(parts, |completion| {
            let values: Vec<Value> = (0..150).map(|number| format!("name-{number:03}").into()).collect();
            set(completion, "values", values.into());
        });
    }),
    parts(
        "completes-with-numbers",
        &["MCP-UTL-06"],
        "The values of a completion are numbers.",
        |_, parts| {
            completed(parts, |completion| set(completion, "values", vec![number(1), number(2)].into()));
        },
    ),
    parts("totals-are-text", &["MCP-UTL-06"], "The total of a completion is a string.", |_, parts| {
        completed(parts, |completion| set(completion, "total", "150".into()));
    }),
    parts(
        "completes-unknown-prompts",
        &["MCP-UTL-07"],
        "A completion of an unknown prompt has no values.",
        |_, parts| {
            wrap(parts, "completion/complete", |_, _, answer| {
                instead(answer, || object([("completion", object([("values", Vec::new().into())]))]))
            });
        },
    ),
    parts(
        "unknown-completions-are-internal",
        &["MCP-UTL-07"],
        "A completion of an unknown prompt is an internal error.",
        |_, parts| {
            wrap(parts, "completion/complete", |_, _, answer| with_code(answer, -32603));
        },
    ),
];

/// True if the named prompt exists.
fn is_prompt(call: &Call<'_>, world: &crate::mcp::World) -> bool {
    let name = call.params.get("name").and_then(Value::as_text);
    name.is_some_and(|name| world.catalog.item("prompts", "name", name, world.revision).is_some())
}

fn no_messages() -> Value {
    object([("messages", Vec::new().into())])
}

//! Mutants of calls of tools, of cancellation and of progress.

use super::Mutant;
use super::edit::{
    Memory, Object, Pass, asks, both_ways, dies_of, each, ended, error, find, incoming, instead, is_error,
    member, messages, mute_after, object, object_mut, outgoing, parts, remove, said, saying, set, text,
    value, with_code, with_result, wrap,
};
use crate::json::Value;
use crate::mcp::message::{notification, response};
use crate::mcp::{Answer, Call, Components, Failure};

/// True for the result that says what is wrong with arguments.
fn is_refusal(result: &Object) -> bool {
    find(result, "isError").and_then(Value::as_bool) == Some(true) && reason(result).starts_with("arguments")
}

/// Text of the first block.
fn reason(result: &Object) -> String {
    let blocks = find(result, "content").and_then(Value::as_array);
    blocks.and_then(|blocks| blocks.first()?.get("text")?.as_str()).unwrap_or_default().to_owned()
}

/// Takes wrong arguments for right ones, where the reason of the refusal holds one of the words.
fn overlooks(parts: &mut Components, words: &'static [&'static str]) {
    wrap(parts, "tools/call", move |_, _, answer| {
        answer.edit(|outcome| {
            if let Ok(Value::Object(result)) = outcome
                && is_refusal(result)
                && words.iter().any(|word| reason(result).contains(word))
            {
                *outcome = Ok(said("done"));
            }
        })
    });
}

/// Edits the results of one tool.
fn results(parts: &mut Components, tool: &'static str, edit: fn(&mut Object)) {
    parts.tools.wrap(tool, move |_, _, answer| with_result(answer, edit));
}

/// Edits the blocks of one kind in the result of `media`.
fn blocks(parts: &mut Components, kind: &'static str, edit: fn(&mut Object)) {
    parts.tools.wrap("media", move |_, _, answer| {
        with_result(answer, |result| {
            each(result, "content", |block| {
                if find(block, "type").and_then(Value::as_str) == Some(kind) {
                    edit(block);
                }
            });
        })
    });
}

/// A call that no tool is named in, or none that is there.
fn names_no_tool(call: &Call<'_>) -> bool {
    member(call.params, "name").is_none_or(|name| !TOOLS.iter().any(|tool| name == tool))
}

const TOOLS: [&str; 10] =
    ["echo", "sleep", "noargs", "counter", "blob", "fail", "log", "ask", "media", "measure"];

/// A call that is malformed: without a name, or with arguments that are no object.
fn is_malformed(call: &Call<'_>) -> bool {
    member(call.params, "name").is_none()
        || call
            .params
            .get("arguments")
            .is_some_and(|given| given.as_object().is_none() && *given != Value::Null)
}

fn is_cancellation(line: &[u8]) -> bool {
    asks(line, "notifications/cancelled")
}

/// Id that a cancellation names.
fn cancelled(line: &[u8]) -> Option<Value> {
    value(line).filter(|_| is_cancellation(line))?.get("params")?.get("requestId").cloned()
}

/// Remembers calls of `sleep` that are under way: id and text.
fn sleeps(memory: &mut Memory, line: &[u8]) {
    if let Some(message) = value(line)
        && let Some(params) = message.get("params")
        && params.get("name").and_then(Value::as_str) == Some("sleep")
        && let Some(id) = message.get("id")
    {
        let said = params.get("arguments").and_then(|given| given.get("text")).and_then(Value::as_str);
        memory.kept.insert(text(id), said.unwrap_or_default().as_bytes().to_vec());
    }
}

/// Forgets a call of `sleep` that is answered; its text.
fn wakes(memory: &mut Memory, line: &[u8]) -> Option<Vec<u8>> {
    let message = value(line).filter(|message| message.get("method").is_none())?;
    memory.kept.remove(&text(message.get("id")?))
}

/// Answers a call of `sleep` here where it is cancelled.
fn settles(memory: &mut Memory, line: &[u8], answer: fn(Value) -> Pass) -> Pass {
    sleeps(memory, line);
    match cancelled(line) {
        Some(id) if memory.kept.remove(&text(&id)).is_some() => {
            memory.kept.insert(settled(&id), Vec::new());
            answer(id)
        }
        _ => Pass::Forward,
    }
}

/// Drops the answer of the server to a call that [`settles`] answered.
fn drops_settled(memory: &mut Memory, line: &[u8]) -> Vec<u8> {
    let id = value(line).and_then(|message| message.get("id").cloned());
    let _ = wakes(memory, line);
    match id {
        Some(id) if memory.kept.remove(&settled(&id)).is_some() => Vec::new(),
        _ => ended(line.to_vec()),
    }
}

fn settled(id: &Value) -> Vec<u8> {
    [b"settled ", &text(id)[..]].concat()
}

/// Edits progress notifications.
fn progress(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |message| {
        if find(message, "method").and_then(Value::as_str) == Some("notifications/progress")
            && let Some(params) = object_mut(message, "params")
        {
            edit(params);
        }
    })
}

/// The mutants of calls.
pub const MUTANTS: &[Mutant] = &[
    parts(
        "unknown-tool-is-a-failed-call",
        &["MCP-TOL-01"],
        "An unknown tool is a result with isError.",
        |_, parts| {
            wrap(parts, "tools/call", |call, _, answer| {
                if is_malformed(call) || !names_no_tool(call) {
                    return answer;
                }
                with_result(instead(answer, || said("no such tool")), |result| {
                    set(result, "isError", true.into())
                })
            });
        },
    ),
    parts(
        "unknown-tool-succeeds",
        &["MCP-TOL-02"],
        "An unknown tool has a result like any other.",
        |_, parts| {
            wrap(parts, "tools/call", |call, _, answer| {
                if is_malformed(call) || !names_no_tool(call) {
                    answer
                } else {
                    instead(answer, || said("no such tool"))
                }
            });
        },
    ),
    parts(
        "malformed-calls-are-internal",
        &["MCP-TOL-03"],
        "A malformed call is an internal error.",
        |_, parts| {
            wrap(
                parts,
                "tools/call",
                |call, _, answer| {
                    if is_malformed(call) { with_code(answer, -32603) } else { answer }
                },
            );
        },
    ),
    parts(
        "malformed-calls-fail",
        &["MCP-TOL-03"],
        "A malformed call is a result with isError.",
        |_, parts| {
            wrap(parts, "tools/call", |call, _, answer| {
                if !is_malformed(call) {
                    return answer;
                }
                with_result(instead(answer, || said("malformed")), |result| {
                    set(result, "isError", true.into())
                })
            });
        },
    ),
    parts("nameless-calls-succeed", &["MCP-TOL-04"], "A call without a name succeeds.", |_, parts| {
        wrap(parts, "tools/call", |call, _, answer| {
            if member(call.params, "name").is_none() { instead(answer, || said("done")) } else { answer }
        });
    }),
    parts(
        "arguments-may-be-an-array",
        &["MCP-TOL-04"],
        "Arguments that are an array are taken for none.",
        |_, parts| {
            wrap(parts, "tools/call", |call, _, answer| {
                if is_malformed(call) && !names_no_tool(call) {
                    instead(answer, || said("done"))
                } else {
                    answer
                }
            });
        },
    ),
    parts("checks-no-arguments", &["MCP-TOL-05"], "Arguments are not validated.", |_, parts| {
        overlooks(parts, &["arguments"])
    }),
    parts(
        "overlooks-missing-arguments",
        &["MCP-TOL-05"],
        "A required argument may be missing.",
        |_, parts| {
            overlooks(parts, &["is missing"]);
        },
    ),
    parts("overlooks-types", &["MCP-TOL-05"], "An argument may have another type.", |_, parts| {
        overlooks(parts, &["is not of type"]);
    }),
    parts(
        "overlooks-enums",
        &["MCP-TOL-05"],
        "An argument may have any value beside those of enum and const.",
        |_, parts| {
            overlooks(parts, &["the allowed value"]);
        },
    ),
    parts(
        "refuses-with-success",
        &["MCP-TOL-05"],
        "What is wrong with arguments is told without isError.",
        |_, parts| {
            wrap(parts, "tools/call", |_, _, answer| {
                with_result(answer, |result| {
                    if is_refusal(result) {
                        set(result, "isError", false.into());
                    }
                })
            });
        },
    ),
    parts(
        "wrong-arguments-are-errors",
        &["MCP-TOL-06"],
        "Arguments that break the schema are a protocol error.",
        |_, parts| {
            wrap(parts, "tools/call", |_, _, answer| {
                answer.edit(|outcome| {
                    if let Ok(Value::Object(result)) = outcome
                        && is_refusal(result)
                    {
                        *outcome = Err(Failure::invalid_params(reason(result)));
                    }
                })
            });
        },
    ),
    parts("results-without-content", &["MCP-TOL-07"], "A result has no content.", |_, parts| {
        results(parts, "noargs", |result| remove(result, "content"));
    }),
    parts("content-is-text", &["MCP-TOL-07"], "The content of a result is a string.", |_, parts| {
        results(parts, "noargs", |result| set(result, "content", "nothing".into()));
    }),
    parts("blocks-without-text", &["MCP-TOL-07"], "A text block has no text.", |_, parts| {
        results(parts, "noargs", |result| each(result, "content", |block| remove(block, "text")));
    }),
    parts("blocks-of-unknown-type", &["MCP-TOL-07"], "A block has the type json.", |_, parts| {
        results(parts, "noargs", |result| each(result, "content", |block| set(block, "type", "json".into())));
    }),
    parts("is-error-is-text", &["MCP-TOL-07"], "isError is a string.", |_, parts| {
        results(parts, "noargs", |result| set(result, "isError", "false".into()));
    }),
    parts("images-without-type", &["MCP-TOL-07"], "An image has no mimeType.", |_, parts| {
        blocks(parts, "image", |block| remove(block, "mimeType"));
    }),
    parts("images-are-no-base64", &["MCP-TOL-07"], "The data of an image are no base64.", |_, parts| {
        blocks(parts, "image", |block| set(block, "data", "<pixel>".into()));
    }),
    parts("links-without-name", &["MCP-TOL-07"], "A link to a resource has no name.", |_, parts| {
        blocks(parts, "resource_link", |block| remove(block, "name"));
    }),
    parts("resources-without-uri", &["MCP-TOL-07"], "An embedded resource has no uri.", |_, parts| {
        blocks(parts, "resource", |block| {
            if let Some(resource) = object_mut(block, "resource") {
                remove(resource, "uri");
            }
        });
    }),
    parts("blocks-of-later-revisions", &["MCP-TOL-07"], "Audio is given at 2024-11-05.", |_, parts| {
        parts.tools.wrap("noargs", |_, _, answer| {
            with_result(answer, |result| {
                if let Some(Value::Array(content)) = super::edit::find_mut(result, "content") {
                    content.push(object([
                        ("type", "audio".into()),
                        ("data", "UklGRg==".into()),
                        ("mimeType", "audio/wav".into()),
                    ]));
                }
            })
        });
    })
    .needing("2024-11-05"),
    parts("structured-content-is-an-array", &["MCP-TOL-08"], "structuredContent is an array.", |_, parts| {
        results(parts, "noargs", |result| set(result, "structuredContent", vec![1.into()].into()));
    }),
    parts(
        "no-structured-content",
        &["MCP-TOL-09"],
        "A tool with an output schema gives text alone.",
        |_, parts| {
            results(parts, "measure", |result| remove(result, "structuredContent"));
        },
    ),
    parts(
        "structured-content-breaks-its-schema",
        &["MCP-TOL-09"],
        "A number of structuredContent is a string.",
        |_, parts| {
            results(parts, "measure", |result| {
                if let Some(content) = object_mut(result, "structuredContent") {
                    set(content, "words", "1".into());
                }
                let measured = find(result, "structuredContent").map(text).unwrap_or_default();
                each(result, "content", |block| {
                    set(block, "text", String::from_utf8_lossy(&measured).into_owned().into());
                });
            });
        },
    ),
    parts(
        "structured-content-has-no-text",
        &["MCP-TOL-10"],
        "The text beside structuredContent says something else.",
        |_, parts| {
            results(parts, "measure", |result| {
                each(result, "content", |block| set(block, "text", "done".into()))
            });
        },
    ),
    parts("needs-arguments", &["MCP-TOL-11"], "A call without arguments has invalid params.", |_, parts| {
        wrap(parts, "tools/call", |call, _, answer| {
            if call.params.get("arguments").is_some() {
                return answer;
            }
            Answer::Done(Err(Failure::invalid_params("arguments are missing")))
        });
    }),
    both_ways(
        "mixes-calls",
        &["MCP-TOL-12"],
        "A call that ends beside another gives the text of the other.",
        |memory, line| {
            sleeps(memory, line);
            Pass::Forward
        },
        |memory, line| match wakes(memory, line) {
            Some(own) if !own.is_empty() => match memory.kept.values().next() {
                Some(other) => super::edit::swap_all(
                    &ended(line.to_vec()),
                    &String::from_utf8_lossy(&own),
                    &String::from_utf8_lossy(other),
                ),
                None => ended(line.to_vec()),
            },
            _ => ended(line.to_vec()),
        },
    ),
    both_ways(
        "one-call-at-a-time",
        &["MCP-TOL-12"],
        "A call beside another is not answered.",
        |memory, line| {
            if !memory.kept.is_empty() && asks(line, "tools/call") {
                return Pass::Drop;
            }
            sleeps(memory, line);
            Pass::Forward
        },
        |memory, line| {
            let _ = wakes(memory, line);
            ended(line.to_vec())
        },
    ),
    parts("unknown-tool-is-32601", &["MCP-TOL-13"], "An unknown tool is an unknown method.", |_, parts| {
        wrap(parts, "tools/call", |call, _, answer| {
            if is_error(&answer) && names_no_tool(call) && !is_malformed(call) {
                with_code(answer, -32601)
            } else {
                answer
            }
        });
    }),
    both_ways(
        "cancelled-calls-fail",
        &["MCP-CAN-01"],
        "A cancelled call is answered with an error.",
        |memory, line| settles(memory, line, |id| error(&id, -32000)),
        drops_settled,
    ),
    both_ways(
        "cancelled-calls-end-early",
        &["MCP-CAN-01"],
        "A cancelled call has its result at once.",
        |memory, line| settles(memory, line, |id| Pass::Answer(text(&response(id, Ok(said("cancelled")))))),
        drops_settled,
    ),
    incoming(
        "answers-cancellations",
        &["MCP-CAN-02"],
        "A cancellation of what is not under way is refused.",
        |_, line| {
            if cancelled(line).is_some() { error(&Value::Null, -32602) } else { Pass::Forward }
        },
    ),
    incoming(
        "answers-malformed-cancellations",
        &["MCP-CAN-02"],
        "A cancellation without requestId is refused.",
        |_, line| {
            if is_cancellation(line) && cancelled(line).is_none() {
                error(&Value::Null, -32602)
            } else {
                Pass::Forward
            }
        },
    ),
    incoming("dies-of-cancellations", &["MCP-CAN-03"], "A cancellation ends the process.", |_, line| {
        dies_of(line, is_cancellation)
    }),
    incoming(
        "mute-after-a-cancellation",
        &["MCP-CAN-03"],
        "Nothing is answered after a cancellation.",
        |memory, line| mute_after(memory, line, is_cancellation),
    ),
    parts(
        "progress-without-token",
        &["MCP-PRG-01"],
        "A call that gave no token has progress.",
        |_, parts| {
            for tool in ["noargs", "sleep"] {
                parts.tools.wrap(tool, |call, _, answer| {
                    if call.token.is_some() {
                        return answer;
                    }
                    let params = object([("progressToken", 1.into()), ("progress", 1.into())]);
                    saying(answer, notification("notifications/progress", params))
                });
            }
        },
    ),
    outgoing(
        "tokens-are-text",
        &["MCP-PRG-01"],
        "A progress token that is a number comes back as a string.",
        |_, line| {
            progress(line, |params| {
                if let Some(token) = find(params, "progressToken").and_then(Value::as_i64) {
                    set(params, "progressToken", token.to_string().into());
                }
            })
        },
    ),
    outgoing(
        "tokens-are-changed",
        &["MCP-PRG-01"],
        "A progress token that is a string comes back in capitals.",
        |_, line| {
            progress(line, |params| {
                if let Some(token) = find(params, "progressToken").and_then(Value::as_str) {
                    let token = format!("{}!", token.to_uppercase());
                    set(params, "progressToken", token.into());
                }
            })
        },
    ),
    outgoing("progress-stands-still", &["MCP-PRG-02"], "Progress is 1 each time.", |_, line| {
        progress(line, |params| set(params, "progress", 1.into()))
    }),
    outgoing("progress-goes-back", &["MCP-PRG-02"], "Progress counts down.", |_, line| {
        progress(line, |params| {
            let progress = find(params, "progress").and_then(Value::as_i64).unwrap_or_default();
            set(params, "progress", (10 - progress).into());
        })
    }),
    both_ways(
        "progress-after-the-answer",
        &["MCP-PRG-03"],
        "A last progress follows the answer.",
        |memory, line| {
            let token = value(line).and_then(|message| {
                let token = message.get("params")?.get("_meta")?.get("progressToken")?.clone();
                Some((text(message.get("id")?), text(&token)))
            });
            memory.kept.extend(token);
            Pass::Forward
        },
        |memory, line| {
            let mut out = ended(line.to_vec());
            if let Some(token) = wakes(memory, line).and_then(|token| value(&token)) {
                let params = object([("progressToken", token), ("progress", 100.into())]);
                out.extend(ended(text(&notification("notifications/progress", params))));
            }
            out
        },
    ),
];

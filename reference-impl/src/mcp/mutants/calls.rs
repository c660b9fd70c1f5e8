//! Mutants of tool calls, cancellation and progress.

use super::Mutant;
use super::edit::{
    Object, each, find, instead, is_error, member, object, object_mut, parts, remove, said, set, text,
    with_code, with_result, wrap,
};
use crate::json::Value;
use crate::mcp::{Answer, Call, Components, Failure};

/// True for a result that reports invalid arguments.
fn is_refusal(result: &Object) -> bool {
    find(result, "isError").and_then(Value::as_bool) == Some(true) && reason(result).starts_with("arguments")
}

/// Text of the first block.
fn reason(result: &Object) -> String {
    let blocks = find(result, "content").and_then(Value::as_array);
    blocks.and_then(|blocks| blocks.first()?.get("text")?.as_str()).unwrap_or_default().to_owned()
}

/// Accepts invalid arguments if the reason of the refusal contains one of the words.
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

/// True for a call without a tool name, or with an unknown one.
fn names_no_tool(call: &Call<'_>) -> bool {
    member(call.params, "name").is_none_or(|name| !TOOLS.iter().any(|tool| name == tool))
}

const TOOLS: [&str; 11] =
    ["echo", "sleep", "noargs", "counter", "blob", "job", "fail", "log", "ask", "media", "measure"];

/// True for a malformed call: without a name, or with arguments that are not an object.
fn is_malformed(call: &Call<'_>) -> bool {
    member(call.params, "name").is_none()
        || call
            .params
            .get("arguments")
            .is_some_and(|given| given.as_object().is_none() && *given != Value::Null)
}

/// Mutants of calls.
pub(super) const MUTANTS: &[Mutant] = &[
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
        "overlooks-bounds",
        &["MCP-TOL-05b"],
        "An argument may be beyond the bounds of its schema.",
        |_, parts| {
            overlooks(parts, &["out of range", "too long"]);
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
    parts("unknown-tool-is-32601", &["MCP-TOL-13"], "An unknown tool is an unknown method.", |_, parts| {
        wrap(parts, "tools/call", |call, _, answer| {
            if is_error(&answer) && names_no_tool(call) && !is_malformed(call) {
                with_code(answer, -32601)
            } else {
                answer
            }
        });
    }),
];

//! Mutants of lists and their items.

use super::Mutant;
use super::edit::{
    config, each, elements, item, items, object, object_mut, parts, remove, said, set, with_code,
    with_result, wrap,
};
use crate::json::Value;
use crate::mcp::{Answer, BadCursor, Components, Failure};

/// Edits the input schema of a tool.
fn schema(parts: &mut Components, tool: &str, edit: fn(&mut super::edit::Object)) {
    item(parts, "tools", tool, |tool| {
        if let Some(schema) = object_mut(tool, "inputSchema") {
            edit(schema);
        }
    });
}

/// Adds a cursor to every last page of a list.
fn last_cursor(parts: &mut Components, method: &'static str, cursor: fn() -> Value) {
    wrap(parts, method, move |_, _, answer| {
        with_result(answer, |result| {
            if super::edit::find(result, "nextCursor").is_none() {
                set(result, "nextCursor", cursor());
            }
        })
    });
}

/// A name of 129 characters.
const LONG_NAME: &str = concat!(
    "noargs_noargs_noargs_noargs_noargs_noargs_noargs_noargs_noargs_",
    "noargs_noargs_noargs_noargs_noargs_noargs_noargs_noargs_noargs_",
    "noa"
);

/// Mutants of lists.
pub(super) const MUTANTS: &[Mutant] = &[
    parts("tool-without-schema", &["MCP-LST-01"], "A tool has no inputSchema.", |_, parts| {
        item(parts, "tools", "noargs", |tool| remove(tool, "inputSchema"));
    }),
    parts("schema-without-type", &["MCP-LST-01"], "The inputSchema of a tool has no type.", |_, parts| {
        schema(parts, "noargs", |schema| remove(schema, "type"));
    }),
    parts("tool-without-name", &["MCP-LST-01"], "A tool has no name.", |_, parts| {
        item(parts, "tools", "media", |tool| remove(tool, "name"));
    }),
    parts(
        "descriptions-are-numbers",
        &["MCP-LST-01"],
        "The description of a tool is a number.",
        |_, parts| {
            item(parts, "tools", "noargs", |tool| set(tool, "description", 1.into()));
        },
    ),
    parts("hints-are-text", &["MCP-LST-01"], "The readOnlyHint of a tool is a string.", |_, parts| {
        item(parts, "tools", "echo", |tool| {
            set(tool, "annotations", object([("readOnlyHint", "true".into())]));
        });
    }),
    parts("resource-without-name", &["MCP-LST-01"], "A resource has no name.", |_, parts| {
        item(parts, "resources", "pixel", |resource| remove(resource, "name"));
    }),
    parts("template-without-name", &["MCP-LST-01"], "A resource template has no name.", |_, parts| {
        item(parts, "resourceTemplates", "greeting", |template| remove(template, "name"));
    }),
    parts("prompt-without-name", &["MCP-LST-01"], "A prompt has no name.", |_, parts| {
        item(parts, "prompts", "plain", |prompt| remove(prompt, "name"));
    }),
    parts("argument-without-name", &["MCP-LST-01"], "An argument of a prompt has no name.", |_, parts| {
        item(parts, "prompts", "greet", |prompt| {
            each(prompt, "arguments", |argument| remove(argument, "name"))
        });
    }),
    parts(
        "lists-need-params",
        &["MCP-LST-02"],
        "tools/list without params has invalid params.",
        |_, parts| {
            wrap(parts, "tools/list", |call, _, answer| {
                if call.has_params {
                    answer
                } else {
                    Answer::Done(Err(Failure::invalid_params("params are missing")))
                }
            });
        },
    ),
    parts(
        "lists-differ-without-params",
        &["MCP-LST-02"],
        "prompts/list without params is empty.",
        |_, parts| {
            wrap(parts, "prompts/list", |call, _, answer| {
                with_result(answer, |result| {
                    if !call.has_params {
                        set(result, "prompts", Vec::new().into());
                    }
                })
            });
        },
    ),
    parts("last-cursor-is-null", &["MCP-LST-03"], "The nextCursor of a last page is null.", |_, parts| {
        last_cursor(parts, "tools/list", || Value::Null);
    }),
    parts("cursors-are-numbers", &["MCP-LST-03"], "A nextCursor is a number.", |_, parts| {
        wrap(parts, "tools/list", |_, _, answer| {
            with_result(answer, |result| {
                if super::edit::find(result, "nextCursor").is_some() {
                    set(result, "nextCursor", 4.into());
                }
            })
        });
    }),
    parts(
        "pages-have-no-end",
        &["MCP-LST-04"],
        "The last page of tools leads to the second one.",
        |_, parts| {
            last_cursor(parts, "tools/list", || "tools:4".into());
        },
    ),
    parts("every-page-is-the-first", &["MCP-LST-04"], "Each page of tools is the first.", |_, parts| {
        wrap(parts, "tools/list", |_, world, answer| {
            with_result(answer, |result| {
                let tools: Vec<Value> =
                    world.catalog.list("tools", world.revision).into_iter().take(4).collect();
                set(result, "tools", tools.into());
                set(result, "nextCursor", "tools:4".into());
            })
        });
    }),
    parts("last-cursor-is-empty", &["MCP-LST-05"], "The nextCursor of a last page is empty.", |_, parts| {
        last_cursor(parts, "tools/list", || "".into());
    }),
    config(
        "ignores-cursors-not-given",
        &["MCP-LST-06"],
        "An unknown cursor gives the first page.",
        |config| {
            config.choices.mcp_bad_cursor = BadCursor::Ignore;
        },
    ),
    parts(
        "unknown-cursors-are-internal",
        &["MCP-LST-06"],
        "An unknown cursor is an internal error.",
        |_, parts| {
            wrap(parts, "tools/list", |_, _, answer| with_code(answer, -32603));
        },
    ),
    parts(
        "unknown-cursors-end-lists",
        &["MCP-LST-06"],
        "An unknown cursor gives an empty page.",
        |_, parts| {
            wrap(parts, "tools/list", |_, _, answer| {
                super::edit::instead(answer, || object([("tools", Vec::new().into())]))
            });
        },
    ),
    parts(
        "descriptions-are-null",
        &["MCP-LST-07"],
        "A tool without a description has null for one.",
        |_, parts| {
            item(parts, "tools", "noargs", |tool| set(tool, "description", Value::Null));
        },
    ),
    parts(
        "annotations-are-null",
        &["MCP-LST-07"],
        "A tool without annotations has null for them.",
        |_, parts| {
            item(parts, "tools", "counter", |tool| set(tool, "annotations", Value::Null));
        },
    ),
    parts(
        "mime-types-are-null",
        &["MCP-LST-07"],
        "A resource without mimeType has null for one.",
        |_, parts| {
            item(parts, "resources", "readme", |resource| set(resource, "mimeType", Value::Null));
        },
    ),
    parts("tool-names-have-blanks", &["MCP-LST-08"], "A tool is called `no args`.", |_, parts| {
        item(parts, "tools", "noargs", |tool| set(tool, "name", "no args".into()));
        parts.tools.set("no args", |_, _| Ok(said("nothing")).into());
    }),
    parts("tool-names-are-long", &["MCP-LST-08"], "A tool has a name of 129 characters.", |_, parts| {
        item(parts, "tools", "noargs", |tool| set(tool, "name", LONG_NAME.into()));
        parts.tools.set(LONG_NAME, |_, _| Ok(said("nothing")).into());
    }),
    parts("tool-twice", &["MCP-LST-09"], "A tool is listed twice.", |_, parts| {
        items(parts, "tools", |tools| tools.extend(tools.first().cloned()));
    }),
    parts("resource-twice", &["MCP-LST-09"], "A resource is listed twice.", |_, parts| {
        items(parts, "resources", |resources| resources.extend(resources.first().cloned()));
    }),
    parts("uris-have-blanks", &["MCP-LST-10"], "The uri of a resource has a blank.", |_, parts| {
        item(parts, "resources", "pixel", |resource| {
            set(resource, "uri", "peerproof:///my pixel.png".into())
        });
    }),
    parts("uris-have-no-scheme", &["MCP-LST-10"], "The uri of a resource has no scheme.", |_, parts| {
        item(parts, "resources", "pixel", |resource| set(resource, "uri", "pixel.png".into()));
    }),
    parts(
        "templates-are-not-closed",
        &["MCP-LST-10"],
        "The template of a resource lacks a brace.",
        |_, parts| {
            item(parts, "resourceTemplates", "greeting", |template| {
                set(template, "uriTemplate", "peerproof:///greetings/{name".into());
            });
        },
    ),
    parts("schema-of-unknown-type", &["MCP-LST-11"], "A property has the type `str`.", |_, parts| {
        schema(parts, "fail", |schema| {
            if let Some(properties) = object_mut(schema, "properties") {
                set(properties, "text", object([("type", "str".into())]));
            }
        });
    }),
    parts(
        "required-is-a-flag",
        &["MCP-LST-11"],
        "A property of an input schema is `required: true`.",
        |_, parts| {
            schema(parts, "fail", |schema| {
                if let Some(properties) = object_mut(schema, "properties") {
                    set(properties, "text", object([("type", "string".into()), ("required", true.into())]));
                }
            });
        },
    ),
    parts(
        "output-schema-is-invalid",
        &["MCP-LST-11"],
        "The properties of an output schema are an array.",
        |_, parts| {
            item(parts, "tools", "measure", |tool| {
                if let Some(schema) = object_mut(tool, "outputSchema") {
                    set(schema, "properties", Vec::new().into());
                }
            });
        },
    ),
    parts("output-is-an-array", &["MCP-LST-12"], "The type of an output schema is array.", |_, parts| {
        item(parts, "tools", "measure", |tool| {
            set(
                tool,
                "outputSchema",
                object([("type", "array".into()), ("items", object([("type", "integer".into())]))]),
            );
        });
    }),
    parts("output-has-no-type", &["MCP-LST-12"], "An output schema has no type.", |_, parts| {
        item(parts, "tools", "measure", |tool| {
            if let Some(schema) = object_mut(tool, "outputSchema") {
                remove(schema, "type");
            }
        });
    }),
    parts("pages-are-null", &["MCP-LST-04"], "The second page of tools is null.", |_, parts| {
        wrap(parts, "tools/list", |call, _, answer| {
            with_result(answer, |result| {
                if call.params.get("cursor").is_some() && !elements(result, "tools").is_empty() {
                    set(result, "tools", Value::Null);
                }
            })
        });
    }),
];

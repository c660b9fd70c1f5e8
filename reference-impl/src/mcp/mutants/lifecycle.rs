//! Mutants of the opening, of capabilities, and of requests to the client.

use super::Mutant;
use super::edit::{
    Object, Pass, asked_id, asks, config, dies_of, error, find, incoming, mute_after, object, object_mut,
    parts, remove, set, with_code, with_result, wrap,
};
use crate::json::Value;
use crate::machine::{Event, Machine};
use crate::mcp::{Answer, Call, Components, EarlyRequest, Failure, Phase, Revision, UnknownVersion};
use crate::mutant::{machine, wrap as wrapped};

/// Edits the results of `initialize`.
fn opened(parts: &mut Components, edit: fn(&Call<'_>, &mut Object)) {
    wrap(parts, "initialize", move |call, _, answer| with_result(answer, |result| edit(call, result)));
}

/// Refuses `initialize` if `is_strange` returns true for the client's capabilities.
fn refuses(parts: &mut Components, is_strange: fn(&Value) -> bool) {
    wrap(parts, "initialize", move |call, _, answer| match call.params.get("capabilities") {
        Some(client) if is_strange(client) => refusal(-32602),
        _ => answer,
    });
}

fn refusal(code: i64) -> Answer {
    Answer::Done(Err(Failure::new(code, "no")))
}

fn version<'c>(call: &Call<'c>) -> Option<&'c str> {
    call.params.get("protocolVersion").and_then(Value::as_str)
}

const KNOWN: [&str; 4] = ["roots", "sampling", "elicitation", "tasks"];

fn is_discover(line: &[u8]) -> bool {
    asks(line, "server/discover")
}

pub(super) fn no_params() -> Value {
    Value::Object(Vec::new())
}

/// Mutants of the opening and of capabilities.
pub(super) const MUTANTS: &[Mutant] = &[
    parts(
        "opens-without-version",
        &["MCP-INI-01"],
        "The result of initialize has no protocolVersion.",
        |_, parts| {
            opened(parts, |_, result| remove(result, "protocolVersion"));
        },
    ),
    parts(
        "opens-without-capabilities",
        &["MCP-INI-01"],
        "The result of initialize has no capabilities.",
        |_, parts| {
            opened(parts, |_, result| remove(result, "capabilities"));
        },
    ),
    parts(
        "opens-without-server-info",
        &["MCP-INI-01"],
        "The result of initialize has no serverInfo.",
        |_, parts| {
            opened(parts, |_, result| remove(result, "serverInfo"));
        },
    ),
    parts("server-without-version", &["MCP-INI-01"], "serverInfo has no version.", |_, parts| {
        opened(parts, |_, result| {
            if let Some(info) = object_mut(result, "serverInfo") {
                remove(info, "version");
            }
        });
    }),
    parts("capabilities-are-flags", &["MCP-INI-01"], "The capability tools is true.", |_, parts| {
        opened(parts, |_, result| {
            if let Some(capabilities) = object_mut(result, "capabilities") {
                set(capabilities, "tools", true.into());
            }
        });
    }),
    parts("instructions-are-a-list", &["MCP-INI-01"], "The instructions are an array.", |_, parts| {
        opened(parts, |_, result| set(result, "instructions", vec!["a".into()].into()));
    }),
    parts(
        "offers-what-it-does-not-take",
        &["MCP-INI-02"],
        "It names 2024-11-05 as supported, and answers it with its newest version.",
        |config, parts| {
            config.choices.mcp_unknown_version = UnknownVersion::Error;
            opened(parts, |call, result| {
                if version(call) == Some("2024-11-05") {
                    set(result, "protocolVersion", Revision::V25c.name().into());
                }
            });
        },
    ),
    parts(
        "refuses-what-it-names",
        &["MCP-INI-02"],
        "An error names 2024-11-05 and 2025-11-25 as supported. It answers 2024-11-05, too.",
        |_, parts| {
            wrap(parts, "initialize", |call, _, answer| match version(call) {
                Some("2024-11-05") => {
                    let names = [Revision::V24, Revision::V25c].map(|revision| Value::from(revision.name()));
                    let data = Value::from([("supported", Value::from(Vec::from(names)))]);
                    Answer::Done(Err(Failure { data: Some(data), ..Failure::new(-32602, "no") }))
                }
                _ => answer,
            });
        },
    ),
    parts(
        "offers-what-it-takes-for-another",
        &["MCP-INI-02"],
        "2024-11-05 is answered with 2025-06-18, and that with 2025-11-25.",
        |_, parts| {
            opened(parts, |call, result| match version(call) {
                Some("2025-06-18") => set(result, "protocolVersion", Revision::V25c.name().into()),
                Some("2024-11-05") => set(result, "protocolVersion", Revision::V25b.name().into()),
                _ => {}
            });
        },
    ),
    parts(
        "takes-every-version",
        &["MCP-INI-03"],
        "An unknown version is answered with itself.",
        |_, parts| {
            opened(parts, |call, result| {
                if let Some(asked) = version(call) {
                    set(result, "protocolVersion", asked.into());
                }
            });
        },
    ),
    parts(
        "refuses-unknown-versions-oddly",
        &["MCP-INI-03"],
        "An unknown version is an internal error.",
        |config, parts| {
            config.choices.mcp_unknown_version = UnknownVersion::Error;
            wrap(parts, "initialize", |_, _, answer| with_code(answer, -32603));
        },
    ),
    parts(
        "falls-back-to-the-oldest",
        &["MCP-INI-04"],
        "An unknown version is answered with 2024-11-05.",
        |_, parts| {
            opened(parts, |call, result| {
                if version(call).is_none_or(|asked| Revision::find(asked).is_none()) {
                    set(result, "protocolVersion", Revision::V24.name().into());
                }
            });
        },
    ),
    parts("no-early-ping", &["MCP-INI-05"], "A ping before initialize is refused.", |_, parts| {
        wrap(
            parts,
            "ping",
            |_, world, answer| if world.phase == Phase::New { refusal(-32600) } else { answer },
        );
    }),
    incoming(
        "early-pings-are-dropped",
        &["MCP-INI-05"],
        "A ping before initialize is not answered.",
        |memory, line| {
            if asks(line, "initialize") {
                memory.kept.insert(b"open".to_vec(), Vec::new());
            }
            if asks(line, "ping") && memory.kept.is_empty() { Pass::Drop } else { Pass::Forward }
        },
    ),
    parts(
        "no-ping-before-initialized",
        &["MCP-INI-06"],
        "A ping before initialized is refused.",
        |_, parts| {
            wrap(
                parts,
                "ping",
                |_, world, answer| if world.phase == Phase::Opened { refusal(-32600) } else { answer },
            );
        },
    ),
    config(
        "early-requests-are-dropped",
        &["MCP-INI-07"],
        "A request before initialize is not answered.",
        |config| {
            config.choices.mcp_early_request = EarlyRequest::Silent;
        },
    ),
    incoming("dies-of-discover", &["MCP-INI-08"], "server/discover ends the process.", |_, line| {
        dies_of(line, is_discover)
    }),
    incoming(
        "mute-after-discover",
        &["MCP-INI-08"],
        "Nothing is answered after server/discover.",
        |memory, line| mute_after(memory, line, is_discover),
    ),
    incoming(
        "discover-spoils-the-opening",
        &["MCP-INI-08"],
        "After server/discover, initialize is refused.",
        |memory, line| {
            if is_discover(line) {
                memory.kept.insert(b"discovered".to_vec(), Vec::new());
            }
            match asked_id(line) {
                Some(id) if asks(line, "initialize") && !memory.kept.is_empty() => error(&id, -32600),
                _ => Pass::Forward,
            }
        },
    ),
    incoming(
        "second-initialize-is-dropped",
        &["MCP-INI-09"],
        "A second initialize is not answered.",
        |memory, line| {
            let is_second =
                asks(line, "initialize") && memory.kept.insert(b"open".to_vec(), Vec::new()).is_some();
            if !asks(line, "initialize") {
                return Pass::Forward;
            }
            if is_second { Pass::Drop } else { Pass::Forward }
        },
    ),
    parts(
        "initialize-without-params-is-internal",
        &["MCP-INI-10"],
        "initialize without params is an internal error.",
        |_, parts| {
            wrap(
                parts,
                "initialize",
                |call, _, answer| if call.has_params { answer } else { with_code(answer, -32603) },
            );
        },
    ),
    incoming(
        "initialize-needs-no-params",
        &["MCP-INI-10"],
        "initialize without params succeeds.",
        |_, line| {
            super::edit::edited(line, |message| {
                let is_bare = find(message, "method").and_then(Value::as_str) == Some("initialize")
                    && find(message, "params").is_none();
                if is_bare {
                    set(message, "params", object([("protocolVersion", Revision::V25c.name().into())]));
                }
                is_bare
            })
        },
    ),
    machine(
        "loses-what-follows-initialized",
        &["MCP-INI-11"],
        "The rest of a write is lost behind notifications/initialized.",
        |inner| {
            wrapped(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let end = memchr::memmem::find(bytes, b"notifications/initialized")
                        .and_then(|at| Some(at + memchr::memchr(b'\n', bytes.get(at..)?)? + 1));
                    let end = end.unwrap_or(bytes.len());
                    inner.handle(Event::Stdin(bytes.get(..end).unwrap_or_default()), now, actions);
                }
                event => inner.handle(event, now, actions),
            })
        },
    ),
    incoming(
        "dies-before-initialized",
        &["MCP-INI-12"],
        "A list before initialized ends the process.",
        |memory, line| {
            if asks(line, "notifications/initialized") || asks(line, "server/discover") {
                memory.kept.insert(b"open".to_vec(), Vec::new());
            }
            if asks(line, "tools/list") && memory.kept.is_empty() { Pass::Abort } else { Pass::Forward }
        },
    ),
    incoming(
        "waits-for-initialized",
        &["MCP-INI-12"],
        "A request before initialized is not answered.",
        |memory, line| {
            if asks(line, "notifications/initialized") {
                memory.kept.insert(b"open".to_vec(), Vec::new());
            }
            let may_come = asks(line, "initialize") || asks(line, "ping") || asks(line, "server/discover");
            if asked_id(line).is_some() && !may_come && memory.kept.is_empty() {
                Pass::Drop
            } else {
                Pass::Forward
            }
        },
    ),
    parts(
        "refuses-unknown-capabilities",
        &["MCP-INI-13"],
        "A client with a capability that is not known is refused.",
        |_, parts| {
            refuses(parts, |client| {
                let members = client.as_object().unwrap_or_default();
                members
                    .iter()
                    .any(|(name, _)| name != "experimental" && !KNOWN.iter().any(|known| name == known))
            });
        },
    ),
    parts(
        "refuses-experimental",
        &["MCP-INI-13"],
        "A client with experimental capabilities is refused.",
        |_, parts| {
            refuses(parts, |client| client.get("experimental").is_some());
        },
    ),
    parts(
        "declares-prompts-in-vain",
        &["MCP-CAP-01"],
        "Prompts are declared, and prompts/list is not known.",
        |_, parts| {
            parts.methods.remove("prompts/list");
        },
    ),
    incoming(
        "resources-are-silent",
        &["MCP-CAP-01"],
        "Resources are declared, and resources/list is not answered.",
        |_, line| {
            if asks(line, "resources/list") { Pass::Drop } else { Pass::Forward }
        },
    ),
    parts("tools-are-a-map", &["MCP-CAP-01"], "tools/list gives an object of tools.", |_, parts| {
        wrap(parts, "tools/list", |_, _, answer| {
            with_result(answer, |result| set(result, "tools", no_params()))
        });
    }),
    parts("hides-resources", &["MCP-CAP-02"], "Resources are listed, and not declared.", |_, parts| {
        parts.catalog.forget("resources");
    }),
    parts("hides-prompts", &["MCP-CAP-02"], "Prompts are listed, and not declared.", |_, parts| {
        parts.catalog.forget("prompts");
    }),
    parts("hides-tools", &["MCP-CAP-02"], "Tools are listed, and not declared.", |_, parts| {
        parts.catalog.forget("tools");
    }),
    parts("hides-completions", &["MCP-CAP-02"], "Completions work, and are not declared.", |_, parts| {
        parts.catalog.forget("completions");
    }),
    parts(
        "undeclared-completions-are-internal",
        &["MCP-CAP-04"],
        "Completions are not declared, and an internal error.",
        |_, parts| {
            parts.catalog.forget("completions");
            parts.methods.set("completion/complete", |_, _| refusal(-32603));
        },
    ),
    parts(
        "undeclared-prompts-are-invalid",
        &["MCP-CAP-04"],
        "Prompts are not declared, and prompts/list is an invalid request.",
        |_, parts| {
            parts.catalog.forget("prompts");
            parts.methods.set("prompts/list", |_, _| refusal(-32600));
        },
    ),
    parts("no-templates", &["MCP-CAP-07"], "resources/templates/list is not known.", |_, parts| {
        parts.methods.remove("resources/templates/list");
    }),
];

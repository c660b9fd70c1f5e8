//! Mutants that misread their input.

use super::Mutant;
use super::edit::{
    INVALID, depth, edited, find, find_mut, has, incoming, method, options, remove, replaced, set, swap_all,
    text, value, with_params,
};
use super::wire::Pass;
use crate::json::Value;
use crate::mutant::text::byte_a_character;

/// Notification that calls `method`, without a reply.
fn unseen(method: &str) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
    crate::json::write_str(&mut out, method);
    out.push(b'}');
    out
}

fn is_notification(message: &Value) -> bool {
    method(message).is_some() && message.get("id").is_none()
}

fn is_utf8(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok()
}

/// The id of a request as a key.
fn id_key(line: &[u8]) -> Option<Vec<u8>> {
    value(line).as_ref().and_then(|message| message.get("id")).map(text)
}

/// Mutants of this seam that break the specification or the transport.
pub(super) const MUTANTS: &[Mutant] = &[
    incoming(
        "answers-notifications",
        &["RPC-NOTE-01"],
        "A notification is answered with id null.",
        |_, line| {
            edited(line, |object| {
                let add = find(object, "id").is_none() && find(object, "method").is_some();
                if add {
                    set(object, "id", Value::Null);
                }
                add
            })
        },
    ),
    incoming(
        "answers-wrong-notifications",
        &["RPC-NOTE-01"],
        "A notification of an unknown method is answered.",
        |_, line| {
            edited(line, |object| {
                let known = find(object, "method")
                    .and_then(Value::as_str)
                    .is_some_and(|method| super::super::methods().names().any(|name| name == method));
                let add = find(object, "id").is_none() && find(object, "method").is_some() && !known;
                if add {
                    set(object, "id", Value::Null);
                }
                add
            })
        },
    ),
    incoming(
        "answers-notifications-with-a-timeout",
        &["RPC-TIME-02"],
        "A notification that sets a timeout is answered.",
        |_, line| {
            edited(line, |object| {
                let timed = options(object).is_some_and(|options| find(options, "timeout_ms").is_some());
                let add = timed && find(object, "id").is_none();
                if add {
                    set(object, "id", Value::Null);
                }
                add
            })
        },
    ),
    incoming("runs-notifications-twice", &["RPC-NOTE-02"], "A notification is executed twice.", |_, line| {
        match value(line) {
            Some(message) if is_notification(&message) => Pass::Replace(vec![line.to_vec(), line.to_vec()]),
            _ => Pass::Forward,
        }
    }),
    incoming(
        "loses-notifications",
        &["RPC-NOTE-02"],
        "Notifications are not executed.",
        |_, line| match value(line) {
            Some(message) if is_notification(&message) => Pass::Drop,
            _ => Pass::Forward,
        },
    ),
    incoming(
        "runs-before-refusing",
        &["RPC-NOTE-02"],
        "The method runs before the request is refused.",
        |_, line| {
            let Some(message) = value(line) else { return Pass::Forward };
            let Some(method) = method(&message) else { return Pass::Forward };
            let scalar = message.get("params").is_some_and(|params| {
                params.as_object().is_none() && params.as_array().is_none() && *params != Value::Null
            });
            let bad_id = message
                .get("id")
                .is_some_and(|id| matches!(id, Value::Bool(_) | Value::Array(_) | Value::Object(_)));
            let bad_version = message.get("jsonrpc").and_then(Value::as_str) != Some("2.0");
            if scalar || bad_id || bad_version {
                Pass::Replace(vec![unseen(method), line.to_vec()])
            } else {
                Pass::Forward
            }
        },
    ),
    incoming("takes-any-version", &["RPC-REQ-01"], "`jsonrpc` is not looked at.", |_, line| {
        edited(line, |object| {
            let wrong = find(object, "jsonrpc").and_then(Value::as_str) != Some("2.0")
                && find(object, "method").is_some();
            if wrong {
                set(object, "jsonrpc", Value::from("2.0"));
            }
            wrong
        })
    }),
    incoming(
        "takes-number-as-method",
        &["RPC-REQ-02"],
        "A method that is a number is read as its digits.",
        |_, line| {
            edited(line, |object| match find(object, "method") {
                Some(Value::Number(method)) => {
                    let method = Value::from(method.as_str());
                    set(object, "method", method);
                    true
                }
                _ => false,
            })
        },
    ),
    incoming("takes-any-id", &["RPC-ID-05"], "true and false are ids.", |_, line| {
        edited(line, |object| match find(object, "id") {
            Some(Value::Bool(id)) => {
                let id = Value::from(if *id { "true" } else { "false" });
                set(object, "id", id);
                true
            }
            _ => false,
        })
    }),
    incoming(
        "one-id-in-flight",
        &["RPC-ID-06"],
        "A request with the id of the one before it is lost.",
        |memory, line| {
            let Some(id) = id_key(line) else { return Pass::Forward };
            let last = memory.kept.insert(b"last".to_vec(), id.clone());
            if last == Some(id) { Pass::Drop } else { Pass::Forward }
        },
    ),
    incoming(
        "silent-without-id",
        &["RPC-REQ-06"],
        "What is no request and has no id is taken for a notification.",
        |_, line| match value(line) {
            Some(Value::Object(object)) => {
                let named = find(&object, "method").and_then(Value::as_str).is_some();
                if named || find(&object, "id").is_some() { Pass::Forward } else { Pass::Drop }
            }
            _ => Pass::Forward,
        },
    ),
    incoming("takes-byte-order-mark", &["RPC-JSON-03"], "A byte order mark is ignored.", |_, line| {
        line.strip_prefix(b"\xef\xbb\xbf").map_or(Pass::Forward, |rest| Pass::Replace(vec![rest.to_vec()]))
    }),
    incoming(
        "compares-names-as-written",
        &["RPC-JSON-10"],
        "A member whose name is written with escapes is not known.",
        |_, line| if has(line, "m\\u0065thod") { Pass::Answer(INVALID.to_vec()) } else { Pass::Forward },
    ),
    incoming(
        "loses-what-follows-an-error",
        &["RPC-ERR-01"],
        "The line after one that is malformed is skipped.",
        |memory, line| {
            let skips = memory.kept.remove(&b"skip"[..]).is_some();
            if value(line).is_none() && !line.trim_ascii().is_empty() {
                memory.kept.insert(b"skip".to_vec(), Vec::new());
            }
            if skips { Pass::Drop } else { Pass::Forward }
        },
    ),
    incoming(
        "refuses-extra-members",
        &["RPC-REQ-04"],
        "An unknown member makes a request invalid.",
        |_, line| {
            let known = ["jsonrpc", "method", "params", "id", "auth", "pad"];
            let extra = value(line).as_ref().and_then(Value::as_object).is_some_and(|object| {
                object.iter().any(|(name, _)| !known.iter().any(|known| name == known))
                    && object.iter().any(|(name, _)| name == "method")
            });
            if extra { Pass::Answer(INVALID.to_vec()) } else { Pass::Forward }
        },
    ),
    incoming(
        "dies-of-response",
        &["RPC-REQ-05"],
        "A response object ends the server.",
        |_, line| match value(line) {
            Some(message) if message.get("method").is_none() && message.get("result").is_some() => {
                Pass::Abort
            }
            _ => Pass::Forward,
        },
    ),
    incoming("dies-of-nesting", &["RPC-JSON-09"], "A thousand nested brackets end the server.", |_, line| {
        if depth(line) > 1_000 { Pass::Abort } else { Pass::Forward }
    }),
    incoming(
        "dies-of-positional-params",
        &["RPC-PARAMS-04"],
        "Positional params end the server.",
        |_, line| match value(line) {
            Some(message)
                if method(&message) == Some("peerproof.named")
                    && message.get("params").is_some_and(|params| params.as_array().is_some()) =>
            {
                Pass::Abort
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "reverses-positional-params",
        &["RPC-PARAMS-02"],
        "Positional params arrive in the opposite order.",
        |_, line| {
            edited(line, |object| match find_mut(object, "params") {
                Some(Value::Array(params)) => {
                    params.reverse();
                    true
                }
                _ => false,
            })
        },
    ),
    incoming(
        "cuts-long-strings",
        &["RPC-PARAMS-02"],
        "Of a message of more than 300,000 bytes ten are lost.",
        |_, line| {
            let long = line.len() > 300_000 && has(line, "0123456789");
            let cut = |at: usize| [&line[..at], &line[at + 10..]].concat();
            match memchr::memmem::find(line, b"0123456789").filter(|_| long) {
                Some(at) => replaced(line, cut(at)),
                None => Pass::Forward,
            }
        },
    ),
    incoming(
        "calls-what-every-object-has",
        &["RPC-METHOD-01"],
        "Methods are looked up among the members of an object, and it inherits some.",
        |_, line| {
            edited(line, |object| {
                let inherited = find(object, "method").and_then(Value::as_str) == Some("hasOwnProperty");
                if inherited {
                    set(object, "method", Value::from("peerproof.echo"));
                }
                inherited
            })
        },
    ),
    incoming("loses-a-prototype", &["RPC-PARAMS-01"], "A member `__proto__` is lost.", |_, line| {
        edited(line, |object| {
            with_params(object, "peerproof.echo", |params| {
                let before = params.len();
                remove(params, "__proto__");
                params.len() < before
            })
        })
    }),
    incoming(
        "takes-named-params-by-their-order",
        &["RPC-PARAMS-01"],
        "Params by name are taken by their order.",
        |_, line| {
            edited(line, |object| match find_mut(object, "params") {
                Some(Value::Object(params)) if params.len() == 2 && find(params, "minuend").is_some() => {
                    for (member, name) in params.iter_mut().zip(["minuend", "subtrahend"]) {
                        member.0 = name.into();
                    }
                    true
                }
                _ => false,
            })
        },
    ),
    incoming(
        "answers-notifications-in-batches",
        &["RPC-BATCH-05"],
        "A notification in a batch is answered with id null.",
        |_, line| match value(line) {
            Some(Value::Array(mut all)) if all.iter().any(|one| !is_notification(one)) => {
                for one in &mut all {
                    if is_notification(one)
                        && let Value::Object(object) = one
                    {
                        set(object, "id", Value::Null);
                    }
                }
                Pass::Replace(vec![text(&Value::Array(all))])
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "dies-of-odd-params",
        &["RPC-PARAMS-07"],
        "A member that should be an object and is none ends the server.",
        |_, line| {
            let Some(message) = value(line) else { return Pass::Forward };
            let member = match method(&message) {
                Some("execute_task") => "options",
                Some("create_plan") => "constraints",
                Some("update_context") => "data",
                _ => return Pass::Forward,
            };
            let odd = message.get("params").and_then(|params| params.get(member));
            if odd.is_some_and(|odd| odd.as_object().is_none()) { Pass::Abort } else { Pass::Forward }
        },
    ),
    incoming(
        "trips-over-positional-params",
        &["RPC-PARAMS-08"],
        "Positional params of a method that takes named ones are an internal error.",
        |_, line| match value(line) {
            Some(message)
                if method(&message).is_some_and(|name| !name.contains('.'))
                    && message.get("params").is_some_and(|params| params.as_array().is_some()) =>
            {
                let Some(id) = message.get("id") else { return Pass::Forward };
                let head = b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"Internal error\"},\"id\":";
                Pass::Answer([&head[..], &text(id), b"}"].concat())
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "dies-between-the-limits",
        &["RPC-SIZE-03"],
        "A line that may be accepted or refused ends the server.",
        |_, line| if (1_000_001..=1 << 20).contains(&line.len()) { Pass::Abort } else { Pass::Forward },
    ),
    incoming("limit-of-characters", &["RPC-SIZE-02"], "The limit of a line counts characters.", |_, line| {
        if line.len() > 1 << 20 { Pass::Replace(vec![byte_a_character(line)]) } else { Pass::Forward }
    }),
    incoming("answers-empty-batch-with-empty", &["RPC-BATCH-02"], "`[]` is answered by `[]`.", |_, line| {
        if line.trim_ascii() == b"[]" { Pass::Answer(b"[]".to_vec()) } else { Pass::Forward }
    }),
    incoming("silent-on-empty-batch", &["RPC-BATCH-02"], "`[]` is not answered.", |_, line| {
        if line.trim_ascii() == b"[]" { Pass::Drop } else { Pass::Forward }
    }),
    incoming(
        "answers-notification-batch",
        &["RPC-BATCH-04"],
        "A batch of notifications is answered by `[]`.",
        |_, line| {
            let all = value(line)
                .as_ref()
                .and_then(Value::as_array)
                .is_some_and(|elements| !elements.is_empty() && elements.iter().all(is_notification));
            // The request is executed anyway, but the requests before it are not awaited.
            if all { Pass::Answer(b"[]".to_vec()) } else { Pass::Forward }
        },
    ),
    incoming(
        "takes-trailing-comma",
        &["RPC-JSON-01"],
        "A comma before a closing bracket is ignored.",
        |_, line| replaced(line, swap_all(&swap_all(line, ",}", "}"), ",]", "]")),
    ),
    incoming(
        "takes-single-quotes",
        &["RPC-JSON-01"],
        "Single quotes are read as double quotes.",
        |_, line| replaced(line, swap_all(line, "'", "\"")),
    ),
    incoming("takes-nan", &["RPC-JSON-12"], "NaN is read as 0.", |_, line| {
        replaced(line, swap_all(line, "NaN", "0"))
    }),
    incoming("silent-on-malformed", &["RPC-JSON-01"], "Malformed JSON is not answered.", |_, line| {
        if value(line).is_none() && !line.trim_ascii().is_empty() { Pass::Drop } else { Pass::Forward }
    }),
    incoming("dies-of-malformed", &["RPC-JSON-01"], "Malformed JSON ends the server.", |_, line| {
        if has(line, "{") && value(line).is_none() { Pass::Abort } else { Pass::Forward }
    }),
    incoming("mends-utf8", &["RPC-JSON-02"], "Invalid UTF-8 is replaced by U+FFFD.", |_, line| {
        replaced(line, String::from_utf8_lossy(line).into_owned().into_bytes())
    }),
    incoming("dies-of-bad-utf8", &["RPC-ERR-01"], "Invalid UTF-8 ends the server.", |_, line| {
        if is_utf8(line) { Pass::Forward } else { Pass::Abort }
    }),
    incoming(
        "echoes-bad-utf8",
        &["RPC-MSG-05"],
        "Params that are no UTF-8 come back as the bytes that they are.",
        |_, line| {
            let read = value(String::from_utf8_lossy(line).as_bytes());
            let Some(id) = read.as_ref().filter(|_| !is_utf8(line)).and_then(|read| read.get("id")) else {
                return Pass::Forward;
            };
            let bytes: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii()).collect();
            let (head, middle) = (b"{\"jsonrpc\":\"2.0\",\"result\":[\"", b"\"],\"id\":");
            Pass::Answer([&head[..], &bytes, middle, &text(id), b"}"].concat())
        },
    ),
    incoming("refuses-crlf", &["RPC-FRAME-08"], "A CR before the LF is not tolerated.", |_, line| {
        if line.ends_with(b"\r") { Pass::Answer(INVALID.to_vec()) } else { Pass::Forward }
    }),
];

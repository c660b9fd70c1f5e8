//! Mutants that misread calls of the profile: its methods, signatures and compressed messages.

use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Mutant;
use super::edit::{
    INVALID, Object, edited, find, incoming, method, object_mut, options, remove, replaced, set, swap_all,
    text, value, with_params,
};
use super::wire::Pass;
use crate::json::Value;

/// Compressed data in a wrapper.
fn wrapped(wrapper: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(wrapper.get("body")?.as_str()?).ok()
}

/// Inflated content of a wrapper.
fn inflated(wrapper: &Value) -> Option<Vec<u8>> {
    super::super::gzip::inflate(&wrapped(wrapper)?, 1 << 20).ok()
}

fn is_unsigned(message: &Value) -> bool {
    method(message).is_some() && message.get("auth").is_none_or(|auth| auth.get("signature").is_none())
}

fn is_unknown(message: &Value) -> bool {
    method(message).is_some_and(|method| !super::super::methods().names().any(|name| name == method))
}

/// A response with this code to a request with this id.
fn error(code: &str, id: &Value) -> Vec<u8> {
    let mut answer = swap_all(INVALID, "-32600", code);
    answer.truncate(answer.len() - b"null}".len());
    [answer, text(id), b"}".to_vec()].concat()
}

/// Adds a member if it is missing.
fn filled(params: &mut Object, name: &str, value: &str) -> bool {
    let missing = find(params, name).is_none();
    if missing {
        set(params, name, Value::from(value));
    }
    missing
}

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    incoming(
        "no-timeouts-in-batches",
        &["RPC-TIME-01"],
        "`timeout_ms` means nothing in a batch.",
        |_, line| match value(line) {
            Some(Value::Array(mut calls)) => {
                for call in &mut calls {
                    if let Value::Object(call) = call
                        && let Some(options) = options(call)
                    {
                        remove(options, "timeout_ms");
                    }
                }
                replaced(line, text(&Value::Array(calls)))
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "takes-unknown-task-type",
        &["RPC-EXEC-01"],
        "An unknown `task_type` is an analysis.",
        |_, line| {
            let known = ["code_generation", "refactoring", "analysis", "testing"];
            edited(line, |object| {
                let Some(params) = object_mut(object, "params") else {
                    return false;
                };
                let unknown =
                    find(params, "task_type").and_then(Value::as_str).is_some_and(|it| !known.contains(&it));
                if unknown {
                    set(params, "task_type", Value::from("analysis"));
                }
                unknown
            })
        },
    ),
    incoming("defaults-missing-prompt", &["RPC-EXEC-01"], "A missing `prompt` is empty.", |_, line| {
        edited(line, |object| {
            let task = find(object, "method").and_then(Value::as_str) == Some("execute_task");
            let Some(params) = object_mut(object, "params") else { return false };
            let missing = task && find(params, "prompt").is_none();
            if missing {
                set(params, "prompt", Value::from(""));
            }
            missing
        })
    }),
    incoming("streams-unasked", &["RPC-STREAM-06"], "`stream: false` is read as true.", |_, line| {
        replaced(line, swap_all(line, "\"stream\":false", "\"stream\":true"))
    }),
    incoming(
        "answers-unsigned-notifications",
        &["RPC-AUTH-05"],
        "A notification without a signature is answered with id null.",
        |_, line| {
            edited(line, |object| {
                let add = find(object, "id").is_none()
                    && find(object, "method").is_some()
                    && find(object, "auth").is_none();
                if add {
                    set(object, "id", Value::Null);
                }
                add
            })
        },
    )
    .needing("auth"),
    incoming(
        "refuses-batches-for-one-signature",
        &["RPC-AUTH-06"],
        "One element without a signature refuses its batch.",
        |_, line| match value(line) {
            Some(Value::Array(elements)) if elements.iter().any(is_unsigned) => {
                Pass::Answer(swap_all(INVALID, "-32600", "-32003"))
            }
            _ => Pass::Forward,
        },
    )
    .needing("auth"),
    incoming(
        "takes-unsigned-gzip",
        &["RPC-AUTH-01"],
        "A compressed message needs no signature.",
        |_, line| {
            let wrapped = value(line).and_then(|wrapper| value(&inflated(&wrapper)?));
            match wrapped.filter(|message| is_unsigned(message) && is_unknown(message)) {
                Some(message) => match message.get("id") {
                    Some(id) => Pass::Answer(error("-32601", id)),
                    None => Pass::Drop,
                },
                None => Pass::Forward,
            }
        },
    )
    .needing("auth"),
    incoming(
        "tells-methods-to-strangers",
        &["RPC-AUTH-10"],
        "The method is looked at before the signature.",
        |_, line| match value(line) {
            Some(message) if is_unsigned(&message) && is_unknown(&message) && message.get("id").is_some() => {
                Pass::Answer(error("-32601", message.get("id").unwrap_or(&Value::Null)))
            }
            _ => Pass::Forward,
        },
    )
    .needing("auth"),
    incoming("knows-three-task-types", &["RPC-EXEC-01"], "`testing` is no task type.", |_, line| {
        edited(line, |object| {
            with_params(object, "execute_task", |params| {
                let testing = find(params, "task_type").and_then(Value::as_str) == Some("testing");
                if testing {
                    set(params, "task_type", Value::from("tests"));
                }
                testing
            })
        })
    }),
    incoming("ignores-max-tasks", &["RPC-PLAN-02"], "`max_tasks` means nothing.", |_, line| {
        edited(line, |object| {
            with_params(object, "create_plan", |params| {
                let there = find(params, "constraints").is_some();
                remove(params, "constraints");
                there
            })
        })
    }),
    incoming("plans-without-request", &["RPC-PLAN-04"], "A missing `user_request` is empty.", |_, line| {
        edited(line, |object| with_params(object, "create_plan", |params| filled(params, "user_request", "")))
    }),
    incoming("guesses-language", &["RPC-VALID-02"], "A missing `language` is JavaScript.", |_, line| {
        let default = |params: &mut Object| filled(params, "language", "javascript");
        edited(line, |object| with_params(object, "validate_code", default))
    }),
    incoming("takes-unknown-action", &["RPC-CTX-02"], "An unknown `action` is an addition.", |_, line| {
        edited(line, |object| {
            with_params(object, "update_context", |params| {
                let unknown = find(params, "action")
                    .and_then(Value::as_str)
                    .is_some_and(|action| !["add", "remove", "modify"].contains(&action));
                if unknown {
                    set(params, "action", Value::from("add"));
                }
                unknown
            })
        })
    }),
    incoming("zero-is-no-timeout", &["RPC-TIME-05"], "A timeout below 1 is none.", |_, line| {
        edited(line, |object| {
            let Some(params) = object_mut(object, "params") else { return false };
            let Some(options) = object_mut(params, "options") else { return false };
            let none = find(options, "timeout_ms").and_then(Value::as_i64).is_some_and(|ms| ms < 1);
            if none {
                remove(options, "timeout_ms");
            }
            none
        })
    }),
    incoming(
        "unwraps-before-refusing",
        &["RPC-GZIP-05"],
        "A wrapped message is inflated whole before its size is looked at.",
        |_, line| {
            let packed = value(line).as_ref().and_then(wrapped);
            drop(black_box(packed.map(|packed| super::super::gzip::inflate(&packed, usize::MAX - 1))));
            Pass::Forward
        },
    )
    .needing("gzip"),
    incoming("unwraps-twice", &["RPC-GZIP-04"], "A wrapper within a wrapper is unwrapped.", |_, line| {
        let inner = value(line).as_ref().and_then(inflated);
        match inner.filter(|inner| value(inner).as_ref().is_some_and(|inner| inflated(inner).is_some())) {
            Some(inner) => Pass::Replace(vec![inner]),
            None => Pass::Forward,
        }
    })
    .needing("gzip"),
    incoming(
        "takes-any-encoding",
        &["RPC-GZIP-04"],
        "The name of the encoding is not looked at.",
        |_, line| replaced(line, swap_all(line, "\"encoding\":\"br\"", "\"encoding\":\"gzip\"")),
    )
    .needing("gzip"),
    incoming("unwraps-in-batches", &["RPC-GZIP-04"], "A wrapper in a batch is unwrapped.", |_, line| {
        let Some(Value::Array(mut elements)) = value(line) else { return Pass::Forward };
        let mut any = false;
        for element in &mut elements {
            if let Some(inner) = inflated(element).and_then(|inner| value(&inner)) {
                (*element, any) = (inner, true);
            }
        }
        if any { Pass::Replace(vec![text(&Value::Array(elements))]) } else { Pass::Forward }
    })
    .needing("gzip"),
];

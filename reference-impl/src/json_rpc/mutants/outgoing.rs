//! Mutants that rewrite the server's output.

use super::Mutant;
use super::edit::{
    Object, both_ways, ended, errors, find, find_mut, has, number, object_mut, options, outgoing, remove,
    responses, set, swap_all, text, value,
};
use super::wire::Pass;
use crate::json::Value;

fn recode(line: &[u8], from: &str, to: &str) -> Vec<u8> {
    ended(swap_all(line, &format!("\"code\":{from}"), &format!("\"code\":{to}")))
}

fn is_notice(line: &[u8], method: &str) -> bool {
    has(line, &format!("\"method\":\"{method}\""))
}

/// Edits each result of a line that has the member `name`.
fn results(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    super::edit::messages(line, |response| {
        if let Some(result) = object_mut(response, "result") {
            edit(result);
        }
    })
}

/// Tasks of a plan.
fn tasks(result: &mut Object) -> Option<&mut Vec<Value>> {
    match find_mut(object_mut(result, "plan")?, "tasks")? {
        Value::Array(tasks) => Some(tasks),
        _ => None,
    }
}

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    outgoing(
        "prints-banner",
        &["RPC-FRAME-05"],
        "A banner stands before the first reply.",
        |memory, line| {
            let banner: &[u8] = if memory.replies == 1 { b"json-rpc 1.0 ready\n" } else { b"" };
            [banner, line, b"\n"].concat()
        },
    ),
    outgoing("logs-to-stdout", &["RPC-FRAME-05"], "A log line follows every reply.", |_, line| {
        [line, b"\n[info] request done\n"].concat()
    }),
    outgoing("pretty-prints", &["RPC-MSG-05"], "A reply takes several lines.", |_, line| {
        ended(swap_all(line, ",\"id\":", ",\n  \"id\":"))
    }),
    outgoing("cuts-long-ids", &["RPC-ID-01"], "Of a string id 255 characters come back.", |_, line| {
        responses(line, |response| {
            let id = find(response, "id").and_then(Value::as_str).filter(|id| id.chars().count() > 255);
            if let Some(id) = id {
                let cut: String = id.chars().take(255).collect();
                set(response, "id", Value::from(cut.as_str()));
            }
        })
    }),
    outgoing(
        "normalises-ids",
        &["RPC-ID-01"],
        "A letter and its accent are one letter in ids.",
        |_, line| {
            responses(line, |response| {
                let id = find(response, "id").and_then(Value::as_str);
                if let Some(id) = id.filter(|id| id.contains("e\u{301}")) {
                    let composed = Value::from(id.replace("e\u{301}", "\u{e9}").as_str());
                    set(response, "id", composed);
                }
            })
        },
    ),
    outgoing("id-as-string", &["RPC-ID-02"], "Number ids come back as strings.", |_, line| {
        responses(line, |response| {
            if let Some(Value::Number(id)) = find(response, "id") {
                let id = Value::from(id.as_str());
                set(response, "id", id);
            }
        })
    }),
    outgoing("id-as-number", &["RPC-ID-01"], "String ids of digits come back as numbers.", |_, line| {
        responses(line, |response| {
            let id = find(response, "id").and_then(Value::as_str).and_then(|id| id.parse().ok());
            if let Some(id) = id {
                set(response, "id", number(id));
            }
        })
    }),
    outgoing("id-through-a-double", &["RPC-ID-02"], "2^53−1 comes back as 2^53 in an id.", |_, line| {
        ended(swap_all(line, "\"id\":9007199254740991", "\"id\":9007199254740992"))
    }),
    outgoing("null-id-in-errors", &["RPC-ID-01"], "Errors of methods and params have id null.", |_, line| {
        responses(line, |response| {
            let code = find(response, "error").and_then(|error| error.get("code")).and_then(Value::as_i64);
            if matches!(code, Some(-32601 | -32602)) {
                set(response, "id", Value::Null);
            }
        })
    }),
    outgoing("error-without-id", &["RPC-MSG-03"], "Errors with id null have no id.", |_, line| {
        responses(line, |response| {
            if find(response, "id") == Some(&Value::Null) {
                remove(response, "id");
            }
        })
    }),
    outgoing("result-and-error", &["RPC-MSG-02"], "Errors have a result, which is null.", |_, line| {
        responses(line, |response| {
            if find(response, "error").is_some() {
                set(response, "result", Value::Null);
            }
        })
    }),
    outgoing("error-null-on-success", &["RPC-MSG-02"], "Results have an error, which is null.", |_, line| {
        responses(line, |response| {
            if find(response, "result").is_some() {
                set(response, "error", Value::Null);
            }
        })
    }),
    outgoing("jsonrpc-missing", &["RPC-MSG-01"], "Replies have no `jsonrpc`.", |_, line| {
        responses(line, |response| remove(response, "jsonrpc"))
    }),
    outgoing("jsonrpc-as-number", &["RPC-MSG-01"], "`jsonrpc` is a number.", |_, line| {
        ended(swap_all(line, "\"jsonrpc\":\"2.0\"", "\"jsonrpc\":2.0"))
    }),
    outgoing("code-as-string", &["RPC-MSG-04"], "The code of an error is a string.", |_, line| {
        errors(line, |error| {
            if let Some(Value::Number(code)) = find(error, "code") {
                let code = Value::from(code.as_str());
                set(error, "code", code);
            }
        })
    }),
    outgoing("error-without-message", &["RPC-MSG-04"], "An error has no message.", |_, line| {
        errors(line, |error| remove(error, "message"))
    }),
    outgoing("error-as-string", &["RPC-MSG-04"], "An error is its message.", |_, line| {
        responses(line, |response| {
            if let Some(message) = find(response, "error").and_then(|error| error.get("message")).cloned() {
                set(response, "error", message);
            }
        })
    }),
    outgoing("parse-error-as-invalid", &["RPC-JSON-01"], "Malformed JSON is -32600.", |_, line| {
        recode(line, "-32700", "-32600")
    }),
    outgoing(
        "invalid-as-parse-error",
        &["RPC-REQ-02", "RPC-REQ-03"],
        "What is no request is -32700.",
        |_, line| recode(line, "-32600", "-32700"),
    ),
    outgoing("unknown-method-as-invalid", &["RPC-METHOD-01"], "An unknown method is -32600.", |_, line| {
        recode(line, "-32601", "-32600")
    }),
    outgoing(
        "bad-params-as-internal",
        &["RPC-PARAMS-03"],
        "Params that do not fit are -32603.",
        |_, line| recode(line, "-32602", "-32603"),
    ),
    outgoing("exception-as-unknown-method", &["RPC-ERR-02"], "A method that fails is -32601.", |_, line| {
        if has(line, "EXECUTION_ERROR") { recode(line, "-32000", "-32601") } else { ended(line.to_vec()) }
    }),
    outgoing(
        "timeout-as-exception",
        &["RPC-TIME-03"],
        "A timeout has the type EXECUTION_ERROR.",
        |_, line| ended(swap_all(line, "\"type\":\"TIMEOUT\"", "\"type\":\"EXECUTION_ERROR\"")),
    ),
    outgoing("answers-twice", &["RPC-FRAME-01"], "Every reply is sent twice.", |_, line| {
        [line, b"\n", line, b"\n"].concat()
    }),
    outgoing(
        "late-second-response",
        &["RPC-TIME-02"],
        "After a timeout the result follows.",
        |memory, line| {
            let mut out = Vec::new();
            if let Some(late) = memory.kept.remove(&b"late"[..]) {
                out.extend_from_slice(&late);
            }
            if has(line, "\"TIMEOUT\"")
                && let Some(id) = value(line).as_ref().and_then(|reply| reply.get("id"))
            {
                let late = [b"{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":", &text(id)[..], b"}\n"].concat();
                memory.kept.insert(b"late".to_vec(), late);
            }
            [out, ended(line.to_vec())].concat()
        },
    ),
    outgoing(
        "unwraps-batch-of-one",
        &["RPC-BATCH-01"],
        "The reply to one element is no array.",
        |_, line| match value(line) {
            Some(Value::Array(replies)) if replies.len() == 1 => ended(text(&replies[0])),
            _ => ended(line.to_vec()),
        },
    ),
    outgoing("batch-line-by-line", &["RPC-BATCH-01"], "A batch is answered by single lines.", |_, line| {
        match value(line) {
            Some(Value::Array(replies)) => replies.iter().flat_map(|reply| ended(text(reply))).collect(),
            _ => ended(line.to_vec()),
        }
    }),
    outgoing("drops-batch-element", &["RPC-BATCH-05"], "The last reply of a batch is lost.", |_, line| {
        match value(line) {
            Some(Value::Array(mut replies)) if replies.len() > 1 => {
                replies.pop();
                ended(text(&Value::Array(replies)))
            }
            _ => ended(line.to_vec()),
        }
    }),
    outgoing(
        "batch-errors-collapse",
        &["RPC-BATCH-03"],
        "One invalid element spoils its batch.",
        |_, line| match value(line) {
            Some(Value::Array(replies)) if line.starts_with(b"[") => {
                let bad = |reply: &&Value| {
                    reply.get("error").and_then(|error| error.get("code")) == Some(&number(-32600))
                };
                ended(replies.iter().find(bad).map_or_else(|| line.to_vec(), text))
            }
            _ => ended(line.to_vec()),
        },
    ),
    outgoing(
        "loses-astral-characters",
        &["RPC-PARAMS-01"],
        "Characters beyond the basic plane are lost.",
        |_, line| {
            let line = String::from_utf8_lossy(line);
            ended(
                line.chars()
                    .map(|c| if c > '\u{ffff}' { '\u{fffd}' } else { c })
                    .collect::<String>()
                    .into_bytes(),
            )
        },
    ),
    outgoing("rounds-integers", &["RPC-JSON-07"], "2^53−1 comes back as 2^53.", |_, line| {
        ended(swap_all(line, "9007199254740991,", "9007199254740992,"))
    }),
    outgoing("stream-without-start", &["RPC-STREAM-01"], "A stream has no start.", |_, line| {
        if is_notice(line, "stream_start") { Vec::new() } else { ended(line.to_vec()) }
    }),
    outgoing("stream-of-another-task", &["RPC-STREAM-01"], "`task_id` is not the id.", |_, line| {
        ended(swap_all(line, "\"task_id\":", "\"task_id\":0,\"task\":"))
    }),
    outgoing("stream-gap", &["RPC-STREAM-02"], "The first chunk is lost.", |_, line| {
        let lost = is_notice(line, "stream_data") && has(line, "\"sequence\":1}");
        if lost { Vec::new() } else { ended(line.to_vec()) }
    }),
    outgoing("stream-from-zero", &["RPC-STREAM-02"], "Chunks are counted from 0.", |_, line| {
        let Some(message) = value(line).filter(|_| is_notice(line, "stream_data")) else {
            return ended(line.to_vec());
        };
        let sequence =
            message.get("params").and_then(|params| params.get("sequence")).and_then(Value::as_i64);
        let sequence = sequence.unwrap_or_default();
        ended(swap_all(
            line,
            &format!("\"sequence\":{sequence}}}"),
            &format!("\"sequence\":{}}}", sequence - 1),
        ))
    }),
    outgoing("stream-without-end", &["RPC-STREAM-03"], "A stream has no end.", |_, line| {
        if is_notice(line, "stream_end") { Vec::new() } else { ended(line.to_vec()) }
    }),
    outgoing("stream-miscounted", &["RPC-STREAM-03"], "`total_chunks` is one too large.", |_, line| {
        let Some(message) = value(line).filter(|_| is_notice(line, "stream_end")) else {
            return ended(line.to_vec());
        };
        let total =
            message.get("params").and_then(|params| params.get("total_chunks")).and_then(Value::as_i64);
        let total = total.unwrap_or_default();
        ended(swap_all(
            line,
            &format!("\"total_chunks\":{total}"),
            &format!("\"total_chunks\":{}", total + 1),
        ))
    }),
    outgoing(
        "stream-end-after-response",
        &["RPC-STREAM-04"],
        "The response comes before the end.",
        |memory, line| {
            if is_notice(line, "stream_end") {
                memory.kept.insert(b"end".to_vec(), ended(line.to_vec()));
                return Vec::new();
            }
            [ended(line.to_vec()), memory.kept.remove(&b"end"[..]).unwrap_or_default()].concat()
        },
    ),
    both_ways(
        "stream-left-open-by-errors",
        &["RPC-STREAM-03"],
        "A stream whose task runs out of time has no end.",
        |_, line| {
            let Some(Value::Object(mut call)) = value(line) else { return Pass::Forward };
            let Some(options) = options(&mut call) else { return Pass::Forward };
            if find(options, "timeout_ms") != Some(&number(1)) {
                return Pass::Forward;
            }
            // Otherwise the call would be done at once.
            set(options, "pace_ms", number(10));
            Pass::Replace(vec![text(&Value::Object(call))])
        },
        |memory, line| {
            if is_notice(line, "stream_end") {
                memory.kept.insert(b"end".to_vec(), ended(line.to_vec()));
                return Vec::new();
            }
            let end = memory.kept.remove(&b"end"[..]).filter(|_| !has(line, "\"error\":"));
            [end.unwrap_or_default(), ended(line.to_vec())].concat()
        },
    ),
    outgoing("stream-goes-on", &["RPC-STREAM-05"], "A chunk follows the end.", |memory, line| {
        if is_notice(line, "stream_data") {
            memory.kept.insert(b"chunk".to_vec(), ended(line.to_vec()));
        }
        let more = memory.kept.get(&b"chunk"[..]).filter(|_| is_notice(line, "stream_end"));
        [ended(line.to_vec()), more.cloned().unwrap_or_default()].concat()
    }),
    outgoing("result-without-status", &["RPC-EXEC-02"], "A task's result has no status.", |_, line| {
        results(line, |result| {
            if find(result, "metadata").is_some() {
                remove(result, "status");
            }
        })
    }),
    outgoing("plan-with-cycle", &["RPC-PLAN-01"], "The first task depends on itself.", |_, line| {
        results(line, |result| {
            if let Some(Value::Object(task)) = tasks(result).and_then(|tasks| tasks.first_mut())
                && let Some(id) = find(task, "id").cloned()
            {
                set(task, "dependencies", Value::Array(vec![id]));
            }
        })
    }),
    outgoing("plan-with-one-id", &["RPC-PLAN-01"], "All tasks have one id.", |_, line| {
        results(line, |result| {
            for task in tasks(result).into_iter().flatten() {
                if let Value::Object(task) = task {
                    set(task, "id", Value::from("task_001"));
                    set(task, "dependencies", Value::Array(Vec::new()));
                }
            }
        })
    }),
    outgoing("auth-error-without-type", &["RPC-AUTH-01"], "-32003 has no `data.type`.", |_, line| {
        ended(swap_all(line, "\"type\":\"AUTH\"", "\"kind\":\"AUTH\""))
    })
    .needing("auth"),
    outgoing(
        "unsignable-as-unauthorized",
        &["RPC-AUTH-07", "RPC-AUTH-01"],
        "What cannot be signed is -32003.",
        |_, line| {
            if has(line, "cannot be signed") {
                recode(line, "-32600", "-32003")
            } else {
                ended(line.to_vec())
            }
        },
    )
    .needing("auth"),
    outgoing("plan-without-tasks", &["RPC-PLAN-03"], "A plan has steps instead of tasks.", |_, line| {
        ended(swap_all(line, "{\"plan\":{\"tasks\":", "{\"plan\":{\"steps\":"))
    }),
    outgoing("plan-with-priority-in-words", &["RPC-PLAN-05"], "A priority is text.", |_, line| {
        ended(swap_all(line, "\"priority\":1}", "\"priority\":\"high\"}"))
    }),
    outgoing("output-of-another-type", &["RPC-EXEC-03"], "`files_created` is a number.", |_, line| {
        ended(swap_all(line, "\"files_created\":[]", "\"files_created\":0"))
    }),
    outgoing("sends-results-of-any-size", &["RPC-SIZE-05"], "A large result is sent whole.", |_, line| {
        match value(line).as_ref().and_then(|reply| reply.get("id")) {
            Some(id) if has(line, "RESULT_TOO_LARGE") => {
                let head = format!(
                    "{{\"jsonrpc\":\"2.0\",\"result\":{{\"data\":\"{}\"}},\"id\":",
                    "x".repeat(1 << 20)
                );
                ended([head.as_bytes(), &text(id), b"}"].concat())
            }
            _ => ended(line.to_vec()),
        }
    }),
    outgoing("cuts-large-results", &["RPC-SIZE-05"], "Ten bytes of a large result are lost.", |_, line| {
        match memchr::memmem::find(line, b"xxxxxxxxxxxxxxxxxxxx").filter(|_| line.len() > 60_000) {
            Some(at) => ended([&line[..at], &line[at + 10..]].concat()),
            None => ended(line.to_vec()),
        }
    }),
    outgoing(
        "one-byte-over-in-a-frame-of-its-own",
        &["RPC-SIZE-05"],
        "A result has a member more beside it, and a message 1,048,577 bytes.",
        |_, line| {
            let Some(head) = line.strip_suffix(b"}").filter(|_| has(line, "\"result\":")) else {
                return ended(line.to_vec());
            };
            let longer = [head, b",\"by\":\"reference\"}"].concat();
            match value(line)
                .as_ref()
                .and_then(|reply| reply.get("id"))
                .filter(|_| longer.len() > (1 << 20) + 1)
            {
                Some(id) => {
                    let head = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"Internal error\"},\"id\":";
                    ended([head.as_bytes(), &text(id), b"}"].concat())
                }
                None => ended(longer),
            }
        },
    ),
    outgoing("size-error-without-type", &["RPC-SIZE-06"], "Too large is as good as invalid.", |_, line| {
        ended(swap_all(line, "\"MESSAGE_TOO_LARGE\"", "\"INVALID_REQUEST\""))
    }),
    outgoing("exception-without-type", &["RPC-ERR-03"], "A method's error has no `data.type`.", |_, line| {
        ended(swap_all(line, "\"type\":\"EXECUTION_ERROR\",", ""))
    }),
    outgoing("exception-as-application-error", &["RPC-ERR-03"], "A method's error is -32050.", |_, line| {
        if has(line, "EXECUTION_ERROR") { recode(line, "-32000", "-32050") } else { ended(line.to_vec()) }
    }),
    outgoing("trace-in-message", &["RPC-ERR-04"], "A method's error shows its stack.", |_, line| {
        let trace = "\"message\":\"Error: no\\n    at fail (/srv/methods.js:10:5)\"";
        ended(swap_all(line, "\"message\":\"Execution failed\"", trace))
    }),
    outgoing(
        "trace-of-another-language",
        &["RPC-ERR-04"],
        "A message of an error is a trace of PHP.",
        |_, line| {
            let trace = "\"message\":\"E: no\\nStack trace:\\n#0 /srv/x.php(40): fail(Array)\\n#1 {main}\"";
            ended(swap_all(line, "\"message\":\"Execution failed\"", trace))
        },
    ),
    outgoing("corrupt-as-invalid", &["RPC-GZIP-03"], "Corrupt compressed data is -32600.", |_, line| {
        let corrupt = has(line, "is corrupt") || has(line, "no base64");
        if corrupt { recode(line, "-32700", "-32600") } else { ended(line.to_vec()) }
    })
    .needing("gzip"),
    outgoing("rate-limit-without-wait", &["RPC-RATE-02"], "There is no `retry_after_ms`.", |_, line| {
        ended(swap_all(line, "\"retry_after_ms\":", "\"retry\":"))
    })
    .needing("rate_limit"),
    outgoing(
        "rate-limit-waits-in-seconds",
        &["RPC-RATE-02"],
        "`retry_after_ms` is in seconds.",
        |_, line| {
            errors(line, |error| {
                if let Some(data) = object_mut(error, "data")
                    && find(data, "retry_after_ms").is_some()
                {
                    set(data, "retry_after_ms", number(1));
                }
            })
        },
    )
    .needing("rate_limit"),
    outgoing("rate-limit-waits-for-nothing", &["RPC-RATE-02"], "`retry_after_ms` is 0.", |_, line| {
        errors(line, |error| {
            if let Some(data) = object_mut(error, "data")
                && find(data, "retry_after_ms").is_some()
            {
                set(data, "retry_after_ms", number(0));
            }
        })
    })
    .needing("rate_limit"),
    outgoing(
        "dies-of-large-message",
        &["RPC-SIZE-03"],
        "Refusing a large message ends it.",
        |memory, line| {
            memory.exit = has(line, "MESSAGE_TOO_LARGE").then_some(1);
            ended(line.to_vec())
        },
    ),
];

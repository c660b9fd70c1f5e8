//! Mutants that rewrite single requests and replies: syntax, members, sizes, tools.

use super::Mutant;
use super::wire::{Pass, failure, line, replaced, success, unchanged, value, without};
use super::wire_edit::*;
use crate::json::{Value, write_value};
use crate::mutant::text::{byte_a_character, has, swap, swap_all};

/// Largest request in bytes.
const LIMIT: usize = 10 * 1024 * 1024;

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    outgoing(
        "exits-after-one-reply",
        &["TH-FRAME-01"],
        "A serve process ends after its first reply.",
        |memory, reply| {
            memory.exit = (!memory.run_mode).then_some(0);
            line(reply.to_vec())
        },
    ),
    outgoing(
        "answers-twice",
        &["TH-FRAME-01"],
        "Every request is answered by two lines.",
        |memory, reply| {
            if memory.run_mode {
                line(reply.to_vec())
            } else {
                [line(reply.to_vec()), line(reply.to_vec())].concat()
            }
        },
    ),
    outgoing(
        "prints-banner",
        &["TH-FRAME-05"],
        "A banner stands before the first reply.",
        |memory, reply| {
            let banner: &[u8] = if memory.replies == 1 { b"toolhost 1.0 ready\n" } else { b"" };
            [banner, &line(reply.to_vec())].concat()
        },
    ),
    outgoing("logs-to-stdout", &["TH-FRAME-05"], "A log line follows every reply.", |_, reply| {
        [line(reply.to_vec()), b"[info] request done\n".to_vec()].concat()
    }),
    incoming("refuses-crlf", &["TH-FRAME-06"], "A CR before the LF makes a line malformed.", |_, request| {
        if request.ends_with(b"\r") { Pass::Answer(failure("stray carriage return")) } else { Pass::Forward }
    }),
    incoming(
        "takes-trailing-comma",
        &["TH-JSON-01"],
        "A comma before a closing brace is ignored.",
        |_, request| replaced(request, swap_all(request, ",}", "}")),
    ),
    incoming(
        "takes-single-quotes",
        &["TH-JSON-01"],
        "Single quotes are read as double quotes.",
        |_, request| replaced(request, swap_all(request, "'", "\"")),
    ),
    incoming(
        "takes-raw-controls",
        &["TH-JSON-01"],
        "Raw control characters inside strings are taken.",
        |_, request| {
            let spaced = request.iter().map(|byte| if *byte < 0x20 && *byte != b'\n' { b' ' } else { *byte });
            replaced(request, spaced.collect())
        },
    ),
    incoming("takes-nan", &["TH-JSON-02"], "NaN and Infinity are read as numbers.", |_, request| {
        replaced(request, swap_all(&swap_all(request, "NaN", "0"), "Infinity", "1"))
    }),
    incoming(
        "ignores-what-follows",
        &["TH-JSON-03", "TH-RUN-01"],
        "Bytes after the request object are ignored.",
        |_, request| match first_object(request) {
            Some(end) if end < request.len() => Pass::Replace(request[..end].to_vec()),
            _ => Pass::Forward,
        },
    ),
    incoming("mends-utf8", &["TH-JSON-04"], "Invalid UTF-8 is replaced by U+FFFD and run.", |_, request| {
        replaced(request, String::from_utf8_lossy(request).into_owned().into_bytes())
    }),
    incoming(
        "dies-of-nesting",
        &["TH-JSON-06"],
        "A thousand nested brackets kill the process.",
        |_, request| {
            let mut depth = 0_usize;
            for byte in request {
                match byte {
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth > 1_000 {
                    return Pass::Abort;
                }
            }
            Pass::Forward
        },
    ),
    outgoing(
        "nulls-huge-numbers",
        &["TH-JSON-11"],
        "A number beyond every double comes back as null.",
        |_, reply| line(swap_all(reply, "1e400", "null")),
    ),
    outgoing("rounds-integers", &["TH-JSON-12"], "2^53−1 comes back as 2^53.", |_, reply| {
        line(swap_all(reply, "9007199254740991", "9007199254740992"))
    }),
    incoming(
        "wants-compact-json",
        &["TH-JSON-14"],
        "White space between tokens is refused.",
        |_, request| refusing(any_between(request, |byte| matches!(byte, b' ' | b'\t' | b'\n'))),
    ),
    incoming("wants-aid-first", &["TH-JSON-14"], "`aid` has to be the first member.", |memory, request| {
        let first = request.trim_ascii_start();
        let first = first.strip_prefix(b"{").unwrap_or(first).trim_ascii_start();
        let wrong =
            value(request).is_some_and(|value| value.get("aid").is_some()) && !first.starts_with(b"\"aid\"");
        let wrong = wrong && !first.starts_with(b"\"pad\"") && !memory.run_mode;
        if wrong { Pass::Answer(failure("malformed request: aid expected")) } else { Pass::Forward }
    }),
    incoming(
        "unwraps-arrays",
        &["TH-REQ-01"],
        "An array that holds a request is taken for it.",
        |_, request| match value(request) {
            Some(Value::Array(items)) if items.len() == 1 => {
                let mut out = Vec::new();
                write_value(&mut out, &items[0]);
                Pass::Replace(out)
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "defaults-aid",
        &["TH-REQ-02"],
        "A missing or mistyped aid is replaced by a default tool.",
        |memory, request| match value(request) {
            Some(request)
                if !memory.run_mode
                    && request.as_object().is_some()
                    && request.get("aid").is_none_or(|aid| aid.as_str().is_none_or(str::is_empty)) =>
            {
                let rest = without(&request, |name, _| name == "aid");
                Pass::Replace(with_member(&rest, "\"aid\":\"AID.PEERPROOF.ANY.v1\""))
            }
            _ => Pass::Forward,
        },
    ),
    outgoing("runs-unknown-aid", &["TH-REQ-03"], "An unknown tool counts as a success.", |memory, reply| {
        if has(reply, "tool not found") { line(success(memory, "{}")) } else { line(reply.to_vec()) }
    }),
    incoming(
        "quotes-input-object",
        &["TH-REQ-04"],
        "An `input_json` that is an object is written as a string and run.",
        |_, request| {
            let Some(parsed) = value(request) else { return Pass::Forward };
            let Some(input) =
                parsed.get("input_json").filter(|input| input.as_text().is_none() && **input != Value::Null)
            else {
                return Pass::Forward;
            };
            let mut text = Vec::new();
            if input.as_object().is_some() {
                write_value(&mut text, input);
            } else {
                text.extend_from_slice(b"{}");
            }
            let mut member = b"\"input_json\":".to_vec();
            crate::json::write_str(&mut member, &String::from_utf8_lossy(&text));
            let rest = without(&parsed, |name, _| name == "input_json");
            Pass::Replace(with_member(&rest, &String::from_utf8_lossy(&member)))
        },
    ),
    incoming("wants-input", &["TH-REQ-05"], "A request without `input_json` is refused.", |_, request| {
        match value(request) {
            Some(parsed) if parsed.as_object().is_some() && parsed.get("input_json").is_none() => {
                Pass::Answer(failure("input_json is missing"))
            }
            _ => Pass::Forward,
        }
    }),
    incoming(
        "runs-bad-input-as-empty",
        &["TH-REQ-06"],
        "An input that is no JSON object is run as `{}`.",
        |_, request| {
            let Some(parsed) = value(request) else { return Pass::Forward };
            let Some(input) = parsed.get("input_json").and_then(Value::as_text) else { return Pass::Forward };
            if value(input.as_bytes()).is_some_and(|input| input.as_object().is_some()) {
                return Pass::Forward;
            }
            let rest = without(&parsed, |name, _| name == "input_json");
            Pass::Replace(with_member(&rest, "\"input_json\":\"{}\""))
        },
    ),
    incoming(
        "drops-mistyped-state",
        &["TH-REQ-07"],
        "A `ds_state` that is no object is ignored.",
        |_, request| dropping(request, |name, value| name == "ds_state" && value.as_object().is_none()),
    ),
    incoming(
        "drops-mistyped-key",
        &["TH-REQ-08"],
        "An `idempotency_key` that is no string is ignored.",
        |_, request| dropping(request, |name, value| name == "idempotency_key" && value.as_text().is_none()),
    ),
    incoming(
        "drops-mistyped-token",
        &["TH-REQ-09"],
        "A `_lease_token` that is no string is ignored.",
        |_, request| dropping(request, |name, value| name == "_lease_token" && value.as_text().is_none()),
    ),
    incoming(
        "refuses-unknown-members",
        &["TH-REQ-10"],
        "A member it does not know makes a request malformed.",
        |_, request| {
            const KNOWN: [&str; 10] = [
                "aid",
                "input_json",
                "ds_state",
                "idempotency_key",
                "_lease_token",
                "tool_aid",
                "tier",
                "ttl_ms",
                "pad",
                "inputs",
            ];
            let Some(parsed) = value(request) else { return Pass::Forward };
            let unknown = |name: &str| !KNOWN.contains(&name);
            if parsed.as_object().unwrap_or_default().iter().any(|(name, _)| unknown(&name.to_lossy())) {
                return Pass::Answer(failure("unknown member"));
            }
            Pass::Forward
        },
    ),
    incoming(
        "runs-aid-of-stdin",
        &["TH-REQ-13"],
        "In run mode the other members of serve mode have to have their types.",
        |memory, request| {
            let Some(parsed) = value(request).filter(|_| memory.run_mode) else { return Pass::Forward };
            let wrong = |name: &str| parsed.get(name).is_some();
            if wrong("aid") || wrong("idempotency_key") || wrong("_lease_token") {
                return Pass::Answer(failure("not a member of run mode"));
            }
            Pass::Forward
        },
    ),
    incoming("cuts-at-nul", &["TH-REQ-14"], "A string ends at U+0000.", |_, request| {
        let mut out = request.to_vec();
        while let Some(at) = memchr::memmem::find(&out, b"\\u0000") {
            let end = memchr::memchr(b'"', &out[at..]).map_or(out.len(), |end| at + end);
            let end = if end > at && out.get(end - 1) == Some(&b'\\') { end - 1 } else { end };
            out.drain(at..end);
        }
        replaced(request, out)
    }),
    outgoing(
        "loses-astral-characters",
        &["TH-REQ-15"],
        "Characters beyond the basic plane come back as U+FFFD.",
        |_, reply| {
            let text = String::from_utf8_lossy(reply);
            line(
                text.chars()
                    .map(|c| if c > '\u{ffff}' { '\u{fffd}' } else { c })
                    .collect::<String>()
                    .into_bytes(),
            )
        },
    ),
    incoming(
        "runs-before-refusing",
        &["TH-REQ-17"],
        "The tool runs before the request is found malformed.",
        |memory, request| {
            let text = String::from_utf8_lossy(request);
            let Some(at) = text.find("\"aid\":\"").filter(|_| !memory.run_mode) else { return Pass::Forward };
            let aid: String = text[at + 7..].chars().take_while(|c| *c != '"').collect();
            let good = value(request).is_some_and(|value| {
                let fits = |name: &str, fits: &dyn Fn(&Value) -> bool| value.get(name).is_none_or(fits);
                fits("input_json", &|input| input.as_text().is_some())
                    && fits("ds_state", &|state| state.as_object().is_some())
                    && fits("idempotency_key", &|key| key.as_text().is_some())
                    && fits("_lease_token", &|token| token.as_text().is_some())
                    && fits("input_json", &|input| {
                        input.as_text().is_some_and(|text| {
                            self::value(text.as_bytes()).is_some_and(|v| v.as_object().is_some())
                        })
                    })
            });
            if good { Pass::Forward } else { Pass::RunFirst(format!("{{\"aid\":\"{aid}\"}}").into_bytes()) }
        },
    ),
    outgoing("writes-nan", &["TH-REPLY-01"], "Success replies carry a member NaN.", |_, reply| {
        line(if is_ok(reply) {
            swap(reply, "{\"ok\":true", "{\"took_ms\":NaN,\"ok\":true")
        } else {
            reply.to_vec()
        })
    }),
    outgoing("echoes-broken-utf8", &["TH-REPLY-01"], "Errors carry a byte that is no UTF-8.", |_, reply| {
        match memchr::memmem::find(reply, b"\"error\":\"").filter(|_| !is_ok(reply)) {
            Some(at) => line([&reply[..at + 9], b"\xff ", &reply[at + 9..]].concat()),
            None => line(reply.to_vec()),
        }
    }),
    outgoing(
        "wraps-replies-in-arrays",
        &["TH-REPLY-02"],
        "A reply is an array that holds the object.",
        |_, reply| line([b"[", reply, b"]"].concat()),
    ),
    outgoing("ok-as-string", &["TH-REPLY-03"], "`ok` is a string.", |_, reply| {
        line(swap(&swap(reply, "\"ok\":true", "\"ok\":\"true\""), "\"ok\":false", "\"ok\":\"false\""))
    }),
    outgoing(
        "ok-against-status",
        &["TH-REPLY-03"],
        "A tool's failure has ok:false and status OK.",
        |_, reply| line(if is_ok(reply) { reply.to_vec() } else { swap(reply, "\"TOOL_ERROR\"", "\"OK\"") }),
    ),
    outgoing("error-with-success", &["TH-REPLY-04"], "`error` of a success is \"none\".", |_, reply| {
        line(if is_ok(reply) { swap(reply, "\"error\":\"\"", "\"error\":\"none\"") } else { reply.to_vec() })
    }),
    outgoing("failure-without-error", &["TH-REPLY-04"], "A refusal has no `error`.", |_, reply| {
        line(if is_ok(reply) { reply.to_vec() } else { swap(reply, "\"error\":", "\"message\":") })
    }),
    outgoing("output-as-value", &["TH-REPLY-05"], "`output_json` holds no JSON text.", |_, reply| {
        line(swap(reply, "\"output_json\":\"", "\"output_json\":\"result: "))
    }),
    outgoing("success-without-state", &["TH-REPLY-06"], "A success has no `ds_state`.", |_, reply| {
        line(swap(reply, "\"ds_state\":", "\"state\":"))
    }),
    outgoing("status-in-lower-case", &["TH-REPLY-07"], "`status` is written in lower case.", |_, reply| {
        line(swap(&swap(reply, "\"status\":\"OK\"", "\"status\":\"ok\""), "\"TOOL_ERROR\"", "\"tool_error\""))
    }),
    outgoing(
        "state-not-delta",
        &["TH-REPLY-08"],
        "Serve replies carry a state that is no delta.",
        |memory, reply| {
            line(if memory.run_mode { reply.to_vec() } else { swap(reply, "\"delta\":true,", "") })
        },
    ),
    outgoing("delta-in-run-mode", &["TH-REPLY-09"], "Run replies carry a delta.", |memory, reply| {
        line(if memory.run_mode {
            swap(reply, "\"ds_state\":{", "\"ds_state\":{\"delta\":true,")
        } else {
            reply.to_vec()
        })
    }),
    outgoing("slots-as-array", &["TH-REPLY-10"], "Empty `slots` are written as an array.", |_, reply| {
        line(swap(reply, "\"slots\":{}", "\"slots\":[]"))
    }),
    incoming(
        "runs-empty-stdin",
        &["TH-RUN-01"],
        "In run mode an empty standard input is run as `{}`.",
        |memory, request| {
            if memory.run_mode && request.trim_ascii().is_empty() {
                Pass::Replace(b"{}".to_vec())
            } else {
                Pass::Forward
            }
        },
    ),
    outgoing(
        "exit-status-after-success",
        &["TH-RUN-02"],
        "Run mode ends with status 1 after a success.",
        |memory, reply| {
            memory.exit = (memory.run_mode && is_ok(reply)).then_some(1);
            line(reply.to_vec())
        },
    ),
    outgoing(
        "silent-about-garbage",
        &["TH-RUN-04"],
        "In run mode a malformed input gets no reply.",
        |memory, reply| {
            if memory.run_mode && !is_ok(reply) { Vec::new() } else { line(reply.to_vec()) }
        },
    ),
    incoming(
        "runs-oversize-as-empty",
        &["TH-LIMIT-02"],
        "In run mode an input over the limit is run as `{}`.",
        |memory, request| {
            if memory.run_mode && request.len() > LIMIT {
                Pass::Replace(b"{}".to_vec())
            } else {
                Pass::Forward
            }
        },
    ),
    incoming(
        "limit-of-characters",
        &["TH-LIMIT-02", "TH-LIMIT-05"],
        "The limit of 10 MB counts characters.",
        |_, request| {
            if request.len() > LIMIT { Pass::Replace(byte_a_character(request)) } else { Pass::Forward }
        },
    ),
    outgoing(
        "answers-oversize-twice",
        &["TH-LIMIT-04"],
        "A line over the limit is refused twice.",
        |memory, reply| {
            let twice = !memory.run_mode && has(reply, "too large") && !has(reply, "TOOL_ERROR");
            if twice { [line(reply.to_vec()), line(reply.to_vec())].concat() } else { line(reply.to_vec()) }
        },
    ),
    incoming(
        "runs-oversize-line",
        &["TH-LIMIT-05"],
        "A line over the limit is run with an empty input.",
        |memory, request| {
            if memory.run_mode || request.len() <= LIMIT {
                return Pass::Forward;
            }
            let tail = String::from_utf8_lossy(&request[request.len() - 4096..]).into_owned();
            let head = String::from_utf8_lossy(&request[..4096]).into_owned();
            let text = format!("{head}{tail}");
            let aid = text
                .split("\"aid\":\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .unwrap_or("AID.PEERPROOF.COUNTER.v1");
            Pass::Replace(format!("{{\"aid\":\"{aid}\"}}").into_bytes())
        },
    ),
    outgoing(
        "ends-after-oversize",
        &["TH-LIMIT-05"],
        "A line over the limit ends the session.",
        |memory, reply| {
            if !memory.run_mode && has(reply, "too large") && !has(reply, "TOOL_ERROR") {
                memory.exit = Some(0);
            }
            line(reply.to_vec())
        },
    ),
    outgoing(
        "silent-about-malformed",
        &["TH-SERVE-01"],
        "A malformed line gets no reply.",
        |memory, reply| {
            if !memory.run_mode && has(reply, "malformed request") {
                Vec::new()
            } else {
                line(reply.to_vec())
            }
        },
    ),
    outgoing(
        "ends-after-malformed",
        &["TH-SERVE-01"],
        "A malformed line ends the session.",
        |memory, reply| {
            if !memory.run_mode && has(reply, "malformed request") {
                memory.exit = Some(0);
            }
            line(reply.to_vec())
        },
    ),
    outgoing(
        "failure-as-success",
        &["TH-TOOL-01"],
        "A tool's failure is reported as a success.",
        |memory, reply| {
            line(if has(reply, "\"TOOL_ERROR\"") { success(memory, "{}") } else { reply.to_vec() })
        },
    ),
    outgoing(
        "ends-after-tool-error",
        &["TH-TOOL-02"],
        "A tool's failure ends the session.",
        |memory, reply| {
            if !memory.run_mode && has(reply, "\"TOOL_ERROR\"") {
                memory.exit = Some(1);
            }
            line(reply.to_vec())
        },
    ),
    both(
        "crash-as-success",
        &["TH-TOOL-04"],
        "A tool that crashed is reported as a success.",
        |memory, request| {
            if has(request, "PEERPROOF.CRASH") {
                return Pass::Answer(success(memory, "{}"));
            }
            Pass::Forward
        },
        unchanged,
    ),
];

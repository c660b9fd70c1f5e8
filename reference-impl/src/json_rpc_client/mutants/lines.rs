//! Faults in requests, responses and results.

use super::Mutant;
use super::wire::{Lines, Memory, each_message, parse, put, text};
use crate::json::Value;
use crate::mutant::Seam;
use crate::mutant::text::swap_all as swap;

const fn out(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewrite: fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Lines::Out(rewrite)))
}

const fn input(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewrite: fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Lines::In(rewrite)))
}

const fn noted(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewrite: fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Lines::Results(rewrite)))
}

pub(super) const MUTANTS: &[Mutant] = &[
    out("client-prints-log", &["RPC-CLIENT-01"], "A log line goes out first.", |memory, line| {
        if memory.count == 1 { vec![b"connecting to server".to_vec(), line] } else { vec![line] }
    }),
    out("client-without-version", &["RPC-CLIENT-02"], "Requests say nothing of JSON-RPC 2.0.", |_, line| {
        vec![swap(&line, "\"jsonrpc\":\"2.0\",", "")]
    }),
    out("client-asks-without-id", &["RPC-CLIENT-02"], "The first request has no id.", |memory, line| {
        if memory.count > 1 {
            return vec![line];
        }
        each_message(line, |members| members.retain(|(name, _)| name != "id"))
    }),
    out(
        "client-changes-params",
        &["RPC-CLIENT-03", "RPC-CLIENT-24"],
        "Params that are an array go out empty.",
        |_, line| {
            each_message(line, |members| {
                if members.iter().any(|(name, value)| name == "params" && value.as_array().is_some()) {
                    put(members, "params", Value::Array(Vec::new()));
                }
            })
        },
    ),
    out(
        "client-names-no-params",
        &["RPC-CLIENT-03"],
        "Params that are an empty array go out as an object.",
        |_, line| {
            each_message(line, |members| {
                if members.iter().any(|(name, value)| name == "params" && *value == Value::Array(Vec::new()))
                {
                    put(members, "params", Value::Object(Vec::new()));
                }
            })
        },
    ),
    out(
        "client-introduces-itself",
        &["RPC-CLIENT-03"],
        "A call of its own goes out first.",
        |memory, line| {
            let hello = b"{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{}}".to_vec();
            if memory.count == 1 { vec![hello, line] } else { vec![line] }
        },
    ),
    out("client-notifies-with-id", &["RPC-CLIENT-04"], "A notification goes out with an id.", |_, line| {
        each_message(line, |members| {
            if !members.iter().any(|(name, _)| name == "id") {
                members.push(("id".into(), Value::Number(999_983.into())));
            }
        })
    }),
    noted("client-notes-nothing-sent", &["RPC-CLIENT-04"], "A notification ends as a result.", |_, line| {
        vec![swap(&line, "\"outcome\":\"sent\"", "\"outcome\":\"result\",\"result\":null")]
    }),
    out("client-unpacks-batches", &["RPC-CLIENT-06"], "Calls of a batch go out one by one.", |_, line| {
        match parse(&line) {
            Some(Value::Array(messages)) => messages.iter().map(text).collect(),
            _ => vec![line],
        }
    }),
    out("client-packs-everything", &["RPC-CLIENT-06"], "Every call goes out in an array.", |_, line| {
        if line.starts_with(b"{") { vec![[b"[", line.as_slice(), b"]"].concat()] } else { vec![line] }
    }),
    noted(
        "client-loses-a-result",
        &["RPC-CLIENT-08"],
        "Nothing is written down of the second call.",
        |memory, line| {
            if memory.count == 2 { Vec::new() } else { vec![line] }
        },
    ),
    noted("client-notes-twice", &["RPC-CLIENT-08"], "What is written down is written twice.", |_, line| {
        vec![line.clone(), line]
    }),
    noted("client-counts-no-attempts", &["RPC-CLIENT-08"], "Attempts are always 7.", |_, line| {
        each_message(line, |members| put(members, "attempts", Value::Number(7.into())))
    }),
    noted("client-notes-no-time", &["RPC-CLIENT-08"], "The time is missing in the results.", |_, line| {
        each_message(line, |members| members.retain(|(name, _)| name != "elapsed_ms"))
    }),
    noted(
        "client-calls-timeouts-errors",
        &["RPC-CLIENT-11"],
        "A timeout is written down as gone server.",
        |_, line| vec![swap(&line, "\"outcome\":\"timeout\"", "\"outcome\":\"disconnected\"")],
    ),
    noted(
        "client-calls-large-invalid",
        &["RPC-CLIENT-18"],
        "What is too large is called invalid.",
        |_, line| vec![swap(&line, "\"outcome\":\"too_large\"", "\"outcome\":\"invalid\"")],
    ),
    noted(
        "client-calls-hang-up-timeout",
        &["RPC-CLIENT-20"],
        "A gone server is written down as timeout.",
        |_, line| vec![swap(&line, "\"outcome\":\"disconnected\"", "\"outcome\":\"timeout\"")],
    ),
    noted("client-takes-any-stream", &["RPC-CLIENT-21"], "Every stream is whole.", |_, line| {
        vec![swap(&line, "\"stream_ok\":false", "\"stream_ok\":true")]
    }),
    noted("client-takes-no-stream", &["RPC-CLIENT-21"], "No stream is whole.", |_, line| {
        vec![swap(&line, "\"stream_ok\":true", "\"stream_ok\":false")]
    }),
    noted(
        "client-says-nothing-of-streams",
        &["RPC-CLIENT-21"],
        "Streams are not written down.",
        |_, line| {
            each_message(line, |members| members.retain(|(name, _)| name != "chunks" && name != "stream_ok"))
        },
    ),
    input(
        "client-misses-a-chunk",
        &["RPC-CLIENT-21"],
        "The last chunk of a stream is lost.",
        |memory, line| {
            // The chunk is held back until the next line shows if it was the last one.
            let held: Vec<Vec<u8>> = memory.kept.drain(..).collect();
            let says = |word: &str| {
                parse(&line).is_some_and(|value| value.get("method").and_then(Value::as_str) == Some(word))
            };
            if says("stream_data") {
                memory.kept.push(line);
                return held;
            }
            if says("stream_end") { vec![line] } else { held.into_iter().chain([line]).collect() }
        },
    ),
    input(
        "client-gives-up-on-noise",
        &["RPC-CLIENT-19"],
        "After a line that is no JSON nothing is read.",
        |memory, line| {
            if parse(&line).is_none() {
                memory.kept.push(Vec::new());
            }
            if memory.kept.is_empty() { vec![line] } else { Vec::new() }
        },
    ),
    input(
        "client-takes-ids-of-any-type",
        &["RPC-CLIENT-19"],
        "An id that is the text of a number is that number.",
        |_, line| {
            each_message(line, |members| {
                let id = members.iter().find(|(name, _)| name == "id").and_then(|(_, id)| id.as_str());
                if let Some(id) = id.and_then(|id| id.parse::<i64>().ok()) {
                    put(members, "id", Value::Number(id.into()));
                }
            })
        },
    ),
    input(
        "client-reads-the-beginning-of-lines",
        &["RPC-CLIENT-19"],
        "What follows the last brace of a line is not looked at.",
        |_, line| {
            let end = memchr::memrchr(b'}', &line).map_or(line.len(), |end| end + 1);
            vec![line[..end].to_vec()]
        },
    ),
    input(
        "client-wants-braces-first",
        &["RPC-CLIENT-19"],
        "A line that begins with white space is lost.",
        |_, line| {
            if line.starts_with(b"\t") || line.starts_with(b" ") { Vec::new() } else { vec![line] }
        },
    ),
    input(
        "client-orders-batch-replies",
        &["RPC-CLIENT-19"],
        "Answers to a batch are taken in the order of the ids.",
        |_, line| {
            let Some(Value::Array(mut messages)) = parse(&line) else { return vec![line] };
            let mut ids: Vec<i64> =
                messages.iter().filter_map(|message| message.get("id").and_then(Value::as_i64)).collect();
            ids.sort_unstable();
            let numbered =
                messages.iter_mut().filter(|message| message.get("id").and_then(Value::as_i64).is_some());
            for (message, id) in numbered.zip(ids) {
                if let Value::Object(members) = message {
                    put(members, "id", Value::Number(id.into()));
                }
            }
            vec![text(&Value::Array(messages))]
        },
    ),
    out(
        "client-cuts-large-batches",
        &["RPC-CLIENT-06"],
        "A batch of more than five calls goes out in arrays of five.",
        |_, line| match parse(&line) {
            Some(Value::Array(messages)) => {
                messages.chunks(5).map(|some| text(&Value::Array(some.to_vec()))).collect()
            }
            _ => vec![line],
        },
    ),
    noted(
        "client-trims-refs",
        &["RPC-CLIENT-08"],
        "A ref is written down without the blanks around it.",
        |_, line| {
            each_message(line, |members| {
                let name = members.iter().find(|(name, _)| name == "ref").and_then(|(_, name)| name.as_str());
                if let Some(name) = name.map(|name| name.trim().to_owned()) {
                    put(members, "ref", name.as_str().into());
                }
            })
        },
    ),
    input(
        "client-trims-ids",
        &["RPC-CLIENT-19"],
        "Blanks around the number in an id that is text do not count.",
        |_, line| {
            each_message(line, |members| {
                let id = members.iter().find(|(name, _)| name == "id").and_then(|(_, id)| id.as_str());
                let number = id.filter(|id| id.trim() != *id).and_then(|id| id.trim().parse::<i64>().ok());
                if let Some(number) = number {
                    put(members, "id", Value::Number(number.into()));
                }
            })
        },
    ),
    input(
        "client-mends-bad-utf8",
        &["RPC-CLIENT-19"],
        "Bytes that are no UTF-8 are replaced, and the answer is taken.",
        |_, line| vec![String::from_utf8_lossy(&line).into_owned().into_bytes()],
    ),
    input(
        "client-ends-lines-at-separators",
        &["RPC-CLIENT-09"],
        "U+2028, U+2029 and U+0085 end a line.",
        |_, line| {
            let text = String::from_utf8_lossy(&line).into_owned();
            text.split(['\u{2028}', '\u{2029}', '\u{85}']).map(|part| part.as_bytes().to_vec()).collect()
        },
    ),
    input(
        "client-ends-lines-at-control-characters",
        &["RPC-CLIENT-19"],
        "VT, FF and the separators of records end a line.",
        |_, line| line.split(|byte| matches!(byte, 0x0b | 0x0c | 0x1c..=0x1e)).map(<[u8]>::to_vec).collect(),
    ),
    input(
        "client-reads-names-without-case",
        &["RPC-CLIENT-17", "RPC-CLIENT-19"],
        "Members of messages are known whatever the case of their names.",
        |_, line| {
            each_message(line, |members| {
                for (at, (name, value)) in members.clone().into_iter().enumerate() {
                    let Some(right) = name.as_str().map(str::to_ascii_lowercase) else { continue };
                    match members.iter().any(|(known, _)| known == right.as_str()) {
                        true => put(members, &right, value),
                        false => members[at].0 = right.as_str().into(),
                    }
                }
            })
        },
    ),
    input(
        "client-reads-streams-without-case",
        &["RPC-CLIENT-21"],
        "Names of notifications are compared without case.",
        |_, line| {
            each_message(line, |members| {
                let name =
                    members.iter().find(|(name, _)| name == "method").and_then(|(_, name)| name.as_str());
                if let Some(name) = name.map(str::to_ascii_lowercase) {
                    put(members, "method", name.as_str().into());
                }
            })
        },
    ),
    input("client-decodes-entities", &["RPC-CLIENT-09"], "`&amp;` is read as `&`.", |_, line| {
        vec![swap(&line, "&amp;", "&")]
    }),
    out(
        "client-mixes-large-requests",
        &["RPC-CLIENT-01"],
        "Into each large request but the first a part of it is written again.",
        |memory, line| {
            if line.len() < 300_000 {
                return vec![line];
            }
            memory.kept.push(Vec::new());
            match memory.kept.len() {
                1 => vec![line],
                _ => vec![[&line[..line.len() / 2], &line].concat()],
            }
        },
    ),
    input(
        "client-begins-streams-anew",
        &["RPC-CLIENT-21"],
        "A second start of a stream is not noticed.",
        |memory, line| {
            let starts = parse(&line)
                .is_some_and(|value| value.get("method").and_then(Value::as_str) == Some("stream_start"));
            if starts && memory.kept.contains(&line) {
                return Vec::new();
            }
            if starts {
                memory.kept.push(line.clone());
            }
            vec![line]
        },
    ),
    input(
        "client-wants-ids-in-batch-replies",
        &["RPC-CLIENT-19"],
        "An array with an answer for no id is passed over whole.",
        |_, line| match parse(&line) {
            Some(Value::Array(messages))
                if messages.iter().any(|message| message.get("id").is_some_and(|id| *id == Value::Null)) =>
            {
                Vec::new()
            }
            _ => vec![line],
        },
    ),
    input(
        "client-reads-no-noncharacters",
        &["RPC-CLIENT-09"],
        "An answer with U+FFFE or U+FFFF is not understood.",
        |_, line| {
            let text = String::from_utf8_lossy(&line);
            if text.contains(['\u{fffe}', '\u{ffff}']) { Vec::new() } else { vec![line] }
        },
    ),
    input(
        "client-reads-no-arrays",
        &["RPC-CLIENT-19"],
        "An array of answers is not understood.",
        |_, line| {
            if line.starts_with(b"[") { Vec::new() } else { vec![line] }
        },
    ),
    input(
        "client-reads-small-answers",
        &["RPC-CLIENT-09"],
        "Answers of half a million bytes are lost.",
        |_, line| {
            if line.len() > 500_000 { Vec::new() } else { vec![line] }
        },
    ),
];

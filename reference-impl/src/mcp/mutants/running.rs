//! Mutants of calls in progress: concurrency, cancellation, progress.

use super::Mutant;
use super::edit::{
    Memory, Object, Pass, asks, both_ways, dies_of, ended, error, find, has, incoming, messages, mute_after,
    object, object_mut, outgoing, parts, said, saying, set, text, value,
};
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mcp::message::{notification, response};
use crate::mutant::{Inner, machine};

fn is_cancellation(line: &[u8]) -> bool {
    asks(line, "notifications/cancelled")
}

/// Id in a cancellation.
fn cancelled(line: &[u8]) -> Option<Value> {
    value(line).filter(|_| is_cancellation(line))?.get("params")?.get("requestId").cloned()
}

/// Records running calls of `sleep`: id and text.
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

/// Forgets an answered call of `sleep` and returns its text.
fn wakes(memory: &mut Memory, line: &[u8]) -> Option<Vec<u8>> {
    let message = value(line).filter(|message| message.get("method").is_none())?;
    memory.kept.remove(&text(message.get("id")?))
}

/// Answers a cancelled call of `sleep` here.
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

/// Drops the server's answer to a call that [`settles`] has answered.
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

/// Mutants of calls in progress.
pub(super) const MUTANTS: &[Mutant] = &[
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
    machine(
        "one-thing-at-a-time",
        &["MCP-TOL-12b"],
        "Nothing else is read while a call of sleep runs.",
        |inner| Box::new(OneByOne { inner, is_busy: false, held: Vec::new() }),
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

/// A mutant that handles the next line only after the previous call of `sleep` is answered.
struct OneByOne {
    inner: Inner,
    is_busy: bool,
    held: Vec<u8>,
}

impl Machine for OneByOne {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        match event {
            Event::Stdin(bytes) => self.held.extend_from_slice(bytes),
            event => self.inner.handle(event, now, actions),
        }
        let answers = |actions: &[Action]| {
            actions.iter().any(|action| matches!(action, Action::Stdout(bytes) if has(bytes, "\"result\"")))
        };
        self.is_busy = self.is_busy && !answers(&actions[from..]);
        while !self.is_busy
            && let Some(end) = memchr::memchr(b'\n', &self.held)
        {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            self.is_busy = has(&line, "\"name\":\"sleep\"");
            let from = actions.len();
            self.inner.handle(Event::Stdin(&line), now, actions);
            self.is_busy &= !answers(&actions[from..]);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

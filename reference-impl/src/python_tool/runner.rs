//! The runner: one request in, one reply out, with the tool in a separate process.

use super::choices::{OverSize, Refusal};
use super::{Config, Order};
use crate::json::{Policy, Value, write_str, write_value};
use crate::machine::{Action, ChildExit, Event, Machine, Millis};

/// Exit status of a refusal, or of a crash instead of one.
const STATUS_REFUSED: i32 = 1;

/// Exit status after SIGTERM.
pub const STATUS_TERMINATED: i32 = 143;

/// Time in ms for a tool's process to exit after its result. Then it is killed with its descendants.
const LINGER_MS: Millis = 1_000;

/// Bytes of an outcome besides its result.
const OUTCOME_BYTES: usize = 4 << 10;

/// Levels of nesting of a result.
const RESULT_NESTING_MAX: usize = 1_000;

/// A runner for one request.
pub struct Runner {
    config: Config,
    input: Vec<u8>,
    is_too_large: bool,
    /// Output of the tool's process, once it runs.
    heard: Option<Vec<u8>>,
    ended: bool,
}

impl Runner {
    /// Creates a runner that has read nothing.
    pub fn new(config: Config) -> Self {
        let (input, is_too_large, heard) = (Vec::new(), false, None);
        Self { config, input, is_too_large, heard, ended: false }
    }

    /// Appends input. Discards everything once the request is too large.
    fn add(&mut self, mut bytes: &[u8]) {
        if self.input.is_empty() {
            bytes = bytes.trim_ascii_start();
        }
        let is_capped = self.config.choices.over_size == OverSize::Refuse;
        let bytes_max = if is_capped { self.config.limits.stdin_bytes_max } else { usize::MAX };
        let (kept, beyond) = bytes.split_at(bytes.len().min(bytes_max.saturating_sub(self.input.len())));
        if self.is_too_large || !beyond.trim_ascii().is_empty() {
            self.is_too_large = true;
            self.input = Vec::new();
        } else {
            self.input.extend_from_slice(kept);
        }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        let order = match self.is_too_large {
            true => Err("a request has at most 10 MB".into()),
            false => Order::read(&std::mem::take(&mut self.input), &self.config),
        };
        match order {
            Ok(order) => {
                let guarded =
                    order.guarantees.iter().filter(|name| self.config.guarded.contains(&name.as_str()));
                let guarded: Vec<&str> = guarded.map(String::as_str).collect();
                let words = [guarded.join(","), self.config.shim.clone()];
                let argv = self.config.guard.iter().cloned().chain(words).collect();
                self.heard = Some(Vec::new());
                actions.push(Action::Spawn { argv, stdin: order.text(&self.config) });
            }
            Err(why) => {
                self.ended = true;
                match self.config.choices.refusal {
                    Refusal::Reply => {
                        actions.push(Action::Stdout(failure("BadRequest", &why.to_string(), None)))
                    }
                    Refusal::Crash => actions.push(Action::Stderr(format!("{why}\n").into_bytes())),
                }
                actions.push(Action::Exit(STATUS_REFUSED));
            }
        }
    }

    /// Kills the remaining processes of the tool, and replies.
    fn answer(&mut self, exit: Option<ChildExit>, actions: &mut Vec<Action>) {
        let heard = self.heard.take().unwrap_or_default();
        self.ended = true;
        actions.push(Action::Kill);
        let reply = match outcome(&heard) {
            Some(outcome) => self.reply(outcome),
            None => {
                let how = match exit {
                    Some(ChildExit::Code(code)) => format!("the tool ended its process with status {code}"),
                    Some(ChildExit::Signal(signal)) => {
                        format!("the tool's process was ended by signal {signal}")
                    }
                    None => "the tool's process said nothing".to_owned(),
                };
                self.ended_by_tool("ToolExit", &how)
            }
        };
        match reply {
            Some(reply) => actions.extend([Action::Stdout(reply), Action::Exit(0)]),
            None => actions.push(Action::Exit(STATUS_REFUSED)),
        }
    }

    /// Reply for a tool that ended its process; `None` for no reply.
    fn ended_by_tool(&self, kind: &str, how: &str) -> Option<Vec<u8>> {
        (self.config.choices.tool_exit == Refusal::Reply).then(|| failure(kind, how, None))
    }

    fn reply(&self, outcome: &[u8]) -> Option<Vec<u8>> {
        let bytes_max = self.config.limits.stdin_bytes_max + OUTCOME_BYTES;
        if self.config.choices.over_size == OverSize::Refuse && outcome.len() > bytes_max {
            return Some(failure("ResultTooLarge", "a result has at most 10 MB", None));
        }
        let Ok(outcome) = Value::parse(outcome, RESULT_NESTING_MAX, &Policy::default()) else {
            return Some(failure("NoJson", "the result is not JSON", None));
        };
        let error = |name: &str| outcome.get("error").and_then(|error| error.get(name));
        let said = |name: &str| error(name).and_then(Value::as_text).map(|text| text.to_lossy().into_owned());
        let reason = said("reason_code");
        match outcome.get("result") {
            Some(result) => {
                let mut out = b"{\"ok\":true,\"protocol_version\":1,\"result\":".to_vec();
                write_value(&mut out, result);
                out.extend_from_slice(b"}\n");
                Some(out)
            }
            None => {
                let kind = said("type").filter(|kind| !kind.is_empty()).unwrap_or("Error".to_owned());
                let message = said("message").unwrap_or_default();
                match outcome.get("exit").and_then(Value::as_bool) {
                    Some(true) => self.ended_by_tool(&kind, &message),
                    _ => Some(failure(&kind, &message, reason.as_deref())),
                }
            }
        }
    }
}

/// Text of a complete outcome.
fn outcome(heard: &[u8]) -> Option<&[u8]> {
    let head = memchr::memchr(b'\n', heard)?;
    let length: usize = std::str::from_utf8(&heard[..head]).ok()?.parse().ok()?;
    heard[head + 1..].get(..length)
}

/// Reply for a failed call.
pub(super) fn failure(kind: &str, message: &str, reason: Option<&str>) -> Vec<u8> {
    let mut out = b"{\"ok\":false,\"protocol_version\":1,\"error\":{\"type\":".to_vec();
    write_str(&mut out, kind);
    out.extend_from_slice(b",\"message\":");
    write_str(&mut out, message);
    if let Some(reason) = reason {
        out.extend_from_slice(b",\"reason_code\":");
        write_str(&mut out, reason);
    }
    out.extend_from_slice(b"}}\n");
    out
}

impl Machine for Runner {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            _ if self.ended => {}
            Event::Stdin(bytes) => self.add(bytes),
            Event::StdinEof => self.start(actions),
            Event::ChildStdout(bytes) => {
                if let Some(heard) = &mut self.heard {
                    let was_whole = outcome(heard).is_some();
                    heard.extend_from_slice(bytes);
                    if !was_whole && outcome(heard).is_some() {
                        actions.push(Action::WakeAt(now + LINGER_MS));
                    }
                }
            }
            Event::Wake => self.answer(None, actions),
            Event::ChildExit(exit) => self.answer(Some(exit), actions),
            Event::ChildSpawnFailed(why) => {
                self.ended = true;
                actions.extend([Action::Stderr(format!("{why:?}\n").into_bytes()), Action::Exit(70)]);
            }
            Event::Terminate => {
                self.ended = true;
                actions.extend([Action::Kill, Action::Exit(STATUS_TERMINATED)]);
            }
            _ => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        !self.ended && self.heard.is_none()
    }
}

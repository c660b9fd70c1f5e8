//! The engine of `process`: one envelope in, one envelope out.

use super::advance::advance;
use super::choices::{Kept, OverBound, OverSize, Pending, TrailingText};
use super::validate::{complete, is_inconsistent, over_bound};
use super::{Config, Members, datetime, get};
use crate::json::{self, ErrorKind, Value, write_value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::refusal::Refusal;

/// Exit status when an envelope is refused.
const STATUS_REFUSED: i32 = 1;

/// Standard input so far: the object's text, without the white space around it.
#[derive(Debug, Default)]
struct Input {
    bytes: Vec<u8>,
    is_too_large: bool,
}

impl Input {
    /// Appends input. Discards everything once the object is too large.
    fn add(&mut self, mut bytes: &[u8], bytes_max: usize) {
        if self.bytes.is_empty() {
            while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = bytes {
                bytes = rest;
            }
        }
        let room = bytes_max.saturating_sub(self.bytes.len());
        let (kept, beyond) = bytes.split_at(bytes.len().min(room));
        if self.is_too_large || beyond.iter().any(|byte| !b" \t\r\n".contains(byte)) {
            *self = Self { bytes: Vec::new(), is_too_large: true };
        } else {
            self.bytes.extend_from_slice(kept);
        }
    }
}

/// The engine.
pub struct Engine {
    config: Config,
    input: Input,
    ended: bool,
}

impl Engine {
    /// Creates an engine that has read nothing.
    pub fn new(config: Config) -> Self {
        Self { config, input: Input::default(), ended: false }
    }

    /// Processes a whole input and returns the reply.
    ///
    /// # Errors
    /// One sentence: the reason for the refusal.
    pub fn process(&self, input: &[u8], now: Millis) -> Result<Members, Refusal> {
        let choices = &self.config.choices;
        let mut members = complete(self.read(input)?, &self.config)?;
        let is = |name: &str, value: Value| get(&members, name) == Some(&value);
        let is_pending = |pending, response| is(pending, Value::Bool(true)) && is(response, Value::Null);
        let is_terminated = is("terminated", Value::Bool(true));
        let waits = is_pending("clarification_pending", "clarification_response")
            || is_pending("confirmation_pending", "confirmation_response");
        for (is_so, refused, why) in [
            (is_terminated, choices.terminated_input == Kept::Refuse, "it is terminated"),
            (waits, choices.pending_input == Pending::Refuse, "it waits for a response"),
            (
                over_bound(&members).is_some(),
                choices.over_bound == OverBound::Refuse,
                "a counter is over its maximum",
            ),
            (
                is_inconsistent(&members),
                choices.inconsistent_input == Kept::Refuse,
                "its members contradict each other",
            ),
        ] {
            if is_so && refused {
                return Err(why.into());
            }
        }
        if choices.advances() {
            advance(&mut members, &self.config, &datetime::written(self.config.started_unix_ms + now));
        }
        Ok(members)
    }

    fn read(&self, input: &[u8]) -> Result<Value, Refusal> {
        let choices = &self.config.choices;
        let input = choices.bom.strip(input);
        let parse = |text: &[u8]| Value::parse(text, self.config.limits.nesting_max, &choices.policy());
        let read = parse(input).or_else(|error| match error.kind {
            ErrorKind::Trailing | ErrorKind::Utf8 if choices.trailing_text == TrailingText::Ignore => {
                first_value(&input[..error.at], error, &parse)
            }
            _ => Err(error),
        });
        read.map_err(Refusal::from)
    }
}

/// Parses the first value of a text with trailing text. Any other failure returns `error`.
fn first_value(
    text: &[u8],
    error: json::Error,
    parse: &dyn Fn(&[u8]) -> Result<Value, json::Error>,
) -> Result<Value, json::Error> {
    parse(text).or_else(|again| match again.kind {
        ErrorKind::Trailing if again.at < text.len() => parse(&text[..again.at]),
        _ => Err(error),
    })
}

/// Text that an engine writes when it refuses an envelope.
pub fn refusal(why: &str) -> Vec<u8> {
    let mut out = b"{\"error\":".to_vec();
    json::write_str(&mut out, why);
    out.extend_from_slice(b"}\n");
    out
}

impl Machine for Engine {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            _ if self.ended => {}
            Event::Stdin(bytes) => {
                let is_capped = self.config.choices.over_size == OverSize::Refuse;
                let bytes_max = if is_capped { self.config.limits.stdin_bytes_max } else { usize::MAX };
                self.input.add(bytes, bytes_max);
            }
            Event::StdinEof => {
                self.ended = true;
                let input = std::mem::take(&mut self.input);
                let reply = match input.is_too_large {
                    true => Err("an envelope has at most 10 MB".into()),
                    false => self.process(&input.bytes, now),
                };
                match reply {
                    Ok(members) => {
                        let mut out = Vec::with_capacity(input.bytes.len() + 1024);
                        write_value(&mut out, &Value::Object(members));
                        out.push(b'\n');
                        actions.extend([Action::Stdout(out), Action::Exit(0)]);
                    }
                    Err(why) => {
                        actions.extend([
                            Action::Stdout(refusal(&why.to_string())),
                            Action::Exit(STATUS_REFUSED),
                        ]);
                    }
                }
            }
            Event::Terminate => {
                self.ended = true;
                actions.push(Action::Exit(STATUS_REFUSED));
            }
            _ => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        !self.ended
    }
}

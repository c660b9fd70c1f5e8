//! The client: sends calls, reads responses, and records one outcome per call.

use super::answer::Answer;
use super::call::{Call, Outcome, Phase};
use super::stream::Stream;
use super::{Components, Config, NullIdError, RetryPastTimeout, ServerRequest};
use crate::frame::{Frame, LineReader};
use crate::json::{Value, write_str, write_value};
use crate::machine::{Action, Event, Machine, Millis};

/// Levels of nesting that are parsed; deeper lines are ignored.
const NESTING_MAX: usize = 512;
/// Exit status after all calls.
const STATUS_DONE: i32 = 0;
/// Exit status after SIGTERM.
pub(super) const STATUS_TERMINATED: i32 = 143;

/// A running client.
pub struct Client {
    config: Config,
    parts: Components,
    calls: Vec<Call>,
    reader: Option<LineReader>,
    /// True once the server has gone.
    deserted: bool,
    out: Vec<u8>,
    lines: Vec<u8>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client that has sent nothing.
    pub fn new(config: Config, parts: Components) -> Self {
        let calls = config.scenario.calls.iter().cloned().map(Call::new).collect();
        let reader = Some(LineReader::new(config.limits.rpc_message_bytes_max));
        Self { config, parts, calls, reader, deserted: false, out: Vec::new(), lines: Vec::new() }
    }

    /// Records the outcome of a call.
    fn finish(&mut self, at: usize, outcome: &Outcome, now: Millis) {
        let Some(call) = self.calls.get_mut(at) else { return };
        self.lines.extend_from_slice(&call.line(outcome, now));
        call.phase = Phase::Done;
    }

    /// Sends all calls that are ready.
    fn go_on(&mut self, now: Millis) {
        loop {
            let ready: Vec<usize> = (0..self.calls.len()).filter(|at| self.is_ready(*at)).collect();
            let Some(first) = ready.first().copied() else { return };
            if self.deserted {
                self.finish(first, &Outcome::Disconnected, now);
                continue;
            }
            let batch = self.calls.get(first).and_then(|call| call.spec.batch.clone());
            let together: Vec<usize> = match &batch {
                None => vec![first],
                Some(_) => ready.into_iter().filter(|at| self.calls[*at].spec.batch == batch).collect(),
            };
            for at in &together {
                self.calls[*at].began = now;
            }
            self.send(&together, batch.is_some(), now);
        }
    }

    /// True if neither a call nor any other of its batch waits for other calls.
    fn is_ready(&self, at: usize) -> bool {
        let done = |call: &Call| {
            call.spec
                .after
                .iter()
                .all(|other| self.calls.get(*other).is_none_or(|other| other.phase == Phase::Done))
        };
        let call = &self.calls[at];
        call.phase == Phase::Waiting
            && match &call.spec.batch {
                None => done(call),
                batch => self.calls.iter().filter(|other| other.spec.batch == *batch).all(done),
            }
    }

    /// Sends calls, as an array if they are a batch.
    fn send(&mut self, together: &[usize], is_batch: bool, now: Millis) {
        let requests: Vec<(usize, Option<Value>, Vec<u8>)> =
            together.iter().map(|at| self.request(*at, now)).collect();
        let texts: Vec<&[u8]> = requests.iter().map(|(_, _, text)| text.as_slice()).collect();
        let mut message = texts.join(&b","[..]);
        if is_batch {
            message = [b"[", message.as_slice(), b"]"].concat();
        }
        if message.len() > self.config.limits.rpc_message_bytes_max {
            for (at, _, _) in requests {
                self.finish(at, &Outcome::TooLarge, now);
            }
            return;
        }
        message.push(b'\n');
        self.out.extend_from_slice(&message);
        for (at, id, _) in requests {
            let Some(call) = self.calls.get_mut(at) else { continue };
            call.attempts += 1;
            call.stream = None;
            match id {
                Some(id) => call.phase = Phase::InFlight(id),
                None => {
                    call.phase = Phase::Resting(now);
                    self.finish(at, &Outcome::Sent, now);
                }
            }
        }
    }

    /// Index, id and text of a call's next request.
    fn request(&mut self, at: usize, now: Millis) -> (usize, Option<Value>, Vec<u8>) {
        let spec = &self.calls[at].spec;
        let mut text = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write_str(&mut text, &spec.method);
        if let Some(params) = &spec.params {
            text.extend_from_slice(b",\"params\":");
            write_value(&mut text, params);
        }
        let id = (!spec.notify).then(|| self.parts.ids.next());
        if let Some(id) = &id {
            text.extend_from_slice(b",\"id\":");
            write_value(&mut text, id);
        }
        text.push(b'}');
        if let Some(signer) = &mut self.parts.signer {
            let unix_s = (self.config.started_unix_ms + now) / 1_000;
            text = signer.sign(text, unix_s);
        }
        (at, id, text)
    }

    /// Handles one line from the server.
    fn line(&mut self, line: &[u8], now: Millis) {
        // A line that is not JSON is ignored.
        let Ok(message) = Value::parse(line, NESTING_MAX, &self.config.choices.policy()) else { return };
        match &message {
            Value::Array(messages) => messages.iter().for_each(|message| self.message(message, now)),
            message => self.message(message, now),
        }
    }

    fn message(&mut self, message: &Value, now: Millis) {
        if message.as_object().is_none() {
            return;
        }
        if let Some(method) = message.get("method") {
            self.heard(method, message);
            return;
        }
        let Some(id) = message.get("id") else { return };
        if *id == Value::Null {
            self.error_for_nobody(message, now);
            return;
        }
        let waits = |call: &Call| matches!(&call.phase, Phase::InFlight(own) if same_id(own, id));
        if let Some(at) = self.calls.iter().position(waits) {
            let answer = self.parts.reader.read(message);
            self.answer(at, answer, now);
        }
    }

    /// Handles a notification or a request from the server.
    fn heard(&mut self, method: &Value, message: &Value) {
        let nothing = Value::Null;
        let params = message.get("params").unwrap_or(&nothing);
        let stream_id = params.get("stream_id").cloned().unwrap_or(Value::Null);
        let of_stream = |call: &&mut Call| call.stream.as_ref().is_some_and(|stream| stream.id == stream_id);
        match method.as_str() {
            Some("stream_start") => {
                let task = params.get("task_id").unwrap_or(&nothing);
                let waits =
                    |call: &&mut Call| matches!(&call.phase, Phase::InFlight(id) if same_id(id, task));
                if let Some(call) = self.calls.iter_mut().find(waits) {
                    match &mut call.stream {
                        Some(stream) => stream.start_again(),
                        None => call.stream = Some(Stream::new(stream_id)),
                    }
                }
            }
            Some("stream_data") => {
                if let Some(call) = self.calls.iter_mut().filter(|call| call.is_open()).find(of_stream)
                    && let Some(stream) = &mut call.stream
                {
                    stream.data(params);
                }
            }
            Some("stream_end") => {
                if let Some(call) = self.calls.iter_mut().filter(|call| call.is_open()).find(of_stream)
                    && let Some(stream) = &mut call.stream
                {
                    stream.end(params);
                }
            }
            _ => {
                if let (ServerRequest::Answer, Some(id)) =
                    (self.config.choices.server_requests, message.get("id"))
                {
                    let mut text = b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"Method not found\"},\"id\":".to_vec();
                    write_value(&mut text, id);
                    text.extend_from_slice(b"}\n");
                    self.out.extend_from_slice(&text);
                }
            }
        }
    }

    /// Handles an error with a null id. It may end the only pending call.
    fn error_for_nobody(&mut self, message: &Value, now: Millis) {
        if self.config.choices.null_id_error == NullIdError::Ignore {
            return;
        }
        if let Some(at) = self.lone()
            && let Answer::Error(error) = self.parts.reader.read(message)
        {
            self.finish(at, &Outcome::Error(error.error), now);
        }
    }

    /// The only pending call, if there is exactly one.
    fn lone(&self) -> Option<usize> {
        let mut open = self.calls.iter().enumerate().filter(|(_, call)| call.is_open());
        let (at, call) = open.next()?;
        (open.next().is_none() && matches!(call.phase, Phase::InFlight(_))).then_some(at)
    }

    fn answer(&mut self, at: usize, answer: Answer, now: Millis) {
        let call = &mut self.calls[at];
        let retry = call.spec.retry;
        match answer {
            Answer::Error(error) if error.transient && call.attempts < retry.max_attempts => {
                let k = call.attempts.saturating_sub(1);
                let delay_ms = self.parts.backoff.delay_ms(k, retry.base_ms, error.retry_after_ms);
                let again = now.saturating_add(delay_ms);
                if again < call.deadline() {
                    call.phase = Phase::Resting(again);
                } else if self.config.choices.retry_past_timeout == RetryPastTimeout::Timeout {
                    call.phase = Phase::Resting(Millis::MAX);
                } else {
                    self.finish(at, &Outcome::Error(error.error), now);
                }
            }
            Answer::Result(result) => self.finish(at, &Outcome::Result(result), now),
            Answer::Error(error) => self.finish(at, &Outcome::Error(error.error), now),
            Answer::Invalid => self.finish(at, &Outcome::Invalid, now),
        }
    }

    /// Ends calls whose time limit is over, and sends those whose delay is over.
    fn look_at_the_clock(&mut self, now: Millis) {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            if call.is_open() && now >= call.deadline() {
                self.finish(at, &Outcome::Timeout, now);
            } else if matches!(call.phase, Phase::Resting(again) if again <= now) {
                self.send(&[at], false, now);
            }
        }
    }

    fn server_gone(&mut self, now: Millis) {
        self.deserted = true;
        for at in 0..self.calls.len() {
            if self.calls[at].is_open() {
                self.finish(at, &Outcome::Disconnected, now);
            }
        }
    }

    fn take(&mut self, mut input: &[u8], ended: bool, now: Millis) {
        // The reader lends its lines, so it is taken out while they are handled.
        let Some(mut reader) = self.reader.take() else { return };
        while !input.is_empty() {
            match reader.next(&mut input) {
                Some(Frame::Line(line)) => self.line(line, now),
                Some(Frame::TooLong) => self.too_long(now),
                None => {}
            }
        }
        if ended && let Some(Frame::Line(line)) = reader.finish() {
            self.line(line, now);
        }
        self.reader = Some(reader);
    }

    /// Ends the only pending call. Otherwise the line could belong to any call.
    fn too_long(&mut self, now: Millis) {
        if let Some(at) = self.lone() {
            self.finish(at, &Outcome::TooLarge, now);
        }
    }

    /// Sends what is ready and writes the results. Then asks for the next wake-up, or exits.
    fn settle(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.go_on(now);
        if !self.lines.is_empty() {
            actions.push(Action::Append(std::mem::take(&mut self.lines)));
        }
        if !self.out.is_empty() {
            actions.push(Action::Stdout(std::mem::take(&mut self.out)));
        }
        if self.calls.iter().all(|call| call.phase == Phase::Done) {
            actions.push(Action::Exit(STATUS_DONE));
            return;
        }
        let next = |call: &Call| match call.phase {
            Phase::InFlight(_) => Some(call.deadline()),
            Phase::Resting(again) => Some(again.min(call.deadline())),
            Phase::Waiting | Phase::Done => None,
        };
        if let Some(at) = self.calls.iter().filter_map(next).min() {
            actions.push(Action::WakeAt(at));
        }
    }
}

impl Machine for Client {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.settle(now, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        // A response is late even if it lay in the pipe before the deadline.
        self.look_at_the_clock(now);
        match event {
            Event::Stdin(bytes) => self.take(bytes, false, now),
            Event::StdinEof => {
                self.take(&[], true, now);
                self.server_gone(now);
            }
            Event::Terminate => {
                actions.push(Action::Exit(STATUS_TERMINATED));
                return;
            }
            _ => {}
        }
        self.settle(now, actions);
    }
}

/// True if two ids have the same type and value. Numbers are compared by value.
fn same_id(a: &Value, b: &Value) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

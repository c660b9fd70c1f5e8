//! The server: one line in, messages out.

use std::collections::{BTreeMap, BTreeSet};

use super::choices::{Batch, BlankLine, Cancelled, EarlyRequest, InvalidUtf8, PendingAtEof, StrayResponse};
use super::jobs::{Ended, Job, Jobs};
use super::message::{self, Failure, METHOD_NOT_FOUND, Message, Outcome};
use super::method::{Answer, Call, Methods, Phase, World};
use super::revision::Revision;
use super::{Components, Config};
use crate::json::{Text, Value, write_value};
use crate::json_rpc::{FailureKind, Lined, Output, is_blank, refusal};
use crate::limits::Limits;
use crate::machine::Millis;

/// A server for lines. Time is a parameter.
pub struct Server {
    config: Config,
    methods: Methods,
    world: World,
    jobs: Jobs,
    batches: BTreeMap<u64, Open>,
    batch_last: u64,
}

/// A batch with unanswered requests.
struct Open {
    /// Number of unanswered requests, plus one while the batch is read.
    waiting: usize,
    /// Answers so far.
    answers: Vec<Value>,
}

impl Server {
    /// Creates a server that has received nothing.
    pub fn new(config: Config, components: Components) -> Self {
        let world = World {
            choices: config.choices,
            newest: config.newest,
            revision: config.newest,
            phase: Phase::New,
            client: Value::Object(Vec::new()),
            catalog: components.catalog,
            tools: components.tools,
            level: 1,
            subscriptions: BTreeSet::new(),
            count: 0,
            tasks: Vec::new(),
            now: 0,
        };
        let methods = components.methods;
        Self { config, methods, world, jobs: Jobs::default(), batches: BTreeMap::new(), batch_last: 0 }
    }

    fn read(&mut self, text: &[u8], now: Millis, out: &mut Vec<Output>) {
        let choices = self.config.choices;
        let replaced;
        let text = if choices.utf8_invalid == InvalidUtf8::Replace {
            replaced = String::from_utf8_lossy(text);
            replaced.as_bytes()
        } else {
            text
        };
        match Value::parse(text, self.config.limits.nesting_max, &choices.policy()) {
            Ok(Value::Array(elements)) => self.batch(elements, now, out),
            Ok(value) => self.message(value, None, now, out),
            Err(error) => self.refuse(refusal(error).into(), out),
        }
    }

    fn batch(&mut self, elements: Vec<Value>, now: Millis, out: &mut Vec<Output>) {
        let is_known = self.world.phase > Phase::New && self.world.revision == Revision::V25a;
        match self.config.choices.mcp_batch {
            Batch::Error if !is_known => {
                return self.refuse(Failure::invalid_request("this revision has no batches"), out);
            }
            Batch::Silent if !is_known => return,
            _ => {}
        }
        if elements.is_empty() {
            return self.refuse(Failure::invalid_request("the batch is empty"), out);
        }
        self.batch_last += 1;
        let number = self.batch_last;
        self.batches.insert(number, Open { waiting: 1, answers: Vec::new() });
        for element in elements {
            self.message(element, Some(number), now, out);
        }
        self.settle(number, None, out);
    }

    fn message(&mut self, value: Value, batch: Option<u64>, now: Millis, out: &mut Vec<Output>) {
        if let Some(open) = batch.and_then(|number| self.batches.get_mut(&number)) {
            open.waiting += 1;
        }
        self.world.now = now;
        match message::read(value, &self.config.choices) {
            Message::Request { id, method, params, has_params } => {
                let answer = if batch.is_some() && method == "initialize" {
                    Some(Err(Failure::invalid_request("initialize stands in no batch")).into())
                } else {
                    self.call(&method, &params, has_params)
                };
                match answer {
                    Some(Answer::Done(outcome)) => self.answer(id, batch, outcome, out),
                    Some(Answer::Later(steps)) => self.jobs.add(id, batch, steps, now),
                    Some(Answer::Task { outcome, number, steps }) => {
                        self.jobs.add_task(number, steps, now);
                        self.answer(id, batch, outcome, out);
                    }
                    None => self.leave(batch, out),
                }
                return;
            }
            Message::Malformed(failure, id) => return self.answer(id, batch, Err(failure), out),
            Message::Notification { method, params: Some(params) } => self.notice(&method, &params, out),
            Message::Response(response) => {
                let is_stray = !self.jobs.respond(&response, now);
                if is_stray && self.config.choices.response_to_server == StrayResponse::Refuse {
                    let failure = Failure::invalid_request("nothing was asked");
                    return self.answer(Value::Null, batch, Err(failure), out);
                }
            }
            Message::Notification { params: None, .. } | Message::Dropped => {}
        }
        self.leave(batch, out);
    }

    /// Answers a request; `None` if it is dropped.
    fn call(&mut self, method: &Text, params: &Value, has_params: bool) -> Option<Answer> {
        let early = self.world.phase == Phase::New && method != "initialize" && method != "ping";
        if early && self.config.choices.mcp_early_request == EarlyRequest::Silent {
            return None;
        }
        let Some(run) = self.methods.get(method) else {
            return Some(Err(Failure::new(METHOD_NOT_FOUND, "no method has this name")).into());
        };
        if early && self.config.choices.mcp_early_request == EarlyRequest::Error {
            return Some(Err(Failure::invalid_request("initialize comes first")).into());
        }
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let token = token.filter(|token| token.as_text().is_some() || token.as_i64().is_some()).cloned();
        Some(run(&Call { params, has_params, token }, &mut self.world))
    }

    fn notice(&mut self, method: &Text, params: &Value, out: &mut Vec<Output>) {
        match method.as_str() {
            Some("notifications/initialized") if self.world.phase == Phase::Opened => {
                self.world.phase = Phase::Ready;
            }
            Some("notifications/cancelled") if self.config.choices.mcp_cancelled == Cancelled::Silent => {
                if let Some(job) = params.get("requestId").and_then(|id| self.jobs.cancel(id)) {
                    self.dismiss(&job, out);
                }
            }
            _ => {}
        }
    }

    /// Ends a call without an answer.
    fn dismiss(&mut self, job: &Job, out: &mut Vec<Output>) {
        out.extend(job.farewell().map(|message| Output::Notice(written(&message))));
        self.leave(job.batch, out);
    }

    fn refuse(&mut self, failure: Failure, out: &mut Vec<Output>) {
        self.answer(Value::Null, None, Err(failure), out);
    }

    fn answer(&mut self, id: Value, batch: Option<u64>, outcome: Outcome, out: &mut Vec<Output>) {
        let is_error = outcome.is_err();
        let response = message::response(id, outcome);
        match batch {
            Some(number) => self.settle(number, Some(response), out),
            None => out.push(reply(&response, is_error)),
        }
    }

    /// Records that a message of a batch needs no answer.
    fn leave(&mut self, batch: Option<u64>, out: &mut Vec<Output>) {
        if let Some(number) = batch {
            self.settle(number, None, out);
        }
    }

    /// Records an answer of a batch, and sends the batch's answers after the last one.
    fn settle(&mut self, number: u64, answer: Option<Value>, out: &mut Vec<Output>) {
        let Some(open) = self.batches.get_mut(&number) else { return };
        open.answers.extend(answer);
        open.waiting -= 1;
        if open.waiting == 0
            && let Some(Open { answers, .. }) = self.batches.remove(&number)
            && !answers.is_empty()
        {
            out.push(reply(&answers.into(), false));
        }
    }
}

fn written(message: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    write_value(&mut text, message);
    text
}

fn reply(message: &Value, is_error: bool) -> Output {
    Output::Reply { ticket: 0, body: Some(written(message)), is_error }
}

impl Lined for Server {
    fn limits(&self) -> &Limits {
        &self.config.limits
    }

    fn line(&mut self, line: &[u8], now: Millis, out: &mut Vec<Output>) {
        if !is_blank(line) {
            self.read(line, now, out);
        } else if self.config.choices.blank_line == BlankLine::Refuse {
            let failure = Failure::new(FailureKind::ParseError.code().into(), "the line is blank");
            self.refuse(failure, out);
        }
    }

    fn too_long(&mut self, out: &mut Vec<Output>) {
        let bytes_max = self.config.limits.rpc_message_bytes_max;
        self.refuse(Failure::invalid_request(format!("a message has at most {bytes_max} bytes")), out);
    }

    fn rest(&mut self, text: &[u8], now: Millis, out: &mut Vec<Output>) {
        self.line(text, now, out);
    }

    fn run(&mut self, now: Millis, out: &mut Vec<Output>) {
        loop {
            let mut said = Vec::new();
            let ended = self.jobs.run(now, &self.world.tasks, &mut said);
            out.extend(said.iter().map(|message| Output::Notice(written(message))));
            let Some(Ended { id, batch, task, outcome }) = ended else { return };
            match task.and_then(|number| self.world.tasks.get_mut(number)) {
                Some(task) => task.end_by(outcome, now),
                None => self.answer(id, batch, outcome, out),
            }
        }
    }

    fn hurry(&mut self, now: Millis, out: &mut Vec<Output>) {
        let latest = match self.config.choices.mcp_eof_pending {
            PendingAtEof::Answer => now + self.config.limits.rpc_eof_grace_ms,
            PendingAtEof::Drop => now,
        };
        for job in self.jobs.drop_after(latest) {
            self.leave(job.batch, out);
        }
    }

    fn is_idle(&self) -> bool {
        self.jobs.len() == 0
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= self.config.limits.rpc_pending_max
    }

    fn wake_at(&self) -> Option<Millis> {
        self.jobs.next_at()
    }
}

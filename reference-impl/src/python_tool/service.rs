//! The service: tool calls and handshakes over HTTP, without the HTTP and without processes.
//!
//! A call becomes the request of a local runner, whose reply becomes the body. Guarantees that a handshake confirmed
//! for a tool apply to every later call of that tool.

use std::collections::{BTreeMap, BTreeSet};

use super::choices::{RefusalStatus, Shortfall};
use super::runner::failure;
use super::{Config, STATUS_TERMINATED};
use crate::json::{Number, Text, Value, write_value};
use crate::machine::Millis;
use crate::refusal::Refusal;

/// Path of handshakes.
pub const HANDSHAKE: &str = "/capabilities/handshake";

/// Default time limit of a tool, in ms.
const TIMEOUT_DEFAULT_MS: Millis = 10_000;

/// Largest time limit of a tool, in ms.
const TIMEOUT_MAX_MS: Millis = 86_400_000;

/// A status with a body; an empty body means none.
pub type Reply = (u16, Vec<u8>);

/// Next step for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send this reply.
    Reply(Reply),
    /// Run a local runner.
    Run {
        /// Request of the runner.
        request: Vec<u8>,
        /// Time limit in ms.
        timeout_ms: Millis,
    },
}

/// Signal to a late runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGCONT.
    Continue,
}

/// End of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status and output; `None` after a signal.
    Exited(Option<i32>, Vec<u8>),
    /// It did not exit in time.
    TimedOut,
    /// It could not be started.
    NotStarted(String),
}

/// The service and the guarantees that it has confirmed.
pub struct Service {
    config: Config,
    /// Confirmed guarantees by the name of the tool.
    assured: BTreeMap<Text, BTreeSet<&'static str>>,
}

impl Service {
    /// Creates a service that has confirmed nothing.
    pub fn new(config: Config) -> Self {
        Self { config, assured: BTreeMap::new() }
    }

    /// Handles a POST. `body` is `None` if it is too large.
    pub fn receive(&mut self, path: &str, body: Option<&[u8]>) -> Step {
        let Some(body) = body else { return Step::Reply((413, Vec::new())) };
        let is_handshake = path == HANDSHAKE;
        if is_handshake && !self.config.has_handshake {
            return Step::Reply((404, Vec::new()));
        }
        let body = self.config.choices.bom.strip(body);
        let parsed = Value::parse(body, self.config.limits.nesting_max, &self.config.choices.policy());
        let asked = match parsed {
            Ok(asked) if asked.as_object().is_some() => {
                if is_handshake {
                    self.handshake(&asked).map(Step::Reply)
                } else {
                    self.call(&asked)
                }
            }
            Ok(_) => Err("a request is one object".into()),
            Err(error) => return Step::Reply((400, refusal(&error.to_string()))),
        };
        asked.unwrap_or_else(|why| Step::Reply(self.refused(&why.to_string())))
    }

    fn refused(&self, why: &str) -> Reply {
        let status = match self.config.choices.refusal_status {
            RefusalStatus::Ok => 200,
            RefusalStatus::BadRequest => 400,
        };
        (status, refusal(why))
    }

    /// Converts a call to the request of a runner. The runner checks the members that both share.
    fn call(&self, call: &Value) -> Result<Step, Refusal> {
        let member = |name: &str| call.get(name).filter(|value| **value != Value::Null);
        if member("kind").is_some_and(|kind| kind.as_str() != Some("python")) {
            return Err("`kind` has to be \"python\"".into());
        }
        if member("project").is_some_and(|project| project.as_object().is_none()) {
            return Err("`project` has to be an object".into());
        }
        let timeout_ms = match member("timeout_ms") {
            None => TIMEOUT_DEFAULT_MS,
            Some(given) => {
                let whole = |number: &Number| number.as_f64() >= 1.0 && number.as_f64().fract() == 0.0;
                match given {
                    Value::Number(number) if whole(number) => {
                        number.as_i64().and_then(|it| it.try_into().ok()).unwrap_or(TIMEOUT_MAX_MS)
                    }
                    _ => return Err("`timeout_ms` has to be a whole number from 1 on".into()),
                }
            }
        };
        let shared = ["protocol_version", "entry", "payload", "trace_id"];
        let shared = shared.into_iter().filter_map(|name| Some((Text::from(name), call.get(name)?.clone())));
        let mut request: Vec<(Text, Value)> = shared.collect();
        let name = member("tool_name");
        request.extend(name.map(|name| (Text::from("tool"), name.clone())));
        if let Some(assured) = name.and_then(Value::as_text).and_then(|name| self.assured.get(name)) {
            let guarantees = assured.iter().map(|name| (Text::from(*name), Value::Bool(true))).collect();
            let context = vec![(Text::from("guarantees"), Value::Object(guarantees))];
            request.push((Text::from("sandbox"), Value::Bool(true)));
            request.push((Text::from("capability_context"), Value::Object(context)));
        }
        let mut text = Vec::new();
        write_value(&mut text, &Value::Object(request));
        Ok(Step::Run { request: text, timeout_ms: timeout_ms.min(TIMEOUT_MAX_MS) })
    }

    fn handshake(&mut self, asked: &Value) -> Result<Reply, Refusal> {
        if !matches!(asked.get("protocol_version"), Some(Value::Number(number)) if number.as_f64() == 1.0) {
            return Err("`protocol_version` has to be 1".into());
        }
        let name = asked.get("tool_name").and_then(Value::as_text).filter(|name| !name.as_bytes().is_empty());
        let name = name.ok_or("`tool_name` has to be a string that is not empty")?;
        if asked.get("runner").is_some_and(|runner| runner.as_str() != Some("service")) {
            return Err("`runner` has to be \"service\"".into());
        }
        let required = asked.get("required_guarantees").and_then(Value::as_object);
        let mut wanted = Vec::new();
        for (guarantee, value) in required.ok_or("`required_guarantees` has to be an object")? {
            if value.as_bool().ok_or("a guarantee has to be true or false")? {
                wanted.push(guarantee);
            }
        }
        let known = |name: &Text| {
            let known = self.config.guarantees.iter().find(|known| name.as_str() == Some(known));
            known.copied()
        };
        let assured: BTreeSet<&'static str> = wanted.iter().filter_map(|name| known(name)).collect();
        let is_whole = wanted.iter().all(|name| known(name).is_some());
        let enforcement = match self.config.choices.handshake_shortfall {
            _ if is_whole => "enforced",
            Shortfall::Partial => "partial",
            Shortfall::None => "none",
            Shortfall::Error => {
                return Ok((200, failure("GuaranteeUnknown", "not every guarantee can be given", None)));
            }
        };
        if enforcement != "none" {
            self.assured.entry(name.clone()).or_default().extend(assured);
        }
        let mut supported: Vec<(Text, Value)> = Vec::new();
        for name in &self.config.guarantees {
            supported.push((Text::from(*name), Value::Bool(enforcement != "none")));
        }
        let reply = Value::Object(vec![
            (Text::from("ok"), Value::Bool(true)),
            (Text::from("enforcement"), Value::from(enforcement)),
            (Text::from("supported_guarantees"), Value::Object(supported)),
            (Text::from("service_version"), Value::from(env!("CARGO_PKG_VERSION"))),
        ]);
        let mut body = Vec::new();
        write_value(&mut body, &reply);
        Ok((200, body))
    }

    /// Reply after the runner's end.
    pub fn answer(&self, ended: Ended) -> Reply {
        match ended {
            Ended::Exited(Some(0), reply) if !reply.is_empty() => (200, reply),
            Ended::Exited(Some(status), reply) if !reply.is_empty() && status != STATUS_TERMINATED => {
                match self.config.choices.refusal_status {
                    RefusalStatus::Ok => (200, reply),
                    RefusalStatus::BadRequest => (400, reply),
                }
            }
            Ended::Exited(..) => (200, failure("ToolExit", "the tool ended its runner", None)),
            Ended::TimedOut => (200, failure("Timeout", "the time of the tool was over", None)),
            Ended::NotStarted(why) => (503, failure("Unavailable", &why, None)),
        }
    }
}

fn refusal(why: &str) -> Vec<u8> {
    failure("BadRequest", why, None)
}

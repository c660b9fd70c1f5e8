//! The calls of a scenario: which are due, and their outcomes.

use super::{CallSpec, Config, MissingCore, Order, Target};
use crate::envelope::choices::Missing;
use crate::envelope::members::{Kind, MEMBERS};
use crate::envelope::validate::complete;
use crate::envelope::{self, Members};
use crate::json::{Value, write_value};
use crate::machine::ChildExit;

/// End of the exchange with a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The program could not be started, or the connection failed.
    Failed,
    /// No complete reply came in time.
    TimedOut,
    /// The reply is over the size limit, or not valid HTTP.
    Unreadable,
    /// The program exited, with this output.
    Exited(ChildExit, Vec<u8>),
    /// The server replied, with this status and body.
    Replied(u16, Vec<u8>),
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A valid envelope.
    Envelope(Members),
    /// A refusal, with its exit status or HTTP status.
    Refused(i32),
    /// No valid envelope.
    Invalid,
    /// No reply in time.
    Timeout,
    /// A counterpart that could not be reached.
    Failed,
    /// An invalid envelope in the scenario, which was not sent.
    BadInput,
}

/// Work to do for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Index of the call in the scenario.
    pub call: usize,
    /// Destination.
    pub target: Target,
    /// Text of the envelope.
    pub request: Vec<u8>,
    /// Time limit for the whole call, in ms.
    pub timeout_ms: u64,
}

/// Next step of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerStep {
    /// A call to make.
    Job(Job),
    /// Result line of a call that has ended.
    Line(Vec<u8>),
}

/// A finished call, for the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCall {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its duration in ms.
    pub elapsed_ms: u64,
}

/// Reads the envelope of a call; `None` if it is invalid.
pub(super) type Accept = Box<dyn Fn(&CallSpec, &Config) -> Option<Members>>;

/// Turns the end of a counterpart into an outcome.
pub(super) type Judge = Box<dyn Fn(&CallSpec, &Config, End) -> Outcome>;

/// Writes the result line of a call.
pub(super) type Line = Box<dyn Fn(&CallSpec, FinishedCall) -> Vec<u8>>;

/// Replaceable parts of a caller.
pub struct Parts {
    /// Reads the scenario's envelopes.
    pub accept: Accept,
    /// Judges the end of a counterpart.
    pub judge: Judge,
    /// Writes result lines.
    pub line: Line,
    /// Final edit of a request's text.
    pub present: Box<dyn Fn(Vec<u8>) -> Vec<u8>>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            accept: Box::new(accept),
            judge: Box::new(judge),
            line: Box::new(line),
            present: Box::new(|text| text),
        }
    }
}

/// A caller of the scenario's engines.
pub struct Caller {
    config: Config,
    parts: Parts,
    begun: Vec<bool>,
    ended: Vec<bool>,
}

impl Caller {
    /// Creates a caller that has made no call.
    pub fn new(config: Config, parts: Parts) -> Self {
        let calls = config.scenario.calls.len();
        Self { config, parts, begun: vec![false; calls], ended: vec![false; calls] }
    }

    /// Next step that is possible now. Ask again after each end, until it returns `None` and no call is running.
    pub(crate) fn due(&mut self) -> Option<CallerStep> {
        let is_under_way = self.begun.iter().zip(&self.ended).any(|(begun, ended)| begun & !ended);
        if is_under_way && self.config.choices.order_of_calls == Order::OneByOne {
            return None;
        }
        let is_due = |at: &usize| {
            !self.begun[*at] && self.config.scenario.calls[*at].after.iter().all(|other| self.ended[*other])
        };
        let at = (0..self.begun.len()).find(is_due)?;
        self.begun[at] = true;
        let call = &self.config.scenario.calls[at];
        let Some(members) = (self.parts.accept)(call, &self.config) else {
            return Some(CallerStep::Line(
                self.tell(at, FinishedCall { outcome: Outcome::BadInput, elapsed_ms: 0 }),
            ));
        };
        let request = (self.parts.present)(text(members));
        let (target, timeout_ms) = (call.target.clone(), call.timeout_ms);
        Some(CallerStep::Job(Job { call: at, target, request, timeout_ms }))
    }

    /// Takes the end of a call and returns its result line.
    pub fn end(&mut self, call: usize, end: End, elapsed_ms: u64) -> Vec<u8> {
        let outcome = (self.parts.judge)(&self.config.scenario.calls[call], &self.config, end);
        self.tell(call, FinishedCall { outcome, elapsed_ms })
    }

    fn tell(&mut self, call: usize, told: FinishedCall) -> Vec<u8> {
        self.ended[call] = true;
        (self.parts.line)(&self.config.scenario.calls[call], told)
    }
}

/// Validates and completes an envelope of the scenario as an engine would.
pub(super) fn accept(call: &CallSpec, config: &Config) -> Option<Members> {
    let mut engine = config.engine.clone();
    engine.choices.missing_required = Missing::Refuse;
    complete(call.envelope.clone(), &engine).ok()
}

/// Members as one line of JSON.
fn text(members: Members) -> Vec<u8> {
    let mut text = Vec::new();
    write_value(&mut text, &Value::Object(members));
    text.push(b'\n');
    text
}

pub(super) fn judge(call: &CallSpec, config: &Config, end: End) -> Outcome {
    let reply = match end {
        End::Failed | End::Exited(ChildExit::Signal(_), _) => return Outcome::Failed,
        End::TimedOut => return Outcome::Timeout,
        End::Unreadable => return Outcome::Invalid,
        End::Exited(ChildExit::Code(0), reply) | End::Replied(200, reply) => reply,
        End::Exited(ChildExit::Code(status), _) => return Outcome::Refused(status),
        End::Replied(status, _) => return Outcome::Refused(i32::from(status)),
    };
    let value = Value::parse(&reply, config.engine.limits.nesting_max, &config.engine.choices.policy());
    value.ok().and_then(|value| read(call, config, value)).map_or(Outcome::Invalid, Outcome::Envelope)
}

/// Completed envelope of a reply; `None` if it is invalid or has other ids than the call.
pub(super) fn read(call: &CallSpec, config: &Config, reply: Value) -> Option<Members> {
    let ids = MEMBERS.iter().filter(|row| matches!(row.kind, Kind::Id(_)));
    for row in ids {
        let (sent, came) = (call.envelope.get(row.name), reply.get(row.name)?);
        if sent.is_some_and(|sent| sent != came) {
            return None;
        }
    }
    let mut engine: envelope::Config = config.engine.clone();
    engine.choices.missing_required = match config.choices.missing_core_in_reply {
        MissingCore::Default => Missing::Default,
        MissingCore::Invalid => Missing::Refuse,
    };
    complete(reply, &engine).ok()
}

pub(super) fn line(call: &CallSpec, told: FinishedCall) -> Vec<u8> {
    let (word, more) = match told.outcome {
        Outcome::Envelope(members) => ("envelope", Some(("envelope", Value::Object(members)))),
        Outcome::Refused(status) => ("refused", Some(("status", envelope::number(i64::from(status))))),
        Outcome::Invalid => ("invalid", None),
        Outcome::Timeout => ("timeout", None),
        Outcome::Failed => ("failed", None),
        Outcome::BadInput => ("bad_input", None),
    };
    let elapsed_ms = envelope::number(i64::try_from(told.elapsed_ms).unwrap_or(i64::MAX));
    let mut members = vec![
        ("ref".into(), Value::from(call.name.as_str())),
        ("outcome".into(), Value::from(word)),
        ("elapsed_ms".into(), elapsed_ms),
    ];
    members.extend(more.map(|(name, value)| (name.into(), value)));
    text(members)
}

#[cfg(test)]
mod tests {
    use super::super::{Choices, REPLY_BYTES_MAX, Scenario};
    use super::*;

    const CORE: &str = r#""envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"u","session_id":"sess_0123456789abcdef","raw_input":"","outputs":{},"current_stage":"start","#;

    fn config(order: Order) -> Config {
        let call = |name: &str, more: &str| {
            format!(
                r#"{{"ref":"{name}","transport":"stdio","command":["x"],"envelope":{{{CORE}"terminated":false}}{more}}}"#
            )
        };
        let text = format!(r#"{{"calls":[{},{}]}}"#, call("a", ""), call("b", r#","after":["a"]"#));
        Config {
            scenario: Scenario::parse(text.as_bytes()).unwrap(),
            choices: Choices { order_of_calls: order, ..Choices::default() },
            engine: envelope::Config::default(),
            reply_bytes_max: REPLY_BYTES_MAX,
        }
    }

    #[test]
    fn a_call_waits_for_those_before_it() {
        let mut caller = Caller::new(config(Order::Together), Parts::default());
        assert!(matches!(caller.due(), Some(CallerStep::Job(Job { call: 0, timeout_ms: 10_000, .. }))));
        assert_eq!(caller.due(), None);
        let line = caller.end(0, End::TimedOut, 7);
        assert_eq!(line, b"{\"ref\":\"a\",\"outcome\":\"timeout\",\"elapsed_ms\":7}\n");
        assert!(matches!(caller.due(), Some(CallerStep::Job(Job { call: 1, .. }))));
    }

    #[test]
    fn a_reply_is_an_envelope_or_invalid() {
        let config = config(Order::OneByOne);
        let call = &config.scenario.calls[0];
        let of = |reply: String| judge(call, &config, End::Exited(ChildExit::Code(0), reply.into_bytes()));
        let Outcome::Envelope(members) = of(format!("{{{CORE}\"terminated\":true}}")) else { panic!() };
        assert!(envelope::get(&members, "max_iterations").is_some());
        for wrong in [
            String::new(),
            format!("{{{CORE}\"terminated\":1}}"),
            format!("{{{CORE}\"terminated\":true}}{{}}"),
            format!("{{{}\"terminated\":true}}", CORE.replace("env_0", "env_1")),
            format!("{{{}\"terminated\":true}}", CORE.replace("\"request_id\"", "\"other\"")),
        ] {
            assert_eq!(of(wrong), Outcome::Invalid);
        }
        assert_eq!(judge(call, &config, End::Replied(302, Vec::new())), Outcome::Refused(302));
    }
}

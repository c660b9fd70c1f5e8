//! The calls of a scenario: which are due, and what comes of each.

use super::{CallSpec, Config, MissingCore, Order, Target};
use crate::envelope::choices::Missing;
use crate::envelope::members::{Kind, MEMBERS};
use crate::envelope::validate::complete;
use crate::envelope::{self, Members};
use crate::json::{Value, write_value};
use crate::machine::ChildExit;

/// How the counterpart of a call came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The program could not be started, or the connection not be made or kept.
    Failed,
    /// Nothing whole came in time.
    TimedOut,
    /// The reply is longer than what is taken, or it is no HTTP reply.
    Unreadable,
    /// The program ended, having written this.
    Exited(ChildExit, Vec<u8>),
    /// The server replied with this status and body.
    Replied(u16, Vec<u8>),
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an envelope.
    Envelope(Members),
    /// With an exit status or HTTP status.
    Refused(i32),
    /// Without one valid envelope.
    Invalid,
    /// Not in time.
    Timeout,
    /// By the counterpart's absence.
    Failed,
    /// Before it began.
    BadInput,
}

/// What is to be done for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its place in the scenario.
    pub call: usize,
    /// Where it goes.
    pub target: Target,
    /// The text of the envelope.
    pub request: Vec<u8>,
    /// Time for all of it, in ms.
    pub timeout_ms: u64,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Something is to be done.
    Job(Job),
    /// A call has ended: its line in the results.
    Line(Vec<u8>),
}

/// A call that has ended, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// How.
    pub outcome: Outcome,
    /// How long it took, in ms.
    pub elapsed_ms: u64,
}

/// Takes what the scenario says: the envelope to send, or none where it is not acceptable.
pub type Accept = Box<dyn Fn(&CallSpec, &Config) -> Option<Members>>;

/// What the end of a counterpart comes to.
pub type Judge = Box<dyn Fn(&CallSpec, &Config, End) -> Outcome>;

/// The line that tells of it.
pub type Line = Box<dyn Fn(&CallSpec, Told) -> Vec<u8>>;

/// The replaceable parts of a caller.
pub struct Parts {
    /// Reads the scenario's envelope.
    pub accept: Accept,
    /// Judges what came.
    pub judge: Judge,
    /// Writes results.
    pub line: Line,
    /// The text of a request, in another spelling.
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

/// A caller.
pub struct Caller {
    config: Config,
    parts: Parts,
    begun: Vec<bool>,
    ended: Vec<bool>,
}

impl Caller {
    /// A caller that has done nothing.
    pub fn new(config: Config, parts: Parts) -> Self {
        let calls = config.scenario.calls.len();
        Self { config, parts, begun: vec![false; calls], ended: vec![false; calls] }
    }

    /// What can be done now; asked again after each end until there is nothing, and nothing is under way.
    pub fn due(&mut self) -> Option<Due> {
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
            return Some(Due::Line(self.tell(at, Told { outcome: Outcome::BadInput, elapsed_ms: 0 })));
        };
        let request = (self.parts.present)(text(members));
        let (target, timeout_ms) = (call.target.clone(), call.timeout_ms);
        Some(Due::Job(Job { call: at, target, request, timeout_ms }))
    }

    /// Takes how a job ended; gives the line for the results.
    pub fn end(&mut self, call: usize, end: End, elapsed_ms: u64) -> Vec<u8> {
        let outcome = (self.parts.judge)(&self.config.scenario.calls[call], &self.config, end);
        self.tell(call, Told { outcome, elapsed_ms })
    }

    fn tell(&mut self, call: usize, told: Told) -> Vec<u8> {
        self.ended[call] = true;
        (self.parts.line)(&self.config.scenario.calls[call], told)
    }
}

/// Takes an envelope of the scenario as an engine would, and completes it.
pub(super) fn accept(call: &CallSpec, config: &Config) -> Option<Members> {
    let mut engine = config.engine.clone();
    engine.choices.missing_required = Missing::Refuse;
    complete(call.envelope.clone(), &engine).ok()
}

/// A line of JSON.
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

/// The envelope that a reply holds, completed; none where it is not valid or not that of the call.
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

pub(super) fn line(call: &CallSpec, told: Told) -> Vec<u8> {
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
        assert!(matches!(caller.due(), Some(Due::Job(Job { call: 0, timeout_ms: 10_000, .. }))));
        assert_eq!(caller.due(), None);
        let line = caller.end(0, End::TimedOut, 7);
        assert_eq!(line, b"{\"ref\":\"a\",\"outcome\":\"timeout\",\"elapsed_ms\":7}\n");
        assert!(matches!(caller.due(), Some(Due::Job(Job { call: 1, .. }))));
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

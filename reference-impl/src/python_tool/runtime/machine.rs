//! The calls of a scenario: which are due, and their outcomes.

use super::judge::{assured, handshake, judge};
use super::{Config, Contained, End, HANDSHAKE_PATH, Order, Outcome, Ready, Target, Unsandboxed};
use crate::envelope::{Members, number, object, set};
use crate::json::{Value, write_value};

/// Work to do for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Index of the call in the scenario.
    pub call: usize,
    /// Program to start, or server to connect to.
    pub target: Target,
    /// Request to send.
    pub request: Vec<u8>,
    /// Remaining time in ms.
    pub timeout_ms: u64,
}

/// Next step of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeStep {
    /// A job to do.
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
    /// Reply to its handshake, and true if that confirms all required guarantees.
    pub handshake: Option<(Value, bool)>,
    /// True if it continued without assurance.
    pub is_unassured: bool,
}

/// Creates the members of a call's request.
pub(super) type Request = Box<dyn Fn(&Ready, &Config) -> Members>;

/// Creates the members of a call's handshake.
pub(super) type Handshake = Box<dyn Fn(&Ready) -> Members>;

/// Judges if the end of a handshake confirms all required guarantees.
pub(super) type Assured = Box<dyn Fn(&Ready, &Config, &End) -> bool>;

/// Turns the end of a job into an outcome.
pub(super) type Judge = Box<dyn Fn(&Ready, &Config, End) -> Outcome>;

/// Creates the members of a result line.
pub(super) type Line = Box<dyn Fn(&str, Option<&Ready>, FinishedCall) -> Members>;

/// Replaceable parts of a runtime.
pub struct Parts {
    /// Creates requests.
    pub request: Request,
    /// Creates handshakes.
    pub handshake: Handshake,
    /// Judges the replies to handshakes.
    pub assured: Assured,
    /// Part of a handshake's duration that counts against the call's time limit, in ms.
    pub counted: fn(u64) -> u64,
    /// Judges the end of a call.
    pub judge: Judge,
    /// Creates result lines.
    pub line: Line,
    /// Final edit of a line's text.
    pub text: fn(Vec<u8>) -> Vec<u8>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            request: Box::new(request),
            handshake: Box::new(shake),
            assured: Box::new(assured),
            counted: |elapsed_ms| elapsed_ms,
            judge: Box::new(judge),
            line: Box::new(line),
            text: |text| text,
        }
    }
}

/// Progress of a call.
#[derive(Clone, Default)]
struct CallProgress {
    begun: bool,
    ended: bool,
    /// True while it waits for the reply to its handshake.
    asks: bool,
    spent_ms: u64,
    handshake: Option<(Value, bool)>,
    is_unassured: bool,
}

/// A runtime with the progress of its calls.
pub struct Runtime {
    config: Config,
    parts: Parts,
    courses: Vec<CallProgress>,
}

impl Runtime {
    /// Creates a runtime that has done nothing.
    pub fn new(config: Config, parts: Parts) -> Self {
        let courses = vec![CallProgress::default(); config.scenario.calls.len()];
        Self { config, parts, courses }
    }

    /// Next step that is possible now. Ask again after each end, until it returns `None` and no job is running.
    pub(crate) fn due(&mut self) -> Option<RuntimeStep> {
        let is_under_way = self.courses.iter().any(|course| course.begun && !course.ended);
        if is_under_way && self.config.choices.order_of_calls == Order::OneByOne {
            return None;
        }
        let calls = &self.config.scenario.calls;
        let is_due = |at: &usize| {
            !self.courses[*at].begun && calls[*at].after.iter().all(|other| self.courses[*other].ended)
        };
        let at = (0..calls.len()).find(is_due)?;
        self.courses[at].begun = true;
        let ready = match &calls[at].ready {
            Ok(ready) => ready.clone(),
            Err(why) => {
                let why = why.to_string();
                return Some(self.tell(at, Outcome::Other("bad_call", why)));
            }
        };
        let overrides = self.config.has_override && ready.is("unsafe_override");
        let choices = &self.config.choices;
        let why = match &ready.target {
            Target::Container(..) if !self.config.has_containers => {
                let outcome = Outcome::Other("unavailable", "containers are not run".to_owned());
                return Some(self.tell(at, outcome));
            }
            _ if ready.required.is_empty() || overrides && !matches!(ready.target, Target::Service(_)) => {
                None
            }
            Target::Local(_)
                if !ready.is("sandbox") && choices.local_guarantees_unsandboxed == Unsandboxed::Blocked =>
            {
                Some("guarantees need a sandbox")
            }
            Target::Container(..) if choices.container_guarantees == Contained::Blocked => {
                Some("a container gives no guarantees")
            }
            Target::Service(url) => {
                self.courses[at].asks = true;
                let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                let target = Target::Service(format!("{origin}{HANDSHAKE_PATH}"));
                return Some(self.job(at, target, (self.parts.handshake)(&ready), ready.timeout_ms));
            }
            _ => None,
        };
        Some(match why {
            Some(why) => self.tell(at, Outcome::Other("blocked", why.to_owned())),
            None => self.execute(at, &ready),
        })
    }

    fn execute(&self, at: usize, ready: &Ready) -> RuntimeStep {
        self.job(at, ready.target.clone(), (self.parts.request)(ready, &self.config), ready.timeout_ms)
    }

    fn job(&self, call: usize, target: Target, members: Members, timeout_ms: u64) -> RuntimeStep {
        let rounded_ms = timeout_ms.div_ceil(1_000) * 1_000;
        let timeout_ms = if self.config.choices.round_timeout_up { rounded_ms } else { timeout_ms };
        let timeout_ms = timeout_ms.saturating_sub(self.courses[call].spent_ms);
        RuntimeStep::Job(Job { call, target, request: text(members), timeout_ms })
    }

    /// Takes the end of a job and returns the next step of its call.
    pub fn end(&mut self, at: usize, end: End, elapsed_ms: u64) -> RuntimeStep {
        let is_counted = self.courses[at].asks;
        self.courses[at].spent_ms += if is_counted { (self.parts.counted)(elapsed_ms) } else { elapsed_ms };
        let ready = match &self.config.scenario.calls[at].ready {
            Ok(ready) => ready.clone(),
            Err(why) => {
                let why = why.to_string();
                return self.tell(at, Outcome::Other("bad_call", why));
            }
        };
        if !std::mem::take(&mut self.courses[at].asks) {
            let outcome = (self.parts.judge)(&ready, &self.config, end);
            return self.tell(at, outcome);
        }
        let is_assured = (self.parts.assured)(&ready, &self.config, &end);
        let reply = handshake(&self.config, &end).filter(|reply| reply.as_object().is_some());
        let reply = reply.unwrap_or_else(|| object([("ok", Value::Bool(false))]));
        self.courses[at].handshake = Some((reply, is_assured));
        let overrides = self.config.has_override && ready.is("unsafe_override");
        self.courses[at].is_unassured = !is_assured && overrides;
        if is_assured || overrides {
            return self.execute(at, &ready);
        }
        self.tell(at, Outcome::Other("blocked", "the guarantees are not assured".to_owned()))
    }

    fn tell(&mut self, at: usize, outcome: Outcome) -> RuntimeStep {
        let course = &mut self.courses[at];
        course.ended = true;
        let (handshake, is_unassured) = (course.handshake.take(), course.is_unassured);
        let told = FinishedCall { outcome, elapsed_ms: course.spent_ms, handshake, is_unassured };
        let call = &self.config.scenario.calls[at];
        let members = (self.parts.line)(&call.name, call.ready.as_ref().ok(), told);
        RuntimeStep::Line((self.parts.text)(text(members)))
    }
}

/// Members as one line of JSON.
fn text(members: Members) -> Vec<u8> {
    let mut text = Vec::new();
    write_value(&mut text, &Value::Object(members));
    text.push(b'\n');
    text
}

/// Whole number.
fn whole(value: u64) -> Value {
    number(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Copies members of the call into the line.
fn copy(members: &mut Members, ready: &Ready, names: &[&str]) {
    for name in names {
        if let Some(value) = ready.told.get(name) {
            set(members, name, value.clone());
        }
    }
}

pub(super) fn request(ready: &Ready, config: &Config) -> Members {
    let mut members: Members = vec![("protocol_version".into(), number(1))];
    if matches!(ready.target, Target::Local(_)) {
        copy(&mut members, ready, &["tool", "entry", "payload", "sandbox", "trace_id"]);
        if let Some(guarantees) = ready.told.get("guarantees") {
            set(&mut members, "capability_context", object([("guarantees", guarantees.clone())]));
        }
        return members;
    }
    set(&mut members, "tool_name", ready.told.get("tool").cloned().unwrap_or(Value::Null));
    set(&mut members, "kind", Value::from("python"));
    copy(&mut members, ready, &["entry", "payload", "trace_id"]);
    set(&mut members, "timeout_ms", whole(ready.timeout_ms));
    if let Some(project) = &config.scenario.project {
        set(&mut members, "project", project.clone());
    }
    members
}

pub(super) fn shake(ready: &Ready) -> Members {
    let required = ready.required.iter().map(|name| (name.as_str().into(), Value::Bool(true)));
    vec![
        ("protocol_version".into(), number(1)),
        ("tool_name".into(), ready.told.get("tool").cloned().unwrap_or(Value::Null)),
        ("runner".into(), Value::from("service")),
        ("required_guarantees".into(), Value::Object(required.collect())),
    ]
}

pub(super) fn line(name: &str, ready: Option<&Ready>, told: FinishedCall) -> Members {
    let (word, member, value) = match &told.outcome {
        Outcome::Result(result) => ("result", "result", result.clone()),
        Outcome::ToolError(error) => ("tool_error", "error", error.clone()),
        Outcome::Other(word, why) => {
            let error = [("type", Value::from(*word)), ("message", Value::from(why.as_str()))];
            (*word, "error", object(error))
        }
    };
    let mut members = vec![
        ("ref".into(), Value::from(name)),
        ("outcome".into(), Value::from(word)),
        (member.into(), value),
    ];
    if let Some(ready) = ready {
        members.push(("trace".into(), Value::Object(trace(ready, &told))));
    }
    members
}

fn trace(ready: &Ready, told: &FinishedCall) -> Members {
    let runner = ready.told.get("runner").cloned().unwrap_or(Value::Null);
    let source = ready.told.get("resolved_source").cloned().unwrap_or_else(|| Value::from("binding"));
    let mut members: Members = vec![
        ("runner".into(), runner),
        ("resolved_source".into(), source),
        ("timeout_ms".into(), whole(ready.timeout_ms)),
        ("duration_ms".into(), whole(told.elapsed_ms)),
        ("protocol_version".into(), number(1)),
    ];
    match &ready.target {
        Target::Local(argv) => {
            let path = argv.first().map(String::as_str).unwrap_or_default();
            for (name, value) in [("python_env", "as given"), ("python_path", path), ("deps_source", "none")]
            {
                set(&mut members, name, Value::from(value));
            }
            copy(&mut members, ready, &["sandbox"]);
        }
        Target::Service(url) => {
            set(&mut members, "service_url", Value::from(without_credentials(url).as_str()))
        }
        Target::Container(..) => {
            copy(&mut members, ready, &["container_runtime", "image", "command"]);
            if !ready.required.is_empty() {
                set(&mut members, "container_enforcement", Value::from("none"));
            }
        }
    }
    if let Some((reply, is_assured)) = &told.handshake {
        let word = reply.get("enforcement").and_then(Value::as_str);
        let word = word.filter(|word| *is_assured || ["partial", "none"].contains(word)).unwrap_or("none");
        set(&mut members, "enforcement_level", Value::from(word));
        set(&mut members, "service_handshake", reply.clone());
    }
    if let Some(pack) = ready.told.get("pack").and_then(Value::as_object) {
        pack.iter().for_each(|(name, value)| set(&mut members, &name.to_lossy(), value.clone()));
    }
    if told.is_unassured {
        set(&mut members, "unsafe_override", Value::Bool(true));
    }
    members
}

/// URL without the credentials in its authority.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::super::{Choices, REPLY_BYTES_MAX, Scenario};
    use super::*;
    use crate::limits::Limits;
    use crate::machine::ChildExit;

    fn runtime(calls: &str) -> Runtime {
        let config = Config {
            scenario: Scenario::parse(format!(r#"{{"calls":[{calls}]}}"#).as_bytes()).unwrap(),
            choices: Choices::default(),
            limits: Limits::default(),
            reply_bytes_max: REPLY_BYTES_MAX,
            has_override: true,
            has_containers: true,
            proxy: None,
        };
        Runtime::new(config, Parts::default())
    }

    fn call(name: &str, more: &str) -> String {
        format!(r#"{{"ref":"{name}","tool":"t","entry":"m:f","payload":{{}},{more}}}"#)
    }

    #[test]
    fn a_service_is_asked_for_its_guarantees_first() {
        let more = r#""runner":"service","url":"http://u:p@h:1/x","guarantees":{"no_network":true}"#;
        for (supported, goes_on) in [("true", true), ("1", false), ("false", false)] {
            let mut runtime = runtime(&call("a", more));
            let Some(RuntimeStep::Job(job)) = runtime.due() else { panic!() };
            assert_eq!(job.target, Target::Service("http://u:p@h:1/capabilities/handshake".to_owned()));
            let reply = format!(
                r#"{{"ok":true,"enforcement":"enforced","supported_guarantees":{{"no_network":{supported}}}}}"#
            );
            let due = runtime.end(0, End::Replied(200, reply.into_bytes()), 400);
            match due {
                RuntimeStep::Job(job) => assert!(goes_on && job.timeout_ms == 9_600),
                RuntimeStep::Line(line) => {
                    let line = String::from_utf8(line).unwrap();
                    assert!(
                        !goes_on && line.contains("\"blocked\"") && line.contains("\"http://h:1/x\""),
                        "{line}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_wrong_call_is_not_made_and_the_others_are() {
        let local = r#""runner":"local","command":["x"]"#;
        let circle = call("a", &format!(r#"{local},"after":["b"]"#));
        let other = call("b", &format!(r#"{local},"after":["a"]"#));
        let mut runtime = runtime(&[circle, other, call("c", local)].join(","));
        assert!(matches!(runtime.due(), Some(RuntimeStep::Line(_))));
        assert!(matches!(runtime.due(), Some(RuntimeStep::Line(_))));
        assert!(matches!(runtime.due(), Some(RuntimeStep::Job(Job { call: 2, .. }))));
        let reply = br#"{"ok":true,"protocol_version":1,"result":null}"#.to_vec();
        let RuntimeStep::Line(line) = runtime.end(2, End::Exited(ChildExit::Code(0), reply), 5) else {
            panic!()
        };
        assert!(String::from_utf8(line).unwrap().contains(r#""outcome":"result","result":null"#));
    }
}

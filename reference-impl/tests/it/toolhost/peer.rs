//! A toolhost with a virtual clock. It runs until it wants input, and skips all waiting times.

use peerproof_reference::machine::{Action, Event, FetchError, Fetched, Machine};
use peerproof_reference::toolhost::{Config, Mode, machine};
use serde_json::{Value, json};

pub(super) struct Peer {
    machine: Box<dyn Machine + Send>,
    pub now: u64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Option<i32>,
    pub aborted: bool,
    /// Hosts and paths that were requested, and the replies still to be given.
    pub fetched: Vec<String>,
    pub web: Vec<Result<Fetched, FetchError>>,
    /// Number of writes.
    pub writes: usize,
}

impl Peer {
    pub(super) fn new(config: Config) -> Self {
        Self {
            machine: machine(config),
            now: 1_000_000,
            stdout: Vec::new(),
            stderr: Vec::new(),
            exit: None,
            aborted: false,
            fetched: Vec::new(),
            web: Vec::new(),
            writes: 0,
        }
    }

    pub(super) fn serve() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Mode::Serve);
        change(&mut config);
        Self::new(config)
    }

    pub(super) fn chosen(choice: &str) -> Self {
        let (key, value) = choice.split_once('=').unwrap();
        Self::with(|config| config.choices.set(key, value).unwrap())
    }

    /// Delivers one event without carrying out the resulting actions.
    pub(super) fn event(&mut self, event: Event<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        self.machine.handle(event, self.now, &mut actions);
        actions
    }

    /// Delivers one event and carries out everything that follows from it.
    pub(super) fn deliver(&mut self, event: Event<'_>) {
        let mut actions = self.event(event);
        while !actions.is_empty() {
            let mut next = Vec::new();
            for action in actions {
                assert!(self.exit.is_none() && !self.aborted, "nothing follows the end");
                match action {
                    Action::Stdout(bytes) => {
                        self.writes += 1;
                        self.stdout.extend(bytes);
                    }
                    Action::Stderr(bytes) => self.stderr.extend(bytes),
                    Action::WakeAt(time) => {
                        self.now = self.now.max(time);
                        next.extend(self.event(Event::Wake));
                    }
                    Action::Fetch { host, port, path, .. } => {
                        self.fetched.push(format!("{host} {port} {path}"));
                        let reply = self.web.remove(0);
                        next.extend(self.event(Event::Fetched(reply)));
                    }
                    Action::Exit(status) => self.exit = Some(status),
                    Action::Abort => self.aborted = true,
                    other => panic!("unexpected {other:?}"),
                }
            }
            actions = next;
        }
    }

    pub(super) fn wants_stdin(&self) -> bool {
        self.machine.wants_stdin()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.deliver(Event::Stdin(bytes));
    }

    pub(super) fn close(&mut self) {
        self.deliver(Event::StdinEof);
    }

    /// Replies since the last call.
    pub(super) fn replies(&mut self) -> Vec<Value> {
        let text = String::from_utf8(std::mem::take(&mut self.stdout)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends one raw line and returns its only reply.
    pub(super) fn line(&mut self, line: &str) -> Value {
        self.write(line.as_bytes());
        self.write(b"\n");
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1, "{line:.200} → {replies:?}");
        check(&replies[0]);
        replies.remove(0)
    }

    pub(super) fn send(&mut self, request: Value) -> Value {
        self.line(&request.to_string())
    }

    /// Calls the tool of a role.
    pub(super) fn call(&mut self, role: &str, input: Value) -> Value {
        self.send(request(role, input))
    }

    /// Current value of the tool `counter`. Each call increments it.
    pub(super) fn count(&mut self) -> u64 {
        output(&self.call("COUNTER", json!({})))["count"].as_u64().unwrap()
    }

    /// `content_json` of slot `n`; `None` if it is empty.
    pub(super) fn slot(&mut self, n: usize) -> Option<String> {
        let artifact = output(&self.call("GET", json!({ "slot": n })))["artifact"].clone();
        artifact["content_json"].as_str().map(str::to_owned)
    }
}

pub(super) fn aid(role: &str) -> String {
    format!("AID.PEERPROOF.{role}.v1")
}

pub(super) fn request(role: &str, input: Value) -> Value {
    json!({ "aid": aid(role), "input_json": input.to_string() })
}

/// Request with further members.
pub(super) fn with(mut request: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

pub(super) fn artifact(content: &str) -> Value {
    json!({ "type": "t", "provenance": "p", "content_json": content, "size_bytes": content.len() })
}

/// Output of a successful reply.
pub(super) fn output(reply: &Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    serde_json::from_str(reply["output_json"].as_str().unwrap()).unwrap()
}

/// Asserts the rules for every reply.
pub(super) fn check(reply: &Value) {
    let Some(status) = reply.get("status") else {
        assert!(reply.get("token_id").is_some() || is_host_error(reply), "{reply}");
        return;
    };
    assert_eq!(reply["ok"], *status == "OK", "{reply}");
    assert_eq!(reply["error"] == "", *status == "OK", "{reply}");
    assert!(reply["ds_state"].is_object() || *status != "OK", "{reply}");
}

/// True if no tool ran.
pub(super) fn is_host_error(reply: &Value) -> bool {
    reply["ok"] == false
        && reply.get("status").is_none()
        && reply["error"].as_str().is_some_and(|e| !e.is_empty())
}

pub(super) fn is_tool_error(reply: &Value) -> bool {
    reply["ok"] == false
        && reply["status"] == "TOOL_ERROR"
        && reply["error"].as_str().is_some_and(|e| !e.is_empty())
}

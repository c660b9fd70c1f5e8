//! A server with a virtual clock, which stands still until a test advances it.

use peerproof_reference::json_rpc::{Components, Config, machine_with};
use peerproof_reference::machine::{Action, Event, Machine};
use serde_json::Value;

pub(crate) struct Peer {
    machine: Box<dyn Machine + Send>,
    pub now: u64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Option<i32>,
    wake_at: Option<u64>,
    /// Largest single write in bytes.
    pub write_bytes_max: usize,
}

impl Peer {
    pub(crate) fn of(machine: Box<dyn Machine + Send>) -> Self {
        let (stdout, stderr) = (Vec::new(), Vec::new());
        Self { machine, now: 1_000_000, stdout, stderr, exit: None, wake_at: None, write_bytes_max: 0 }
    }

    pub(crate) fn new(config: Config, change: impl FnOnce(&mut Components)) -> Self {
        let mut components = Components::new(&config);
        change(&mut components);
        Self::of(machine_with(config, components))
    }

    pub(crate) fn plain() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        Self::new(config, |_| {})
    }

    pub(crate) fn chosen(choice: &str) -> Self {
        let (key, value) = choice.split_once('=').unwrap();
        Self::with(|config| config.choices.set(key, value).unwrap())
    }

    fn event(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.machine.handle(event, self.now, &mut actions);
        for action in actions {
            assert!(self.exit.is_none(), "nothing follows the end");
            match action {
                Action::Stdout(bytes) => {
                    self.write_bytes_max = self.write_bytes_max.max(bytes.len());
                    self.stdout.extend(bytes);
                }
                Action::Stderr(bytes) => self.stderr.extend(bytes),
                Action::WakeAt(time) => self.wake_at = Some(time),
                Action::Exit(status) => self.exit = Some(status),
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn deliver(&mut self, event: Event<'_>) {
        self.event(event);
        self.run_until(self.now);
    }

    /// Advances the clock to `time` and delivers all wakes on the way.
    pub(crate) fn run_until(&mut self, time: u64) {
        let mut wakes = 0;
        while let Some(at) = self.wake_at.filter(|at| *at <= time && self.exit.is_none()) {
            wakes += 1;
            assert!(wakes < 100_000, "it wants to go on for ever");
            self.now = self.now.max(at);
            self.wake_at = None;
            self.event(Event::Wake);
        }
        self.now = self.now.max(time);
    }

    pub(crate) fn sleep(&mut self, ms: u64) {
        self.run_until(self.now + ms);
    }

    pub(crate) fn wants_stdin(&self) -> bool {
        self.machine.wants_stdin()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.deliver(Event::Stdin(bytes));
    }

    pub(crate) fn close(&mut self) {
        self.deliver(Event::StdinEof);
    }

    pub(crate) fn terminate(&mut self) {
        self.deliver(Event::Terminate);
    }

    /// Lines since the last call.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut self.stdout)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }

    /// Messages since the last call.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends lines and returns the replies that come without advancing the clock.
    pub(crate) fn exchange(&mut self, lines: &str) -> Vec<Value> {
        self.write(lines.as_bytes());
        self.write(b"\n");
        let messages = self.messages();
        messages.iter().for_each(check);
        messages
    }

    /// Sends one line and returns its only reply.
    pub(crate) fn line(&mut self, line: &str) -> Value {
        let mut replies = self.exchange(line);
        assert_eq!(replies.len(), 1, "{line:.200} → {replies:?}");
        replies.remove(0)
    }

    /// Sends one line and returns the raw text of its only reply.
    pub(crate) fn raw(&mut self, line: &str) -> String {
        self.write(format!("{line}\n").as_bytes());
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{line:.200} → {lines:?}");
        lines.remove(0)
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.line(&request(method, params))
    }

    /// Result of a call that succeeds.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let reply = self.call(method, params);
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    /// Error code of a call that fails.
    pub(crate) fn code(&mut self, method: &str, params: Value) -> i64 {
        code(&self.call(method, params))
    }

    /// Current value of the counter. Each call increments it.
    pub(crate) fn count(&mut self) -> u64 {
        self.result("peerproof.counter", serde_json::json!({}))["count"].as_u64().unwrap()
    }
}

/// A request with the id 1.
pub(crate) fn request(method: &str, params: Value) -> String {
    serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params, "id": 1 }).to_string()
}

/// Code of an error reply.
pub(crate) fn code(reply: &Value) -> i64 {
    assert!(reply.get("result").is_none(), "{reply}");
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{reply}"))
}

/// Asserts the rules for every message.
pub(crate) fn check(message: &Value) {
    if let Some(replies) = message.as_array() {
        assert!(!replies.is_empty());
        return replies.iter().for_each(check);
    }
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    if message.get("method").is_some() {
        assert!(message.get("id").is_none(), "{message}");
        return;
    }
    assert!(message.get("id").is_some(), "{message}");
    assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
    if let Some(error) = message.get("error") {
        assert!(error["code"].is_i64() && !error["message"].as_str().unwrap().is_empty(), "{message}");
    }
}

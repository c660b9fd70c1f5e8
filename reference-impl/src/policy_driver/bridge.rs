//! The bridge to a model: the payload goes out over HTTP, the block comes back (`policy` §8; contract §2 "LLM bridge").

use super::Sid;
use super::block::{Block, BlockError, BlockReader, Rules};
use super::choices::Choices;
use super::payload::Payload;
use crate::frame::append_within;
use crate::json;
use crate::json::{Policy, Value};
use crate::limits::Limits;
use crate::machine::{Action, Event, FetchError, Fetched, Machine, Millis, PostOrder};
use crate::refusal::Refusal;
use crate::toolhost::Url;

/// Configuration of the bridge.
#[derive(Debug, Clone, Default)]
pub struct BridgeConfig {
    /// URL of the model (`MACHINA_POLICY_LLM_URL`).
    pub url: Option<String>,
    /// Value of the `Authorization` header (`MACHINA_POLICY_LLM_AUTH`).
    pub authorization: Option<String>,
    /// Limits in force.
    pub limits: Limits,
}

/// Reason why a bridge writes no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum BridgeError {
    /// The payload is malformed.
    #[error(transparent)]
    Payload(#[from] Refusal),
    /// The URL of the model is missing.
    #[error("MACHINA_POLICY_LLM_URL is not set")]
    NoUrl,
    /// The URL of the model is invalid.
    #[error("MACHINA_POLICY_LLM_URL: {0}")]
    Url(&'static str),
    /// The value of the `Authorization` header is invalid.
    #[error("MACHINA_POLICY_LLM_AUTH is no value of a header")]
    Authorization,
    /// The exchange with the model failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The model answered with this status.
    #[error("the model answered with status {0}")]
    Status(u16),
    /// The reply of the model is not JSON.
    #[error("the reply is not JSON: {0}")]
    NotJson(#[source] json::Error),
    /// The reply of the model has no text.
    #[error("the reply has neither machina_out nor output, or it is no string")]
    NoText,
    /// The text of the model is not a block.
    #[error("the model wrote no block: {0}")]
    NoBlock(#[source] BlockError),
    /// The model picked a SID that the menu lacks.
    #[error("the model picked {0}, which is not in the menu")]
    UnknownSid(Sid),
    /// The block of the model is too long.
    #[error("the model's block is too long")]
    TooLong,
}

/// A bridge for one payload, which arrives as its input. Any fault ends it with status 1 and without a block.
#[derive(Debug)]
pub struct Bridge {
    config: BridgeConfig,
    state: State,
}

#[derive(Debug)]
enum State {
    Reading { bytes: Vec<u8>, is_too_long: bool },
    Waiting(Payload),
    Done,
}

impl Bridge {
    /// Creates a bridge that waits for its payload.
    pub fn new(config: BridgeConfig) -> Self {
        Self { config, state: State::Reading { bytes: Vec::new(), is_too_long: false } }
    }

    /// Request to send, and its payload.
    fn ask(&self, bytes: Vec<u8>) -> Result<(PostOrder, Payload), BridgeError> {
        let BridgeConfig { url, authorization, limits } = &self.config;
        let payload = Payload::read(&bytes, limits.nesting_max, &Choices::default())?;
        let url = url.as_deref().filter(|url| !url.is_empty()).ok_or(BridgeError::NoUrl)?;
        let url = Url::parse(url).map_err(BridgeError::Url)?;
        let authorization = authorization.clone().filter(|value| !value.is_empty());
        if authorization.as_ref().is_some_and(|value| value.bytes().any(|byte| byte < b' ' || byte == 0x7F)) {
            return Err(BridgeError::Authorization);
        }
        let order = PostOrder {
            host: url.host.to_string(),
            port: url.port,
            host_header: url.authority,
            path: url.path,
            authorization,
            body: bytes,
            body_bytes_max: limits.policy_llm_reply_bytes_max,
            timeout_ms: limits.policy_llm_timeout_ms,
        };
        Ok((order, payload))
    }

    /// Block in a reply.
    fn judge(&self, reply: Result<Fetched, FetchError>, payload: &Payload) -> Result<String, BridgeError> {
        let reply = reply?;
        if !(200..300).contains(&reply.status) {
            return Err(BridgeError::Status(reply.status));
        }
        let (nesting_max, policy) = (self.config.limits.nesting_max, Policy::default());
        let reply = Value::parse(&reply.body, nesting_max, &policy).map_err(BridgeError::NotJson)?;
        let text = reply.get("machina_out").or_else(|| reply.get("output")).and_then(Value::as_str);
        let text = text.ok_or(BridgeError::NoText)?.trim_matches(BLANKS);
        let rules = Rules { lenient_base64: false, trims_vt_ff: false, nesting_max, policy };
        match BlockReader::new(rules).read(text.as_bytes()) {
            Ok(Block::Pick { sid, .. }) if !payload.menu.lists(sid) => Err(BridgeError::UnknownSid(sid)),
            // The block and its LF must fit.
            Ok(_) if text.len() < self.config.limits.policy_stdout_bytes_max => Ok(format!("{text}\n")),
            Ok(_) => Err(BridgeError::TooLong),
            Err(error) => Err(BridgeError::NoBlock(error)),
        }
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn fail(why: &str, actions: &mut Vec<Action>) {
    actions.extend([Action::Stderr(format!("policy-llm: {why}\n").into_bytes()), Action::Exit(1)]);
}

impl Machine for Bridge {
    fn handle(&mut self, event: Event<'_>, _now: Millis, actions: &mut Vec<Action>) {
        match (event, std::mem::replace(&mut self.state, State::Done)) {
            (Event::Stdin(more), State::Reading { mut bytes, mut is_too_long }) => {
                is_too_long |= !append_within(&mut bytes, more, self.config.limits.policy_payload_bytes_max);
                self.state = State::Reading { bytes, is_too_long };
            }
            (Event::StdinEof, State::Reading { is_too_long: true, .. }) => {
                fail("the payload is too long", actions)
            }
            (Event::StdinEof, State::Reading { bytes, .. }) => match self.ask(bytes) {
                Ok((order, payload)) => {
                    self.state = State::Waiting(payload);
                    actions.push(Action::Post(Box::new(order)));
                }
                Err(why) => fail(&why.to_string(), actions),
            },
            (Event::Fetched(reply), State::Waiting(payload)) => match self.judge(reply, &payload) {
                Ok(block) => actions.extend([Action::Stdout(block.into_bytes()), Action::Exit(0)]),
                Err(why) => fail(&why.to_string(), actions),
            },
            (_, state) => self.state = state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &[u8] = br#"{"inputs":{},"menu":[{"sid":"SID0007","tags":[]}]}"#;

    fn bridge(url: &str) -> Bridge {
        let authorization = Some("Bearer x".to_owned());
        Bridge::new(BridgeConfig { url: Some(url.to_owned()), authorization, limits: Limits::default() })
    }

    /// Output and exit status after a reply of the model.
    fn answered(status: u16, body: &str) -> (String, Option<i32>) {
        let mut bridge = bridge("http://127.0.0.1:9000/p?q");
        let mut actions = Vec::new();
        bridge.handle(Event::Stdin(PAYLOAD), 0, &mut actions);
        bridge.handle(Event::StdinEof, 0, &mut actions);
        let [Action::Post(order)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!((order.host.as_str(), order.port, order.path.as_str()), ("127.0.0.1", 9000, "/p?q"));
        assert_eq!((order.host_header.as_str(), &order.body[..]), ("127.0.0.1:9000", PAYLOAD));
        assert_eq!(order.authorization.as_deref(), Some("Bearer x"));
        actions.clear();
        let reply = Fetched { status, location: None, body: body.as_bytes().to_vec() };
        bridge.handle(Event::Fetched(Ok(reply)), 0, &mut actions);
        end(&actions)
    }

    fn end(actions: &[Action]) -> (String, Option<i32>) {
        let stdout = actions.iter().find_map(|action| match action {
            Action::Stdout(bytes) => Some(String::from_utf8(bytes.clone()).unwrap()),
            _ => None,
        });
        let status = actions.iter().find_map(|action| match action {
            Action::Exit(status) => Some(*status),
            _ => None,
        });
        (stdout.unwrap_or_default(), status)
    }

    #[test]
    fn takes_machina_out_before_output() {
        let pick = ("<PICK><SID0007><END>\n".to_owned(), Some(0));
        assert_eq!(answered(200, r#"{"machina_out":" <PICK><SID0007><END>\n"}"#), pick);
        assert_eq!(answered(201, r#"{"output":"<PICK><SID0007><END>","x":1}"#), pick);
        assert_eq!(answered(200, r#"{"output":"<NOOP><END>","machina_out":"<PICK><SID0007><END>"}"#), pick);
    }

    #[test]
    fn nothing_else_is_a_pick() {
        for (status, body) in [
            (500, r#"{"machina_out":"<PICK><SID0007><END>"}"#),
            (302, r#"{"machina_out":"<PICK><SID0007><END>"}"#),
            (200, ""),
            (200, "<PICK><SID0007><END>"),
            (200, r#""<PICK><SID0007><END>""#),
            (200, "{}"),
            (200, r#"{"machina_out":7,"output":"<PICK><SID0007><END>"}"#),
            (200, r#"{"machina_out":"I pick <PICK><SID0007><END>"}"#),
            (200, r#"{"machina_out":"<PICK><SID0008><END>"}"#),
            (200, r#"{"machina_out":"<PICK><SID0007><END>"}}"#),
            (200, r#"{"machina_out":"<PICK><SID0007><INP>[]</INP><END>"}"#),
        ] {
            assert_eq!(answered(status, body), (String::new(), Some(1)), "{status} {body}");
        }
    }

    #[test]
    fn asks_nobody_without_a_payload_or_an_address() {
        for (url, payload) in [
            ("", PAYLOAD),
            ("https://127.0.0.1/", PAYLOAD),
            ("http://127.0.0.1:9/", b"".as_slice()),
            ("http://127.0.0.1:9/", b"[]"),
        ] {
            let mut actions = Vec::new();
            let mut bridge = bridge(url);
            bridge.handle(Event::Stdin(payload), 0, &mut actions);
            bridge.handle(Event::StdinEof, 0, &mut actions);
            assert_eq!(end(&actions), (String::new(), Some(1)), "{url}");
        }
        let mut actions = Vec::new();
        let mut failing = bridge("http://127.0.0.1:9/");
        failing.handle(Event::Stdin(PAYLOAD), 0, &mut actions);
        failing.handle(Event::StdinEof, 0, &mut actions);
        failing.handle(Event::Fetched(Err(FetchError("no reply in time".to_owned()))), 0, &mut actions);
        assert_eq!(end(&actions), (String::new(), Some(1)));
    }
}

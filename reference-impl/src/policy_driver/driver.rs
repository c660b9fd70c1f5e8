//! The rule-based driver: reads a payload, writes one block (`policy` §2; contract §2 "Driver").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Sid;
use super::choices::{Choices, NearlyJson, Refusal};
use super::lenient;
use super::payload::Payload;
use crate::dispatcher::text::compact;
use crate::frame::append_within;
use crate::json::{Kind, Scanner};
use crate::limits::Limits;
use crate::machine::{Action, Event, Machine, Millis};
use crate::refusal;

/// Configuration of a driver.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
}

/// Decision of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Pick an entry, with unchanged inputs.
    Pick(Sid),
    /// Pick an entry with a patch: the text of an object, written in plain form.
    PickInp(Sid, String),
    /// Pick an entry with a patch, written in base64.
    PickInp64(Sid, String),
    /// Ask the supervisor.
    AskSup,
    /// Do nothing.
    Noop,
}

impl Decision {
    /// Block for the decision.
    pub fn block(&self) -> String {
        match self {
            Self::Pick(sid) => format!("<PICK><{sid}><END>"),
            Self::PickInp(sid, patch) => format!("<PICK><{sid}><INP>{patch}</INP><END>"),
            Self::PickInp64(sid, patch) => {
                format!("<PICK><{sid}><INP64>{}</INP64><END>", STANDARD.encode(patch))
            }
            Self::AskSup => "<ASK_SUP><END>".to_owned(),
            Self::Noop => "<NOOP><END>".to_owned(),
        }
    }
}

/// Rules by which a driver decides.
pub trait Rules: std::fmt::Debug + Send {
    /// Decides on a well-formed payload.
    fn decide(&self, payload: &Payload, nesting_max: usize) -> Decision;
}

/// The rules of the reference, by tags of the menu and by members of the inputs:
///
/// 1. If `inputs.policy` is `stop`: NOOP. If it is `ask`, or the menu is empty: ASK_SUP.
/// 2. Picks the first entry tagged `http` if the inputs have a `url`, `shell` if they have a `cmd`, `file` if they
///    have a `path`; else the first entry.
/// 3. `inputs.policy_patch`, an object, becomes the patch in plain form; else `inputs.policy_patch64` in base64.
#[derive(Debug, Clone, Copy, Default)]
pub struct TagRules;

/// Members of the inputs, with the tag that each selects.
const WANTED: [(&str, &str); 3] = [("url", "http"), ("cmd", "shell"), ("path", "file")];

impl Rules for TagRules {
    fn decide(&self, payload: &Payload, nesting_max: usize) -> Decision {
        let mut scanner = Scanner::new(nesting_max);
        let Ok(inputs) = scanner.scan(payload.inputs.as_bytes()) else { return Decision::AskSup };
        let member =
            |wanted: &str| inputs.members().find(|(name, _)| name.is(wanted)).map(|(_, value)| value);
        let order = member("policy").and_then(|value| value.as_str());
        if order.is_some_and(|order| order.is("stop")) {
            return Decision::Noop;
        }
        if order.is_some_and(|order| order.is("ask")) {
            return Decision::AskSup;
        }
        let tagged =
            |tag: &str| payload.entries.iter().find(|entry| entry.tags.iter().any(|other| other == tag));
        let wanted = WANTED.into_iter().filter(|(name, _)| member(name).is_some());
        let entry = wanted.filter_map(|(_, tag)| tagged(tag)).next().or(payload.entries.first());
        let Some(sid) = entry.map(|entry| entry.sid) else { return Decision::AskSup };
        let patch = |name: &str| {
            member(name).filter(|value| value.kind() == Kind::Object).map(|value| compact(value.text()))
        };
        if let Some(patch) = patch("policy_patch") {
            Decision::PickInp(sid, patch)
        } else if let Some(patch) = patch("policy_patch64") {
            Decision::PickInp64(sid, patch)
        } else {
            Decision::Pick(sid)
        }
    }
}

/// A driver for one payload, which arrives as its input.
#[derive(Debug)]
pub struct Driver {
    config: Config,
    rules: Box<dyn Rules>,
    payload: Vec<u8>,
    is_too_long: bool,
}

impl Driver {
    /// Creates the correct driver.
    pub fn new(config: Config) -> Self {
        Self::with_rules(config, Box::new(TagRules))
    }

    /// Creates a driver that decides by `rules`.
    pub(crate) fn with_rules(config: Config, rules: Box<dyn Rules>) -> Self {
        Self { config, rules, payload: Vec::new(), is_too_long: false }
    }

    fn decide(&mut self) -> Result<Decision, refusal::Refusal> {
        let Config { choices, limits } = &self.config;
        if self.is_too_long {
            return Err(
                format!("the payload is longer than {} bytes", limits.policy_payload_bytes_max).into()
            );
        }
        let payload = std::mem::take(&mut self.payload);
        let decision = match Payload::read(&payload, limits.nesting_max, choices) {
            Ok(payload) => self.rules.decide(&payload, limits.nesting_max),
            Err(why) => {
                let nearly = match choices.nearly_json_payload {
                    NearlyJson::Pick => lenient::strict(&payload),
                    NearlyJson::Refuse => None,
                };
                let nearly = nearly.and_then(|text| Payload::read(&text, limits.nesting_max, choices).ok());
                self.rules.decide(&nearly.ok_or(why)?, limits.nesting_max)
            }
        };
        // The block and its LF must fit.
        let is_short = decision.block().len() < limits.policy_stdout_bytes_max;
        Ok(if is_short { decision } else { Decision::AskSup })
    }
}

impl Machine for Driver {
    fn handle(&mut self, event: Event<'_>, _now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => {
                let bytes_max = self.config.limits.policy_payload_bytes_max;
                self.is_too_long |= !append_within(&mut self.payload, bytes, bytes_max);
            }
            Event::StdinEof => {
                let (decision, why) = match (self.decide(), self.config.choices.refusal) {
                    (Ok(decision), _) => (Some(decision), None),
                    (Err(why), Refusal::Exit) => (None, Some(why)),
                    (Err(why), Refusal::AskSup) => (Some(Decision::AskSup), Some(why)),
                    (Err(why), Refusal::Noop) => (Some(Decision::Noop), Some(why)),
                };
                actions.extend(why.map(|why| Action::Stderr(format!("policy-driver: {why}\n").into_bytes())));
                let status = i32::from(decision.is_none());
                let block = decision.map(|decision| decision.block() + "\n");
                actions.extend(block.map(|block| Action::Stdout(block.into_bytes())));
                actions.push(Action::Exit(status));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_driver::block::{Block, BlockReader, Rules as BlockRules};
    use proptest::prelude::*;

    fn run_with(config: Config, payload: &[u8]) -> (String, Option<i32>) {
        let mut driver = Driver::new(config);
        let mut actions = Vec::new();
        for chunk in payload.chunks(7) {
            driver.handle(Event::Stdin(chunk), 0, &mut actions);
        }
        driver.handle(Event::StdinEof, 0, &mut actions);
        let (mut stdout, mut status) = (String::new(), None);
        for action in actions {
            match action {
                Action::Stdout(bytes) => stdout += std::str::from_utf8(&bytes).unwrap(),
                Action::Exit(code) => status = Some(code),
                _ => {}
            }
        }
        (stdout, status)
    }

    fn run(payload: &str) -> (String, Option<i32>) {
        run_with(Config::default(), payload.as_bytes())
    }

    fn asked(inputs: &str) -> String {
        let menu = r#"[{"sid":"SID0004","tags":[]},{"sid":"SID0002","tags":["x","http"]},{"sid":"SID0003","tags":["shell"]}]"#;
        let (stdout, status) = run(&format!(r#"{{"inputs":{inputs},"menu":{menu}}}"#));
        assert_eq!(status, Some(0));
        stdout
    }

    #[test]
    fn follows_its_rules() {
        assert_eq!(asked("{}"), "<PICK><SID0004><END>\n");
        assert_eq!(asked(r#"{"cmd":"ls"}"#), "<PICK><SID0003><END>\n");
        assert_eq!(asked(r#"{"cmd":"ls","url":"u"}"#), "<PICK><SID0002><END>\n");
        assert_eq!(asked(r#"{"path":"/"}"#), "<PICK><SID0004><END>\n");
        assert_eq!(asked(r#"{"policy":"stop"}"#), "<NOOP><END>\n");
        assert_eq!(asked(r#"{"policy":"ask"}"#), "<ASK_SUP><END>\n");
        assert_eq!(asked(r#"{"policy_patch":{ "a" : 1 }}"#), "<PICK><SID0004><INP>{\"a\":1}</INP><END>\n");
        assert_eq!(
            asked(r#"{"policy_patch64":{"a":1}}"#),
            "<PICK><SID0004><INP64>eyJhIjoxfQ==</INP64><END>\n"
        );
        assert_eq!(asked(r#"{"policy_patch":[1]}"#), "<PICK><SID0004><END>\n");
        assert_eq!(run("{}"), ("<ASK_SUP><END>\n".to_owned(), Some(0)));
    }

    #[test]
    fn a_patch_that_does_not_fit_is_not_sent() {
        let frame = "<PICK><SID0004><INP>{\"a\":\"\"}</INP><END>\n".len();
        let patch =
            |bytes: usize| asked(&format!(r#"{{"policy_patch":{{"a":"{}"}}}}"#, "x".repeat(bytes - frame)));
        assert_eq!(patch(65_536).len(), 65_536);
        assert_eq!(patch(65_537), "<ASK_SUP><END>\n");
    }

    #[test]
    fn a_refused_payload_is_no_pick() {
        let bad = br#"{"menu":[{"sid":"SID0001"}],}"#;
        assert_eq!(run_with(Config::default(), bad), (String::new(), Some(1)));
        for (key, value, stdout) in [
            ("refusal", "ask_sup", "<ASK_SUP><END>\n"),
            ("refusal", "noop", "<NOOP><END>\n"),
            ("nearly_json_payload", "pick", "<PICK><SID0001><END>\n"),
        ] {
            let mut config = Config::default();
            config.choices.set(key, value).unwrap();
            assert_eq!(run_with(config, bad), (stdout.to_owned(), Some(0)));
        }
    }

    #[test]
    fn holds_no_more_than_it_may() {
        let mut config = Config::default();
        config.limits.policy_payload_bytes_max = 16;
        let mut driver = Driver::new(config.clone());
        for _ in 0..9 {
            driver.handle(Event::Stdin(b"     "), 0, &mut Vec::new());
            assert!(driver.payload.len() <= 16);
        }
        assert_eq!(run_with(config.clone(), b"{\"menu\":[]}     "), ("<ASK_SUP><END>\n".to_owned(), Some(0)));
        assert_eq!(run_with(config, b"{\"menu\":[]}      "), (String::new(), Some(1)));
    }

    fn hostile() -> impl Strategy<Value = String> {
        prop_oneof![
            ".{0,8}",
            Just("<PICK><SID0001><END>".to_owned()),
            Just("</INP><END>".to_owned()),
            Just("a\0b\u{202E}\n".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn every_answer_is_one_block_that_picks_from_the_menu(
            menu in proptest::collection::vec((0_u16..10_000, hostile(), hostile()), 0..8),
            url in any::<bool>(),
            patch in proptest::option::of(hostile()),
        ) {
            let entries: Vec<_> = menu
                .iter()
                .map(|(sid, name, tag)| serde_json::json!({"sid": format!("SID{sid:04}"), "name": name, "tags": [tag]}))
                .collect();
            let mut inputs = serde_json::json!({});
            if url {
                inputs["url"] = "u".into();
            }
            if let Some(patch) = &patch {
                inputs["policy_patch"] = serde_json::json!({ "k": patch });
            }
            let payload = serde_json::json!({"inputs": inputs, "menu": entries}).to_string();
            let (stdout, status) = run(&payload);
            prop_assert_eq!(status, Some(0));
            let rules = BlockRules {
                lenient_base64: false,
                trims_vt_ff: false,
                nesting_max: 64,
                policy: crate::json::Policy::default(),
            };
            match BlockReader::new(rules).read(stdout.as_bytes()).unwrap() {
                Block::Pick { sid, patch: sent } => {
                    let listed: Vec<String> = menu.iter().map(|(known, ..)| format!("SID{known:04}")).collect();
                    prop_assert!(listed.contains(&sid.to_string()));
                    let sent: Option<serde_json::Value> = sent.map(|sent| serde_json::from_str(&sent).unwrap());
                    prop_assert_eq!(sent, patch.map(|patch| serde_json::json!({ "k": patch })));
                }
                other => prop_assert!(menu.is_empty() && other == Block::AskSup),
            }
        }
    }
}

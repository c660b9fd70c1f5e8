//! An input line of a selector, and the payload that a driver gets for it (`policy` §2; contract §2 "Selector").

use super::Menu;
use crate::dispatcher::text::{compact, normalise};
use crate::json::{Kind, Policy, Scanner};
use crate::refusal::Refusal;

/// `control_mode` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The driver decides.
    PolicyOnly,
    /// The fallback decides.
    FallbackOnly,
    /// Missing or unknown.
    Other,
}

/// A well-formed request; unknown members are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Mode of the choice.
    pub mode: Mode,
    /// JSON text of the `inputs` object.
    pub inputs: String,
    /// SIDs that can be picked.
    pub menu: Menu,
    /// Payload for a driver, one JSON object.
    pub payload: Vec<u8>,
}

impl Request {
    /// Reads a line. A missing member counts as empty.
    ///
    /// # Errors
    /// One sentence: the line is not a strict JSON object, or a member has a wrong type.
    pub fn read(line: &[u8], nesting_max: usize, policy: &Policy) -> Result<Self, Refusal> {
        let normal = normalise(line, nesting_max, policy)?;
        let mut scanner = Scanner::new(nesting_max);
        let scanned = scanner.scan(&normal)?;
        if scanned.kind() != Kind::Object {
            return Err("the request is no object".into());
        }
        let (mut goal, mut state, mut mode, mut inputs, mut menu) = ("\"\"", "\"\"", None, "{}", "[]");
        for (name, value) in scanned.members() {
            let wanted = match &*name.bytes() {
                b"goal_digest" => {
                    goal = value.text();
                    Kind::String
                }
                b"state_digest" => {
                    state = value.text();
                    Kind::String
                }
                b"control_mode" => {
                    mode = Some(value);
                    Kind::String
                }
                b"inputs" => {
                    inputs = value.text();
                    Kind::Object
                }
                b"menu" => {
                    menu = value.text();
                    Kind::Array
                }
                _ => continue,
            };
            if value.kind() != wanted {
                return Err(format!("{} has a wrong type", name.raw()).into());
            }
        }
        let mode_text = mode.map_or("\"\"", |mode| mode.text());
        let mode = match mode.and_then(|mode| mode.as_str()).map(|mode| mode.bytes()).as_deref() {
            Some(b"POLICY_ONLY") => Mode::PolicyOnly,
            Some(b"FALLBACK_ONLY") => Mode::FallbackOnly,
            _ => Mode::Other,
        };
        let (inputs, menu) = (compact(inputs), compact(menu));
        let payload = match mode {
            Mode::PolicyOnly => [
                "{\"goal_digest\":",
                goal,
                ",\"state_digest\":",
                state,
                ",\"control_mode\":",
                mode_text,
                ",\"inputs\":",
                &inputs,
                ",\"menu\":",
                &menu,
                "}",
            ]
            .concat()
            .into_bytes(),
            Mode::FallbackOnly | Mode::Other => Vec::new(),
        };
        let menu = Menu::read(&menu, &mut Scanner::new(nesting_max))?;
        Ok(Self { mode, inputs, menu, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, Refusal> {
        Request::read(line.as_bytes(), 64, &Policy::default())
    }

    #[test]
    fn passes_on_what_is_listed() {
        let line = r#"{"menu": [ {"sid":"SID0003", "x":1.0} ],"inputs":{"k" : "\u0041"},"control_mode":"POLICY_ONLY",
            "goal_digest":"g","state_digest":"s","more":1}"#;
        let request = read(line).unwrap();
        assert_eq!(
            String::from_utf8(request.payload).unwrap(),
            r#"{"goal_digest":"g","state_digest":"s","control_mode":"POLICY_ONLY","inputs":{"k":"\u0041"},"menu":[{"sid":"SID0003","x":1.0}]}"#
        );
        assert_eq!(request.mode, Mode::PolicyOnly);
    }

    #[test]
    fn what_is_absent_is_empty() {
        let request = read("{}").unwrap();
        assert_eq!(
            (request.mode, request.inputs.as_str(), request.menu),
            (Mode::Other, "{}", Menu::default())
        );
        assert_eq!(read(r#"{"control_mode":"policy_only"}"#).unwrap().mode, Mode::Other);
        assert_eq!(read(r#"{"control_mode":"FALLBACK_ONLY"}"#).unwrap().mode, Mode::FallbackOnly);
    }

    #[test]
    fn refuses_wrong_types() {
        for bad in [
            "",
            "[]",
            "{",
            r#"{"inputs":[]}"#,
            r#"{"inputs":null}"#,
            r#"{"menu":{}}"#,
            r#"{"menu":[{}]}"#,
            r#"{"control_mode":1}"#,
            r#"{"goal_digest":{}}"#,
            r#"{"state_digest":null}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

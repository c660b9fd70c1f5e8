//! Lines of a log and their header (contract §3 "The log"; `ipc` §1).

use super::choices::{Choices, RequestIdAbsent};
use crate::json::{Policy, Text, Value, write_str, write_text, write_value};
use crate::refusal::Refusal;

/// Default of `spec_version` (`ipc` §1).
pub(crate) const SPEC_VERSION: &str = "1.4.2";

/// Default of `profile_id` (`ipc` §1).
pub(crate) const PROFILE_ID: &str = "A";

/// The RunHeader (`ipc` §1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `spec_version`.
    pub spec_version: Text,
    /// `profile_id`.
    pub profile_id: Text,
    /// `run_id`, not empty.
    pub run_id: Text,
    /// `request_id`; `None` if it is absent, `null` or `""`.
    pub request_id: Option<Text>,
}

impl Header {
    /// Creates the header of a run with the default versions.
    pub fn new(run_id: &str, request_id: Option<Text>) -> Self {
        Self {
            spec_version: SPEC_VERSION.into(),
            profile_id: PROFILE_ID.into(),
            run_id: run_id.into(),
            request_id,
        }
    }

    fn read(line: &Value) -> Result<Self, Refusal> {
        let text = |name: &str| match line.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_text().cloned().map(Some).ok_or_else(|| format!("{name} is not a string"))
            }
        };
        let filled = |text: &Text| !text.as_bytes().is_empty();
        Ok(Self {
            spec_version: text("spec_version")?.unwrap_or_else(|| SPEC_VERSION.into()),
            profile_id: text("profile_id")?.unwrap_or_else(|| PROFILE_ID.into()),
            run_id: text("run_id")?.filter(filled).ok_or("run_id is missing or empty")?,
            request_id: text("request_id")?.filter(filled),
        })
    }

    /// True for the versions in the documents.
    pub(crate) fn has_default_versions(&self) -> bool {
        self.spec_version == SPEC_VERSION && self.profile_id == PROFILE_ID
    }

    /// True for a `run_id` of 32 hex digits, or of 8-4-4-4-12.
    pub(crate) fn has_known_form(&self) -> bool {
        let id = self.run_id.as_bytes();
        let hex = |(_, byte): (usize, &u8)| byte.is_ascii_hexdigit();
        match id.len() {
            32 => id.iter().enumerate().all(hex),
            36 => id.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            }),
            _ => false,
        }
    }

    fn write(&self, out: &mut Vec<u8>, absent: RequestIdAbsent) {
        for (name, text) in [
            ("\"spec_version\":", &self.spec_version),
            (",\"profile_id\":", &self.profile_id),
            (",\"run_id\":", &self.run_id),
        ] {
            out.extend_from_slice(name.as_bytes());
            write_text(out, text);
        }
        match (&self.request_id, absent) {
            (Some(id), _) => {
                out.extend_from_slice(b",\"request_id\":");
                write_text(out, id);
            }
            (None, RequestIdAbsent::Absent) => {}
            (None, RequestIdAbsent::Null) => out.extend_from_slice(b",\"request_id\":null"),
            (None, RequestIdAbsent::Empty) => out.extend_from_slice(b",\"request_id\":\"\""),
        }
    }
}

/// A line of a log with an unread payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Header, whose members are members of the line.
    pub header: Header,
    /// `event`, not empty.
    pub event: Text,
    /// `step`.
    pub step: u64,
    /// `payload`, an object.
    pub payload: Value,
}

impl Line {
    /// Reads a line without its LF. Unknown members are ignored.
    ///
    /// # Errors
    /// One sentence: it is not a strict JSON object, or a member is missing or of a wrong type.
    pub fn read(text: &[u8], nesting_max: usize, policy: &Policy) -> Result<Self, Refusal> {
        let value = Value::parse(text, nesting_max, policy)?;
        let Value::Object(mut members) = value else { return Err("the line is not an object".into()) };
        let payload = members.iter_mut().find(|(name, _)| *name == "payload");
        let payload = payload.map_or(Value::Null, |(_, payload)| std::mem::replace(payload, Value::Null));
        let line = Value::Object(members);
        let event = line.get("event").and_then(Value::as_text).filter(|event| !event.as_bytes().is_empty());
        let step = line.get("step").and_then(Value::as_i64).and_then(|step| u64::try_from(step).ok());
        if payload.as_object().is_none() {
            return Err("payload is not an object".into());
        }
        Ok(Self {
            header: Header::read(&line)?,
            event: event.cloned().ok_or("event is not a non-empty string")?,
            step: step.ok_or("step is not an integer of at least 0")?,
            payload,
        })
    }

    /// Line with its LF.
    pub fn write(&self, choices: &Choices) -> Vec<u8> {
        let mut out = b"{".to_vec();
        self.header.write(&mut out, choices.request_id_absent);
        out.extend_from_slice(b",\"event\":");
        write_text(&mut out, &self.event);
        out.extend_from_slice(format!(",\"step\":{},\"payload\":", self.step).as_bytes());
        write_value(&mut out, &self.payload);
        out.extend_from_slice(b"}\n");
        out
    }
}

/// Object with these members.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// The JSON text of a value.
pub(super) fn text_of(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(&mut out, value);
    String::from_utf8(out).unwrap_or_default()
}

/// A string as a JSON text.
pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_str(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str =
        r#"{"run_id":"0123456789ABCDEF0123456789abcdef","event":"e","step":1,"payload":{"a":1}}"#;

    fn read(text: &str) -> Result<Line, Refusal> {
        Line::read(text.as_bytes(), 64, &Policy::default())
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let line = read(RIGHT).unwrap();
        assert!(line.header.has_default_versions() && line.header.has_known_form());
        assert_eq!((line.step, line.header.request_id.clone()), (1, None));
        assert_eq!(line, read(std::str::from_utf8(&line.write(&Choices::default())).unwrap()).unwrap());
    }

    #[test]
    fn other_members_do_not_count() {
        let more = RIGHT.replacen('{', r#"{"ts":1,"chain_hash":"x","request_id":"r","#, 1);
        assert_eq!(read(&more).unwrap().header.request_id, Some("r".into()));
    }

    #[test]
    fn refuses_what_is_missing_or_of_another_type() {
        for (part, other) in [
            ("\"event\":\"e\"", "\"event\":\"\""),
            ("\"event\":\"e\"", "\"event\":1"),
            ("\"event\":\"e\"", "\"events\":\"e\""),
            ("\"step\":1", "\"step\":-1"),
            ("\"step\":1", "\"step\":1.5"),
            ("\"step\":1", "\"step\":\"1\""),
            ("\"step\":1", "\"step\":true"),
            ("\"step\":1", "\"steps\":1"),
            ("\"payload\":{\"a\":1}", "\"payload\":[]"),
            ("\"payload\":{\"a\":1}", "\"payloads\":{}"),
            ("\"run_id\":", "\"id\":"),
            ("\"0123456789ABCDEF0123456789abcdef\"", "\"\""),
            ("\"0123456789ABCDEF0123456789abcdef\"", "1"),
            ("{\"run_id\"", "{\"request_id\":1,\"run_id\""),
            ("{\"run_id\"", "[{\"run_id\""),
            ("\"a\":1}}", "\"a\":1,}}"),
            ("\"a\":1}}", "\"a\":01}}"),
            ("\"a\":1}}", "\"a\":1}} x"),
        ] {
            assert!(RIGHT.contains(part), "{part}");
            assert!(read(&RIGHT.replacen(part, other, 1)).is_err(), "{other}");
        }
    }

    #[test]
    fn knows_two_forms_of_a_run() {
        let known = |id: &str| Header::new(id, None).has_known_form();
        assert!(known("01234567-89ab-CDEF-0123-456789abcdef") && known("0123456789abcdef0123456789abcdef"));
        assert!(!known("run-1") && !known("0123456789abcdef0123456789abcdeg"));
        assert!(!known("0123456789ab-cdef-0123-456789abcdef0"));
    }

    #[test]
    fn no_request_id_shows_as_chosen() {
        let line = read(RIGHT).unwrap();
        for (value, part) in [("absent", None), ("null", Some("null")), ("empty", Some("\"\""))] {
            let mut choices = Choices::default();
            choices.set("request_id_absent", value).unwrap();
            let written = String::from_utf8(line.write(&choices)).unwrap();
            assert_eq!(written.contains("request_id"), part.is_some());
            assert!(part.is_none_or(|part| written.contains(&format!("\"request_id\":{part},"))));
        }
    }
}

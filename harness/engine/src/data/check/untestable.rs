//! Reason why a check is untestable: a code for programs and a sentence for people.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data::blame::{HarnessFault, Misconfigured};

/// Reason why a check cannot decide; becomes the verdict `untestable(reason)`. Displayed and stored as `code: detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untestable {
    /// Stable snake_case code; empty if only a sentence is known.
    pub code: Cow<'static, str>,
    /// One sentence; empty if the code says everything.
    pub detail: String,
}

impl Untestable {
    /// Code: the user interrupted the conversation.
    pub(crate) const INTERRUPTED: &'static str = "interrupted";
    /// Code: this machine lacks what the check needs.
    pub const MACHINE: &'static str = "machine";
    /// Code: the peer lacks the command.
    pub const NO_COMMAND: &'static str = "no_command";
    /// Code: a role is not mapped.
    pub const NO_ROLE: &'static str = "no_role";
    /// Code: no plain request was answered correctly.
    pub const NO_WORKING_REPLY: &'static str = "no_working_reply";
    /// Code: the peer could not be started.
    pub const NOT_STARTED: &'static str = "not_started";
    /// Code: the tool mapped to a role does something else.
    pub const ROLE_MISBEHAVES: &'static str = "role_misbehaves";
    /// Code: both the peer and this machine were late.
    pub const TOO_BUSY: &'static str = "too_busy";

    /// Reason with a code.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code: code.into(), detail: detail.into() }
    }

    /// Part that is equal in every run: the code, or else the sentence up to a colon.
    pub fn short(&self) -> &str {
        if self.code.is_empty() { self.detail.split(':').next().unwrap_or_default() } else { &self.code }
    }

    /// Parses a stored reason.
    fn stored(text: &str) -> Self {
        let is_code = |text: &str| {
            let is_of_code = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
            !text.is_empty() && text.bytes().all(is_of_code)
        };
        let (code, detail) = text.split_once(": ").unwrap_or((text, ""));
        if is_code(code) {
            Self { code: code.to_owned().into(), detail: detail.to_owned() }
        } else {
            Self::from(text)
        }
    }
}

impl fmt::Display for Untestable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.code, &*self.detail) {
            ("", detail) => f.write_str(detail),
            (code, "") => f.write_str(code),
            (code, detail) => write!(f, "{code}: {detail}"),
        }
    }
}

/// Reason without a code.
impl From<String> for Untestable {
    fn from(detail: String) -> Self {
        Self { code: "".into(), detail }
    }
}

impl From<&str> for Untestable {
    fn from(detail: &str) -> Self {
        detail.to_owned().into()
    }
}

impl From<Misconfigured> for Untestable {
    fn from(error: Misconfigured) -> Self {
        String::from(error).into()
    }
}

impl From<HarnessFault> for Untestable {
    fn from(error: HarnessFault) -> Self {
        String::from(error).into()
    }
}

impl Serialize for Untestable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Untestable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::stored(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_stored_as_a_text_and_read_back() {
        let reasons = [
            (Untestable::new(Untestable::TOO_BUSY, "late: by 3 s"), "too_busy: late: by 3 s"),
            (Untestable::new(Untestable::INTERRUPTED, ""), "interrupted"),
            (Untestable::from("the role \"x\": is not there"), "the role \"x\": is not there"),
        ];
        for (reason, text) in reasons {
            let stored = serde_json::to_value(&reason).unwrap();
            assert_eq!(stored, text);
            assert_eq!(serde_json::from_value::<Untestable>(stored).unwrap(), reason);
        }
    }
}

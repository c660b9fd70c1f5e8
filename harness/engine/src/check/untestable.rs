//! Why a check is untestable: a code to decide by, and a sentence to read.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blame::{HarnessFault, Misconfigured};

/// Why nothing can be decided of a peer; becomes the verdict `untestable(reason)`. As text, and where it is stored, it is
/// `code: detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untestable {
    /// Stable snake_case code of the reason; empty where only a sentence is known.
    pub code: Cow<'static, str>,
    /// One sentence; empty where the code says it all.
    pub detail: String,
}

impl Untestable {
    /// Code: the conversation was cut short by the user.
    pub const INTERRUPTED: &'static str = "interrupted";
    /// Code: this machine lacks what the check needs.
    pub const MACHINE: &'static str = "machine";
    /// Code: the peer lacks the command.
    pub const NO_COMMAND: &'static str = "no_command";
    /// Code: a role is not mapped.
    pub const NO_ROLE: &'static str = "no_role";
    /// Code: no plain request was answered as it should be.
    pub const NO_WORKING_REPLY: &'static str = "no_working_reply";
    /// Code: the peer could not be started.
    pub const NOT_STARTED: &'static str = "not_started";
    /// Code: what plays a role does something else.
    pub const ROLE_MISBEHAVES: &'static str = "role_misbehaves";
    /// Code: the peer was late, and so was this machine.
    pub const TOO_BUSY: &'static str = "too_busy";

    /// A reason with a code.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code: code.into(), detail: detail.into() }
    }

    /// The part of it that is the same in every run: its code, else its sentence up to a colon.
    pub fn short(&self) -> &str {
        if self.code.is_empty() { self.detail.split(':').next().unwrap_or_default() } else { &self.code }
    }

    /// The reason behind a text that was stored.
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

/// A sentence without a code.
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

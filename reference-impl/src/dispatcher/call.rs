//! The call, as it comes in, and the request, as it goes out (`ipc` §3a, §3c).

use super::{Config, RequestShape, text};
use crate::json::{Kind, Scanner, write_str};

/// A well-formed call `{"aid":…,"inputs":{…}}`; unknown members are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The tool's id.
    pub aid: String,
    /// `aid` as a JSON string, with its quotes.
    pub aid_text: String,
    /// The inputs as the JSON text of an object, without white space.
    pub inputs: String,
}

/// Reason why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// `aid` of the call as a JSON string; `""` if it could not be read.
    pub aid_text: String,
    /// Human-readable description of the fault.
    pub detail: String,
}

impl Call {
    /// Reads the bytes of a call.
    ///
    /// # Errors
    /// Fails for bytes that are not a strict JSON object, an `aid` that is not a non-empty string, an `inputs` that is
    /// not an object, and JSON that the configured policy refuses.
    pub(crate) fn parse(bytes: &[u8], config: &Config) -> Result<Self, Malformed> {
        let nesting_max = config.limits.nesting_max;
        let malformed = |aid_text: &str, what: &str| Malformed {
            aid_text: aid_text.to_owned(),
            detail: format!("malformed call: {what}"),
        };
        let normal = text::normalise(bytes, nesting_max, &config.policy)
            .map_err(|error| malformed("\"\"", &error.to_string()))?;
        let mut scanner = Scanner::new(nesting_max);
        let scanned = scanner.scan(&normal).map_err(|error| malformed("\"\"", &error.to_string()))?;
        if scanned.kind() != Kind::Object {
            return Err(malformed("\"\"", "not an object"));
        }
        let (mut aid, mut inputs) = (None, None);
        for (name, value) in scanned.members() {
            if name.is("aid") {
                aid = Some(value);
            } else if name.is("inputs") {
                inputs = Some(value);
            }
        }
        let aid = aid.filter(|aid| aid.kind() == Kind::String);
        let Some((aid_text, aid)) = aid.and_then(|aid| Some((aid.text(), aid.as_str()?.text()))) else {
            return Err(malformed("\"\"", "aid is no string"));
        };
        // The aid becomes an argument of the toolhost, and a lone surrogate has no byte form.
        let Some(aid) = aid.as_str().filter(|aid| !aid.is_empty()) else {
            return Err(malformed(aid_text, "aid is empty or no Unicode text"));
        };
        let inputs = match inputs {
            None => "{}".to_owned(),
            Some(inputs) if inputs.kind() == Kind::Object => text::compact(inputs.text()),
            Some(_) => return Err(malformed(aid_text, "inputs is no object")),
        };
        Ok(Self { aid: aid.to_owned(), aid_text: aid_text.to_owned(), inputs })
    }

    /// Request for this call: one line with its LF.
    pub(crate) fn request(&self, shape: RequestShape) -> Vec<u8> {
        let mut request = Vec::with_capacity(self.aid_text.len() + self.inputs.len() + 32);
        request.extend_from_slice(b"{\"aid\":");
        request.extend_from_slice(self.aid_text.as_bytes());
        match shape {
            RequestShape::Inputs => {
                request.extend_from_slice(b",\"inputs\":");
                request.extend_from_slice(self.inputs.as_bytes());
            }
            RequestShape::InputJson => {
                request.extend_from_slice(b",\"input_json\":");
                write_str(&mut request, &self.inputs);
            }
        }
        request.extend_from_slice(b"}\n");
        request
    }
}

//! Reasons for refusals, in the words that a peer sends to its client.

use std::borrow::Cow;

use crate::json::{self, Text};

/// Reason why a peer refuses an input. Its text is one sentence, carried by the reply, the verdict or standard error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The input is not JSON, or is JSON that the configuration refuses.
    #[error(transparent)]
    Json(#[from] json::Error),
    /// A part of the input is refused.
    #[error("{part}: {error}")]
    Part {
        /// Name of the part.
        part: Cow<'static, str>,
        /// Reason for the refusal of the part.
        #[source]
        error: Box<Refusal>,
    },
    /// The content of the input is refused.
    #[error("{0}")]
    Content(Cow<'static, str>),
}

impl Refusal {
    /// Creates a function that turns the refusal of a part into that of the input.
    pub fn of<E: Into<Self>>(part: impl Into<Cow<'static, str>>) -> impl FnOnce(E) -> Self {
        let part = part.into();
        move |error| Self::Part { part, error: Box::new(error.into()) }
    }
}

impl From<&'static str> for Refusal {
    fn from(reason: &'static str) -> Self {
        Self::Content(Cow::Borrowed(reason))
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Content(Cow::Owned(reason))
    }
}

impl From<Refusal> for Text {
    fn from(refusal: Refusal) -> Self {
        refusal.to_string().into()
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::json::{Policy, Value};

    #[test]
    fn names_part_and_cause() {
        let error = Value::parse(b"[", 8, &Policy::default()).unwrap_err();
        let refusal = Refusal::of("state")(error);
        assert_eq!(refusal.to_string(), format!("state: {error}"));
        assert_eq!(refusal.source().map(ToString::to_string), Some(error.to_string()));
    }
}

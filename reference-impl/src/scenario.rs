//! Errors of the scenarios that the callers of the reference run.

use crate::json;

/// Reason why a scenario is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] json::Error),
    /// It has no array `calls`.
    #[error("the scenario has no list of calls")]
    NoCalls,
    /// Its `auth` has no key.
    #[error("auth has no key")]
    NoKey,
    /// A member of `retry` is not a natural number.
    #[error("retry.{0} is no whole number")]
    Retry(&'static str),
    /// The call at this index has no name.
    #[error("call {0} has no ref")]
    NoRef(usize),
    /// Two calls have this name.
    #[error("two calls have the ref {0:?}")]
    SameRef(String),
    /// A member of a call is missing or invalid.
    #[error("the call {call:?} has no {member}")]
    Lacks {
        /// Name of the call.
        call: String,
        /// The member.
        member: &'static str,
    },
    /// A call comes after an unknown one.
    #[error("the call {call:?} comes after {after:?}, which is no call")]
    NoSuchCall {
        /// Name of the call.
        call: String,
        /// Unknown name.
        after: String,
    },
}

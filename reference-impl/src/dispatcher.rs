//! The dispatcher: the consumer side of the toolhost boundary (document `ipc` §3c, §4, §5, §7; `contract` §1
//! "Dispatcher").
//!
//! All of standard input is one call, `{"aid":…,"inputs":{…}}`. The dispatcher starts one toolhost for it, writes one
//! request to its standard input, closes that, and waits a limited time for one reply. It prints the tool's output as a
//! JSON value, or `{"error":true,"aid":…,"type":…,"detail":…}`.
//!
//! - [`call`] reads the call and writes the request, in either documented shape.
//! - [`reply`] judges the output and the exit of the toolhost.
//! - [`machine`] puts both in order in time; it is the [`Machine`](crate::machine::Machine) that the shell
//!   `io::dispatch` runs.
//!
//! # Readings
//!
//! - The toolhost is started as `PEER --run PLUGIN AID`.
//! - JSON texts keep their spelling except for white space: numbers, escapes and the order of members stay unchanged.
//!   Only an ambiguous text (contract §0) is rewritten, by the policy.
//! - A call without `inputs` has the inputs `{}`; an `inputs` that is not an object makes it malformed.
//! - Output over the limit is a `parse_error` at once, even if the toolhost would fail or time out later. A toolhost
//!   that wrote a good reply but does not exit in time is a `timeout` (or its reply, see [`LivesOn`]). One that wrote
//!   a good reply but exits with a non-zero status or a signal is a `crash`.
//! - A success needs `ok:true`, `status:"OK"` and a string `output_json` that holds one JSON value. `error` and
//!   `ds_state` of a success are ignored.

pub(crate) mod call;
mod choices;
pub(crate) mod machine;
pub mod mutants;
pub mod reply;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::fmt;

use crate::json::Policy;
use crate::limits::Limits;
use crate::machine::Millis;

pub use choices::{FailureExit, FractionalTimeout, LivesOn, PrintedAs, RequestShape, UnrunnablePath};
pub use machine::Dispatcher;

/// Everything about a dispatcher that is not in the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Path of the toolhost program.
    pub peer: String,
    /// The `<plugin>` argument of the toolhost's run mode.
    pub plugin: String,
    /// Shape of the request.
    pub request_shape: RequestShape,
    /// Form of a printed success.
    pub printed_as: PrintedAs,
    /// Exit status after an error object.
    pub failure_exit: FailureExit,
    /// Type of the error for a toolhost that may not be run.
    pub unrunnable_path: UnrunnablePath,
    /// Result of a toolhost that answered but did not exit in time.
    pub lives_on: LivesOn,
    /// Reason to refuse every call, if the start configuration is invalid.
    pub refusal: Option<String>,
    /// Caps; `stdin_bytes_max` bounds the call, `toolhost_*` the toolhost, `nesting_max` every JSON text.
    pub limits: Limits,
    /// Treatment of ambiguous JSON in the call, the reply and its `output_json`.
    pub policy: Policy,
}

impl Config {
    /// The contract's configuration for the toolhost at `peer`.
    pub fn new(peer: impl Into<String>) -> Self {
        Self {
            peer: peer.into(),
            plugin: "default".to_owned(),
            request_shape: RequestShape::default(),
            printed_as: PrintedAs::default(),
            failure_exit: FailureExit::default(),
            unrunnable_path: UnrunnablePath::default(),
            lives_on: LivesOn::default(),
            refusal: None,
            limits: Limits::default(),
            policy: Policy::default(),
        }
    }

    /// Sets the time limit of a toolhost from the value of `MACHINA_TOOLHOST_TIMEOUT`. Keeps the default if the value
    /// is no time (see [`timeout_ms`]).
    pub(crate) fn read_timeout(&mut self, seconds: &str, fractions: FractionalTimeout) {
        let Some(time_ms) = timeout_ms(seconds) else { return };
        let is_fraction = seconds.trim().parse::<f64>().is_ok_and(|seconds| seconds.fract() != 0.0);
        match fractions {
            FractionalTimeout::Default if is_fraction => {}
            FractionalTimeout::Refuse if is_fraction => {
                self.refusal = Some(format!("the time limit {seconds:?} is no whole number of seconds"));
            }
            _ => self.limits.toolhost_timeout_ms = time_ms,
        }
    }
}

/// The five `type`s of an error (`ipc` §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The toolhost did not end in time.
    Timeout,
    /// The toolhost ended with a non-zero status or by a signal.
    Crash,
    /// The toolhost's output is not a reply.
    ParseError,
    /// The toolhost program does not exist.
    NotFound,
    /// Anything else, including a failure of the tool itself.
    Exception,
}

impl FailureKind {
    /// The value of `type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::ParseError => "parse_error",
            Self::NotFound => "not_found",
            Self::Exception => "exception",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reason why a call has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Value of `type` in the error object.
    pub kind: FailureKind,
    /// Its `detail`, human-readable and never empty.
    pub detail: String,
}

impl Failure {
    /// A failure with its detail.
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// The time limit that the value of `MACHINA_TOOLHOST_TIMEOUT` sets: seconds, fractions allowed (`ipc` §7).
///
/// Returns `None` for anything but a positive finite number; the default then stays in force.
pub fn timeout_ms(seconds: &str) -> Option<Millis> {
    let seconds: f64 = seconds.trim().parse().ok()?;
    if !(seconds.is_finite() && seconds > 0.0) {
        return None;
    }
    // `as` saturates. A limit below one millisecond counts as one.
    Some(((seconds * 1000.0).round() as Millis).max(1))
}

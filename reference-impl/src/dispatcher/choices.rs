//! Behaviours that the contract leaves open for a dispatcher, as values (contract §1 "Dispatcher"; §8 `[choices]`).

/// The two requests that the documents allow (`ipc` §3a, §3c and its note; OPEN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestShape {
    /// `{"aid":…,"inputs":{…}}`, as in `ipc` §3c. A toolhost may ignore `inputs`.
    Inputs,
    /// `{"aid":…,"input_json":"{…}"}`, the shape that every toolhost reads.
    #[default]
    InputJson,
}

/// Form of a printed success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrintedAs {
    /// The JSON value itself.
    #[default]
    Value,
    /// A JSON string that holds the text of the value.
    Text,
}

/// Exit status after an error object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureExit {
    /// Status 0.
    #[default]
    Zero,
    /// Status 1.
    Nonzero,
}

/// Error type for a toolhost path that exists but cannot be run: a directory, or a file without the execute bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnrunnablePath {
    /// `not_found`, as for a missing path.
    NotFound,
    /// `exception`.
    #[default]
    Exception,
}

/// Meaning of a fraction of a second in `MACHINA_TOOLHOST_TIMEOUT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FractionalTimeout {
    /// Its value, rounded to milliseconds.
    #[default]
    Number,
    /// Ignored: the default stays in force.
    Default,
    /// Invalid: every call is an `exception`.
    Refuse,
}

/// Result of a toolhost that answered but did not exit before its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LivesOn {
    /// `timeout`.
    #[default]
    Timeout,
    /// The answer of the toolhost.
    Result,
}

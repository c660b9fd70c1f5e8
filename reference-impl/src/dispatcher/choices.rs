//! What the contract leaves open for a dispatcher, as values (contract §1 "Dispatcher"; §8 `[choices]`).

/// The two requests that the documents allow (`ipc` §3a, §3c and its note; OPEN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestShape {
    /// `{"aid":…,"inputs":{…}}`, what `ipc` §3c shows.
    #[default]
    Inputs,
    /// `{"aid":…,"input_json":"{…}"}`, what toolhosts expect.
    InputJson,
}

/// How a success is printed.
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

/// Type of the error for a toolhost path that is there and may not be run: a directory, a file without the run bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnrunnablePath {
    /// `not_found`, as for a path where nothing is.
    NotFound,
    /// `exception`.
    #[default]
    Exception,
}

/// What a fraction of a second in `MACHINA_TOOLHOST_TIMEOUT` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FractionalTimeout {
    /// The number it is, to the millisecond.
    #[default]
    Number,
    /// Nothing: the default stays in force.
    Default,
    /// Every call is an `exception`.
    Refuse,
}

/// What a toolhost that answered and has not ended when its time is up comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LivesOn {
    /// `timeout`.
    #[default]
    Timeout,
    /// What it answered.
    Result,
}

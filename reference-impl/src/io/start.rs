//! Errors at the start of a program.

use std::io;
use std::path::Path;

use crate::choices::ChoiceError;
use crate::limits::LimitError;
use crate::policy_driver::settings::SettingError;
use crate::scenario::ScenarioError;

/// Reason why a program of the reference cannot start. Its text is one sentence for standard error.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The arguments select nothing; the usage is given.
    #[error("{0}")]
    Usage(&'static str),
    /// An unknown option.
    #[error("unknown option {option:?}{}", behind(*usage))]
    Option {
        /// The option.
        option: String,
        /// Usage of the program, if it is given.
        usage: Option<&'static str>,
    },
    /// An argument where none is expected.
    #[error("unexpected argument {argument:?}{}", behind(*usage))]
    Argument {
        /// The argument.
        argument: String,
        /// Usage of the program, if it is given.
        usage: Option<&'static str>,
    },
    /// A missing value.
    #[error("{option} needs {needs}")]
    NoValue {
        /// Option without a value.
        option: String,
        /// Expected value.
        needs: &'static str,
    },
    /// A malformed value.
    #[error("{option} needs {needs}, not {value:?}")]
    Value {
        /// Option with the value.
        option: String,
        /// Expected value.
        needs: &'static str,
        /// Given value.
        value: String,
    },
    /// A name that is not among the known ones.
    #[error("unknown {of} {name:?}; known: {known}")]
    Name {
        /// Kind of the name.
        of: &'static str,
        /// The name.
        name: String,
        /// Known names.
        known: String,
    },
    /// Two options that exclude each other.
    #[error("{0} and {1} exclude each other")]
    Exclusive(String, String),
    /// Another number of files than two.
    #[error("two files are needed, not {count}; {usage}")]
    Files {
        /// Number of files.
        count: usize,
        /// Usage of the program.
        usage: &'static str,
    },
    /// A refused choice.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A refused limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A refused variable.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An invalid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A file cannot be opened or read.
    #[error("{action}{path}: {error}")]
    File {
        /// Failed action; empty, or ends with a space.
        action: &'static str,
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The path of this program is unknown.
    #[error("cannot find this program: {0}")]
    OwnPath(#[source] io::Error),
    /// The path of this program is not UTF-8.
    #[error("the path of this program is no text")]
    OwnPathNotText,
    /// The operating system refuses something else.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Usage as the end of an error.
fn behind(usage: Option<&str>) -> String {
    usage.map(|usage| format!("; {usage}")).unwrap_or_default()
}

impl StartError {
    /// Error for an unknown option.
    pub(super) fn option(option: &str, usage: Option<&'static str>) -> Self {
        Self::Option { option: option.to_owned(), usage }
    }

    /// Error for an unexpected argument.
    pub(super) fn argument(argument: &str, usage: Option<&'static str>) -> Self {
        Self::Argument { argument: argument.to_owned(), usage }
    }

    /// Error for an option without its value.
    pub(super) fn no_value(option: &str) -> Self {
        Self::NoValue { option: option.to_owned(), needs: "a value" }
    }

    /// Error for a malformed value.
    pub(super) fn value(option: &str, needs: &'static str, value: &str) -> Self {
        Self::Value { option: option.to_owned(), needs, value: value.to_owned() }
    }

    /// Error for an unknown name.
    pub(super) fn name(of: &'static str, name: &str, known: impl Into<String>) -> Self {
        Self::Name { of, name: name.to_owned(), known: known.into() }
    }

    /// Creates a function that adds a failed action on a file to its error.
    pub(super) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.display().to_string();
        move |error| Self::File { action, path: path.clone(), error }
    }
}

impl From<&'static str> for StartError {
    fn from(usage: &'static str) -> Self {
        Self::Usage(usage)
    }
}

//! Errors whose type says whose fault they are: the user's configuration or request, incomplete results, or the harness
//! and its machine. Functions return a plain `String` as an error if the text itself is the value, such as a fault of a
//! reply. The reason why a check cannot decide is an [`Untestable`](crate::data::check::Untestable).

use std::fmt;

/// Invalid configuration or request: one sentence that names the place and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misconfigured(String);

/// Failure of the harness or its machine: one sentence. It says nothing about a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessFault(String);

/// Missing or duplicate results: one sentence. It says nothing about a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete(String);

/// Failure to set up a peer, by blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprepared {
    /// The peer cannot be started as configured.
    Peer(Misconfigured),
    /// This machine lacks something that the harness needs.
    Machine(HarnessFault),
}

impl Unprepared {
    /// Puts the name of the peer in front of the error.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        match self {
            Self::Peer(error) => error.of(name).into(),
            Self::Machine(error) => error.of(name).into(),
        }
    }
}

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(error) => error.fmt(f),
            Self::Machine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unprepared {}

impl From<Misconfigured> for Unprepared {
    fn from(error: Misconfigured) -> Self {
        Self::Peer(error)
    }
}

impl From<HarnessFault> for Unprepared {
    fn from(error: HarnessFault) -> Self {
        Self::Machine(error)
    }
}

macro_rules! sentence {
    ($($of:ident),+) => {$(
        impl From<String> for $of {
            fn from(sentence: String) -> Self {
                Self(sentence)
            }
        }

        impl From<&str> for $of {
            fn from(sentence: &str) -> Self {
                Self(sentence.to_owned())
            }
        }

        impl From<$of> for String {
            fn from(error: $of) -> Self {
                error.0
            }
        }

        impl fmt::Display for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::error::Error for $of {}

        impl $of {
            /// Puts the name of its subject in front of the error.
            #[must_use]
            pub fn of(self, name: impl fmt::Display) -> Self {
                Self(format!("{name}: {}", self.0))
            }
        }
    )+};
}

sentence!(Misconfigured, HarnessFault, Incomplete);

//! Errors that say by their type whose fault it is: what a user configured or gave, results that are not whole, or the harness
//! and its machine. A `String` as an error is itself the value: what is wrong with a reply, what a
//! process says on its standard error. Why nothing can be decided of a peer is an [`Untestable`](crate::check::Untestable).

use std::fmt;

/// What a user configured or asked for makes no sense: one sentence that says where it stands and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misconfigured(String);

/// The harness or its machine cannot go on: one sentence. It says nothing about a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessFault(String);

/// Results are missing, or there twice: one sentence. It says nothing about a peer either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete(String);

/// Why a peer cannot be spoken to, by whose doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprepared {
    /// It cannot be started as it is configured.
    Peer(Misconfigured),
    /// This machine does not give what the harness needs.
    Machine(HarnessFault),
}

impl Unprepared {
    /// The same with the name of the peer before it.
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
            /// The same with the name of what it is about before it.
            #[must_use]
            pub fn of(self, name: impl fmt::Display) -> Self {
                Self(format!("{name}: {}", self.0))
            }
        }
    )+};
}

sentence!(Misconfigured, HarnessFault, Incomplete);

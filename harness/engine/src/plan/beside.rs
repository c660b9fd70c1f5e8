//! What is done and awaited beside the processes of a conversation, as data.

use serde::{Deserialize, Serialize};

/// Something beside a conversation that can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Something is at a path, or was for a moment while it was waited for.
    Path {
        /// The fixture below which it is.
        folder: String,
        /// Its path there, as a glob; `*` matches no `/`.
        glob: String,
    },
    /// Something is at each of these paths, or was for a moment while it was waited for.
    Each {
        /// The fixture below which it is.
        folder: String,
        /// Its paths there, each as [`Effect::Path`] has it.
        globs: Vec<String>,
    },
    /// An actor has been given a file that holds this text, see [`ActorStep::Perform`](crate::plan::ActorStep::Perform).
    Performs {
        /// Fixture.
        actor: String,
        /// The text.
        holds: String,
        /// And has ended by itself then.
        ended: bool,
    },
    /// Nothing is in a folder.
    Empty {
        /// The fixture below which it is.
        folder: String,
        /// Its path there; empty for the fixture itself.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        path: String,
    },
    /// An actor has started.
    Starts {
        /// Fixture.
        actor: String,
        /// Which of its starts, counted from 0.
        start: usize,
    },
    /// An actor has taken a request of those that it takes one after the other.
    Takes {
        /// Fixture.
        actor: String,
        /// Which of its requests, counted from 0.
        request: usize,
    },
    /// An actor has written to its standard output.
    Writes {
        /// Fixture.
        actor: String,
        /// Which of its outputs, counted from 0.
        output: usize,
    },
    /// A file has so many lines: line feeds are counted.
    Lines {
        /// The fixture below which it is, there or still to come.
        folder: String,
        /// Its path there.
        path: String,
        /// So many, or more.
        lines: usize,
    },
    /// An actor has ended by itself.
    Ends {
        /// Fixture.
        actor: String,
        /// Which of its ends, counted from 0.
        end: usize,
    },
}

/// How a file comes to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placing {
    /// It is written there, and can be seen before it is whole.
    Write,
    /// It is written beside, under a name that begins with a dot, and renamed.
    Rename,
}

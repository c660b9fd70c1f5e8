//! Acts and effects outside the processes of a conversation, as data.

use serde::{Deserialize, Serialize};

/// Effect outside a conversation that can be awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwaitedEffect {
    /// A path exists, or existed for a moment during the wait.
    Path {
        /// Fixture below which the path lies.
        folder: String,
        /// Path below it, as a glob; `*` does not match `/`.
        glob: String,
    },
    /// Each of these paths exists, or existed for a moment during the wait.
    Each {
        /// Fixture below which the paths lie.
        folder: String,
        /// Paths below it, each as in [`AwaitedEffect::Path`].
        globs: Vec<String>,
    },
    /// An actor was given a file with this text, see [`ActorStep::Perform`](crate::data::plan::ActorStep::Perform).
    Performs {
        /// Fixture.
        actor: String,
        /// The text.
        holds: String,
        /// Set if it must also have ended by itself.
        ended: bool,
    },
    /// A folder is empty.
    Empty {
        /// Fixture below which the folder lies.
        folder: String,
        /// Path below it; empty for the fixture itself.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        path: String,
    },
    /// An actor has started.
    Starts {
        /// Fixture.
        actor: String,
        /// Number of the start, from 0.
        start: usize,
    },
    /// An actor has taken one of its consecutive requests.
    Takes {
        /// Fixture.
        actor: String,
        /// Number of the request, from 0.
        request: usize,
    },
    /// An actor has written to its standard output.
    Writes {
        /// Fixture.
        actor: String,
        /// Number of the output, from 0.
        output: usize,
    },
    /// A file has this many line feeds.
    Lines {
        /// Fixture below which the file lies or will appear.
        folder: String,
        /// Path below it.
        path: String,
        /// Minimum number of lines.
        lines: usize,
    },
    /// An actor has ended by itself.
    Ends {
        /// Fixture.
        actor: String,
        /// Number of the end, from 0.
        end: usize,
    },
}

/// Begin of the names of temporary files of [`Placing::Rename`].
pub(crate) const PUT_PREFIX: &str = ".put-";

/// Way of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placing {
    /// Writes in place, so that a partial file can be seen.
    Write,
    /// Writes next to it under a name that begins with a dot, then renames.
    Rename,
}

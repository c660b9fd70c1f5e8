//! What is done and awaited beside the processes of a conversation, as data.

use serde::{Deserialize, Serialize};

/// How a file comes to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placing {
    /// It is written there, and can be seen before it is whole.
    Write,
    /// It is written beside, under a name that begins with a dot, and renamed.
    Rename,
}

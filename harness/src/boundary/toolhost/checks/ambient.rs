//! What holds of every reply and of every process: watched in all conversations.

use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    Vec::new()
}

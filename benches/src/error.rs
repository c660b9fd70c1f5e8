//! Errors of figures.

use std::io;

use peerproof_engine::drive::lab::Unfinished;
use peerproof_reference::policy_driver::block::BlockError;

/// Reason why a figure cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// An action failed, such as the start of a peer.
    #[error("{action}: {error}")]
    Action {
        /// The failed action.
        action: String,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The operating system refuses something else.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The engine could not finish a conversation.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    /// The reference does not read its own block.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A peer, or this machine, does not behave as the figure needs.
    #[error("{0}")]
    Unfit(String),
}

impl FigureError {
    /// Creates a function that names the failed action of an error.
    pub fn of(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |error| Self::Action { action, error }
    }
}

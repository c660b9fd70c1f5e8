//! Reasons why a log is inconsistent.

use crate::refusal::Refusal;

/// Reason why a replayer fails a log. Its text is one sentence, for the verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    /// A line, its payload, a patch or a state is malformed.
    #[error(transparent)]
    Malformed(#[from] Refusal),
    /// The framing of a line is wrong: its length, its end, or a blank line.
    #[error("{0}")]
    Frame(&'static str),
    /// A member of the header is unknown, or differs from that of the first line.
    #[error("{0}")]
    Header(&'static str),
    /// The event is not the next one.
    #[error("{0}")]
    Order(&'static str),
    /// The event has another step.
    #[error("the step is {step}, not {expected}")]
    Step {
        /// Step of the event.
        step: u64,
        /// Smallest valid step.
        expected: u64,
    },
    /// `run_finished` counts other selections than the log has.
    #[error("steps is {steps}, not {selections}")]
    Steps {
        /// Number in the log.
        steps: u64,
        /// Number of selections.
        selections: u64,
    },
    /// The patch or the inputs are not those of the selection.
    #[error("{0}")]
    Inputs(&'static str),
    /// The tool is not the selected one.
    #[error("the tool is not the one that was selected")]
    Tool,
    /// An item of a patch does not fit the state.
    #[error("slot {slot} is {}", if *used { "used" } else { "empty" })]
    Slot {
        /// The slot.
        slot: usize,
        /// True if the slot holds an artifact.
        used: bool,
    },
    /// The state has another digest.
    #[error("the state has the digest {0}")]
    Digest(String),
    /// The tool fails when it is run again.
    #[error("the tool fails: {0}")]
    RerunFails(String),
    /// The tool has another result when it is run again.
    #[error("{0}")]
    RerunDiffers(&'static str),
    /// The log ends too early.
    #[error("{0}")]
    Unfinished(&'static str),
}

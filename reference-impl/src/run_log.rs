//! The run_log boundary: logs of runs and their replay (document `policy` §3b–c; `ipc` §1, §2, §6; contract §3).
//!
//! - [`mod@line`] is a line with its header, [`event`] its event; [`state`] applies a `tx_patch`, [`digest`] computes
//!   digests.
//! - Provider: a [`Runner`] takes a goal and writes the log. Its selector is that of
//!   [`policy_driver`](crate::policy_driver). A toolhost runs its tools.
//! - Consumer: a [`Replayer`] reads a log and decides if it is consistent. [`Replay`] follows the lines by the
//!   decisions of [`Rules`]; the machine around it splits lines and re-runs tools.
//! - [`tool`] is one execution of a tool, for both.
//!
//! # Readings
//!
//! - The toolhost is started as `PEER --run PLUGIN AID`, once for each execution.
//! - A replayer fails `null` for `sid`, `aid`, `input_patch_json` and `control_mode`. It treats `null` for a
//!   `spec_version`, a `profile_id` and a `request_id` as absent. All lines must have one `request_id`.
//! - An unknown event is refused before `run_started`, after `run_finished`, and with a step out of bounds.
//! - A runner without `max_steps` makes 100 selections at most; it ends with status 0 unless the request is refused.
//! - A reply of run mode is a full state: a delta is malformed.
//! - A runner writes `deterministic` on a `tool_ok` only: a timeout or a crash need not happen again. A replayer that
//!   re-runs the tool of a `tool_error` expects it to fail again, in any way.

pub(crate) mod choices;
pub(crate) mod digest;
pub(crate) mod event;
mod fault;
pub(crate) mod line;
pub mod mutants;
mod replay;
mod replayer;
mod request;
mod rules;
mod runner;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod tool;

pub use choices::Choices;
pub use fault::LogFault;
pub use replay::{Replay, ReplayStep};
pub use replayer::Replayer;
pub use request::{Mode, RunRequest, ToolEntry};
pub use rules::{CorrectDecisions, Expected, Place, Rerun, Rules};
pub use runner::{Ordinary, Run, Runner, RunnerDecisions, RunnerParts};

use crate::limits::Limits;

/// Configuration of a runner or a replayer.
#[derive(Debug, Clone)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Path of the toolhost.
    pub peer: String,
    /// The `<plugin>` argument of the toolhost.
    pub plugin: String,
    /// Default number of selections of a run.
    pub steps_default: u64,
    /// Seed of the `run_id`; random in a real runner.
    pub run_seed: [u8; 16],
}

impl Config {
    /// Creates a configuration with default choices, the contract's limits, and a seed of zeros.
    pub fn new(peer: &str) -> Self {
        Self {
            choices: Choices::default(),
            limits: Limits::default(),
            peer: peer.to_owned(),
            plugin: "default".to_owned(),
            steps_default: 100,
            run_seed: [0; 16],
        }
    }
}

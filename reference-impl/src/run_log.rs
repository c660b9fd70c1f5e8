//! The run_log boundary: logs of runs and their replay (document `policy` §3b–c; `ipc` §1, §2, §6; contract §3).
//!
//! - [`mod@line`] is a line with its header, [`event`] what it tells; [`state`] applies a `tx_patch`, [`digest`] makes digests.
//! - Provider: a [`Runner`] takes a goal and writes the log. Its selector is that of
//!   [`policy_driver`](crate::policy_driver), its tools are run by a toolhost.
//! - Consumer: a [`Replayer`] reads a log and says whether it can have happened so. [`Replay`] follows the lines by the
//!   decisions of [`Rules`]; the machine around it cuts lines and runs tools again.
//! - [`tool`] is one execution of a tool, for both.
//!
//! # Readings
//!
//! - The toolhost is started as `PEER --run PLUGIN AID`, once for each execution.
//! - A replayer fails `null` for `sid`, `aid`, `input_patch_json` and `control_mode`, and takes `null` for a
//!   `spec_version`, a `profile_id` and a `request_id` as absent. A `request_id` is the same on all lines.
//! - An event that is not named is refused before `run_started`, behind `run_finished`, and with a step out of its bounds.
//! - A runner without `max_steps` makes 100 selections at most; it ends with status 0 unless the request is refused.
//! - A reply of run mode is a full state: a delta is malformed.
//! - A runner says `deterministic` on a `tool_ok` only: a time limit or a crash need not come again. A replayer that runs the
//!   tool of a `tool_error` again wants it to fail again, in whatever way.

pub mod choices;
pub mod digest;
pub mod event;
pub mod line;
pub mod mutants;
mod replay;
mod replayer;
mod request;
mod rules;
mod runner;
pub mod state;
#[cfg(test)]
mod tests;
pub mod tool;

pub use choices::Choices;
pub use replay::{Next, Replay};
pub use replayer::Replayer;
pub use request::{Mode, RunRequest, ToolEntry};
pub use rules::{Expected, Place, Rerun, Right, Rules};
pub use runner::{Ordinary, Run, Runner, RunnerParts, Ways};

use crate::limits::Limits;

/// How a runner or a replayer behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the contract leaves open.
    pub choices: Choices,
    /// The caps in force.
    pub limits: Limits,
    /// Path of the toolhost.
    pub peer: String,
    /// The plugin that it is told.
    pub plugin: String,
    /// Selections of a run whose request names no number.
    pub steps_default: u64,
    /// What a `run_id` is made of; random in a real runner.
    pub run_seed: [u8; 16],
}

impl Config {
    /// Natural choices, the contract's limits, and a `run_id` of zeros.
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

//! The run_queue boundary: jobs in a folder, their writers and their workers (document `policy` §4, §6; contract §4).
//!
//! - [`Worker`] takes jobs from `inbox/`, runs a program for each, and moves them to `done/` or `failed/`.
//! - [`enqueue`] writes a job into `inbox/`; the tool [`EnqueueTool`] and the HTTP [`Adapter`] use it.
//! - [`genesis`] holds the tools that write, compile and load tools.
//!
//! All of them change files through [`disk::Op`]s, which a [`disk::Disk`] carries out, and decide by [`Decisions`].
//!
//! # Readings
//!
//! - A worker owns a folder below `processing/` and holds its lock for its whole life. A folder with a free lock
//!   belonged to a dead worker: the next holder of the lock takes over its jobs. Process ids are not used.
//! - A worker handles one job at a time: those of dead workers first, then the inbox by name.
//! - The reason of `failed/NAME.json` is `failed/NAME.reason.txt`, written after the move.
//! - If the disk is full, the move out of `processing/` is retried; the job is not run again.
//! - A job is malformed like a RunRequest (contract §3): known members of wrong types fail it too.
//! - SIGTERM ends a worker with status 0. A second worker where only one is allowed ends with status 3.
//! - Writers use `tmp/` beside the inbox. Runs without a `--runner` write their logs to `out/`.

mod adapter;
pub(crate) mod choices;
mod decisions;
pub mod disk;
mod enqueue;
pub mod genesis;
pub mod mutants;
#[cfg(test)]
mod tests;
mod worker;

pub use adapter::Adapter;
pub(crate) use adapter::token_matches;
pub use choices::Choices;
pub use decisions::{Careful, Decisions, Treat};
pub use enqueue::{AID as ENQUEUE_AID, EnqueueTool, Refused, enqueue};
pub use worker::Worker;

use crate::limits::Limits;
use crate::machine::Millis;
use disk::Disk;
use genesis::{NoWorkshop, Workshop};

/// Configuration of a worker or a writer.
#[derive(Debug, Clone)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// True to end a worker when there is nothing to do.
    pub once: bool,
    /// Number of attempts for a job whose program fails.
    pub attempts: u64,
    /// Time between two attempts, in ms.
    pub retry_ms: Millis,
    /// Polling interval of an idle worker, in ms.
    pub poll_ms: Millis,
    /// Seed of generated names; random in a real peer.
    pub seed: u64,
    /// Start time of the process in ms since 1970, the prefix of generated names.
    pub started_unix_ms: u64,
    /// Bearer token that HTTP requests must have.
    pub token: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            choices: Choices::default(),
            limits: Limits::default(),
            once: false,
            attempts: 1,
            retry_ms: 0,
            poll_ms: 250,
            seed: 0,
            started_unix_ms: 0,
            token: None,
        }
    }
}

/// Replaceable parts of a worker or a writer.
pub struct Parts {
    /// File system.
    pub disk: Box<dyn Disk>,
    /// Decisions.
    pub ways: Box<dyn Decisions>,
    /// Compilers and runs, for the Genesis tools.
    pub bench: Box<dyn Workshop>,
}

impl Parts {
    /// Creates the correct decisions for these files.
    pub fn new(disk: Box<dyn Disk>) -> Self {
        Self { disk, ways: Box::new(Careful), bench: Box::new(NoWorkshop) }
    }
}

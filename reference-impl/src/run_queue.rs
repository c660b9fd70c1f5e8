//! The run_queue boundary: jobs in a folder, and who puts and takes them (document `policy` §4, §6; contract §4).
//!
//! - [`Worker`] takes jobs out of `inbox/`, runs a program for each, and moves them to `done/` or `failed/`.
//! - [`enqueue`] puts a job into `inbox/`; the tool [`EnqueueTool`] and the HTTP [`Adapter`] do so for others.
//! - [`genesis`] has the tools that write, compile and load tools.
//!
//! All of them do what they do to files by [`disk::Op`]s that a [`disk::Disk`] carries out, and decide by [`Ways`].
//!
//! # Readings
//!
//! - A worker owns a folder below `processing/` and holds its lock for as long as it lives. A folder whose lock is free
//!   belonged to a worker that is dead: whoever takes the lock has its jobs. No number of a process is looked at.
//! - One job at a time; those of dead workers first, then the inbox by name.
//! - The reason of `failed/NAME.json` is `failed/NAME.reason.txt`, written behind the move.
//! - A job that cannot leave `processing/` because the disk is full is tried again and not run again.
//! - A job is malformed as a RunRequest is (contract §3): members that it names, of wrong types, fail it as well.
//! - SIGTERM ends a worker with status 0. A worker that may not be a second one ends with status 3.
//! - Writers use `tmp/` beside the inbox. Runs without a `--runner` leave their logs in `out/`.

mod adapter;
pub mod choices;
pub mod disk;
mod enqueue;
pub mod genesis;
pub mod mutants;
#[cfg(test)]
mod tests;
mod ways;
mod worker;

pub use adapter::{Adapter, token_matches};
pub use choices::Choices;
pub use enqueue::{AID as ENQUEUE_AID, EnqueueTool, Refused, enqueue};
pub use ways::{Careful, Treat, Ways};
pub use worker::{STATUS_SECOND, Worker};

use crate::limits::Limits;
use crate::machine::Millis;
use disk::Disk;
use genesis::{NoWorkshop, Workshop};

/// How a worker or a writer behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the contract leaves open.
    pub choices: Choices,
    /// The caps in force.
    pub limits: Limits,
    /// A worker ends when there is nothing to do.
    pub once: bool,
    /// Starts of a job whose program fails.
    pub attempts: u64,
    /// Time between two starts, in ms.
    pub retry_ms: Millis,
    /// Time after which an idle worker looks again, in ms.
    pub poll_ms: Millis,
    /// What names are made of; random in a real peer.
    pub seed: u64,
    /// When the process began, in ms since 1970; names begin with it.
    pub started_unix_ms: u64,
    /// The token that HTTP requests have to bear.
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

/// The replaceable parts of a worker or a writer.
pub struct Parts {
    /// The files.
    pub disk: Box<dyn Disk>,
    /// The decisions.
    pub ways: Box<dyn Ways>,
    /// What compiles and runs, for the tools of Genesis.
    pub bench: Box<dyn Workshop>,
}

impl Parts {
    /// The right decisions about these files.
    pub fn new(disk: Box<dyn Disk>) -> Self {
        Self { disk, ways: Box::new(Careful), bench: Box::new(NoWorkshop) }
    }
}

//! Mutants: the correct replayer and the correct runner, cut at a seam so that they break a clause on purpose.
//!
//! A replayer decides by [`Rules`](super::Rules) and a runner by [`Ways`](super::Ways): most mutants replace one decision.
//! The others change the configuration, or rewrite a line of the log or an action. Clauses come in families:
//!
//! - `LOG-LINE`, `LOG-HEADER`: what a line is, and the header on each.
//! - `LOG-STEP`, `LOG-ORDER`: the numbers of the steps, and what may follow what.
//! - `LOG-EVENT`: members of the payloads.
//! - `LOG-INPUT`: inputs and their patches.
//! - `LOG-PATCH`: items of a `tx_patch`, and how they apply.
//! - `LOG-DIGEST`: digests of states.
//! - `LOG-RERUN`: which tools a replayer runs again, with what, and what has to come of it.
//! - `LOG-EQUAL`: when two JSON values are equal.
//! - `LOG-VERDICT`: the replayer's line and its exit status.
//! - `LOG-WRITE`: what a runner writes.
//! - `LOG-RUN`: what a runner asks, starts and ends.

mod memory;
pub mod replayer;
mod requests;
mod reran;
pub mod runner;
mod values;
mod wire;

pub use wire::{Rewrite, closed};

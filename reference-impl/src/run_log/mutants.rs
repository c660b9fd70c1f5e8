//! Mutants: the correct replayer and the correct runner, each with one deliberate fault at a seam.
//!
//! A replayer decides by [`Rules`](super::Rules) and a runner by [`RunnerDecisions`](super::RunnerDecisions). Most
//! mutants replace one decision. The others change the configuration, or rewrite a line of the log or an action. The
//! clauses form families:
//!
//! - `LOG-LINE`, `LOG-HEADER`: the form of a line, and the header on each.
//! - `LOG-STEP`, `LOG-ORDER`: the numbers of the steps, and the order of events.
//! - `LOG-EVENT`: members of the payloads.
//! - `LOG-INPUT`: inputs and their patches.
//! - `LOG-PATCH`: items of a `tx_patch`, and how they apply.
//! - `LOG-DIGEST`: digests of states.
//! - `LOG-RERUN`: the tools that a replayer re-runs, their input, and the required result.
//! - `LOG-EQUAL`: equality of JSON values.
//! - `LOG-VERDICT`: the replayer's line and its exit status.
//! - `LOG-WRITE`: the lines of a runner.
//! - `LOG-RUN`: the requests, starts and end of a runner.

mod memory;
pub mod replayer;
pub mod runner;
mod values;
mod wire;

pub use wire::Rewrite;
pub(crate) use wire::closed;

//! Runs: many experiments, and what follows from them.
//!
//! Lives here: the runner that makes checks of a peer ([`runner`]), verdicts ([`verdict`]) and causes ([`causes`]),
//! stored results ([`results`]) and known failures ([`expectation`]), shrinking ([`shrink`]) and reproducers
//! ([`reproducer`]), fuzzing ([`fuzz`]), benchmarks ([`mod@bench`]), the comparison of peers ([`matrix`]), and the proof of
//! the checks themselves ([`selftest`]).
//!
//! The command line and `Suite` call these modules.
//!
//! Never here: the protocol of a boundary, or printing.

pub mod bench;
pub mod causes;
pub mod expectation;
pub mod fuzz;
pub mod matrix;
pub mod reproducer;
pub mod results;
pub mod runner;
pub mod selftest;
pub mod shrink;
pub mod verdict;

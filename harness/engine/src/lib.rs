//! Drives peers, records what they do, and judges the record. It knows no boundary and no reference.
//!
//! Four rooms, each built on those before it:
//!
//! 1. [`data`]: plans, transcripts, clauses, checks, findings.
//! 2. [`contract`]: the trait of a boundary, and the judge. Pure.
//! 3. [`drive`]: the laboratory, transports, fixtures. All input and output.
//! 4. [`run`]: the runner, causes, shrinking, fuzzing, benchmarks, selftest.
//!
//! A boundary of one's own is three things:
//!
//! 1. Clauses: one row for each normative statement ([`data::clause`]).
//! 2. A face ([`contract::face::Face`]): how a peer is spoken to, what a frame decodes to, and which answers each written
//!    line allows, under which clause. [`contract::judge::judge`] compares that with the frames of the peer.
//! 3. Checks ([`data::check::Check`]): conversations as data ([`data::plan::Plan`]), each about a clause
//!    ([`contract::face::Aim`]).
//!
//! [`contract::boundary::Boundary`] ties them together, and [`run::runner::run`] runs the checks against a
//! [`drive::peer::Peer`]. `examples/adder.rs` does all of it in three hundred lines: a process that adds numbers, ten
//! clauses, right and wrong peers.

pub mod contract;
pub mod data;
pub mod drive;
pub mod run;
#[cfg(test)]
mod toy;

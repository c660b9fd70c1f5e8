//! Drives peers, records their behaviour and judges the record. Knows neither a particular boundary nor a reference.
//!
//! A new boundary needs three things:
//!
//! 1. Clauses: one row per normative statement ([`clause`]).
//! 2. A face ([`face::Face`]): the framing of messages, the decoding of a frame, and the allowed outcomes of each line
//!    with their clause. [`judge::judge`] compares them with the peer's behaviour.
//! 3. Checks ([`check::Check`]): conversations as data ([`plan::Plan`]), each about a clause ([`face::Aim`]).
//!
//! [`boundary::Boundary`] ties them together, and [`runner::run`] runs the checks against a [`peer::Peer`].
//! `examples/adder.rs` shows it all in three hundred lines: a process that adds numbers, ten clauses, and correct and
//! faulty peers.

pub mod asking;
pub mod bench;
pub mod blame;
pub mod boundary;
pub mod budget;
pub mod carriage;
pub mod case;
pub mod causes;
pub mod check;
pub mod clause;
pub mod config;
pub mod counterpart;
pub mod ending;
pub mod expectation;
pub mod face;
pub mod facts;
pub mod filter;
pub mod finding;
pub mod fixture;
pub mod free_data;
pub mod fuzz;
pub mod json;
pub mod judge;
pub mod lab;
pub mod lines;
pub mod lint;
pub mod load;
pub mod machine;
pub mod matrix;
pub mod memory;
pub mod near_miss;
pub mod nearest;
pub mod pace;
pub mod packing;
pub mod parallel;
pub mod payload;
pub mod peer;
pub mod pieces;
pub mod plan;
pub mod played;
pub mod presentation;
pub mod private;
mod process;
pub mod program;
pub mod record;
pub mod reproducer;
pub mod results;
pub mod rng;
pub mod rung;
pub mod runner;
pub mod schema;
pub mod scratch;
pub mod secrets;
pub mod selftest;
pub mod shrink;
pub mod sizes;
pub mod stored;
pub mod talk;
pub mod text;
#[cfg(test)]
mod toy;
pub mod transcript;
pub mod transport;
pub mod verdict;

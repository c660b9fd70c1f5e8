//! Values: what an experiment is, what happened, and what is said about it.
//!
//! Lives here: plans of conversations ([`plan`]) and their payloads ([`payload`]), transcripts ([`transcript`]), clauses
//! ([`clause`]), checks ([`check`]) and their cases as data ([`case`]), facts about a peer ([`facts`]), findings
//! ([`finding`]), JSON with exact spelling ([`json`]), and small tools for text, random numbers and sizes.
//!
//! Everybody uses these modules. They use only each other.
//!
//! Never here: input and output, threads, clocks, or a decision about a peer.

pub mod blame;
pub mod budget;
pub mod carriage;
pub mod case;
pub mod check;
pub mod clause;
pub(crate) mod crash;
pub mod ending;
pub mod facts;
pub mod filter;
pub mod finding;
pub mod free_data;
pub mod json;
pub mod lines;
pub mod near_miss;
pub mod nearest;
pub mod pace;
pub mod packing;
pub mod payload;
pub mod pieces;
pub mod plan;
pub mod rng;
pub mod rung;
pub mod schema;
pub mod secrets;
pub mod sizes;
pub mod text;
pub mod transcript;

//! The contract: what a boundary has to say about its peers, and the judge that compares it with a transcript.
//!
//! Lives here: the trait of a boundary ([`boundary`]), the face of a peer as a model ([`face`]), the judge of faces
//! ([`judge`]), counterparts and programs that the harness plays ([`counterpart`], [`program`]), faces of peers that ask
//! ([`asking`]), and the judgement of stored conversations ([`lint`]).
//!
//! The runner calls [`boundary::Boundary::judge`], and the crates of the boundaries implement what is declared here.
//!
//! Everything here is pure: a transcript gives the same findings for ever.
//!
//! Never here: starting a peer, waiting, or reading a clock.

pub mod asking;
pub mod boundary;
pub mod counterpart;
pub mod face;
pub mod judge;
pub mod lint;
pub mod memory;
pub mod program;
pub mod session_lines;

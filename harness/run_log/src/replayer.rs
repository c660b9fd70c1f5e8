//! Replayers: consumers, which get a log and a toolhost.

pub(crate) mod bench;
pub(crate) mod cases;
pub(crate) mod face;
pub mod generate;
pub mod model;
pub mod talk;
pub(crate) mod toolhost_requests;

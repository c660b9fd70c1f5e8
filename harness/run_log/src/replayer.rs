//! Replayers: consumers, which get a log and a toolhost.

pub mod bench;
pub mod cases;
pub mod face;
pub mod generate;
pub mod model;
pub mod talk;
pub mod toolhost_requests;

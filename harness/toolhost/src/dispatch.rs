//! The dispatcher under test: the harness plays the toolhost that it starts.
//!
//! [`call`] makes conversations: one call on the dispatcher's standard input, one scripted toolhost for it to start.
//! [`expect`] says what may be printed, [`oracle`] compares.

pub mod call;
pub mod expect;
pub mod oracle;

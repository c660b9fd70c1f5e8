//! The dispatcher under test: the harness plays the toolhost that it starts.
//!
//! [`call`] builds conversations: one call on the dispatcher's standard input, and one scripted toolhost. [`expect`]
//! defines the allowed results, [`oracle`] compares.

pub(crate) mod call;
pub(crate) mod expect;
pub(crate) mod oracle;

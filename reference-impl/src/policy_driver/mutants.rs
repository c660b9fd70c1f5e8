//! Mutants: the correct drivers and the correct selector, cut at a seam so that they break a clause on purpose.
//!
//! A suite that judges drivers and selectors proves with them that its checks can fail. The correct code has no branch for
//! any of them. There is a registry for each peer: [`driver`], [`bridge`] (a driver that asks a model) and [`selector`].
//!
//! Clauses are those of `corpora/policy_driver/clauses.toml`.

pub mod bridge;
pub mod driver;
pub mod selector;
mod tree;

#[cfg(test)]
mod tests;

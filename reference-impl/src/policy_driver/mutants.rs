//! Mutants: the correct drivers and the correct selector, each with one deliberate fault at a seam.
//!
//! They prove that the checks for drivers and selectors can fail. The correct code has no branch for any of them. Each
//! peer has its own table: [`driver`], [`bridge`] (a driver that asks a model) and [`selector`].
//!
//! Clauses are those of `corpora/policy_driver/clauses.toml`.

pub mod bridge;
pub mod driver;
pub mod selector;
mod tree;

#[cfg(test)]
mod tests;

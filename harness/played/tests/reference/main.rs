//! The reference beside the boundaries: models, oracles and properties for what it says.

mod corpora;
mod model;
mod policy_model;

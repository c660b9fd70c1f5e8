//! The reference beside the boundaries: models, oracles and properties for what it says.

mod model;
mod policy_model;

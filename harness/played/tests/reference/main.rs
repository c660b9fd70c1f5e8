//! Tests of the boundaries' models and judges with the reference.

mod model;
mod policy_model;

//! Cases: checks written as data.

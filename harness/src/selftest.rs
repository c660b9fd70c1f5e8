//! The suite proves itself: mutants, null peers, near-miss twins.

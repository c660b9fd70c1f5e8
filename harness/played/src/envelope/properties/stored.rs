//! Runs all stored inputs through the properties of the fuzz targets.

use crate::stored::{generated, replay};

#[test]
fn envelopes() {
    replay("envelope", super::process);
    generated(super::generated);
}

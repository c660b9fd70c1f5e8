//! Every stored input, through the properties that the fuzz targets check.

use crate::stored::{generated, replay};

#[test]
fn envelopes() {
    replay("envelope", super::process);
    generated(super::generated);
}

//! Every stored input, through the properties that the fuzz targets check.

use crate::stored::replay;

#[test]
fn envelopes() {
    replay("envelope", super::process);
    for seed in 0..300_u32 {
        super::generated(&seed.to_le_bytes());
    }
}

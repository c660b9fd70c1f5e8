//! Every stored input, through the properties that the fuzz targets check.

use crate::stored::{generated, replay};

#[test]
fn calls_of_python_tools() {
    replay("python_tool", super::request);
    generated(super::generated);
}

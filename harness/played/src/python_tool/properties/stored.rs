//! Runs all stored inputs through the properties of the fuzz targets.

use crate::stored::{generated, replay};

#[test]
fn calls_of_python_tools() {
    replay("python_tool", super::request);
    generated(super::generated);
}

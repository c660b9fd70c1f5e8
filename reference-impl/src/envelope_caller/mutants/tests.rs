//! Tests of the table of mutants.

use super::*;

#[test]
fn the_table_is_sound() {
    mutant::assert_sound(&all(), "ENV-CALL-");
    assert!(all().iter().all(|mutant| mutant.id.starts_with("caller-")));
}

//! The tables of mutants are sound.

use crate::mutant;
use crate::run_log::mutants::{replayer, runner};

#[test]
fn the_tables_are_sound() {
    mutant::assert_sound(replayer::MUTANTS, "LOG-");
    mutant::assert_sound(runner::MUTANTS, "LOG-");
    assert!(replayer::MUTANTS.iter().all(|mutant| mutant.id.starts_with("replay-")));
    assert!(runner::MUTANTS.iter().all(|mutant| mutant.id.starts_with("run-")));
    assert!(replayer::MUTANTS.len() + runner::MUTANTS.len() >= 40);
}

//! The tables of mutants are sound.

use crate::mutant::assert_sound;
use crate::run_queue::mutants::{self, Mutant};

#[test]
fn tables_are_sound_and_long() {
    let mut all = 0;
    for role in ["worker", "http", "enqueue", "genesis"] {
        let table: Vec<Mutant> = mutants::of(role).copied().collect();
        assert_sound(&table, "QUE-");
        assert!(table.iter().all(|mutant| mutants::find(role, mutant.id).is_some()));
        all += table.len();
    }
    assert!(all >= 40, "{all}");
    assert!(mutants::find("worker", "http-late").is_none());
}

//! Tests of the tables of mutants.

use std::collections::{BTreeMap, BTreeSet};

use super::{bridge, driver, selector};
use crate::mutant::assert_sound;

/// Ids of clauses, with level and a flag for excluded ones.
fn clauses() -> BTreeMap<String, (String, bool)> {
    let text = include_str!("../../../../corpora/policy_driver/clauses.toml");
    let table: toml::Table = text.parse().unwrap();
    let word = |clause: &toml::Value, name: &str| clause[name].as_str().unwrap().to_owned();
    let clauses = table["clause"].as_array().unwrap().iter();
    clauses
        .map(|clause| (word(clause, "id"), (word(clause, "level"), clause.get("excluded").is_some())))
        .collect()
}

/// Ids of all mutants, with their clauses.
fn mutants() -> Vec<(&'static str, &'static [&'static str])> {
    let of_drivers = driver::all().into_iter().map(|mutant| (mutant.id, mutant.clauses));
    let of_bridges = bridge::all().into_iter().map(|mutant| (mutant.id, mutant.clauses));
    let of_selectors = selector::all().into_iter().map(|mutant| (mutant.id, mutant.clauses));
    of_drivers.chain(of_bridges).chain(of_selectors).collect()
}

#[test]
fn the_tables_are_sound() {
    assert_sound(&driver::all(), "PD-");
    assert_sound(&bridge::all(), "PD-LLM-");
    assert_sound(&selector::all(), "PD-");
    assert!(driver::all().iter().all(|mutant| mutant.id.starts_with("driver-")));
    assert!(bridge::all().iter().all(|mutant| mutant.id.starts_with("bridge-")));
    assert!(selector::all().iter().all(|mutant| mutant.id.starts_with("select-")));
}

#[test]
fn mutants_break_clauses_that_are_there() {
    let clauses = clauses();
    for (id, broken) in mutants() {
        for clause in broken {
            let (_, excluded) = clauses.get(*clause).unwrap_or_else(|| panic!("{id}: no clause {clause}"));
            assert!(!excluded, "{id}: {clause} is excluded");
        }
    }
}

#[test]
fn every_must_is_broken() {
    let broken: BTreeSet<&str> = mutants().into_iter().flat_map(|(_, clauses)| clauses).copied().collect();
    for (id, (level, excluded)) in clauses() {
        assert!(excluded || level == "open" || broken.contains(id.as_str()), "{id} ({level})");
    }
}

//! Conversations with a peer that asks: the boundary makes what the peer is told, and what it is told back, smaller.
//!
//! A script is no message, and its plan may say what comes of it. So a smaller one is carried out only where the correct peer,
//! in each form that the contract leaves it, still has nothing to fear of it.

use std::collections::BTreeSet;

use super::{Candidate, Change, Shrinker};
use crate::plan::Act;

/// Shrinks every conversation that the counterpart plays.
pub(super) fn shrink(shrinker: &mut Shrinker<'_>) {
    let steps = &shrinker.best.plan.steps;
    // Who is written nothing is told all in files.
    let is_told = steps.iter().all(|step| !matches!(step.act, Act::Send { .. } | Act::Play { .. }));
    let is_played = |index: &usize| match shrinker.best.plan.steps[*index].act {
        Act::Play { .. } => true,
        Act::Finish => is_told,
        _ => false,
    };
    let steps: Vec<usize> = (0..shrinker.best.plan.steps.len()).filter(is_played).collect();
    // What did not show the finding once is not tried again.
    let mut tried = BTreeSet::new();
    for index in steps {
        while shrinker.goes_on() && is_simpler(shrinker, index, &mut tried) {}
    }
}

/// One accepted simplification; false when there is none left.
fn is_simpler(shrinker: &mut Shrinker<'_>, index: usize, tried: &mut BTreeSet<String>) -> bool {
    for plan in shrinker.proposals(index) {
        if !shrinker.goes_on() {
            return false;
        }
        let text = serde_json::to_string(&plan).unwrap_or_default();
        if plan == shrinker.best.plan || !tried.insert(text) {
            continue;
        }
        let origin = shrinker.best.origin.clone();
        if shrinker.accepts(Candidate { plan, origin }, Change::Play) {
            return true;
        }
    }
    false
}

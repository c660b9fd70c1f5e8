//! Conversations with a peer that asks: the boundary simplifies the peer's instructions and the counterpart's replies.
//!
//! A script is not a message, and its plan may contain expectations. So a smaller one is run only if every allowed form
//! of the correct peer stays clean with it.

use std::collections::BTreeSet;

use super::{Candidate, Change, Shrinker};
use crate::data::plan::Act;

/// Shrinks every conversation of the counterpart.
pub(super) fn shrink(shrinker: &mut Shrinker<'_>) {
    let steps = &shrinker.best.plan.steps;
    // A peer that receives no messages gets everything in files.
    let is_told = steps.iter().all(|step| !matches!(step.act, Act::Send { .. } | Act::Play { .. }));
    let is_played = |index: &usize| match shrinker.best.plan.steps[*index].act {
        Act::Play { .. } => true,
        Act::Finish => is_told,
        _ => false,
    };
    let steps: Vec<usize> = (0..shrinker.best.plan.steps.len()).filter(is_played).collect();
    // A variant that failed once is not tried again.
    let mut tried = BTreeSet::new();
    for index in steps {
        while shrinker.goes_on() && is_simpler(shrinker, index, &mut tried) {}
    }
}

/// Makes one accepted simplification; returns false if none is left.
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

//! Trials of roles: do their payloads lead to the promised picks?

use super::super::block;
use super::expect::{Expect, PickForm};
use super::talk::Talk;
use peerproof_engine::data::ending::Ending;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::{Exit, Transcript};

/// A trial decision for each role with a menu.
pub(crate) fn plans(facts: &Facts) -> Vec<(&'static str, Plan)> {
    let plan = |(role, request)| {
        Some((role, Talk::new(facts).decide(&request, Expect::block("PD-OUT-02")).plan().ok()?))
    };
    Talk::new(facts).roles().into_iter().filter_map(plan).collect()
}

/// Describes the outcome if it is not the promised pick.
pub(crate) fn role_fault(role: &str, trial: &Transcript) -> Option<String> {
    let (form, out) = (PickForm::of_role(role), trial.stdout(0));
    let exit = Ending::of(trial, 0).exit;
    let is_played = block::parse(&out).is_ok_and(|block| block.form == form.form());
    if exit == Some(Exit::Code(0)) && is_played {
        return None;
    }
    let said = shorten(&String::from_utf8_lossy(&out), 80).into_owned();
    let end = exit.map_or_else(|| "no exit".to_owned(), |exit| exit.to_string());
    Some(format!("with its payload the driver gives {end} and {said:?}, not {}", form.word()))
}

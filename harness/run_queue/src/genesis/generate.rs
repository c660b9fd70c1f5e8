//! Random conversations with the tools.

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

use super::kit::{COMPILER, GARBAGE};
use super::model::GENERAL;
use super::steps::{fixtures, made};
use super::talk::{Talk, letters};

/// A random conversation.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::new(facts);
    talk.canary();
    fixtures(&mut talk);
    let stems = [
        "a",
        "b",
        "folder",
        "folder/a",
        "../a",
        "link/a",
        "%%outer.path%%/a",
        "",
        ".",
        "a/b",
        "n\u{0}l",
        "-a",
        "$(a)",
        "a b",
        "..",
        "folder/../a",
    ];
    let names = ["made", "other", "../up", "", "x.y", "missing"];
    for at in 0..rng.range(1..=8) {
        let stem = *rng.pick(&stems);
        let path = if rng.chance(3, 4) { talk.kit.file(stem) } else { stem.to_owned() };
        let (text, name) = (format!("text number {at} of this conversation"), *rng.pick(&names));
        match rng.below(10) {
            0 => talk.compile(GENERAL, &path, name),
            1 => talk.load(GENERAL, name),
            2 => talk.call_sample(GENERAL),
            3 => talk.write_values(GENERAL, Some(path.into()), rng.chance(1, 2).then(|| Json::from(at))),
            4 => talk.write(GENERAL, &path, &format!("{GARBAGE}{text}")),
            5 if facts.claims(COMPILER) && rng.chance(1, 4) => {
                made(&mut talk, &letters(rng));
                talk.load(GENERAL, name)
            }
            _ => talk.write(GENERAL, &path, &text),
        };
    }
    talk.canary();
    let mut plan = talk.plan();
    // The clause of a random step depends on those before it.
    plan.steps.iter_mut().filter(|step| !step.canary).for_each(|step| step.expect = Default::default());
    plan
}

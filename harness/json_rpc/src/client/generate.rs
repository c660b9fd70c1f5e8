//! Generates scenarios and scripts: calls of every kind in random mixtures.

use super::scenario::Call;
use super::scene::{Scene, usual_result};
use super::script::{Reaction, error, result};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::{Chunking, Plan};
use peerproof_engine::data::rng::Rng;

/// Most calls of one scenario.
const CALLS_MAX: u64 = 12;

/// Results that the server sends.
const VALUES: [&str; 8] =
    ["null", "false", "0", "-1.5", "\"é漢😀\\u0000\"", "[]", "{\"error\":{\"code\":1}}", "[[1],{\"id\":1}]"];

/// Errors that are not retried.
const FINAL: [&str; 4] = [
    r#"{"code":-32603,"message":"Internal error"}"#,
    r#"{"code":-32602,"message":"","data":[{"type":"TIMEOUT"}]}"#,
    r#"{"code":-32000,"message":"x","data":{"type":"EXECUTION_ERROR","details":"TIMEOUT"}}"#,
    r#"{"code":1,"message":"own","data":null}"#,
];

/// Errors that may be retried.
const TRANSIENT: [&str; 3] = [
    r#"{"code":-32001,"message":"Resource unavailable"}"#,
    r#"{"code":-32002,"message":"Rate limit exceeded","data":{"retry_after_ms":30}}"#,
    r#"{"code":-32000,"message":"Execution timeout","data":{"type":"TIMEOUT"}}"#,
];

/// Lines that a client must ignore.
const NOISE: [&str; 7] = [
    "",
    "starting up",
    "{}",
    "null",
    r#"{"jsonrpc":"2.0","method":"progress","params":[1]}"#,
    r#"{"jsonrpc":"2.0","result":"not yours","id":"peerproof-nobody"}"#,
    r#"{"jsonrpc":"2.0","result":"not yours"}"#,
];

/// A scenario and its script.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut scene = Scene::about("RPC-CLIENT-09");
    fill(&mut scene, facts, rng);
    scene.plan()
}

/// Adds random calls to a scenario, and the server's reactions.
pub(crate) fn fill(scene: &mut Scene, facts: &Facts, rng: &mut Rng) {
    scene.aim = None;
    let batches = rng.below(3);
    let count = rng.range(1..=CALLS_MAX);
    for n in 0..count {
        let name = format!("g{n}");
        let mut call = Call::new(&name);
        if n > 0 && rng.chance(1, 4) {
            call.after.push(format!("g{}", rng.below(n)));
        } else if batches > 0 && rng.chance(1, 4) {
            // The server answers the calls of a batch as usual; it builds the array.
            call.batch = Some(format!("b{}", rng.below(batches)));
            call.notify = rng.chance(1, 3);
            scene.call(call);
            continue;
        }
        if rng.chance(1, 8) {
            call.params = None;
        }
        one(scene, call, facts.claims("retry"), rng);
    }
    scene.extra_ms += 3_000;
}

/// Adds one call and the server's reaction.
fn one(scene: &mut Scene, call: Call, retries: bool, rng: &mut Rng) {
    let name = call.name.clone();
    let mut deeds: Vec<Reaction> =
        (0..rng.below(3)).map(|_| Reaction::line(NOISE[rng.index(NOISE.len())])).collect();
    let later = |deed: Reaction, rng: &mut Rng| deed.in_ms(if rng.chance(1, 2) { rng.below(60) } else { 0 });
    match rng.below(7) {
        0 => {
            scene.call(Call { notify: true, ..call });
        }
        1 => {
            scene.call(Call { timeout_ms: 150, ..call }).on(&name, deeds);
        }
        2 => {
            deeds.push(later(Reaction::line(&error(rng.pick::<&str>(&FINAL))), rng));
            scene.call(Call { retry: Some((3, 10)), ..call }).on(&name, deeds);
        }
        3 if retries => {
            let object = *rng.pick(&TRANSIENT);
            let attempts = rng.range(2..=4);
            scene.call(Call { retry: Some((4, 10)), ..call });
            scene.on_attempt(&name, u32::try_from(attempts).unwrap_or(2), [Reaction::line(&result("1"))]);
            deeds.push(Reaction::line(&error(object)));
            scene.on(&name, deeds);
        }
        4 => {
            deeds.push(later(Reaction::line("{\"jsonrpc\":\"2.0\",\"id\":$id}"), rng));
            scene.call(call).on(&name, deeds);
        }
        5 => {
            let line = Reaction::line(&result(&usual_result(&name)));
            deeds.push(line.clone().cut(if rng.chance(1, 2) {
                Chunking::Dribble
            } else {
                Chunking::Every(7)
            }));
            // The answer comes twice; the first one counts.
            deeds.push(line);
            scene.call(call).on(&name, deeds);
        }
        _ => {
            deeds.push(later(Reaction::line(&result(rng.pick::<&str>(&VALUES))), rng));
            scene.call(call).on(&name, deeds);
        }
    }
}

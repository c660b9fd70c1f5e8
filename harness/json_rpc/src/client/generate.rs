//! Makes scenarios with servers for them: calls of every kind in any mixture, each with what may come of it.

use super::expect::Allowed;
use super::scenario::Call;
use super::scene::{Scene, usual_result};
use super::script::{Deed, error, result};
use peerproof_engine::facts::Facts;
use peerproof_engine::plan::{Chunking, Plan};
use peerproof_engine::rng::Rng;

/// Most calls of one scenario.
const CALLS_MAX: u64 = 12;

/// Results that are sent.
const VALUES: [&str; 8] =
    ["null", "false", "0", "-1.5", "\"é漢😀\\u0000\"", "[]", "{\"error\":{\"code\":1}}", "[[1],{\"id\":1}]"];

/// Errors that are final.
const FINAL: [&str; 4] = [
    r#"{"code":-32603,"message":"Internal error"}"#,
    r#"{"code":-32602,"message":"","data":[{"type":"TIMEOUT"}]}"#,
    r#"{"code":-32000,"message":"x","data":{"type":"EXECUTION_ERROR","details":"TIMEOUT"}}"#,
    r#"{"code":1,"message":"own","data":null}"#,
];

/// Errors that may be tried again.
const TRANSIENT: [&str; 3] = [
    r#"{"code":-32001,"message":"Resource unavailable"}"#,
    r#"{"code":-32002,"message":"Rate limit exceeded","data":{"retry_after_ms":30}}"#,
    r#"{"code":-32000,"message":"Execution timeout","data":{"type":"TIMEOUT"}}"#,
];

/// Lines that change nothing.
const NOISE: [&str; 7] = [
    "",
    "starting up",
    "{}",
    "null",
    r#"{"jsonrpc":"2.0","method":"progress","params":[1]}"#,
    r#"{"jsonrpc":"2.0","result":"not yours","id":"peerproof-nobody"}"#,
    r#"{"jsonrpc":"2.0","result":"not yours"}"#,
];

/// A scenario with its server.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut scene = Scene::about("RPC-CLIENT-09");
    fill(&mut scene, facts, rng);
    scene.plan()
}

/// Adds any calls to a scenario, with what its server does about them.
pub fn fill(scene: &mut Scene, facts: &Facts, rng: &mut Rng) {
    let batches = rng.below(3);
    let count = rng.range(1..=CALLS_MAX);
    for n in 0..count {
        let name = format!("g{n}");
        let mut call = Call::new(&name);
        if n > 0 && rng.chance(1, 4) {
            call = call.after(&format!("g{}", rng.below(n)));
        } else if batches > 0 && rng.chance(1, 4) {
            // What is in a batch has the usual answer; the array is made by the server.
            call = call.batch(&format!("b{}", rng.below(batches)));
            scene.usual(if rng.chance(1, 3) { call.notify() } else { call });
            continue;
        }
        if rng.chance(1, 8) {
            call = call.params(None);
        }
        one(scene, call, facts.claims("retry"), rng);
    }
    scene.takes_ms(3_000);
}

/// Adds one call with what the server does about it.
fn one(scene: &mut Scene, call: Call, retries: bool, rng: &mut Rng) {
    let name = call.name.clone();
    let mut deeds: Vec<Deed> = (0..rng.below(3)).map(|_| Deed::line(NOISE[rng.index(NOISE.len())])).collect();
    let later = |deed: Deed, rng: &mut Rng| deed.in_ms(if rng.chance(1, 2) { rng.below(60) } else { 0 });
    match rng.below(7) {
        0 => {
            scene.usual(call.notify());
        }
        1 => {
            scene.call(call.timeout_ms(150), [Allowed::timeout(150).attempts(1)]).under("RPC-CLIENT-11");
            scene.on(&name, deeds);
        }
        2 => {
            let object = *rng.pick(&FINAL);
            scene.call(call.retry(3, 10), [Allowed::error(object).attempts(1)]).under("RPC-CLIENT-10");
            deeds.push(later(Deed::line(&error(object)), rng));
            scene.on(&name, deeds);
        }
        3 if retries => {
            let object = *rng.pick(&TRANSIENT);
            let attempts = rng.range(2..=4);
            scene.call(call.retry(4, 10), [Allowed::result("1").attempts(attempts)]).under("RPC-CLIENT-12");
            scene.on_attempt(&name, u32::try_from(attempts).unwrap_or(2), [Deed::line(&result("1"))]);
            deeds.push(Deed::line(&error(object)));
            scene.on(&name, deeds);
        }
        4 => {
            scene.call(call, [Allowed::of("invalid").attempts(1)]).under("RPC-CLIENT-17");
            deeds.push(later(Deed::line("{\"jsonrpc\":\"2.0\",\"id\":$id}"), rng));
            scene.on(&name, deeds);
        }
        5 => {
            scene.call(call, [Allowed::result(&usual_result(&name)).attempts(1)]);
            let line = Deed::line(&result(&usual_result(&name)));
            deeds.push(line.clone().cut(if rng.chance(1, 2) {
                Chunking::Dribble
            } else {
                Chunking::Every(7)
            }));
            // Once more: the first one counts.
            deeds.push(line);
            scene.on(&name, deeds);
        }
        _ => {
            let value = *rng.pick(&VALUES);
            scene.call(call, [Allowed::result(value).attempts(1)]);
            deeds.push(later(Deed::line(&result(value)), rng));
            scene.on(&name, deeds);
        }
    }
}

//! Batches in mixtures that a file cannot hold: every kind of element beside every other, and long ones.

use super::super::talk::{Talk, UNKNOWN_METHOD, call, good, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;
use peerproof_engine::rng::Rng;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let long = Check::new(
        "json_rpc/stdio/batches/many-elements",
        "A batch of 2,000 requests and notifications (of 200 where they are signed or counted) is answered by one array \
         with a response for each request.",
        ["RPC-BATCH-05", "RPC-BATCH-01"],
        "command",
        |facts, _| {
            let few = facts.claims("auth") || facts.claims("rate_limit");
            let elements: Vec<String> = (0..if few { 200 } else { 2_000 })
                .map(|n| match n % 3 {
                    0 => call(UNKNOWN_METHOD, None, None),
                    _ => good(facts, n, &quoted(&format!("b{n}"))),
                })
                .collect();
            let mut talk = Talk::about(facts, "RPC-BATCH-05");
            talk.send(&format!("[{}]", elements.join(","))).allow_ms(5_000);
            Ok(talk.canary().finish())
        },
    );
    let mixed = Check::new(
        "json_rpc/stdio/batches/shuffled-mixtures",
        "Batches of requests, notifications and elements that are neither, in any mixture, are answered element by element.",
        ["RPC-BATCH-05", "RPC-BATCH-03"],
        "command",
        |facts, rng| {
            let mut talk = Talk::about(facts, "RPC-BATCH-05");
            for round in 0..8 {
                talk.send(&mixture(facts, round, rng));
            }
            Ok(talk.canary().finish())
        },
    );
    let several = Check::new(
        "json_rpc/stdio/batches/several-under-way",
        "Three batches and a request between them in one write are answered by three arrays and an object.",
        ["RPC-BATCH-01", "RPC-BATCH-05"],
        "command",
        |facts, _| {
            let batch = |at: u64| {
                format!(
                    "[{},{}]\n",
                    good(facts, at, &at.to_string()),
                    good(facts, at, &quoted(&at.to_string()))
                )
            };
            let text = format!("{}{}{}\n{}", batch(1), batch(2), good(facts, 9, "9"), batch(3));
            let mut talk = Talk::about(facts, "RPC-BATCH-01");
            Ok(talk.push(Payload::text(text), Chunking::Whole, 4).canary().finish())
        },
    );
    [long, mixed, several].map(|check| check.feature("batch")).into()
}

fn mixture(facts: &Facts, round: u64, rng: &mut Rng) -> String {
    let mut elements = vec![
        good(facts, round, &quoted(&format!("m{round}"))),
        call(UNKNOWN_METHOD, Some("[]"), Some(&round.to_string())),
        call(UNKNOWN_METHOD, Some("{}"), None),
    ];
    for _ in 0..rng.range(1..=4) {
        let odd = ["1", "null", "\"text\"", "{\"foo\":\"bar\"}", "[]", "{\"jsonrpc\":\"2.0\",\"method\":1}"];
        elements.push((*rng.pick(&odd)).to_owned());
    }
    rng.shuffle(&mut elements);
    format!("[{}]", elements.join(","))
}

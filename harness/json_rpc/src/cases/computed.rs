//! Functions that compute steps, by the names that rows use.

use base64::Engine as _;

use super::super::generate;
use super::super::model::{DEPTH_CERTAIN, depth};
use super::super::role::role;
use super::super::server::MEMORY;
use super::super::talk::{Talk, UNKNOWN_METHOD, call, good, quoted, wrapper};
use super::words::role_call;
use super::{auth, rate, sizes};
use peerproof_engine::contract::memory::{IDLE, INPUTS, PIECE_BYTES, sample};
use peerproof_engine::data::carriage::Carriage;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::packing::Packing;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;
use peerproof_engine::data::rng::Rng;

/// Adds steps to a conversation with a server.
pub(crate) type Server = fn(&mut Talk<'_>, &Facts, &mut Rng) -> Result<(), Untestable>;

const SERVER: &[(&str, Server)] = &[
    ("ambient/each-with-a-canary", each_with_a_canary),
    ("ambient/one-of-most-sorts", one_of_most_sorts),
    ("auth/changes-outside", auth::changes_outside),
    ("auth/changes-within", auth::changes_within),
    ("auth/signature-near-misses", auth::signature_near_misses),
    ("batches/many-elements", many_elements),
    ("batches/shuffled-mixtures", shuffled_mixtures),
    ("framing/ten-and-a-half", ten_and_a_half),
    ("gzip/if-undeclared", if_undeclared),
    ("gzip/memory", memory_of_gzip),
    ("gzip/packed-by-hand", packed_by_hand),
    ("gzip/packed-in-a-batch", packed_in_a_batch),
    ("http/hundred-connections-twice", hundred_connections_twice),
    ("ids/ten-thousand-characters", id_of_ten_thousand_characters),
    ("methods/near-misses", near_misses_of_methods),
    ("model/generated", generated),
    ("nesting/as-deep-as-may-be", as_deep_as_may_be),
    ("rate/a-window", rate::a_window),
    ("rate/batches-of-ten", rate::batches_of_ten),
    ("rate/half-a-window", rate::half_a_window),
    ("rate/if-limited", rate::if_limited),
    ("rate/if-soon-over", rate::if_soon_over),
    ("sizes/large-echoes", sizes::large_echoes),
    ("sizes/many-requests-in-one-line", sizes::many_requests_in_one_line),
    ("sizes/memory", sizes::memory),
    ("sizes/one-byte-over-limit", sizes::one_byte_over_limit),
    ("sizes/over-limit-between-others", sizes::over_limit_between_others),
    ("sizes/white-space-over-limit", sizes::white_space_over_limit),
    ("sizes/white-space-that-fits", sizes::white_space_that_fits),
    ("streams/mixture", mixture_of_streams),
];

/// The function of this name.
pub(crate) fn server(name: &str) -> Option<Server> {
    SERVER.iter().find(|(known, _)| *known == name).map(|(_, made)| *made)
}

/// Ten requests and half of another in one write, then its rest.
fn ten_and_a_half(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    let line = |n: u64| good(facts, n, &n.to_string()) + "\n";
    let lines: String = (0..10).map(line).collect();
    // Method names may have multi-byte letters.
    let last = line(10).into_bytes();
    let (head, tail) = last.split_at(last.len() / 2);
    talk.push(Payload::text(lines).then(Payload::from_bytes(head)), Chunking::Whole, 10);
    talk.push(Payload::from_bytes(tail), Chunking::Whole, 1);
    Ok(())
}

/// A batch of very many elements.
fn many_elements(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    let few = facts.claims("auth") || facts.claims("rate_limit");
    let elements: Vec<String> = (0..if few { 200 } else { 2_000 })
        .map(|n| match n % 3 {
            0 => call(UNKNOWN_METHOD, None, None),
            _ => good(facts, n, &quoted(&format!("b{n}"))),
        })
        .collect();
    talk.send(&format!("[{}]", elements.join(","))).allow_ms(5_000);
    Ok(())
}

/// Batches of elements of every kind, in any order.
fn shuffled_mixtures(talk: &mut Talk<'_>, facts: &Facts, rng: &mut Rng) -> Result<(), Untestable> {
    for round in 0..8 {
        let mut elements = vec![
            good(facts, round, &quoted(&format!("m{round}"))),
            call(UNKNOWN_METHOD, Some("[]"), Some(&round.to_string())),
            call(UNKNOWN_METHOD, Some("{}"), None),
        ];
        for _ in 0..rng.range(1..=4) {
            let odd =
                ["1", "null", "\"text\"", "{\"foo\":\"bar\"}", "[]", "{\"jsonrpc\":\"2.0\",\"method\":1}"];
            elements.push((*rng.pick(&odd)).to_owned());
        }
        rng.shuffle(&mut elements);
        talk.send(&format!("[{}]", elements.join(",")));
    }
    Ok(())
}

/// Calls of methods whose names differ a little from that of `echo`.
fn near_misses_of_methods(talk: &mut Talk<'_>, _: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    for (n, miss) in near_misses(&talk.method("echo")).into_iter().enumerate() {
        talk.send(&call(&miss.text, Some("[1]"), Some(&n.to_string())));
    }
    Ok(())
}

/// Params as deep as every server must accept, or as this one declares.
fn as_deep_as_may_be(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    // The message is the first level.
    let levels = depth(facts).max(DEPTH_CERTAIN) - 1;
    let arrays = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let echo = role(facts, "echo").map_or_else(|| UNKNOWN_METHOD.to_owned(), |echo| echo.method);
    for (params, id) in [(arrays, "1"), (objects, "2")] {
        talk.send(&call(&echo, Some(&params), Some(id)));
    }
    Ok(())
}

/// A request with a long id.
fn id_of_ten_thousand_characters(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.send(&good(facts, 1, &quoted(&"é".repeat(10_000))));
    Ok(())
}

/// A generated conversation.
fn generated(talk: &mut Talk<'_>, facts: &Facts, rng: &mut Rng) -> Result<(), Untestable> {
    talk.adopt(generate::conversation(facts, rng));
    Ok(())
}

/// One message of most kinds that draw a reply.
fn one_of_most_sorts(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    for message in most_sorts(facts) {
        talk.aim_at_nothing().send(&message);
    }
    Ok(())
}

/// The messages of [`one_of_most_sorts`], each followed by a canary.
fn each_with_a_canary(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    for message in most_sorts(facts) {
        talk.aim_at_nothing().send(&message).aim("RPC-ERR-01").canary();
    }
    Ok(())
}

/// Messages of most kinds. Common faults have checks of their own and are left out: they would fail every ambient
/// check.
fn most_sorts(facts: &Facts) -> Vec<String> {
    let mut messages = vec![
        "{\"jsonrpc\":".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":\"odd\\n\\\"é\\u0001\"}".to_owned(),
        call(UNKNOWN_METHOD, None, Some("\"\\u0000é😀\\\\\"")),
        call(&format!("{UNKNOWN_METHOD}\u{1}\"é\n"), None, Some("3")),
    ];
    // A server without the role is sent a method that it does not have.
    let method = |name: &str| role(facts, name).map_or_else(|| UNKNOWN_METHOD.to_owned(), |role| role.method);
    let (echo, params) = (method("echo"), "[\"\\u0000\\u001f\\\"\\\\é😀\",1.5,-0.0,1e-7,null]");
    // A call without params: even a null result is a result.
    messages.push(call(&echo, None, Some("5")));
    messages.push(call(&echo, Some(params), Some("4")));
    messages.push(call(&method("fail"), Some("{}"), Some("6")));
    // A method that only waits usually returns null.
    let rests = role(facts, "sleep").and_then(|sleep| Some((sleep.filled("ms", 1).ok()?, sleep.method)));
    messages.extend(rests.map(|(params, method)| call(&method, Some(&params.to_string()), Some("8"))));
    if facts.claims("batch") {
        messages.push(format!("[{}]", call(UNKNOWN_METHOD, None, Some("7"))));
    }
    messages
}

/// Tasks, some of which stream, between other requests and notifications.
fn mixture_of_streams(talk: &mut Talk<'_>, facts: &Facts, rng: &mut Rng) -> Result<(), Untestable> {
    for round in 0..rng.range(3..=6) {
        let mut sent = 0;
        for n in 0..rng.range(1..=5) {
            let id = if rng.chance(1, 2) {
                quoted(&format!("g{round}-{n}"))
            } else {
                (round * 10 + n).to_string()
            };
            let text = match rng.below(4) {
                0 => good(facts, n, &id),
                1 => role_call(facts, "stream", None, &[&id, "stream=false"])?,
                _ => role_call(facts, "stream", None, &[&id])?,
            };
            talk.queue(Payload::text(text + "\n"));
            sent += 1;
        }
        let last = role_call(facts, "stream", None, &[&quoted(&format!("last-{round}"))])?;
        talk.push(Payload::text(last + "\n"), Chunking::Whole, 1).last(|step| step.await_answers = sent + 1);
    }
    Ok(())
}

/// A hundred connections that are open at the same time, each used twice.
fn hundred_connections_twice(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    for round in 0..2 {
        for n in 1..=100_u32 {
            let id = quoted(&format!("{round}-{n}"));
            let body = Payload::text(good(facts, u64::from(n), &id) + "\n");
            // The last request waits for all replies.
            let awaited = if n == 100 { 100 } else { 0 };
            talk.push(body, Chunking::Whole, awaited);
            talk.last(|step| step.http = Some(Carriage::post().on(n)));
        }
    }
    Ok(())
}

/// Makes the check untestable if the server declares `gzip`.
fn if_undeclared(_: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    match facts.claims("gzip") {
        true => Err(Untestable::new("declared", "this server claims the feature gzip")),
        false => Ok(()),
    }
}

/// A compressed message, built without the claim `gzip`.
fn packed_by_hand(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.send(&by_hand(facts)?);
    Ok(())
}

/// A compressed message in a batch with a plain request. Skipped if the server has no batches.
fn packed_in_a_batch(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    if facts.claims("batch") {
        talk.send(&format!("[{},{}]", by_hand(facts)?, good(facts, 1, "\"beside\"")));
    }
    Ok(())
}

/// A line that wraps a compressed message.
fn by_hand(facts: &Facts) -> Result<String, Untestable> {
    let packed = Packing::Whole.pack(good(facts, 1, "\"packed\"").as_bytes());
    let body = packed.map_err(|error| error.to_string())?;
    Ok(wrapper(&quoted(&base64::engine::general_purpose::STANDARD.encode(body))))
}

/// Two small messages that inflate to large ones, and the memory that refusing them takes.
fn memory_of_gzip(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.act(sample(IDLE));
    for (pieces, label) in INPUTS {
        let text = good(facts, 1, &quoted(label));
        talk.send_packed(&text, Packing::PaddedTo(u64::from(pieces) * PIECE_BYTES)).allow_ms(sizes::LARGE_MS);
        talk.canary().allow_ms(sizes::LARGE_MS);
        talk.act(sample(label));
    }
    talk.expect(serde_json::json!({ MEMORY: "RPC-GZIP-05" }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::cases::files;
    use super::*;

    #[test]
    fn every_name_is_called_by_a_row() {
        let texts: String = files("").into_iter().map(|(_, text)| text).collect();
        for (name, _) in SERVER {
            assert!(texts.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

//! Streams: one task, several at once, between other requests.

use serde_json::{Value, json};

use super::super::role::role;
use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::rng::Rng;

/// Everything that holds of a stream.
const CLAUSES: [&str; 6] =
    ["RPC-STREAM-01", "RPC-STREAM-02", "RPC-STREAM-03", "RPC-STREAM-04", "RPC-STREAM-05", "RPC-STREAM-08"];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let check = |name: &str,
                 title: &str,
                 clauses: &[&str],
                 plan: fn(&Facts, &mut Rng) -> peerproof_engine::plan::Plan| {
        Check::new(
            format!("json_rpc/stdio/streams/{name}"),
            title,
            clauses.iter().copied(),
            "command",
            move |facts, rng| {
                if params(facts).pointer("/options/stream") != Some(&Value::Bool(true)) {
                    return Err(
                        "role_probes_nothing: the params of the role `stream` lack `options.stream` true"
                            .to_owned(),
                    );
                }
                Ok(plan(facts, rng))
            },
        )
        .feature("streaming")
        .roles(&["stream"])
    };
    vec![
        check(
            "one-task",
            "A task that is asked to stream says start, chunks from 1 on without gaps and end, then its one response.",
            &[CLAUSES.as_slice(), &["RPC-STREAM-07"]].concat(),
            |facts, _| {
                let mut talk = Talk::plain(facts);
                talk.canary();
                talk.send_and_await(&task(facts, "\"task_001\"", true), 0);
                // It may be done in time. One that fails ends its stream as well.
                talk.send_and_await(&hurried(facts, "\"task_002\""), 0);
                talk.canary_among_streams().finish()
            },
        ),
        check(
            "ids-of-all-sorts",
            "`task_id` is the id of the request, whatever sort of id it is.",
            &["RPC-STREAM-01"],
            |facts, _| {
                let mut talk = Talk::plain(facts);
                for id in ["7", "0", "-1", "\"\"", "\"7\"", "\"é\\n\\\"😀\\u0000\"", "9007199254740991"] {
                    talk.send_and_await(&task(facts, id, true), 0);
                }
                talk.canary_among_streams().finish()
            },
        ),
        check(
            "several-at-once",
            "Streams of five tasks that were written at once each keep their order.",
            &CLAUSES,
            |facts, _| {
                let mut talk = Talk::plain(facts);
                for n in 0..4 {
                    let text = task(facts, &quoted(&format!("task-{n}")), true);
                    talk.queue(Payload::text(text + "\n"));
                }
                talk.send_and_await(&task(facts, "4", true), 4);
                talk.canary_among_streams().finish()
            },
        ),
        check(
            "generated-mixture",
            "Generated tasks, some of which stream, between other requests and notifications are each answered in order.",
            &[CLAUSES.as_slice(), &["RPC-STREAM-06"]].concat(),
            mixture,
        ),
        check(
            "not-asked-for",
            "A task whose `options.stream` is false or absent does not stream.",
            &["RPC-STREAM-06"],
            |facts, _| {
                let mut talk = Talk::plain(facts);
                talk.send_and_await(&task(facts, "\"off\"", false), 0);
                let Value::Object(mut params) = params(facts) else { return talk.canary().finish() };
                params.remove("options");
                let text = call(&talk.method("stream"), Some(&Value::Object(params).to_string()), Some("\"absent\""));
                talk.send_and_await(&text, 0);
                talk.canary_among_streams().finish()
            },
        ),
        check(
            "asked-for-by-notification",
            "A notification of a task that is asked to stream gets no response.",
            &["RPC-NOTE-01"],
            |facts, _| {
                let mut talk = Talk::about(facts, "RPC-NOTE-01");
                let text = call(&talk.method("stream"), Some(&params(facts).to_string()), None);
                talk.queue(Payload::text(text + "\n"));
                talk.canary_among_streams().finish()
            },
        ),
        check(
            "in-a-batch",
            "Tasks in a batch that are asked to stream are answered in its array, whether they stream or not.",
            &["RPC-BATCH-05", "RPC-BATCH-01"],
            |facts, _| {
                let mut talk = Talk::about(facts, "RPC-BATCH-05");
                let batch =
                    format!("[{},{}]", task(facts, "\"b1\"", true), task(facts, "\"b2\"", true));
                talk.queue(Payload::text(batch + "\n"));
                talk.canary_among_streams().finish()
            },
        )
        .also_feature("batch"),
    ]
}

/// The params of the role, which ask for a stream.
fn params(facts: &Facts) -> Value {
    role(facts, "stream").and_then(|role| role.params).unwrap_or_else(|| json!({}))
}

/// A call of the role's method, with the wish for a stream as it is or taken back.
fn task(facts: &Facts, id: &str, streams: bool) -> String {
    let wish = (!streams).then_some(("stream", json!(false)));
    task_with(facts, id, wish)
}

/// One that streams and has next to no time.
fn hurried(facts: &Facts, id: &str) -> String {
    task_with(facts, id, Some(("timeout_ms", json!(1))))
}

/// A call of the role's method with an option set.
fn task_with(facts: &Facts, id: &str, option: Option<(&str, Value)>) -> String {
    let method = role(facts, "stream").map(|role| role.method).unwrap_or_default();
    let mut params = params(facts);
    let options = params.pointer_mut("/options").and_then(Value::as_object_mut);
    if let (Some(options), Some((name, value))) = (options, option) {
        options.insert(name.to_owned(), value);
    }
    call(&method, Some(&params.to_string()), Some(id))
}

fn mixture(facts: &Facts, rng: &mut Rng) -> peerproof_engine::plan::Plan {
    let mut talk = Talk::plain(facts);
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
                1 => task(facts, &id, false),
                _ => task(facts, &id, true),
            };
            talk.queue(Payload::text(text + "\n"));
            sent += 1;
        }
        talk.send_and_await(&task(facts, &quoted(&format!("last-{round}")), true), sent);
    }
    talk.canary_among_streams().finish()
}

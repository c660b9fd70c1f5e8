//! Rate limits: as many requests as were claimed pass, more are refused, and whoever waits as told passes.

use super::super::model::rate::{Limit, limit};
use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking, Plan};

/// More are not sent only to see that there is a limit.
const REQUESTS_MAX: u64 = 2_000;
/// Longer windows are not waited for.
const WINDOW_S_MAX: u64 = 10;

type Make = fn(&Facts, Limit) -> Result<Plan, Untestable>;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let check = |name: &str, title: &str, clause: &'static str, make: Make| {
        Check::new(format!("json_rpc/stdio/rate/{name}"), title, [clause], "command", move |facts, _| {
            let limit =
                limit(facts).ok_or("no_limit: `rate_limit` is no table with `requests` and `window_s`")?;
            if limit.requests > REQUESTS_MAX {
                return Err(format!("large_limit: more than {REQUESTS_MAX} requests are not sent"));
            }
            make(facts, limit)
        })
        .feature("rate_limit")
    };
    vec![
        check(
            "within-the-limit",
            "As many requests as the limit allows, written at once to a fresh process, all pass.",
            "RPC-RATE-01",
            |facts, limit| {
                let mut talk = Talk::about(facts, "RPC-RATE-01");
                burst(&mut talk, facts, limit.requests);
                Ok(talk.canary().finish())
            },
        ),
        check(
            "beyond-the-limit",
            "Of twice as many requests as the limit allows and one more, at least one is refused with -32002 and its id.",
            "RPC-RATE-01",
            |facts, limit| {
                let mut talk = Talk::about(facts, "RPC-RATE-01");
                burst(&mut talk, facts, 2 * limit.requests + 1);
                Ok(talk.canary().finish())
            },
        ),
        check(
            "after-the-wait",
            "Whoever was refused and waits for `retry_after_ms` and a tenth more passes, in the same process.",
            "RPC-RATE-02",
            |facts, limit| {
                if limit.window_s > WINDOW_S_MAX {
                    return Err(format!("long_window: more than {WINDOW_S_MAX} s are not waited for"));
                }
                let mut talk = Talk::about(facts, "RPC-RATE-02");
                burst(&mut talk, facts, 2 * limit.requests + 1);
                // Too early for most, unless they told a shorter wait.
                talk.act(Act::Wait { ms: 60 }).send(&good(facts, 0, "\"early\""));
                talk.act(Act::Wait { ms: limit.window_s * 500 }).send(&good(facts, 1, "\"half-way\""));
                talk.act(Act::Wait { ms: limit.window_s * 1_100 + 300 });
                Ok(talk.canary().finish())
            },
        )
        .waits(),
        check(
            "refused-calls-do-not-run",
            "Of twice as many calls of a counting method as the limit allows, those that are refused do not run.",
            "RPC-RATE-04",
            |facts, limit| {
                if limit.window_s > WINDOW_S_MAX {
                    return Err(format!("long_window: more than {WINDOW_S_MAX} s are not waited for"));
                }
                let mut talk = Talk::about(facts, "RPC-RATE-04");
                let counter = talk.method("counter");
                let count = 2 * limit.requests + 1;
                let calls: String =
                    (0..count).map(|n| call(&counter, Some("{}"), Some(&n.to_string())) + "\n").collect();
                talk.push(Payload::text(calls), Chunking::Whole, u32::try_from(count).unwrap_or(u32::MAX));
                talk.act(Act::Wait { ms: limit.window_s * 1_100 + 300 });
                talk.send(&call(&counter, Some("{}"), Some("\"after\"")));
                Ok(talk.canary().finish())
            },
        )
        .roles(&["counter"])
        .waits(),
        check(
            "in-batches",
            "Each request of a batch counts: in batches of ten too, no more pass than the limit allows.",
            "RPC-RATE-03",
            |facts, limit| {
                let mut talk = Talk::about(facts, "RPC-RATE-03");
                let mut left = 2 * limit.requests + 1;
                let mut text = String::new();
                let mut batches = 0;
                while left > 0 {
                    let size = left.min(10);
                    let all: Vec<String> =
                        (0..size).map(|n| good(facts, n, &quoted(&format!("r{left}-{n}")))).collect();
                    text.push_str(&format!("[{}]\n", all.join(",")));
                    (left, batches) = (left - size, batches + 1);
                }
                talk.push(Payload::text(text), Chunking::Whole, batches);
                Ok(talk.canary().finish())
            },
        )
        .also_feature("batch"),
    ]
}

/// Requests in one write.
fn burst(talk: &mut Talk<'_>, facts: &Facts, count: u64) {
    let text: String = (0..count).map(|n| good(facts, n, &quoted(&format!("r{n}"))) + "\n").collect();
    talk.push(Payload::text(text), Chunking::Whole, u32::try_from(count).unwrap_or(u32::MAX));
}

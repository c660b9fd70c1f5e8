//! Steps of the checks about rate limits: preconditions, pauses and batches.

use super::super::model::rate::limit;
use super::super::talk::{Talk, good, quoted};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};
use peerproof_engine::data::rng::Rng;

/// Most requests sent to reach a limit.
const REQUESTS_MAX: u64 = 2_000;
/// Longest window that a check waits for, s.
const WINDOW_S_MAX: u64 = 10;

/// Makes the check untestable without a known limit, or with a limit that takes too many requests.
pub(crate) fn if_limited(_: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    let limit = limit(facts).ok_or_else(|| {
        Untestable::new("no_limit", "`rate_limit` is not a table with `requests` and `window_s`")
    })?;
    match limit.requests > REQUESTS_MAX {
        true => {
            Err(Untestable::new("large_limit", format!("this check sends at most {REQUESTS_MAX} requests")))
        }
        false => Ok(()),
    }
}

/// Makes the check untestable if the window is too long to wait for.
pub(crate) fn if_soon_over(_: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    match window_s(facts) > WINDOW_S_MAX {
        true => Err(Untestable::new("long_window", format!("this check waits at most {WINDOW_S_MAX} s"))),
        false => Ok(()),
    }
}

fn window_s(facts: &Facts) -> u64 {
    limit(facts).map_or(0, |limit| limit.window_s)
}

/// Waits for half a window.
pub(crate) fn half_a_window(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.act(Act::Wait { ms: window_s(facts) * 500 });
    Ok(())
}

/// Waits for a window, a tenth of it and 300 ms more.
pub(crate) fn a_window(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.act(Act::Wait { ms: window_s(facts) * 1_100 + 300 });
    Ok(())
}

/// Twice as many requests as the limit allows and one more, in one write of batches.
pub(crate) fn batches_of_ten(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    let mut left = limit(facts).map_or(0, |limit| 2 * limit.requests + 1);
    let mut text = String::new();
    let mut batches = 0;
    while left > 0 {
        let size = left.min(10);
        let all: Vec<String> = (0..size).map(|n| good(facts, n, &quoted(&format!("r{left}-{n}")))).collect();
        text.push_str(&format!("[{}]\n", all.join(",")));
        (left, batches) = (left - size, batches + 1);
    }
    talk.push(Payload::text(text), Chunking::Whole, batches);
    Ok(())
}

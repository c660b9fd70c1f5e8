//! When a client asks again, and how long it waits before.

use std::collections::BTreeSet;

use super::super::seen::{From, Line};
use super::{Asked, Client, LATE_MS, clause};
use peerproof_engine::json::Json;

/// Where delays are measured a request may come so much later than it should, ms: the longest of them are some seconds.
const MEASURED_LATE_MS: u64 = 300;

/// Timers round, in our favour and in theirs, ms.
const ROUND_MS: u64 = 2;

/// What an error that came for a request lets a client do.
struct Refusal {
    at_us: u64,
    /// It may be tried again.
    transient: bool,
    retry_after_ms: Option<u64>,
}

/// The first answer to `request` before line `place`; `None` where there was none, or no error.
fn refusal(lines: &[Line], request: &Asked, place: usize) -> Option<Refusal> {
    let ours = lines[request.place..place].iter().filter(|line| line.from == From::Server);
    ours.filter_map(|line| Some((line.at_us, line.value.as_ref().ok()?))).find_map(|(at_us, value)| {
        let messages = value.as_array().unwrap_or(std::slice::from_ref(value));
        let answer = messages.iter().find(|message| {
            message.get("method").is_none()
                && message.get("id").is_some()
                && message.get("id") == request.id.as_ref()
        })?;
        let error = answer.get("error")?;
        let code = error.get("code").and_then(Json::as_i64);
        let kind = error.pointer("/data/type").and_then(Json::as_str);
        Some(Refusal {
            at_us,
            transient: matches!(code, Some(-32001 | -32002))
                || code == Some(-32000) && kind == Some("TIMEOUT"),
            retry_after_ms: error.pointer("/data/retry_after_ms").and_then(Json::as_u64),
        })
    })
}

impl Client<'_> {
    /// Judges every request that repeats another.
    pub(super) fn retries(&mut self, lines: &[Line], asked: &[Asked]) {
        let mut quotients = Vec::new();
        let reaction_ms = self.reaction_us(lines, asked) / 1_000;
        for at in 0..self.scenario.calls.len() {
            let of_call: Vec<&Asked> = asked.iter().filter(|asked| asked.call == at).collect();
            quotients.extend(self.retries_of(at, &of_call, lines, reaction_ms));
        }
        if self.expect.delays {
            self.jitter(quotients);
        }
    }

    /// The longest time from an answer to the first request that waited for it: how slow the client is at everything,
    /// microseconds.
    fn reaction_us(&self, lines: &[Line], asked: &[Asked]) -> u64 {
        let mut seen = BTreeSet::new();
        let waited = asked.iter().filter(|asked| seen.insert(asked.call));
        let waited = waited.filter(|asked| !self.scenario.calls[asked.call].after.is_empty());
        let reactions = waited.filter_map(|asked| {
            let answer = lines[..asked.place].iter().rev().find(|line| line.from == From::Server)?;
            Some(asked.at_us.saturating_sub(answer.at_us))
        });
        reactions.max().unwrap_or(0)
    }

    /// Judges the retries of one call; gives their delays as parts of their middles.
    fn retries_of(&mut self, at: usize, requests: &[&Asked], lines: &[Line], reaction_ms: u64) -> Vec<f64> {
        let call = self.scenario.calls[at].clone();
        let name = call.name.clone();
        let told = self.scenario.retry_of(&call);
        // Without a word about it nobody knows how often a client tries.
        let (max_attempts, base_ms) = told.map_or((u64::MAX, None), |(max, base)| (max, Some(base)));
        let late_ms = self.transcript.stretched_ms(LATE_MS);
        let mut quotients = Vec::new();
        for (k, pair) in requests.windows(2).enumerate() {
            let (before, again) = (pair[0], pair[1]);
            let refusal = refusal(lines, before, again.place).filter(|refusal| refusal.transient);
            let Some(refusal) = refusal else {
                let expected = "only TIMEOUT, -32001 and -32002 are tried again";
                self.add(clause::NO_OTHER_RETRY, "retried", expected, format!("{name:?} was sent again"));
                continue;
            };
            if k as u64 + 2 > max_attempts {
                let got = format!("{name:?} was sent {} times", k + 2);
                self.add(
                    clause::NO_OTHER_RETRY,
                    "too_many_attempts",
                    format!("{max_attempts} attempts at most"),
                    got,
                );
            }
            let since_first_ms = again.at_us.saturating_sub(requests[0].at_us) / 1_000;
            if since_first_ms > call.timeout_ms + late_ms / 3 {
                let got = format!("{name:?} was sent again after {since_first_ms} ms");
                let expected = format!("nothing is sent when its {} ms are over", call.timeout_ms);
                self.add(clause::TIMEOUT, "sent_after_timeout", expected, got);
            }
            let delay_us = again.at_us.saturating_sub(refusal.at_us);
            let delay_ms = delay_us / 1_000;
            if refusal.retry_after_ms.is_some_and(|asked| delay_ms + ROUND_MS < asked) {
                let got = format!("{name:?} was sent again after {delay_ms} ms");
                let expected =
                    format!("not before retry_after_ms {}", refusal.retry_after_ms.unwrap_or_default());
                self.add(clause::RETRY_AFTER, "too_early", expected, got);
            }
            let Some(base_ms) = base_ms else { continue };
            let middle_ms = base_ms.saturating_mul(1 << k.min(32));
            let least_ms = middle_ms / 2;
            // Whoever is slow at everything has not waited for longer before he asks again.
            let slack_ms = match self.expect.delays {
                true => self.transcript.stretched_ms(MEASURED_LATE_MS) + 2 * reaction_ms,
                false => late_ms,
            };
            let most_ms = middle_ms + middle_ms / 2 + refusal.retry_after_ms.unwrap_or_default() + slack_ms;
            if delay_ms + ROUND_MS < least_ms || delay_ms > most_ms {
                let got = format!("{name:?}: {delay_ms} ms before attempt {}", k + 2);
                let expected = format!("0.5 to 1.5 times {middle_ms} ms");
                self.add(clause::DELAY, "other_delay", expected, got);
            }
            if middle_ms > 0 {
                quotients.push(delay_us as f64 / (middle_ms as f64 * 1_000.0));
            }
        }
        quotients
    }

    /// No half of all delays differs in nothing but the power of two. Of delays without jitter a busy machine spreads a
    /// few, and never so many.
    fn jitter(&mut self, mut quotients: Vec<f64>) {
        const COUNT_MIN: usize = 8;
        const GRAIN: f64 = 0.01;
        quotients.sort_by(f64::total_cmp);
        let half = quotients.len().div_ceil(2);
        if quotients.len() < COUNT_MIN {
            return;
        }
        if let Some(same) = quotients.windows(half).find(|same| same[half - 1] - same[0] < GRAIN) {
            let (least, most, all) = (same[0], same[half - 1], quotients.len());
            let got = format!("{half} of {all} delays are {least:.3} to {most:.3} times base·2^k");
            self.add(clause::JITTER, "no_jitter", "delays that are spread", got);
        }
    }
}

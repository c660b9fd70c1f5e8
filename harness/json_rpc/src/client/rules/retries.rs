//! Rules about retries and the delays before them.

use std::collections::BTreeSet;

use super::Session;
use crate::client::client_conversation::LATE_MS;
use crate::client::observations::Request;
use crate::client::outcomes::{TIME_MS_MAX, is_transient, retry_after_ms};
use peerproof_engine::data::json::Json;

/// Shortest base of delays whose spread and upper bound are checked, ms. The spread shows jitter.
const MEASURED_BASE_MS: u64 = 1_000;

/// Tolerated lateness of requests with measured delays, ms. The longest delays are some seconds.
const MEASURED_LATE_MS: u64 = 300;

/// Tolerance for timers that round, on both sides, ms.
const ROUND_MS: u64 = 2;

impl Session<'_> {
    /// Judges every request that repeats another.
    pub(super) fn retries(&mut self) {
        let reaction_ms = self.reaction_us() / 1_000;
        let mut quotients = Vec::new();
        for at in 0..self.known.scenario.calls.len() {
            let of_call = self.known.talk.requests.iter().filter(|request| request.call == at);
            quotients.extend(self.retries_of(at, &of_call.collect::<Vec<_>>(), reaction_ms));
        }
        self.jitter(quotients);
    }

    /// First answer to `request` before line `place` and its time. `None` without an answer, or if it is not a
    /// transient error.
    fn refusal(&self, request: &Request, place: usize) -> Option<(u64, &Json)> {
        let lines = &self.known.talk.lines[request.place..place];
        let ours = lines.iter().filter(|line| line.is_ours);
        let mut messages = ours.flat_map(|line| line.messages().iter().map(|message| (line.at_us, message)));
        let is_answer = |(_, message): &(u64, &Json)| {
            let id = message.get("id");
            message.get("method").is_none() && id.is_some() && id == request.id.as_ref()
        };
        let (at_us, answer) = messages.find(is_answer)?;
        answer.get("error").filter(|error| is_transient(error)).map(|error| (at_us, error))
    }

    /// Longest time from an answer to the first request of a call that waited for it, microseconds. Shows how slow
    /// the client is.
    fn reaction_us(&self) -> u64 {
        let talk = &self.known.talk;
        let mut seen = BTreeSet::new();
        let waited = talk.requests.iter().filter(|request| seen.insert(request.call));
        let waited = waited.filter(|request| !self.known.scenario.calls[request.call].after.is_empty());
        let reactions = waited.filter_map(|request| {
            let answer = talk.lines[..request.place].iter().rev().find(|line| line.is_ours)?;
            Some(request.at_us.saturating_sub(answer.at_us))
        });
        reactions.max().unwrap_or(0)
    }

    /// Judges the retries of one call. Returns their delays as fractions of the mean delay.
    fn retries_of(&mut self, at: usize, requests: &[&Request], reaction_ms: u64) -> Vec<f64> {
        let known = self.known;
        let call = &known.scenario.calls[at];
        let name = &call.name;
        let told = known.scenario.retry_of(call);
        // Without a retry setting a client may try any number of times.
        let (max_attempts, base_ms) = told.map_or((u64::MAX, None), |(max, base)| (max, Some(base)));
        let late_ms = self.transcript.stretched_ms(LATE_MS);
        let mut quotients = Vec::new();
        for (k, pair) in requests.windows(2).enumerate() {
            let (before, again) = (pair[0], pair[1]);
            let refusal = self.refusal(before, again.place);
            let Some((refused_us, wait_ms)) = refusal.map(|(at_us, error)| (at_us, retry_after_ms(error)))
            else {
                let expected = "no retry, except after TIMEOUT, -32001 and -32002";
                self.add("RPC-CLIENT-13", "retried", expected, format!("the call {name:?} was sent again"));
                continue;
            };
            if k as u64 + 2 > max_attempts {
                let got = format!("the call {name:?} was sent {} times", k + 2);
                self.add(
                    "RPC-CLIENT-13",
                    "too_many_attempts",
                    format!("at most {max_attempts} attempts"),
                    got,
                );
            }
            let since_first_ms = again.at_us.saturating_sub(requests[0].at_us) / 1_000;
            if since_first_ms > call.timeout_ms + late_ms / 3 {
                let got =
                    format!("the call {name:?} was sent again {since_first_ms} ms after its first attempt");
                let expected = format!("no attempt after the timeout of {} ms", call.timeout_ms);
                self.add("RPC-CLIENT-11", "sent_after_timeout", expected, got);
            }
            let delay_us = again.at_us.saturating_sub(refused_us);
            let delay_ms = delay_us / 1_000;
            if let Some(wait_ms) = wait_ms.filter(|wait_ms| delay_ms + ROUND_MS < *wait_ms) {
                let got = format!("the call {name:?} was sent again after {delay_ms} ms");
                let expected = format!("no retry before `retry_after_ms`, which is {wait_ms}");
                self.add("RPC-CLIENT-16", "too_early", expected, got);
            }
            let Some(base_ms) = base_ms else { continue };
            let middle_ms = base_ms.saturating_mul(1 << k.min(32)).min(TIME_MS_MAX);
            let least_ms = middle_ms / 2;
            // A client that is slow everywhere has not necessarily waited longer on purpose.
            let is_measured = base_ms >= MEASURED_BASE_MS;
            let slack_ms = match is_measured {
                true => self.transcript.stretched_ms(MEASURED_LATE_MS) + 2 * reaction_ms,
                false => late_ms,
            };
            let most_ms = middle_ms + middle_ms / 2 + wait_ms.unwrap_or_default() + slack_ms;
            if delay_ms + ROUND_MS < least_ms || delay_ms > most_ms {
                let got = format!("the call {name:?} waited {delay_ms} ms before attempt {}", k + 2);
                let expected = format!("a delay of 0.5 to 1.5 times {middle_ms} ms");
                self.add("RPC-CLIENT-14", "other_delay", expected, got);
            }
            // A delay that the server asked for has no jitter.
            if is_measured && wait_ms.is_none() {
                quotients.push(delay_us as f64 / (middle_ms as f64 * 1_000.0));
            }
        }
        quotients
    }

    /// Finds delays without jitter: half of all delays are equal, as fractions of their means. A busy machine
    /// spreads a few such delays, but never half of them.
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
            let got = format!("{half} of {all} delays are within {least:.3} to {most:.3} times base·2^k");
            self.add(
                "RPC-CLIENT-15",
                "no_jitter",
                "delays with jitter, spread from 0.5 to 1.5 times base·2^k",
                got,
            );
        }
    }
}

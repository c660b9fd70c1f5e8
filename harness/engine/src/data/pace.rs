//! Pace of a peer: measured times, and the deadlines derived from them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Maximum start-up time as a multiple of the slowest measured one.
const MEASURED_STARTS: u32 = 4;

/// Minimum and maximum time until the first answer of a process that exchanges other messages before it.
pub(crate) const FIRST_ANSWER: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(60)];

/// Measurements of one command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Slowest time from the start of a process to its first answer.
    pub start_up: Option<Duration>,
    /// Slowest time from a plain request to its answer, in a process that had answered before.
    pub latency: Option<Duration>,
    /// Usual latency: a moving average.
    pub usual_latency: Option<Duration>,
    /// Set if a process was silent for the whole time of an unknown start.
    gave_up: bool,
}

impl Measured {
    /// Maximum start-up time: `most` until a start was measured.
    ///
    /// A peer that has used up `most` once gets no more of it.
    pub(crate) fn start_up_max(&self, most: Duration) -> Duration {
        match self.start_up {
            Some(start_up) => (start_up * MEASURED_STARTS).min(most),
            None if self.gave_up => Duration::ZERO,
            None => most,
        }
    }
}

/// Allowance for clocks and schedulers of two processes, microseconds.
pub const SLACK_US: u64 = 250_000;

/// Allowance on top of a time in the contract, derived from one transcript. A peer may be slow in general, so the
/// duration of plain requests counts twice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Duration of the first plain request, which may include the peer's start.
    first_us: Option<u64>,
    /// Longest duration of a later plain request.
    plain_us: Option<u64>,
}

impl Allowance {
    /// Allowance for these durations of plain requests, in the order of sending.
    pub fn of(took_us: impl IntoIterator<Item = u64>) -> Self {
        let mut allowance = Self::default();
        took_us.into_iter().for_each(|took_us| allowance.saw(took_us));
        allowance
    }

    /// Adds the duration of a plain request that ran alone.
    pub fn saw(&mut self, took_us: u64) {
        match self.first_us {
            None => self.first_us = Some(took_us),
            Some(_) => self.plain_us = self.plain_us.max(Some(took_us)),
        }
    }

    /// True if a plain request was answered after the peer had certainly started.
    pub fn is_certain(&self) -> bool {
        self.plain_us.is_some()
    }

    /// Longest duration of a plain request, microseconds. Uses the first one only if there is no other.
    pub fn plain_us(&self) -> u64 {
        self.plain_us.or(self.first_us).unwrap_or_default()
    }

    /// Allowed delay beyond the contract's time, microseconds.
    pub fn us(&self) -> u64 {
        SLACK_US.saturating_add(self.plain_us().saturating_mul(2))
    }
}

/// Formats as `start-up 5.1 s, latency 12 ms`.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start_up {
            Some(start_up) => write!(f, "start-up {}", written(start_up))?,
            None if self.gave_up => f.write_str("no answer")?,
            None => f.write_str("start-up unknown")?,
        }
        match self.latency {
            Some(latency) => write!(f, ", latency {}", written(latency)),
            None => Ok(()),
        }
    }
}

/// Formats a time for people: `850 ms`, `5.1 s`.
pub fn written(time: Duration) -> String {
    match time.as_millis() {
        0 => "under 1 ms".to_owned(),
        ms @ 1..1_000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Measurements of a peer by command: the start of `run` says nothing about that of `serve`.
#[derive(Debug, Default)]
pub struct Pace(Mutex<BTreeMap<String, Measured>>);

impl Pace {
    /// Measurements of `command` so far.
    pub fn of(&self, command: &str) -> Measured {
        self.lock().get(command).copied().unwrap_or_default()
    }

    /// All measurements.
    pub fn all(&self) -> BTreeMap<String, Measured> {
        self.lock().clone()
    }

    /// Takes over measurements of the same peer from elsewhere.
    pub fn restore(&self, measured: BTreeMap<String, Measured>) {
        *self.lock() = measured;
    }

    /// Records a first answer.
    pub(crate) fn saw_start_up(&self, command: &str, took: Duration) {
        self.note(command, |it| it.start_up = it.start_up.max(Some(took)));
    }

    /// Records an answer of a process that had answered before.
    pub(crate) fn saw_latency(&self, command: &str, took: Duration) {
        self.note(command, |it| {
            it.latency = it.latency.max(Some(took));
            it.usual_latency = Some(it.usual_latency.map_or(took, |usual| (usual * 7 + took) / 8));
        });
    }

    /// Records that a process was silent for the time of an unknown start.
    pub fn gave_up(&self, command: &str) {
        self.note(command, |it| it.gave_up = true);
    }

    fn note(&self, command: &str, change: impl FnOnce(&mut Measured)) {
        change(self.lock().entry(command.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Measured>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_slow_at_everything_is_not_late() {
        let ms = |took_ms: &[u64]| Allowance::of(took_ms.iter().map(|ms| ms * 1_000)).us() / 1_000;
        assert_eq!(ms(&[]), 250);
        assert_eq!(ms(&[1_000]), 2_250);
        assert_eq!(ms(&[5_000, 0]), 250, "a start is no slowness");
        assert_eq!(ms(&[5_000, 1_000, 400]), 2_250);
        let is_certain = |took: &[u64]| Allowance::of(took.iter().copied()).is_certain();
        assert_eq!([&[][..], &[9], &[9, 0]].map(is_certain), [false, false, true]);
    }

    const MOST: Duration = Duration::from_secs(30);

    #[test]
    fn an_unknown_start_gets_all_the_time_once() {
        let pace = Pace::default();
        assert_eq!(pace.of("serve").start_up_max(MOST), MOST);
        pace.gave_up("serve");
        assert_eq!(pace.of("serve").start_up_max(MOST), Duration::ZERO);
        assert_eq!(pace.of("run").start_up_max(MOST), MOST, "another command is not known yet");
    }

    #[test]
    fn a_measured_start_gets_a_multiple_of_the_slowest() {
        let pace = Pace::default();
        pace.gave_up("serve");
        for ms in [200, 500, 100] {
            pace.saw_start_up("serve", Duration::from_millis(ms));
        }
        assert_eq!(pace.of("serve").start_up_max(MOST), Duration::from_secs(2));
        pace.saw_start_up("serve", Duration::from_secs(20));
        assert_eq!(pace.of("serve").start_up_max(MOST), MOST);
    }
}

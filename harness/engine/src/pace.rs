//! How quick a peer is: what was measured, and the time that follows from it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A start may take this many times as long as the slowest that was measured.
const MEASURED_STARTS: u32 = 4;

/// A process that speaks with others before it answers may need more time than any start before it: least and longest time
/// until its first answer.
pub(crate) const FIRST_ANSWER: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(60)];

/// What was measured of one command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// From the start of a process to its first answer, the slowest.
    pub start_up: Option<Duration>,
    /// From a plain request to the answer of a process that had answered before, the slowest.
    pub latency: Option<Duration>,
    /// The same as it mostly is: a moving average.
    pub usual_latency: Option<Duration>,
    /// A process said nothing in all the time that an unknown one gets.
    gave_up: bool,
}

impl Measured {
    /// How long a process may take to start: `most` as long as no start was measured.
    ///
    /// A peer that has used up `most` once gets no more of it.
    pub fn start_up_max(&self, most: Duration) -> Duration {
        match self.start_up {
            Some(start_up) => (start_up * MEASURED_STARTS).min(most),
            None if self.gave_up => Duration::ZERO,
            None => most,
        }
    }
}

/// What clocks and schedulers of two processes may add to any time, microseconds.
pub const SLACK_US: u64 = 250_000;

/// What a peer may add to a time that the contract names, by one transcript alone: it may be slow at everything, so that
/// what plain requests took counts twice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// What the first plain request took: it may have found a peer that was still at its start.
    first_us: Option<u64>,
    /// The longest that another one took.
    plain_us: Option<u64>,
}

impl Allowance {
    /// That of a peer which took so long for plain requests, in the order in which they were sent.
    pub fn of(took_us: impl IntoIterator<Item = u64>) -> Self {
        let mut allowance = Self::default();
        took_us.into_iter().for_each(|took_us| allowance.saw(took_us));
        allowance
    }

    /// Counts a plain request in that had nothing else beside it.
    pub fn saw(&mut self, took_us: u64) {
        match self.first_us {
            None => self.first_us = Some(took_us),
            Some(_) => self.plain_us = self.plain_us.max(Some(took_us)),
        }
    }

    /// Whether a plain request was answered by a peer that had certainly started.
    pub fn is_certain(&self) -> bool {
        self.plain_us.is_some()
    }

    /// The longest that a plain request took, microseconds: the first one where there is no other.
    pub fn plain_us(&self) -> u64 {
        self.plain_us.or(self.first_us).unwrap_or_default()
    }

    /// How much later than the contract says an answer may come, microseconds.
    pub fn us(&self) -> u64 {
        SLACK_US.saturating_add(self.plain_us().saturating_mul(2))
    }
}

/// `start-up 5.1 s, latency 12 ms`.
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

/// A time as people write it: `850 ms`, `5.1 s`.
pub fn written(time: Duration) -> String {
    match time.as_millis() {
        0 => "under 1 ms".to_owned(),
        ms @ 1..1_000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// The measurements of a peer, by command. The start of `run` tells nothing about that of `serve`.
#[derive(Debug, Default)]
pub struct Pace(Mutex<BTreeMap<String, Measured>>);

impl Pace {
    /// What was measured of `command` so far.
    pub fn of(&self, command: &str) -> Measured {
        self.lock().get(command).copied().unwrap_or_default()
    }

    /// Everything that was measured.
    pub fn all(&self) -> BTreeMap<String, Measured> {
        self.lock().clone()
    }

    /// Takes over what was measured of the same peer elsewhere.
    pub fn restore(&self, measured: BTreeMap<String, Measured>) {
        *self.lock() = measured;
    }

    /// Takes note of a first answer.
    pub fn saw_start_up(&self, command: &str, took: Duration) {
        self.note(command, |it| it.start_up = it.start_up.max(Some(took)));
    }

    /// Takes note of the answer of a process that had answered before.
    pub fn saw_latency(&self, command: &str, took: Duration) {
        self.note(command, |it| {
            it.latency = it.latency.max(Some(took));
            it.usual_latency = Some(it.usual_latency.map_or(took, |usual| (usual * 7 + took) / 8));
        });
    }

    /// Takes note of a process that did not answer in the time of an unknown one.
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

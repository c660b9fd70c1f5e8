//! The circuit breaker (`policy` "Circuit breaker"; contract §2 "Failures").

use std::fmt;

use super::Failure;
use crate::machine::Millis;

/// Policy that decides after which failures no driver is started, and for how long.
pub trait Breaker: fmt::Debug + Send {
    /// True if no driver may be started now.
    fn is_open(&self, now: Millis) -> bool;
    /// A driver wrote a valid block.
    fn succeeded(&mut self);
    /// A driver failed at `now`.
    fn failed(&mut self, failure: &Failure, now: Millis);
}

/// Breaker that opens at `threshold` failures in a row, for `cooldown_ms` from the last of them. The count then stays
/// at the threshold: one more failure opens it again, one success resets the count to 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountingBreaker {
    threshold: u64,
    cooldown_ms: Millis,
    failures: u64,
    open_until: Millis,
}

impl CountingBreaker {
    /// Creates a breaker that has seen nothing. With a cooldown of 0 it never opens.
    pub fn new(threshold: u64, cooldown_ms: Millis) -> Self {
        Self { threshold, cooldown_ms, failures: 0, open_until: 0 }
    }
}

impl Breaker for CountingBreaker {
    fn is_open(&self, now: Millis) -> bool {
        now < self.open_until
    }

    fn succeeded(&mut self) {
        self.failures = 0;
    }

    fn failed(&mut self, _failure: &Failure, now: Millis) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.threshold {
            self.open_until = now.saturating_add(self.cooldown_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_at_the_threshold_and_does_not_slide() {
        let mut breaker = CountingBreaker::new(3, 100);
        for now in [10, 20] {
            breaker.failed(&Failure::Status(1), now);
            assert!(!breaker.is_open(now));
        }
        breaker.failed(&Failure::Status(1), 30);
        assert!(breaker.is_open(30) && breaker.is_open(129) && !breaker.is_open(130));
    }

    #[test]
    fn one_failure_after_the_cooldown_opens_again_and_one_success_resets() {
        let mut breaker = CountingBreaker::new(2, 100);
        breaker.failed(&Failure::Status(1), 0);
        breaker.failed(&Failure::Status(1), 0);
        breaker.failed(&Failure::Status(1), 150);
        assert!(breaker.is_open(249) && !breaker.is_open(250));
        breaker.succeeded();
        breaker.failed(&Failure::Status(1), 260);
        assert!(!breaker.is_open(260));
        assert_eq!(breaker.failures, 1);
    }

    #[test]
    fn successes_between_failures_keep_it_closed() {
        let mut breaker = CountingBreaker::new(2, 100);
        for now in 0..10 {
            breaker.failed(&Failure::Status(1), now);
            breaker.succeeded();
        }
        assert!(!breaker.is_open(10));
    }

    #[test]
    fn no_cooldown_never_opens() {
        let mut breaker = CountingBreaker::new(1, 0);
        breaker.failed(&Failure::Status(1), 5);
        assert!(!breaker.is_open(5));
    }
}

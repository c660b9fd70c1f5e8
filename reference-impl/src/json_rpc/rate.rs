//! The rate limit (RPC Security "Rate Limiting", contract §7 "Rate limit").

use std::collections::VecDeque;

use crate::machine::Millis;

/// Rate limit: requests per window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateConfig {
    /// Requests within a window, at most [`RATE_REQUESTS_MAX`].
    pub requests: usize,
    /// Length of the window, in s.
    pub window_s: u64,
}

/// Largest number of requests per window.
pub(crate) const RATE_REQUESTS_MAX: usize = 1_000_000;

/// Limiter of requests.
pub trait RateLimiter: Send {
    /// Admits a request, or refuses it.
    ///
    /// # Errors
    /// Time in ms, at least 1, after which another request will be admitted.
    fn pass(&mut self, now: Millis) -> Result<(), u64>;
}

/// The correct limiter: at most `requests` requests within any window.
#[derive(Debug)]
pub struct SlidingWindow {
    requests: usize,
    window_ms: u64,
    refused_counts: bool,
    /// Arrival times of the counted requests, oldest first, at most one window's worth.
    log: VecDeque<Millis>,
}

impl SlidingWindow {
    /// Creates a limiter that has seen no requests.
    pub fn new(config: RateConfig, refused_counts: bool) -> Self {
        let RateConfig { requests, window_s } = config;
        Self { requests, window_ms: window_s.saturating_mul(1_000), refused_counts, log: VecDeque::new() }
    }
}

impl RateLimiter for SlidingWindow {
    fn pass(&mut self, now: Millis) -> Result<(), u64> {
        while self.log.front().is_some_and(|at| now.saturating_sub(*at) >= self.window_ms) {
            self.log.pop_front();
        }
        if self.log.len() < self.requests {
            self.log.push_back(now);
            return Ok(());
        }
        if self.refused_counts {
            self.log.pop_front();
            self.log.push_back(now);
        }
        let free_at = self.log.front().map_or(now, |oldest| oldest.saturating_add(self.window_ms));
        Err(free_at.saturating_sub(now).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_as_told_passes() {
        for refused_counts in [false, true] {
            let mut limiter = SlidingWindow::new(RateConfig { requests: 3, window_s: 1 }, refused_counts);
            for now in [0, 10, 20] {
                assert_eq!(limiter.pass(now), Ok(()));
            }
            let wait = limiter.pass(500).unwrap_err();
            assert_eq!(wait, if refused_counts { 510 } else { 500 });
            assert!(limiter.pass(500 + wait - 1).is_err());
            if !refused_counts {
                assert_eq!(limiter.pass(500 + wait), Ok(()));
            }
        }
    }
}

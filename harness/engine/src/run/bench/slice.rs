//! Measurements of one slice of time.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Maximum latency of the histogram; longer ones count as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Empty histogram of latencies in nanoseconds, exact to three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    // Cannot fail: the bounds are valid constants.
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).unwrap_or_else(|error| unreachable!("bounds: {error}"))
}

/// Requests answered in a stretch of time, with their latencies.
#[derive(Debug, Clone)]
pub struct Slice {
    /// Number of requests answered correctly.
    pub requests: u64,
    /// Bytes of these requests.
    pub request_bytes: u64,
    /// Time during which requests were under way, without the time for judging long replies.
    pub busy: Duration,
    /// Latency of each request, nanoseconds.
    pub latencies: Histogram<u64>,
    /// Number of open-loop requests that were due but unanswered at the end.
    pub behind: u64,
}

impl Slice {
    /// Slice without requests.
    pub fn empty() -> Self {
        Self { requests: 0, request_bytes: 0, busy: Duration::ZERO, latencies: latencies(), behind: 0 }
    }

    /// Adds a later slice.
    pub fn add(&mut self, later: &Self) {
        self.requests += later.requests;
        self.request_bytes += later.request_bytes;
        self.busy += later.busy;
        self.behind += later.behind;
        // Cannot fail: both histograms have equal bounds.
        let _ = self.latencies.add(&later.latencies);
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.busy.as_secs_f64().max(1e-9)
    }
}

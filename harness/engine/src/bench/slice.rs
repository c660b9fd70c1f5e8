//! What one piece of measuring comes to.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Latencies are told apart up to a minute; longer ones count as that.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Latencies in nanoseconds, exact to three digits.
pub fn latencies() -> Histogram<u64> {
    // The bounds are constants that the library takes.
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).unwrap_or_else(|error| unreachable!("bounds: {error}"))
}

/// Requests that were answered in a row, and how long that took.
#[derive(Debug, Clone)]
pub struct Slice {
    /// Requests that were answered rightly.
    pub requests: u64,
    /// Bytes of those requests.
    pub request_bytes: u64,
    /// Time in which requests were under way; without the time for judging long replies.
    pub busy: Duration,
    /// Latency of each, nanoseconds.
    pub latencies: Histogram<u64>,
    /// Requests of an open loop that were due and not answered when the time was over.
    pub behind: u64,
}

impl Slice {
    /// Nothing yet.
    pub fn empty() -> Self {
        Self { requests: 0, request_bytes: 0, busy: Duration::ZERO, latencies: latencies(), behind: 0 }
    }

    /// Takes in what was measured after it.
    pub fn add(&mut self, later: &Self) {
        self.requests += later.requests;
        self.request_bytes += later.request_bytes;
        self.busy += later.busy;
        self.behind += later.behind;
        // Both have the same bounds.
        let _ = self.latencies.add(&later.latencies);
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.busy.as_secs_f64().max(1e-9)
    }
}

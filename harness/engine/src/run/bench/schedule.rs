//! Due times of the requests of an open loop.
//!
//! Latency counts from the intended time of a request, however late it was sent. So a stalled peer is charged for all
//! requests that were due during the stall.

/// Evenly spaced requests from time 0 on. All times are nanoseconds on the caller's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    interval_ns: f64,
    total: u64,
}

impl Schedule {
    /// Schedules `rate` requests per second for `time_ns`, at least one.
    pub(crate) fn new(rate: f64, time_ns: u64) -> Self {
        let interval_ns = 1e9 / rate.max(1e-3);
        Self { interval_ns, total: ((time_ns as f64 / interval_ns) as u64).max(1) }
    }

    /// Total number of requests.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Time at which request `index` (from 0) should be sent.
    pub(crate) fn intended_ns(&self, index: u64) -> u64 {
        (index as f64 * self.interval_ns) as u64
    }

    /// Number of requests due at `now_ns` and not among the `sent` ones.
    pub(crate) fn due(&self, now_ns: u64, sent: u64) -> u64 {
        // Rounding may be off by one: the intended time decides.
        let near = (now_ns as f64 / self.interval_ns) as u64;
        let passed = if self.intended_ns(near) > now_ns {
            near
        } else if self.intended_ns(near + 1) > now_ns {
            near + 1
        } else {
            near + 2
        };
        passed.min(self.total).saturating_sub(sent)
    }

    /// Time at `now_ns` until the next request is due; `None` if all were sent.
    pub(crate) fn wait_ns(&self, now_ns: u64, sent: u64) -> Option<u64> {
        (sent < self.total).then(|| self.intended_ns(sent).saturating_sub(now_ns))
    }

    /// Latency of request `index` if answered at `now_ns`.
    pub(crate) fn latency_ns(&self, index: u64, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.intended_ns(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_even_times() {
        let schedule = Schedule::new(1_000.0, 10_000_000);
        assert_eq!(schedule.total(), 10);
        assert_eq!(schedule.due(0, 0), 1, "the first one is due at once");
        assert_eq!(schedule.due(999_999, 1), 0);
        assert_eq!(schedule.wait_ns(400_000, 1), Some(600_000));
        assert_eq!(schedule.due(1_000_000, 1), 1);
        assert_eq!(schedule.due(1 << 40, 4), 6, "never more than there are");
        assert_eq!(schedule.wait_ns(0, 10), None);
    }

    /// Simulates a peer that answers at once except for one stall, on a virtual clock.
    #[test]
    fn a_stall_is_charged_to_all_that_were_due_in_it() {
        let schedule = Schedule::new(1_000.0, 100_000_000);
        let (mut now, mut sent, mut latencies) = (0, 0, Vec::new());
        while sent < schedule.total() {
            now += schedule.wait_ns(now, sent).unwrap();
            let due = schedule.due(now, sent);
            if sent == 50 {
                now += 20_000_000;
            }
            latencies.extend((sent..sent + due).map(|index| schedule.latency_ns(index, now)));
            sent += due;
        }
        assert_eq!(latencies.len(), 100);
        let late = latencies.iter().filter(|latency| **latency > 500_000).count();
        assert_eq!(late, 20, "one in service and nineteen behind it");
        assert_eq!(latencies.iter().max(), Some(&20_000_000));
    }

    #[test]
    fn what_is_due_is_what_was_intended_by_then() {
        let schedule = Schedule::new(333_333.3, 50_000_000);
        for index in 0..schedule.total() {
            let at = schedule.intended_ns(index);
            assert_eq!(schedule.due(at, index), 1, "request {index}");
            assert!(at == 0 || schedule.due(at - 1, index) == 0, "request {index} is early");
        }
    }

    #[test]
    fn a_slow_peer_gets_one_request_at_least() {
        assert_eq!(Schedule::new(0.5, 1_000_000).total(), 1);
        assert_eq!(Schedule::new(0.0, 1_000_000).total(), 1);
    }
}

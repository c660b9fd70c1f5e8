//! Delays of retries.

/// Policy for the delays of retries.
pub trait Backoff: Send {
    /// Delay in ms before attempt `retry` + 2 (the first retry is 0). `asked_ms` is the `retry_after_ms` of the error.
    fn delay_ms(&mut self, retry: u32, base_ms: u64, asked_ms: Option<u64>) -> u64;
}

/// The correct delays: base·2^k with a random factor from [0.5, 1.5], and never shorter than the server asks for.
#[derive(Debug)]
pub struct Exponential {
    rng: fastrand::Rng,
}

/// Longest delay in ms.
const DELAY_MS_MAX: u64 = 600_000;

impl Exponential {
    /// Creates delays with this seed.
    pub fn new(rng_seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(rng_seed) }
    }
}

impl Backoff for Exponential {
    fn delay_ms(&mut self, retry: u32, base_ms: u64, asked_ms: Option<u64>) -> u64 {
        let middle = base_ms.saturating_mul(1_u64.checked_shl(retry).unwrap_or(u64::MAX)).min(DELAY_MS_MAX);
        let delay = self.rng.u64(middle.div_ceil(2)..=middle + middle / 2);
        delay.max(asked_ms.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_lie_around_powers_of_two_and_differ() {
        let mut backoff = Exponential::new(1);
        for retry in 0..20 {
            let middle = 7_u64 << retry;
            if middle > DELAY_MS_MAX {
                continue;
            }
            let delays: Vec<u64> = (0..50).map(|_| backoff.delay_ms(retry, 7, None)).collect();
            assert!(delays.iter().all(|delay| 2 * delay >= middle && 2 * delay <= 3 * middle), "{delays:?}");
            assert!(delays.iter().any(|delay| *delay != delays[0]), "{retry}");
        }
    }

    #[test]
    fn the_server_is_heard_and_nothing_overflows() {
        let mut backoff = Exponential::new(1);
        assert_eq!(backoff.delay_ms(0, 10, Some(500)), 500);
        assert!(backoff.delay_ms(200, u64::MAX, None) <= DELAY_MS_MAX * 3 / 2);
        assert_eq!(backoff.delay_ms(3, 0, None), 0);
    }
}

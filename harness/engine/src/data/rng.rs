//! Deterministic randomness: all random choices of a run follow from one `rng_seed`.
//!
//! The generator is SplitMix64. Reproducers rely on its stream, so golden values pin it. It is not for secrets.

use std::ops::RangeInclusive;

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Small deterministic generator. One `rng_seed` gives one stream on every platform and release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    rng_seed: u64,
    state: u64,
    /// Predetermined draws, the next one last.
    led: Vec<u8>,
}

impl Rng {
    /// Generator whose whole stream follows from `rng_seed`.
    pub fn new(rng_seed: u64) -> Self {
        Rng { rng_seed, state: rng_seed, led: Vec::new() }
    }

    /// Generator whose first draws are determined by one byte each: 0 draws the minimum of any range, 255 the maximum.
    /// So a fuzzer that changes one byte changes one decision. Later draws follow from the `rng_seed` 0.
    pub fn led(choices: &[u8]) -> Self {
        Rng { led: choices.iter().rev().copied().collect(), ..Rng::new(0) }
    }

    /// Seed of the generator, for reports.
    pub fn rng_seed(&self) -> u64 {
        self.rng_seed
    }

    /// Next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        if let Some(choice) = self.led.pop() {
            return u64::from_ne_bytes([choice; 8]) | 1;
        }
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// Number in `0..bound`, without bias; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Lemire's multiplication: rejecting low halves below `threshold` avoids bias.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Index below `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Number in the inclusive `range`; its start if the range is empty.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        match high.checked_sub(low) {
            None => low,
            Some(u64::MAX) => self.next_u64(),
            Some(span) => low + self.below(span + 1),
        }
    }

    /// True in `numerator` of `denominator` draws; never if `denominator` is 0.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator && denominator > 0
    }

    /// One of `items`.
    ///
    /// # Panics
    ///
    /// Panics if `items` is empty, as indexing does.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Shuffles `items`; every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Independent generator for `label`.
    ///
    /// It follows only from `rng_seed` and label, not from earlier draws: a check keeps its stream when another one is
    /// added or draws more. Equal labels give equal streams.
    pub fn fork(&self, label: &str) -> Rng {
        Rng::new(mix((self.rng_seed ^ fnv1a(label.as_bytes())).wrapping_add(GOLDEN_GAMMA)))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// FNV-1a over 64 bits: stable across platforms and releases, unlike the standard library's hashers.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rng_seed: u64) -> [u64; 3] {
        let mut rng = Rng::new(rng_seed);
        std::array::from_fn(|_| rng.next_u64())
    }

    #[test]
    fn stream_matches_published_splitmix64_values() {
        assert_eq!(stream(0), [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
        assert_eq!(stream(1_234_567), [0x599E_D017_FB08_FC85, 0x2C73_F084_5854_0FA5, 0x883E_BCE5_A3F2_7C77]);
    }

    #[test]
    fn fnv1a_matches_published_values() {
        assert_eq!(fnv1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn fork_follows_from_seed_and_label_alone() {
        let mut rng = Rng::new(42);
        let before = rng.fork("toy/serve");
        rng.next_u64();
        assert_eq!(rng.fork("toy/serve"), before);
        assert_eq!(before.rng_seed(), 0x115C_D75B_A7FB_1A06);
        assert_eq!(rng.fork("").rng_seed(), 0xEBC6_2D1B_D385_B9F5);
        assert_ne!(rng.fork("toy/run"), before);
        assert_ne!(Rng::new(43).fork("toy/serve"), before);
        assert_ne!(before.fork("toy/serve"), before);
    }

    #[test]
    fn bytes_lead_the_first_draws() {
        let mut rng = Rng::led(&[0, 255, 128, 255]);
        assert_eq!((rng.below(10), rng.below(10), rng.below(10)), (0, 9, 5));
        assert!(!rng.chance(1, 2));
        assert_eq!(rng.next_u64(), Rng::new(0).next_u64());
    }

    #[test]
    fn derived_draws_are_stable() {
        let mut rng = Rng::new(7);
        let below: Vec<u64> = (0..8).map(|_| rng.below(10)).collect();
        assert_eq!(below, [3, 0, 9, 5, 4, 2, 4, 3]);
        let mut order = [0, 1, 2, 3, 4, 5, 6, 7];
        rng.shuffle(&mut order);
        assert_eq!(order, [5, 7, 6, 3, 4, 0, 2, 1]);
    }

    #[test]
    fn draws_stay_in_bounds_and_reach_every_value() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[rng.index(5)] = true;
            assert!((10..=12).contains(&rng.range(10..=12)));
            assert!(b"abc".contains(rng.pick(b"abc")));
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(rng.below(1), 0);
        assert_eq!(rng.range(9..=9), 9);
    }

    #[test]
    fn degenerate_bounds_have_an_answer() {
        let mut rng = Rng::new(1);
        assert_eq!((rng.below(0), rng.index(0)), (0, 0));
        #[allow(clippy::reversed_empty_ranges, reason = "the empty range is the point")]
        let empty = 5..=4;
        assert_eq!(rng.range(empty), 5);
        assert!(!rng.chance(1, 0));
        assert!(!rng.chance(0, 3));
        assert!(rng.chance(3, 3));
        rng.range(0..=u64::MAX);
    }

    #[test]
    fn chance_is_about_its_share() {
        let mut rng = Rng::new(3);
        let hits = (0..10_000).filter(|_| rng.chance(1, 4)).count();
        assert!((2_300..=2_700).contains(&hits), "{hits}");
    }
}

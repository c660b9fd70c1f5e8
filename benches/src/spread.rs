//! Figures with their spread.

use std::fmt;

/// Values of one figure, one per round.
#[derive(Debug, Clone, Default)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// Adds the value of a round.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Value below which this `part` (0 to 1) of the values lie.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = [0.1, 0.5, 0.9].map(|part| self.quantile(part));
        write!(f, "{median:.3} (p10 {low:.3}, p90 {high:.3}, {} rounds)", self.0.len())
    }
}

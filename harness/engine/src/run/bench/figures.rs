//! Figures of a row: medians over rounds with their spread, ratios between peers, and comparisons that take noise into
//! account.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::slice::{Slice, latencies};

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Requests per second.
    ReqS,
    /// Megabytes (10^6 bytes) of requests per second.
    MbS,
    /// Median latency, microseconds.
    P50Us,
    /// 90th percentile of latency, microseconds.
    P90Us,
    /// 99th percentile of latency, microseconds.
    P99Us,
    /// 99.9th percentile of latency, microseconds.
    P999Us,
    /// Longest latency, microseconds.
    MaxUs,
    /// Processor time of the peer per request, microseconds.
    CpuUs,
    /// Peak resident memory of the peer, bytes.
    RssPeak,
    /// Growth of resident memory per request, bytes.
    RssSlope,
}

impl Metric {
    /// All figures, in the order of the tables.
    pub const ALL: [Self; 10] = [
        Self::ReqS,
        Self::MbS,
        Self::P50Us,
        Self::P90Us,
        Self::P99Us,
        Self::P999Us,
        Self::MaxUs,
        Self::CpuUs,
        Self::RssPeak,
        Self::RssSlope,
    ];

    /// Name of the figure in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReqS => "req_s",
            Self::MbS => "mb_s",
            Self::P50Us => "p50_us",
            Self::P90Us => "p90_us",
            Self::P99Us => "p99_us",
            Self::P999Us => "p999_us",
            Self::MaxUs => "max_us",
            Self::CpuUs => "cpu_us_per_request",
            Self::RssPeak => "rss_peak_bytes",
            Self::RssSlope => "rss_bytes_per_request",
        }
    }

    /// True if greater values are better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::ReqS | Self::MbS)
    }

    /// Share of latencies below a percentile; `None` for other figures.
    fn quantile(self) -> Option<f64> {
        match self {
            Self::P50Us => Some(0.5),
            Self::P90Us => Some(0.9),
            Self::P99Us => Some(0.99),
            Self::P999Us => Some(0.999),
            _ => None,
        }
    }
}

/// Median and range of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub low: f64,
    /// Greatest.
    pub high: f64,
}

impl Spread {
    /// Spread of the finite values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => return None,
            length if length % 2 == 1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        Some(Self { median, low: values[0], high: values[values.len() - 1] })
    }

    /// Largest distance of a value from the median, as a share of the median.
    pub fn noise(&self) -> f64 {
        (self.high - self.median).max(self.median - self.low) / self.median.abs().max(f64::MIN_POSITIVE)
    }
}

/// Measurements of one peer in one round.
#[derive(Debug, Clone)]
pub struct RoundFigures {
    /// Number of the round.
    pub round: usize,
    /// Requests answered and their latencies.
    pub slice: Slice,
    /// Processor time of the peer, seconds.
    pub cpu_s: f64,
    /// Peak resident memory, bytes, if it was read.
    pub rss_peak: Option<u64>,
    /// Pairs of requests answered and resident memory in bytes, from the beginning to the end.
    pub rss: Vec<(u64, u64)>,
}

impl RoundFigures {
    /// Figure of this round alone.
    fn figure(&self, figure: Metric) -> Option<f64> {
        let requests = self.slice.requests as f64;
        if requests == 0.0 {
            return None;
        }
        match figure {
            Metric::ReqS => Some(self.slice.rate()),
            Metric::MbS => Some(self.slice.rate() * self.slice.request_bytes as f64 / requests / 1e6),
            Metric::CpuUs => Some(self.cpu_s * 1e6 / requests),
            Metric::RssPeak => self.rss_peak.map(|bytes| bytes as f64),
            Metric::RssSlope => slope(&self.rss),
            Metric::MaxUs => Some(self.slice.latencies.max() as f64 / 1e3),
            _ => percentile(&self.slice.latencies, figure.quantile()?),
        }
    }
}

/// Percentile in microseconds; `None` if there are too few latencies for it.
fn percentile(latencies: &hdrhistogram::Histogram<u64>, quantile: f64) -> Option<f64> {
    let beyond = latencies.len() as f64 * (1.0 - quantile);
    // A median of few values is still useful; a tail needs at least one value beyond it.
    (quantile <= 0.5 || beyond >= 0.999_999).then(|| latencies.value_at_quantile(quantile) as f64 / 1e3)
}

/// Slope of the least-squares line through the points.
fn slope(points: &[(u64, u64)]) -> Option<f64> {
    // Allocation at the beginning is not growth: the first third counts only if there are fewer than six points.
    let points = if points.len() >= 6 { &points[points.len() / 3..] } else { points };
    let count = points.len() as f64;
    let mean =
        |of: &dyn Fn(&(u64, u64)) -> u64| points.iter().map(|point| of(point) as f64).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let (mut above, mut below) = (0.0, 0.0);
    for &(requests, bytes) in points {
        above += (requests as f64 - x) * (bytes as f64 - y);
        below += (requests as f64 - x).powi(2);
    }
    (below > 0.0).then(|| above / below)
}

/// The rounds of one peer in one row.
#[derive(Debug, Clone, Default)]
pub struct Rounds(pub Vec<RoundFigures>);

impl Rounds {
    /// Number of requests answered in all rounds.
    pub fn requests(&self) -> u64 {
        self.0.iter().map(|round| round.slice.requests).sum()
    }

    /// Number of open-loop requests that were not answered in time.
    pub fn behind(&self) -> u64 {
        self.0.iter().map(|round| round.slice.behind).sum()
    }

    /// Figure over all rounds. Percentiles and the maximum latency are taken over all latencies together, other figures
    /// are medians. The spread is that between rounds.
    pub fn figure(&self, figure: Metric) -> Option<Spread> {
        let of_rounds = Spread::of(self.0.iter().filter_map(|round| round.figure(figure)));
        if figure != Metric::MaxUs && figure.quantile().is_none() {
            return of_rounds;
        }
        let mut all = latencies();
        for round in &self.0 {
            // Cannot fail: both histograms have equal bounds.
            let _ = all.add(&round.slice.latencies);
        }
        if all.is_empty() {
            return None;
        }
        let median = match figure.quantile() {
            Some(quantile) => percentile(&all, quantile)?,
            None => all.max() as f64 / 1e3,
        };
        let (low, high) = of_rounds.map_or((median, median), |spread| (spread.low, spread.high));
        Some(Spread { median, low: low.min(median), high: high.max(median) })
    }

    /// Ratio of this peer's figure to the other's, round by round.
    pub fn ratio(&self, other: &Self, figure: Metric) -> Option<Spread> {
        Spread::of(self.0.iter().filter_map(|round| {
            let other = other.0.iter().find(|other| other.round == round.round)?;
            let (ours, theirs) = (round.figure(figure)?, other.figure(figure)?);
            (theirs != 0.0).then_some(ours / theirs)
        }))
    }

    /// All figures, for files.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("rounds".to_owned(), json!(self.0.len()));
        members.insert("requests".to_owned(), json!(self.requests()));
        if self.behind() > 0 {
            members.insert("behind".to_owned(), json!(self.behind()));
        }
        for figure in Metric::ALL {
            members.insert(figure.name().to_owned(), json!(self.figure(figure)));
        }
        Value::Object(members)
    }

    /// All ratios to another peer, for files.
    pub fn ratios_to_json(&self, other: &Self) -> Value {
        let ratio = |figure: Metric| (figure.name().to_owned(), json!(self.ratio(other, figure)));
        Value::Object(Metric::ALL.into_iter().map(ratio).collect())
    }
}

/// Result of comparing two peers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Comparison {
    /// The first peer is better by this share.
    Better {
        /// Relative difference: 0.1 is ten per cent.
        by: f64,
        /// Largest distance of a round from the median.
        noise: f64,
    },
    /// The first peer is worse by this share.
    Worse {
        /// Relative difference: 0.1 is ten per cent.
        by: f64,
        /// Largest distance of a round from the median.
        noise: f64,
    },
    /// The rounds differ by more than the peers do, or are too few.
    CannotTell {
        /// Distance of the ratio from 1.
        effect: f64,
        /// Largest distance of a round from the median.
        noise: f64,
    },
}

/// Minimum number of rounds for an estimate of noise.
const ROUNDS_MIN: usize = 3;

/// Compares two peers by the ratios of one figure over `rounds` rounds.
pub fn compare(ratio: &Spread, rounds: usize, figure: Metric) -> Comparison {
    // On a logarithmic scale, twice as fast and half as fast are equally far from 1.
    let effect = ratio.median.ln().abs();
    let noise = (ratio.high / ratio.median).ln().max((ratio.median / ratio.low).ln());
    let share = |logarithm: f64| logarithm.exp() - 1.0;
    let (by, noise_share) = (share(effect), share(noise));
    if rounds < ROUNDS_MIN || effect <= noise || effect.is_nan() || noise.is_nan() {
        return Comparison::CannotTell { effect: by, noise: noise_share };
    }
    if (ratio.median > 1.0) == figure.more_is_better() {
        Comparison::Better { by, noise: noise_share }
    } else {
        Comparison::Worse { by, noise: noise_share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(round: usize, latency_us: u64, requests: u64) -> RoundFigures {
        let mut slice = Slice::empty();
        slice.requests = requests;
        slice.request_bytes = requests * 64;
        slice.busy = std::time::Duration::from_micros(latency_us * requests);
        for _ in 0..requests {
            slice.latencies.saturating_record(latency_us * 1_000);
        }
        RoundFigures {
            round,
            slice,
            cpu_s: 0.001,
            rss_peak: Some(1 << 20),
            rss: vec![(0, 100), (requests, 100)],
        }
    }

    fn rounds(latencies_us: &[u64]) -> Rounds {
        Rounds(latencies_us.iter().enumerate().map(|(index, us)| round(index, *us, 200)).collect())
    }

    #[test]
    fn figures_are_medians_with_their_spread() {
        let rounds = rounds(&[10, 8, 20]);
        let rate = rounds.figure(Metric::ReqS).unwrap();
        assert_eq!((rate.median, rate.low, rate.high), (100_000.0, 50_000.0, 125_000.0));
        assert_eq!(rounds.figure(Metric::MbS).unwrap().median, 6.4);
        assert_eq!(rounds.figure(Metric::CpuUs).unwrap().median, 5.0);
        assert_eq!(rounds.figure(Metric::RssSlope).unwrap().median, 0.0);
        assert!((rounds.figure(Metric::MaxUs).unwrap().median - 20.0).abs() < 0.1);
        assert_eq!(rounds.requests(), 600);
    }

    #[test]
    fn a_tail_of_less_than_one_value_is_not_told() {
        let rounds = rounds(&[10]);
        assert!(rounds.figure(Metric::P99Us).is_some());
        assert_eq!(rounds.figure(Metric::P999Us), None);
        assert_eq!(Rounds::default().figure(Metric::P50Us), None);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let ratio = rounds(&[10, 20, 40]).ratio(&rounds(&[5, 10, 20]), Metric::ReqS).unwrap();
        assert_eq!(ratio, Spread { median: 0.5, low: 0.5, high: 0.5 });
        assert_eq!(rounds(&[10]).ratio(&Rounds::default(), Metric::ReqS), None);
    }

    #[test]
    fn noise_above_the_effect_is_no_difference() {
        let of = |values: &[f64]| {
            compare(&Spread::of(values.iter().copied()).unwrap(), values.len(), Metric::ReqS)
        };
        assert!(matches!(of(&[1.05, 1.02, 0.97, 1.01, 1.2]), Comparison::CannotTell { .. }));
        assert!(matches!(of(&[1.30, 1.29, 1.31, 1.30, 1.32]), Comparison::Better { .. }));
        assert!(matches!(of(&[0.70, 0.71, 0.69, 0.70, 0.70]), Comparison::Worse { .. }));
        assert!(matches!(of(&[1.0, 1.0, 1.0]), Comparison::CannotTell { .. }), "no difference at all");
        assert!(matches!(of(&[2.0, 2.0]), Comparison::CannotTell { .. }), "too few rounds");
    }

    #[test]
    fn less_latency_is_better() {
        let ratio = Spread::of([0.5, 0.5, 0.51]).unwrap();
        assert!(matches!(compare(&ratio, 3, Metric::P99Us), Comparison::Better { .. }));
    }

    #[test]
    fn growth_of_memory_is_a_slope_without_the_beginning() {
        assert_eq!(slope(&[(0, 0), (10, 1_000)]), Some(100.0));
        assert_eq!(slope(&[(0, 0), (0, 0)]), None);
        let settled: Vec<(u64, u64)> =
            [(0, 0), (1, 500)].into_iter().chain((2..9).map(|at| (at, 900))).collect();
        assert_eq!(slope(&settled[..]).map(f64::abs), Some(0.0));
    }
}

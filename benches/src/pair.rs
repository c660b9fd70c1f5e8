//! Two peers that take turns.

use std::io;
use std::time::Duration;

use crate::error::FigureError;
use crate::pipe::Pipe;
use crate::played;
use crate::spread::Spread;

/// Starts this program as a peer; see [`crate::play`].
///
/// # Errors
/// Fails if the process cannot be started.
pub fn start(words: &[&str]) -> Result<Pipe, FigureError> {
    played(words).and_then(|argv| Pipe::start(&argv)).map_err(FigureError::of("cannot start a peer"))
}

/// Two times of one round in microseconds, measured in alternating order.
///
/// # Errors
/// Fails if a peer has gone.
pub fn turns(
    round: u32,
    mut first: impl FnMut() -> io::Result<Duration>,
    mut second: impl FnMut() -> io::Result<Duration>,
) -> Result<(f64, f64), FigureError> {
    let gone = |error| FigureError::of("a peer is gone")(error);
    let (a, b) = if round.is_multiple_of(2) {
        let a = first().map_err(gone)?;
        (a, second().map_err(gone)?)
    } else {
        let b = second().map_err(gone)?;
        (first().map_err(gone)?, b)
    };
    Ok((a.as_secs_f64() * 1e6, b.as_secs_f64() * 1e6))
}

/// Times of two peers over all rounds, microseconds.
#[derive(Default)]
pub struct Pair {
    /// Times of the first peer.
    pub first: Spread,
    /// Times of the second peer.
    pub second: Spread,
    /// Ratio of first to second, round by round.
    pub ratio: Spread,
}

impl Pair {
    /// Adds a round.
    pub fn add(&mut self, (first, second): (f64, f64)) {
        self.first.add(first);
        self.second.add(second);
        self.ratio.add(first / second);
    }

    /// Ratio of the undisturbed times.
    pub fn best(&self) -> f64 {
        self.first.quantile(0.02) / self.second.quantile(0.02)
    }
}

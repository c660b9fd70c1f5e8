//! Progress line on standard error, only on a terminal.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use peerproof::report::printer::Printer;
use peerproof_engine::data::text::visible;

/// Progress line of a long task, with the remaining time.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Number of remaining steps that wait for minutes in any case.
    waiting: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Progress {
    /// Line for `total` steps; nothing is drawn without a terminal.
    pub(crate) fn new(total: usize, printer: &Printer) -> Self {
        Self::of_checks(total, 0, printer)
    }

    /// Line for `total` checks, of which `waiting` wait for minutes beside the others.
    pub(crate) fn of_checks(total: usize, waiting: usize, printer: &Printer) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(total as u64),
            if printer.live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let waiting = Arc::new(AtomicUsize::new(waiting));
        let to_come = Arc::clone(&waiting);
        let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let waiting = to_come.load(Ordering::Relaxed) as u64;
            let quick = state.len().unwrap_or_default().saturating_sub(waiting);
            // A failed write only shortens the line.
            let _ = out.write_str(&left(state.pos().min(quick), quick, waiting, state.elapsed()));
        };
        // The template is fixed; on failure the default line is shown.
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {pos}/{len} [{bar:24}] {elapsed}{left} {wide_msg}")
        {
            bar.set_style(style.with_key("left", left).progress_chars("=> "));
        }
        if printer.live {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar, waiting, failed: Arc::default() }
    }

    /// Counts a finished step and shows `message` after the bar.
    pub(crate) fn step(&self, message: impl Into<String>) {
        self.say(message);
        self.bar.inc(1);
    }

    /// Counts a finished check.
    pub(crate) fn check(&self, id: &str, has_failed: bool, has_waited: bool) {
        if has_waited {
            let _ =
                self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        }
        let failed =
            self.failed.fetch_add(usize::from(has_failed), Ordering::Relaxed) + usize::from(has_failed);
        self.step(if failed == 0 { id.to_owned() } else { format!("{failed} failed  {id}") });
    }

    /// Changes only the message.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.bar.set_message(visible(&message.into()).into_owned());
    }

    /// Prints something while the line is hidden.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Time before which no remaining time is shown.
const UNKNOWN: Duration = Duration::from_secs(3);
/// Divisor of the steps before whose share is done no remaining time is shown.
const UNKNOWN_SHARE: u64 = 20;

/// Words for the remaining time of `total` steps of which `done` took `elapsed`. `waiting` further steps wait for
/// minutes independently. Empty as long as too little is known.
fn left(done: u64, total: u64, waiting: u64, elapsed: Duration) -> String {
    if done >= total && waiting > 0 {
        return format!(", {waiting} wait for minutes");
    }
    if elapsed < UNKNOWN || done * UNKNOWN_SHARE < total || done >= total {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() * (total - done) as f64 / done as f64).ceil() as u64;
    match seconds {
        0..60 => format!(", {seconds} s left"),
        _ => format!(", {} min left", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_was_done_and_is_not_guessed_before() {
        let said = |done, total, waiting, seconds| left(done, total, waiting, Duration::from_secs(seconds));
        assert_eq!(said(0, 100, 0, 60), "");
        assert_eq!(said(50, 100, 0, 1), "", "too soon");
        assert_eq!(said(4, 100, 0, 60), "", "too few");
        assert_eq!(said(0, 0, 0, 60), "", "fuzzing has no end");
        assert_eq!(said(50, 100, 0, 30), ", 30 s left");
        assert_eq!(said(10, 100, 0, 60), ", 9 min left");
        assert_eq!(said(99, 100, 3, 60), ", 1 s left");
        assert_eq!(said(100, 100, 3, 60), ", 3 wait for minutes");
        assert_eq!(said(100, 100, 0, 60), "");
    }
}

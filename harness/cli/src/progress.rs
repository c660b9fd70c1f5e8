//! The progress line on standard error, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use peerproof::report::printer::Printer;
use peerproof_engine::text::visible;

/// A line that says how far a long piece of work is.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line for `total` steps; nothing is drawn where standard error is no terminal.
    pub fn new(total: usize, printer: &Printer) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(total as u64),
            if printer.live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        // The template is fixed; where it cannot be read the default line is shown.
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {pos}/{len} [{bar:24}] {elapsed} {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        if printer.live {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar }
    }

    /// One step is done; `message` stands behind the bar from now on.
    pub fn step(&self, message: impl Into<String>) {
        self.say(message);
        self.bar.inc(1);
    }

    /// Only changes the message.
    pub fn say(&self, message: impl Into<String>) {
        self.bar.set_message(visible(&message.into()).into_owned());
    }

    /// Prints something while the line is out of the way.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

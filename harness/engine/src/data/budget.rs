//! Resources that the harness grants a peer. The limits that the contract sets are something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bounds on bytes, lines, time and memory of one connection. Every wait and every buffer of the transports obeys one.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Maximum bytes kept from the peer's standard output. Beyond it the peer is killed and the overflow recorded.
    pub stdout_bytes_max: usize,
    /// Maximum number of lines on standard output, as a line may cost many times its bytes. Beyond it the peer is
    /// killed and the overflow recorded. A correct peer may spread one value of 1 MB over many lines.
    pub stdout_lines_max: u64,
    /// Maximum bytes kept of the output after the last stimulus, if the peer was killed for writing too much.
    pub flood_bytes_kept: usize,
    /// Maximum bytes of standard error kept; the rest is drained and counted.
    pub stderr_bytes_kept: usize,
    /// Maximum start-up time of a peer about which nothing is known yet. Other times count from its first answer.
    pub start_up: Duration,
    /// Maximum wait for a reply to a small request.
    pub reply: Duration,
    /// Addition to `reply` per MiB written before the reply.
    pub reply_per_mib: Duration,
    /// Maximum time that a step may add for a reply to large input.
    pub allow_large: Duration,
    /// Minimum wait for a reply before a canary is sent after the message.
    pub patience: Duration,
    /// Minimum wait before a canary, as a multiple of the usual latency of canaries.
    pub latencies_per_patience: u32,
    /// Divisor for the wait for an optional effect outside the session.
    pub effect_share: u32,
    /// Saves time on events that need not happen: a canary is sent while the peer still starts, the wait after it is no
    /// longer than the wait before it, and a start may take no longer than the slowest known one.
    pub hurries: bool,
    /// Maximum wait for an exit that the contract demands within 2 s (already scaled by `--timeout-scale`).
    pub exit: Duration,
    /// Maximum life of one connection.
    pub connection: Duration,
    /// Maximum memory of the peer's process tree, bytes. Beyond it the peer is killed.
    pub memory_bytes_max: u64,
    /// Set when the user asks to stop: every wait then ends.
    pub interrupted: Arc<AtomicBool>,
}

/// Maximum time between two looks at `interrupted` during a wait.
pub(crate) const LOOK_FOR_INTERRUPT_EVERY: Duration = Duration::from_millis(250);

/// Deadline scaled by `--timeout-scale`, but never shortened: a part of it may be time that has to pass.
pub(crate) fn stretched(time: Duration, timeout_scale: f64) -> Duration {
    time.mul_f64(timeout_scale.max(1.0))
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            stdout_bytes_max: 32 << 20,
            stdout_lines_max: 1 << 20,
            flood_bytes_kept: 64 << 10,
            stderr_bytes_kept: 16 << 10,
            start_up: Duration::from_secs(30),
            reply: Duration::from_millis(4_000),
            reply_per_mib: Duration::from_millis(1_000),
            allow_large: Duration::MAX,
            patience: Duration::from_millis(300),
            latencies_per_patience: 20,
            effect_share: 1,
            hurries: false,
            exit: Duration::from_millis(2_000),
            connection: Duration::from_secs(120),
            memory_bytes_max: 4 << 30,
            interrupted: Arc::default(),
        }
    }
}

impl Budget {
    /// Scales the times, not the sizes, by `--timeout-scale`. `start_up` only gets shorter, because it is measured.
    pub fn scaled(mut self, timeout_scale: f64) -> Self {
        self.start_up = self.start_up.mul_f64(timeout_scale.min(1.0));
        for time in [&mut self.reply, &mut self.reply_per_mib, &mut self.exit, &mut self.connection] {
            *time = time.mul_f64(timeout_scale);
        }
        self
    }

    /// True if the user asked to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Sleeps for `time`, or until the user asks to stop.
    pub fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_interrupted() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK_FOR_INTERRUPT_EVERY));
        }
    }

    /// Maximum wait for a reply after `bytes` were queued.
    pub(crate) fn reply_to(&self, bytes: usize) -> Duration {
        self.reply + self.reply_per_mib.mul_f64(bytes as f64 / f64::from(1 << 20))
    }
}

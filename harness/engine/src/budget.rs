//! What the harness spends on a peer; distinct from the limits that the contract sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bounds on bytes, lines, time and memory of one connection. Every wait and every buffer of the transports is under one.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Most bytes kept from the peer's standard output; past it the peer is killed and the overflow recorded.
    pub stdout_bytes_max: usize,
    /// Most lines on standard output: each may cost many times its bytes. Past it, as past `stdout_bytes_max`. A right peer
    /// may spread one value of 1 MB over many lines.
    pub stdout_lines_max: u64,
    /// Most bytes kept of what came behind the last stimulus, once the peer was killed for writing too much.
    pub flood_bytes_kept: usize,
    /// Most bytes of standard error kept; the rest is drained and counted.
    pub stderr_bytes_kept: usize,
    /// Longest time that a peer may take to start, as long as nothing is known of it. Other times count from its first
    /// answer.
    pub start_up: Duration,
    /// Longest wait for a reply to a small request.
    pub reply: Duration,
    /// Added to `reply` for every MiB that is written before the reply.
    pub reply_per_mib: Duration,
    /// Longest time by which a step may lengthen the wait for the reply to large input.
    pub allow_large: Duration,
    /// Shortest wait for a reply before a canary is sent behind the message.
    pub patience: Duration,
    /// The same, as a multiple of the time that canaries mostly take.
    pub latencies_per_patience: u32,
    /// Part of the time for something beside the session that is given.
    pub effect_share: u32,
    /// No time is left for what only may be: a canary is sent while the peer starts and waited behind as long as before it,
    /// and a start takes no longer than the slowest.
    pub hurries: bool,
    /// Longest wait for an exit that the contract wants within 2 s (already scaled by `--timeout-scale`).
    pub exit: Duration,
    /// Longest life of one connection.
    pub connection: Duration,
    /// Memory of the peer's process tree past which it is killed, bytes.
    pub memory_bytes_max: u64,
    /// Set when the user asks to stop: every wait then ends.
    pub interrupted: Arc<AtomicBool>,
}

/// A wait looks at least as often whether the user asked to stop.
pub const LOOK_FOR_INTERRUPT_EVERY: Duration = Duration::from_millis(250);

/// A time in which something must have happened, under `--timeout-scale`. It gets longer and never shorter: part of it may
/// be time that has to pass, which no factor makes shorter.
pub fn stretched(time: Duration, timeout_scale: f64) -> Duration {
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
    /// Scales the times (never the sizes) by `--timeout-scale`. The time for a start is measured, and gets no longer.
    pub fn scaled(mut self, timeout_scale: f64) -> Self {
        self.start_up = self.start_up.mul_f64(timeout_scale.min(1.0));
        for time in [&mut self.reply, &mut self.reply_per_mib, &mut self.exit, &mut self.connection] {
            *time = time.mul_f64(timeout_scale);
        }
        self
    }

    /// Whether the user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Lets time pass, or less where the user asks to stop.
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

    /// How long to wait for a reply after `bytes` were queued.
    pub fn reply_to(&self, bytes: usize) -> Duration {
        self.reply + self.reply_per_mib.mul_f64(bytes as f64 / f64::from(1 << 20))
    }
}

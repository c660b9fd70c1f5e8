//! What the harness spends on a peer; distinct from the limits that the contract sets.

use std::time::Duration;

/// Bounds on bytes, time and memory of one connection. Every wait and every buffer of the transports is under one.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Most bytes kept from the peer's standard output; past it the peer is killed and the overflow recorded.
    pub stdout_bytes_max: usize,
    /// Most bytes of standard error kept; the rest is drained and counted.
    pub stderr_bytes_kept: usize,
    /// Longest time that a peer may take to start, as long as nothing is known of it. Other times count from its first
    /// answer.
    pub start_up: Duration,
    /// Longest wait for a reply to a small request.
    pub reply: Duration,
    /// Added to `reply` for every MiB that is written before the reply.
    pub reply_per_mib: Duration,
    /// Longest wait for an exit that the contract wants within 2 s (already scaled by `--timeout-scale`).
    pub exit: Duration,
    /// Longest life of one connection.
    pub connection: Duration,
    /// Memory of the peer's process tree past which it is killed, bytes.
    pub memory_bytes_max: u64,
}

/// A time in which something must have happened, under `--timeout-scale`. It gets longer and never shorter: part of it may
/// be time that has to pass, which no factor makes shorter.
pub fn stretched(time: Duration, timeout_scale: f64) -> Duration {
    time.mul_f64(timeout_scale.max(1.0))
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            stdout_bytes_max: 64 << 20,
            stderr_bytes_kept: 16 << 10,
            start_up: Duration::from_secs(30),
            reply: Duration::from_millis(4_000),
            reply_per_mib: Duration::from_millis(1_000),
            exit: Duration::from_millis(2_000),
            connection: Duration::from_secs(120),
            memory_bytes_max: 4 << 30,
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

    /// How long to wait for a reply after `bytes` were queued.
    pub fn reply_to(&self, bytes: usize) -> Duration {
        self.reply + self.reply_per_mib.mul_f64(bytes as f64 / f64::from(1 << 20))
    }
}

//! Probe: a process of the harness that works a little beside a peer. It tells a busy machine from a late peer.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// First argument that makes the harness binary play the probe.
pub const PROBE_ARGUMENT: &str = "__probe";

/// Processor time per answer of the probe.
const WORK: Duration = Duration::from_millis(4);
/// Pause between two questions, so that the probe itself does not keep the machine busy.
const PAUSE: Duration = Duration::from_millis(40);
/// Stretch above which a peer could not be in time: it got less than one processor second in this many seconds.
const STRETCH_MAX: f64 = 2.0;
/// Maximum share of the peer's time limit for the probe's start or one answer.
const SHARE_MAX: f64 = 0.25;
/// Maximum wait for one answer.
const ANSWER_MAX: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// Number of answers in a short look at the machine.
const GLANCE_ANSWERS: u32 = 6;

/// Answers each input byte with one byte after a little work, until its input ends. Returns the exit status.
pub fn main() -> i32 {
    let (mut stdin, mut stdout) = (io::stdin(), io::stdout());
    let mut byte = [0];
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    while let Ok(1) = stdin.read(&mut byte) {
        let begun = worked();
        while worked().saturating_sub(begun) < WORK {
            std::hint::spin_loop();
        }
        if stdout.write_all(&byte).and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    0
}

/// Slowdown of the probe by the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Strain {
    /// Time from its start to its first answer.
    pub(super) start: Duration,
    /// Slowest answer after the first.
    pub(super) worst: Duration,
    /// Duration of all answers divided by their processor time.
    pub(super) stretch: f64,
}

impl Strain {
    /// Factor by which `bound` must be multiplied so that a peer can be judged by it.
    pub(crate) fn least_times(&self, bound: Duration) -> f64 {
        let share = bound.mul_f64(SHARE_MAX).as_secs_f64().max(f64::MIN_POSITIVE);
        (self.stretch / STRETCH_MAX).max(self.worst.max(self.start).as_secs_f64() / share)
    }

    /// True if a peer with `times` the time of `bound` may have been late because of the machine.
    pub(crate) fn excuses(&self, bound: Duration, times: f64) -> bool {
        self.least_times(bound) > times
    }
}

impl fmt::Display for Strain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, worst) = (self.start.as_millis(), self.worst.as_millis());
        write!(
            f,
            "a process of peerproof started in {start} ms, took up to {worst} ms for {} ms of work, and in \
             total {:.1} times as long as on an idle machine",
            WORK.as_millis(),
            self.stretch
        )
    }
}

/// Running probe and the thread that asks it.
pub(crate) struct Probe {
    child: Child,
    stop: Sender<()>,
    asking: JoinHandle<Strain>,
}

impl Probe {
    /// Starts a probe; `exe` is the harness binary.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub(crate) fn start(exe: &Path) -> io::Result<Self> {
        Self::start_for(exe, u32::MAX)
    }

    fn start_for(exe: &Path, answers: u32) -> io::Result<Self> {
        let begun = Instant::now();
        let mut command = Command::new(exe);
        command.arg(PROBE_ARGUMENT).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("the probe process has no pipes"));
        };
        let (stop, stopped) = channel();
        let asking = std::thread::spawn(move || {
            let pause = || stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout);
            ask(begun, stdin, stdout, answers, pause)
        });
        Ok(Self { child, stop, asking })
    }

    /// Ends the probe and returns its measurements.
    pub(crate) fn finish(self) -> Strain {
        drop(self.stop);
        let strain = self.asking.join().unwrap_or_default();
        let mut child = self.child;
        let _ = child.kill();
        let _ = child.wait();
        strain
    }

    /// Measures the machine for a moment, with nothing of ours running.
    ///
    /// # Errors
    /// As [`Probe::start`].
    pub(crate) fn glance(exe: &Path) -> io::Result<Strain> {
        let Self { mut child, stop, asking } = Self::start_for(exe, GLANCE_ANSWERS)?;
        let strain = asking.join().unwrap_or_default();
        drop(stop);
        let _ = child.kill();
        let _ = child.wait();
        Ok(strain)
    }
}

/// Asks the probe until it has given `answers` or `pause` returns false.
fn ask(
    begun: Instant,
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    answers: u32,
    pause: impl Fn() -> bool,
) -> Strain {
    let mut strain = Strain::default();
    let (mut asked, mut waited) = (0, Duration::ZERO);
    while asked < answers {
        let at = Instant::now();
        let mut byte = *b"?";
        let mut ready = [PollFd::new(&stdout, PollFlags::IN)];
        let answers =
            |ready: &mut [PollFd<'_>]| rustix::event::poll(ready, Some(&ANSWER_MAX)).is_ok_and(|n| n > 0);
        // A dead probe says nothing more about the machine.
        if stdin.write_all(&byte).is_err() || answers(&mut ready) && stdout.read_exact(&mut byte).is_err() {
            break;
        }
        if asked == 0 {
            strain.start = begun.elapsed();
        } else {
            strain.worst = strain.worst.max(at.elapsed());
        }
        (asked, waited) = (asked + 1, waited + at.elapsed());
        if !pause() {
            break;
        }
    }
    if asked > 0 {
        strain.stretch = waited.as_secs_f64() / (WORK * asked).as_secs_f64();
    }
    strain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strain(start_ms: u64, worst_ms: u64, stretch: f64) -> Strain {
        let ms = Duration::from_millis;
        Strain { start: ms(start_ms), worst: ms(worst_ms), stretch }
    }

    #[test]
    fn only_what_comes_near_the_bound_excuses_a_peer() {
        let bound = Duration::from_secs(2);
        assert!(!strain(100, 30, 1.2).excuses(bound, 1.0));
        assert!(strain(600, 30, 1.2).excuses(bound, 1.0), "a slow start");
        assert!(strain(100, 600, 1.2).excuses(bound, 1.0), "one answer that hung");
        assert!(strain(100, 30, 8.0).excuses(bound, 1.0), "one eighth of a processor");
        assert!(!strain(600, 30, 8.0).excuses(bound, 5.0), "as much more time as it takes");
        assert!(strain(600, 30, 12.0).excuses(bound, 5.0), "not as much");
    }
}

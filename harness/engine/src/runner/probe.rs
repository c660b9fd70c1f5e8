//! The probe: a process of our own that is started beside a peer and works a little, over and over, so that a machine
//! too busy to judge times by is told from a peer that is late.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// First argument by which our binary plays the probe.
pub const PROBE_ARGUMENT: &str = "__probe";

/// Processor time of one answer of the probe.
const WORK: Duration = Duration::from_millis(4);
/// Pause between two questions: the probe must not be what keeps the machine busy.
const PAUSE: Duration = Duration::from_millis(40);
/// A peer that got less than one processor second in so many seconds could not be in time.
const STRETCH_MAX: f64 = 2.0;
/// Part of the time that a peer had which one answer of the probe, or its start, may take.
const SHARE_MAX: f64 = 0.25;
/// Longest wait for one answer.
const ANSWER_MAX: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// Answers after which a look at the machine alone is over.
const GLANCE_ANSWERS: u32 = 6;

/// Answers each byte on standard input by one, after a little work, until its input ends.
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

/// How hard the machine made it for the probe.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Strain {
    /// From its start to its first answer.
    pub(super) start: Duration,
    /// The slowest answer behind the first.
    pub(super) worst: Duration,
    /// Time of all answers over the processor time that they take.
    pub(super) stretch: f64,
}

impl Strain {
    /// How many times as long as `bound` a peer needs at least to be judged by it.
    pub(crate) fn least_times(&self, bound: Duration) -> f64 {
        let share = bound.mul_f64(SHARE_MAX).as_secs_f64().max(f64::MIN_POSITIVE);
        (self.stretch / STRETCH_MAX).max(self.worst.max(self.start).as_secs_f64() / share)
    }

    /// Whether a peer that had `times` the time of `bound` may have been late for want of a processor.
    pub(crate) fn excuses(&self, bound: Duration, times: f64) -> bool {
        self.least_times(bound) > times
    }
}

impl fmt::Display for Strain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, worst) = (self.start.as_millis(), self.worst.as_millis());
        write!(
            f,
            "a process of our own started in {start} ms, took up to {worst} ms for {} ms of work, and {:.1} times as long \
             as on an idle machine in all",
            WORK.as_millis(),
            self.stretch
        )
    }
}

/// A running probe and the thread that asks it.
pub(crate) struct Probe {
    child: Child,
    stop: Sender<()>,
    asking: JoinHandle<Strain>,
}

impl Probe {
    /// Starts a probe; `exe` is our own binary.
    ///
    /// # Errors
    /// It cannot be started.
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
            return Err(io::Error::other("the probe came without pipes"));
        };
        let (stop, stopped) = channel();
        let asking = std::thread::spawn(move || {
            let pause = || stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout);
            ask(begun, stdin, stdout, answers, pause)
        });
        Ok(Self { child, stop, asking })
    }

    /// What it met so far; ends it.
    pub(crate) fn finish(self) -> Strain {
        drop(self.stop);
        let strain = self.asking.join().unwrap_or_default();
        let mut child = self.child;
        let _ = child.kill();
        let _ = child.wait();
        strain
    }

    /// What a probe meets that is started now, beside nothing of ours.
    ///
    /// # Errors
    /// Those of [`Probe::start`].
    pub(crate) fn glance(exe: &Path) -> io::Result<Strain> {
        let Self { mut child, stop, asking } = Self::start_for(exe, GLANCE_ANSWERS)?;
        let strain = asking.join().unwrap_or_default();
        drop(stop);
        let _ = child.kill();
        let _ = child.wait();
        Ok(strain)
    }
}

/// Asks the probe until there are `answers`, or `pause` says that it is enough.
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
        // A probe that has died says nothing more about the machine.
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

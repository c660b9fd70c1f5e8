//! Ends a peer that does not answer while the measuring thread blocks on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::data::blame::HarnessFault;
use crate::data::budget::LOOK_FOR_INTERRUPT_EVERY;
use crate::drive::transport::child::Killer;

/// Interval between repeated kills of a peer that survives.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Default)]
struct WatchdogState {
    armed: Option<(Killer, Instant)>,
    fired: bool,
    over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<WatchdogState>,
    changed: Condvar,
    /// Set when the user asks to stop.
    interrupted: Arc<AtomicBool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WatchdogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Thread that kills an armed peer when the deadline passes or the user asks to stop. The pipes then close, which ends
/// the wait.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the operating system cannot start a thread.
    pub(crate) fn start(interrupted: &Arc<AtomicBool>) -> Result<Self, HarnessFault> {
        let shared = Arc::new(Shared { interrupted: Arc::clone(interrupted), ..Shared::default() });
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch(&watched))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Gives the peer `patience` from now on.
    pub(crate) fn arm(&self, killer: Killer, patience: Duration) {
        let mut state = self.shared.lock();
        state.armed = Some((killer, Instant::now() + patience));
        state.fired = false;
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Ends the watch; returns true if the peer was killed.
    pub(crate) fn disarm(&self) -> bool {
        let mut state = self.shared.lock();
        state.armed = None;
        std::mem::take(&mut state.fired)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and if it did there would be nothing to do.
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    let mut state = shared.lock();
    while !state.over {
        let now = Instant::now();
        let wait = match &mut state.armed {
            None => None,
            Some((killer, deadline)) if now >= *deadline || shared.interrupted.load(Ordering::Relaxed) => {
                killer.kill();
                *deadline = now + AGAIN;
                state.fired = true;
                Some(AGAIN)
            }
            Some((_, deadline)) => {
                Some(deadline.saturating_duration_since(now).min(LOOK_FOR_INTERRUPT_EVERY))
            }
        };
        state = match wait {
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(time) => shared.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}

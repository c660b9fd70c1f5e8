//! First contact with a peer. A peer that is silent for as long as a start may take is asked nothing else.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::confirm::{slept, waits};
use super::prepare::{further, learn, probe};
use super::probe::{Probe, Strain};
use super::{Options, RunContext, Surroundings, lab, skip_reason};
use crate::data::blame::Unprepared;
use crate::data::check::Check;
use crate::data::finding::{Finding, Nature};
use crate::data::rng::Rng;
use crate::data::text::visible;
use crate::data::transcript::{EventKind, Transcript};
use crate::drive::peer::Peer;

/// Time after which the first probe counts as slow.
const SLOW: Duration = Duration::from_millis(300);

/// First canary to which a peer was silent during preparation.
#[derive(Debug)]
pub struct SilentCanary {
    pub(super) transcript: Transcript,
    /// Strain of the machine meanwhile.
    pub(super) strain: Strain,
}

/// Prepares a peer for `checks` as [`prepare`](super::prepare) does. If its probes are slow, runs the first canary in
/// parallel. Returns it if the peer was silent to both for as long as a start may take: then it need not be asked again.
///
/// # Errors
/// As [`prepare`](super::prepare).
pub fn prepare_for(
    checks: &[&Check],
    peer: &mut Peer,
    options: &Options,
    around: Surroundings<'_>,
) -> Result<Option<Arc<SilentCanary>>, Unprepared> {
    let (done, is_done) = channel::<()>();
    let (shared, over) = (&*peer, Arc::<AtomicBool>::default());
    let beside = Surroundings { interrupted: &over, ..around };
    let (probes, asked) = thread::scope(|scope| {
        let done = done;
        let asked = scope.spawn(move || {
            let is_slow = is_done.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout);
            // With one job, the user may have a peer that can run only once.
            let is_beside = is_slow && shared.is_process() && options.jobs > 1;
            let canary = checks.iter().filter(|_| is_beside);
            let mut canary =
                canary.filter(|check| check.first_canary && skip_reason(shared, check, options).is_none());
            let canary = canary.next()?;
            let probe = Probe::start(&around.actor_exe.program).ok();
            let transcript = ask(shared, canary, options, beside);
            let strain = probe.map(Probe::finish).unwrap_or_default();
            Some(SilentCanary { transcript: transcript?, strain })
        });
        let probes = probe(shared, options, around);
        let is_silent = match &probes {
            Ok(probes) => !probes.is_empty() && probes.iter().all(is_mute),
            // The server may not be listening.
            Err(_) => true,
        };
        over.store(!is_silent || around.interrupted.load(Ordering::Relaxed), Ordering::Relaxed);
        drop(done);
        (probes, asked.join().ok().flatten())
    });
    let is_silent = |asked: &Transcript| is_mute(asked) && waited(asked) >= start_up(options);
    if let Some(silent) = asked.filter(|asked| is_silent(&asked.transcript)) {
        // Complete the facts from the configuration even for a silent peer.
        learn(peer, &probes.unwrap_or_default());
        return Ok(Some(Arc::new(silent)));
    }
    let probes = probes?;
    learn(peer, &probes);
    further(peer, probes, options, around)?;
    Ok(None)
}

fn ask(peer: &Peer, canary: &Check, options: &Options, around: Surroundings<'_>) -> Option<Transcript> {
    let mut rng = Rng::new(options.rng_seed).fork(&canary.id);
    let plan = (canary.planner)(&peer.facts, &mut rng).ok()?;
    lab(peer, options, around).execute(&canary.id, &plan).ok()
}

/// Maximum start-up time of an unknown peer.
fn start_up(options: &Options) -> Duration {
    crate::data::budget::Budget::default().scaled(options.timeout_scale).start_up
}

/// Time waited in vain for the peer.
fn waited(transcript: &Transcript) -> Duration {
    waits(transcript).sum()
}

/// True if the peer produced nothing at all.
fn is_mute(transcript: &Transcript) -> bool {
    !transcript.events.iter().any(|event| {
        matches!(
            event.kind,
            EventKind::Received { .. }
                | EventKind::HttpReply { .. }
                | EventKind::HttpFailed { .. }
                | EventKind::Exited { .. }
                | EventKind::ListenerHit { .. }
                | EventKind::ActorStarted { .. }
        )
    })
}

/// Runs `act`, with a probe beside it if that takes long.
pub(super) fn beside_probe<T>(exe: &Path, act: impl FnOnce() -> T) -> (T, Strain) {
    let (done, is_done) = channel::<()>();
    thread::scope(|scope| {
        let done = done;
        let beside = scope.spawn(move || {
            let is_slow = is_done.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout);
            let probe = Probe::start(exe).ok().filter(|_| is_slow)?;
            let _ = is_done.recv();
            Some(probe.finish())
        });
        let made = act();
        drop(done);
        (made, beside.join().ok().flatten().unwrap_or_default())
    })
}

impl RunContext<'_> {
    /// True if a peer was silent for as long as any start may take, and a busy machine was not the reason.
    pub(super) fn had_its_time(&self, transcript: &Transcript, strain: &Strain) -> bool {
        let waited = waited(transcript);
        waited >= start_up(self.options) && (slept(transcript) || !strain.excuses(waited, 1.0))
    }
}

/// Finding that a server does not listen in time, for the first canary of its command.
pub(super) fn deaf(check: &Check, transcript: &Transcript) -> Option<Finding> {
    let fault = transcript.events.iter().find_map(|event| match &event.kind {
        EventKind::StartFailed { error } => Some(visible(error)),
        _ => None,
    })?;
    waits(transcript).next()?;
    let clause = check.clauses.first().filter(|_| check.first_canary)?;
    let finding = Finding::new(clause.clone(), "hung", "a server that accepts connections", fault);
    Some(finding.of_nature(Nature::Hang))
}

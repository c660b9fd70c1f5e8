//! Confirmation: a failing check runs again before it counts.
//!
//! Wrong behaviour is confirmed beside other checks. Lateness may be the machine's fault: such a finding is put aside
//! until nothing else runs, and then a [`Probe`] process runs beside the peer.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::aside::Deferred;
use super::isolate::ConfirmedFinding;
use super::probe::{Probe, Strain};
use super::silence::{Wait, is_silence};
use super::{CheckOutcome, RunContext, interrupted, lock};
use crate::data::budget::Budget;
use crate::data::check::{Check, Untestable};
use crate::data::finding::{CANARY_FAILED, Finding, Judgement};
use crate::data::transcript::{EventKind, Packed, Transcript};
use crate::drive::parallel;
use crate::run::causes;
use crate::run::verdict::Verdict;

/// Number of attempts while the machine is too busy.
const TRIES: u32 = 3;
/// Number of checks confirmed in parallel per job, as they mostly wait.
const CONFIRMED_PER_JOB: usize = 4;
/// Maximum number of checks beside one probe.
const CONFIRMED_PER_PROBE: usize = 16;
/// Number of consecutive checks with a busy machine after which the others are not tried one by one.
const TOO_BUSY_MAX: u32 = 4;
/// Maximum factor on a peer's times on a busy machine.
pub(super) const TIMES_MAX: f64 = 10.0;
/// Safety factor on the slowdown of the probe.
const MARGIN: f64 = 1.5;
/// Maximum number of conversations put aside for one fault of an ambient check.
const ROUTED_MAX: usize = 3;
/// Assumed time limit if the transcript does not show one: the shortest in any contract.
pub(super) const BOUND: Duration = Duration::from_secs(1);

/// Doubt about a finding.
#[derive(Clone, Copy)]
pub(super) enum Doubt {
    /// The machine may be the reason; the peer had this time limit.
    Machine(Duration),
    /// The peer slept although an answer was due: the machine is not the reason, as long as the finding repeats.
    Slept(Duration),
}

/// Result of one attempt beside a probe.
enum Attempt {
    /// The finding showed again on a machine that had time.
    Shown,
    /// The finding did not show; true if the machine was busy.
    Gone(Box<Judgement>, bool),
    /// The finding showed, but the machine was too busy in every attempt.
    TooBusy(Strain),
}

/// Result of confirmation.
pub(super) enum Confirmed {
    /// Verdict with the present findings.
    As(Verdict),
    /// The machine was to blame; judgement of the check alone.
    Instead(Box<Judgement>),
    /// The machine was to blame for lateness alone; another attempt with the other findings.
    Afresh(Box<(Judgement, Transcript)>),
}

/// True if a busy machine may be the reason for a finding: not if the peer slept each time an answer was due, and not if
/// its output is wrong by itself.
pub(super) fn is_of_time(finding: &Finding, transcript: &Transcript) -> bool {
    if finding.is_of_output {
        return false;
    }
    let has_waited = waits(transcript).next().is_some();
    if has_waited && is_missing(finding) && slept(transcript) {
        return false;
    }
    finding.is_of_time() || has_waited
}

/// True if a finding means that something did not come at all.
fn is_missing(finding: &Finding) -> bool {
    !finding.timed && (is_silence(finding) || finding.reason == CANARY_FAILED)
}

/// True if the peer slept at the end of each wait in vain.
pub(super) fn slept(transcript: &Transcript) -> bool {
    let slept = |kind: &EventKind| match kind {
        EventKind::DeadlinePassed { waited_ms, slept, .. } => *slept || *waited_ms == 0,
        _ => true,
    };
    transcript.events.iter().all(|event| slept(&event.kind))
}

/// Waits of each missed deadline, without those that needed no waiting.
pub(super) fn waits(transcript: &Transcript) -> impl Iterator<Item = Duration> {
    transcript.events.iter().filter_map(|event| match event.kind {
        EventKind::DeadlinePassed { waited_ms, .. } if waited_ms > 0 => {
            Some(Duration::from_millis(waited_ms))
        }
        _ => None,
    })
}

/// Shortest time limit that the peer had.
fn bound(transcript: &Transcript) -> Duration {
    waits(transcript).min().unwrap_or(BOUND)
}

impl RunContext<'_> {
    /// Outcome of a check that was run, after findings of ambient checks are routed. Settled findings are not confirmed
    /// again. `None` if the check is confirmed later.
    pub(super) fn tried(
        &self,
        mut tried: Deferred,
        settled: Option<&ConfirmedFinding>,
    ) -> Option<CheckOutcome> {
        let Deferred { check, judgement, transcript, .. } = &mut tried;
        // MUSTs are confirmed and reproduced before SHOULDs.
        judgement.findings.sort_by_key(|finding| self.is_should(finding));
        let masked = self.route(check, judgement, transcript, settled);
        tried.verdict = match masked {
            Some(cause) if tried.judgement.findings.is_empty() => Verdict::Masked(cause),
            _ => self.verdict(&tried.check, &tried.judgement),
        };
        if !tried.verdict.is_failure() {
            let Deferred { check, verdict, judgement, elapsed, .. } = tried;
            return Some(self.finish(&check, verdict, judgement, None, elapsed));
        }
        if let Some(settled) = settled.filter(|settled| settled.is_first_of(&tried.judgement)) {
            let verdict = settled.undecided.clone().unwrap_or_else(|| tried.verdict.clone());
            let Deferred { check, judgement, elapsed, .. } = tried;
            return Some(self.finish(&check, verdict, judgement, Some(settled.transcript.clone()), elapsed));
        }
        self.to_confirm(tried)
    }

    /// Runs a failing check again, now or when nothing else runs.
    pub(super) fn to_confirm(&self, failed: Deferred) -> Option<CheckOutcome> {
        let Deferred { check, judgement, transcript, .. } = &failed;
        let first = judgement.findings.first();
        if first.is_some_and(|first| self.waits_for_quiet(check, first, transcript)) {
            self.put_aside(failed);
            return None;
        }
        let doubt = first.and_then(|first| self.doubt(first, transcript));
        if !matches!(doubt, Some(Doubt::Machine(_)))
            && let Some(by) = first.and_then(|first| self.confirmed_by(check, first))
        {
            let confirmed = Confirmed::As(failed.verdict.clone());
            let outcome = self.confirmed(failed, confirmed);
            return outcome.map(|mut outcome| {
                outcome.result.confirmed_by = Some(by);
                outcome
            });
        }
        // Holds the transcript in packed form in the meantime.
        let failed: Deferred<Packed> = failed.with();
        let Deferred { check, verdict, judgement, earlier, .. } = &failed;
        let confirmed = self.confirm(check, verdict.clone(), &judgement.findings, earlier, doubt);
        if let (Confirmed::As(verdict), Some(first)) = (&confirmed, judgement.findings.first())
            && verdict.is_failure()
        {
            let id = causes::id_of(&check.id, first);
            lock(&self.confirmed_causes).entry(id).or_insert_with(|| check.id.clone());
        }
        self.confirmed(failed.with(), confirmed)
    }

    /// Check that has already confirmed the cause of a finding. Each cause is confirmed once; its other checks need one
    /// attempt.
    fn confirmed_by(&self, check: &Check, finding: &Finding) -> Option<String> {
        lock(&self.confirmed_causes).get(&causes::id_of(&check.id, finding)).cloned()
    }

    /// Outcome of a confirmed check; `None` if a part of it is confirmed later.
    fn confirmed(&self, failed: Deferred, confirmed: Confirmed) -> Option<CheckOutcome> {
        match confirmed {
            Confirmed::As(verdict)
                if failed.burst.is_some() && !matches!(verdict, Verdict::Untestable(_)) =>
            {
                return self.confirmed_burst(failed, verdict);
            }
            _ => {}
        }
        let Deferred { check, judgement, transcript, elapsed, .. } = failed;
        Some(match confirmed {
            Confirmed::Afresh(made) => {
                let ((judgement, transcript), verdict) = (*made, Verdict::Pass);
                let (earlier, owner, burst) = (Vec::new(), None, None);
                let other =
                    Deferred { check, verdict, judgement, transcript, earlier, elapsed, owner, burst };
                return self.tried(other, None);
            }
            Confirmed::As(Verdict::Untestable(reason)) => {
                let judgement = Judgement { findings: Vec::new(), ..judgement };
                self.finish(&check, Verdict::Untestable(reason), judgement, None, elapsed)
            }
            Confirmed::As(verdict) => self.finish(&check, verdict, judgement, Some(transcript), elapsed),
            Confirmed::Instead(judgement) => {
                if check.first_canary {
                    self.note_working(&check, &judgement, &transcript);
                }
                self.finish(&check, self.verdict(&check, &judgement), *judgement, None, elapsed)
            }
        })
    }

    /// True if a finding must be confirmed when nothing else runs.
    pub(super) fn waits_for_quiet(&self, check: &Check, finding: &Finding, transcript: &Transcript) -> bool {
        let is_alone = check.exclusive || check.first_canary;
        self.options.confirm > 1 && self.peer.is_process() && !is_alone && is_of_time(finding, transcript)
    }

    /// Puts a failing check aside. For one fault of an ambient check, a few conversations are enough.
    pub(super) fn put_aside(&self, aside: Deferred) {
        if let Some(first) = aside.judgement.findings.first() {
            self.silences.seen(first);
        }
        let mut all = lock(&self.aside);
        let alike = |other: &&Deferred<Packed>| aside.owner.is_some() && other.key() == aside.key();
        if all.iter().filter(alike).count() < ROUTED_MAX {
            all.push(aside.with());
        }
    }

    /// Doubt about a finding, if it is about time or about something that did not come.
    pub(super) fn doubt(&self, first: &Finding, transcript: &Transcript) -> Option<Doubt> {
        let bound = bound(transcript);
        if !self.peer.is_process() {
            None
        } else if is_of_time(first, transcript) {
            Some(Doubt::Machine(bound))
        } else {
            (is_missing(first) && waits(transcript).next().is_some()).then_some(Doubt::Slept(bound))
        }
    }

    /// Repeats a failing check until it has failed as often as required, with the same first finding or differently
    /// each time. Findings of an earlier attempt with short waits count if further attempts would be like it. `doubt`
    /// is from [`Self::doubt`].
    pub(super) fn confirm(
        &self,
        check: &Check,
        verdict: Verdict,
        findings: &[Finding],
        earlier: &[Finding],
        doubt: Option<Doubt>,
    ) -> Confirmed {
        let Some(first) = findings.first() else { return Confirmed::As(verdict) };
        let slept = match doubt {
            Some(Doubt::Machine(bound)) => return self.confirm_time(check, verdict, findings, bound, 0),
            Some(Doubt::Slept(bound)) => Some(bound),
            None => None,
        };
        let total = self.times(check, &verdict, first);
        let was_shown = self.silences.has_like(first) && earlier.iter().any(|finding| finding.repeats(first));
        let before = 1 + u32::from(was_shown);
        let (mut seen, mut left, mut undecided) = (before, total.saturating_sub(before), 0);
        while left > 0 && !self.is_interrupted() {
            match self.shows(check, first, 1.0) {
                // Now the machine may be the reason.
                Ok(true) if slept.is_some() && undecided < TRIES => {
                    undecided += 1;
                    continue;
                }
                Ok(is_late) if slept.is_none() || !is_late => seen += 1,
                Err(judgement) if self.fails_anew(findings, &judgement.findings) => seen += 1,
                Err(judgement)
                    if self.fails_alike(first, &judgement.findings, || !self.is_busy(BOUND, 1.0)) =>
                {
                    seen += 1;
                }
                // An attempt that did not get as far shows nothing.
                Err(judgement) if judgement.is_undecided() && undecided < TRIES => {
                    undecided += 1;
                    continue;
                }
                // A peer that answers now may have waited for something outside.
                _ => {
                    if let Some(bound) = slept {
                        return self.confirm_time(check, verdict, findings, bound, seen - 1);
                    }
                }
            }
            left -= 1;
        }
        Confirmed::As(self.weigh(verdict, first, seen, total))
    }

    /// Verdict of a check that failed `seen` of `total` times. If the user interrupted, it is undecided.
    fn weigh(&self, verdict: Verdict, first: &Finding, seen: u32, total: u32) -> Verdict {
        match seen >= total {
            true => {
                // In-process waits cost nothing.
                if self.peer.is_process() {
                    self.silences.confirmed(first);
                }
                verdict
            }
            false if self.is_interrupted() => interrupted(),
            false => Verdict::Flaky(format!("{seen}/{total}")),
        }
    }

    /// Number of failures required, including the first.
    fn times(&self, check: &Check, verdict: &Verdict, first: &Finding) -> u32 {
        let total = self.options.confirm.max(1);
        // Each attempt costs two deadlines, and everything waits for the first canary.
        let is_costly = check.first_canary && *verdict == Verdict::Hang;
        if is_costly && lock(&self.silent_canaries).contains(&check.id) {
            return 1;
        }
        // A process that does not end costs its whole deadline each time.
        if first.reason == "does_not_end" && self.silences.has(first) {
            return 1;
        }
        if is_costly || self.silences.has_like(first) { total.min(2) } else { total }
    }

    /// True if another attempt failed in a new way: the details of a dying peer depend on timing. Findings that were
    /// present before, beside the first, do not count.
    fn fails_anew(&self, before: &[Finding], now: &[Finding]) -> bool {
        let may_be_should = before.first().is_some_and(|first| self.is_should(first));
        let is_known = |finding: &Finding| before.iter().any(|earlier| finding.repeats(earlier));
        let counts = |finding: &Finding| !finding.is_of_time() && (may_be_should || !self.is_should(finding));
        now.iter().any(counts) && !now.iter().any(is_known)
    }

    /// True if another attempt failed for another reason of the same clause. Lateness counts only if the machine has
    /// time.
    fn fails_alike(&self, first: &Finding, now: &[Finding], has_time: impl Fn() -> bool) -> bool {
        let alike = || now.iter().filter(|finding| finding.clause == first.clause);
        alike().any(|finding| !finding.is_of_time()) || alike().next().is_some() && has_time()
    }

    fn is_interrupted(&self) -> bool {
        self.around.interrupted.load(Ordering::Relaxed)
    }

    /// Runs a check again with time limits multiplied by `times`. Returns true if a busy machine may be the reason for
    /// the finding.
    ///
    /// # Errors
    /// Returns the judgement if the finding does not show.
    fn shows(&self, check: &Check, first: &Finding, times: f64) -> Result<bool, Box<Judgement>> {
        // Wrong output came before the wait for an answer that never comes.
        if first.is_of_output
            && let shown @ Ok(_) = self.shows_within(check, first, Wait::Short, times)
        {
            return shown;
        }
        self.shows_within(check, first, self.wait_for(first), times)
    }

    /// Length of waits in another attempt for a finding.
    fn wait_for(&self, first: &Finding) -> Wait {
        if self.silences.has_like(first) { Wait::Short } else { Wait::Full }
    }

    fn shows_within(
        &self,
        check: &Check,
        first: &Finding,
        wait: Wait,
        times: f64,
    ) -> Result<bool, Box<Judgement>> {
        let (judgement, is_late) = match self.attempt_within(check, wait, times) {
            Ok((judgement, transcript)) => (judgement, is_of_time(first, &transcript)),
            Err(undecided) => {
                let untestable = Some(undecided.word().into());
                (Judgement { untestable, ..Judgement::default() }, false)
            }
        };
        let again = judgement.findings.iter().any(|finding| finding.repeats(first));
        if again { Ok(is_late) } else { Err(Box::new(judgement)) }
    }

    /// Confirms lateness while nothing else runs. It has already shown again `seen_again` times.
    fn confirm_time(
        &self,
        check: &Check,
        verdict: Verdict,
        findings: &[Finding],
        bound: Duration,
        seen_again: u32,
    ) -> Confirmed {
        let Some(first) = findings.first() else { return Confirmed::As(verdict) };
        let total = self.times(check, &verdict, first);
        let (mut seen, mut gone, mut times) = (1 + seen_again, Vec::new(), 1.0);
        while seen + (gone.len() as u32) < total && !self.is_interrupted() {
            match self.look(check, (first, findings), bound, &mut times) {
                Attempt::Shown => seen += 1,
                Attempt::Gone(judgement, was_busy) => gone.push((judgement, was_busy)),
                Attempt::TooBusy(strain) => return Confirmed::As(too_busy(&strain)),
            }
        }
        // The first failure was beside other checks or on a busy machine: a last attempt decides.
        let had_company = !check.exclusive && !check.first_canary;
        if seen == 1
            && total > 1
            && !self.is_interrupted()
            && (had_company || gone.iter().any(|(_, was_busy)| *was_busy))
            && let Attempt::Gone(judgement, _) = self.look(check, (first, findings), bound, &mut times)
            && !self.is_interrupted()
        {
            if judgement.findings.is_empty() {
                return Confirmed::Instead(judgement);
            }
            if let Ok((judgement, transcript)) = self.attempt_within(check, Wait::Full, 1.0)
                && !judgement.findings.is_empty()
                && !judgement.findings.iter().any(|finding| is_of_time(finding, &transcript))
            {
                return Confirmed::Afresh(Box::new((judgement, transcript)));
            }
        }
        Confirmed::As(self.weigh(verdict, first, seen, total))
    }

    /// Runs a check beside a probe with time limits multiplied by `times`. If the machine was too busy, raises `times`
    /// to the slowdown of the probe, so that other faults still show. The findings come with the first of them.
    fn look(
        &self,
        check: &Check,
        (first, findings): (&Finding, &[Finding]),
        bound: Duration,
        times: &mut f64,
    ) -> Attempt {
        // A rule with its own clock does not get longer.
        let is_ours = is_silence(first) || !first.timed;
        let mut strain = Strain::default();
        for _ in 0..TRIES {
            let probe = self.probe();
            let shown = self.shows(check, first, *times);
            strain = probe.map(Probe::finish).unwrap_or_default();
            let has_time = !strain.excuses(bound, *times);
            match shown {
                Err(judgement)
                    if has_time
                        && (self.fails_anew(findings, &judgement.findings)
                            || self.fails_alike(first, &judgement.findings, || true)) =>
                {
                    return Attempt::Shown;
                }
                // The finding vanished with more time. The reason for the earlier lateness is unknown.
                Err(_) if *times > 1.0 => return Attempt::TooBusy(strain),
                Err(judgement) => return Attempt::Gone(judgement, strain.excuses(bound, 1.0)),
                // A peer that keeps the machine busy itself has no excuse.
                Ok(_) if has_time || !self.is_busy(bound, *times) => return Attempt::Shown,
                Ok(_) if is_ours && !strain.excuses(bound, TIMES_MAX) => {
                    *times = (strain.least_times(bound) * MARGIN).clamp(*times, TIMES_MAX);
                }
                Ok(_) => {}
            }
        }
        Attempt::TooBusy(strain)
    }

    /// Probe; `None` if the harness binary cannot be started. Then nothing excuses the peer.
    fn probe(&self) -> Option<Probe> {
        Probe::start(&self.around.actor_exe.program).ok()
    }

    /// True if the machine is busy while nothing of ours runs.
    fn is_busy(&self, bound: Duration, times: f64) -> bool {
        Probe::glance(&self.around.actor_exe.program).is_ok_and(|strain| strain.excuses(bound, times))
    }

    /// Confirms and reports checks that were put aside: together while the machine has time, otherwise one by one.
    pub(super) fn confirm_aside(&self) {
        let mut busy_in_a_row = 0;
        loop {
            // Settling may put others aside.
            let group = self.next_to_confirm();
            if group.is_empty() {
                break;
            }
            let mut shown = self.confirm_together(&group.iter().collect::<Vec<_>>(), false);
            // On a busy machine, short waits tell nothing, but full ones usually do.
            let is_like = |aside: &Deferred| {
                aside.judgement.findings.first().is_some_and(|first| self.silences.has_like(first))
            };
            let (places, late): (Vec<usize>, Vec<&Deferred>) =
                group.iter().enumerate().filter(|(at, aside)| shown[*at] == 0 && is_like(aside)).unzip();
            if !late.is_empty() {
                for (at, seen) in places.into_iter().zip(self.confirm_together(&late, true)) {
                    shown[at] = seen;
                }
            }
            for (aside, seen_again) in group.into_iter().zip(shown) {
                let Some(first) = aside.judgement.findings.first() else { continue };
                let bound = bound(&aside.transcript);
                let glance = || Probe::glance(&self.around.actor_exe.program).unwrap_or_default();
                // Of each kind of silence one is confirmed by all means. The others need a machine with time.
                let is_extra = seen_again == 0 && self.silences.has_like(first) && !self.silences.has(first);
                let times = if is_extra { 1.0 } else { TIMES_MAX };
                let looks = (is_extra || busy_in_a_row >= TOO_BUSY_MAX) && !self.is_interrupted();
                let confirmed = match looks.then(glance).filter(|strain| strain.excuses(bound, times)) {
                    Some(strain) => Confirmed::As(too_busy(&strain)),
                    None => {
                        let (verdict, findings) = (aside.verdict.clone(), &aside.judgement.findings);
                        self.confirm_time(&aside.check, verdict, findings, bound, seen_again)
                    }
                };
                let is_too_busy = matches!(&confirmed, Confirmed::As(Verdict::Untestable(_)));
                busy_in_a_row = if is_too_busy { busy_in_a_row + 1 } else { 0 };
                self.settle(aside, confirmed);
            }
        }
    }

    /// Takes the next checks to confirm: of unknown silences first one per kind, then one per clause.
    fn next_to_confirm(&self) -> Vec<Deferred> {
        let (mut group, mut later, mut kinds) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut all = std::mem::take(&mut *lock(&self.aside));
        // A confirmed silence saves others a full wait, so the quickest goes first.
        all.sort_by_key(|aside| aside.elapsed);
        for aside in all {
            let first = aside.judgement.findings.first().filter(|first| is_silence(first));
            let unknown = first.filter(|first| !self.silences.has(first)).map(|first| {
                let clause = Some(first.clause.clone()).filter(|_| self.silences.has_like(first));
                (clause, first.reason.clone())
            });
            let is_next = group.len() < CONFIRMED_PER_PROBE && unknown.is_none_or(|kind| kinds.insert(kind));
            if is_next { group.push(aside.with()) } else { later.push(aside) }
        }
        lock(&self.aside).splice(..0, later);
        group
    }

    /// Reports a confirmation, for the check itself or for the ambient check that owns its finding.
    fn settle(&self, aside: Deferred, confirmed: Confirmed) {
        match aside.owner.clone() {
            Some(owner) => self.settle_routed(owner, aside, confirmed),
            None => {
                let check = aside.check.clone();
                if let Some(outcome) = self.confirmed(aside, confirmed) {
                    self.report(&check, outcome);
                }
            }
        }
    }

    /// Repeats each check of a group as often as required. Returns how often each finding showed; 0 if the machine was
    /// too busy and no silence of its clause was confirmed before. `in_full` forces full waits.
    fn confirm_together(&self, group: &[&Deferred], in_full: bool) -> Vec<u32> {
        let probe = self.probe();
        let threads = (self.options.jobs.max(1) * CONFIRMED_PER_JOB).min(group.len());
        let shown = parallel::each(threads, group, |aside: &&Deferred| {
            let Some(first) = aside.judgement.findings.first() else { return 0 };
            let wait = if in_full { Wait::Full } else { self.wait_for(first) };
            let shows =
                |_: &u32| !self.is_interrupted() && self.shows_within(&aside.check, first, wait, 1.0).is_ok();
            let times = self.times(&aside.check, &aside.verdict, first);
            (1..times).take_while(shows).map(|_| 1).sum()
        });
        let strain = probe.map(Probe::finish).unwrap_or_default();
        // A peer that was silent on a machine with time is silent, not late.
        let is_known =
            |aside: &Deferred| aside.judgement.findings.first().is_some_and(|it| self.silences.has(it));
        let full = Budget::default().scaled(self.options.timeout_scale).reply;
        let had = |aside: &Deferred| if in_full { full } else { bound(&aside.transcript) };
        let counts = |aside: &Deferred| is_known(aside) || !strain.excuses(had(aside), 1.0);
        group.iter().zip(shown).map(|(aside, seen)| if counts(aside) { seen } else { 0 }).collect()
    }
}

/// Verdict if this machine is too busy to judge times.
fn too_busy(strain: &Strain) -> Verdict {
    let detail = format!("the peer was late, but this machine was slow as well: {strain}");
    Verdict::Untestable(Untestable::new(Untestable::TOO_BUSY, detail))
}

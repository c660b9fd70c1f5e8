//! Confirmation: a failing check is run again before it counts.
//!
//! What a peer did wrong is seen again beside other checks. That it took too long may be the machine's doing: such a
//! finding is put aside until nothing else runs, and then a [`Probe`] of our own runs beside the peer.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::isolate::Settled;
use super::probe::{Probe, Strain};
use super::silence::{Wait, is_silence};
use super::{Outcome, Round, interrupted, lock};
use crate::budget::Budget;
use crate::causes;
use crate::check::{Check, Untestable};
use crate::clause::ClauseId;
use crate::finding::{Finding, Judgement};
use crate::parallel;
use crate::transcript::{Kind, Packed, Transcript};
use crate::verdict::Verdict;

/// How often a check is tried again while the machine is too busy.
const TRIES: u32 = 3;
/// Checks that are confirmed at the same time, as a multiple of the jobs: nearly all of their time is waiting.
const CONFIRMED_PER_JOB: usize = 4;
/// Checks that one probe stands beside.
const CONFIRMED_PER_PROBE: usize = 16;
/// Where the machine was too busy for so many checks in a row, the others are not tried one by one.
const TOO_BUSY_MAX: u32 = 4;
/// Most by which the times of a peer are multiplied on a busy machine.
pub(super) const TIMES_MAX: f64 = 10.0;
/// By how much more than the probe took.
const MARGIN: f64 = 1.5;
/// Conversations that are put aside for one fault that an ambient check watches for.
const ROUTED_MAX: usize = 3;
/// Time that a peer had where its transcript does not tell: the shortest that a contract gives.
pub(super) const BOUND: Duration = Duration::from_secs(1);

/// A failing check that is confirmed when nothing else runs.
pub(super) struct Aside<T = Transcript> {
    pub(super) check: Check,
    pub(super) verdict: Verdict,
    pub(super) judgement: Judgement,
    pub(super) transcript: T,
    /// What a look with short waits found before.
    pub(super) earlier: Vec<Finding>,
    pub(super) elapsed: Duration,
    /// The ambient check that its finding goes to.
    pub(super) owner: Option<String>,
    /// The first finding, which was at this place, is that a reply within a burst is missing: its message is isolated
    /// once that is confirmed.
    pub(super) burst: Option<usize>,
}

impl<T> Aside<T> {
    /// The same with its transcript in another form.
    fn with<U: From<T>>(self) -> Aside<U> {
        let Self { check, verdict, judgement, transcript, earlier, elapsed, owner, burst } = self;
        Aside { check, verdict, judgement, transcript: transcript.into(), earlier, elapsed, owner, burst }
    }

    /// What tells it from others that tell the same.
    fn key(&self) -> (Option<&str>, Option<(&ClauseId, &str)>) {
        (self.owner.as_deref(), self.judgement.findings.first().map(Finding::key))
    }
}

/// What one run of a check beside a probe showed.
enum Look {
    /// The same again, on a machine that had time for it.
    Shown,
    /// Something else; and whether the machine was busy.
    Gone(Box<Judgement>, bool),
    /// The same again, but the machine was too busy in each of the tries.
    TooBusy(Strain),
}

/// What confirmation came to.
pub(super) enum Confirmed {
    /// This verdict, with the findings that there are.
    As(Verdict),
    /// It was the machine's doing: by itself the check came to this.
    Instead(Box<Judgement>),
}

/// Whether what a finding says may be the doing of a busy machine.
pub(super) fn is_of_time(finding: &Finding, transcript: &Transcript) -> bool {
    finding.is_of_time() || waits(transcript).next().is_some()
}

/// How long the peer was waited for in vain, each time; where nothing could come any more, no time was needed to see it.
pub(super) fn waits(transcript: &Transcript) -> impl Iterator<Item = Duration> {
    transcript.events.iter().filter_map(|event| match event.kind {
        Kind::DeadlinePassed { waited_ms, .. } if waited_ms > 0 => Some(Duration::from_millis(waited_ms)),
        _ => None,
    })
}

/// The time that the peer had at least.
fn bound(transcript: &Transcript) -> Duration {
    waits(transcript).min().unwrap_or(BOUND)
}

impl Round<'_> {
    /// What a check that was carried out comes to, where findings of others are told by those, and what is settled is not
    /// confirmed again; `None` where it is confirmed later.
    pub(super) fn tried(&self, mut tried: Aside, settled: Option<&Settled>) -> Option<Outcome> {
        let Aside { check, judgement, transcript, .. } = &mut tried;
        // What binds is confirmed and reproduced before what does not.
        judgement.findings.sort_by_key(|finding| self.is_should(finding));
        let masked = self.route(check, judgement, transcript, settled);
        tried.verdict = match masked {
            Some(cause) if tried.judgement.findings.is_empty() => Verdict::Masked(cause),
            _ => self.verdict(&tried.check, &tried.judgement),
        };
        if !tried.verdict.is_failure() {
            let Aside { check, verdict, judgement, elapsed, .. } = tried;
            return Some(self.finish(&check, verdict, judgement, None, elapsed));
        }
        if let Some(settled) = settled.filter(|settled| settled.is_first_of(&tried.judgement)) {
            let verdict = settled.undecided.clone().unwrap_or_else(|| tried.verdict.clone());
            let Aside { check, judgement, elapsed, .. } = tried;
            return Some(self.finish(&check, verdict, judgement, Some(settled.transcript.clone()), elapsed));
        }
        self.to_confirm(tried)
    }

    /// Runs a failing check again, now or when nothing else runs.
    pub(super) fn to_confirm(&self, failed: Aside) -> Option<Outcome> {
        let Aside { check, judgement, transcript, .. } = &failed;
        let first = judgement.findings.first();
        if first.is_some_and(|first| self.waits_for_quiet(check, first, transcript)) {
            self.put_aside(failed);
            return None;
        }
        let time = first.and_then(|first| self.time_of(first, transcript));
        if time.is_none()
            && let Some(by) = first.and_then(|first| self.confirmed_by(check, first))
        {
            let confirmed = Confirmed::As(failed.verdict.clone());
            let outcome = self.confirmed(failed, confirmed);
            return outcome.map(|mut outcome| {
                outcome.result.confirmed_by = Some(by);
                outcome
            });
        }
        // Meanwhile it is held beside what runs, for which there is room.
        let failed: Aside<Packed> = failed.with();
        let Aside { check, verdict, judgement, earlier, .. } = &failed;
        let confirmed = self.confirm(check, verdict.clone(), &judgement.findings, earlier, time);
        if let (Confirmed::As(verdict), Some(first)) = (&confirmed, judgement.findings.first())
            && verdict.is_failure()
        {
            let id = causes::id_of(&check.id, first);
            lock(&self.confirmed_causes).entry(id).or_insert_with(|| check.id.clone());
        }
        self.confirmed(failed.with(), confirmed)
    }

    /// The check that confirmed the cause of a finding. A cause is confirmed once, and its other checks have one look each.
    fn confirmed_by(&self, check: &Check, finding: &Finding) -> Option<String> {
        lock(&self.confirmed_causes).get(&causes::id_of(&check.id, finding)).cloned()
    }

    /// The outcome of a failing check that was run again; `None` where something else of it is confirmed later.
    fn confirmed(&self, failed: Aside, confirmed: Confirmed) -> Option<Outcome> {
        match confirmed {
            Confirmed::As(verdict)
                if failed.burst.is_some() && !matches!(verdict, Verdict::Untestable(_)) =>
            {
                return self.confirmed_burst(failed, verdict);
            }
            _ => {}
        }
        let Aside { check, judgement, transcript, elapsed, .. } = failed;
        Some(match confirmed {
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

    /// Whether a finding is to be confirmed when nothing else runs.
    pub(super) fn waits_for_quiet(&self, check: &Check, finding: &Finding, transcript: &Transcript) -> bool {
        let is_alone = check.exclusive || check.first_canary;
        self.options.confirm > 1 && self.peer.is_process() && !is_alone && is_of_time(finding, transcript)
    }

    /// Puts a failing check aside. Of one fault that an ambient check watches for, a few conversations are enough.
    pub(super) fn put_aside(&self, aside: Aside) {
        if let Some(first) = aside.judgement.findings.first() {
            self.silences.seen(first);
        }
        let mut all = lock(&self.aside);
        let alike = |other: &&Aside<Packed>| aside.owner.is_some() && other.key() == aside.key();
        if all.iter().filter(alike).count() < ROUTED_MAX {
            all.push(aside.with());
        }
    }

    /// The time that a peer had, where its taking too long may be the machine's doing.
    pub(super) fn time_of(&self, first: &Finding, transcript: &Transcript) -> Option<Duration> {
        (self.peer.is_process() && is_of_time(first, transcript)).then(|| bound(transcript))
    }

    /// Runs a failing check again until it failed as often as asked for, with the same first finding, or each time in
    /// another way. What a look with short waits found before counts where further looks would be such. `time` is as
    /// [`Self::time_of`] says.
    pub(super) fn confirm(
        &self,
        check: &Check,
        verdict: Verdict,
        findings: &[Finding],
        earlier: &[Finding],
        time: Option<Duration>,
    ) -> Confirmed {
        let Some(first) = findings.first() else { return Confirmed::As(verdict) };
        if let Some(bound) = time {
            return self.confirm_time(check, verdict, first, bound, 0);
        }
        let total = self.times(check, &verdict, first);
        let was_shown = self.silences.has_like(first) && earlier.iter().any(|finding| finding.repeats(first));
        let before = 1 + u32::from(was_shown);
        let (mut seen, mut left, mut undecided) = (before, total.saturating_sub(before), 0);
        while left > 0 && !self.is_interrupted() {
            match self.shows(check, first, 1.0) {
                Ok(()) => seen += 1,
                Err(judgement) if self.fails_anew(findings, &judgement.findings) => seen += 1,
                Err(judgement)
                    if self.fails_alike(first, &judgement.findings, || !self.is_busy(BOUND, 1.0)) =>
                {
                    seen += 1;
                }
                // What did not get as far shows nothing.
                Err(judgement) if judgement.is_undecided() && undecided < TRIES => {
                    undecided += 1;
                    continue;
                }
                Err(_) => {}
            }
            left -= 1;
        }
        Confirmed::As(self.weigh(verdict, first, seen, total))
    }

    /// What a check that failed `seen` of `total` times came to. One that could not be run as often because the user asked
    /// to stop is not decided.
    fn weigh(&self, verdict: Verdict, first: &Finding, seen: u32, total: u32) -> Verdict {
        match seen >= total {
            true => {
                // In this process a wait costs nothing.
                if self.peer.is_process() {
                    self.silences.confirmed(first);
                }
                verdict
            }
            false if self.is_interrupted() => interrupted(),
            false => Verdict::Flaky(format!("{seen}/{total}")),
        }
    }

    /// How often a check has to fail, the first time included.
    fn times(&self, check: &Check, verdict: &Verdict, first: &Finding) -> u32 {
        let total = self.options.confirm.max(1);
        // Each time costs two deadlines, and everything waits for the first canary.
        let is_costly = check.first_canary && *verdict == Verdict::Hang;
        if is_costly && lock(&self.silent_canaries).contains(&check.id) {
            return 1;
        }
        if is_costly || self.silences.has_like(first) { total.min(2) } else { total }
    }

    /// Whether a further look failed too, in ways that the first did not: how much was seen of a peer that dies of a
    /// message is a matter of moments. What was wrong beside the first finding, and shows again without it, is not that.
    fn fails_anew(&self, before: &[Finding], now: &[Finding]) -> bool {
        let may_be_should = before.first().is_some_and(|first| self.is_should(first));
        let is_known = |finding: &Finding| before.iter().any(|earlier| finding.repeats(earlier));
        let counts = |finding: &Finding| !finding.is_of_time() && (may_be_should || !self.is_should(finding));
        now.iter().any(counts) && !now.iter().any(is_known)
    }

    /// True if a further look failed too, for another reason of the clause that the first one broke. That the peer takes too
    /// long counts on a machine that has time for it.
    fn fails_alike(&self, first: &Finding, now: &[Finding], has_time: impl Fn() -> bool) -> bool {
        let alike = || now.iter().filter(|finding| finding.clause == first.clause);
        alike().any(|finding| !finding.is_of_time()) || alike().next().is_some() && has_time()
    }

    fn is_interrupted(&self) -> bool {
        self.around.interrupted.load(Ordering::Relaxed)
    }

    /// Runs a check once more, with `times` the time for everything.
    ///
    /// # Errors
    /// What it came to, where that is not the same.
    fn shows(&self, check: &Check, first: &Finding, times: f64) -> Result<(), Box<Judgement>> {
        self.shows_within(check, first, self.wait_for(first), times)
    }

    /// Length of the waits in a further look for a finding.
    fn wait_for(&self, first: &Finding) -> Wait {
        if self.silences.has_like(first) { Wait::Short } else { Wait::Full }
    }

    fn shows_within(
        &self,
        check: &Check,
        first: &Finding,
        wait: Wait,
        times: f64,
    ) -> Result<(), Box<Judgement>> {
        let made = self.attempt_within(check, wait, times);
        let judgement = made.map(|(judgement, _)| judgement).unwrap_or_else(|undecided| Judgement {
            untestable: Some(undecided.word().into()),
            ..Judgement::default()
        });
        let again = judgement.findings.iter().any(|finding| finding.repeats(first));
        if again { Ok(()) } else { Err(Box::new(judgement)) }
    }

    /// Confirms that a peer takes too long, while nothing else runs; `seen_again` times it did so already.
    fn confirm_time(
        &self,
        check: &Check,
        verdict: Verdict,
        first: &Finding,
        bound: Duration,
        seen_again: u32,
    ) -> Confirmed {
        let total = self.times(check, &verdict, first);
        let (mut seen, mut gone, mut times) = (1 + seen_again, Vec::new(), 1.0);
        while seen + (gone.len() as u32) < total && !self.is_interrupted() {
            match self.look(check, first, bound, &mut times) {
                Look::Shown => seen += 1,
                Look::Gone(judgement, was_busy) => gone.push((judgement, was_busy)),
                Look::TooBusy(strain) => return Confirmed::As(too_busy(&strain)),
            }
        }
        // The first sight was beside other checks, or on a busy machine: a last look decides.
        let had_company = !check.exclusive && !check.first_canary;
        if seen == 1
            && total > 1
            && !self.is_interrupted()
            && (had_company || gone.iter().any(|(_, was_busy)| *was_busy))
            && let Look::Gone(judgement, _) = self.look(check, first, bound, &mut times)
            && judgement.findings.is_empty()
            && !self.is_interrupted()
        {
            return Confirmed::Instead(judgement);
        }
        Confirmed::As(self.weigh(verdict, first, seen, total))
    }

    /// Runs a check beside a probe, with `times` the time for everything. Where the machine was too busy, the peer gets as
    /// much more as the probe took, from then on: what is no lateness shows then, too.
    fn look(&self, check: &Check, first: &Finding, bound: Duration, times: &mut f64) -> Look {
        // What a rule measures by a clock of its own gets no longer.
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
                        && (self.fails_anew(from_ref(first), &judgement.findings)
                            || self.fails_alike(first, &judgement.findings, || true)) =>
                {
                    return Look::Shown;
                }
                // It took longer than it may: whether for want of a processor is not known.
                Err(_) if *times > 1.0 => return Look::TooBusy(strain),
                Err(judgement) => return Look::Gone(judgement, strain.excuses(bound, 1.0)),
                // A peer that keeps the machine busy itself is no excuse for itself.
                Ok(()) if has_time || !self.is_busy(bound, *times) => return Look::Shown,
                Ok(()) if is_ours && !strain.excuses(bound, TIMES_MAX) => {
                    *times = (strain.least_times(bound) * MARGIN).clamp(*times, TIMES_MAX);
                }
                Ok(()) => {}
            }
        }
        Look::TooBusy(strain)
    }

    /// A probe; none where our own binary cannot be started, and then nothing speaks for the peer.
    fn probe(&self) -> Option<Probe> {
        Probe::start(&self.around.actor_exe.program).ok()
    }

    /// Whether the machine is busy while nothing of ours runs.
    fn is_busy(&self, bound: Duration, times: f64) -> bool {
        Probe::glance(&self.around.actor_exe.program).is_ok_and(|strain| strain.excuses(bound, times))
    }

    /// Confirms what was put aside, and reports it: together as long as the machine has time for that, else one by one.
    pub(super) fn confirm_aside(&self) {
        let mut busy_in_a_row = 0;
        loop {
            // What is settled may put something else aside.
            let group = self.next_to_confirm();
            if group.is_empty() {
                break;
            }
            let mut shown = self.confirm_together(&group.iter().collect::<Vec<_>>(), false);
            // On a busy machine a short wait tells nothing, and a full one mostly does.
            let is_like = |aside: &Aside| {
                aside.judgement.findings.first().is_some_and(|first| self.silences.has_like(first))
            };
            let (places, late): (Vec<usize>, Vec<&Aside>) =
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
                let strain = (busy_in_a_row >= TOO_BUSY_MAX && !self.is_interrupted()).then(glance);
                let confirmed = match strain.filter(|strain| strain.excuses(bound, TIMES_MAX)) {
                    Some(strain) => Confirmed::As(too_busy(&strain)),
                    None => self.confirm_time(&aside.check, aside.verdict.clone(), first, bound, seen_again),
                };
                let is_too_busy = matches!(&confirmed, Confirmed::As(Verdict::Untestable(_)));
                busy_in_a_row = if is_too_busy { busy_in_a_row + 1 } else { 0 };
                self.settle(aside, confirmed);
            }
        }
    }

    /// Takes what is confirmed next out of what was put aside: of silences of one kind the first alone, then of each
    /// clause.
    fn next_to_confirm(&self) -> Vec<Aside> {
        let (mut group, mut later, mut kinds) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut all = std::mem::take(&mut *lock(&self.aside));
        // One confirmed silence spares the like of it a full wait: the quickest goes first.
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

    /// Reports what confirmation came to: for the check, or for the ambient check that its finding belongs to.
    fn settle(&self, aside: Aside, confirmed: Confirmed) {
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

    /// Runs each of a group again as often as asked for; gives how often each showed the same, which is never where the
    /// machine was too busy meanwhile and no silence of its clause was confirmed before.
    /// `in_full`: with full waits, also where short ones may do.
    fn confirm_together(&self, group: &[&Aside], in_full: bool) -> Vec<u32> {
        let probe = self.probe();
        let threads = (self.options.jobs.max(1) * CONFIRMED_PER_JOB).min(group.len());
        let shown = parallel::each(threads, group, |aside: &&Aside| {
            let Some(first) = aside.judgement.findings.first() else { return 0 };
            let wait = if in_full { Wait::Full } else { self.wait_for(first) };
            let shows =
                |_: &u32| !self.is_interrupted() && self.shows_within(&aside.check, first, wait, 1.0).is_ok();
            let times = self.times(&aside.check, &aside.verdict, first);
            (1..times).take_while(shows).map(|_| 1).sum()
        });
        let strain = probe.map(Probe::finish).unwrap_or_default();
        // A peer that was silent to the same on a machine with time for it is silent to it, not late.
        let is_known =
            |aside: &Aside| aside.judgement.findings.first().is_some_and(|it| self.silences.has(it));
        let full = Budget::default().scaled(self.options.timeout_scale).reply;
        let had = |aside: &Aside| if in_full { full } else { bound(&aside.transcript) };
        let counts = |aside: &Aside| is_known(aside) || !strain.excuses(had(aside), 1.0);
        group.iter().zip(shown).map(|(aside, seen)| if counts(aside) { seen } else { 0 }).collect()
    }
}

/// The verdict where times cannot be judged on this machine now.
fn too_busy(strain: &Strain) -> Verdict {
    let detail = format!("the peer was late, but so was this machine: {strain}");
    Verdict::Untestable(Untestable::new(Untestable::TOO_BUSY, detail))
}

//! First looks at checks. Each clause gets one full wait for a silence; checks that meet a silence of the same clause
//! meanwhile continue afterwards.

use std::time::{Duration, Instant};

use super::company::TurnKind;
use super::first_contact::beside_probe;
use super::probe::Strain;
use super::silence::{Claim, Wait};
use super::{RunContext, lock};
use crate::data::check::Check;
use crate::data::finding::{Finding, Judgement};
use crate::data::transcript::{Packed, Transcript};
use crate::run::verdict::Verdict;

/// Result of a first look at a check.
pub(super) struct FirstLook<'a> {
    pub(super) judgement: Judgement,
    pub(super) transcript: Transcript,
    /// Findings of an earlier attempt with short waits.
    pub(super) earlier: Vec<Finding>,
    pub(super) elapsed: Duration,
    /// Claim for which others wait until this is confirmed.
    pub(super) claim: Option<Claim<'a>>,
}

/// Check that met a silence for which another check waits in full.
pub(super) struct DeferredLook {
    check: Check,
    judgement: Judgement,
    transcript: Packed,
    elapsed: Duration,
}

impl RunContext<'_> {
    /// Takes a first look at a check; `None` if it must wait for another check.
    ///
    /// # Errors
    /// Returns the verdict of a check that could not run.
    pub(super) fn first_look(&self, check: &Check) -> Result<Option<FirstLook<'_>>, Verdict> {
        let began = Instant::now();
        let wait = self.silences.wait();
        let (judgement, transcript) =
            if check.first_canary { self.first_contact(check)? } else { self.attempt(check, wait)? };
        let (earlier, elapsed) = (Vec::new(), began.elapsed());
        let looked = FirstLook { judgement, transcript, earlier, elapsed, claim: None };
        if wait == Wait::Full || check.first_canary {
            Ok(Some(looked))
        } else {
            self.look_in_full(check, looked)
        }
    }

    /// Runs a first canary, unless that happened during preparation. One to which the peer is silent for the whole time
    /// of a start runs only once.
    fn first_contact(&self, check: &Check) -> Result<(Judgement, Transcript), Verdict> {
        let silent = self.options.silent.as_ref().filter(|silent| silent.transcript.check == check.id);
        let (made, strain) = match silent {
            Some(silent) => (self.judged(check, silent.transcript.clone()), silent.strain),
            None if self.peer.is_process() => {
                beside_probe(&self.around.actor_exe.program, || self.attempt(check, Wait::Full))
            }
            None => (self.attempt(check, Wait::Full), Strain::default()),
        };
        let (judgement, transcript) = made?;
        if self.had_its_time(&transcript, &strain) {
            lock(&self.silent_canaries).insert(check.id.clone());
        }
        Ok((judgement, transcript))
    }

    /// Repeats a look with full waits if short ones do not tell enough; `None` as in [`RunContext::first_look`].
    fn look_in_full<'a>(
        &'a self,
        check: &Check,
        short: FirstLook<'a>,
    ) -> Result<Option<FirstLook<'a>>, Verdict> {
        if self.silences.explain(&short.judgement, &short.transcript) {
            return Ok(Some(short));
        }
        let FirstLook { judgement, transcript, elapsed, .. } = short;
        let Some(claim) = self.silences.claim(&judgement) else {
            let (check, transcript) = (check.clone(), transcript.into());
            lock(&self.later).push(DeferredLook { check, judgement, transcript, elapsed });
            return Ok(None);
        };
        let (began, earlier) = (Instant::now(), judgement.findings);
        let (judgement, transcript) = self.attempt_within(check, Wait::Full, 1.0)?;
        let elapsed = elapsed + began.elapsed();
        Ok(Some(FirstLook { judgement, transcript, earlier, elapsed, claim: Some(claim) }))
    }

    /// Continues checks that waited for others.
    pub(super) fn catch_up(&self) {
        let next = || lock(&self.later).pop();
        while let Some(DeferredLook { check, judgement, transcript, elapsed }) = next() {
            self.silences.wait_for_others(&judgement);
            let _beside = self.options.beside(TurnKind::Busy);
            let (transcript, earlier) = (transcript.into(), Vec::new());
            let short = FirstLook { judgement, transcript, earlier, elapsed, claim: None };
            let looked = self.look_in_full(&check, short);
            if let Some(outcome) = self.looked(&check, looked, elapsed) {
                self.report(&check, outcome);
            }
        }
    }
}

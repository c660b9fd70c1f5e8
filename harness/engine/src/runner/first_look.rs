//! First looks at checks: what a peer was silent to is waited for in full once for each clause, and checks that meet the
//! same meanwhile are gone on with when that is known.

use std::time::{Duration, Instant};

use super::first_contact::beside_probe;
use super::probe::Strain;
use super::silence::{Claim, Wait};
use super::{Round, lock};
use crate::check::Check;
use crate::finding::{Finding, Judgement};
use crate::transcript::{Packed, Transcript};
use crate::verdict::Verdict;

/// What a first look at a check came to.
pub(super) struct Looked<'a> {
    pub(super) judgement: Judgement,
    pub(super) transcript: Transcript,
    /// What a look with short waits found before it.
    pub(super) earlier: Vec<Finding>,
    pub(super) elapsed: Duration,
    /// What others wait for until this is confirmed.
    pub(super) claim: Option<Claim<'a>>,
}

/// A check that met a silence which another waits for in full.
pub(super) struct Later {
    check: Check,
    judgement: Judgement,
    transcript: Packed,
    elapsed: Duration,
}

impl Round<'_> {
    /// Looks at a check; `None` where it has to wait for what another shows.
    ///
    /// # Errors
    /// The verdict, where the check could not be carried out.
    pub(super) fn first_look(&self, check: &Check) -> Result<Option<Looked<'_>>, Verdict> {
        let began = Instant::now();
        let wait = self.silences.wait();
        let (judgement, transcript) =
            if check.first_canary { self.first_contact(check)? } else { self.attempt(check, wait)? };
        let (earlier, elapsed) = (Vec::new(), began.elapsed());
        let looked = Looked { judgement, transcript, earlier, elapsed, claim: None };
        if wait == Wait::Full || check.first_canary {
            Ok(Some(looked))
        } else {
            self.look_in_full(check, looked)
        }
    }

    /// Looks at a first canary, unless that was done while the peer was prepared. One that the peer is silent to for all the
    /// time of a start is asked once.
    fn first_contact(&self, check: &Check) -> Result<(Judgement, Transcript), Verdict> {
        let silent = self.options.silent.as_ref().filter(|silent| silent.check == check.id);
        let (made, strain) = match silent {
            Some(silent) => (self.judged(check, Transcript::clone(silent)), Strain::default()),
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

    /// Looks again with full waits where a look with short ones does not tell enough; `None` as in [`Round::first_look`].
    fn look_in_full<'a>(&'a self, check: &Check, short: Looked<'a>) -> Result<Option<Looked<'a>>, Verdict> {
        if self.silences.explain(&short.judgement, &short.transcript) {
            return Ok(Some(short));
        }
        let Looked { judgement, transcript, elapsed, .. } = short;
        let Some(claim) = self.silences.claim(&judgement) else {
            let (check, transcript) = (check.clone(), transcript.into());
            lock(&self.later).push(Later { check, judgement, transcript, elapsed });
            return Ok(None);
        };
        let (began, earlier) = (Instant::now(), judgement.findings);
        let (judgement, transcript) = self.attempt_within(check, Wait::Full, 1.0)?;
        let elapsed = elapsed + began.elapsed();
        Ok(Some(Looked { judgement, transcript, earlier, elapsed, claim: Some(claim) }))
    }

    /// Goes on with the checks that waited for others.
    pub(super) fn catch_up(&self) {
        let next = || lock(&self.later).pop();
        while let Some(Later { check, judgement, transcript, elapsed }) = next() {
            self.silences.wait_for_others(&judgement);
            let _beside = self.options.beside(false);
            let (transcript, earlier) = (transcript.into(), Vec::new());
            let short = Looked { judgement, transcript, earlier, elapsed, claim: None };
            let looked = self.look_in_full(&check, short);
            if let Some(outcome) = self.looked(&check, looked, elapsed) {
                self.report(&check, outcome);
            }
        }
    }
}

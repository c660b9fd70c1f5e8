//! Second attempts at checks that other checks or a busy machine kept from a verdict: alone, after everything else.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::confirm::{BOUND, TIMES_MAX};
use super::probe::Probe;
use super::{CheckOutcome, RunContext, lock};
use crate::data::check::{Check, Untestable};
use crate::run::verdict::{self, Verdict};

/// Maximum length of a chain of masks: a check, the first canary of its command, and the check that reports that one's
/// fault.
const MASKS_MAX: usize = 3;

impl RunContext<'_> {
    /// Holds back outcomes without a final verdict until everything else is done, and passes on the others.
    pub(super) fn report(&self, check: &Check, outcome: CheckOutcome) {
        let verdict = &outcome.result.verdict;
        if matches!(verdict, Verdict::Masked(_)) || is_late(verdict) {
            lock(&self.again).push((check.clone(), outcome));
        } else {
            self.publish(check, outcome);
        }
    }

    /// True if a check must run again.
    pub(super) fn is_to_be_run_again(&self) -> bool {
        let again = lock(&self.again);
        let masks = masks(&again);
        again.iter().any(|(_, outcome)| match &outcome.result.verdict {
            Verdict::Masked(mask) => self.reported(mask, &masks).is_none(),
            _ => true,
        })
    }

    /// Confirms checks that were put aside. Then runs checks again that a busy machine left undecided or whose masking
    /// fault is reported by no check.
    pub(super) fn settle_again(&self) {
        for is_last in [false, true] {
            self.confirm_aside();
            let again = std::mem::take(&mut *lock(&self.again));
            let masks = masks(&again);
            for (check, mut outcome) in again {
                let told = match &outcome.result.verdict {
                    Verdict::Masked(mask) => self.reported(mask, &masks),
                    _ => None,
                };
                if let Some(mask) = told {
                    outcome.result.verdict = Verdict::Masked(mask);
                } else if !is_last && self.has_time_for(&outcome) {
                    lock(&self.routed).retain(|routed| {
                        routed.failure.check != check.id || !routed.undecided.as_ref().is_some_and(is_late)
                    });
                    if check.first_canary {
                        lock(&self.dead_commands).remove(&check.command);
                    }
                    self.one(&check);
                    continue;
                } else if let Verdict::Masked(mask) = &outcome.result.verdict {
                    let why = Untestable::new("unconfirmed", format!("masked in one run: {mask}"));
                    outcome.result.verdict = Verdict::Untestable(why);
                }
                self.publish(&check, outcome);
            }
        }
    }

    /// Mask that names the check that really reports the fault, following masked checks; `None` if no check does.
    fn reported(&self, mask: &str, masks: &BTreeMap<String, String>) -> Option<String> {
        let mut mask = mask.to_owned();
        for _ in 0..MASKS_MAX {
            let (by, _) = verdict::told_by(&mask)?;
            if lock(&self.reporting).contains(by) || self.is_routed_to(by) {
                return Some(mask);
            }
            mask = masks.get(by)?.clone();
        }
        None
    }

    /// True if a check can be decided now: the run goes on, and the machine is not too busy. Lateness of a peer that is
    /// known to be silent needs a machine with time.
    fn has_time_for(&self, outcome: &CheckOutcome) -> bool {
        let is_extra = is_late(&outcome.result.verdict) && self.silences.any_confirmed();
        let times = if is_extra { 1.0 } else { TIMES_MAX };
        let is_stopped = [&self.options.enough, self.around.interrupted];
        let is_busy = || {
            let glance = Probe::glance(&self.around.actor_exe.program);
            self.peer.is_process() && glance.is_ok_and(|strain| strain.excuses(BOUND, times))
        };
        !is_stopped.iter().any(|it| it.load(Ordering::Relaxed)) && !is_busy()
    }
}

/// True if the machine was too busy for a verdict.
fn is_late(verdict: &Verdict) -> bool {
    verdict.is_untestable(Untestable::TOO_BUSY)
}

/// Masks of masked checks, by their ids.
fn masks(again: &[(Check, CheckOutcome)]) -> BTreeMap<String, String> {
    let mask = |(_, outcome): &(Check, CheckOutcome)| match &outcome.result.verdict {
        Verdict::Masked(mask) => Some((outcome.result.id.clone(), mask.clone())),
        _ => None,
    };
    again.iter().filter_map(mask).collect()
}

//! Second looks at checks that others, or the machine, kept from a verdict: alone, when everything else is done.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::confirm::BOUND;
use super::probe::Probe;
use super::{Outcome, Round, lock};
use crate::check::{Check, Untestable};
use crate::verdict::{self, Verdict};

/// Longest chain of masks: a check, the first canary of its command, and the check that tells what is wrong with that.
const MASKS_MAX: usize = 3;

impl Round<'_> {
    /// Keeps outcomes that are no verdict yet until everything else is done, and hands the others on.
    pub(super) fn report(&self, check: &Check, outcome: Outcome) {
        let verdict = &outcome.result.verdict;
        if matches!(verdict, Verdict::Masked(_)) || verdict.is_untestable(Untestable::TOO_BUSY) {
            lock(&self.again).push((check.clone(), outcome));
        } else {
            self.publish(check, outcome);
        }
    }

    /// True if a check has to be run again.
    pub(super) fn is_to_be_run_again(&self) -> bool {
        let again = lock(&self.again);
        let masks = masks(&again);
        again.iter().any(|(_, outcome)| match &outcome.result.verdict {
            Verdict::Masked(mask) => self.reported(mask, &masks).is_none(),
            _ => true,
        })
    }

    /// Confirms what was put aside, and runs checks once more that a busy machine left undecided or that are masked by a
    /// fault which no check reports.
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
                } else if !is_last && self.has_time_for_more() {
                    let is_late = |verdict: &Verdict| verdict.is_untestable(Untestable::TOO_BUSY);
                    lock(&self.routed).retain(|routed| {
                        routed.failure.check != check.id || !routed.undecided.as_ref().is_some_and(is_late)
                    });
                    if check.first_canary {
                        lock(&self.dead_commands).remove(&check.command);
                    }
                    self.one(&check);
                    continue;
                } else if let Verdict::Masked(mask) = &outcome.result.verdict {
                    let why = Untestable::new("unconfirmed", format!("it was masked once: {mask}"));
                    outcome.result.verdict = Verdict::Untestable(why);
                }
                self.publish(&check, outcome);
            }
        }
    }

    /// The mask with the check that reports its fault, if there is one: that check may itself be masked.
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

    /// True if something can be decided now that could not be before.
    fn has_time_for_more(&self) -> bool {
        let is_stopped = [&self.options.enough, self.around.interrupted];
        let is_busy = || {
            let glance = Probe::glance(&self.around.actor_exe.program);
            self.peer.is_process()
                && glance.is_ok_and(|strain| strain.excuses(BOUND, super::confirm::TIMES_MAX))
        };
        !is_stopped.iter().any(|it| it.load(Ordering::Relaxed)) && !is_busy()
    }
}

/// Masks of the checks that have one, by the ids of these checks.
fn masks(again: &[(Check, Outcome)]) -> BTreeMap<String, String> {
    let mask = |(_, outcome): &(Check, Outcome)| match &outcome.result.verdict {
        Verdict::Masked(mask) => Some((outcome.result.id.clone(), mask.clone())),
        _ => None,
    };
    again.iter().filter_map(mask).collect()
}

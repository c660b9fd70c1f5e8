//! Conversations in processes that were opened for earlier ones: a start costs more than most conversations.
//!
//! Only a clean one counts. Whatever else it shows may come from the conversations before it, and is looked for again in a
//! process of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::silence::Wait;
use super::{Round, Seat, interrupted, lab};
use crate::check::Check;
use crate::facts::Facts;
use crate::finding::Judgement;
use crate::lab::{Kept, Unfinished};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::transcript::Transcript;
use crate::verdict::Verdict;

impl Round<'_> {
    /// The plan of a check, by these facts.
    pub(super) fn plan(&self, check: &Check, facts: &Facts) -> Result<Plan, Verdict> {
        let mut rng = Rng::new(self.options.rng_seed).fork(&check.id);
        (check.planner)(facts, &mut rng).map_err(Verdict::Untestable)
    }

    /// Carries out a plan and judges it; with the process where another conversation may follow in it.
    pub(super) fn converse(
        &self,
        check: &Check,
        plan: &Arc<Plan>,
        kept: Option<Kept>,
        wait: Wait,
        times: f64,
    ) -> Result<(Judgement, Transcript, Option<Kept>), Verdict> {
        let inside = self.options.inside.as_deref().filter(|_| !check.needs_process);
        let mut lab = lab(inside.unwrap_or(self.peer), self.options, self.around);
        lab.stretch(times);
        wait.apply(&mut lab, plan);
        let held = self.options.seat.as_ref().map_or(&self.held, Seat::held);
        let _stay = self.room.enter(plan, held);
        let (transcript, kept) =
            lab.execute_in(&check.id, plan, kept).map_err(|unfinished| match unfinished {
                Unfinished::Interrupted => interrupted(),
                Unfinished::Fault(fault) => Verdict::HarnessError(fault.into()),
            })?;
        self.room.saw(&transcript);
        let (judgement, transcript) = self.judged(check, transcript)?;
        Ok((judgement, transcript, kept))
    }

    /// The conversation of a check in a process that was opened before, where there is one; `None` where it has to have a
    /// process of its own.
    pub(super) fn in_kept_process(&self, check: &Check, wait: Wait) -> Option<(Judgement, Transcript)> {
        if self.kept.is_empty() {
            return None;
        }
        // A panic shows again in a process of its own, and is reported there.
        catch_unwind(AssertUnwindSafe(|| self.goes_on(check, wait))).ok().flatten()
    }

    fn goes_on(&self, check: &Check, wait: Wait) -> Option<(Judgement, Transcript)> {
        let own = self.plan(check, &self.peer.facts).ok()?;
        if self.nothing_tried(check, &own).is_some() {
            return None;
        }
        let kept = self.kept.take(&own)?;
        let facts = Facts { turn: kept.turn(), ..self.peer.facts.clone() };
        let next = self.plan(check, &facts).ok()?;
        // The process was opened by the steps of its first conversation.
        let opening = kept.opening().len();
        let steps = own.steps[..opening].iter().chain(next.steps.get(opening..)?).cloned().collect();
        let plan = Arc::new(Plan { steps, ..next });
        let made: Result<_, Verdict> = self.converse(check, &plan, Some(kept), wait, 1.0);
        let (judgement, transcript, kept) = made.ok().filter(|(judgement, ..)| judgement.is_clean())?;
        if let Some(kept) = kept {
            self.kept.put(kept);
        }
        Some((judgement, transcript))
    }
}

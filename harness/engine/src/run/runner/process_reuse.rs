//! Conversations in kept processes: a start costs more than most conversations.
//!
//! Only a clean conversation counts. Any finding may come from earlier conversations and is looked for again in a fresh
//! process.

use std::sync::Arc;

use super::silence::Wait;
use super::{RunContext, Seat, interrupted, lab};
use crate::data::check::Check;
use crate::data::facts::Facts;
use crate::data::finding::Judgement;
use crate::data::plan::Plan;
use crate::data::rng::Rng;
use crate::data::transcript::Transcript;
use crate::drive::lab::{IdleProcess, Unfinished};
use crate::run::verdict::Verdict;

impl RunContext<'_> {
    /// Plan of a check; untestable if it would try nothing.
    pub(super) fn plan(&self, check: &Check) -> Result<Plan, Verdict> {
        let plan = self.plan_by(check, &self.peer.facts)?;
        self.nothing_tried(check, &plan).map_or(Ok(plan), |reason| Err(Verdict::Untestable(reason)))
    }

    fn plan_by(&self, check: &Check, facts: &Facts) -> Result<Plan, Verdict> {
        let mut rng = Rng::new(self.options.rng_seed).fork(&check.id);
        (check.planner)(facts, &mut rng).map_err(Verdict::Untestable)
    }

    /// Clean conversation of a check in a kept process; `None` if there is none or anything is wrong.
    pub(super) fn go_on(&self, check: &Check, plan: &Plan, wait: Wait) -> Option<(Judgement, Transcript)> {
        let kept = self.kept.take(plan)?;
        let facts = Facts { turn: kept.turn(), ..self.peer.facts.clone() };
        let next = self.plan_by(check, &facts).ok()?;
        // The steps of its first conversation opened the process.
        let opening = kept.opening();
        let steps = opening.iter().chain(next.steps.get(opening.len()..)?).cloned().collect();
        let made = self.converse(check, Plan { steps, ..next }, Some(kept), wait, 1.0);
        made.ok().filter(|(judgement, _)| judgement.is_clean())
    }

    /// Runs and judges a plan. A process with a clean conversation is kept for the next one.
    pub(super) fn converse(
        &self,
        check: &Check,
        plan: Plan,
        kept: Option<IdleProcess>,
        wait: Wait,
        times: f64,
    ) -> Result<(Judgement, Transcript), Verdict> {
        let inside = self.options.inside.as_deref().filter(|_| !check.needs_process);
        let mut lab = lab(inside.unwrap_or(self.peer), self.options, self.around);
        lab.stretch(times);
        wait.apply(&mut lab, &plan);
        let held = self.options.seat.as_ref().map_or(&self.held, Seat::held);
        let _stay = self.room.enter(&plan, held);
        let (transcript, kept) =
            lab.execute_in(&check.id, &Arc::new(plan), kept).map_err(|unfinished| match unfinished {
                Unfinished::Interrupted => interrupted(),
                Unfinished::Fault(fault) => Verdict::HarnessError(fault.into()),
            })?;
        self.room.saw(&transcript);
        let (judgement, transcript) = self.judged(check, transcript)?;
        if let Some(kept) = kept.filter(|_| judgement.is_clean()) {
            self.kept.put(kept);
        }
        Ok((judgement, transcript))
    }
}

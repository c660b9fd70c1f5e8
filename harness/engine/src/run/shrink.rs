//! Shrinking: finds the shortest conversation that still shows a finding.
//!
//! It works on the live peer. It removes messages first, then structure within messages, then bytes, then chunking. A
//! smaller conversation is kept only if the same clause and reason code show again, by a judge that does not rely on
//! the original expectations:
//!
//! - Expectations depend on the content of a step and of earlier steps. So the boundary's model judges a changed
//!   conversation by the bytes really sent.
//! - If the model does not see the finding in the original, content stays, and earlier steps are removed only while the
//!   reference, which is correct by definition, stays clean with the plan.
//! - The script of a counterpart shrinks together with its expectations, while every allowed form of the reference
//!   stays clean with it.
//! - If the reference cannot play the conversation either, only steps that cannot matter are removed: later steps,
//!   other processes and canaries.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::contract::boundary::{self, Boundary};
use crate::data::budget::Budget;
use crate::data::clause::Side;
use crate::data::finding::{Finding, NO_REPLY_UNTIL_THE_END, Nature};
use crate::data::plan::{Act, Chunking, Plan};
use crate::data::transcript::{Awaited, EventKind, Transcript};
use crate::drive::lab::Lab;
use crate::drive::reference_peers::Played;
use crate::run::runner::Failure;
use crate::run::runner::silence::{Wait, is_silence};

mod asking_peer;
mod bytes;
mod payloads;
mod reference;
mod spelling;
mod steps;
mod structure;
mod unaimed_name;

pub use payloads::payloads;
use reference::ReferenceLab;
pub use structure::variants as simpler;

/// Plan size above which a boundary proposes nothing: it would make hundreds of copies of large data.
const PROPOSED_BYTES_MAX: usize = 256 << 10;

/// See [`Shrinker::proposals`].
fn proposals(boundary: &dyn Boundary, plan: &Plan, index: usize) -> Vec<Plan> {
    match plan.bytes() {
        0..=PROPOSED_BYTES_MAX => boundary.shrink_payload(plan, index),
        _ => Vec::new(),
    }
}

/// Shrunk failure.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// Smallest plan that showed the finding.
    pub plan: Plan,
    /// Transcript of its last run.
    pub transcript: Transcript,
    /// Finding in that transcript.
    pub finding: Finding,
    /// Number of steps in the original plan.
    pub steps_before: usize,
    /// Number of steps in the smallest plan.
    pub steps_after: usize,
    /// Number of bytes written in the original plan.
    pub bytes_before: usize,
    /// Number of bytes written in the smallest plan.
    pub bytes_after: usize,
    /// Number of conversations run.
    pub runs: usize,
    /// Conversations per second.
    pub runs_per_s: f64,
    /// Set if a final run of the smallest plan showed the finding again. Otherwise the result is the original.
    pub confirmed: bool,
}

/// Plan with the original index of each step.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) plan: Plan,
    pub(crate) origin: Vec<usize>,
}

impl Candidate {
    fn whole(plan: &Plan) -> Self {
        Self { plan: plan.clone(), origin: (0..plan.steps.len()).collect() }
    }

    /// Keeps only the steps at these indices, with the actor's scripts for the starts they cause. Sessions keep their
    /// indices.
    pub(crate) fn keeping(&self, keep: &BTreeSet<usize>) -> Self {
        let mut plan = self.plan.clone();
        let mut at = 0;
        plan.steps.retain(|_| {
            at += 1;
            keep.contains(&(at - 1))
        });
        plan.keep_turns(&self.plan);
        Self { plan, origin: keep.iter().filter_map(|index| self.origin.get(*index).copied()).collect() }
    }
}

/// Kind of change from one candidate to the next, which decides who may judge it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Steps were removed.
    Steps,
    /// A payload was changed.
    Content,
    /// Only the division into writes was changed.
    Chunking,
    /// The script of a counterpart was changed together with its expectations.
    Play,
}

/// Judge of changed conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShrinkJudge {
    /// The model, which sees the finding in the original.
    Model,
    /// The reference, which is clean with the original plan and so tells if expectations still hold.
    Reference,
    /// No judge: only steps that cannot matter are removed.
    Nobody,
}

/// Shrinking of one failure.
pub(crate) struct Shrinker<'a> {
    /// Lab with short waits.
    lab: Lab<'a>,
    /// Budget with full waits.
    budget: Budget,
    failure: &'a Failure,
    deadline: Instant,
    pub(crate) judge: ShrinkJudge,
    reference: Option<ReferenceLab>,
    /// Step of the original plan that shows the finding.
    pub(crate) step: Option<usize>,
    /// Clause and reason that the bytes alone give, if the finding's clause comes only from the aim of its step.
    pub(crate) own: Option<(String, String)>,
    /// Clause, reason and original step of all findings of the original.
    known: Vec<(String, String, Option<usize>)>,
    pub(crate) best: Candidate,
    transcript: Transcript,
    finding: Finding,
    runs: usize,
    /// Duration of the original, without waits that are not repeated.
    took: Duration,
}

/// Shrinks `failure` until nothing more can be removed, `deadline` passes or the user interrupts. Never fails: in the
/// worst case it returns the original. If there are reference peers, results that they are not clean with do not count.
pub fn shrink(
    lab: &Lab<'_>,
    played: Option<&'static dyn Played>,
    failure: &Failure,
    deadline: Instant,
) -> Shrunk {
    let began = Instant::now();
    let original = &failure.transcript.plan;
    let mut shrinker = Shrinker::new(lab, played, failure, deadline);
    if shrinker.is_worth_it() {
        steps::shrink(&mut shrinker);
        if shrinker.judge == ShrinkJudge::Model && !shrinker.is_of_a_consumer() {
            structure::shrink(&mut shrinker);
            bytes::shrink(&mut shrinker);
            // Smaller messages can make others unnecessary.
            steps::shrink(&mut shrinker);
        }
        if shrinker.is_of_a_consumer() {
            asking_peer::shrink(&mut shrinker);
        } else {
            shrinker.whole_writes();
        }
    }
    let confirmed = shrinker.confirm();
    let Shrinker { best, transcript, finding, runs, .. } = shrinker;
    let seconds = began.elapsed().as_secs_f64();
    Shrunk {
        steps_before: original.steps.len(),
        steps_after: best.plan.steps.len(),
        bytes_before: original.bytes(),
        bytes_after: best.plan.bytes(),
        plan: best.plan,
        transcript,
        finding,
        runs,
        runs_per_s: if seconds > 0.0 { runs as f64 / seconds } else { 0.0 },
        confirmed,
    }
}

/// Duration of a conversation if each wait in vain had lasted at most `reply`.
fn took(transcript: &Transcript, reply: Duration) -> Duration {
    let spared = transcript.events.iter().filter_map(|event| match event.kind {
        EventKind::DeadlinePassed { waited_ms, awaited: Awaited::Frames, .. } => {
            Some(Duration::from_millis(waited_ms).saturating_sub(reply))
        }
        _ => None,
    });
    transcript.lasted().saturating_sub(spared.sum())
}

impl<'a> Shrinker<'a> {
    fn new(
        lab: &'a Lab<'a>,
        played: Option<&'static dyn Played>,
        failure: &'a Failure,
        deadline: Instant,
    ) -> Self {
        let plan = &failure.transcript.plan;
        let judgement = boundary::judge(lab.peer.boundary, &failure.transcript);
        let by_model = lab.peer.boundary.judge_by_model(&failure.transcript);
        let reference = played.and_then(|played| ReferenceLab::for_peer(lab, played, &failure.check, plan));
        let seen =
            |findings: &[Finding]| findings.iter().any(|finding| finding.key() == failure.finding.key());
        let judge = if seen(&by_model.findings) {
            ShrinkJudge::Model
        } else if reference.is_some() {
            ShrinkJudge::Reference
        } else {
            ShrinkJudge::Nobody
        };
        let own = match judge {
            // A peer that dies or hangs does so whatever the clause.
            ShrinkJudge::Model if failure.finding.nature == Nature::Violation => {
                unaimed_name::key(lab.peer.boundary, &failure.transcript, &failure.finding)
            }
            ShrinkJudge::Model | ShrinkJudge::Reference | ShrinkJudge::Nobody => None,
        };
        let known = judgement
            .findings
            .iter()
            .map(|finding| (finding.clause.0.clone(), finding.reason.clone(), finding.step))
            .collect();
        let budget = lab.budget.clone();
        let mut lab = Lab { budget: budget.clone(), actor_exe: lab.actor_exe, ..*lab };
        // A short wait turns a late answer into a finding, so the result is confirmed with full waits.
        Wait::Short.apply(&mut lab, plan);
        let took =
            if lab.peer.is_process() { took(&failure.transcript, lab.budget.reply) } else { Duration::ZERO };
        Self {
            lab,
            budget,
            failure,
            deadline,
            judge,
            reference,
            step: failure.finding.step,
            own,
            known,
            best: Candidate::whole(plan),
            transcript: failure.transcript.clone(),
            finding: failure.finding.clone(),
            runs: 0,
            took,
        }
    }

    /// Boundary of the peer.
    pub(crate) fn boundary(&self) -> &'static dyn Boundary {
        self.lab.peer.boundary
    }

    /// Smaller plans that the boundary proposes for a step. They are all made at once, so large plans get none.
    fn proposals(&self, index: usize) -> Vec<Plan> {
        proposals(self.boundary(), &self.best.plan, index)
    }

    /// See [`boundary::await_what_is_due`].
    pub(crate) fn await_what_is_due(&self, plan: &mut Plan, index: usize) {
        boundary::await_what_is_due(self.boundary(), &self.lab.peer.facts, plan, index);
    }

    /// True if the finding is a missing answer that the next canary reveals at once. Without the canary each try would
    /// cost a deadline.
    pub(crate) fn is_told_by_canary(&self) -> bool {
        self.lab.peer.is_process() && self.finding.nature == Nature::Violation && is_silence(&self.finding)
    }

    /// True if the peer starts the other side itself. Its calls are short and not divisible.
    pub(crate) fn is_of_a_consumer(&self) -> bool {
        self.lab.peer.facts.side == Side::Consumer
    }

    /// True if there is time for at least one try.
    fn is_worth_it(&self) -> bool {
        self.is_time_for(self.took * 2) && !self.best.plan.steps.is_empty()
    }

    /// True if there is time for another run.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_time_for(self.took)
    }

    /// True if this much time is left. After an interrupt none is.
    fn is_time_for(&self, time: Duration) -> bool {
        !self.budget.is_interrupted() && Instant::now() + time < self.deadline
    }

    /// Runs `candidate` and keeps it if it shows the finding; returns true if it did.
    pub(crate) fn accepts(&mut self, candidate: Candidate, change: Change) -> bool {
        if !self.goes_on() {
            return false;
        }
        let Candidate { mut plan, origin } = candidate;
        let is_anew = matches!(change, Change::Steps | Change::Content);
        plan.by_model = self.best.plan.by_model || (is_anew && self.judge == ShrinkJudge::Model);
        if change == Change::Play && self.reference.is_none() {
            return false;
        }
        if change == Change::Content && self.judge != ShrinkJudge::Model {
            return false;
        }
        if !self.expectations_hold(&plan) {
            return false;
        }
        let Some((transcript, finding)) = self.shows(&plan, &origin) else { return false };
        self.best = Candidate { plan, origin };
        self.transcript = transcript;
        self.finding = finding;
        true
    }

    /// True if the reference stays clean, or cannot play this conversation. Otherwise a finding would say nothing about
    /// the peer.
    fn expectations_hold(&self, plan: &Plan) -> bool {
        self.reference.as_ref().is_none_or(|reference| reference.is_clean(plan))
    }

    /// Runs `plan` and looks for the finding.
    fn shows(&mut self, plan: &Plan, origin: &[usize]) -> Option<(Transcript, Finding)> {
        self.runs += 1;
        let transcript = self.lab.execute(&self.failure.check, plan).ok()?;
        let findings = boundary::judge(self.lab.peer.boundary, &transcript).findings;
        let key = self.failure.finding.key();
        // A conversation that is over before an answer can come shows nothing about an answer that never came.
        let is_cut_short = |finding: &Finding| {
            finding.got == NO_REPLY_UNTIL_THE_END && self.failure.finding.got != NO_REPLY_UNTIL_THE_END
        };
        let has_key = |finding: &Finding| finding.key() == key && !is_cut_short(finding);
        if plan.by_model {
            let finding = findings.into_iter().find(has_key)?;
            if let Some(own) = &self.own
                && !unaimed_name::keys(self.lab.peer.boundary, &transcript).iter().any(|(_, key)| key == own)
            {
                return None;
            }
            return Some((transcript, finding));
        }
        // With the original expectations, the step must be the same, and no new finding may come before it.
        let original = |finding: &Finding| finding.step.and_then(|step| origin.get(step).copied());
        let same = |finding: &Finding| has_key(finding) && original(finding) == self.step;
        let at = findings.iter().position(same)?;
        let all_known = findings[..at].iter().all(|finding| {
            self.known.iter().any(|(clause, reason, step)| {
                *clause == finding.clause.0 && *reason == finding.reason && *step == original(finding)
            })
        });
        all_known.then(|| (transcript, findings[at].clone()))
    }

    /// Last stage: one write per message.
    fn whole_writes(&mut self) {
        let cut = |plan: &Plan| -> Vec<usize> {
            let is_cut =
                |act: &Act| matches!(act, Act::Send { chunking, .. } if *chunking != Chunking::Whole);
            (0..plan.steps.len()).filter(|index| is_cut(&plan.steps[*index].act)).collect()
        };
        let all = cut(&self.best.plan);
        if all.is_empty() || self.accepts(self.with_whole(&all), Change::Chunking) {
            return;
        }
        for index in all {
            self.accepts(self.with_whole(&[index]), Change::Chunking);
        }
    }

    fn with_whole(&self, indices: &[usize]) -> Candidate {
        let mut candidate = self.best.clone();
        for index in indices {
            if let Act::Send { chunking, .. } = &mut candidate.plan.steps[*index].act {
                *chunking = Chunking::Whole;
            }
        }
        candidate
    }

    /// Runs the result again with full waits; it counts only if the finding shows.
    fn confirm(&mut self) -> bool {
        let changed = self.best.plan != *self.failure.transcript.plan;
        if !changed {
            return false;
        }
        let Candidate { plan, origin } = self.best.clone();
        self.lab.budget = self.budget.clone();
        if let Some((transcript, finding)) = self.shows(&plan, &origin) {
            self.transcript = transcript;
            self.finding = finding;
            return true;
        }
        self.best = Candidate::whole(&self.failure.transcript.plan);
        self.transcript = self.failure.transcript.clone();
        self.finding = self.failure.finding.clone();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::payload::Payload;
    use crate::data::plan::Act;
    use crate::toy::{Toy, plan};

    #[test]
    fn nothing_smaller_is_proposed_for_a_plan_of_which_a_hundred_copies_would_be_too_large() {
        let of = |bytes: usize| {
            let mut plan = plan();
            if let Act::Send { payload, .. } = &mut plan.steps[0].act {
                *payload = Payload::text("x".repeat(bytes));
            }
            proposals(&Toy, &plan, 0).len()
        };
        assert_eq!((of(250 << 10), of(300 << 10)), (1, 0));
    }
}

//! Ambient checks: each is told what the conversations of other checks show about its clauses, and leaves to them what its
//! own conversation shows about theirs.

use std::collections::BTreeMap;

use super::confirm::{Aside, Confirmed};
use super::isolate::Settled;
use super::{Failure, Outcome, Round, lock};
use crate::check::{Check, Untestable};
use crate::clause::ClauseId;
use crate::finding::{Finding, Judgement, Nature};
use crate::transcript::{Packed, Transcript};
use crate::verdict::{self, Verdict};

/// A finding of one check's conversation about a clause that an ambient check watches over.
pub(super) struct Routed {
    /// The ambient check.
    owner: String,
    pub(super) failure: Failure<Packed>,
    /// Flaky where it did not show again each time, untestable where the machine was too busy to tell.
    pub(super) undecided: Option<Verdict>,
}

/// A finished ambient check.
pub(super) struct Held {
    /// The clauses that it watches.
    own: Vec<ClauseId>,
    outcome: Outcome,
}

/// Clauses that checks failed for, each with the gravest of what was wrong and the check that tells it.
#[derive(Default)]
pub(super) struct Told(BTreeMap<ClauseId, (Nature, String)>);

impl Told {
    /// Takes note of what a failing check tells.
    pub(super) fn note(&mut self, outcome: &Outcome) {
        let result = &outcome.result;
        if !result.verdict.is_failure() {
            return;
        }
        for Finding { clause, nature, .. } in &result.findings {
            let gravest = self.0.entry(clause.clone()).or_insert_with(|| (*nature, result.id.clone()));
            if gravest.0 < *nature {
                *gravest = (*nature, result.id.clone());
            }
        }
    }

    /// The check that tells a fault as grave as `finding` of its clause.
    fn by(&self, finding: &Finding) -> Option<&str> {
        let (nature, check) = self.0.get(&finding.clause)?;
        (*nature >= finding.nature).then_some(check)
    }
}

impl Held {
    /// Leaves out findings about clauses of others that those tell of; without one of its own the check is no pass.
    fn leave(&mut self, told: &Told) {
        let Outcome { result, failure } = &mut self.outcome;
        let mut masked = None;
        result.findings.retain(|finding| {
            let by = told.by(finding).filter(|_| !self.own.contains(&finding.clause));
            masked = masked.take().or_else(|| Some(mask(finding, by?)));
            by.is_none()
        });
        let Some(masked) = masked else { return };
        let left = |clause: &ClauseId| {
            self.own.contains(clause) || result.findings.iter().any(|finding| finding.clause == *clause)
        };
        result.clauses.retain(|clause| left(&clause.id));
        match (result.findings.first(), Verdict::of_findings(&result.findings)) {
            (Some(first), Some(verdict)) => {
                if result.verdict.is_failure() {
                    result.verdict = verdict;
                }
                result.reason = Some(first.reason.clone());
                if let Some(failure) = failure {
                    failure.finding = first.clone();
                }
            }
            _ => {
                result.verdict = Verdict::Masked(masked);
                result.reason = None;
                *failure = None;
            }
        }
    }
}

/// What stands beside the verdict of a check whose finding `by` tells.
pub(super) fn mask(finding: &Finding, by: &str) -> String {
    verdict::mask(&finding.clause, &finding.reason, by)
}

impl Round<'_> {
    /// Reports an outcome, or holds it back until every conversation was seen.
    pub(super) fn publish(&self, check: &Check, outcome: Outcome) {
        let verdict = &outcome.result.verdict;
        if verdict.is_failure() || matches!(verdict, Verdict::Flaky(_)) {
            lock(&self.reporting).insert(check.id.clone());
        }
        if check.ambient {
            lock(&self.ambient).push(Held { own: check.clauses.clone(), outcome });
        } else {
            lock(&self.told).note(&outcome);
            (self.done)(outcome);
        }
    }

    /// True if an ambient check reports what the conversation of another showed.
    pub(super) fn is_routed_to(&self, owner: &str) -> bool {
        let is_sure = |verdict: &Option<Verdict>| matches!(verdict, None | Some(Verdict::Flaky(_)));
        lock(&self.routed).iter().any(|routed| routed.owner == owner && is_sure(&routed.undecided))
    }

    /// The check that watches `clause` in every conversation: the one that runs the same command, where there is one.
    fn owner(&self, clause: &ClauseId, command: &str) -> Option<&String> {
        let owners = self.owners.get(clause)?;
        owners.iter().find(|(runs, _)| runs == command).or(owners.first()).map(|(_, id)| id)
    }

    /// Moves findings about clauses that another check watches over to that check. Each is confirmed as a failing check
    /// is: by the same conversation, unless it is settled. Returns what masks this check, which is no pass without them.
    pub(super) fn route(
        &self,
        check: &Check,
        judgement: &mut Judgement,
        transcript: &Transcript,
        settled: Option<&Settled>,
    ) -> Option<String> {
        let mut own = Vec::new();
        let mut masked = None;
        for finding in std::mem::take(&mut judgement.findings) {
            match self.owner(&finding.clause, &check.command) {
                Some(owner) if *owner != check.id && !check.clauses.contains(&finding.clause) => {
                    masked.get_or_insert_with(|| mask(&finding, owner));
                    let known = |routed: &[Routed]| {
                        routed.iter().any(|routed| {
                            routed.owner == *owner
                                && routed.undecided.is_none()
                                && routed.failure.finding.key() == finding.key()
                        })
                    };
                    if known(&lock(&self.routed)) {
                        continue;
                    }
                    let settled = settled.filter(|settled| settled.finding == finding);
                    let transcript = settled.map_or(transcript, |settled| &settled.transcript);
                    let findings = std::slice::from_ref(&finding);
                    let verdict = Verdict::of_findings(findings).unwrap_or(Verdict::Fail);
                    let aside = || Aside {
                        check: check.clone(),
                        verdict: verdict.clone(),
                        judgement: Judgement { findings: vec![finding.clone()], ..Judgement::default() },
                        transcript: transcript.clone(),
                        earlier: Vec::new(),
                        elapsed: transcript.lasted(),
                        owner: Some(owner.clone()),
                        burst: None,
                    };
                    if let Some(settled) = settled {
                        let confirmed =
                            Confirmed::As(settled.undecided.clone().unwrap_or_else(|| verdict.clone()));
                        self.settle_routed(owner.clone(), aside(), confirmed);
                        continue;
                    }
                    if self.waits_for_quiet(check, &finding, transcript) {
                        self.put_aside(aside());
                        continue;
                    }
                    let time = self.time_of(&finding, transcript);
                    let confirmed = self.confirm(check, verdict.clone(), findings, &[], time);
                    self.settle_routed(owner.clone(), aside(), confirmed);
                }
                _ => own.push(finding),
            }
        }
        if check.ambient {
            let is_foreign = |finding: &Finding| !check.clauses.contains(&finding.clause);
            // What others have told by now needs no confirmation; what it is about is confirmed, whatever else shows.
            let told = lock(&self.told);
            own.retain(|finding| {
                let by = told.by(finding).filter(|_| is_foreign(finding));
                masked = masked.take().or_else(|| Some(mask(finding, by?)));
                by.is_none()
            });
            own.sort_by_key(is_foreign);
        }
        judgement.findings = own;
        if let Some(cause) = &masked {
            judgement.untestable.get_or_insert_with(|| Untestable::new("masked", cause));
        }
        masked
    }

    /// Keeps a finding for the ambient check `owner`, unless it was the machine's doing.
    pub(super) fn settle_routed(&self, owner: String, failed: Aside, confirmed: Confirmed) {
        let undecided = match confirmed {
            Confirmed::As(verdict @ (Verdict::Flaky(_) | Verdict::Untestable(_))) => Some(verdict),
            Confirmed::As(_) => None,
            Confirmed::Instead(_) => return,
        };
        let Aside { check, judgement, transcript, .. } = failed;
        let packed = Packed::from(transcript);
        for finding in judgement.findings {
            let failure = Failure { check: check.id.clone(), transcript: packed.clone(), finding };
            let mut routed = lock(&self.routed);
            let known = |routed: &Routed| {
                routed.owner == owner
                    && routed.undecided.is_none()
                    && routed.failure.finding.key() == failure.finding.key()
            };
            if !routed.iter().any(known) {
                routed.push(Routed { owner: owner.clone(), failure, undecided: undecided.clone() });
            }
        }
    }

    /// Hands the held-back checks the findings of all other conversations and reports them.
    pub(super) fn settle_ambient(&self) {
        let routed = std::mem::take(&mut *lock(&self.routed));
        let mut told = std::mem::take(&mut *lock(&self.told));
        let mut held = std::mem::take(&mut *lock(&self.ambient));
        held.sort_by(|a, b| a.outcome.result.id.cmp(&b.outcome.result.id));
        for mut ambient in held {
            ambient.leave(&told);
            let Held { mut outcome, .. } = ambient;
            // What nobody else tells is told once.
            told.note(&outcome);
            let is_known = |outcome: &Outcome, routed: &Routed| {
                let key = routed.failure.finding.key();
                outcome.result.findings.iter().any(|finding| finding.key() == key)
            };
            let mine = || routed.iter().filter(|routed| routed.owner == outcome.result.id);
            let (confirmed, undecided): (Vec<_>, Vec<_>) =
                mine().partition(|routed| routed.undecided.is_none());
            if outcome.result.findings.is_empty() {
                // They show on the rung of the conversations that they come from.
                let rungs = confirmed.iter().map(|routed| self.rungs.of_check(&routed.failure.check));
                outcome.result.rung = rungs.min().unwrap_or(outcome.result.rung);
            }
            for routed in confirmed {
                if is_known(&outcome, routed) {
                    continue;
                }
                outcome.result.findings.push(routed.failure.finding.clone());
                if outcome.failure.is_none() {
                    outcome.failure = Some(routed.failure.clone());
                }
            }
            if !outcome.result.verdict.is_failure()
                && !matches!(outcome.result.verdict, Verdict::Flaky(_))
                && let Some(verdict) = Verdict::of_findings(&outcome.result.findings)
            {
                // Its own conversation says of its other clauses what it said.
                let own = std::mem::replace(&mut outcome.result.verdict, verdict);
                outcome.result.rest = Some(own);
                outcome.result.reason = outcome.result.findings.first().map(|finding| finding.reason.clone());
            }
            // What shows now and then is reported, whatever else the check could decide.
            let is_flaky = |routed: &&&Routed| matches!(routed.undecided, Some(Verdict::Flaky(_)));
            let flaky = undecided.iter().find(is_flaky);
            let own = &outcome.result.verdict;
            let is_open = !own.is_failure() && !matches!(own, Verdict::Flaky(_));
            if let Some(routed) = flaky.filter(|_| is_open).or(undecided.first())
                && let Some(verdict) = routed.undecided.clone()
                && (outcome.result.verdict.is_good() || flaky.is_some() && is_open)
            {
                let own = std::mem::replace(&mut outcome.result.verdict, verdict);
                if !matches!(outcome.result.verdict, Verdict::Flaky(_)) {
                    (self.done)(outcome);
                    continue;
                }
                outcome.result.rest = Some(own);
                outcome.result.reason = Some(routed.failure.finding.reason.clone());
                outcome.result.findings.push(routed.failure.finding.clone());
                outcome.failure = Some(routed.failure.clone());
            }
            (self.done)(outcome);
        }
    }
}

//! Ambient checks: each receives the findings about its clauses from other checks' conversations, and gives up findings
//! of its own conversation that belong to others.

use std::collections::BTreeMap;

use super::aside::Deferred;
use super::confirm::Confirmed;
use super::isolate::ConfirmedFinding;
use super::{CheckOutcome, Failure, RunContext, lock};
use crate::data::check::{Check, Untestable};
use crate::data::clause::ClauseId;
use crate::data::finding::{Finding, Judgement, Nature};
use crate::data::transcript::{Packed, Transcript};
use crate::run::verdict::{self, Verdict};

/// Finding of one check's conversation about an ambient check's clause.
pub(super) struct Routed {
    /// Id of the ambient check.
    owner: String,
    pub(super) failure: Failure<Packed>,
    /// Flaky if it did not show each time, untestable if the machine was too busy; `None` if confirmed.
    pub(super) undecided: Option<Verdict>,
}

/// Finished ambient check.
pub(super) struct FinishedAmbient {
    /// Clauses that it watches.
    own: Vec<ClauseId>,
    outcome: CheckOutcome,
}

/// Clauses for which checks failed, each with the gravest nature and the check that reports it.
#[derive(Default)]
pub(super) struct ReportedClauses(BTreeMap<ClauseId, (Nature, String)>);

impl ReportedClauses {
    /// Records the findings of a failed check.
    pub(super) fn note(&mut self, outcome: &CheckOutcome) {
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

    /// Check that reports a fault of the same clause that is at least as grave as `finding`.
    fn by(&self, finding: &Finding) -> Option<&str> {
        let (nature, check) = self.0.get(&finding.clause)?;
        (*nature >= finding.nature).then_some(check)
    }
}

impl FinishedAmbient {
    /// Removes findings about clauses that this check does not watch and another check reports. If none is left, the
    /// check is masked.
    fn leave(&mut self, told: &ReportedClauses) {
        let CheckOutcome { result, failure } = &mut self.outcome;
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

/// Mask of a check whose finding is reported by `by`.
pub(super) fn mask(finding: &Finding, by: &str) -> String {
    verdict::mask(&finding.clause, &finding.reason, by)
}

impl RunContext<'_> {
    /// Passes on an outcome, or holds it back until all conversations are known.
    pub(super) fn publish(&self, check: &Check, outcome: CheckOutcome) {
        let verdict = &outcome.result.verdict;
        if verdict.is_failure() || matches!(verdict, Verdict::Flaky(_)) {
            lock(&self.reporting).insert(check.id.clone());
        }
        if check.ambient {
            lock(&self.ambient).push(FinishedAmbient { own: check.clauses.clone(), outcome });
        } else {
            lock(&self.told).note(&outcome);
            (self.done)(outcome);
        }
    }

    /// True if the ambient check `owner` will report a finding from another conversation.
    pub(super) fn is_routed_to(&self, owner: &str) -> bool {
        let is_sure = |verdict: &Option<Verdict>| matches!(verdict, None | Some(Verdict::Flaky(_)));
        lock(&self.routed).iter().any(|routed| routed.owner == owner && is_sure(&routed.undecided))
    }

    /// Ambient check of `clause`, preferably for the same command.
    fn owner(&self, clause: &ClauseId, command: &str) -> Option<&String> {
        let owners = self.owners.get(clause)?;
        owners.iter().find(|(runs, _)| runs == command).or(owners.first()).map(|(_, id)| id)
    }

    /// Moves findings about clauses of ambient checks to those checks. Each is confirmed in the same conversation,
    /// unless it is settled. Returns the mask of this check, which does not pass without these findings.
    pub(super) fn route(
        &self,
        check: &Check,
        judgement: &mut Judgement,
        transcript: &Transcript,
        settled: Option<&ConfirmedFinding>,
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
                    let aside = || Deferred {
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
                    let doubt = self.doubt(&finding, transcript);
                    let confirmed = self.confirm(check, verdict.clone(), findings, &[], doubt);
                    self.settle_routed(owner.clone(), aside(), confirmed);
                }
                _ => own.push(finding),
            }
        }
        if check.ambient {
            let is_foreign = |finding: &Finding| !check.clauses.contains(&finding.clause);
            // Foreign findings that others have reported by now need no confirmation. Own ones are confirmed in any
            // case.
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

    /// Keeps a finding for the ambient check `owner`, unless the machine was to blame.
    pub(super) fn settle_routed(&self, owner: String, failed: Deferred, confirmed: Confirmed) {
        let undecided = match confirmed {
            Confirmed::As(verdict @ (Verdict::Flaky(_) | Verdict::Untestable(_))) => Some(verdict),
            Confirmed::As(_) => None,
            Confirmed::Instead(_) | Confirmed::Afresh(_) => return,
        };
        let Deferred { check, judgement, transcript, .. } = failed;
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

    /// Adds the findings of all other conversations to the held-back checks and reports these.
    pub(super) fn settle_ambient(&self) {
        let routed = std::mem::take(&mut *lock(&self.routed));
        let mut told = std::mem::take(&mut *lock(&self.told));
        let mut held = std::mem::take(&mut *lock(&self.ambient));
        held.sort_by(|a, b| a.outcome.result.id.cmp(&b.outcome.result.id));
        for mut ambient in held {
            ambient.leave(&told);
            let FinishedAmbient { mut outcome, .. } = ambient;
            // A finding that no other check reports is reported once.
            told.note(&outcome);
            let is_known = |outcome: &CheckOutcome, routed: &Routed| {
                let key = routed.failure.finding.key();
                outcome.result.findings.iter().any(|finding| finding.key() == key)
            };
            let mine = || routed.iter().filter(|routed| routed.owner == outcome.result.id);
            let (confirmed, undecided): (Vec<_>, Vec<_>) =
                mine().partition(|routed| routed.undecided.is_none());
            if outcome.result.findings.is_empty() {
                // Their rung is that of the conversations they come from.
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
                // Its own conversation still decides its other clauses.
                let own = std::mem::replace(&mut outcome.result.verdict, verdict);
                outcome.result.rest = Some(own);
                outcome.result.reason = outcome.result.findings.first().map(|finding| finding.reason.clone());
            }
            // A flaky finding is reported whatever else the check could decide.
            let is_flaky = |routed: &&&Routed| matches!(routed.undecided, Some(Verdict::Flaky(_)));
            let flaky = undecided.iter().find(is_flaky);
            let own = &outcome.result.verdict;
            let is_open = !own.is_failure() && !matches!(own, Verdict::Flaky(_));
            // The first canary failed by the finding that this check could not report.
            let is_of_canary = own.is_untestable(Untestable::NO_WORKING_REPLY);
            if let Some(routed) = flaky.filter(|_| is_open).or(undecided.first())
                && let Some(verdict) = routed.undecided.clone()
                && (own.is_good() || is_of_canary || flaky.is_some() && is_open)
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

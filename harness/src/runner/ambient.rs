//! Ambient checks: each is told what the conversations of other checks show about its clauses.

use std::time::Duration;

use super::confirm::{Aside, Confirmed};
use super::isolate::Settled;
use super::{Failure, Outcome, Round, lock};
use crate::check::Check;
use crate::clause::ClauseId;
use crate::finding::Judgement;
use crate::transcript::Transcript;
use crate::verdict::Verdict;

/// A finding of one check's conversation about a clause that an ambient check watches over.
pub(super) struct Routed {
    /// The ambient check.
    owner: String,
    failure: Failure,
    /// Flaky where it did not show again each time, untestable where the machine was too busy to tell.
    undecided: Option<Verdict>,
}

impl Round<'_> {
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
                    masked.get_or_insert_with(|| {
                        format!("{} {}: told by {owner}", finding.clause, finding.reason)
                    });
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
                    let aside = Aside {
                        check: check.clone(),
                        verdict: verdict.clone(),
                        judgement: Judgement { findings: vec![finding.clone()], ..Judgement::default() },
                        transcript: transcript.clone(),
                        elapsed: Duration::ZERO,
                        owner: Some(owner.clone()),
                        burst: None,
                    };
                    if let Some(settled) = settled {
                        let confirmed = Confirmed::As(settled.undecided.clone().unwrap_or(verdict));
                        self.settle_routed(owner.clone(), aside, confirmed);
                        continue;
                    }
                    if self.waits_for_quiet(check, &finding, transcript) {
                        self.put_aside(aside);
                        continue;
                    }
                    let confirmed = self.confirm(check, verdict, findings, transcript);
                    self.settle_routed(owner.clone(), aside, confirmed);
                }
                _ => own.push(finding),
            }
        }
        judgement.findings = own;
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
        for finding in judgement.findings {
            let failure = Failure { check: check.id.clone(), transcript: transcript.clone(), finding };
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
        for mut outcome in std::mem::take(&mut *lock(&self.ambient)) {
            let is_known = |outcome: &Outcome, routed: &Routed| {
                let key = routed.failure.finding.key();
                outcome.result.findings.iter().any(|finding| finding.key() == key)
            };
            let mine = || routed.iter().filter(|routed| routed.owner == outcome.result.id);
            let (confirmed, undecided): (Vec<_>, Vec<_>) =
                mine().partition(|routed| routed.undecided.is_none());
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
                outcome.result.verdict = verdict;
                outcome.result.reason = outcome.result.findings.first().map(|finding| finding.reason.clone());
            }
            if outcome.result.verdict.is_good()
                && let Some(routed) = undecided.first()
                && let Some(verdict) = routed.undecided.clone()
            {
                outcome.result.verdict = verdict;
                if !matches!(outcome.result.verdict, Verdict::Flaky(_)) {
                    (self.done)(outcome);
                    continue;
                }
                outcome.result.reason = Some(routed.failure.finding.reason.clone());
                outcome.result.findings.push(routed.failure.finding.clone());
                outcome.failure = Some(routed.failure.clone());
            }
            (self.done)(outcome);
        }
    }
}

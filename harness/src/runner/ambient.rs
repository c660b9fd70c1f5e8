//! Ambient checks: each is told what the conversations of other checks show about its clauses.

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
    /// `seen/total` where it did not show again each time.
    flaky: Option<String>,
}

impl Round<'_> {
    /// The check that watches `clause` in every conversation: the one that runs the same command, where there is one.
    fn owner(&self, clause: &ClauseId, command: &str) -> Option<&String> {
        let owners = self.owners.get(clause)?;
        owners.iter().find(|(runs, _)| runs == command).or(owners.first()).map(|(_, id)| id)
    }

    /// Moves findings about clauses that another check watches over to that check. Each is confirmed as a failing check
    /// is: by the same conversation. Returns what masks this check, which is no pass without them.
    pub(super) fn route(
        &self,
        check: &Check,
        judgement: &mut Judgement,
        transcript: &Transcript,
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
                                && routed.flaky.is_none()
                                && routed.failure.finding.key() == finding.key()
                        })
                    };
                    if known(&lock(&self.routed)) {
                        continue;
                    }
                    let flaky = match self.confirm(check, Verdict::Fail, std::slice::from_ref(&finding)) {
                        Verdict::Flaky(times) => Some(times),
                        _ => None,
                    };
                    let mut routed = lock(&self.routed);
                    if !known(&routed) {
                        let (owner, transcript) = (owner.clone(), transcript.clone());
                        let failure = Failure { check: check.id.clone(), transcript, finding };
                        routed.push(Routed { owner, failure, flaky });
                    }
                }
                _ => own.push(finding),
            }
        }
        judgement.findings = own;
        masked
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
            let (confirmed, flaky): (Vec<_>, Vec<_>) = mine().partition(|routed| routed.flaky.is_none());
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
                && let Some(routed) = flaky.first()
            {
                outcome.result.verdict = Verdict::Flaky(routed.flaky.clone().unwrap_or_default());
                outcome.result.reason = Some(routed.failure.finding.reason.clone());
                outcome.result.findings.push(routed.failure.finding.clone());
                outcome.failure = Some(routed.failure.clone());
            }
            (self.done)(outcome);
        }
    }
}

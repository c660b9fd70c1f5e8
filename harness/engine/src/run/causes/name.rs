//! Names of causes: the finding that shows a fault most directly gives its clause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::key::{FaultKey, FaultSign};
use super::{Cause, Certainty, CheckFinding};
use crate::data::clause::{ClauseId, Level};
use crate::data::finding::Nature;
use crate::data::finding::occasion::MessageKind;
use crate::data::rung::Rung;
use crate::run::verdict::{CheckResult, Verdict, told_by};

/// Finding that names the cause.
pub(super) fn named<'a>(
    key: &FaultKey<'_>,
    seen: &[CheckFinding<'a>],
    spectrum: &Spectrum<'_>,
) -> CheckFinding<'a> {
    let votes = Votes::of(key, seen);
    let narrowest = seen.iter().min_by_key(|seen| Breadth::of(**seen, spectrum, &votes));
    narrowest.copied().unwrap_or(seen[0])
}

/// Sort key of a cause in reports:
///
/// 1. broken before flaky, expected and undecided,
/// 2. triggered by a correct counterpart before triggered by others ([`Rung`]),
/// 3. crash and hang before the rest,
/// 4. MUST before SHOULD,
/// 5. shown by its own check before shown by others, then many clauses broken in one manner before one clause, then shown
///    by a short conversation before a long one ([`Breadth`]),
/// 6. many checks failed or masked (`hit`), the checks of its clause failed, and many findings before fewer.
pub(super) fn rank(cause: &Cause, breadth: &Breadth<'_>, hit: u64) -> impl Ord + use<> {
    let ends_the_peer = matches!(cause.nature, Nature::Crash | Nature::Hang);
    (
        (cause.certainty, cause.rung, Reverse(ends_the_peer), cause.level),
        (breadth.is_plain, breadth.is_vehicle, breadth.is_aimed, breadth.is_second),
        (breadth.votes.0 == 0, breadth.messages),
        (Reverse(hit), breadth.suspicion, Reverse(cause.findings())),
        (cause.clause.clone(), cause.id.clone()),
    )
}

/// Counts of checks.
pub(super) struct Spectrum<'a> {
    /// Failed and passed checks, by their first clause.
    ended: BTreeMap<&'a str, (u32, u32)>,
    /// Masked checks, by the check that reports the fault and its reason code.
    masked: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Spectrum<'a> {
    pub(super) fn of(checks: &'a [CheckResult]) -> Self {
        let mut ended: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        let mut masked = BTreeMap::new();
        for check in checks {
            if let Verdict::Masked(mask) = &check.verdict
                && let Some(by) = told_by(mask)
            {
                *masked.entry(by).or_default() += 1;
            }
            let Some(first) = check.clauses.first() else { continue };
            let (failed, passed) = ended.entry(&first.id.0).or_default();
            *failed += u32::from(!check.findings.is_empty());
            *passed += u32::from(check.findings.is_empty() && check.verdict.is_good());
        }
        Self { ended, masked }
    }

    /// Number of checks that a cause fails or masks.
    pub(super) fn hit(&self, cause: &Cause) -> u64 {
        let masked = cause
            .checks
            .iter()
            .filter_map(|share| self.masked.get(&(share.check.as_str(), cause.reason.as_str())));
        (cause.checks.len() + masked.sum::<usize>()) as u64
    }

    /// Square of the Ochiai coefficient of a clause for one cause, in thousandths of the number of checks of the cause.
    fn suspicion(&self, clause: &ClauseId, votes: &Votes<'_>) -> u64 {
        let (failed, passed) = self.ended.get(clause.0.as_str()).copied().unwrap_or_default();
        let shown = votes.checks.get(clause).map_or(0, BTreeSet::len) as u64;
        1_000 * shown * shown / u64::from(failed + passed).max(shown).max(1)
    }

    /// Failed share of the checks of a clause, in thousandths.
    pub(super) fn failing_permille(&self, clause: &ClauseId) -> u32 {
        let (failed, passed) = self.ended.get(clause.0.as_str()).copied().unwrap_or_default();
        1_000 * failed / (failed + passed).max(1)
    }
}

pub(super) fn level(seen: CheckFinding<'_>) -> Level {
    let clauses = &seen.check.clauses;
    let own = clauses.iter().find(|clause| clause.id == seen.finding.clause);
    own.map_or(Level::Must, |clause| clause.level)
}

/// Maximum number of votes of one check for one clause.
pub(super) const VOTES_MAX: usize = 5;

/// Support for the clauses that the findings of a cause name.
pub(super) struct Votes<'a> {
    /// Number of findings by clause, for a cause that breaks many clauses in one manner. Of one check only a few count, so
    /// that a long conversation does not decide alone.
    findings: BTreeMap<&'a ClauseId, usize>,
    /// Checks with a finding, by clause.
    checks: BTreeMap<&'a ClauseId, BTreeSet<&'a str>>,
}

impl<'a> Votes<'a> {
    pub(super) fn of(key: &FaultKey<'_>, seen: &[CheckFinding<'a>]) -> Self {
        let mut checks: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut found: BTreeMap<_, usize> = BTreeMap::new();
        for seen in seen {
            checks.entry(&seen.finding.clause).or_default().insert(seen.check.id.as_str());
            let most = seen.votes_max();
            let votes = found.entry((seen.fault.0, seen.check.id.as_str())).or_default();
            *votes += usize::from(*votes < most);
        }
        let mut findings: BTreeMap<_, usize> = BTreeMap::new();
        for ((clause, _), count) in found.iter().filter(|_| matches!(key.sign, FaultSign::Manner)) {
            *findings.entry(*clause).or_default() += *count;
        }
        Self { findings, checks }
    }
}

/// Order of findings by how directly they show the fault; fields decide from first to last. The least finding names the
/// cause.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Breadth<'a> {
    /// A check that failed comes before one that is flaky or expected to fail.
    certainty: Certainty,
    /// A MUST comes before a SHOULD.
    level: Level,
    /// A finding that follows from another of its conversation comes last.
    follows: bool,
    /// A finding under the clause that the model names speaks before one under another clause of its step, where a check of
    /// the former shows the fault.
    is_borrowed: bool,
    /// A message that a correct counterpart sends comes before others.
    rung: Rung,
    /// A clause that many findings name speaks before one that few do, where many clauses are broken in one manner.
    votes: Reverse<usize>,
    /// A wrong answer to a plain request comes before all others.
    is_plain: Reverse<bool>,
    /// The first finding of a check, which its conversation shows, comes before the others.
    is_beside: bool,
    /// A message sent plainly comes before one that is cut, large or one of several in one write.
    is_vehicle: bool,
    /// A single message comes before one in an array.
    is_in_array: bool,
    /// A message that tests the clause comes before one for another clause or none.
    is_aimed: Reverse<bool>,
    /// A check that lists the clause first comes before others.
    is_second: bool,
    /// A clause whose checks show the cause, and that many of them do, comes first.
    suspicion: Reverse<u64>,
    /// A check of few clauses comes before one of many.
    clauses: usize,
    /// A short conversation comes before a long one.
    messages: usize,
    /// A check with few findings comes before one with many.
    findings: usize,
    clause: &'a ClauseId,
}

impl<'a> Breadth<'a> {
    pub(super) fn of(seen: CheckFinding<'a>, spectrum: &Spectrum<'_>, votes: &Votes<'_>) -> Self {
        let CheckFinding { check, finding, .. } = seen;
        let occasion = finding.occasion.as_ref();
        Self {
            certainty: Certainty::of(&check.verdict),
            level: level(seen),
            follows: seen.follows,
            is_borrowed: seen.is_borrowed,
            rung: seen.rung(),
            votes: Reverse(votes.findings.get(&finding.clause).copied().unwrap_or(0)),
            is_plain: Reverse(
                check.first_canary.is_some() && !matches!(finding.nature, Nature::Crash | Nature::Hang),
            ),
            is_beside: !seen.is_first(),
            is_vehicle: occasion.is_some_and(|it| it.is_vehicle),
            is_in_array: occasion.is_some_and(|it| it.stimulus == MessageKind::Array),
            is_aimed: Reverse(seen.is_aimed()),
            is_second: check.clauses.first().is_none_or(|first| first.id != finding.clause),
            suspicion: Reverse(spectrum.suspicion(&finding.clause, votes)),
            clauses: check.clauses.len(),
            messages: occasion.map_or(0, |it| it.messages),
            findings: check.findings.len(),
            clause: &finding.clause,
        }
    }
}

/// Amount to read before a finding is understood: the conversation of a check shows its first finding.
pub(super) fn length(seen: CheckFinding<'_>) -> impl Ord + use<'_> {
    let CheckFinding { check, finding, .. } = seen;
    (
        Certainty::of(&check.verdict),
        !seen.is_first(),
        check.conversation.is_empty(),
        finding.occasion.as_ref().is_some_and(|occasion| occasion.is_vehicle),
        seen.rung(),
        Reverse(finding.occasion.as_ref().is_some_and(|occasion| occasion.is_aimed)),
        // The title of the check is to be about the clause.
        check.clauses.first().is_none_or(|first| first.id != finding.clause),
        // Shrinking must not change the choice: the folder of the reproducer has the number of the cause.
        finding.occasion.as_ref().map_or(0, |occasion| occasion.messages),
        check.findings.len(),
        &check.id,
    )
}

//! Causes: the faults of a peer, each with all findings that disappear when it is fixed.
//!
//! [`causes`] computes them only from the records of a run, so that all reports of the run agree.

mod general;
mod key;
mod name;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::data::clause::{ClauseId, Level};
use crate::data::finding::occasion::{self, EXIT_STATUS, MessageKind, Occasion};
use crate::data::finding::{CANARY_FAILED, Finding, Nature};
use crate::data::rung::Rung;
use crate::run::verdict::{CheckResult, Verdict};
use general::General;
use key::{ClauseOnlyKey, FaultKey, FaultSign, died_with};
use name::{Breadth, Spectrum, VOTES_MAX, Votes, length, level, named, rank};

/// Reason codes of answers to messages that must be refused.
const ACCEPTED: [&str; 4] = ["accepted", "taken", "was_run", "ran_refused_request"];
/// Share of failed checks, in thousandths, from which a clause counts as broken by itself.
const FAILING_PERMILLE_MIN: u32 = 500;

/// Fault of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Hash of its key; equal in every run.
    pub id: String,
    /// Clause that names the cause.
    pub clause: ClauseId,
    /// Level of the clause.
    pub level: Level,
    /// Most ordinary rung among its checks.
    #[serde(default, skip_serializing_if = "Rung::is_usual")]
    pub rung: Rung,
    /// Gravest nature among its findings.
    pub nature: Nature,
    /// Certainty of its gravest check.
    pub certainty: Certainty,
    /// Reason code of its findings.
    pub reason: String,
    /// JSON Pointer to the wrong place of an answer, with `*` for array indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Check whose conversation shows the cause best.
    pub check: String,
    /// Allowed behaviour, in that check.
    pub expected: String,
    /// Behaviour of the peer, in that check.
    pub got: String,
    /// All checks with findings of this cause, by id.
    pub checks: Vec<Share>,
}

/// Findings that one check adds to a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Id of the check.
    pub check: String,
    /// Number of its findings.
    pub findings: usize,
}

/// Certainty of a cause, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// A check failed because of the cause.
    Broken,
    /// The cause showed only in some repetitions.
    Flaky,
    /// The expectations file lists it for each of its checks.
    Expected,
    /// No check reached a verdict about it.
    Undecided,
}

impl Certainty {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Flaky(_) => Self::Flaky,
            Verdict::Expected(_) => Self::Expected,
            verdict if verdict.is_failure() => Self::Broken,
            _ => Self::Undecided,
        }
    }
}

impl Cause {
    /// True if reports list it: it is neither expected nor undecided.
    pub fn is_told(&self) -> bool {
        matches!(self.certainty, Certainty::Broken | Certainty::Flaky)
    }

    /// True if the peer accepts messages that must be refused.
    pub fn is_acceptance(&self) -> bool {
        ACCEPTED.contains(&self.reason.as_str())
    }

    /// Number of its findings.
    pub fn findings(&self) -> usize {
        self.checks.iter().map(|share| share.findings).sum()
    }
}

/// Finding with the check that made it.
#[derive(Clone, Copy)]
struct CheckFinding<'a> {
    check: &'a CheckResult,
    finding: &'a Finding,
    /// Name of its fault.
    fault: Name<'a>,
    /// The fault has the name of another clause, and a check of that clause shows it.
    is_borrowed: bool,
    /// Set if the finding only follows from an earlier one of its conversation and nothing else shows its fault.
    follows: bool,
}

impl<'a> CheckFinding<'a> {
    fn new(check: &'a CheckResult, finding: &'a Finding, owners: &Owners<'a>) -> Self {
        let fault = owners.fault(finding);
        let is_borrowed = *fault.0 != finding.clause && owners.shown.contains(&fault);
        Self { check, finding, fault, is_borrowed, follows: false }
    }

    fn is_first(&self) -> bool {
        self.check.findings.first() == Some(self.finding)
    }

    /// Maximum number of votes of its check for its clause. Whatever a peer loses, the message may be for any clause, so
    /// only the check of the clause has a vote, and only for a message sent plainly.
    fn votes_max(&self) -> usize {
        let is_plainly_aimed =
            |it: &Occasion| it.is_aimed && !it.is_vehicle && it.stimulus != MessageKind::Array;
        match &self.finding.occasion {
            Some(occasion) if self.finding.lacks_answer() => usize::from(is_plainly_aimed(occasion)),
            _ => VOTES_MAX,
        }
    }

    /// True if the message was sent to test the clause. A canary only shows that the peer is still there, but one that is dead
    /// died of the message before it.
    fn is_aimed(&self) -> bool {
        let tells = self.finding.reason != CANARY_FAILED || self.finding.nature == Nature::Crash;
        tells && self.finding.occasion.as_ref().is_some_and(|it| it.is_aimed)
    }

    /// Rung of the message behind the finding. A correct counterpart never sends a message that must be refused.
    fn rung(&self) -> Rung {
        let is_of_refusal = ACCEPTED.contains(&self.fault.1);
        if is_of_refusal { self.check.rung.max(Rung::Malformed) } else { self.check.rung }
    }
}

/// Clause and reason code of a fault.
type Name<'a> = (&'a ClauseId, &'a str);

/// Names of faults that a check shows plainly, by a message sent for the clause that it lists first.
#[derive(Default)]
struct Owners<'a> {
    shown: BTreeSet<Name<'a>>,
    /// Those of clauses most of whose checks fail.
    failing: BTreeSet<Name<'a>>,
}

impl<'a> Owners<'a> {
    fn of(checks: &'a [CheckResult], spectrum: &Spectrum<'_>) -> Self {
        let mut owners = Self::default();
        for check in checks {
            let Some((finding, clause)) = check.findings.first().zip(check.clauses.first()) else { continue };
            let Some(occasion) = &finding.occasion else { continue };
            if clause.id != finding.clause || !occasion.is_aimed || occasion.is_vehicle {
                continue;
            }
            let by_itself = occasion.by_itself.as_ref().filter(|it| it.clause == finding.clause);
            let reasons = [Some(&finding.reason), by_itself.map(|it| &it.reason)];
            let names = reasons.into_iter().flatten().map(|reason| (&finding.clause, reason.as_str()));
            owners.shown.extend(names.clone());
            if spectrum.failing_permille(&finding.clause) >= FAILING_PERMILLE_MIN {
                owners.failing.extend(names);
            }
        }
        owners
    }

    /// The name of a fault: as the model names it, where that tells it from others, else that of the finding. A name that says
    /// only that a right message was answered wrongly tells it where most checks of its clause fail.
    fn fault(&self, finding: &'a Finding) -> Name<'a> {
        let by_itself = finding.occasion.as_ref().and_then(|it| it.by_itself.as_ref());
        let named = by_itself.map(|it| (it.tells(), (&it.clause, it.reason.as_str())));
        let named = named.filter(|(tells, name)| *tells || self.failing.contains(name));
        named.map_or((&finding.clause, &finding.reason), |(_, name)| name)
    }
}

/// Finding with its own key.
type Keyed<'a> = (FaultKey<'a>, CheckFinding<'a>);

/// Computes the causes of all findings of a run in the order in which to fix them: causes that end the peer, then MUST,
/// then SHOULD. Equal findings of a check are counted. Each finding belongs to exactly one cause. The order of `checks`
/// does not matter.
pub fn causes(checks: &[CheckResult]) -> Vec<Cause> {
    let spectrum = Spectrum::of(checks);
    let owners = Owners::of(checks, &spectrum);
    let found = checks.iter().flat_map(|check| check.findings.iter().map(move |finding| (check, finding)));
    let seen = found.map(|(check, finding)| CheckFinding::new(check, finding, &owners));
    let keyed: Vec<Keyed<'_>> =
        seen.map(|seen| (FaultKey::of(&seen.check.id, seen.finding, seen.fault), seen)).collect();
    let (plain, general) = (plain_faults(&keyed), General::of(checks, &keyed));
    let mut grouped: Vec<Keyed<'_>> = Vec::with_capacity(keyed.len());
    for (own, seen) in &keyed {
        let as_plain =
            own.manner_of_plain(seen.finding).and_then(|manner| plain.get(&manner).copied().cloned());
        let key = as_plain
            .or_else(|| of_death(&keyed, own, seen.finding))
            .or_else(|| general.key(own, *seen))
            .unwrap_or_else(|| own.clone());
        grouped.push((key, *seen));
    }
    join_places(&mut grouped);
    join_consequences(&mut grouped);
    let mut groups: BTreeMap<FaultKey<'_>, Vec<CheckFinding<'_>>> = BTreeMap::new();
    for (key, seen) in grouped {
        groups.entry(key).or_default().push(seen);
    }
    let groups = join_neighbours(join_names(groups, &spectrum), &spectrum);
    let mut causes: Vec<(Cause, Breadth<'_>)> =
        groups.iter().map(|(key, seen)| cause(key, seen, &spectrum)).collect();
    causes.sort_by_key(|(cause, breadth)| rank(cause, breadth, spectrum.hit(cause)));
    let causes: Vec<Cause> = causes.into_iter().map(|(cause, _)| cause).collect();
    debug_assert_eq!(
        causes.iter().map(Cause::findings).sum::<usize>(),
        checks.iter().map(|check| check.findings.len()).sum::<usize>(),
        "every finding belongs to one cause"
    );
    causes
}

/// Key of the crash by the error that a peer wrote before it ended with a wrong exit status. At the end of input, the exit
/// status is the only sign of a crash.
fn of_death<'a>(keyed: &[Keyed<'a>], own: &FaultKey<'a>, finding: &Finding) -> Option<FaultKey<'a>> {
    let error = died_with(finding).filter(|_| finding.reason == EXIT_STATUS)?;
    let is_it = |key: &FaultKey<'_>| {
        key.sign == FaultSign::Died(error) && (key.boundary, key.program) == (own.boundary, own.program)
    };
    keyed.iter().map(|(key, _)| key).find(|key| is_it(key)).cloned()
}

/// Number of places from which findings of one clause and reason count as one fault.
const PLACES_MIN: usize = 3;

/// Gives one key to findings that break one clause in one way at many places.
fn join_places(keyed: &mut [Keyed<'_>]) {
    let mut places: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (key, seen) in &*keyed {
        if let FaultSign::Place { at, .. } = &key.sign {
            places.entry((key.program, key.reason, &seen.finding.clause)).or_default().insert(at.clone());
        }
    }
    for (key, seen) in keyed {
        let clause = &seen.finding.clause;
        if matches!(key.sign, FaultSign::Place { .. })
            && places.get(&(key.program, key.reason, clause)).is_some_and(|places| places.len() >= PLACES_MIN)
        {
            key.sign = FaultSign::Places(&clause.0);
        }
    }
}

/// Reason codes of values that an earlier fault can change.
const OF_VALUES: [&str; 3] = ["wrong_id", "wrong_code", "wrong_version"];

/// True if an earlier fault can lead to a finding. A member of a wrong form is a fault of its own.
fn can_follow(key: &FaultKey<'_>, finding: &Finding) -> bool {
    let is_of_form = occasion::tells(&finding.reason) && !OF_VALUES.contains(&finding.reason.as_str());
    !(is_of_form && matches!(key.sign, FaultSign::Place { .. }))
}

/// Gives a later finding the key of the first finding of its check, unless some check shows its fault first: an early
/// fault often leads to later ones.
fn join_consequences(keyed: &mut [Keyed<'_>]) {
    let firsts: BTreeMap<&str, (FaultKey<'_>, Option<usize>)> = keyed
        .iter()
        .filter(|(_, seen)| seen.is_first() && seen.check.verdict.is_failure())
        .map(|(key, seen)| (seen.check.id.as_str(), (key.clone(), seen.finding.step)))
        .collect();
    let leading: BTreeSet<FaultKey<'_>> =
        keyed.iter().filter(|(_, seen)| seen.is_first()).map(|(key, _)| key.clone()).collect();
    for (key, seen) in keyed {
        let Some((first, step)) = firsts.get(seen.check.id.as_str()) else { continue };
        let is_later = step.is_some() && seen.finding.step > *step;
        if is_later && !seen.is_first() && can_follow(key, seen.finding) && !leading.contains(key) {
            *key = first.clone();
            seen.follows = true;
        }
    }
}

/// Joins groups that a report would give one clause and one reason.
fn join_names<'a>(
    groups: BTreeMap<FaultKey<'a>, Vec<CheckFinding<'a>>>,
    spectrum: &Spectrum<'_>,
) -> BTreeMap<FaultKey<'a>, Vec<CheckFinding<'a>>> {
    let name = |(key, seen): (&FaultKey<'a>, &Vec<CheckFinding<'a>>)| {
        let sign = FaultSign::Clause(&named(key, seen, spectrum).finding.clause.0);
        (!matches!(key.sign, FaultSign::Place { .. })).then(|| FaultKey { sign, ..key.clone() })
    };
    let names: Vec<Option<FaultKey<'a>>> = groups.iter().map(name).collect();
    let mut joined: BTreeMap<FaultKey<'a>, Vec<CheckFinding<'a>>> = BTreeMap::new();
    for ((key, seen), name) in groups.into_iter().zip(&names) {
        let is_shared = name.is_some() && names.iter().filter(|other| *other == name).count() > 1;
        let key = name.clone().filter(|_| is_shared).unwrap_or(key);
        joined.entry(key).or_default().extend(seen);
    }
    joined
}

/// Puts groups together that are told by one clause, where a check shows both.
fn join_neighbours<'a>(
    groups: BTreeMap<FaultKey<'a>, Vec<CheckFinding<'a>>>,
    spectrum: &Spectrum<'_>,
) -> BTreeMap<FaultKey<'a>, Vec<CheckFinding<'a>>> {
    let mut joined: Vec<(FaultKey<'a>, Vec<CheckFinding<'a>>)> = Vec::new();
    for (mut key, mut all) in groups {
        let clause = &named(&key, &all, spectrum).finding.clause;
        let shown: BTreeSet<&str> = all.iter().map(|seen| seen.check.id.as_str()).collect();
        let is_neighbour = |(other, seen): &mut (FaultKey<'a>, Vec<CheckFinding<'a>>)| {
            !matches!(key.sign, FaultSign::Place { .. })
                && !matches!(other.sign, FaultSign::Place { .. })
                && (other.boundary, other.program) == (key.boundary, key.program)
                && named(other, seen, spectrum).finding.clause == *clause
                && seen.iter().any(|seen| shown.contains(seen.check.id.as_str()))
        };
        let neighbours: Vec<_> = joined.extract_if(.., is_neighbour).collect();
        for (other, seen) in neighbours {
            all.extend(seen);
            if other.sign < key.sign {
                key = other;
            }
        }
        joined.push((key, all));
    }
    joined.into_iter().collect()
}

/// Wrong answers to first canaries, each with the key of its cause. A peer that answers plain requests and others
/// wrongly in one manner has one fault.
fn plain_faults<'k, 'a>(keyed: &'k [Keyed<'a>]) -> BTreeMap<ClauseOnlyKey<'a>, &'k FaultKey<'a>> {
    let of_canaries = keyed.iter().filter(|(_, seen)| seen.check.first_canary.is_some());
    of_canaries.filter_map(|(key, seen)| Some((key.manner_of_plain(seen.finding)?, key))).collect()
}

/// Id of a finding's cause, computed from this finding alone.
pub fn id_of(check: &str, finding: &Finding) -> String {
    FaultKey::of(check, finding, Owners::default().fault(finding)).id()
}

fn cause<'a>(key: &FaultKey<'_>, seen: &[CheckFinding<'a>], spectrum: &Spectrum<'_>) -> (Cause, Breadth<'a>) {
    let (votes, named) = (Votes::of(key, seen), named(key, seen, spectrum));
    let clause = &named.finding.clause;
    let of_clause = seen.iter().filter(|seen| seen.finding.clause == *clause);
    let shown = of_clause.min_by_key(|seen| length(**seen)).map_or(named, |seen| *seen);
    let mut checks: BTreeMap<&str, usize> = BTreeMap::new();
    for CheckFinding { check, .. } in seen {
        *checks.entry(&check.id).or_default() += 1;
    }
    let cause = Cause {
        id: key.id(),
        clause: clause.clone(),
        level: level(named),
        rung: seen.iter().map(CheckFinding::rung).min().unwrap_or_default(),
        nature: seen.iter().map(|seen| seen.finding.nature).max().unwrap_or(Nature::Violation),
        certainty: seen
            .iter()
            .map(|seen| Certainty::of(&seen.check.verdict))
            .min()
            .unwrap_or(Certainty::Undecided),
        reason: shown.finding.reason.clone(),
        place: match &key.sign {
            FaultSign::Place { at, .. } => Some(at.clone()),
            _ => None,
        },
        check: shown.check.id.clone(),
        expected: shown.finding.expected.clone(),
        got: shown.finding.got.clone(),
        checks: checks
            .into_iter()
            .map(|(check, findings)| Share { check: check.to_owned(), findings })
            .collect(),
    };
    (cause, Breadth::of(named, spectrum, &votes))
}

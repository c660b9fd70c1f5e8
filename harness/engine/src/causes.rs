//! Causes: the faults of a peer, each with all findings that disappear when it is fixed.
//!
//! [`causes`] computes them from the records of a run alone, so that every report of the run has the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clause::{ClauseId, Level};
use crate::finding::occasion::Stimulus;
use crate::finding::{Finding, Nature, Repair};
use crate::rung::Rung;
use crate::text::hex;
use crate::verdict::{CheckResult, Verdict};

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 12;
/// Longest value that is part of a key: longer ones are results and texts.
const TARGET_BYTES_MAX: usize = 40;

/// One fault of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Hash of its key: the same in every run.
    pub id: String,
    /// Clause that names it.
    pub clause: ClauseId,
    /// Level of that clause.
    pub level: Level,
    /// Nearest rung among its checks.
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
    /// Check whose conversation shows it best.
    pub check: String,
    /// Allowed behaviour, in that check.
    pub expected: String,
    /// Behaviour of the peer, in that check.
    pub got: String,
    /// All checks with findings of it, by id.
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
    /// A check failed for it.
    Broken,
    /// It showed in some repetitions only.
    Flaky,
    /// The expectations file lists it for each of its checks.
    Expected,
    /// No check came to a verdict about it.
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
    /// True where reports tell of it: it is neither expected nor undecided.
    pub fn is_told(&self) -> bool {
        matches!(self.certainty, Certainty::Broken | Certainty::Flaky)
    }

    /// Number of its findings.
    pub fn findings(&self) -> usize {
        self.checks.iter().map(|share| share.findings).sum()
    }
}

/// A finding with the check that made it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    check: &'a CheckResult,
    finding: &'a Finding,
}

/// A finding with the key that it has by itself.
type Keyed<'a> = (Key<'a>, Seen<'a>);

/// The causes of all findings of a run, in the order in which they are to be mended: what ends the peer, then MUST, then
/// SHOULD. Equal findings of a check are counted. Each finding belongs to exactly one. The order of `checks` does not matter.
pub fn causes(checks: &[CheckResult]) -> Vec<Cause> {
    let seen =
        checks.iter().flat_map(|check| check.findings.iter().map(move |finding| Seen { check, finding }));
    let keyed: Vec<Keyed<'_>> = seen.map(|seen| (Key::of(&seen.check.id, seen.finding), seen)).collect();
    let (plain, general) = (plain_faults(&keyed), General::of(checks, &keyed));
    let mut groups: BTreeMap<Key<'_>, Vec<Seen<'_>>> = BTreeMap::new();
    for (own, seen) in &keyed {
        let as_plain = own.manner(seen.finding).and_then(|manner| plain.get(&manner).copied().cloned());
        let key = as_plain.or_else(|| general.key(own, *seen)).unwrap_or_else(|| own.clone());
        groups.entry(key).or_default().push(*seen);
    }
    let spectrum = Spectrum::of(checks);
    let mut causes: Vec<(Cause, Breadth<'_>)> =
        groups.iter().map(|(key, seen)| cause(key, seen, &spectrum)).collect();
    causes.sort_by_key(|(cause, breadth)| rank(cause, breadth));
    let causes: Vec<Cause> = causes.into_iter().map(|(cause, _)| cause).collect();
    debug_assert_eq!(
        causes.iter().map(Cause::findings).sum::<usize>(),
        checks.iter().map(|check| check.findings.len()).sum::<usize>(),
        "every finding belongs to one cause"
    );
    causes
}

/// Wrong answers to first canaries, each with the key of its cause. A peer that answers a plain request in one manner and other
/// requests in the same manner has one fault.
fn plain_faults<'k, 'a>(keyed: &'k [Keyed<'a>]) -> BTreeMap<Manner<'a>, &'k Key<'a>> {
    let of_canaries = keyed.iter().filter(|(_, seen)| seen.check.first_canary.is_some());
    of_canaries.filter_map(|(key, seen)| Some((key.manner(seen.finding)?, key))).collect()
}

/// Fewest places, or checks of a folder, that show one fault of the whole rather than a fault each.
const GENERAL_MIN: usize = 4;

/// Faults that are more general than their findings: many members beside each other are wrong in one way, or all checks of a
/// folder fail in one manner, as those of a peer without a validator do.
struct General<'k, 'a> {
    /// Names of wrong members by command, reason and the place that holds them.
    members: BTreeMap<(&'a str, &'a str, &'k str), BTreeSet<&'k str>>,
    /// Checks that fail in a manner, by that and their folder.
    folders: BTreeMap<(Manner<'a>, &'a str), BTreeSet<&'a str>>,
    /// Numbers of checks that were decided, by folder.
    decided: BTreeMap<&'a str, usize>,
}

impl<'k, 'a> General<'k, 'a> {
    fn of(checks: &'a [CheckResult], keyed: &'k [Keyed<'a>]) -> Self {
        let mut general =
            Self { members: BTreeMap::new(), folders: BTreeMap::new(), decided: BTreeMap::new() };
        for check in checks.iter().filter(|check| check.verdict.is_good() || check.verdict.is_failure()) {
            *general.decided.entry(check.topic()).or_default() += 1;
        }
        for (key, Seen { check, finding }) in keyed {
            if let Some((holder, name)) = key.holder() {
                general.members.entry((key.command, key.reason, holder)).or_default().insert(name);
            } else if let Some(manner) = key.manner(finding) {
                general.folders.entry((manner, check.topic())).or_default().insert(&check.id);
            }
        }
        general
    }

    /// The key of the general fault that a finding belongs to.
    fn key(&self, own: &Key<'a>, seen: Seen<'a>) -> Option<Key<'a>> {
        let sign = if let Some((holder, _)) = own.holder() {
            let names = self.members.get(&(own.command, own.reason, holder))?;
            let at = format!("{holder}/*");
            (names.len() >= GENERAL_MIN).then_some(Sign::Place { at, to: None })?
        } else {
            let folder = seen.check.topic();
            let checks = self.folders.get(&(own.manner(seen.finding)?, folder))?;
            let is_all = checks.len() >= GENERAL_MIN && Some(&checks.len()) == self.decided.get(folder);
            is_all.then_some(Sign::Folder(folder))?
        };
        Some(Key { sign, ..own.clone() })
    }
}

/// Id of the cause that a finding of a check belongs to, as far as the finding alone tells.
pub fn id_of(check: &str, finding: &Finding) -> String {
    Key::of(check, finding).id()
}

/// Place of a cause in reports:
///
/// 1. what is sure before what is flaky or expected,
/// 2. what a correct counterpart brings about before what others do ([`Rung`]),
/// 3. crash and hang before the rest,
/// 4. MUST before SHOULD,
/// 5. what its own check shows before what others show ([`Breadth`]),
/// 6. what fails many checks, and most checks of its clause, before what fails few.
fn rank(cause: &Cause, breadth: &Breadth<'_>) -> impl Ord + use<> {
    let ends_the_peer = matches!(cause.nature, Nature::Crash | Nature::Hang);
    (
        (cause.certainty, cause.rung, Reverse(ends_the_peer), cause.level),
        (breadth.is_plain, breadth.is_vehicle, breadth.is_aimed, breadth.is_second),
        Reverse(u64::from(breadth.failing_permille.0) * cause.checks.len() as u64),
        (cause.clause.clone(), cause.id.clone()),
    )
}

/// Numbers of checks that failed and that passed, by the clause that they list first.
struct Spectrum<'a>(BTreeMap<&'a str, (u32, u32)>);

impl<'a> Spectrum<'a> {
    fn of(checks: &'a [CheckResult]) -> Self {
        let mut ended: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for check in checks {
            let Some(first) = check.clauses.first() else { continue };
            let (failed, passed) = ended.entry(&first.id.0).or_default();
            *failed += u32::from(!check.findings.is_empty());
            *passed += u32::from(check.findings.is_empty() && check.verdict.is_good());
        }
        Self(ended)
    }

    /// Share of the checks of a clause that failed, in thousandths.
    fn failing_permille(&self, clause: &ClauseId) -> u32 {
        let (failed, passed) = self.0.get(clause.0.as_str()).copied().unwrap_or_default();
        1_000 * failed / (failed + passed).max(1)
    }
}

/// Boundary, command, reason and repair of a finding that has no other sign than its clause.
type Manner<'a> = (&'a str, &'a str, &'a str, &'a Repair);

/// Identity of a fault: findings with equal keys belong to one cause.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    boundary: &'a str,
    command: &'a str,
    reason: &'a str,
    sign: Sign<'a>,
}

/// The part of a key that names the fault.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Sign<'a> {
    /// Another value belongs in a place of the answer. What it is counts unless it depends on the message.
    Place { at: String, to: Option<&'a str> },
    /// The peer broke down at a message that holds no request.
    Breakdown(Stimulus),
    /// All checks of a folder fail in one manner.
    Folder(&'a str),
    /// Nothing but the clause is known.
    Clause(&'a str),
}

impl<'a> Key<'a> {
    fn of(check: &'a str, finding: &'a Finding) -> Self {
        let mut parts = check.split('/');
        let boundary = parts.next().unwrap_or_default();
        let occasion = finding.occasion.as_ref();
        // Records of earlier versions lack the occasion.
        let command = occasion.map_or_else(|| parts.next().unwrap_or_default(), |it| it.command.as_str());
        let sign = match &finding.repair {
            Some(Repair::Set { at, to }) if !at.is_empty() => Sign::Place {
                at: without_indices(at),
                to: to
                    .as_deref()
                    .filter(|to| to.len() <= TARGET_BYTES_MAX && !occasion.is_some_and(|it| it.is_echo)),
            },
            _ => {
                let broke_down = matches!(finding.nature, Nature::Crash | Nature::Hang);
                let stimulus = occasion.map(|it| it.stimulus).filter(|it| broke_down && it.has_no_meaning());
                stimulus.map_or(Sign::Clause(&finding.clause.0), Sign::Breakdown)
            }
        };
        Self { boundary, command, reason: &finding.reason, sign }
    }

    /// The place that holds the wrong member, and the name of the member.
    fn holder(&self) -> Option<(&str, &str)> {
        match &self.sign {
            Sign::Place { at, .. } => at.rsplit_once('/'),
            _ => None,
        }
    }

    fn manner(&self, finding: &'a Finding) -> Option<Manner<'a>> {
        let repair = finding.repair.as_ref().filter(|_| matches!(self.sign, Sign::Clause(_)))?;
        Some((self.boundary, self.command, self.reason, repair))
    }

    fn id(&self) -> String {
        let Self { boundary, command, reason, sign } = self;
        let sign = match sign {
            Sign::Place { at, to } => format!("{at}\n{}", to.unwrap_or_default()),
            Sign::Breakdown(stimulus) => format!("{stimulus:?}"),
            Sign::Folder(folder) => (*folder).to_owned(),
            Sign::Clause(clause) => (*clause).to_owned(),
        };
        let mut id = hex(&Sha256::digest(format!("{boundary}\n{command}\n{reason}\n{sign}")));
        id.truncate(ID_DIGITS);
        id
    }
}

/// A JSON Pointer with `*` for each array index.
fn without_indices(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = pointer.split('/').map(|part| if is_index(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn cause<'a>(key: &Key<'_>, seen: &[Seen<'a>], spectrum: &Spectrum<'_>) -> (Cause, Breadth<'a>) {
    let breadth = |seen: &&Seen<'a>| Breadth::of(**seen, spectrum);
    let named = seen.iter().min_by_key(breadth).map_or(seen[0], |seen| *seen);
    let clause = &named.finding.clause;
    let of_clause = seen.iter().filter(|seen| seen.finding.clause == *clause);
    let shown = of_clause.min_by_key(|seen| length(**seen)).map_or(named, |seen| *seen);
    let mut checks: BTreeMap<&str, usize> = BTreeMap::new();
    for Seen { check, .. } in seen {
        *checks.entry(&check.id).or_default() += 1;
    }
    let cause = Cause {
        id: key.id(),
        clause: clause.clone(),
        level: level(named),
        rung: seen.iter().map(|seen| seen.check.rung).min().unwrap_or_default(),
        nature: seen.iter().map(|seen| seen.finding.nature).max().unwrap_or(Nature::Violation),
        certainty: seen
            .iter()
            .map(|seen| Certainty::of(&seen.check.verdict))
            .min()
            .unwrap_or(Certainty::Undecided),
        reason: shown.finding.reason.clone(),
        place: match &key.sign {
            Sign::Place { at, .. } => Some(at.clone()),
            Sign::Breakdown(_) | Sign::Folder(_) | Sign::Clause(_) => None,
        },
        check: shown.check.id.clone(),
        expected: shown.finding.expected.clone(),
        got: shown.finding.got.clone(),
        checks: checks
            .into_iter()
            .map(|(check, findings)| Share { check: check.to_owned(), findings })
            .collect(),
    };
    (cause, Breadth::of(named, spectrum))
}

fn level(seen: Seen<'_>) -> Level {
    let clauses = &seen.check.clauses;
    let own = clauses.iter().find(|clause| clause.id == seen.finding.clause);
    own.map_or(Level::Must, |clause| clause.level)
}

/// Distance of a finding from showing the clause that it names alone; the fields decide from first to last. The nearest
/// finding names its cause.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Breadth<'a> {
    /// A check that failed speaks before one that is flaky or expected to fail.
    certainty: Certainty,
    /// A MUST speaks before a SHOULD.
    level: Level,
    /// A message that a correct counterpart sends speaks before others.
    rung: Rung,
    /// A wrong answer to a plain request speaks before all others.
    is_plain: Reverse<bool>,
    /// The first finding of a check, which its conversation shows, speaks before the others.
    is_beside: bool,
    /// A message that is sent plainly speaks before one that is cut, large or one of several in one write.
    is_vehicle: bool,
    /// A message that is sent for the clause speaks before one for another, or for none.
    is_aimed: Reverse<bool>,
    /// A check that lists the clause first speaks before one that does not.
    is_second: bool,
    /// A clause most of whose checks fail speaks before one most of whose checks pass, in thousandths.
    failing_permille: Reverse<u32>,
    /// A check of few clauses speaks before one of many.
    clauses: usize,
    /// A short conversation speaks before a long one.
    messages: usize,
    /// A check with few findings speaks before one with many.
    findings: usize,
    clause: &'a ClauseId,
}

impl<'a> Breadth<'a> {
    fn of(seen: Seen<'a>, spectrum: &Spectrum<'_>) -> Self {
        let Seen { check, finding } = seen;
        let occasion = finding.occasion.as_ref();
        Self {
            certainty: Certainty::of(&check.verdict),
            level: level(seen),
            rung: check.rung,
            is_plain: Reverse(
                check.first_canary.is_some() && !matches!(finding.nature, Nature::Crash | Nature::Hang),
            ),
            is_beside: check.findings.first() != Some(finding),
            is_vehicle: occasion.is_some_and(|it| it.is_vehicle),
            is_aimed: Reverse(occasion.is_some_and(|it| it.is_aimed)),
            is_second: check.clauses.first().is_none_or(|first| first.id != finding.clause),
            failing_permille: Reverse(spectrum.failing_permille(&finding.clause)),
            clauses: check.clauses.len(),
            messages: occasion.map_or(0, |it| it.messages),
            findings: check.findings.len(),
            clause: &finding.clause,
        }
    }
}

/// Amount to read before a finding is understood. The conversation of a check shows its first finding.
fn length(seen: Seen<'_>) -> impl Ord + use<'_> {
    let Seen { check, finding } = seen;
    (
        Certainty::of(&check.verdict),
        check.findings.first() != Some(finding),
        check.conversation.is_empty(),
        finding.occasion.as_ref().is_some_and(|occasion| occasion.is_vehicle),
        check.conversation.len(),
        check.findings.len(),
        &check.id,
    )
}

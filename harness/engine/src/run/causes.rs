//! Causes: the faults of a peer, each with all findings that disappear when it is fixed.
//!
//! [`causes`] computes them only from the records of a run, so that all reports of the run agree.

mod general;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::data::clause::{ClauseId, Level};
use crate::data::finding::occasion::{EXIT_STATUS, MessageKind, Occasion};
use crate::data::finding::{CANARY_FAILED, Finding, Nature, Repair};
use crate::data::rung::Rung;
use crate::data::text::hex;
use crate::run::verdict::{CheckResult, Verdict, told_by};
use general::General;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 12;
/// Reason codes of answers to messages that must be refused.
const ACCEPTED: [&str; 4] = ["accepted", "taken", "was_run", "ran_refused_request"];
/// Share of failed checks, in thousandths, from which a clause counts as broken by itself.
const FAILING_PERMILLE_MIN: u32 = 500;
/// Maximum length of a value in a key: longer values are results and texts.
const TARGET_BYTES_MAX: usize = 40;

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
        if is_later && !seen.is_first() && !leading.contains(key) {
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

/// Finding that names the cause.
fn named<'a>(key: &FaultKey<'_>, seen: &[CheckFinding<'a>], spectrum: &Spectrum<'_>) -> CheckFinding<'a> {
    let votes = Votes::of(key, seen);
    let narrowest = seen.iter().min_by_key(|seen| Breadth::of(**seen, spectrum, &votes));
    narrowest.copied().unwrap_or(seen[0])
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

/// Sort key of a cause in reports:
///
/// 1. broken before flaky, expected and undecided,
/// 2. triggered by a correct counterpart before triggered by others ([`Rung`]),
/// 3. crash and hang before the rest,
/// 4. MUST before SHOULD,
/// 5. shown by its own check before shown by others, then many clauses broken in one manner before one clause, then shown
///    by a short conversation before a long one ([`Breadth`]),
/// 6. many checks failed or masked (`hit`), most checks of its clause failed, and many findings before fewer.
fn rank(cause: &Cause, breadth: &Breadth<'_>, hit: u64) -> impl Ord + use<> {
    let ends_the_peer = matches!(cause.nature, Nature::Crash | Nature::Hang);
    (
        (cause.certainty, cause.rung, Reverse(ends_the_peer), cause.level),
        (breadth.is_plain, breadth.is_vehicle, breadth.is_aimed, breadth.is_second),
        (breadth.votes.0 == 0, breadth.messages),
        (Reverse(hit), breadth.failing_permille, Reverse(cause.findings())),
        (cause.clause.clone(), cause.id.clone()),
    )
}

/// Counts of checks.
struct Spectrum<'a> {
    /// Failed and passed checks, by their first clause.
    ended: BTreeMap<&'a str, (u32, u32)>,
    /// Masked checks, by the check that reports the fault and its reason code.
    masked: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Spectrum<'a> {
    fn of(checks: &'a [CheckResult]) -> Self {
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
    fn hit(&self, cause: &Cause) -> u64 {
        let masked = cause
            .checks
            .iter()
            .filter_map(|share| self.masked.get(&(share.check.as_str(), cause.reason.as_str())));
        (cause.checks.len() + masked.sum::<usize>()) as u64
    }

    /// Failed share of the checks of a clause, in thousandths.
    fn failing_permille(&self, clause: &ClauseId) -> u32 {
        let (failed, passed) = self.ended.get(clause.0.as_str()).copied().unwrap_or_default();
        1_000 * failed / (failed + passed).max(1)
    }
}

/// Boundary, program, reason and repair of a finding whose only sign is its clause.
type ClauseOnlyKey<'a> = (&'a str, &'a str, &'a str, Option<&'a Repair>);

/// Identity of a fault. Findings with equal keys belong to one cause.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FaultKey<'a> {
    boundary: &'a str,
    program: &'a str,
    reason: &'a str,
    sign: FaultSign<'a>,
}

/// Part of a key that names the fault.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FaultSign<'a> {
    /// A place of the answer holds a wrong value. The right value `to` counts unless it depends on the message.
    Place { at: String, to: Option<&'a str> },
    /// The peer died with this error, or refused a message with it.
    Died(&'a str),
    /// The peer broke down at a message without a request.
    Breakdown(MessageKind),
    /// One clause is broken in one way at many places of answers.
    Places(&'a str),
    /// Many clauses are broken in one manner.
    Manner,
    /// All checks of a folder fail in one manner.
    Folder(&'a str),
    /// Messages that are cut, large or sent with others fail in one manner, plain ones do not.
    Carriage,
    /// Only the clause is known.
    Clause(&'a str),
}

impl<'a> FaultKey<'a> {
    fn of(check: &'a str, finding: &'a Finding, (clause, reason): Name<'a>) -> Self {
        let mut parts = check.split('/');
        let boundary = parts.next().unwrap_or_default();
        let occasion = finding.occasion.as_ref();
        // Records of earlier versions lack the occasion, or the program.
        let program = occasion.map_or_else(|| parts.next().unwrap_or_default(), |it| it.program.as_str());
        let died_with = died_with(finding).filter(|_| finding.reason != EXIT_STATUS);
        // Only the moment at which the harness notices the end tells these apart.
        let has_died = died_with.is_some() && finding.nature == Nature::Crash;
        let reason = if has_died { "crashed" } else { reason };
        let sign = match &finding.repair {
            _ if occasion.is_some_and(|it| it.is_of_method) => FaultSign::Places(&clause.0),
            Some(Repair::Set { at, to }) if !at.is_empty() => FaultSign::Place {
                at: without_indices(at),
                to: to
                    .as_deref()
                    .filter(|to| to.len() <= TARGET_BYTES_MAX && !occasion.is_some_and(|it| it.is_echo)),
            },
            _ => {
                let broke_down = matches!(finding.nature, Nature::Crash | Nature::Hang);
                let stimulus = occasion.map(|it| it.stimulus).filter(|it| broke_down && it.has_no_meaning());
                died_with
                    .map(FaultSign::Died)
                    .or(stimulus.map(FaultSign::Breakdown))
                    .unwrap_or(FaultSign::Clause(&clause.0))
            }
        };
        Self { boundary, program, reason, sign }
    }

    /// Parent place and name of the wrong member.
    fn holder(&self) -> Option<(&str, &str)> {
        match &self.sign {
            FaultSign::Place { at, .. } => at.rsplit_once('/'),
            _ => None,
        }
    }

    fn manner(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let is_by_clause = matches!(self.sign, FaultSign::Clause(_));
        is_by_clause.then_some((self.boundary, self.program, self.reason, finding.repair.as_ref()))
    }

    /// Manner of a finding that the wrong answer to a plain request may explain. A peer that ends without an answer ends in
    /// one manner, whatever the message was.
    fn manner_of_plain(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let has_ended = finding.nature == Nature::Crash && finding.lacks_answer();
        let is_open = matches!(self.sign, FaultSign::Clause(_) | FaultSign::Breakdown(_));
        let of_end = (self.boundary, self.program, "crashed", finding.repair.as_ref());
        (has_ended && is_open).then_some(of_end).or_else(|| self.manner(finding))
    }

    /// Manner of a finding that the carriage of its message may explain. A missing answer is one however long the
    /// harness waited.
    fn manner_of_carriage(&self, finding: &'a Finding) -> Option<ClauseOnlyKey<'a>> {
        let is_open = matches!(
            self.sign,
            FaultSign::Clause(_) | FaultSign::Breakdown(MessageKind::Lines | MessageKind::Large)
        );
        let reason = if finding.lacks_answer() { "no_reply" } else { self.reason };
        (is_open && finding.nature != Nature::Crash).then_some((
            self.boundary,
            self.program,
            reason,
            finding.repair.as_ref(),
        ))
    }

    fn id(&self) -> String {
        let Self { boundary, program, reason, sign } = self;
        let sign = match sign {
            FaultSign::Place { at, to } => format!("{at}\n{}", to.unwrap_or_default()),
            FaultSign::Died(error) => format!("died with {error}"),
            FaultSign::Breakdown(stimulus) => format!("{stimulus:?}"),
            FaultSign::Places(clause) => format!("{clause} in places"),
            FaultSign::Manner => "many clauses".to_owned(),
            FaultSign::Folder(folder) => (*folder).to_owned(),
            FaultSign::Carriage => "carriage".to_owned(),
            FaultSign::Clause(clause) => (*clause).to_owned(),
        };
        let mut id = hex(&Sha256::digest(format!("{boundary}\n{program}\n{reason}\n{sign}")));
        id.truncate(ID_DIGITS);
        id
    }
}

fn died_with(finding: &Finding) -> Option<&str> {
    finding.occasion.as_ref()?.died_with.as_deref()
}

/// JSON Pointer with `*` for each array index.
fn without_indices(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = pointer.split('/').map(|part| if is_index(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
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

fn level(seen: CheckFinding<'_>) -> Level {
    let clauses = &seen.check.clauses;
    let own = clauses.iter().find(|clause| clause.id == seen.finding.clause);
    own.map_or(Level::Must, |clause| clause.level)
}

/// Maximum number of votes of one check for one clause.
const VOTES_MAX: usize = 5;

/// Support for the clauses that the findings of a cause name.
struct Votes<'a> {
    /// Number of findings by clause, for a cause that breaks many clauses in one manner. Of one check only a few count, so
    /// that a long conversation does not decide alone.
    findings: BTreeMap<&'a ClauseId, usize>,
    /// Checks with a finding, by clause.
    checks: BTreeMap<&'a ClauseId, BTreeSet<&'a str>>,
}

impl<'a> Votes<'a> {
    fn of(key: &FaultKey<'_>, seen: &[CheckFinding<'a>]) -> Self {
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
struct Breadth<'a> {
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
    /// A clause with more failing checks, in thousandths, comes first.
    failing_permille: Reverse<u32>,
    /// A clause that many checks of the cause show comes before one that few do.
    checks: Reverse<usize>,
    /// A check of few clauses comes before one of many.
    clauses: usize,
    /// A short conversation comes before a long one.
    messages: usize,
    /// A check with few findings comes before one with many.
    findings: usize,
    clause: &'a ClauseId,
}

impl<'a> Breadth<'a> {
    fn of(seen: CheckFinding<'a>, spectrum: &Spectrum<'_>, votes: &Votes<'_>) -> Self {
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
            failing_permille: Reverse(spectrum.failing_permille(&finding.clause)),
            checks: Reverse(votes.checks.get(&finding.clause).map_or(0, BTreeSet::len)),
            clauses: check.clauses.len(),
            messages: occasion.map_or(0, |it| it.messages),
            findings: check.findings.len(),
            clause: &finding.clause,
        }
    }
}

/// Amount to read before a finding is understood: the conversation of a check shows its first finding.
fn length(seen: CheckFinding<'_>) -> impl Ord + use<'_> {
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

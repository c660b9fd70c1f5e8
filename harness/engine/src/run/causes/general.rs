//! General faults, which show in many findings.

use std::collections::{BTreeMap, BTreeSet};

use super::key::{ClauseOnlyKey, FaultKey, FaultSign};
use super::{CheckFinding, Keyed};
use crate::run::verdict::CheckResult;

/// Number of places, or of checks of a folder, from which they count as one general fault.
const GENERAL_MIN: usize = 4;
/// Number of clauses broken in one manner from which they count as one fault.
const CLAUSES_MIN: usize = 6;

/// General faults, wider than a single finding: many sibling members are wrong in one way, many clauses are broken in
/// one manner, all checks of a folder fail in one manner, as with a peer that lacks a validator, or several clauses are
/// broken in one manner, but never by a message sent plainly, as with a peer that takes each read for a line.
pub(super) struct General<'k, 'a> {
    /// Names of wrong members, by program, reason and the place of their parent.
    members: BTreeMap<(&'a str, &'a str, &'k str), BTreeSet<&'k str>>,
    /// Broken clauses by manner.
    clauses: BTreeMap<ClauseOnlyKey<'a>, BTreeSet<&'a str>>,
    /// Failures by manner and folder.
    folders: BTreeMap<(ClauseOnlyKey<'a>, &'a str), Folder<'a>>,
    /// Number of decided checks by folder.
    decided: BTreeMap<&'a str, usize>,
    /// Clauses broken by messages that are cut, large or sent with others, by manner.
    carried: BTreeMap<ClauseOnlyKey<'a>, BTreeSet<&'a str>>,
    /// Manners in which the peer fails plain messages too.
    plain: BTreeSet<ClauseOnlyKey<'a>>,
}

/// Checks of a folder that fail in one manner, and the clauses they break.
#[derive(Default)]
struct Folder<'a> {
    checks: BTreeSet<&'a str>,
    clauses: BTreeSet<&'a str>,
}

impl<'k, 'a> General<'k, 'a> {
    pub(super) fn of(checks: &'a [CheckResult], keyed: &'k [Keyed<'a>]) -> Self {
        let mut general = Self {
            members: BTreeMap::new(),
            clauses: BTreeMap::new(),
            folders: BTreeMap::new(),
            decided: BTreeMap::new(),
            carried: BTreeMap::new(),
            plain: BTreeSet::new(),
        };
        for check in checks.iter().filter(|check| check.verdict.is_good() || check.verdict.is_failure()) {
            *general.decided.entry(check.topic()).or_default() += 1;
        }
        for (key, CheckFinding { check, finding, .. }) in keyed {
            match key.manner_of_carriage(finding) {
                Some(manner) if finding.occasion.as_ref().is_some_and(|it| it.is_vehicle) => {
                    general.carried.entry(manner).or_default().insert(&finding.clause.0);
                }
                Some(manner) => _ = general.plain.insert(manner),
                None => {}
            }
            if let Some((holder, name)) = key.holder() {
                general.members.entry((key.program, key.reason, holder)).or_default().insert(name);
            } else if let (Some(manner), FaultSign::Clause(clause)) = (key.manner(finding), &key.sign) {
                general.clauses.entry(manner).or_default().insert(clause);
                let folder = general.folders.entry((manner, check.topic())).or_default();
                folder.checks.insert(&check.id);
                folder.clauses.insert(clause);
            }
        }
        general
    }

    /// Key of the general fault that a finding belongs to.
    pub(super) fn key(&self, own: &FaultKey<'a>, seen: CheckFinding<'a>) -> Option<FaultKey<'a>> {
        let carried = own.manner_of_carriage(seen.finding).filter(|manner| !self.plain.contains(manner));
        if let Some(manner) = carried
            && self.carried.get(&manner).is_some_and(|clauses| clauses.len() > 1)
        {
            return Some(FaultKey { reason: manner.2, sign: FaultSign::Carriage, ..own.clone() });
        }
        let sign = if let Some((holder, _)) = own.holder() {
            let names = self.members.get(&(own.program, own.reason, holder))?;
            let at = format!("{holder}/*");
            (names.len() >= GENERAL_MIN).then_some(FaultSign::Place { at, to: None })?
        } else {
            let (folder, manner) = (seen.check.topic(), own.manner(seen.finding)?);
            let Folder { checks, clauses } = self.folders.get(&(manner, folder))?;
            let is_all = checks.len() >= GENERAL_MIN && Some(&checks.len()) == self.decided.get(folder);
            match self.clauses.get(&manner) {
                Some(clauses) if clauses.len() >= CLAUSES_MIN => FaultSign::Manner,
                _ => (is_all && clauses.len() > 1).then_some(FaultSign::Folder(folder))?,
            }
        };
        Some(FaultKey { sign, ..own.clone() })
    }
}

//! Counts of clauses by level, by kind of stimulus, and by standing.

use std::collections::BTreeMap;

use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::clause::{Clause, ClauseId, Level, StimulusValidity};
use peerproof_engine::data::rung::Rung;
use peerproof_engine::run::causes::Cause;
use peerproof_engine::run::results::{self, Standing, StoredRun};
use peerproof_engine::run::verdict::CheckResult;

/// Standing of the clauses of one level and one kind of stimulus.
pub struct Tally {
    /// Level of the clauses.
    pub level: Level,
    /// Set if only forbidden messages test the clauses.
    pub invalid: bool,
    /// Number of clauses that the peer is held to.
    pub held: usize,
    /// Ids by standing: proved, broken, flaky, in part, undecided, not claimed. Empty standings are omitted.
    pub ids: Vec<(&'static str, Vec<&'static str>)>,
}

impl Tally {
    /// Number of clauses with the standing `word`.
    pub fn count(&self, word: &str) -> usize {
        self.ids.iter().find(|(other, _)| *other == word).map_or(0, |(_, ids)| ids.len())
    }

    /// True if every clause that the peer is held to is proved.
    pub(crate) fn is_full(&self) -> bool {
        self.count("proved") == self.held
    }

    /// Counts of the level on one line: `MUST   41/66 proved, 3 broken, 22 undecided`.
    pub fn line(&self) -> String {
        let word = self.level.word().to_uppercase();
        let verb = if self.level == Level::Open { "seen within the allowed set" } else { "proved" };
        let rest = self.ids.iter().filter(|(word, _)| *word != "proved");
        let rest: String = rest.map(|(word, ids)| format!(", {} {word}", ids.len())).collect();
        let of = if self.invalid { " on invalid input" } else { "" };
        format!("{word:6} {}/{} {verb}{of}{rest}", self.count("proved"), self.held)
    }
}

/// Standings in the order of a line of counts.
const STANDINGS: [&str; 6] = ["proved", "broken", "flaky", "in part", "undecided", "not claimed"];

fn standing_word(standing: Option<&Standing>) -> &'static str {
    match standing {
        Some(Standing::Proved) => "proved",
        Some(Standing::Broken(_) | Standing::ExpectedBroken(_)) => "broken",
        Some(Standing::Flaky) => "flaky",
        Some(Standing::Partly(_)) => "in part",
        Some(Standing::NotClaimed) => "not claimed",
        Some(Standing::Undecided(_)) | None => "undecided",
    }
}

pub(super) fn tallies(run: &StoredRun, boundary: Option<&'static dyn Boundary>) -> Vec<Tally> {
    let clauses = in_question(run, boundary);
    let standings = Standings::of(run, sorts_messages(boundary.map_or(&[], Boundary::clauses)));
    let levels = [Level::Must, Level::Should, Level::Open].into_iter();
    let kinds = levels.flat_map(|level| [(level, false), (level, true)]);
    let tally = |(level, invalid)| {
        let of_level: Vec<(&str, &str)> = clauses
            .iter()
            .filter(|clause| clause.level == level)
            .filter_map(|clause| Some((standings.word(clause, invalid)?, clause.id.0.as_str())))
            .collect();
        let ids = |word| of_level.iter().filter(|(other, _)| *other == word).map(|(_, id)| *id).collect();
        let ids = STANDINGS.map(|word| (word, ids(word))).into_iter();
        let held = of_level.iter().filter(|(word, _)| *word != "not claimed").count();
        let ids = ids.filter(|(_, ids): &(_, Vec<&str>)| !ids.is_empty()).collect();
        (held > 0).then_some(Tally { level, invalid, held, ids })
    };
    kinds.filter_map(tally).collect()
}

/// Standings of clauses after all checks, after those with valid messages, and after the others.
struct Standings {
    all: BTreeMap<ClauseId, Standing>,
    /// Last two of these; `None` if the contract does not distinguish messages.
    sorted: Option<[BTreeMap<ClauseId, Standing>; 2]>,
}

impl Standings {
    fn of(run: &StoredRun, is_sorted: bool) -> Self {
        let of = |checks: &[CheckResult]| {
            results::standings(checks).into_iter().map(|(clause, standing)| (clause.id, standing)).collect()
        };
        let sorted = is_sorted.then(|| {
            let checks = run.checks.iter().cloned();
            let (near, far): (Vec<_>, Vec<_>) = checks.partition(|check| check.rung == Rung::Ordinary);
            [of(&near), of(&far)]
        });
        Self { all: of(&run.checks), sorted }
    }

    /// Standing of a clause under valid or invalid messages; `None` if not counted there.
    fn word(&self, clause: &Clause, invalid: bool) -> Option<&'static str> {
        let whole = standing_word(self.all.get(&clause.id));
        let Some([near, far]) = &self.sorted else { return (!invalid).then_some(whole) };
        let of = |standings: &BTreeMap<_, _>| standings.get(&clause.id).map(|it| standing_word(Some(it)));
        let is_bad = |word: Option<&str>| matches!(word, Some("broken" | "flaky"));
        // A fault shown only by an answer to an invalid message counts as such, whatever the clause.
        let is_far = is_bad(of(far)) && !is_bad(of(near));
        match (clause.stimulus, invalid) {
            (StimulusValidity::Invalid, true) => Some(whole),
            (StimulusValidity::Invalid, false) => None,
            (StimulusValidity::Both, true) => of(far),
            (StimulusValidity::Both, false) => of(near).or_else(|| of(far).is_none().then_some(whole)),
            (StimulusValidity::Valid, true) => is_far.then(|| of(far)).flatten(),
            (StimulusValidity::Valid, false) if is_far => Some(of(near).unwrap_or("undecided")),
            (StimulusValidity::Valid, false) => Some(whole),
        }
    }
}

/// True if the contract distinguishes valid and invalid messages.
pub(super) fn sorts_messages(clauses: &[Clause]) -> bool {
    clauses.iter().any(|clause| clause.stimulus != StimulusValidity::Valid)
}

/// True if only forbidden messages show the cause; `None` if the contract does not distinguish messages.
pub(super) fn by_invalid(cause: &Cause, run: &StoredRun, clauses: &[Clause]) -> Option<bool> {
    sorts_messages(clauses).then(|| {
        let is_near = |check: &CheckResult| {
            check.rung == Rung::Ordinary && cause.checks.iter().any(|share| share.check == check.id)
        };
        let stimulus = clauses.iter().find(|clause| clause.id == cause.clause).map(|clause| clause.stimulus);
        stimulus == Some(StimulusValidity::Invalid) || !run.checks.iter().any(is_near)
    })
}

/// Clauses that a run can decide: all of the side, or those of the selected checks.
fn in_question(run: &StoredRun, boundary: Option<&'static dyn Boundary>) -> Vec<&'static Clause> {
    let Some(boundary) = boundary else { return Vec::new() };
    let is_whole = run.header.planned.len() >= boundary::checks_of_side(boundary, run.header.side).len();
    let at_risk = |clause: &Clause| {
        run.checks.iter().any(|check| check.clauses.iter().any(|risk| risk.id == clause.id))
    };
    boundary
        .clauses()
        .iter()
        .filter(|clause| clause.side == run.header.side && clause.excluded.is_none())
        .filter(|clause| is_whole || at_risk(clause))
        .collect()
}

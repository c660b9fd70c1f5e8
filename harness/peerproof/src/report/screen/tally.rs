//! Counts of clauses by level, by the kind of message that puts them at risk, and by standing.

use std::collections::BTreeMap;

use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::causes::Cause;
use peerproof_engine::clause::{Clause, ClauseId, Level, Stimulus};
use peerproof_engine::results::{self, Run, Standing};
use peerproof_engine::rung::Rung;
use peerproof_engine::verdict::CheckResult;

/// Standing of the clauses of one level and one kind of stimulus.
pub struct Tally {
    /// The level.
    pub level: Level,
    /// Only messages that the contract forbids put them at risk.
    pub invalid: bool,
    /// Number of clauses that the peer is held to.
    pub held: usize,
    /// Ids by standing: proved, broken, flaky, in part, undecided, not claimed. Empty ones are left out.
    pub ids: Vec<(&'static str, Vec<&'static str>)>,
}

impl Tally {
    /// Number of clauses with the standing `word`.
    pub fn count(&self, word: &str) -> usize {
        self.ids.iter().find(|(other, _)| *other == word).map_or(0, |(_, ids)| ids.len())
    }

    /// True where every clause that the peer is held to is proved.
    pub fn is_full(&self) -> bool {
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

pub(super) fn tallies(run: &Run, boundary: Option<&'static dyn Boundary>) -> Vec<Tally> {
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

/// Standings of clauses by what all checks show, those that send valid messages, and the others.
struct Standings {
    all: BTreeMap<ClauseId, Standing>,
    /// Where the contract sorts messages.
    sorted: Option<[BTreeMap<ClauseId, Standing>; 2]>,
}

impl Standings {
    fn of(run: &Run, is_sorted: bool) -> Self {
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

    /// Standing of a clause under valid messages, or under invalid ones; `None` where it is not counted there.
    fn word(&self, clause: &Clause, invalid: bool) -> Option<&'static str> {
        let whole = standing_word(self.all.get(&clause.id));
        let Some([near, far]) = &self.sorted else { return (!invalid).then_some(whole) };
        let of = |standings: &BTreeMap<_, _>| standings.get(&clause.id).map(|it| standing_word(Some(it)));
        let is_bad = |word: Option<&str>| matches!(word, Some("broken" | "flaky"));
        // What only an answer to an invalid message shows counts as such, whatever the clause is about.
        let is_far = is_bad(of(far)) && !is_bad(of(near));
        match (clause.stimulus, invalid) {
            (Stimulus::Invalid, true) => Some(whole),
            (Stimulus::Invalid, false) => None,
            (Stimulus::Both, true) => of(far),
            (Stimulus::Both, false) => of(near).or_else(|| of(far).is_none().then_some(whole)),
            (Stimulus::Valid, true) => is_far.then(|| of(far)).flatten(),
            (Stimulus::Valid, false) if is_far => Some(of(near).unwrap_or("undecided")),
            (Stimulus::Valid, false) => Some(whole),
        }
    }
}

/// True where the contract sorts messages into valid and invalid ones.
pub(super) fn sorts_messages(clauses: &[Clause]) -> bool {
    clauses.iter().any(|clause| clause.stimulus != Stimulus::Valid)
}

/// True for a cause that only messages show that the contract forbids; `None` where it does not sort messages.
pub(super) fn by_invalid(cause: &Cause, run: &Run, clauses: &[Clause]) -> Option<bool> {
    sorts_messages(clauses).then(|| {
        let is_near = |check: &CheckResult| {
            check.rung == Rung::Ordinary && cause.checks.iter().any(|share| share.check == check.id)
        };
        let stimulus = clauses.iter().find(|clause| clause.id == cause.clause).map(|clause| clause.stimulus);
        stimulus == Some(Stimulus::Invalid) || !run.checks.iter().any(is_near)
    })
}

/// Clauses that a run can speak about: all of the side, or those of the selected checks.
fn in_question(run: &Run, boundary: Option<&'static dyn Boundary>) -> Vec<&'static Clause> {
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

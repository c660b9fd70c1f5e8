//! Causes as reports show them.

use std::collections::BTreeSet;

use super::tally::by_invalid;
use super::{level_of_finding, plural};
use peerproof_engine::data::clause::{Clause, Level};
use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::text::one_line;
use peerproof_engine::run::causes::Cause;
use peerproof_engine::run::results::StoredRun;
use peerproof_engine::run::verdict::CheckResult;

/// Maximum number of further clauses of a cause.
const ALSO_BREAKS_MAX: usize = 8;

/// Cause with data for reports.
pub struct ReportedCause<'r> {
    /// The cause.
    pub cause: &'r Cause,
    /// Check that shows the cause best.
    pub check: &'r CheckResult,
    /// Clause of the cause; `None` for an unknown boundary.
    pub clause: Option<&'static Clause>,
    /// Set if the cause decides the exit status.
    pub decides: bool,
    /// Set if only forbidden messages show it; `None` if the contract does not distinguish messages.
    pub invalid: Option<bool>,
    /// Library that causes it in every peer.
    pub library: Option<&'r str>,
    /// Number of further findings of the cause in `check`.
    pub alike: usize,
    /// Ids of the other checks that found the cause.
    pub others: Vec<&'r str>,
    /// Other clauses that demand refusals, where the peer refuses nothing of a kind.
    pub also_breaks: Vec<&'r str>,
}

impl<'r> ReportedCause<'r> {
    pub(super) fn of(
        cause: &'r Cause,
        run: &'r StoredRun,
        clauses: &'static [Clause],
        strict: bool,
    ) -> Option<Self> {
        let check = run.checks.iter().find(|check| check.id == cause.check)?;
        let own = cause.checks.iter().find(|share| share.check == cause.check);
        let ids = cause.checks.iter().map(|share| share.check.as_str());
        let others: Vec<&str> = ids.filter(|id| *id != cause.check).collect();
        Some(Self {
            cause,
            check,
            clause: clauses.iter().find(|clause| clause.id == cause.clause),
            decides: strict || cause.level != Level::Should,
            invalid: by_invalid(cause, run, clauses),
            library: run.header.config["libraries"][&cause.clause.0].as_str(),
            alike: own.map_or(0, |share| share.findings.saturating_sub(1)),
            also_breaks: also_breaks(cause, run, &others),
            others,
        })
    }

    /// Rule that the peer breaks: the title of the check if the check is about the clause, else the text of the clause.
    pub fn rule(&self) -> &'r str {
        let first = self.check.clauses.first().map(|clause| &clause.id);
        let is_beside = first != Some(&self.cause.clause);
        self.clause.filter(|_| is_beside).map_or(self.check.title.as_str(), |clause| clause.text.as_str())
    }

    /// Conversation that shows the cause, and the index of its wrong line.
    pub fn conversation(&self) -> (&'r [String], Option<usize>) {
        self.check.view(&self.cause.clause, &self.cause.reason)
    }

    /// Level of the cause, in words.
    pub fn level(&self) -> &'static str {
        match (self.cause.level, self.decides) {
            (Level::Open, _) => "MUST (outside the allowed outcomes)",
            (Level::Should, false) => "SHOULD (changes the exit status only with --strict)",
            (level, _) => level_of_finding(level),
        }
    }

    /// Kind of input that triggers the cause, unless a correct counterpart sends it.
    pub fn rung(&self) -> &'static str {
        match (self.invalid, self.cause.rung) {
            (Some(false), _) | (None, Rung::Ordinary) => "",
            (_, Rung::Ordinary | Rung::Malformed) => ", at malformed input",
            (_, Rung::Hostile) => ", at hostile input",
        }
    }

    /// Advice for a fault of a library.
    pub fn advice(&self) -> Option<String> {
        let library = one_line(self.library?);
        Some(format!("the same in every server of {library}: update the library, or report it there"))
    }

    /// Number of the other checks that found the cause, in words, then `note`, and the clauses that it breaks there.
    pub(crate) fn also(&self, note: &str) -> Option<String> {
        let mut clauses: Vec<String> =
            self.also_breaks.iter().take(ALSO_BREAKS_MAX).map(|id| one_line(id)).collect();
        if self.also_breaks.len() > ALSO_BREAKS_MAX {
            clauses.push(format!("{} more", self.also_breaks.len() - ALSO_BREAKS_MAX));
        }
        let of = if clauses.is_empty() { String::new() } else { format!(", of {}", clauses.join(", ")) };
        let checks = plural(self.others.len(), "other check");
        (!self.others.is_empty()).then(|| format!("seen in {checks}{note}{of}"))
    }
}

/// Clauses besides that of `cause` that findings with its reason name in the checks `others`, if the peer accepts
/// messages: each of these clauses may need code of its own.
fn also_breaks<'r>(cause: &Cause, run: &'r StoredRun, others: &[&str]) -> Vec<&'r str> {
    if !cause.is_acceptance() {
        return Vec::new();
    }
    let checks = run.checks.iter().filter(|check| others.contains(&check.id.as_str()));
    let findings = checks.flat_map(|check| &check.findings).filter(|finding| finding.reason == cause.reason);
    let clauses: BTreeSet<&str> = findings.map(|finding| finding.clause.0.as_str()).collect();
    clauses.into_iter().filter(|id| *id != cause.clause.0).collect()
}

//! Expectations: known failures, each with its reason, so that only new failures are red.
//!
//! `peerproof-expected.toml` lists them per check. Expected failures still run. An entry is stale if its check passes,
//! fails for another reason or does not exist, or if the entry has expired.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use jiff::civil::Date;
use serde::Deserialize;

use crate::data::blame::Misconfigured;
use crate::run::verdict::{CheckResult, Verdict};

mod edit;

pub use edit::{add, init, remove};

/// Entry of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// Check id, or a glob of ids: `*` stays within one part of the path, `**` does not.
    pub check: String,
    /// Expected verdict: `fail`, `crash`, `hang`, `leak` or `flaky`.
    pub verdict: String,
    /// Reason code of the expected finding.
    pub reason: String,
    /// Issue that tracks the failure.
    #[serde(default)]
    pub issue: Option<String>,
    /// Last day of validity, `YYYY-MM-DD`.
    #[serde(default, deserialize_with = "date")]
    pub expires: Option<Date>,
}

fn date<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(|_| {
        serde::de::Error::custom(format!("expires = {text:?} is not a date; write it as \"2027-01-31\""))
    })
}

/// Verdicts that an entry may expect.
const VERDICTS: [&str; 5] = ["fail", "crash", "hang", "leak", "flaky"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    #[serde(default)]
    expect: Vec<KnownFailure>,
}

/// Contents of an expectations file.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    entries: Vec<(KnownFailure, Option<GlobMatcher>)>,
}

/// Reason why an entry is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StaleReason {
    /// The check with this id passes.
    Passes(String),
    /// The check fails differently: its id, and its verdict with reason codes.
    FailsOtherwise(String, String),
    /// No check has this id.
    NoSuchCheck,
    /// The entry expired on this day.
    Expired(Date),
}

/// Stale entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Index of the entry in the file, from 0.
    pub entry: usize,
    /// `check` of the entry.
    pub check: String,
    /// `reason` of the entry.
    pub reason: String,
    /// Reason why it is stale.
    pub why: StaleReason,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, check, reason, why } = self;
        write!(f, "expectation {} ({check}, {reason}): ", entry + 1)?;
        match why {
            StaleReason::Passes(id) => write!(f, "{id} passes now; remove the entry"),
            StaleReason::FailsOtherwise(id, how) => write!(f, "{id} now fails in another way: {how}"),
            StaleReason::NoSuchCheck => write!(f, "no check has this id; `peerproof list` shows all ids"),
            StaleReason::Expired(on) => write!(f, "it expired on {on}; fix the peer or set a new date"),
        }
    }
}

impl Expectations {
    /// Parses an expectations file.
    ///
    /// # Errors
    /// Names the line or number of the entry: malformed TOML, an unknown key, a bad date, an unknown verdict, a bad
    /// glob or a repeated entry.
    pub fn parse(text: &str) -> Result<Self, Misconfigured> {
        let file: FileForm = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut entries: Vec<(KnownFailure, Option<GlobMatcher>)> = Vec::new();
        for (index, entry) in file.expect.into_iter().enumerate() {
            let number = index + 1;
            if !VERDICTS.contains(&entry.verdict.as_str()) {
                let words = VERDICTS.join(", ");
                return Err(format!(
                    "expectation {number}: verdict = {:?} cannot be expected; it is one of {words}",
                    entry.verdict
                )
                .into());
            }
            let same = |other: &KnownFailure| other.check == entry.check && other.reason == entry.reason;
            if entries.iter().any(|(other, _)| same(other) && other.verdict == entry.verdict) {
                return Err(format!("expectation {number}: {} is listed twice", entry.check).into());
            }
            let glob = if entry.check.contains(['*', '?', '[', '{']) {
                let glob = GlobBuilder::new(&entry.check).literal_separator(true).build();
                Some(glob.map_err(|error| format!("expectation {number}: {error}"))?.compile_matcher())
            } else {
                None
            };
            entries.push((entry, glob));
        }
        Ok(Self { entries })
    }

    /// Entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = &KnownFailure> {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// True if the file has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Turns a failure whose reasons are all expected into [`Verdict::Expected`] and leaves other results unchanged.
    /// Expired entries still apply; [`Expectations::stale`] reports them.
    pub fn apply(&self, result: &mut CheckResult) {
        if !can_be_expected(&result.verdict) || result.findings.is_empty() {
            return;
        }
        let mut issues = Vec::new();
        for finding in &result.findings {
            let Some(entry) = self.covering(result, &finding.reason) else { return };
            if let Some(issue) = &entry.issue
                && !issues.contains(&issue)
            {
                issues.push(issue);
            }
        }
        let mut detail = result.verdict.word().to_owned();
        if let Some(more) = result.verdict.detail() {
            detail.push_str(&format!(" {more}"));
        }
        for issue in issues {
            detail.push_str(&format!("; {issue}"));
        }
        result.verdict = Verdict::Expected(detail);
    }

    fn covering(&self, result: &CheckResult, reason: &str) -> Option<&KnownFailure> {
        self.entries
            .iter()
            .find(|(entry, glob)| {
                names(entry, glob.as_ref(), &result.id)
                    && entry.reason == reason
                    && (entry.verdict == word(result) || entry.verdict == "flaky")
            })
            .map(|(entry, _)| entry)
    }

    /// Entries that no longer hold, given all `results` of a run (with or without [`Expectations::apply`]), the ids of
    /// all checks, and the day. Checks that did not run or could not decide make no entry stale.
    pub fn stale<'i>(
        &self,
        results: &[CheckResult],
        known_ids: impl IntoIterator<Item = &'i str>,
        today: Date,
    ) -> Vec<Stale> {
        let known: Vec<&str> = known_ids.into_iter().collect();
        let mut stale = Vec::new();
        for (index, (entry, glob)) in self.entries.iter().enumerate() {
            let mut add = |why: StaleReason| {
                let (check, reason) = (entry.check.clone(), entry.reason.clone());
                stale.push(Stale { entry: index, check, reason, why });
            };
            if let Some(expires) = entry.expires.filter(|expires| *expires < today) {
                add(StaleReason::Expired(expires));
            }
            let named = |id: &str| names(entry, glob.as_ref(), id);
            let mine: Vec<&CheckResult> = results.iter().filter(|result| named(&result.id)).collect();
            if mine.is_empty() {
                if !known.iter().any(|id| named(id)) {
                    add(StaleReason::NoSuchCheck);
                }
                continue;
            }
            if entry.verdict != "flaky" {
                for result in mine.iter().filter(|result| result.verdict.is_good()) {
                    add(StaleReason::Passes(result.id.clone()));
                }
            }
            let failing = |result: &&&CheckResult| {
                can_be_expected(&result.verdict) || matches!(result.verdict, Verdict::Expected(_))
            };
            let shows = |result: &CheckResult| {
                (entry.verdict == word(result) || entry.verdict == "flaky")
                    && result.findings.iter().any(|finding| finding.reason == entry.reason)
            };
            let failures: Vec<&&CheckResult> = mine.iter().filter(failing).collect();
            // A flaky failure need not show in this run; other failures are red anyway.
            if entry.verdict != "flaky"
                && !failures.iter().any(|result| shows(result))
                && let Some(first) = failures.first()
            {
                add(StaleReason::FailsOtherwise(first.id.clone(), how(first)));
            }
        }
        stale
    }
}

fn names(entry: &KnownFailure, glob: Option<&GlobMatcher>, id: &str) -> bool {
    match glob {
        Some(glob) => glob.is_match(id),
        None => entry.check == id,
    }
}

fn can_be_expected(verdict: &Verdict) -> bool {
    verdict.is_failure() || matches!(verdict, Verdict::Flaky(_))
}

/// Verdict before expectations were applied, as a word.
fn word(result: &CheckResult) -> &str {
    match &result.verdict {
        Verdict::Expected(detail) => detail.split([' ', ';']).next().unwrap_or_default(),
        verdict => verdict.word(),
    }
}

/// Verdict and reason codes of a failure.
fn how(result: &CheckResult) -> String {
    format!("{} ({})", word(result), reasons(result).join(", "))
}

fn reasons(result: &CheckResult) -> Vec<&str> {
    let mut reasons: Vec<&str> = Vec::new();
    for finding in &result.findings {
        if !reasons.contains(&finding.reason.as_str()) {
            reasons.push(&finding.reason);
        }
    }
    reasons
}

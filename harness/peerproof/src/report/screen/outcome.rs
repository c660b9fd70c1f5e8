//! Outcome of a run on one line.

use super::tally::{Tally, by_invalid, sorts_messages};
use super::{Tone, plural};
use peerproof_engine::data::clause::{Clause, Level};
use peerproof_engine::run::causes::{Cause, Certainty};
use peerproof_engine::run::results::StoredRun;
use peerproof_engine::run::runner;
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Numbers of causes, failed checks and proved MUSTs, each with its tone.
pub(super) fn outcome(run: &StoredRun, tallies: &[Tally], clauses: &[Clause]) -> Vec<(Option<Tone>, String)> {
    let of = |certainty| run.causes.iter().filter(|cause| cause.certainty == certainty).count();
    let failed = run.checks.iter().filter(|check| check.verdict.is_failure()).count();
    let is_must = |cause: &&Cause| cause.certainty == Certainty::Broken && cause.level != Level::Should;
    let is_headline = |cause: &&Cause| by_invalid(cause, run, clauses) == Some(false);
    let headline = run.causes.iter().filter(is_must).filter(is_headline).count();
    let interruption = match interrupted(run) {
        0 => None,
        count => Some((Some(Tone::Warn), format!("interrupted before {}", plural(count, "check")))),
    };
    let is_decided = |check: &CheckResult| {
        let verdict = &check.verdict;
        verdict.is_good() || matches!(verdict, Verdict::Flaky(_) | Verdict::Expected(_))
    };
    let has_decided = run.checks.iter().any(is_decided);
    let mut parts = match (of(Certainty::Broken), &interruption) {
        (0, None) if !has_decided => vec![(Some(Tone::Warn), "nothing decided".to_owned())],
        (0, None) => vec![(Some(Tone::Good), "no fault seen".to_owned())],
        (0, Some(interruption)) if has_decided => {
            vec![interruption.clone(), (None, "no fault seen in the others".to_owned())]
        }
        (0, Some(interruption)) => vec![interruption.clone()],
        (broken, _) => {
            let causes = format!("{}, {}", plural(broken, "cause"), plural(failed, "failed check"));
            vec![(Some(Tone::Bad), causes)]
        }
    };
    if sorts_messages(clauses) && of(Certainty::Broken) > 0 {
        let tone = if headline == 0 { Tone::Good } else { Tone::Bad };
        parts.insert(0, (Some(tone), format!("{} broken on valid input", plural(headline, "MUST"))));
    }
    let flaky = of(Certainty::Flaky);
    if flaky > 0 {
        parts.push((Some(Tone::Warn), plural(flaky, "flaky cause")));
    }
    if of(Certainty::Broken) > 0 {
        parts.extend(interruption);
    }
    let musts = tallies.iter().find(|tally| tally.level == Level::Must && !tally.invalid && tally.held > 0);
    parts.extend(
        musts.map(|tally| {
            (None, format!("{} of {} proved", tally.count("proved"), plural(tally.held, "MUST")))
        }),
    );
    parts
}

/// Number of checks that an interrupt kept from being decided.
pub(super) fn interrupted(run: &StoredRun) -> usize {
    run.checks.iter().filter(|check| check.verdict == runner::interrupted()).count()
}

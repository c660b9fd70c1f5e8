//! Confirmation: a failing check is run again before it counts.

use std::sync::atomic::Ordering;

use super::{Round, is_first_canary};
use crate::check::Check;
use crate::finding::Finding;
use crate::verdict::Verdict;

impl Round<'_> {
    /// Runs a failing check again until it failed as often as asked for, with the same first finding.
    pub(super) fn confirm(&self, check: &Check, verdict: Verdict, findings: &[Finding]) -> Verdict {
        let Some(first) = findings.first() else { return verdict };
        let mut total = self.options.confirm.max(1);
        if is_first_canary(check) && verdict == Verdict::Hang {
            // Each time costs two deadlines, and everything waits for it.
            total = total.min(2);
        }
        let mut seen = 1;
        for _ in 1..total {
            if self.around.interrupted.load(Ordering::Relaxed) {
                break;
            }
            if let Ok((judgement, _)) = self.attempt(check)
                && judgement.findings.iter().any(|finding| finding.repeats(first))
            {
                seen += 1;
            }
        }
        if seen == total { verdict } else { Verdict::Flaky(format!("{seen}/{total}")) }
    }
}

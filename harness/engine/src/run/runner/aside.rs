//! Failing checks that wait for their confirmation.

use std::time::Duration;

use crate::data::check::Check;
use crate::data::clause::ClauseId;
use crate::data::finding::{Finding, Judgement};
use crate::data::transcript::Transcript;
use crate::run::verdict::Verdict;

/// Failing check to be confirmed when nothing else runs.
pub(super) struct Deferred<T = Transcript> {
    pub(super) check: Check,
    pub(super) verdict: Verdict,
    pub(super) judgement: Judgement,
    pub(super) transcript: T,
    /// Findings of an earlier attempt with short waits.
    pub(super) earlier: Vec<Finding>,
    pub(super) elapsed: Duration,
    /// Ambient check that gets the finding.
    pub(super) owner: Option<String>,
    /// Original index of the first finding, if that is a missing reply within a burst. Its message is isolated after
    /// confirmation.
    pub(super) burst: Option<usize>,
}

impl<T> Deferred<T> {
    /// Converts the transcript to another form.
    pub(super) fn with<U: From<T>>(self) -> Deferred<U> {
        let Self { check, verdict, judgement, transcript, earlier, elapsed, owner, burst } = self;
        Deferred { check, verdict, judgement, transcript: transcript.into(), earlier, elapsed, owner, burst }
    }

    /// Key by which equal faults are recognised.
    pub(super) fn key(&self) -> (Option<&str>, Option<(&ClauseId, &str)>) {
        (self.owner.as_deref(), self.judgement.findings.first().map(Finding::key))
    }
}

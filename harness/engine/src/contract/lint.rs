//! Judges both sides of a stored conversation.
//!
//! The provider is judged by the expectations of the plan or, in an unplanned conversation, by the boundary's model of
//! the replies to the bytes sent. The consumer is judged only in a recorded conversation, by its messages. In a
//! transcript of a check the other side was the harness, which may send forbidden messages.

use std::collections::BTreeSet;

use crate::contract::boundary::{self, Boundary};
use crate::data::check::Untestable;
use crate::data::clause::{Level, Side};
use crate::data::finding::Finding;
use crate::data::transcript::{EventKind, Transcript};

/// Findings about one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFindings {
    /// Judged side.
    pub side: Side,
    /// Findings in the order of the conversation.
    pub findings: Vec<Finding>,
}

/// Result for one transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintResult {
    /// Judged sides, provider first.
    pub verdicts: Vec<SideFindings>,
    /// Reason why something could not be decided.
    pub undecided: Option<Untestable>,
}

impl LintResult {
    /// True if a finding breaks a MUST; with `strict`, a SHOULD counts, too.
    pub fn is_broken(&self, boundary: &dyn Boundary, strict: bool) -> bool {
        let findings = self.verdicts.iter().flat_map(|verdict| &verdict.findings);
        findings
            .into_iter()
            .any(|finding| strict || boundary::level(boundary, &finding.clause) != Level::Should)
    }
}

/// Judges the sides that can be judged, or only side `only`.
pub fn lint(boundary: &dyn Boundary, transcript: &Transcript, only: Option<Side>) -> LintResult {
    let recorded = transcript.plan.recorded;
    let mut verdicts = Vec::new();
    let mut undecided = None;
    let wanted = |side: Side| only.is_none_or(|only| only == side);
    let judged = if recorded { Side::Provider } else { transcript.facts.side };
    if wanted(judged) {
        let judgement = boundary::judge(boundary, transcript);
        undecided = judgement.untestable;
        verdicts.push(SideFindings { side: judged, findings: once(judgement.findings) });
    }
    if recorded && wanted(Side::Consumer) {
        let held = |finding: &Finding| {
            let row = boundary.clauses().iter().find(|clause| clause.id == finding.clause);
            !row.is_some_and(|row| boundary::is_beyond(boundary, &transcript.facts.requirements, row))
        };
        let mut findings = boundary.judge_consumer(transcript);
        findings.retain(held);
        verdicts.push(SideFindings { side: Side::Consumer, findings: once(findings) });
    }
    let said = transcript.events.iter().any(|event| {
        matches!(
            event.kind,
            EventKind::Sent { .. } | EventKind::Received { .. } | EventKind::ActorReceived { .. }
        )
    });
    if !said {
        undecided = Some("the recording contains no messages".into());
    } else if verdicts.is_empty() {
        let side = judged.word();
        undecided = Some(
            format!("the recording comes from a check of the {side}; peerproof played the other side").into(),
        );
    }
    LintResult { verdicts, undecided }
}

/// Removes repeated findings.
fn once(findings: Vec<Finding>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let key = |finding: &Finding| {
        (finding.step, finding.clause.clone(), finding.reason.clone(), finding.got.clone())
    };
    findings.into_iter().filter(|finding| seen.insert(key(finding))).collect()
}

//! Judges both sides of a stored conversation.
//!
//! The provider is judged as in any other transcript: by the expectations of its plan, or, where nobody planned the
//! conversation, by the boundary's model of what may come back for the bytes that were sent. The consumer of a recorded
//! conversation is judged by what it wrote. In a transcript of a check the other side was the harness, which sends what
//! no peer may send.

use std::collections::BTreeSet;

use crate::boundary::{self, Boundary};
use crate::check::Untestable;
use crate::clause::{Level, Side};
use crate::finding::Finding;
use crate::transcript::{Kind, Transcript};

/// What was found about one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which.
    pub side: Side,
    /// What is wrong, in the order of the conversation.
    pub findings: Vec<Finding>,
}

/// What was found about a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linted {
    /// The sides that were judged, provider first.
    pub verdicts: Vec<Verdict>,
    /// Why nothing, or not everything, could be decided.
    pub undecided: Option<Untestable>,
}

impl Linted {
    /// Whether some finding breaks a clause that binds; with `strict` a SHOULD does so too.
    pub fn is_broken(&self, boundary: &dyn Boundary, strict: bool) -> bool {
        let findings = self.verdicts.iter().flat_map(|verdict| &verdict.findings);
        findings
            .into_iter()
            .any(|finding| strict || boundary::level(boundary, &finding.clause) != Level::Should)
    }
}

/// Judges the sides that can be judged, or only `only`.
pub fn lint(boundary: &dyn Boundary, transcript: &Transcript, only: Option<Side>) -> Linted {
    let recorded = transcript.plan.recorded;
    let mut verdicts = Vec::new();
    let mut undecided = None;
    let wanted = |side: Side| only.is_none_or(|only| only == side);
    let judged = if recorded { Side::Provider } else { transcript.facts.side };
    if wanted(judged) {
        let judgement = boundary::judge(boundary, transcript);
        undecided = judgement.untestable;
        verdicts.push(Verdict { side: judged, findings: once(judgement.findings) });
    }
    if recorded && wanted(Side::Consumer) {
        let held = |finding: &Finding| {
            let row = boundary.clauses().iter().find(|clause| clause.id == finding.clause);
            !row.is_some_and(|row| boundary::is_beyond(boundary, &transcript.facts.requirements, row))
        };
        let mut findings = boundary.judge_consumer(transcript);
        findings.retain(held);
        verdicts.push(Verdict { side: Side::Consumer, findings: once(findings) });
    }
    let said = transcript.events.iter().any(|event| {
        matches!(event.kind, Kind::Sent { .. } | Kind::Received { .. } | Kind::ActorReceived { .. })
    });
    if !said {
        undecided = Some("nobody said anything".into());
    } else if verdicts.is_empty() {
        let side = judged.word();
        undecided = Some(
            format!("it was recorded by a check of the {side}, and the other side was peerproof").into(),
        );
    }
    Linted { verdicts, undecided }
}

/// Leaves out what says the same again.
fn once(findings: Vec<Finding>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let key = |finding: &Finding| {
        (finding.step, finding.clause.clone(), finding.reason.clone(), finding.got.clone())
    };
    findings.into_iter().filter(|finding| seen.insert(key(finding))).collect()
}

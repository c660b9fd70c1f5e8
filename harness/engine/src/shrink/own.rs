//! What a finding is by the bytes alone, where its step says which clause it is about.

use crate::boundary::Boundary;
use crate::finding::Finding;
use crate::plan::Plan;
use crate::transcript::Transcript;

/// Steps and keys of what the model finds in a conversation whose steps say nothing of what they are about.
pub(super) fn keys(
    boundary: &dyn Boundary,
    transcript: &Transcript,
) -> Vec<(Option<usize>, (String, String))> {
    let mut plan = Plan::clone(&transcript.plan);
    plan.steps.iter_mut().for_each(|step| step.expect = serde_json::Value::Null);
    let transcript = Transcript { plan: plan.into(), ..transcript.clone() };
    let findings = boundary.judge_by_model(&transcript).findings;
    findings.into_iter().map(|finding| (finding.step, (finding.clause.0, finding.reason))).collect()
}

/// What the model finds at the step of `finding` where no step says what it is about; `None` where that is the same.
pub(super) fn key(
    boundary: &dyn Boundary,
    transcript: &Transcript,
    finding: &Finding,
) -> Option<(String, String)> {
    let keys = keys(boundary, transcript);
    let is_same = |(_, (clause, reason)): &(Option<usize>, (String, String))| {
        *clause == finding.clause.0 && *reason == finding.reason
    };
    if keys.iter().any(is_same) {
        return None;
    }
    keys.into_iter().find(|(step, _)| step.is_some() && *step == finding.step).map(|(_, key)| key)
}

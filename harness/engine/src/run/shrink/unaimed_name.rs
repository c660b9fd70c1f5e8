//! Own name of a finding: the clause and reason that the bytes alone give, without the aims of steps.

use crate::contract::boundary::Boundary;
use crate::data::finding::Finding;
use crate::data::plan::Plan;
use crate::data::transcript::Transcript;

/// Steps and keys of the model's findings, without the aims of steps.
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

/// Key of the model's finding at the step of `finding`, without the aims of steps; `None` if the model makes the same
/// finding, or none at that step.
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

//! Peers that want to be told who calls, where the configuration says nothing of it: that they refuse everything is no fault of
//! theirs.

use crate::check::Untestable;
use crate::finding::{Finding, Judgement, Nature};
use crate::plan::Step;
use crate::transcript::{Kind, Transcript};

/// Whether there are HTTP replies to steps of which `is_asked` holds, and all of them are 401.
pub fn are_refused(transcript: &Transcript, is_asked: impl Fn(&Step) -> bool) -> bool {
    let steps = &transcript.plan.steps;
    let statuses = transcript.events.iter().filter_map(|event| match event.kind {
        Kind::HttpReply { step, status, .. } => steps.get(step).filter(|step| is_asked(step)).map(|_| status),
        _ => None,
    });
    let mut statuses = statuses.peekable();
    statuses.peek().is_some() && statuses.all(|status| status == 401)
}

/// Takes back what is said of a peer that refuses everything, and says `why` nothing could be decided. That it breaks down, or
/// leaves something behind, stays a fault.
pub fn excuse(judgement: &mut Judgement, why: &str) {
    let is_fault =
        |finding: &Finding| finding.nature != Nature::Violation || finding.reason.ends_with("_flood");
    judgement.findings.retain(is_fault);
    judgement.choice = None;
    judgement.canaries_misanswered = 0;
    judgement.untestable = Some(Untestable::new(Untestable::NO_WORKING_REPLY, why));
}

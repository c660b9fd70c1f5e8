//! Peers that demand credentials that the configuration lacks. Refusing everything is not their fault.

use crate::data::check::Untestable;
use crate::data::finding::{Finding, Judgement, Nature};
use crate::data::plan::Step;
use crate::data::transcript::{EventKind, Transcript};

/// True if there are HTTP replies to steps for which `is_asked` holds, and all have status 401.
pub fn are_refused(transcript: &Transcript, is_asked: impl Fn(&Step) -> bool) -> bool {
    let steps = &transcript.plan.steps;
    let statuses = transcript.events.iter().filter_map(|event| match event.kind {
        EventKind::HttpReply { step, status, .. } => {
            steps.get(step).filter(|step| is_asked(step)).map(|_| status)
        }
        _ => None,
    });
    let mut statuses = statuses.peekable();
    statuses.peek().is_some() && statuses.all(|status| status == 401)
}

/// Removes findings about a peer that refuses everything and makes the judgement untestable for `why`. Crashes, hangs,
/// leaks and floods stay findings.
pub fn excuse(judgement: &mut Judgement, why: &str) {
    let is_fault =
        |finding: &Finding| finding.nature != Nature::Violation || finding.reason.ends_with("_flood");
    judgement.findings.retain(is_fault);
    judgement.choice = None;
    judgement.canaries_misanswered = 0;
    judgement.untestable = Some(Untestable::new(Untestable::NO_WORKING_REPLY, why));
}

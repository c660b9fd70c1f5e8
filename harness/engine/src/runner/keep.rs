//! Conversations in processes that were opened for earlier ones: a start costs more than most conversations.
//!
//! Only a clean one counts. Whatever else it shows may come from the conversations before it, and is looked for again in a
//! process of its own.

use std::sync::Arc;

use super::silence::Wait;
use super::{Round, Verdict};
use crate::check::Check;
use crate::facts::Facts;
use crate::finding::Judgement;
use crate::plan::Plan;
use crate::transcript::Transcript;

impl Round<'_> {
    /// The conversation of a check in a process that was opened before, where there is one; `None` where it has to have a
    /// process of its own.
    pub(super) fn in_kept_process(&self, check: &Check, wait: Wait) -> Option<(Judgement, Transcript)> {
        let own = self.plan(check, &self.peer.facts).ok()?;
        if self.nothing_tried(check, &own).is_some() {
            return None;
        }
        let kept = self.kept.take(&own)?;
        let facts = Facts { turn: kept.turn(), ..self.peer.facts.clone() };
        let next = self.plan(check, &facts).ok()?;
        // The process was opened by the steps of its first conversation.
        let opening = kept.opening().len();
        let steps = own.steps[..opening].iter().chain(next.steps.get(opening..)?).cloned().collect();
        let plan = Arc::new(Plan { steps, ..next });
        let made: Result<_, Verdict> = self.converse(check, &plan, Some(kept), wait, 1.0);
        let (judgement, transcript, kept) = made.ok().filter(|(judgement, ..)| judgement.is_clean())?;
        if let Some(kept) = kept {
            self.kept.put(kept);
        }
        Some((judgement, transcript))
    }
}

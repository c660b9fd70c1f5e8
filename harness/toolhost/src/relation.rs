//! Demands across replies: one repeats another, a delta leads to a state, a listener was not contacted. Relations are
//! data in [`Plan::expect`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::artifact::Slots;
use super::expect::Match;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::strict;

/// Key of the relations in [`Plan::expect`].
const KEY: &str = "relations";

/// Key of the number of steps of the built plan.
const STEPS: &str = "steps";

/// A demand. Steps are indices into the plan; a step with several lines stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Relation {
    /// The reply to `step` repeats `ok`, `status`, `output_json` and `error` of the reply to `of`.
    SameResult {
        /// Broken clause.
        clause: ClauseId,
        /// The later step.
        step: usize,
        /// The earlier step.
        of: usize,
    },
    /// The reply to `step` is a hit whose `ds_state` is an empty delta or repeats that of `of`.
    HitState {
        /// Clause that another delta breaks.
        clause: ClauseId,
        /// Clause that a full state breaks.
        full: ClauseId,
        /// Step of the hit.
        step: usize,
        /// Step of the first execution.
        of: usize,
    },
    /// At least one of these replies is not a hit. The choice `choice` tells which: `oldest` if it is only the reply
    /// to `oldest`, else `another` for one, or `several`.
    SomeRanAgain {
        /// Broken clause.
        clause: ClauseId,
        /// Steps, in any order.
        steps: Vec<usize>,
        /// Step with the first key.
        oldest: usize,
        /// Key of the choice.
        choice: String,
    },
    /// The reply to `again` is a hit. Undecided if it came later than `ms` after `first` was sent.
    HeldFor {
        /// Broken clause.
        clause: ClauseId,
        /// Step of the first execution.
        first: usize,
        /// Step of the repetition.
        again: usize,
        /// Time limit in ms.
        ms: u64,
    },
    /// The reply to `again` is a success: the lease from `first` is still alive. Undecided if it came later than `ms`
    /// after `first` was sent.
    LivesFor {
        /// Broken clause.
        clause: ClauseId,
        /// Step of the lease request.
        first: usize,
        /// Step of its use.
        again: usize,
        /// Time limit in ms.
        ms: u64,
    },
    /// All replies to `step` succeed if the reply to `of` does. Otherwise undecided.
    SucceedsLike {
        /// Broken clause.
        clause: ClauseId,
        /// Judged step.
        step: usize,
        /// Step of the control.
        of: usize,
    },
    /// The reply to `step` holds the token of a lease. A success without a token means that the configured place is
    /// wrong; then it is undecided.
    Issued {
        /// Broken clause.
        clause: ClauseId,
        /// Judged step.
        step: usize,
        /// JSON Pointer to the token.
        pointer: String,
    },
    /// The reply to `step` is a success, because nothing forbids the request. Otherwise refusals elsewhere in the
    /// conversation may have any reason, and nothing is decided.
    Control {
        /// Step of the control.
        step: usize,
    },
    /// A demand of another clause on the reply to `step`.
    Member {
        /// Broken clause.
        clause: ClauseId,
        /// Judged step.
        step: usize,
        /// JSON Pointer into the reply.
        pointer: String,
        /// Demand on that member.
        what: Match,
    },
    /// The delta in the reply to `step`, applied to one of `bases`, gives `after`.
    DeltaLeads {
        /// Broken clause.
        clause: ClauseId,
        /// Judged step.
        step: usize,
        /// States to which it may apply.
        bases: Vec<Slots>,
        /// State of the peer afterwards.
        after: Slots,
    },
    /// No connection reached this listener.
    NotContacted {
        /// Broken clause.
        clause: ClauseId,
        /// Name of the fixture.
        listener: String,
    },
}

impl Relation {
    /// Adds the relation to a plan.
    pub(crate) fn add_to(self, plan: &mut Plan) {
        if !plan.expect.is_object() {
            plan.expect = Value::Object(serde_json::Map::new());
        }
        let list = &mut plan.expect[KEY];
        if !list.is_array() {
            *list = Value::Array(Vec::new());
        }
        if let (Some(list), Ok(relation)) = (list.as_array_mut(), serde_json::to_value(self)) {
            list.push(relation);
        }
    }

    /// Records the number of steps of the finished plan, because relations refer to steps by index.
    pub(crate) fn seal(plan: &mut Plan) {
        if plan.expect.get(KEY).is_some() {
            plan.expect[STEPS] = plan.steps.len().into();
        }
    }

    /// Relations that can be judged. If steps were removed, only those without step indices.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let whole = plan.expect.get(STEPS).and_then(Value::as_u64) == Some(plan.steps.len() as u64);
        let list = plan.expect.get(KEY).and_then(|list| serde_json::from_value(list.clone()).ok());
        let mut relations: Vec<Self> = list.unwrap_or_default();
        relations.retain(|relation| whole || matches!(relation, Self::NotContacted { .. }));
        relations
    }
}

/// Refuses a plan with unreadable relations.
///
/// # Errors
/// One sentence that names the fault.
pub(crate) fn admit(plan: &Plan) -> Result<(), Misconfigured> {
    let Some(members) = plan.expect.as_object() else { return Ok(()) };
    if let Some(name) = members.keys().find(|name| ![KEY, STEPS].contains(&name.as_str())) {
        return Err(format!("plan/expect: {name:?} is unknown; known are {KEY:?} and {STEPS:?}").into());
    }
    match members.get(KEY) {
        Some(relations) => strict::read::<Vec<Relation>>(relations, "plan/expect/relations").map(|_| ()),
        None => Ok(()),
    }
}

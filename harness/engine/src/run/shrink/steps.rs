//! First stage: removes whole messages.

use std::collections::BTreeSet;

use super::{Change, ShrinkJudge, Shrinker};
use crate::data::finding::Nature;
use crate::data::near_miss::MARK;
use crate::data::plan::{Act, Plan};

/// Removes steps, in large pieces first, until each one is necessary.
pub(super) fn shrink(shrinker: &mut Shrinker<'_>) {
    if shrinker.is_of_a_consumer() {
        only_its_process(shrinker);
        // A peer that is asked line by line, and starts others for that, has an ordinary conversation.
        if shrinker.best.plan.steps.iter().all(|step| step.turn.is_none()) {
            return;
        }
    }
    only_what_matters(shrinker);
    let mut size = removable(shrinker).len().div_ceil(2);
    while size > 0 && shrinker.goes_on() {
        let mut removed_any = false;
        // Backwards, because the uses of a captured value come after its capture.
        let mut end = removable(shrinker).len();
        while end > 0 && shrinker.goes_on() {
            let units = removable(shrinker);
            end = end.min(units.len());
            let begin = end.saturating_sub(size);
            let gone: BTreeSet<usize> = units[begin..end].iter().copied().collect();
            if !gone.is_empty() && remove(shrinker, &gone) {
                removed_any = true;
            }
            end = begin;
        }
        if size == 1 && !removed_any {
            break;
        }
        size = if size == 1 { 1 } else { size / 2 };
    }
}

/// Removes other calls of a consumer. It has one process per call, whose steps usually all matter.
fn only_its_process(shrinker: &mut Shrinker<'_>) {
    let Some(failing) = failing(shrinker) else { return };
    let plan = &shrinker.best.plan;
    let session = plan.steps[failing].session;
    let gone = (0..plan.steps.len()).filter(|index| plan.steps[*index].session != session).collect();
    remove(shrinker, &gone);
}

/// Keeps only the failing step, the steps whose values it uses, and the end of its process.
fn only_what_matters(shrinker: &mut Shrinker<'_>) {
    let Some(failing) = failing(shrinker) else { return };
    let plan = &shrinker.best.plan;
    let mut needed = BTreeSet::from([failing]);
    let mut wanted: BTreeSet<&str> = variables(plan, failing).collect();
    for index in (0..failing).rev() {
        if let Some(capture) = &plan.steps[index].capture
            && wanted.contains(capture.var.as_str())
        {
            needed.insert(index);
            wanted.extend(variables(plan, index));
        }
    }
    let gone = removable(shrinker).into_iter().filter(|index| !needed.contains(index)).collect();
    remove(shrinker, &gone);
}

fn variables(plan: &Plan, step: usize) -> Box<dyn Iterator<Item = &str> + '_> {
    match &plan.steps[step].act {
        // A near miss is known when the captured value is.
        Act::Send { payload, .. } => Box::new(payload.variables().filter_map(|name| name.split(MARK).next())),
        _ => Box::new(std::iter::empty()),
    }
}

/// Index of the step that shows the finding in the smallest plan so far.
fn failing(shrinker: &Shrinker<'_>) -> Option<usize> {
    let step = shrinker.step?;
    shrinker.best.origin.iter().position(|origin| *origin == step)
}

/// Steps that the judge allows to remove. The end of a process goes with its last message.
fn removable(shrinker: &Shrinker<'_>) -> Vec<usize> {
    let plan = &shrinker.best.plan;
    let failing = failing(shrinker);
    let session = failing.map(|index| plan.steps[index].session);
    let matters = |index: usize| match shrinker.judge {
        ShrinkJudge::Model | ShrinkJudge::Reference => false,
        ShrinkJudge::Nobody => {
            let step = &plan.steps[index];
            let before = failing.is_none_or(|failing| index < failing);
            before && !step.canary && session.is_none_or(|session| session == step.session)
        }
    };
    let tells = |index: usize| {
        failing.is_some_and(|failing| failing + 1 == index)
            && plan.steps[index].canary
            && shrinker.is_told_by_canary()
    };
    let opens = |index: usize| {
        plan.steps[index].setup && session.is_none_or(|session| session == plan.steps[index].session)
    };
    (0..plan.steps.len())
        .filter(|index| Some(*index) != failing && !tells(*index))
        .filter(|index| !matches!(plan.steps[*index].act, Act::Finish))
        .filter(|index| !matters(*index))
        .filter(|index| !opens(*index))
        .collect()
}

fn remove(shrinker: &mut Shrinker<'_>, gone: &BTreeSet<usize>) -> bool {
    if gone.is_empty() {
        return false;
    }
    let plan = &shrinker.best.plan;
    // Steps that measure the start stay if the finding is a late answer.
    let is_late = shrinker.finding.nature == Nature::Hang;
    let measures =
        |index: usize| is_late && plan.sessions[plan.steps[index].session].shows_start == Some(true);
    let mut keep: BTreeSet<usize> =
        (0..plan.steps.len()).filter(|index| !gone.contains(index) || measures(*index)).collect();
    // A process without messages is not started, except for that of the failing step.
    let failing = failing(shrinker);
    let stays = |index: usize| Some(index) == failing || measures(index);
    let alive: BTreeSet<usize> = keep
        .iter()
        .filter(|index| !matches!(plan.steps[**index].act, Act::Finish) || stays(**index))
        .map(|index| plan.steps[*index].session)
        .collect();
    keep.retain(|index| alive.contains(&plan.steps[*index].session));
    if keep.is_empty() {
        return false;
    }
    let mut candidate = shrinker.best.keeping(&keep);
    renumber(&mut candidate.plan);
    shrinker.accepts(candidate, Change::Steps)
}

/// Removes sessions without steps and renumbers the others.
fn renumber(plan: &mut Plan) {
    let used: BTreeSet<usize> = plan.steps.iter().map(|step| step.session).collect();
    let place: Vec<usize> = (0..plan.sessions.len()).map(|old| used.range(..old).count()).collect();
    let mut old = 0;
    plan.sessions.retain(|_| {
        old += 1;
        used.contains(&(old - 1))
    });
    for step in &mut plan.steps {
        step.session = place.get(step.session).copied().unwrap_or(step.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::plan::{Session, Step};

    #[test]
    fn sessions_without_steps_go_and_the_rest_closes_ranks() {
        let session = |name: &str| Session { command: name.to_owned(), ..Session::default() };
        let mut plan = Plan {
            sessions: vec![session("a"), session("b"), session("c")],
            steps: [0, 2, 2].map(|session| Step { session, ..Step::new(Act::Finish) }).to_vec(),
            ..Plan::default()
        };
        renumber(&mut plan);
        let names: Vec<&str> = plan.sessions.iter().map(|session| session.command.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(plan.steps.iter().map(|step| step.session).collect::<Vec<_>>(), [0, 1, 1]);
    }
}

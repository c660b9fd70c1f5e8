//! Turns of an actor: its steps at each start. Removing a step removes its turn.

use super::{ActorStep, Fixture, Plan};

impl Plan {
    /// Removes the turns of steps in `before` that the plan lacks from its only actor, and renumbers the others. A turn
    /// without a step goes with the last step before it that has one.
    pub(crate) fn keep_turns(&mut self, before: &Self) {
        let begins: Vec<usize> = before.steps.iter().filter_map(|step| step.turn).collect();
        if begins.is_empty() {
            return;
        }
        let Some(Fixture::Actor { script, later, .. }) =
            self.fixtures.iter_mut().find(|fixture| matches!(fixture, Fixture::Actor { .. }))
        else {
            return;
        };
        let all: Vec<Vec<ActorStep>> =
            std::iter::once(std::mem::take(script)).chain(std::mem::take(later)).collect();
        let mut kept: Vec<Vec<ActorStep>> = Vec::new();
        for step in &mut self.steps {
            let Some(begin) = step.turn else { continue };
            let end = begins.iter().copied().find(|other| *other > begin).unwrap_or(all.len());
            step.turn = Some(kept.len());
            kept.extend(all.get(begin..end.min(all.len())).unwrap_or_default().iter().cloned());
        }
        // An actor that is never started keeps the first script.
        if kept.is_empty() {
            kept.extend(all.into_iter().take(1));
        }
        let mut kept = kept.into_iter();
        *script = kept.next().unwrap_or_default();
        *later = kept.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::plan::{Act, Step};

    #[test]
    fn a_turn_goes_with_its_step() {
        let exit = |status: i32| vec![ActorStep::Exit(status)];
        let step = |turn: Option<usize>| Step { turn, ..Step::new(Act::Flush) };
        let plan = Plan {
            fixtures: vec![Fixture::Actor {
                name: "a".to_owned(),
                script: exit(0),
                later: [1, 2, 3].map(exit).to_vec(),
            }],
            steps: [Some(0), None, Some(1), Some(3)].map(step).to_vec(),
            ..Plan::default()
        };
        let keeping = |steps: &[usize]| {
            let steps = steps.iter().map(|at| plan.steps[*at].clone()).collect();
            let mut smaller = Plan { steps, ..plan.clone() };
            smaller.keep_turns(&plan);
            smaller
        };
        let smaller = keeping(&[1, 2, 3]);
        assert_eq!(smaller.steps.iter().map(|step| step.turn).collect::<Vec<_>>(), [None, Some(0), Some(2)]);
        let Fixture::Actor { script, later, .. } = &smaller.fixtures[0] else { panic!("no actor") };
        assert_eq!((script, later), (&exit(1), &vec![exit(2), exit(3)]));
        let none = keeping(&[1]);
        let Fixture::Actor { script, later, .. } = &none.fixtures[0] else { panic!("no actor") };
        assert_eq!((script, later.len()), (&exit(0), 0));
    }
}

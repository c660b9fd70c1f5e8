//! All checks of the policy_driver boundary: those of drivers, of bridges, of selectors.

use peerproof_engine::data::check::Check;

mod bridge;
mod driver;
mod selector;

/// Every check, in the order in which they run.
pub(crate) fn all() -> Vec<Check> {
    [driver::checks(), bridge::checks(), selector::checks()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::full_facts;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::rng::Rng;

    #[test]
    fn a_canary_that_fails_breaks_a_clause_of_its_own_check() {
        for check in all() {
            let side = if check.command == super::super::SELECTOR { Side::Consumer } else { Side::Provider };
            let mut rng = Rng::new(1).fork(&check.id);
            // A check that cannot run on this machine has no steps.
            let Ok(plan) = (check.planner)(&full_facts::facts(side), &mut rng) else { continue };
            // The model derives the expectation of a generated conversation.
            for step in plan.steps.iter().filter(|step| step.canary && !plan.by_model) {
                let all = step.expect.as_array().cloned().unwrap_or_else(|| vec![step.expect.clone()]);
                for expect in all {
                    let clause = expect["clause"].as_str().unwrap_or_default();
                    let is_own = check.clauses.iter().any(|own| own.0 == clause);
                    assert!(is_own, "{}: {clause} is none of {:?}", check.id, check.clauses);
                }
            }
        }
    }

    /// A selector may require the usual extension of a script, so every script that must run has one.
    #[test]
    fn scripts_that_are_to_run_have_an_extension() {
        use super::super::selector::talk::COMMAND;
        let mut seen = 0;
        for check in all().into_iter().filter(|check| check.command == super::super::SELECTOR) {
            let mut rng = Rng::new(1).fork(&check.id);
            let Ok(plan) = (check.planner)(&full_facts::facts(Side::Consumer), &mut rng) else { continue };
            for (number, session) in plan.sessions.iter().enumerate() {
                let runs = |step: &peerproof_engine::data::plan::Step| {
                    step.session == number && step.expect["starts"]["count"].as_u64().unwrap_or(0) > 0
                };
                let command = session.env.get(COMMAND).map(String::as_str).unwrap_or_default();
                let mut words = command.split_ascii_whitespace();
                let is_interpreter =
                    words.next().is_some_and(|word| ["sh", "python3", "node"].contains(&word));
                let script = words.find(|word| word.starts_with("{{")).filter(|_| is_interpreter);
                if let Some(script) = script.filter(|_| plan.steps.iter().any(runs)) {
                    let name = script.trim_end_matches("}}").trim_end_matches(".path");
                    let has = [".sh", ".py", ".js"].iter().any(|extension| name.ends_with(extension));
                    assert!(has, "{}: {command}", check.id);
                    seen += 1;
                }
            }
        }
        assert!(seen > 100, "{seen}");
    }
}

//! All checks of the policy_driver boundary: those of drivers, of bridges, of selectors.

use peerproof_engine::check::Check;

mod bridge;
mod driver;
mod select;

/// Every check, in the order in which they run.
pub fn all() -> Vec<Check> {
    [driver::checks(), bridge::checks(), select::checks()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::usual;
    use super::*;
    use peerproof_engine::clause::Side;
    use peerproof_engine::rng::Rng;

    #[test]
    fn a_canary_that_fails_breaks_a_clause_of_its_own_check() {
        for check in all() {
            let side = if check.command == super::super::SELECTOR { Side::Consumer } else { Side::Provider };
            let mut rng = Rng::new(1).fork(&check.id);
            // What cannot be tried on this machine has no steps.
            let Ok(plan) = (check.planner)(&usual::facts(side), &mut rng) else { continue };
            // Of a generated conversation the model says what is expected.
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
}

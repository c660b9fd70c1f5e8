//! Validation of stored conversations before a boundary judges them. Unknown names are errors, because ignoring them
//! would blame the peer.

use crate::contract::boundary::Boundary;
use crate::data::blame::Misconfigured;
use crate::data::facts::Facts;
use crate::data::nearest::{did_you_mean, then};
use crate::data::plan::{ActorStep, Fixture, Plan};
use crate::data::transcript::Transcript;
use crate::data::transcript::strict::ADVICE;
use crate::drive::config;

/// Refuses a stored conversation that `boundary` does not fully understand: names in the configuration, clauses of its
/// steps, programs of its actors, and everything that [`Boundary::admit`] refuses.
///
/// # Errors
/// Names the unknown part in one sentence.
pub fn admit(boundary: &dyn Boundary, transcript: &Transcript) -> Result<(), Misconfigured> {
    facts(boundary, &transcript.facts)?;
    boundary.admit(transcript)?;
    clauses(boundary, &transcript.plan)?;
    programs(boundary, &transcript.plan)
}

/// Refuses steps about unknown clauses: otherwise nothing, or a clause that does not exist, would be broken.
fn clauses(boundary: &dyn Boundary, plan: &Plan) -> Result<(), Misconfigured> {
    let known = || boundary.clauses().iter().map(|clause| clause.id.0.as_str());
    for (at, step) in plan.steps.iter().enumerate() {
        let aims = step.expect.as_array().map_or(std::slice::from_ref(&step.expect), Vec::as_slice);
        for id in aims.iter().filter_map(|aim| aim.get("clause")?.as_str()) {
            if known().all(|known| known != id) {
                let hint = did_you_mean(id, known());
                return Err(format!(
                    "plan/steps/{at}/expect: there is no clause {id:?} of {}{}",
                    boundary.name(),
                    then(&hint, ADVICE)
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Refuses actors with programs that the boundary lacks.
fn programs(boundary: &dyn Boundary, plan: &Plan) -> Result<(), Misconfigured> {
    for fixture in &plan.fixtures {
        let Fixture::Actor { name, script, later } = fixture else { continue };
        for step in later.iter().chain([script]).flatten() {
            if let ActorStep::Converse(program) | ActorStep::Perform(program) = step
                && boundary.program(program, &[]).is_none()
            {
                return Err(format!("plan/fixtures/{name}: there is no program {program:?}; {ADVICE}").into());
            }
        }
    }
    Ok(())
}

/// Refuses unknown roles, features, choices and limits with a similar known name.
fn facts(boundary: &dyn Boundary, facts: &Facts) -> Result<(), Misconfigured> {
    let known = config::keys(boundary);
    let tables: [(&str, Vec<&String>); 4] = [
        ("roles", facts.roles.keys().collect()),
        ("features", facts.features.keys().collect()),
        ("choices", facts.choices.keys().collect()),
        ("limits", facts.limits.keys().collect()),
    ];
    for (table, names) in tables {
        let here = || known.iter().filter(|key| key.table() == table).map(|key| key.name);
        for name in names.into_iter().filter(|name| here().all(|known| known != name.as_str())) {
            let hint = did_you_mean(name, here());
            if !hint.is_empty() {
                return Err(format!("facts/{table}: {name:?} is unknown{}", then(&hint, ADVICE)).into());
            }
        }
    }
    Ok(())
}

//! Checks: rows of case files, and conversations derived from a server's lists.

mod features;
mod lists;
mod messages;
mod tasks;
mod tools;

pub(crate) use lists::count_pages;
pub(crate) use lists::undeclared;

use serde_json::Value;

use super::cases;
use super::model::arguments;
use super::role;
use super::talk::Talk;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

/// All checks, in the order in which they run.
pub(crate) fn all() -> Vec<Check> {
    [
        cases::checks(),
        messages::checks(),
        lists::checks(),
        tools::checks(),
        tasks::checks(),
        features::checks(),
    ]
    .concat()
}

/// A check over an open connection.
fn check(
    id: &str,
    title: &str,
    clauses: &[&str],
    add: impl Fn(&mut Talk<'_>, &mut Rng) -> Result<(), Untestable> + Send + Sync + 'static,
) -> Check {
    let plan = move |facts: &Facts, rng: &mut Rng| -> Result<Plan, Untestable> {
        let mut talk = Talk::opened(facts);
        add(&mut talk, rng)?;
        Ok(talk.finish())
    };
    Check::new(format!("mcp/stdio/{id}"), title, clauses.iter().copied(), "command", plan)
}

/// Tools that may be called without a task.
fn callable(facts: &Facts) -> Vec<&Value> {
    let needs_none = |tool: &&Value| arguments::task_support(tool) != "required";
    role::callable(facts).into_iter().filter(needs_none).collect()
}

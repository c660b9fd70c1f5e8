//! Checks of the selector: the harness sends requests and plays its drivers.

use super::super::SELECTOR;
use super::super::selector::talk::Talk;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::rng::Rng;

mod allowlist;
mod breaker;
mod command_line;
mod environment;
mod every;
mod fail;
mod grammar;
mod interpreters;
mod lines;
mod merge;
mod mode;
mod model;
mod numbers;
mod output;
mod payload_file;
mod resources;
mod script_root;
mod selections;
mod starts;
mod time;

/// All checks of selectors.
pub(super) fn checks() -> Vec<Check> {
    let topics = [
        every::checks(),
        grammar::checks(),
        selections::checks(),
        merge::checks(),
        lines::checks(),
        payload_file::checks(),
        mode::checks(),
        time::checks(),
        output::checks(),
        numbers::checks(),
        fail::checks(),
        breaker::checks(),
        model::checks(),
        allowlist::checks(),
        script_root::checks(),
        interpreters::checks(),
        command_line::checks(),
        environment::checks(),
        resources::checks(),
    ];
    topics.into_iter().flatten().collect()
}

/// A check of a selector with real processes as drivers. Ends with the end of input.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk, &mut Rng) + Send + Sync + 'static,
) -> Check {
    let clauses = clauses.iter().copied();
    let id = format!("policy_driver/select/{name}");
    let check = Check::new(id, title, clauses, SELECTOR, move |_, rng| {
        let mut talk = Talk::new();
        make(&mut talk, rng);
        talk.finish();
        Ok(patient(talk.plan()))
    });
    check.on_process()
}

/// Extra time for a large runtime to start, many of them at once, ms.
const START_MS: u64 = 10_000;

/// Gives the first Selection of each selector more time.
fn patient(mut plan: Plan) -> Plan {
    for session in 0..plan.sessions.len() {
        let mut sends = plan.steps.iter_mut().filter(|step| step.session == session);
        if let Some(first) = sends.find(|step| matches!(step.act, Act::Send { .. })) {
            first.allow_ms += START_MS;
        }
    }
    plan
}

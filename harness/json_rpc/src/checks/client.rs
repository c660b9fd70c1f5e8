//! The client: the harness plays the server.

use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::plan::Plan;
use peerproof_engine::rng::Rng;

use super::super::client::scene::Scene;
use super::super::client::{COMMAND, generate};

mod ambient;
mod answers;
mod auth;
mod ends;
mod hostile;
mod requests;
mod retries;
mod streams;
mod timeouts;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    [
        answers::checks(),
        requests::checks(),
        timeouts::checks(),
        retries::checks(),
        hostile::checks(),
        streams::checks(),
        ends::checks(),
        auth::checks(),
        generated(),
        ambient::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A check of the client about the first of `clauses`. Every conversation has a process of its own, so that none can be
/// harmed by another: they rest on the first canary.
fn check(
    name: &str,
    title: &str,
    clauses: &'static [&'static str],
    make: impl Fn(&mut Scene, &mut Rng) + Send + Sync + 'static,
) -> Check {
    let planner = move |_: &Facts, rng: &mut Rng| -> Result<Plan, String> {
        let mut scene = Scene::about(clauses.first().copied().unwrap_or_default());
        make(&mut scene, rng);
        Ok(scene.plan())
    };
    let listed = clauses.iter().copied();
    Check::new(format!("json_rpc/client/{name}"), title, listed, COMMAND, planner).vouched()
}

/// Mixtures that nobody thought of, one check each: they differ by the stream of random numbers that the id gives.
fn generated() -> Vec<Check> {
    let one = |name: &str| {
        let title = "In any mixture each call ends as its answers say.";
        let clauses = ["RPC-CLIENT-09", "RPC-CLIENT-10", "RPC-CLIENT-11", "RPC-CLIENT-12", "RPC-CLIENT-17"];
        let planner =
            |facts: &Facts, rng: &mut Rng| -> Result<Plan, String> { Ok(generate::conversation(facts, rng)) };
        Check::new(format!("json_rpc/client/mixture/{name}"), title, clauses, COMMAND, planner).vouched()
    };
    ["first", "second", "third", "fourth", "fifth"].map(one).into()
}

//! The driver: payloads in, one block out.

use super::super::DRIVER;
use super::super::driver::talk::Talk;
use super::super::request::Request;
use crate::check::Check;
use crate::payload::Payload;
use crate::rng::Rng;

mod every;
mod hostile;
mod limits;
mod load;
mod malformed;
mod numbers;
mod open;
mod output;
mod payload;
mod properties;
mod roles;
mod start;

/// The checks of this side.
pub fn checks() -> Vec<Check> {
    [
        every::checks(),
        start::checks(),
        payload::checks(),
        open::checks(),
        numbers::checks(),
        roles::checks(),
        output::checks(),
        malformed::checks(),
        hostile::checks(),
        load::checks(),
        limits::checks(),
        properties::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A check of a driver. Every decision has a process of its own, so that none can be harmed by another: they rest on
/// the first canary.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk<'_>) + Send + Sync + 'static,
) -> Check {
    seeded(name, title, clauses, move |talk, _| make(talk))
}

/// The same, with something drawn.
fn seeded(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk<'_>, &mut Rng) + Send + Sync + 'static,
) -> Check {
    let clauses = clauses.iter().copied();
    let id = format!("policy_driver/driver/{name}");
    let check = Check::new(id, title, clauses, DRIVER, move |facts, rng| {
        let mut talk = Talk::new(facts);
        make(&mut talk, rng);
        Ok(talk.plan())
    });
    check.on_process().vouched()
}

/// The text of a request with one more member, whose value may be no JSON.
fn with_raw(request: &Request, name: &str, value: &str) -> Payload {
    let text = request.text();
    let open = text.strip_suffix('}').unwrap_or(&text);
    Payload::text(format!("{open},\"{name}\":{value}}}"))
}

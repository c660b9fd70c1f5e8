//! Checks of the driver: one payload in, one block out.

use super::super::DRIVER;
use super::super::driver::talk::Talk;
use super::super::request::Request;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::rng::Rng;

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

/// All checks of drivers.
pub(super) fn checks() -> Vec<Check> {
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

/// A check of a driver. Each decision has a process of its own, so that none can harm another. They rest on the
/// first canary.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    make: impl Fn(&mut Talk<'_>) + Send + Sync + 'static,
) -> Check {
    seeded(name, title, clauses, move |talk, _| make(talk))
}

/// A check of a driver with random parts.
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
        talk.plan()
    });
    check.on_process().vouched()
}

/// Text of a request with one more member, whose value may be invalid JSON.
fn with_raw(request: &Request, name: &str, value: &str) -> Payload {
    let text = request.text();
    let open = text.strip_suffix('}').unwrap_or(&text);
    Payload::text(format!("{open},\"{name}\":{value}}}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::full_facts;
    use super::*;
    use peerproof_engine::data::check::Untestable;
    use peerproof_engine::data::clause::Side;

    /// Reasons why checks with this part in their ids are untestable if the payload of `role` is this text.
    fn reasons(part: &str, role: &str, payload: &str) -> Vec<Option<Untestable>> {
        let mut facts = full_facts::facts(Side::Provider);
        let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
        facts.roles.insert(role.to_owned(), serde_json::json!({ "payload": payload }));
        let all = checks().into_iter().filter(|check| check.id.contains(part));
        let reasons = all.map(|check| (check.planner)(&facts, &mut Rng::new(1).fork(&check.id)).err());
        reasons.collect()
    }

    #[test]
    fn a_role_that_leaves_nothing_to_probe_makes_its_checks_untestable() {
        let of_one = Request::of(&[crate::request::Entry::plain(7)]);
        let bare = of_one.inputs("{}").text();
        for (part, role) in [("roles/pick-inp64", "pick_inp64"), ("roles/pick", "pick")] {
            let reasons = reasons(part, role, "{}");
            assert_eq!(reasons[0].as_ref().unwrap().code, "nothing_to_pick", "{part}: {reasons:?}");
        }
        for (part, role) in
            [("/output/inp64", "pick_inp64"), ("/output/words-in-inp", "pick_inp"), ("/values/", "pick_inp")]
        {
            for reason in reasons(part, role, &bare) {
                assert_eq!(reason.as_ref().unwrap().code, "nothing_to_copy", "{part}: {reason:?}");
            }
        }
        assert_eq!(reasons("roles/pick-inp64", "pick_inp64", &bare), [None]);
    }
}

//! Checks of a driver's promises: a payload for each form of a pick.

use super::super::super::driver::expect::{Allowed, Expect, PickForm};
use super::super::super::request::Request;
use super::check;
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        promised("pick", "pick", "PD-OUT-02", PickForm::Plain),
        promised("pick-inp", "pick_inp", "PD-OUT-03", PickForm::Inp).feature("patches"),
        promised("pick-inp64", "pick_inp64", "PD-OUT-04", PickForm::Inp64).feature("patches"),
        printed("status", "With a block of any form the driver exits with 0.", "PD-OUT-12"),
        printed(
            "one-of-each",
            "No block has a second SID, a second patch, a second block or a byte order mark.",
            "PD-OUT-11",
        ),
        printed("nothing-else", "No text is printed before or after a block of any form.", "PD-OUT-13"),
    ]
}

fn promised(name: &str, role: &'static str, clause: &'static str, form: PickForm) -> Check {
    check(
        &format!("roles/{name}"),
        &format!("For the payload of the role {role}, the driver prints a pick of that form."),
        &[clause],
        move |talk| {
            if let Some(request) = talk.needed_role(role) {
                let expect = Expect::new(clause, Allowed::in_form(form)).reason("other_form").narrow();
                talk.decide(&request, expect);
            }
        },
    )
    .roles(&[role])
}

/// A check of the output for each role's payload and a plain one.
fn printed(name: &str, title: &str, clause: &'static str) -> Check {
    check(&format!("roles/{name}"), title, &[clause], move |talk| {
        let urged = Request::plain().inputs(r#"{"url":"http://127.0.0.1:1/"}"#);
        for request in talk.payloads().into_iter().chain([urged]) {
            talk.decide(&request, Expect::block(clause).narrow());
        }
    })
}

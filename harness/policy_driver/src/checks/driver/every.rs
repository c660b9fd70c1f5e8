//! Checks of rules for every decision of a driver, and the first canary.

use super::super::super::driver::expect::Expect;
use super::super::super::request::Request;
use super::check;
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![first_canary(), one_block(), menu(), leaves_nothing()]
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "For a plain payload the driver prints one block and exits with 0.",
        &["PD-START-03", "PD-START-04"],
        |talk| {
            talk.starts().canary("PD-START-03");
        },
    )
    .first_canary()
}

fn one_block() -> Check {
    let clauses = ["PD-OUT-01", "PD-OUT-02", "PD-OUT-07", "PD-OUT-08", "PD-OUT-10", "PD-OUT-11"];
    check(
        "every-decision/one-block",
        "With status 0, the output is exactly one block of the five forms, whatever the payload.",
        &clauses,
        |talk| {
            talk.decide(&Request::plain(), Expect::block("PD-OUT-01").narrow()).counts_as_canary();
            for request in talk.payloads() {
                talk.decide(&request, Expect::block("PD-OUT-01").narrow());
            }
        },
    )
    .ambient()
}

fn menu() -> Check {
    check(
        "every-decision/from-the-menu",
        "A PICK is from the menu, whatever the payload.",
        &["PD-OUT-06"],
        |talk| {
            talk.decide(&Request::plain(), Expect::block("PD-OUT-06")).counts_as_canary();
        },
    )
    .ambient()
}

fn leaves_nothing() -> Check {
    check(
        "every-decision/leaves-nothing",
        "No process and no file is left after a decision.",
        &["PD-START-05"],
        |talk| {
            talk.canary("PD-START-05");
        },
    )
    .ambient()
}

//! Checks of rules for every Selection, and the first canary.

use super::super::super::request::Request;
use super::super::super::selector::expect::Expect;
use super::super::super::selector::talk::says;
use super::check;
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![first_canary(), well_formed(), fallback(), fallback_tells(), leaves_nothing(), ends()]
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "A plain request whose driver picks is answered by that pick.",
        &["PD-MODE-01", "PD-GRAM-01"],
        |talk, _| {
            talk.canary("PD-MODE-01");
        },
    )
    .first_canary()
}

fn well_formed() -> Check {
    let clauses = [
        "PD-SEL-01",
        "PD-SEL-02",
        "PD-SEL-04",
        "PD-SELN-01",
        "PD-SELN-02",
        "PD-SELN-03",
        "PD-SELN-04",
        "PD-SELN-09",
    ];
    check(
        "every-request/one-selection",
        "Every request is answered at once by one Selection, a strict JSON object with kind, raw and, for PICK, a sid.",
        &clauses,
        |talk, _| {
            talk.canary("PD-SEL-01");
        },
    )
    .ambient()
}

fn fallback() -> Check {
    check(
        "every-request/fallback",
        "If a driver fails, the Selection is that of FALLBACK_ONLY, without a patch, and its raw is not a \
         block.",
        &["PD-SELN-05", "PD-SELN-06"],
        |talk, _| {
            talk.canary("PD-SELN-05");
            talk.play(&Request::plain(), says("no block"), Expect::fallback("PD-SELN-05"));
        },
    )
    .ambient()
}

fn fallback_tells() -> Check {
    check(
        "every-request/fallback-tells-why",
        "If a driver ran and failed, `raw` is not empty.",
        &["PD-SELN-10"],
        |talk, _| {
            talk.canary("PD-SELN-10");
            for output in ["no block", ""] {
                talk.play(&Request::plain(), says(output), Expect::fallback("PD-SELN-10"));
            }
        },
    )
    .ambient()
}

fn leaves_nothing() -> Check {
    check(
        "every-request/leaves-nothing",
        "After a Selection no process of the driver is running, and its payload is gone.",
        &["PD-TIME-05", "PD-FILE-04"],
        |talk, _| {
            talk.canary("PD-TIME-05").probe_after(0);
        },
    )
    .ambient()
}

fn ends() -> Check {
    check(
        "every-request/ends-in-order",
        "At the end of its input the selector exits with 0 within 2 s.",
        &["PD-SEL-09"],
        |talk, _| {
            talk.canary("PD-SEL-09");
        },
    )
    .ambient()
}

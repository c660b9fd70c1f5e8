//! Checks of drivers under the resource limits that a selector sets.

use super::super::super::driver::expect::Expect;
use super::super::super::driver::talk::Talk;
use super::super::super::request::Request;
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::Limits;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![time_and_files(), all()]
}

/// Limits of the documents, except that of the address space.
const WITHOUT_SPACE: Limits = Limits {
    address_space_bytes: None,
    cpu_seconds: Some(2),
    open_files: Some(64),
    file_bytes: Some(10 << 20),
    further_processes: Some(32),
};

/// Limit of the address space in the documents, MiB.
const SPACE_MIB: u64 = 768;

/// All limits of the documents; the configured address space, if any, replaces theirs.
pub(super) fn documented(facts: &Facts) -> Limits {
    let mib = facts.limits.get("address_space_mb").copied().unwrap_or(SPACE_MIB);
    Limits { address_space_bytes: Some(mib << 20), ..WITHOUT_SPACE }
}

fn decide(talk: &mut Talk<'_>) {
    talk.decide(&Request::plain(), Expect::block("PD-LOAD-06").narrow());
    let (request, expect) = talk.pickable("PD-LOAD-06");
    talk.decide(&request, expect.narrow());
}

fn time_and_files() -> Check {
    check(
        "limits/time-and-files",
        "With limits of 2 s of processor time, files of 10 MB, 64 descriptors and 32 processes, the driver \
         decides a plain payload.",
        &["PD-LOAD-06"],
        |talk| {
            talk.limits(WITHOUT_SPACE);
            decide(talk);
        },
    )
}

fn all() -> Check {
    check(
        "limits/all",
        "With all documented limits, including 768 MB of address space, the driver decides a plain payload.",
        &["PD-LOAD-06"],
        |talk| {
            let limits = documented(talk.facts());
            talk.limits(limits);
            decide(talk);
        },
    )
}

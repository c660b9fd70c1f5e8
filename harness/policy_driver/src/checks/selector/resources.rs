//! Checks of a driver's resource limits (`policy` §1 "Resource limits").

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::provided::{PROCESSES, Provided};
use super::super::super::selector::talk::{COOLDOWN, THRESHOLD, Talk, says};
use super::check;
use super::starts::PICKED;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::{ActorStep, Resource, Sight};

const CPU: &str = "PD-RLIM-01";
const MEMORY: &str = "PD-RLIM-02";
const FILE: &str = "PD-RLIM-03";
const OPEN_FILES: &str = "PD-RLIM-04";
const CHILDREN: &str = "PD-RLIM-05";
const SELECTOR_LIVES: &str = "PD-RLIM-06";

/// Variable: processor time, s.
pub(crate) const CPU_VARIABLE: &str = "MACHINA_POLICY_RLIMIT_CPU_SEC";
const MEMORY_VARIABLE: &str = "MACHINA_POLICY_RLIMIT_AS_MB";
/// Variable: size of a file, MB.
pub(crate) const FILE_VARIABLE: &str = "MACHINA_POLICY_RLIMIT_FSIZE_MB";
/// Variable: number of file descriptors.
pub(crate) const OPEN_FILES_VARIABLE: &str = "MACHINA_POLICY_RLIMIT_NOFILE";
const CHILDREN_VARIABLE: &str = "MACHINA_POLICY_RLIMIT_NPROC";

/// A megabyte in bytes (readings §0).
pub(crate) const MB: u64 = 1 << 20;
/// Time to use up a resource on a busy machine, ms.
pub(crate) const USE_MS: u64 = 15_000;
/// A cooldown longer than any conversation, ms.
const LONG_MS: &str = "600000";
/// Signals that end a process beyond its limit of processor time or file size.
const ENDED_BY: [i32; 3] = [24, 25, 9];

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        processor_time(),
        address_space(),
        file_size(),
        open_files(),
        processes(),
        several(),
        ended_by_a_limit(),
        not_of_the_selector(),
    ]
}

/// A step that uses this amount of a resource.
pub(crate) fn uses(what: Resource, amount: u64) -> ActorStep {
    ActorStep::Exhaust { what, amount }
}

/// A driver that reports its limits and exceeds one, and the expectation. The report and the effect both show the
/// limit.
pub(crate) fn limited_turn(
    clause: &str,
    row: &str,
    soft: u64,
    beyond: Option<ActorStep>,
) -> (Vec<ActorStep>, Expect) {
    let is_tried = beyond.is_some();
    let looks = vec![ActorStep::Look(Sight::Limits), ActorStep::Look(Sight::Status)];
    let turn = [looks, beyond.into_iter().collect(), says(PICKED)].concat();
    let limit = Provided::Limit { clause: clause.into(), row: row.to_owned(), soft, is_tried };
    (turn, Expect::taken(clause, PICKED).or(Allowed::Fallback).provided(limit))
}

fn limited(talk: &mut Talk, clause: &str, row: &str, soft: u64, beyond: Option<ActorStep>) {
    let (turn, expect) = limited_turn(clause, row, soft, beyond);
    talk.play(&Request::plain(), turn, expect).allow_ms(USE_MS);
}

/// Expects that a driver with this use works.
fn works(talk: &mut Talk, clause: &str, uses: ActorStep) {
    let turn = [vec![uses], says(PICKED)].concat();
    talk.play(&Request::plain(), turn, Expect::taken(clause, PICKED)).allow_ms(USE_MS).counts_as_canary();
}

/// Expects that a driver with this use fails.
fn fails(talk: &mut Talk, clause: &str, uses: ActorStep) {
    let turn = [vec![uses], says(PICKED)].concat();
    talk.play(&Request::plain(), turn, Expect::fallback(clause)).allow_ms(USE_MS);
}

fn processor_time() -> Check {
    check(
        "resources/processor-time",
        "A driver has 2 s of processor time, or the value of its variable: a driver that spins longer fails.",
        &[CPU],
        |talk, _| {
            limited(talk, CPU, "Max cpu time", 2, None);
            talk.canary(CPU);
            talk.another().env(CPU_VARIABLE, "1");
            limited(talk, CPU, "Max cpu time", 1, None);
            fails(talk, CPU, uses(Resource::Cpu, 4));
            talk.another().env(CPU_VARIABLE, "5");
            works(talk, CPU, uses(Resource::Cpu, 3));
        },
    )
    .waits()
}

fn address_space() -> Check {
    check(
        "resources/address-space",
        "A driver has 768 MB of address space, or the value of its variable: a driver that takes more fails.",
        &[MEMORY],
        |talk, _| {
            limited(talk, MEMORY, "Max address space", 768 * MB, None);
            talk.another().env(MEMORY_VARIABLE, "384");
            works(talk, MEMORY, uses(Resource::Memory, 32));
            fails(talk, MEMORY, uses(Resource::Memory, 448));
            talk.canary(MEMORY);
            // Overflow to 32 bits would make it one megabyte.
            talk.another().env(MEMORY_VARIABLE, "4097");
            works(talk, MEMORY, uses(Resource::Memory, 32));
        },
    )
}

fn file_size() -> Check {
    check(
        "resources/file-size",
        "A driver can write files of 10 MB, or the value of its variable, and fails at a longer one.",
        &[FILE],
        |talk, _| {
            works(talk, FILE, uses(Resource::FileBytes, 10 * MB - (64 << 10)));
            limited(talk, FILE, "Max file size", 10 * MB, Some(uses(Resource::FileBytes, 11 * MB)));
            talk.another().env(FILE_VARIABLE, "2");
            works(talk, FILE, uses(Resource::FileBytes, 1_500_000));
            fails(talk, FILE, uses(Resource::FileBytes, 3 * MB));
            talk.canary(FILE);
            // Overflow to 32 bits would make it one megabyte.
            talk.another().env(FILE_VARIABLE, "4097");
            works(talk, FILE, uses(Resource::FileBytes, 11 * MB));
        },
    )
}

fn open_files() -> Check {
    check(
        "resources/open-files",
        "A driver has 64 descriptors, or the value of its variable, and fails if it needs more.",
        &[OPEN_FILES],
        |talk, _| {
            works(talk, OPEN_FILES, uses(Resource::OpenFiles, 40));
            limited(talk, OPEN_FILES, "Max open files", 64, Some(uses(Resource::OpenFiles, 70)));
            talk.another().env(OPEN_FILES_VARIABLE, "48");
            works(talk, OPEN_FILES, uses(Resource::OpenFiles, 24));
            fails(talk, OPEN_FILES, uses(Resource::OpenFiles, 52));
            talk.canary(OPEN_FILES);
        },
    )
}

fn processes() -> Check {
    check(
        "resources/processes",
        "The user of a driver has 32 processes, or the value of its variable, as far as the system limits \
         that user.",
        &[CHILDREN],
        |talk, _| {
            limited(talk, CHILDREN, PROCESSES, 32, Some(uses(Resource::Processes, 33)));
            talk.another().env(CHILDREN_VARIABLE, "12");
            limited(talk, CHILDREN, PROCESSES, 12, Some(uses(Resource::Processes, 13)));
            // If the user has many other processes, drivers fail at any low limit. A higher limit shows the
            // difference.
            talk.another().env(CHILDREN_VARIABLE, "4096");
            talk.canary(CHILDREN);
            let looks_and_starts = vec![ActorStep::Look(Sight::Limits), uses(Resource::Processes, 33)];
            let raised = Provided::Raised { clause: CHILDREN.into(), row: PROCESSES.to_owned(), default: 32 };
            let turn = [looks_and_starts, says(PICKED)].concat();
            let expect = Expect::taken(CHILDREN, PICKED).or(Allowed::Fallback).provided(raised);
            talk.play(&Request::plain(), turn, expect).allow_ms(USE_MS);
        },
    )
}

fn several() -> Check {
    check(
        "resources/several-at-once",
        "With a variable for each resource, all limits apply: a driver fails beyond each, and a driver \
         below all succeeds.",
        &[MEMORY, FILE, OPEN_FILES],
        |talk, _| {
            for (name, value) in [
                (CPU_VARIABLE, "4"),
                (MEMORY_VARIABLE, "384"),
                (FILE_VARIABLE, "2"),
                (OPEN_FILES_VARIABLE, "48"),
                (CHILDREN_VARIABLE, "4096"),
            ] {
                talk.env(name, value);
            }
            for (clause, row, soft, below, beyond) in [
                (MEMORY, "Max address space", 384 * MB, (Resource::Memory, 32), (Resource::Memory, 448)),
                (FILE, "Max file size", 2 * MB, (Resource::FileBytes, MB), (Resource::FileBytes, 3 * MB)),
                (OPEN_FILES, "Max open files", 48, (Resource::OpenFiles, 24), (Resource::OpenFiles, 52)),
            ] {
                works(talk, clause, uses(below.0, below.1));
                limited(talk, clause, row, soft, Some(uses(beyond.0, beyond.1)));
            }
            talk.canary(MEMORY);
        },
    )
}

fn ended_by_a_limit() -> Check {
    check(
        "resources/ended-by-the-signal-of-a-limit",
        "A driver that a limit ends by a signal counts as a failure, and the breaker opens as after other \
         failures.",
        &[SELECTOR_LIVES],
        |talk, _| {
            talk.env(THRESHOLD, "4").env(COOLDOWN, LONG_MS);
            talk.canary(SELECTOR_LIVES);
            let fallback = || Expect::fallback(SELECTOR_LIVES);
            for signal in ENDED_BY {
                let turn = [says(PICKED), vec![ActorStep::Die(signal)]].concat();
                talk.play(&Request::plain(), turn, fallback().starts(SELECTOR_LIVES, 1));
            }
            talk.play(&Request::plain(), vec![ActorStep::Exit(9)], fallback().starts(SELECTOR_LIVES, 1));
            talk.ask(&Request::plain(), fallback().starts(SELECTOR_LIVES, 0));
        },
    )
}

fn not_of_the_selector() -> Check {
    check(
        "resources/request-beyond-the-limits-of-the-driver",
        "The limits apply only to the driver: a request longer than the driver's file size limit still \
         reaches it.",
        &[SELECTOR_LIVES],
        |talk, _| {
            talk.env(FILE_VARIABLE, "1").env(OPEN_FILES_VARIABLE, "32");
            talk.canary(SELECTOR_LIVES);
            let request = Request::plain().with("goal_digest", "x".repeat(1_500_000).as_str());
            let expect = Expect::taken(SELECTOR_LIVES, PICKED);
            talk.play(&request, says(PICKED), expect).allow_ms(10_000);
            talk.canary(SELECTOR_LIVES);
        },
    )
}

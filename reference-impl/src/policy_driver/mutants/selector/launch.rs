//! Mutants that go wrong around a driver's process and its files.

use super::super::super::environment;
use super::Mutant;
use crate::mutant::Seam;

/// What goes wrong around a driver's process.
#[derive(Debug, Clone, Copy)]
pub enum LaunchFault {
    /// Variables of the selector reach the driver by another rule.
    Passes(fn(&str) -> bool),
    /// The driver has the selector's own standard input.
    SharesStdin,
    /// The driver finds its payload on standard input too.
    FeedsPayload,
    /// The path of the payload is the first argument of the script.
    PayloadFirst,
    /// The path of the payload is glued to an option.
    PayloadAsOption,
    /// Everybody can read the payload.
    OpenPayload,
    /// The payload stays.
    LeavesPayload,
    /// The payload stays where the driver had to be killed.
    LeavesPayloadOfKilled,
    /// A second file beside the payload stays.
    LeavesLock,
    /// The payload is written while the driver starts.
    LatePayload,
    /// Nothing is killed.
    KillsNobody,
    /// The driver is killed, and nothing that it started.
    KillsDriver,
    /// What left the driver's process group lives on.
    KillsGroup,
    /// A driver that ended by itself is not looked after.
    KillsLate,
    /// SIGTERM is all that is sent.
    KillsGently,
    /// SIGTERM comes first, and three seconds later SIGKILL.
    KillsPatiently,
    /// The selector puts a driver's limits on itself.
    LimitsItself,
    /// SIGTERM is ignored.
    IgnoresTerm,
}

const fn launch(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: LaunchFault,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Carrier(what))
}

/// The mutants of this file, by the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    launch(
        "select-payload-first",
        &["PD-CMD-03"],
        "The path of the payload comes before the arguments of the script itself.",
        LaunchFault::PayloadFirst,
    ),
    launch(
        "select-payload-as-option",
        &["PD-CMD-03"],
        "The path of the payload is glued to an option.",
        LaunchFault::PayloadAsOption,
    ),
    launch(
        "select-shares-stdin",
        &["PD-CMD-04"],
        "A driver has the standard input of the selector.",
        LaunchFault::SharesStdin,
    ),
    launch(
        "select-feeds-payload",
        &["PD-CMD-04"],
        "A driver finds its payload on standard input too.",
        LaunchFault::FeedsPayload,
    ),
    launch(
        "select-passes-everything",
        &["PD-CMD-06"],
        "All variables reach a driver.",
        LaunchFault::Passes(|_| true),
    ),
    launch(
        "select-passes-secrets",
        &["PD-CMD-06"],
        "Variables whose names look like secrets reach a driver.",
        LaunchFault::Passes(|name| {
            !["LD_", "PYTHON", "NODE_"].iter().any(|start| name.starts_with(start))
                && !matches!(name, "BASH_ENV" | "ENV")
        }),
    ),
    launch(
        "select-passes-interpreter-variables",
        &["PD-CMD-06"],
        "Variables that steer interpreters reach a driver.",
        LaunchFault::Passes(|name| {
            name.starts_with("MACHINA_POLICY_LLM_")
                || !["TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL", "AUTH"]
                    .iter()
                    .any(|part| name.contains(part))
        }),
    ),
    launch(
        "select-passes-nothing",
        &["PD-CMD-07"],
        "No variable but PATH reaches a driver.",
        LaunchFault::Passes(|name| name == "PATH"),
    ),
    launch(
        "select-hides-authorization",
        &["PD-CMD-07"],
        "MACHINA_POLICY_LLM_AUTH does not reach a driver, for it looks like a secret.",
        LaunchFault::Passes(|name| environment::passes(name) && name != "MACHINA_POLICY_LLM_AUTH"),
    ),
    launch(
        "select-hides-home",
        &["PD-CMD-07"],
        "HOME and TMPDIR do not reach a driver.",
        LaunchFault::Passes(|name| environment::passes(name) && !matches!(name, "HOME" | "TMPDIR")),
    ),
    launch(
        "select-open-payload",
        &["PD-FILE-03"],
        "Everybody can read the payload.",
        LaunchFault::OpenPayload,
    ),
    launch("select-leaves-payload", &["PD-FILE-04"], "The payload stays.", LaunchFault::LeavesPayload),
    launch(
        "select-leaves-payload-of-killed",
        &["PD-FILE-04"],
        "The payload stays where a driver had to be killed.",
        LaunchFault::LeavesPayloadOfKilled,
    ),
    launch(
        "select-leaves-lock",
        &["PD-FILE-04"],
        "An empty file beside the payload stays.",
        LaunchFault::LeavesLock,
    ),
    launch(
        "select-late-payload",
        &["PD-FILE-05"],
        "The payload is written while the driver starts.",
        LaunchFault::LatePayload,
    ),
    launch(
        "select-kills-patiently",
        &["PD-TIME-04"],
        "A driver has three seconds after SIGTERM.",
        LaunchFault::KillsPatiently,
    ),
    launch(
        "select-kills-nobody",
        &["PD-TIME-05"],
        "Nothing of a driver is killed.",
        LaunchFault::KillsNobody,
    ),
    launch(
        "select-kills-driver-only",
        &["PD-TIME-05"],
        "What a driver started lives on.",
        LaunchFault::KillsDriver,
    ),
    launch(
        "select-kills-group-only",
        &["PD-TIME-05"],
        "What left the process group of a driver lives on.",
        LaunchFault::KillsGroup,
    ),
    launch(
        "select-kills-the-late-only",
        &["PD-TIME-05"],
        "What a driver started lives on where it ended by itself.",
        LaunchFault::KillsLate,
    ),
    launch(
        "select-kills-gently",
        &["PD-TIME-05"],
        "SIGTERM is all that a driver gets.",
        LaunchFault::KillsGently,
    ),
    launch(
        "select-limits-itself",
        &["PD-RLIM-06"],
        "The selector puts the limits of a driver on itself.",
        LaunchFault::LimitsItself,
    ),
    launch("select-deaf", &["PD-SEL-11"], "SIGTERM is ignored.", LaunchFault::IgnoresTerm),
];

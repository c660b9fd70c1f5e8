//! Mutants with a fault around a driver's process and files.

use super::super::super::environment;
use super::Mutant;
use crate::mutant::carrier;

/// Fault around a driver's process.
#[derive(Debug, Clone, Copy)]
pub enum LaunchFault {
    /// The function selects the variables that reach the driver.
    Passes(fn(&str) -> bool),
    /// The driver inherits the selector's standard input.
    SharesStdin,
    /// The driver also gets its payload on standard input.
    FeedsPayload,
    /// The path of the payload is the first argument of the script.
    PayloadFirst,
    /// The path of the payload is glued to an option.
    PayloadAsOption,
    /// Everyone can read the payload.
    OpenPayload,
    /// The payload is not removed.
    LeavesPayload,
    /// The payload of a killed driver is not removed.
    LeavesPayloadOfKilled,
    /// A second file next to the payload is not removed.
    LeavesLock,
    /// The payload is written only after the driver has started.
    LatePayload,
    /// Nothing is killed.
    KillsNobody,
    /// Only the driver itself is killed.
    KillsDriver,
    /// Only the driver's process group is killed.
    KillsGroup,
    /// Descendants of a driver that exited by itself are not killed.
    KillsLate,
    /// Only SIGTERM is sent.
    KillsGently,
    /// SIGTERM is sent first, and SIGKILL after three seconds.
    KillsPatiently,
    /// The selector applies the driver's limits to itself.
    LimitsItself,
    /// SIGTERM is ignored.
    IgnoresTerm,
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    carrier(
        "select-payload-first",
        &["PD-CMD-03"],
        "The path of the payload comes before the arguments of the script itself.",
        LaunchFault::PayloadFirst,
    ),
    carrier(
        "select-payload-as-option",
        &["PD-CMD-03"],
        "The path of the payload is glued to an option.",
        LaunchFault::PayloadAsOption,
    ),
    carrier(
        "select-shares-stdin",
        &["PD-CMD-04"],
        "A driver has the standard input of the selector.",
        LaunchFault::SharesStdin,
    ),
    carrier(
        "select-feeds-payload",
        &["PD-CMD-04"],
        "A driver finds its payload on standard input too.",
        LaunchFault::FeedsPayload,
    ),
    carrier(
        "select-passes-everything",
        &["PD-CMD-06"],
        "All variables reach a driver.",
        LaunchFault::Passes(|_| true),
    ),
    carrier(
        "select-passes-secrets",
        &["PD-CMD-06"],
        "Variables whose names look like secrets reach a driver.",
        LaunchFault::Passes(|name| {
            !["LD_", "PYTHON", "NODE_"].iter().any(|start| name.starts_with(start))
                && !matches!(name, "BASH_ENV" | "ENV")
        }),
    ),
    carrier(
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
    carrier(
        "select-passes-nothing",
        &["PD-CMD-07"],
        "No variable but PATH reaches a driver.",
        LaunchFault::Passes(|name| name == "PATH"),
    ),
    carrier(
        "select-hides-authorization",
        &["PD-CMD-07"],
        "MACHINA_POLICY_LLM_AUTH does not reach a driver, for it looks like a secret.",
        LaunchFault::Passes(|name| environment::passes(name) && name != "MACHINA_POLICY_LLM_AUTH"),
    ),
    carrier(
        "select-hides-home",
        &["PD-CMD-07"],
        "HOME and TMPDIR do not reach a driver.",
        LaunchFault::Passes(|name| environment::passes(name) && !matches!(name, "HOME" | "TMPDIR")),
    ),
    carrier(
        "select-open-payload",
        &["PD-FILE-03"],
        "Everybody can read the payload.",
        LaunchFault::OpenPayload,
    ),
    carrier("select-leaves-payload", &["PD-FILE-04"], "The payload stays.", LaunchFault::LeavesPayload),
    carrier(
        "select-leaves-payload-of-killed",
        &["PD-FILE-04"],
        "The payload stays where a driver had to be killed.",
        LaunchFault::LeavesPayloadOfKilled,
    ),
    carrier(
        "select-leaves-lock",
        &["PD-FILE-04"],
        "An empty file beside the payload stays.",
        LaunchFault::LeavesLock,
    ),
    carrier(
        "select-late-payload",
        &["PD-FILE-05", "PD-FILE-01"],
        "The payload is written while the driver starts.",
        LaunchFault::LatePayload,
    ),
    carrier(
        "select-kills-patiently",
        &["PD-TIME-04"],
        "A driver has three seconds after SIGTERM.",
        LaunchFault::KillsPatiently,
    ),
    carrier(
        "select-kills-nobody",
        &["PD-TIME-05"],
        "Nothing of a driver is killed.",
        LaunchFault::KillsNobody,
    ),
    carrier(
        "select-kills-driver-only",
        &["PD-TIME-05"],
        "What a driver started lives on.",
        LaunchFault::KillsDriver,
    ),
    carrier(
        "select-kills-group-only",
        &["PD-TIME-05"],
        "What left the process group of a driver lives on.",
        LaunchFault::KillsGroup,
    ),
    carrier(
        "select-kills-the-late-only",
        &["PD-TIME-05"],
        "What a driver started lives on where it ended by itself.",
        LaunchFault::KillsLate,
    ),
    carrier(
        "select-kills-gently",
        &["PD-TIME-05"],
        "SIGTERM is all that a driver gets.",
        LaunchFault::KillsGently,
    ),
    carrier(
        "select-limits-itself",
        &["PD-RLIM-06"],
        "The selector puts the limits of a driver on itself.",
        LaunchFault::LimitsItself,
    ),
    carrier("select-deaf", &["PD-SEL-11"], "SIGTERM is ignored.", LaunchFault::IgnoresTerm),
];

//! Mutants that go wrong around a driver's process and its files.

use super::super::super::environment;
use super::Mutant;
use crate::mutant::carrier;

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

/// The mutants of this file, by the order of the clauses.
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
        &["PD-FILE-05"],
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

//! Facts about a protocol that are data.

use super::ConfigKey;
use crate::data::clause::Side;
use crate::data::rung::Rung;

/// Facts about a protocol, its command lines and its configuration.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Name with underscores.
    pub name: &'static str,
    /// One line for `list`.
    pub summary: &'static str,
    /// Commands of each side, provider first.
    pub commands: &'static [(Side, &'static [&'static str])],
    /// Keys of `peerproof.toml` for this boundary.
    pub config_keys: &'static [ConfigKey],
    /// Requirement sets, each a subset of the one before; the first is the default.
    pub requirements: &'static [&'static str],
    /// Path to post to if the configuration of a server names no URL.
    pub http_path: &'static str,
    /// True if each command is a role of its own: a peer claims only the commands that it configures.
    pub commands_are_claims: bool,
    /// Environment variables to which the contract gives a meaning. A recording of a peer must know them.
    pub variables: &'static [&'static str],
    /// True if each process gets an empty working folder, unless the configuration names one, and environment variables
    /// that keep it from prompting people.
    pub runs_apart: bool,
    /// True if each broken clause is a fault of its own where a request is answered by another kind of answer or error
    /// code: each method decides about that by itself.
    pub refuses_by_method: bool,
    /// True if peers send messages of their own between answers.
    /// [`Wire::unmatched_frame`](super::Wire::unmatched_frame) tells them apart.
    pub converses: bool,
    /// Texts that identify the messages of this protocol.
    pub signs: &'static [&'static str],
    /// Rungs of checks: globs on check ids without the boundary's name; the first match counts. Other checks are
    /// [`Rung::Ordinary`].
    pub rungs: &'static [(&'static str, Rung)],
    /// Null peers of this boundary that give one answer to everything. Selftest shows that the checks find out each of
    /// them.
    pub constant_peers: &'static [ConstantPeer],
    /// Lists of checks that notice no mutant, each with the reason to keep it.
    pub redundant_checks: &'static [&'static [(&'static str, &'static str)]],
}

impl Description {
    /// Protocol that has this name, commands and configuration keys and nothing unusual.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        commands: &'static [(Side, &'static [&'static str])],
        config_keys: &'static [ConfigKey],
    ) -> Self {
        Self {
            name,
            summary,
            commands,
            config_keys,
            requirements: &["all"],
            http_path: "/",
            commands_are_claims: false,
            variables: &[],
            runs_apart: false,
            refuses_by_method: false,
            converses: false,
            signs: &[],
            rungs: &[],
            constant_peers: &[],
            redundant_checks: &[],
        }
    }

    /// Checks that notice no mutant, each with the reason to keep it.
    pub fn reasons_to_keep(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> + use<> {
        self.redundant_checks.iter().copied().flatten()
    }

    /// Commands of `side`, in their order.
    pub fn commands_of(&self, side: Side) -> impl Iterator<Item = &'static str> {
        let own = self.commands.iter().filter(move |(other, _)| *other == side);
        own.flat_map(|(_, names)| names.iter().copied())
    }
}

/// Null peer that gives one answer to everything.
#[derive(Debug, Clone, Copy)]
pub struct ConstantPeer {
    /// Name of the null peer.
    pub name: &'static str,
    /// Script for `sh`; `$1`, `$2` … are the placeholders of the command.
    pub script: &'static str,
    /// Checks for which its answer happens to be right: globs on check ids, each with the reason. It may pass only
    /// these, and at least one per glob.
    pub right: &'static [(&'static str, &'static str)],
}

impl ConstantPeer {
    /// Null peer whose answer is never right: it never answers a canary.
    pub const fn wrong(name: &'static str, script: &'static str) -> Self {
        Self { name, script, right: &[] }
    }
}

//! Checks that are not run on a peer, with the reason.

use super::Options;
use crate::contract::boundary;
use crate::data::carriage::HTTP;
use crate::data::check::{Check, Untestable};
use crate::data::clause::Clause;
use crate::drive::peer::Peer;
use crate::run::verdict::Verdict;

/// Verdict of a check that is not run on this peer; `None` if it is run.
pub fn skip_reason(peer: &Peer, check: &Check, options: &Options) -> Option<Verdict> {
    if !peer.commands.contains_key(&check.command) {
        if peer.boundary.description().commands_are_claims {
            return Some(Verdict::NotClaimed(check.command.clone()));
        }
        // HTTP is an alternative to standard streams: using one means not claiming the other.
        if check.command == HTTP || peer.commands.contains_key(HTTP) {
            let claim = if check.command == HTTP { HTTP } else { STREAMS };
            return Some(Verdict::NotClaimed(claim.to_owned()));
        }
        return Some(untestable(
            Untestable::NO_COMMAND,
            format!("the peer has no `{}` command", check.command),
        ));
    }
    if let Some(command) = check.command_too.as_ref().filter(|name| !peer.commands.contains_key(*name)) {
        let claim = if command == HTTP { HTTP } else { STREAMS };
        return Some(Verdict::NotClaimed(claim.to_owned()));
    }
    for feature in check.feature.iter().chain(&check.features_too) {
        if !peer.facts.claims(feature) {
            return Some(Verdict::NotClaimed(feature.clone()));
        }
    }
    if let Some(set) = beyond(peer, check) {
        return Some(Verdict::NotClaimed(set));
    }
    for role in &check.roles {
        if let Some(why) = peer.facts.misfits.get(role) {
            return Some(untestable(Untestable::ROLE_MISBEHAVES, why.as_str()));
        }
        if !peer.facts.roles.contains_key(role) {
            return Some(untestable(Untestable::NO_ROLE, format!("the role `{role}` is not mapped")));
        }
    }
    if check.needs_process && !peer.is_process() {
        return Some(untestable("in_process", "needs a real process"));
    }
    if check.very_slow && !options.very_slow {
        return Some(Verdict::NotRun("slow: --very-slow runs it".to_owned()));
    }
    if check.slow && !options.slow && !options.very_slow {
        return Some(Verdict::NotRun("slow: --slow runs it".to_owned()));
    }
    None
}

fn untestable(code: &'static str, detail: impl Into<String>) -> Verdict {
    Verdict::Untestable(Untestable::new(code, detail))
}

/// Claim that a peer lacks if it is only reached over HTTP.
const STREAMS: &str = "stdio";

/// Requirement set of a check, if the peer is only held to a smaller one.
fn beyond(peer: &Peer, check: &Check) -> Option<String> {
    let mut clauses = peer.boundary.clauses().iter().filter(|clause| check.clauses.contains(&clause.id));
    let is_beyond = |clause: &Clause| boundary::is_beyond(peer.boundary, &peer.facts.requirements, clause);
    let first = clauses.next().filter(|clause| is_beyond(clause))?;
    clauses.all(is_beyond).then(|| first.set.clone()).flatten()
}

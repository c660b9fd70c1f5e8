//! Preparation of a peer before its checks: probes of its roles and features.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::company::TurnKind;
use super::{Options, Surroundings, lab};
use crate::data::blame::{HarnessFault, Misconfigured, Unprepared};
use crate::data::facts::RoleTrial;
use crate::data::plan::Plan;
use crate::data::transcript::{EventKind, Transcript};
use crate::drive::lab::Unfinished;
use crate::drive::peer::Peer;

/// Probes the peer's roles and features and completes its facts.
///
/// # Errors
/// See [`Unprepared`].
pub fn prepare(
    peer: &mut Peer,
    options: &Options,
    around: Surroundings<'_>,
) -> Result<Vec<Transcript>, Unprepared> {
    let probes = probe(peer, options, around)?;
    learn(peer, &probes);
    further(peer, probes, options, around)
}

/// Runs the probes that depend on the answers to `probes`.
///
/// # Errors
/// See [`Unprepared`].
pub(super) fn further(
    peer: &mut Peer,
    mut probes: Vec<Transcript>,
    options: &Options,
    around: Surroundings<'_>,
) -> Result<Vec<Transcript>, Unprepared> {
    let further = peer.boundary.further_probes(&peer.facts);
    if !further.is_empty() {
        let further = carry_out(peer, further, options, around)?;
        learn(peer, &further);
        probes.extend(further);
    }
    Ok(probes)
}

/// Completes the facts of a peer from the transcripts of [`probe`].
pub fn learn(peer: &mut Peer, probes: &[Transcript]) {
    let features_given = peer.features_given;
    peer.boundary.complete(&mut peer.facts, features_given, probes);
}

/// Probes the peer's roles and features.
///
/// # Errors
/// See [`Unprepared`].
pub fn probe(
    peer: &Peer,
    options: &Options,
    around: Surroundings<'_>,
) -> Result<Vec<Transcript>, Unprepared> {
    carry_out(peer, peer.boundary.probes(&peer.facts), options, around)
}

fn carry_out(
    peer: &Peer,
    plans: Vec<Plan>,
    options: &Options,
    around: Surroundings<'_>,
) -> Result<Vec<Transcript>, Unprepared> {
    /// Maximum output of a probe; none asks for more.
    const PROBE_STDOUT_BYTES_MAX: usize = 4 << 20;
    let _beside = options.beside(TurnKind::Opening);
    let mut probes = Vec::new();
    for mut plan in plans {
        if let Some(first) = plan.steps.first_mut() {
            // Its answer shows the start-up time of the peer, whatever it is.
            first.canary = true;
        }
        let mut lab = lab(peer, options, around);
        lab.budget.stdout_bytes_max = lab.budget.stdout_bytes_max.min(PROBE_STDOUT_BYTES_MAX);
        let transcript = match lab.execute("probe", &plan) {
            // Later probes are not run either.
            Err(Unfinished::Interrupted) => break,
            Err(Unfinished::Fault(fault)) => return Err(fault.into()),
            Ok(transcript) => transcript,
        };
        for event in &transcript.events {
            if let EventKind::StartFailed { error } = &event.kind {
                return Err(Misconfigured::from(error.clone()).into());
            }
        }
        let is_over = is_mute(&transcript);
        probes.push(transcript);
        if is_over {
            break;
        }
    }
    Ok(probes)
}

/// Tries the roles of `peer` one by one, unless it was silent to `probes`. Returns the result by role.
///
/// # Errors
/// Reports a fault of this machine.
pub fn try_roles(
    peer: &Peer,
    probes: &[Transcript],
    options: &Options,
    around: Surroundings<'_>,
) -> Result<BTreeMap<String, RoleTrial>, HarnessFault> {
    let facts = &peer.facts;
    if !probes.is_empty() && probes.iter().all(is_mute) {
        return Ok(BTreeMap::new());
    }
    let Some(trials) = peer.boundary.trials(facts) else {
        if probes.is_empty() {
            // There were no probes.
            return Ok(BTreeMap::new());
        }
        let seen = |role: &String| (role.clone(), facts.trial(role));
        return Ok(facts.roles.keys().chain(facts.misfits.keys()).map(seen).collect());
    };
    // The probes may have taken a role away from its tool.
    let misplays = |(role, why): (&String, &String)| (role.clone(), RoleTrial::Misplays(why.clone()));
    let mut tried: BTreeMap<String, RoleTrial> = facts.misfits.iter().map(misplays).collect();
    for (role, plan) in trials {
        let lab = lab(peer, options, around);
        let transcript = match lab.execute("trial", &plan) {
            Err(Unfinished::Interrupted) => break,
            Err(Unfinished::Fault(fault)) => return Err(fault),
            Ok(transcript) => transcript,
        };
        let why = peer.boundary.role_fault(facts, role, &transcript);
        tried.insert(role.to_owned(), why.map_or(RoleTrial::Plays, RoleTrial::Misplays));
        if is_mute(&transcript) {
            break;
        }
    }
    Ok(tried)
}

/// Maps each unmapped role to the first candidate whose trial shows that it plays the role.
///
/// # Errors
/// Reports a fault of this machine.
pub fn find_roles(
    peer: &mut Peer,
    probes: &[Transcript],
    options: &Options,
    around: Surroundings<'_>,
) -> Result<(), HarnessFault> {
    for (role, value) in peer.boundary.candidates(&peer.facts) {
        if peer.facts.roles.contains_key(role) || around.interrupted.load(Ordering::Relaxed) {
            continue;
        }
        let mut with = peer.clone();
        with.facts.roles = [(role.to_owned(), value.clone())].into();
        with.facts.misfits.clear();
        if try_roles(&with, probes, options, around)?.get(role) == Some(&RoleTrial::Plays) {
            peer.facts.misfits.remove(role);
            peer.facts.roles.insert(role.to_owned(), value);
        }
    }
    Ok(())
}

/// True if a peer said nothing at all. It is not asked again, because each question would cost a deadline.
fn is_mute(transcript: &Transcript) -> bool {
    !transcript.events.iter().any(|event| matches!(event.kind, EventKind::Received { .. }))
}

//! Correct reference as a witness: a conversation with which it is not clean proves nothing about a peer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::contract::boundary;
use crate::data::budget::Budget;
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::data::plan::{Act, Fixture, Plan};
use crate::drive::fixture::ActorExe;
use crate::drive::lab::Lab;
use crate::drive::peer::{Origin, Peer};
use crate::drive::reference_peers::{Played, Reference};

/// Reference in this process, on a virtual clock, with the facts of the peer under test.
pub(super) struct ReferenceLab {
    /// For a peer that asks, one per allowed form, because its choices decide how a conversation ends.
    peers: Vec<Peer>,
    scratch: PathBuf,
    actor_exe: ActorExe,
    check: String,
}

impl ReferenceLab {
    /// Reference for the side of `lab`'s peer, if it is clean with `plan`. It then has the roles that the conversation
    /// uses and needs no process.
    pub(super) fn for_peer(
        lab: &Lab<'_>,
        played: &'static dyn Played,
        check: &str,
        plan: &Plan,
    ) -> Option<Self> {
        let of_process = |act: &Act| {
            act.is_beside()
                || matches!(
                    act,
                    Act::Signal(_)
                        | Act::SignalWhen { .. }
                        | Act::SampleMemory { .. }
                        | Act::SampleProcessor { .. }
                        | Act::ProbeActor { .. }
                )
        };
        let needs_process = |fixture: &Fixture| !matches!(fixture, Fixture::File { .. });
        if plan.fixtures.iter().any(needs_process) || plan.steps.iter().any(|step| of_process(&step.act)) {
            return None;
        }
        let reference = Self {
            peers: reference_peers(lab, played)?,
            scratch: lab.scratch.to_owned(),
            actor_exe: lab.actor_exe.clone(),
            check: check.to_owned(),
        };
        reference.is_clean(plan).then_some(reference)
    }

    /// True if the reference shows no finding with `plan`.
    pub(super) fn is_clean(&self, plan: &Plan) -> bool {
        self.peers.iter().all(|peer| {
            let lab = Lab {
                peer,
                budget: Budget::default(),
                actor_exe: &self.actor_exe,
                scratch: &self.scratch,
                timeout_scale: 1.0,
            };
            lab.execute(&self.check, plan)
                .is_ok_and(|transcript| boundary::judge(peer.boundary, &transcript).findings.is_empty())
        })
    }
}

/// Reference with the most features, all of which the peer has in the same form.
fn alike(played: &dyn Played, facts: &Facts) -> Option<Reference> {
    let same = |reference: &Reference| {
        let features = played.facts_of(reference).features;
        let is_part = features.iter().all(|(name, value)| facts.features.get(name) == Some(value));
        (is_part, features.len())
    };
    let of_side = played.references().into_iter().filter(|reference| reference.side == facts.side);
    // The first among equals.
    of_side.rev().max_by_key(|reference| {
        let (is_part, count) = same(reference);
        if is_part { count } else { 0 }
    })
}

/// Arguments of each relevant form of the reference.
fn forms(played: &dyn Played, side: Side) -> Vec<Vec<String>> {
    let mut forms = vec![Vec::new()];
    if side == Side::Consumer {
        for key in played.boundary().description().config_keys.iter().filter(|key| key.table() == "choices") {
            let forms_of =
                key.words().iter().map(|value| vec!["--choice".to_owned(), format!("{}={value}", key.name)]);
            forms.extend(forms_of.filter(|extra| played.reference_takes(side, extra)));
        }
    }
    forms
}

fn reference_peers(lab: &Lab<'_>, played: &'static dyn Played) -> Option<Vec<Peer>> {
    forms(played, lab.peer.facts.side).into_iter().map(|extra| reference_peer(lab, played, extra)).collect()
}

fn reference_peer(lab: &Lab<'_>, played: &'static dyn Played, extra: Vec<String>) -> Option<Peer> {
    let reference = alike(played, &lab.peer.facts)?;
    let known = played.facts_of(&reference);
    let commands: BTreeMap<String, Vec<String>> =
        reference.commands.into_iter().map(|(name, argv)| (name.to_owned(), argv)).collect();
    // The judge must see the reference's limits and choices, not those pinned for the peer.
    let facts = Facts { choices: BTreeMap::new(), limits: known.limits.clone(), ..lab.peer.facts.clone() };
    Some(Peer {
        name: "reference".to_owned(),
        boundary: lab.peer.boundary,
        commands,
        env: Vec::new(),
        facts,
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |argv, env| {
            played.reference_machine(&[argv, &extra].concat(), env)
        })),
        pace: Arc::default(),
    })
}

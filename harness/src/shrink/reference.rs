//! The correct reference as a witness: a conversation with which it is not clean proves nothing about a peer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::boundary;
use crate::budget::Budget;
use crate::facts::Facts;
use crate::fixture::ActorExe;
use crate::lab::Lab;
use crate::peer::{Origin, Peer};
use crate::plan::{Act, Plan};

/// The reference in this process, on a virtual clock, with the facts of the peer under test.
pub(super) struct ReferenceLab {
    peer: Peer,
    scratch: PathBuf,
    actor_exe: ActorExe,
    check: String,
}

impl ReferenceLab {
    /// The reference for the side of `lab`'s peer, if it is clean with `plan`: it then has the roles that the
    /// conversation uses, and needs no process for it.
    pub(super) fn for_peer(lab: &Lab<'_>, check: &str, plan: &Plan) -> Option<Self> {
        let of_process =
            |act: &Act| matches!(act, Act::Signal(_) | Act::SampleMemory { .. } | Act::ProbeActor { .. });
        if !plan.fixtures.is_empty() || plan.steps.iter().any(|step| of_process(&step.act)) {
            return None;
        }
        let reference = Self {
            peer: reference_peer(lab)?,
            scratch: lab.scratch.to_owned(),
            actor_exe: lab.actor_exe.clone(),
            check: check.to_owned(),
        };
        reference.is_clean(plan).then_some(reference)
    }

    /// Whether the reference shows no finding with `plan`.
    pub(super) fn is_clean(&self, plan: &Plan) -> bool {
        let lab = Lab {
            peer: &self.peer,
            budget: Budget::default(),
            actor_exe: &self.actor_exe,
            scratch: &self.scratch,
            timeout_scale: 1.0,
        };
        lab.execute(&self.check, plan)
            .is_ok_and(|transcript| boundary::judge(self.peer.boundary, &transcript).findings.is_empty())
    }
}

fn reference_peer(lab: &Lab<'_>) -> Option<Peer> {
    let boundary = lab.peer.boundary;
    let side = lab.peer.facts.side;
    let reference = boundary.references().into_iter().find(|reference| reference.side == side)?;
    let commands: BTreeMap<String, Vec<String>> =
        reference.commands.into_iter().map(|(name, argv)| (name.to_owned(), argv)).collect();
    let known = boundary.reference_facts(side);
    // The limits and choices that a peer pins are its own; the judge has to see the reference's.
    let facts = Facts { choices: BTreeMap::new(), limits: known.limits.clone(), ..lab.peer.facts.clone() };
    Some(Peer {
        name: "reference".to_owned(),
        boundary,
        commands,
        env: Vec::new(),
        facts,
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |argv, env| boundary.reference_machine(argv, env))),
        latency_us: Arc::default(),
    })
}

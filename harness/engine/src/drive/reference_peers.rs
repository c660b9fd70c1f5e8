//! Interface to the reference peers of a boundary.
//!
//! The engine starts reference peers to prove checks ([`crate::run::selftest`]), to shrink ([`crate::run::shrink`]) and as peers
//! of a run without one. It knows no particular reference; a crate with one implements [`Played`].

use std::fmt;
use std::sync::Arc;

use crate::contract::boundary::Boundary;
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::drive::machine::Machine;
use crate::drive::peer::{Origin, Peer};
use crate::drive::presentation::Harmless;

/// Reference peer in a form that other code can start: inside this process or as arguments for `peerproof peer`.
pub struct Reference {
    /// Arguments after `peerproof peer BOUNDARY` for each command, such as `serve` → `["--serve"]`. The caller fills in
    /// placeholders such as `{aid}`.
    pub commands: Vec<(&'static str, Vec<String>)>,
    /// Side of these commands.
    pub side: Side,
    /// Presentations that do not change the meaning of its output.
    pub harmless: &'static [Harmless],
}

/// Reference peer with a deliberate fault.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Stable kebab id.
    pub id: &'static str,
    /// Clauses that it breaks. A check of each must notice.
    pub clauses: &'static [&'static str],
    /// Side of the peer.
    pub side: Side,
    /// Fault in one sentence.
    pub fault: &'static str,
    /// Set if the fault shows only in a real process.
    pub needs_process: bool,
    /// Feature that this peer does not claim.
    pub unclaimed: Option<&'static str>,
}

impl fmt::Debug for dyn Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.boundary().name())
    }
}

/// Reference peers of one boundary.
pub trait Played: Sync {
    /// The boundary.
    fn boundary(&self) -> &'static dyn Boundary;

    /// Reference peers, provider first.
    fn references(&self) -> Vec<Reference>;

    /// Runs a reference peer in this process until it ends and returns its exit status. `args` are those of
    /// [`Reference::commands`] plus options such as `--choice key=value` and `--mutant ID`.
    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32;

    /// Facts about one of the reference peers.
    fn facts_of(&self, reference: &Reference) -> Facts {
        self.boundary().full_facts(reference.side)
    }

    /// Minimal role configurations for the reference peers of this side: a payload that leaves nothing to probe, a
    /// method with a free answer. `null` leaves the role unmapped.
    fn least_roles(&self, _side: Side) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// True if this reference peer is the correct form of the mutant.
    fn plays(&self, reference: &Reference, mutant: &Mutant) -> bool {
        reference.side == mutant.side
    }

    /// Makes a reference peer for the in-process transport, with the arguments of [`Played::run_reference`] and
    /// `--without FEATURE` for a correct peer that lacks it. `None` if only a process can play it.
    fn reference_machine(&self, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>>;

    /// True if the reference peer of `side` understands these further arguments, such as `--choice key=value`.
    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        let args = self.references().into_iter().find(|reference| reference.side == side);
        let args = args.and_then(|reference| reference.commands.into_iter().next());
        args.is_some_and(|(_, args)| {
            self.reference_machine(&[args.as_slice(), extra].concat(), &[]).is_some()
        })
    }

    /// All mutants.
    fn mutants(&self) -> Vec<Mutant>;
}

/// Reference peer inside this process with further arguments; `None` if only a process can play it. `wrap` wraps each
/// machine.
pub fn peer_inside(
    played: &'static dyn Played,
    reference: &Reference,
    extra: &[String],
    wrap: impl Fn(Box<dyn Machine>) -> Box<dyn Machine> + Send + Sync + 'static,
) -> Option<Peer> {
    let boundary = played.boundary();
    let with_extra = |args: &[String]| args.iter().chain(extra).cloned().collect::<Vec<_>>();
    let (_, first) = reference.commands.first()?;
    played.reference_machine(&with_extra(first), &[])?;
    let commands = reference.commands.iter().map(|(name, args)| ((*name).to_owned(), with_extra(args)));
    Some(Peer {
        name: format!("reference {}", boundary.name()),
        boundary,
        commands: commands.collect(),
        env: Vec::new(),
        facts: played.facts_of(reference),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| {
            Some(wrap(played.reference_machine(args, env)?))
        })),
        pace: Arc::default(),
    })
}

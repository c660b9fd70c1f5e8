//! How reference peers of a boundary are played.
//!
//! The engine starts reference peers to prove checks ([`crate::selftest`]), to shrink ([`crate::shrink`]) and as peers of
//! a run without one. It knows no reference: whoever has one implements [`Played`].

use std::fmt;
use std::sync::Arc;

use crate::boundary::Boundary;
use crate::clause::Side;
use crate::facts::Facts;
use crate::machine::Machine;
use crate::peer::{Origin, Peer};
use crate::presentation::Harmless;

/// A reference peer in a form that other code can start: in this process, or as arguments for `peerproof peer`.
pub struct Reference {
    /// Arguments after `peerproof peer BOUNDARY` for each command, such as `serve` → `["--serve"]`. Placeholders
    /// such as `{aid}` are filled in by the caller.
    pub commands: Vec<(&'static str, Vec<String>)>,
    /// Side that these commands play.
    pub side: Side,
    /// Presentations that change nothing of what its output means.
    pub harmless: &'static [Harmless],
}

/// A reference peer that breaks clauses on purpose.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Stable kebab id.
    pub id: &'static str,
    /// Clauses that it breaks; a check of each has to notice.
    pub clauses: &'static [&'static str],
    /// Side that it plays.
    pub side: Side,
    /// One sentence: what it does wrong.
    pub fault: &'static str,
    /// The fault lies in the shell: it shows in a real process only.
    pub needs_process: bool,
    /// A feature that this peer does not claim.
    pub unclaimed: Option<&'static str>,
}

impl fmt::Debug for dyn Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.boundary().name())
    }
}

/// The reference peers of one boundary.
pub trait Played: Sync {
    /// The boundary.
    fn boundary(&self) -> &'static dyn Boundary;

    /// The reference peers, provider first.
    fn references(&self) -> Vec<Reference>;

    /// Runs a reference peer in this process until it ends; `args` are those of [`Reference::commands`] and options
    /// such as `--choice key=value`, `--mutant ID`. Returns the exit status.
    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32;

    /// Facts about one of the reference peers.
    fn facts_of(&self, reference: &Reference) -> Facts {
        self.boundary().usual_facts(reference.side)
    }

    /// Roles of the reference peers of this side, each at the least that a configuration may say: a payload that leaves
    /// nothing to probe, a method whose answer is free. `null`: the role is not mapped.
    fn least_roles(&self, _side: Side) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// Whether this reference peer is the correct one that a mutant is made of.
    fn plays(&self, reference: &Reference, mutant: &Mutant) -> bool {
        reference.side == mutant.side
    }

    /// A reference peer as a machine for the in-process transport, with the same arguments as
    /// [`Played::run_reference`] and `--without FEATURE` for a correct peer that lacks it; `None` where only a process can play it.
    fn reference_machine(&self, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>>;

    /// Whether the reference peer of `side` understands these arguments beyond the usual ones, such as
    /// `--choice key=value`.
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

/// A reference peer inside this process, with further arguments; `None` where only a process can play it. `wrap` is put around
/// each machine.
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

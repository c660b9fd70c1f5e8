//! The table of boundaries: the one place where a new one is added.

use crate::bench::workload::Workload;
use crate::check::Check;
use crate::clause::{Clause, Side};
use crate::facts::Facts;
use crate::finding::Judgement;
use crate::plan::{Plan, Step};
use crate::rng::Rng;
use crate::transcript::Transcript;
use peerproof_reference::machine::Machine;

pub mod arguments;
pub mod json_rpc;
pub mod toolhost;

/// A key that `peerproof.toml` may hold for a boundary; `list --config-keys` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// Table it stands in: `peer`, `roles`, `features`, `choices`, `limits`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Allowed values, where they are a named set.
    pub values: &'static [&'static str],
    /// Of a command: its placeholders with their braces. Of a table: its members as `name: type`, where the type is
    /// `string`, `object`, `integer`, `pointer` or `any`; an object that is a template names its placeholders behind
    /// it. A `?` behind the name marks what may be left out.
    pub members: &'static [&'static str],
    /// One sentence.
    pub meaning: &'static str,
}

/// A reference peer in a form that other code can start: in this process, or as arguments for `peerproof peer`.
pub struct Reference {
    /// Arguments after `peerproof peer BOUNDARY` for each command, such as `serve` → `["--serve"]`. Placeholders
    /// such as `{aid}` are filled in by the caller.
    pub commands: Vec<(&'static str, Vec<String>)>,
    /// Side that these commands play.
    pub side: Side,
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

/// One contract between two processes: what the engine needs to know of it.
pub trait Boundary: Sync {
    /// Its name with underscores.
    fn name(&self) -> &'static str;

    /// One line for `list`.
    fn summary(&self) -> &'static str;

    /// All clauses, in the order of the file.
    fn clauses(&self) -> &[Clause];

    /// All checks of both sides, in the order in which they run.
    fn checks(&self) -> &[Check];

    /// Keys of `peerproof.toml` that it knows.
    fn config_keys(&self) -> &[ConfigKey];

    /// Sets of clauses that a peer can be held to, each within the one before it; the first is the usual one.
    fn requirements(&self) -> &'static [&'static str] {
        &["all"]
    }

    /// Command that `-- COMMAND` stands for.
    fn main_command(&self, argv: &[String]) -> (&'static str, Side);

    /// Judges a transcript. Pure: the same transcript gives the same judgement for ever.
    fn judge(&self, transcript: &Transcript) -> Judgement;

    /// Judges a transcript of any conversation by what was really written, without regard to `expect` in its steps:
    /// for generated, mutated and shrunk conversations.
    fn judge_by_model(&self, transcript: &Transcript) -> Judgement;

    /// Whether `frame` is certainly the answer to the canary `step`; lets the harness stop waiting for a reply that
    /// was lost before it.
    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool;

    /// Conversations whose transcripts tell which roles and features a peer has (`facts` as configured).
    fn probes(&self, facts: &Facts) -> Vec<Plan>;

    /// Completes `facts` by what the probes showed; `features_given` is false where the configuration has no
    /// `[features]` table, so that features are taken as claimed where they show.
    fn complete(&self, facts: &mut Facts, features_given: bool, probes: &[Transcript]);

    /// Makes a valid, nearly valid or hostile conversation.
    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan;

    /// Smaller variants of one step's payload, most promising first, for the shrinker.
    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan>;

    /// The reference peers, provider first.
    fn references(&self) -> Vec<Reference>;

    /// Runs a reference peer in this process until it ends; `args` are those of [`Reference::commands`] and options
    /// such as `--choice key=value`, `--mutant ID`. Returns the exit status.
    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32;

    /// Facts about the reference peer of `side`: what a configuration file for it would say.
    fn reference_facts(&self, side: Side) -> Facts;

    /// A reference peer as a machine for the in-process transport, with the same arguments as
    /// [`Boundary::run_reference`] and `--without FEATURE` for a correct peer that lacks it; `None` where only a process can play it.
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

    /// What a benchmark sends to a peer of which this is known, the smallest first. Rows are made of them.
    ///
    /// # Errors
    /// One sentence: nothing can be measured, and what is needed for it.
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, String>;

    /// A conversation of this many small exchanges with one process, each with its expectation: what a benchmark of
    /// the harness itself carries out. `None` where such a peer has no such conversation.
    fn small_exchanges(&self, facts: &Facts, exchanges: usize) -> Option<Plan>;

    /// All mutants.
    fn mutants(&self) -> Vec<Mutant>;

    /// Checks that notice no mutant, each with the reason why it is kept.
    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// All boundaries, in the order in which `check` without arguments goes through them.
pub fn all() -> Vec<&'static dyn Boundary> {
    vec![toolhost::boundary(), json_rpc::boundary()]
}

/// The boundary called `name`; `_` and `-` are the same.
pub fn find(name: &str) -> Option<&'static dyn Boundary> {
    let name = name.replace('-', "_");
    all().into_iter().find(|boundary| boundary.name() == name)
}

/// Whether a clause belongs to a set of requirements beyond the one that a peer is held to.
pub fn is_beyond(boundary: &dyn Boundary, requirements: &str, clause: &Clause) -> bool {
    let sets = boundary.requirements();
    let held = sets.iter().position(|set| *set == requirements).unwrap_or(0);
    clause.set.as_ref().is_some_and(|set| sets[..held].contains(&set.as_str()))
}

/// Judges a stored or fresh transcript the way its plan asks for: by the expectations in its steps, or by the model.
pub fn judge(boundary: &dyn Boundary, transcript: &Transcript) -> Judgement {
    if transcript.plan.by_model { boundary.judge_by_model(transcript) } else { boundary.judge(transcript) }
}

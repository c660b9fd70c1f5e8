//! Stage: the peers of a comparison, with which conversations are held.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::differences::{self, Difference, DifferenceTally, Differences};
use crate::contract::boundary::{self, NormalizedExchange};
use crate::data::blame::HarnessFault;
use crate::data::facts::Facts;
use crate::data::plan::Plan;
use crate::data::transcript::Transcript;
use crate::drive::parallel;
use crate::drive::peer::Peer;
use crate::run::runner::silence::Silences;
use crate::run::runner::{self, Options, Surroundings};

/// Number of peers in parallel per job, as they mostly wait.
const PEERS_PER_JOB: usize = 4;

/// Peers that hold equal conversations.
pub struct MatrixStage<'a> {
    pub(super) peers: &'a [Peer],
    pub(super) facts: Facts,
    options: &'a Options,
    around: Surroundings<'a>,
    /// Silences of each peer, so that a hanging peer is not always awaited in full.
    silences: Vec<Silences>,
}

/// Answers of each peer in one conversation, or the reason why they are unknown.
pub(super) type Conversation = Result<Vec<Vec<NormalizedExchange>>, HarnessFault>;

/// Difference in one conversation.
pub(super) struct Sighting {
    pub(super) seen: Difference,
    /// Transcript of the first deviating peer.
    pub(super) apart: Transcript,
}

impl<'a> MatrixStage<'a> {
    /// Makes a stage of these peers.
    pub fn new(peers: &'a [Peer], options: &'a Options, around: Surroundings<'a>) -> Self {
        let silences = peers.iter().map(|_| Silences::default()).collect();
        Self { peers, facts: differences::common(peers), options, around, silences }
    }

    /// Stage for a second look: the first silence of each peer is awaited in full again.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.peers, self.options, self.around)
    }

    pub(super) fn rng_seed(&self) -> u64 {
        self.options.rng_seed
    }

    pub(super) fn jobs(&self) -> usize {
        self.options.jobs
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.around.interrupted.load(Ordering::Relaxed)
    }

    /// Holds equal conversations with all peers and compares their answers.
    pub fn compare(&self, conversations: u64, progress: &(dyn Fn(String) + Sync)) -> Differences {
        let mut tally = DifferenceTally::new(self.peers, self.rng_seed());
        for (n, all) in self.hold(conversations, progress) {
            match all {
                Ok(all) => tally.add(n, &all),
                Err(error) => tally.give_up(n, &error),
            }
        }
        tally.done()
    }

    /// Holds conversations with all peers, several in parallel. Returns the answers in each conversation that every
    /// peer had.
    fn hold(&self, conversations: u64, progress: &(dyn Fn(String) + Sync)) -> Vec<(u64, Conversation)> {
        let pairs = (0..conversations)
            .map_while(|n| Some((n, self.plan(n)?)))
            .flat_map(|(n, plan)| (0..self.peers.len()).map(move |at| (n, at, Arc::clone(&plan))))
            .take_while(|_| !self.is_interrupted());
        let each = parallel::each(self.jobs() * PEERS_PER_JOB, pairs, |(n, at, plan)| {
            let exchanges = self.converse(at, &plan).map(|it| self.peers[at].boundary.exchanges(&it));
            progress(format!("conversation {n}: {}", self.peers[at].name));
            (n, exchanges)
        });
        let mut each = each.into_iter().peekable();
        let mut held = Vec::new();
        while let Some((n, _)) = each.peek() {
            let n = *n;
            let all: Vec<_> =
                std::iter::from_fn(|| each.next_if(|next| next.0 == n)).map(|it| it.1).collect();
            if all.len() == self.peers.len() {
                held.push((n, all.into_iter().collect()));
            }
        }
        held
    }

    /// Plan of conversation `n` for these peers.
    pub(super) fn plan(&self, n: u64) -> Option<Arc<Plan>> {
        differences::plan(self.peers, &self.facts, self.rng_seed(), n).map(Arc::new)
    }

    /// Holds one conversation with all peers.
    pub(super) fn all(&self, plan: &Arc<Plan>) -> Result<Vec<Transcript>, HarnessFault> {
        parallel::each(PEERS_PER_JOB, 0..self.peers.len(), |at| self.converse(at, plan)).into_iter().collect()
    }

    /// Holds a conversation with one peer. Known silences shorten the waits.
    pub(super) fn converse(&self, at: usize, plan: &Arc<Plan>) -> Result<Transcript, HarnessFault> {
        let (peer, silences) = (&self.peers[at], &self.silences[at]);
        let (judgement, transcript) = silences.first_attempt(|wait| {
            let mut lab = runner::lab(peer, self.options, self.around);
            wait.apply(&mut lab, plan);
            let transcript =
                lab.execute_shared("matrix", plan).map_err(|error| format!("{}: {error}", peer.name))?;
            Ok::<_, String>((boundary::judge(peer.boundary, &transcript), transcript))
        })?;
        judgement.findings.iter().for_each(|finding| silences.seen(finding));
        Ok(transcript)
    }

    /// Differences shown by a conversation with all peers.
    pub(super) fn differences(&self, n: u64, transcripts: &[Transcript]) -> Vec<Difference> {
        let exchanges = |(peer, transcript): (&Peer, &Transcript)| peer.boundary.exchanges(transcript);
        let all: Vec<Vec<NormalizedExchange>> = self.peers.iter().zip(transcripts).map(exchanges).collect();
        let mut tally = DifferenceTally::new(self.peers, 0);
        tally.add(n, &all);
        tally.done().differences
    }

    /// Occurrence of `wanted` among the differences of a conversation.
    pub(super) fn sighting(
        &self,
        wanted: &Difference,
        shown: &[Difference],
        transcripts: &[Transcript],
    ) -> Option<Sighting> {
        let seen = shown.iter().find(|seen| seen.is_like(wanted))?.clone();
        let at = self.peers.iter().position(|peer| wanted.apart.first() == Some(&peer.name))?;
        Some(Sighting { seen, apart: transcripts.get(at)?.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use crate::drive::machine::{Action, Machine, MachineEvent, Millis};

    use super::*;
    use crate::contract::boundary::Boundary as _;
    use crate::data::clause::Side;
    use crate::data::pace::Pace;
    use crate::data::transcript::EventKind;
    use crate::drive::fixture::ActorExe;
    use crate::drive::peer::Origin;
    use crate::toy::{self, Toy};

    /// Never writes, and ends with its input.
    struct Mute;

    impl Machine for Mute {
        fn handle(&mut self, event: MachineEvent<'_>, _now: Millis, actions: &mut Vec<Action>) {
            if let MachineEvent::StdinEof = event {
                actions.push(Action::Exit(0));
            }
        }
    }

    fn mute() -> Peer {
        let pace = Pace::default();
        // An unmeasured start would add half a minute.
        pace.saw_start_up(toy::COMMAND, Duration::from_millis(1));
        Peer {
            name: "mute".to_owned(),
            boundary: &Toy,
            facts: Toy.full_facts(Side::Provider),
            commands: BTreeMap::from([(toy::COMMAND.to_owned(), Vec::new())]),
            env: Vec::new(),
            features_given: true,
            origin: Origin::InProcess(Arc::new(|_, _| Some(Box::new(Mute)))),
            pace: Arc::new(pace),
        }
    }

    #[test]
    fn a_silence_is_waited_for_in_full_once_a_look() {
        let (peers, options) = ([mute()], Options::default());
        let (actor_exe, scratch) = (ActorExe::new("none"), std::env::temp_dir());
        let interrupted = Arc::<AtomicBool>::default();
        let around = Surroundings { actor_exe: &actor_exe, scratch: &scratch, interrupted: &interrupted };
        let stage = MatrixStage::new(&peers, &options, around);
        let full = runner::lab(&peers[0], &options, around).budget.reply;
        let plan = stage.plan(0).unwrap();
        let has_waited_in_full = |stage: &MatrixStage<'_>| {
            let events = stage.converse(0, &plan).unwrap().events;
            let waited = events.iter().find_map(|event| match event.kind {
                EventKind::DeadlinePassed { waited_ms, .. } => Some(waited_ms),
                _ => None,
            });
            u128::from(waited.unwrap()) >= full.as_millis()
        };
        assert!(has_waited_in_full(&stage));
        assert!(!has_waited_in_full(&stage));
        assert!(has_waited_in_full(&stage.anew()));
    }
}

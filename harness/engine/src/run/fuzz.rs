//! Fuzzing: endless generated conversations, judged by the boundary's model.
//!
//! One `rng_seed` gives one sequence of conversations, independent of the number of workers and the behaviour of the
//! peer: conversation `n` follows from the seed, `n` and the corpus at the start. Each runs in a process of its own, so
//! that a crash or hang costs one conversation. Findings are grouped by clause and reason code; the shortest
//! conversation of each group is confirmed, shrunk and kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::contract::boundary::Figure;
use crate::data::blame::{HarnessFault, Misconfigured};
use crate::data::clause::Side;
use crate::data::finding::Finding;
use crate::data::plan::{Act, Plan};
use crate::data::rng::Rng;
use crate::data::transcript::{EventKind, Transcript, strict};
use crate::drive::lab::{Lab, Unfinished};
use crate::drive::peer::Peer;
use crate::drive::private;
use crate::drive::reference_peers::Played;
use crate::run::runner::Failure;
use crate::run::shrink;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct FuzzSettings {
    /// Time for generated conversations; shrinking comes on top.
    pub time: Duration,
    /// Maximum number of conversations; `None` for no limit.
    pub conversations_max: Option<u64>,
    /// Seed of all conversations.
    pub rng_seed: u64,
    /// Number of workers.
    pub jobs: usize,
    /// Time for shrinking one finding. All findings together get six times as much.
    pub shrink: Duration,
    /// Reference peers that must show no finding in a shrunk conversation.
    pub played: Option<&'static dyn Played>,
}

/// Identity of a finding: clause and reason code.
pub type FindingKey = (String, String);

/// Progress of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Status {
    /// Number of finished conversations.
    pub conversations: u64,
    /// Number of judged messages.
    pub messages: u64,
    /// Number of different findings that are not in the corpus.
    pub found: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

/// New finding.
#[derive(Debug, Clone)]
pub struct NewFinding {
    /// Shortest conversation that shows it.
    pub failure: Failure,
    /// Number of the conversation.
    pub conversation: u64,
    /// Set if it showed in every repetition; otherwise it depends on time or luck.
    pub steady: bool,
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct FuzzSummary {
    /// Progress at the end.
    pub status: Status,
    /// New findings, ordered by key.
    pub found: Vec<NewFinding>,
    /// Findings of the corpus that showed again.
    pub known: BTreeSet<FindingKey>,
    /// Number of conversations that could not be finished, and the reason of the last one.
    pub given_up: (u64, Option<String>),
    /// The largest figure of each name.
    pub figures: Vec<Figure>,
}

/// Conversations of earlier runs, by their findings.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    plans: Vec<(FindingKey, Plan)>,
}

impl Corpus {
    /// Reads the plans of a folder; a missing folder counts as empty.
    ///
    /// # Errors
    /// Fails if the folder or a file cannot be read, or a file is not a conversation.
    pub fn load(folder: &Path) -> Result<Self, Misconfigured> {
        let mut plans = Vec::new();
        if !folder.exists() {
            return Ok(Self::default());
        }
        let cannot = |error: std::io::Error| format!("cannot read the corpus {}: {error}", folder.display());
        let mut paths: Vec<_> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            paths.push(entry.map_err(cannot)?.path());
        }
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let text = std::fs::read_to_string(&path).map_err(cannot)?;
            let refused =
                |error: String| format!("{} is not a conversation of the corpus: {error}", path.display());
            let plan = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
            let plan = strict::read(&plan, "").map_err(|error| refused(error.into()))?;
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let (clause, reason) = name.split_once("--").unwrap_or((name, ""));
            plans.push(((clause.to_owned(), reason.to_owned()), plan));
        }
        Ok(Self { plans })
    }

    /// Adds a conversation to a folder.
    ///
    /// # Errors
    /// Fails if the folder or the file cannot be written.
    pub fn add(folder: &Path, finding: &Finding, plan: &Plan) -> Result<(), HarnessFault> {
        let path = folder.join(format!("{}--{}.json", finding.clause.0, finding.reason));
        let cannot = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        let text = serde_json::to_string_pretty(plan).map_err(|error| error.to_string())?;
        Ok(private::write(&path, &(text + "\n")).map_err(cannot)?)
    }

    /// Conversations that apply to `peer`; those of other boundaries or sides are useless.
    fn of(&self, peer: &Peer) -> Self {
        let fits = |(clause, _): &FindingKey, plan: &Plan| {
            peer.boundary.clauses().iter().any(|known| known.id.0 == *clause)
                && plan.sessions.iter().all(|session| peer.commands.contains_key(&session.command))
        };
        Self { plans: self.plans.iter().filter(|(key, plan)| fits(key, plan)).cloned().collect() }
    }

    fn knows(&self, key: &FindingKey) -> bool {
        self.plans.iter().any(|(known, _)| known == key)
    }
}

/// Plan of conversation `n` of a run. The corpus comes first.
pub(crate) fn plan_at(lab: &Lab<'_>, corpus: &Corpus, rng_seed: u64, n: u64) -> Plan {
    let stored = usize::try_from(n).ok().and_then(|n| corpus.plans.get(n));
    if let Some((_, plan)) = stored {
        return Plan { by_model: true, ..plan.clone() };
    }
    let mut rng = Rng::new(rng_seed).fork(&format!("fuzz/{n}"));
    if !corpus.plans.is_empty() && rng.chance(1, 8) {
        let (_, plan) = rng.pick(&corpus.plans).clone();
        return shaken(plan, &mut rng);
    }
    lab.peer.boundary.generate(&lab.peer.facts, &mut rng)
}

/// Reorders, repeats and drops steps of `plan`. Plans with captures or several sessions stay as they are.
fn shaken(mut plan: Plan, rng: &mut Rng) -> Plan {
    plan.by_model = true;
    if plan.steps.iter().any(|step| step.capture.is_some()) || plan.sessions.len() > 1 {
        return plan;
    }
    for _ in 0..=rng.below(3) {
        let sends: Vec<usize> =
            (0..plan.steps.len()).filter(|at| matches!(plan.steps[*at].act, Act::Send { .. })).collect();
        if sends.is_empty() {
            return plan;
        }
        let at = *rng.pick(&sends);
        let other = *rng.pick(&sends);
        match rng.below(3) {
            0 => plan.steps.swap(at, other),
            1 => {
                let step = plan.steps[at].clone();
                plan.steps.insert(other, step);
            }
            _ => drop(plan.steps.remove(at)),
        }
    }
    plan
}

/// Number of repetitions in which a finding must show to count as steady.
const REPETITIONS: usize = 2;

/// Number of findings that get their full time for shrinking.
const FINDINGS_SHRUNK: u32 = 6;

/// Shortest conversation of a finding.
struct FirstConversation {
    failure: Failure,
    conversation: u64,
}

impl FirstConversation {
    /// Sort key: few steps, then the earliest, so that the result does not depend on the speed of workers.
    fn rank(plan: &Plan, conversation: u64) -> (usize, u64) {
        (plan.steps.len(), conversation)
    }
}

#[derive(Default)]
struct FuzzState {
    first: BTreeMap<FindingKey, FirstConversation>,
    known: BTreeSet<FindingKey>,
    given_up: (u64, Option<String>),
    figures: BTreeMap<&'static str, Figure>,
}

/// Looks for findings until the time is over or `stop` returns true. Calls `report` with the progress.
pub fn run(
    lab: &Lab<'_>,
    corpus: &Corpus,
    settings: &FuzzSettings,
    stop: &(dyn Fn() -> bool + Sync),
    report: &(dyn Fn(&Status) + Sync),
) -> FuzzSummary {
    let corpus = &corpus.of(lab.peer);
    let began = Instant::now();
    let deadline = began + settings.time;
    let next = AtomicU64::new(0);
    let conversations = AtomicU64::new(0);
    let messages = AtomicU64::new(0);
    let seen: Mutex<FuzzState> = Mutex::default();
    let status = |found: usize| Status {
        conversations: conversations.load(Ordering::Relaxed),
        messages: messages.load(Ordering::Relaxed),
        found,
        elapsed: began.elapsed(),
    };
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs.max(1) {
            scope.spawn(|| {
                while Instant::now() < deadline && !stop() {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if settings.conversations_max.is_some_and(|max| n >= max) {
                        return;
                    }
                    let plan = Arc::new(plan_at(lab, corpus, settings.rng_seed, n));
                    let done = one(lab, corpus, n, &plan, &seen);
                    messages.fetch_add(done, Ordering::Relaxed);
                    conversations.fetch_add(1, Ordering::Relaxed);
                    if n.is_multiple_of(16) {
                        report(&status(lock(&seen).first.len()));
                    }
                }
            });
        }
    });
    let at_the_end = status(lock(&seen).first.len());
    report(&at_the_end);
    let FuzzState { first, known, given_up, figures } =
        seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // A peer with one fatal fault breaks many clauses: the first ones are shrunk, the others kept as they are.
    let all = Instant::now() + settings.shrink * FINDINGS_SHRUNK;
    let left = || all.saturating_duration_since(Instant::now()).min(settings.shrink);
    // One conversation may show many findings: it is repeated once for all of them.
    let mut again: BTreeMap<u64, BTreeSet<FindingKey>> = BTreeMap::new();
    let found = first
        .into_values()
        .filter_map(|first| {
            let showed = again.entry(first.conversation).or_insert_with(|| shows_again(lab, &first.failure));
            let steady = showed.contains(&key_of(&first.failure.finding));
            // A missed time that shows once may be the machine's.
            let is_doubtful = !steady && first.failure.finding.timed && !stop();
            let left = if stop() { Duration::ZERO } else { left() };
            (!is_doubtful).then(|| shrunk(lab, settings.played, first, steady, left))
        })
        .collect();
    FuzzSummary { status: at_the_end, found, known, given_up, figures: figures.into_values().collect() }
}

/// Runs and judges one conversation; returns the number of its messages.
fn one(lab: &Lab<'_>, corpus: &Corpus, n: u64, plan: &Arc<Plan>, seen: &Mutex<FuzzState>) -> u64 {
    let transcript = match lab.execute_shared("fuzz", plan) {
        Ok(transcript) => transcript,
        Err(Unfinished::Interrupted) => return 0,
        Err(Unfinished::Fault(fault)) => {
            // A variable has no value, for example because the peer issued no lease. The next conversation may work.
            let given_up = &mut lock(seen).given_up;
            given_up.0 += 1;
            given_up.1 = Some(fault.into());
            return 0;
        }
    };
    for figure in lab.peer.boundary.figures(&transcript) {
        let figures = &mut lock(seen).figures;
        if figures.get(figure.name).is_none_or(|known| known.value < figure.value) {
            figures.insert(figure.name, figure);
        }
    }
    let findings = lab.peer.boundary.judge_by_model(&transcript).findings;
    for finding in findings {
        let key = key_of(&finding);
        let mut seen = lock(seen);
        if corpus.knows(&key) {
            seen.known.insert(key);
            continue;
        }
        let rank = FirstConversation::rank(plan, n);
        let known = seen.first.get(&key);
        if known.is_some_and(|known| {
            FirstConversation::rank(&known.failure.transcript.plan, known.conversation) <= rank
        }) {
            continue;
        }
        let failure = Failure { check: check_name(&key), transcript: transcript.clone(), finding };
        seen.first.insert(key, FirstConversation { failure, conversation: n });
    }
    messages(&transcript)
}

/// Number of messages actually sent: after the peer has gone, a conversation goes no further. An HTTP body counts as
/// one message whatever line feeds it has; so do text without a line feed, a file that is put, and a call of a peer
/// that asks.
fn messages(transcript: &Transcript) -> u64 {
    let asks = transcript.facts.side == Side::Consumer;
    let steps = &transcript.plan.steps;
    let is_body = |step: usize| steps.get(step).is_some_and(|step| step.http.is_some());
    let messages = transcript.events.iter().map(|event| match &event.kind {
        EventKind::Sent { step, payload } if !is_body(*step) => payload.lines().max(1) as u64,
        EventKind::Sent { .. } | EventKind::FilePut { error: None, .. } => 1,
        EventKind::ActorReceived { .. } | EventKind::ListenerHit { .. } => u64::from(asks),
        _ => 0,
    });
    messages.sum()
}

/// Check name under which a finding's reproducer is stored.
fn check_name((clause, reason): &FindingKey) -> String {
    format!("fuzz/{clause}/{reason}")
}

/// Findings that show in every repetition of the conversation of `failure`.
fn shows_again(lab: &Lab<'_>, failure: &Failure) -> BTreeSet<FindingKey> {
    let once = || -> BTreeSet<FindingKey> {
        let transcript = lab.execute_shared(&failure.check, &failure.transcript.plan);
        let findings = transcript.map(|transcript| lab.peer.boundary.judge_by_model(&transcript).findings);
        findings.unwrap_or_default().iter().map(key_of).collect()
    };
    let mut always = once();
    for _ in 1..REPETITIONS {
        if !always.is_empty() {
            let now = once();
            always.retain(|key| now.contains(key));
        }
    }
    always
}

fn key_of(finding: &Finding) -> FindingKey {
    (finding.clause.0.clone(), finding.reason.clone())
}

/// Shrinks the conversation of a steady finding.
fn shrunk(
    lab: &Lab<'_>,
    played: Option<&'static dyn Played>,
    first: FirstConversation,
    steady: bool,
    time: Duration,
) -> NewFinding {
    let FirstConversation { failure, conversation } = first;
    if !steady || time.is_zero() {
        return NewFinding { failure, conversation, steady };
    }
    let smaller = shrink::shrink(lab, played, &failure, Instant::now() + time);
    let failure = Failure { transcript: smaller.transcript, finding: smaller.finding, ..failure };
    NewFinding { failure, conversation, steady }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_an_unknown_member_is_none_of_the_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let step = crate::data::plan::Step::new(Act::Finish);
        let plan = Plan { steps: vec![step], ..Plan::default() };
        let text = serde_json::to_string(&plan).unwrap();
        let load = |text: &str| {
            std::fs::write(folder.path().join("ADD-01--lost.json"), text).unwrap();
            Corpus::load(folder.path())
        };
        assert_eq!(load(&text).unwrap().plans.len(), 1);
        let misspelt = text.replace("\"session\"", "\"sesion\"");
        assert_ne!(misspelt, text);
        let error = load(&misspelt).unwrap_err();
        assert!(
            error.to_string().contains("ADD-01--lost.json") && error.to_string().contains("sesion"),
            "{error}"
        );
    }
}

//! Reproducers: one folder per failure, with which anybody can show it again.
//!
//! `transcript.ndjson` holds the conversation and `stdin.bin` the input of the failing process. `repro.sh` repeats it:
//! with sh and the peer alone if the input is static, otherwise (replies, time, signatures) through
//! `peerproof replay --live`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::contract::boundary;
use crate::data::blame::HarnessFault;
use crate::data::clause::ClauseId;
use crate::data::finding::Finding;
use crate::data::payload::{Payload, Segment};
use crate::data::plan::{Act, Chunking, Fixture, Plan, Step};
use crate::data::transcript::{EventKind, Packed, Transcript};
use crate::drive::lab::Lab;
use crate::drive::parallel;
use crate::drive::private;
use crate::drive::reference_peers::Played;
use crate::run::results::Explanation;
use crate::run::runner::{CheckOutcome, Failure};
use crate::run::shrink::{self, Shrunk};
use crate::run::verdict::{CheckResult, OtherView, Verdict};

mod conversation;
mod script;

pub(crate) use conversation::conversation_about;
pub use conversation::{abridge, conversation, explaining_errors, is_contrast, last_sent};
pub use script::quoted;

/// Maximum line length and number of lines of a conversation in results.
const CHARS_MAX: usize = 200;
const LINES_MAX: usize = 40;
/// Maximum number of parts into which the remaining time for shrinking is divided.
const SHARES_MIN: usize = 4;
/// Number of bytes above which a failure is explained without others in parallel.
const BESIDE_BYTES_MAX: usize = 1 << 20;
/// Time after an interrupt during which further reproducers are begun.
pub const LAST_WORDS: Duration = Duration::from_millis(500);

/// Settings for explaining failures after a run.
pub struct Explain<'a> {
    /// Lab with the peer.
    pub lab: &'a Lab<'a>,
    /// Reference peers that must show no finding in a shrunk conversation.
    pub played: Option<&'static dyn Played>,
    /// Folder for reproducers; `None` to write none.
    pub out_dir: Option<&'a Path>,
    /// Number of the cause of each check, by which reproducers are sorted.
    pub numbers: &'a BTreeMap<String, usize>,
    /// Time for all shrinking of the run; zero disables it.
    pub budget: Duration,
    /// Number of failures shrunk in parallel.
    pub jobs: usize,
    /// Command-line arguments that select the peer: flags, `--config FILE`, `-- COMMAND…`.
    pub peer_args: &'a [String],
    /// Set when the user asks to stop: the rest is written without shrinking, for half a second.
    pub interrupted: &'a AtomicBool,
}

/// Explanation of one failure.
pub struct Explained {
    /// Line for [`crate::run::results::ResultsWriter::explain`]; already part of the result.
    pub explanation: Explanation,
    /// Result of shrinking, if tried.
    pub shrunk: Option<Shrunk>,
    /// Reason why no reproducer could be written.
    pub problem: Option<String>,
}

/// Shrinks the failures of a run while the budget lasts, several in parallel and distinct ones first, writes their
/// reproducers, and adds conversation, reproducer and finding to their results. Calls `each` for every finished one.
/// Failures that depend on time or hold much data come last and one by one, because others in parallel could disturb
/// them.
///
/// Flaky failures are written without shrinking, expected ones skipped. Returns the number of failures left without
/// reproducer and conversation because the user asked to stop.
pub fn explain_failures<'o>(
    outcomes: impl IntoIterator<Item = &'o mut CheckOutcome>,
    with: &Explain<'_>,
    each: impl FnMut(&CheckResult, &Explained) + Send,
) -> usize {
    let mut failures: Vec<&mut CheckOutcome> = outcomes
        .into_iter()
        .filter(|outcome| {
            let verdict = &outcome.result.verdict;
            outcome.failure.is_some() && (verdict.is_failure() || matches!(verdict, Verdict::Flaky(_)))
        })
        .collect();
    failures.sort_by(|a, b| a.result.id.cmp(&b.result.id));
    // Distinct failures first.
    let mut seen = BTreeMap::<(ClauseId, String), usize>::new();
    let mut failures: Vec<(usize, &mut CheckOutcome)> = failures
        .into_iter()
        .filter_map(|outcome| {
            let finding = &outcome.failure.as_ref()?.finding;
            let before = seen.entry((finding.clause.clone(), finding.reason.clone())).or_default();
            *before += 1;
            Some((*before, outcome))
        })
        .collect();
    failures.sort_by_key(|(before, _)| *before);
    let is_alone = |outcome: &CheckOutcome| {
        let of_time_or_much = |failure: &Failure<Packed>| {
            failure.finding.is_of_time() || failure.transcript.bytes() > BESIDE_BYTES_MAX
        };
        let check = with.lab.peer.boundary.checks().iter().find(|check| check.id == outcome.result.id);
        check.is_some_and(|check| check.exclusive) || outcome.failure.as_ref().is_some_and(of_time_or_much)
    };
    let (alone, beside): (Vec<_>, Vec<_>) = failures.into_iter().partition(|(_, outcome)| is_alone(outcome));
    let (end, each) = (Instant::now() + with.budget, Mutex::new(each));
    let mut to_come = alone.len() + beside.len();
    let (stopped, left_out) = (OnceLock::new(), AtomicUsize::new(0));
    for (jobs, failures) in [(with.jobs.max(1), beside), (1, alone)] {
        let first = to_come;
        to_come -= failures.len();
        parallel::each(jobs, failures.into_iter().enumerate(), |(index, (_, outcome))| {
            let is_over = || stopped.get_or_init(Instant::now).elapsed() > LAST_WORDS;
            if with.interrupted.load(Ordering::Relaxed) && is_over() {
                left_out.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            // The first failures may take more than an equal share, but never all of it.
            let turns = (first - index).div_ceil(jobs).min(SHARES_MIN);
            let share = left / u32::try_from(turns).unwrap_or(1);
            if let Some(explained) = explain(outcome, with, share) {
                let mut each = each.lock().unwrap_or_else(PoisonError::into_inner);
                each(&outcome.result, &explained);
            }
        });
    }
    left_out.into_inner()
}

/// Shrinks one failure for up to `share` and writes its reproducer.
fn explain(outcome: &mut CheckOutcome, with: &Explain<'_>, share: Duration) -> Option<Explained> {
    let mut failure: Failure = Failure::from(outcome.failure.take()?);
    // Each start of a server that never listens takes the whole time of a start.
    let starts =
        !failure.transcript.events.iter().any(|event| matches!(event.kind, EventKind::StartFailed { .. }));
    let go_on = starts && !share.is_zero() && !with.interrupted.load(Ordering::Relaxed);
    let shrunk = (go_on && outcome.result.verdict.is_failure())
        .then(|| shrink::shrink(with.lab, with.played, &failure, Instant::now() + share));
    if let Some(shrunk) = &shrunk {
        failure.transcript = shrunk.transcript.clone();
        failure.finding = shrunk.finding.clone();
    }
    let findings = boundary::judge(with.lab.peer.boundary, &failure.transcript).findings;
    let (conversation, wrong_line) =
        conversation_about(&failure.transcript, &failure.finding, &findings, CHARS_MAX, LINES_MAX);
    let mut explanation = Explanation {
        id: outcome.result.id.clone(),
        reproducer: None,
        conversation,
        wrong_line,
        others: other_views(&failure, &findings),
        finding: Some(failure.finding.clone()),
    };
    let mut problem = None;
    if let Some(out_dir) = with.out_dir {
        let number = with.numbers.get(&outcome.result.id);
        let name = folder_name(&outcome.result.id, number.copied());
        match write(out_dir, &name, &failure, with.lab, with.peer_args, go_on) {
            Ok(()) => explanation.reproducer = Some(name),
            Err(fault) => problem = Some(fault.into()),
        }
    }
    outcome.failure = Some(failure.into());
    explanation.clone().fold_into(&mut outcome.result);
    Some(Explained { explanation, shrunk, problem })
}

/// Views of a conversation for its findings of other kinds than the one that it was shrunk for.
fn other_views(failure: &Failure, findings: &[Finding]) -> Vec<OtherView> {
    let mut seen = BTreeSet::from([failure.finding.key()]);
    let others = findings.iter().filter(|finding| seen.insert(finding.key()));
    let view = |finding: &Finding| {
        let (conversation, wrong_line) =
            conversation_about(&failure.transcript, finding, findings, CHARS_MAX, LINES_MAX);
        let (clause, reason) = (finding.clause.clone(), finding.reason.clone());
        OtherView { clause, reason, conversation, wrong_line }
    };
    others.map(view).collect()
}

/// Folder name for a check that shows the cause with this number.
pub fn folder_name(check: &str, number: Option<usize>) -> String {
    let name = check.replace('/', "__");
    number.map_or_else(|| name.clone(), |number| format!("{number:02}-{name}"))
}

/// Name of the folder to which earlier reproducers are moved.
const EARLIER: &str = "earlier";

/// Moves the reproducers in `out_dir` to its folder `earlier`, replacing those with equal names.
///
/// # Errors
/// Fails if a folder cannot be moved.
pub fn move_away(out_dir: &Path) -> Result<(), HarnessFault> {
    let Ok(entries) = std::fs::read_dir(out_dir) else { return Ok(()) };
    let is_ours = |folder: &Path| {
        ["transcript.ndjson", "repro.sh"].iter().all(|file| folder.join(file).is_file())
            && !folder.is_symlink()
    };
    for folder in entries.flatten().map(|entry| entry.path()).filter(|folder| is_ours(folder)) {
        let sentence = |error: std::io::Error| {
            format!("cannot move the earlier reproducer {}: {error}", folder.display())
        };
        let Some(name) = folder.file_name() else { continue };
        let to = out_dir.join(EARLIER).join(name);
        private::folder(&out_dir.join(EARLIER)).map_err(sentence)?;
        if to.exists() {
            std::fs::remove_dir_all(&to).map_err(sentence)?;
        }
        std::fs::rename(&folder, &to).map_err(sentence)?;
    }
    Ok(())
}

/// Writes the reproducer of one failure to the folder `name` of `out_dir`. Its script needs only sh and the peer if all
/// input bytes of one session are known in advance. It writes them at once if that shows the failure, too. For a single
/// message that is certain; `try_static` runs the peer once to see it. Otherwise it uses the pauses of the plan.
///
/// # Errors
/// Fails if the folder or a file cannot be written.
pub fn write(
    out_dir: &Path,
    name: &str,
    failure: &Failure,
    lab: &Lab<'_>,
    peer_args: &[String],
    try_static: bool,
) -> Result<(), HarnessFault> {
    let (folder, check) = (out_dir.join(name), failure.check.as_str());
    let sentence =
        |error: std::io::Error| format!("cannot write the reproducer {}: {error}", folder.display());
    let file = private::create(&folder.join("transcript.ndjson")).map_err(sentence)?;
    failure.transcript.store(BufWriter::new(file)).map_err(sentence)?;

    let plan = &failure.transcript.plan;
    let session = failing_session(plan, &failure.finding);
    let stdin = folder.join("stdin.bin");
    // Sealed input differs each time.
    let sealed = is_sealed(&failure.transcript, session);
    let input = script::paced_input(plan, session).filter(|_| !sealed && lab.peer.is_process());
    if sealed {
        let file = private::create(&stdin).map_err(sentence)?;
        write_payloads(written(&failure.transcript, session).map(|(_, payload)| payload), file)
            .map_err(sentence)?;
    } else if is_constant(plan, session) && payloads(plan, session).next().is_some() {
        let file = private::create(&stdin).map_err(sentence)?;
        write_payloads(payloads(plan, session), file).map_err(sentence)?;
    } else if stdin.exists() {
        std::fs::remove_file(&stdin).map_err(sentence)?;
    }
    for fixture in &plan.fixtures {
        // Scenario of a peer that asks, for readers.
        let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if let Fixture::File { name, content, kept: false, .. } = fixture
            && is_plain(name)
        {
            let file = private::create(&folder.join(format!("file-{name}"))).map_err(sentence)?;
            // Paths of fixtures differ each time.
            let vars = content.variables().map(|name| (name.to_owned(), format!("{{{{{name}}}}}"))).collect();
            write_payloads([&content.filled(&vars)?].into_iter(), file).map_err(sentence)?;
        }
    }
    let others = plan.steps.iter().filter(|step| step.session != session).count();
    let is_whole =
        |step: &Step| !matches!(step.act, Act::Send { chunking, .. } if chunking != Chunking::Whole);
    let shows_whole = || {
        plan.steps.iter().all(is_whole)
            && (is_one_message(plan, session) || try_static && shows_at_once(lab, failure, session))
    };
    let script = match (input, plan.sessions.get(session)) {
        (Some(input), Some(spec)) if shows_whole() => {
            script::static_script(check, &failure.finding, lab.peer, spec, &script::at_once(&input))
                .map_err(String::from)?
        }
        (Some(input), Some(spec)) if others == 0 => {
            script::static_script(check, &failure.finding, lab.peer, spec, &input).map_err(String::from)?
        }
        _ => script::live_script(check, failure, lab, peer_args),
    };
    private::write_script(&folder.join("repro.sh"), &script).map_err(sentence)?;
    Ok(())
}

/// True if a session is sent one message and at most one canary.
fn is_one_message(plan: &Plan, session: usize) -> bool {
    let sends = |step: &&Step| step.session == session && matches!(step.act, Act::Send { .. });
    let others = plan.steps.iter().filter(|step| step.session != session || step.http.is_some()).count();
    let canaries = plan.steps.iter().filter(sends).filter(|step| step.canary).count();
    plan.steps.iter().filter(sends).filter(|step| !step.canary).count() == 1 && canaries <= 1 && others == 0
}

/// Session of the step that shows the finding, or else the last one written to.
fn failing_session(plan: &Plan, finding: &Finding) -> usize {
    let sent = || plan.steps.iter().rev().find(|step| matches!(step.act, Act::Send { .. }));
    finding.step.and_then(|step| plan.steps.get(step)).or_else(sent).map_or(0, |step| step.session)
}

fn payloads(plan: &Plan, session: usize) -> impl Iterator<Item = &Payload> {
    plan.steps.iter().filter(move |step| step.session == session).filter_map(|step| match &step.act {
        Act::Send { payload, .. } => Some(payload),
        _ => None,
    })
}

fn is_constant(plan: &Plan, session: usize) -> bool {
    payloads(plan, session).all(|payload| payload.variables().next().is_none())
}

/// Payloads written to a session, with their steps.
fn written(transcript: &Transcript, session: usize) -> impl Iterator<Item = (usize, &Payload)> {
    transcript.of(session).filter_map(|event| match &event.kind {
        EventKind::Sent { step, payload } => Some((*step, payload)),
        _ => None,
    })
}

/// True if a session was sent something other than planned, which depends on the moment of writing.
fn is_sealed(transcript: &Transcript, session: usize) -> bool {
    let has_clock = transcript.of(session).any(|event| matches!(event.kind, EventKind::Clock { .. }));
    let differs = |(step, payload): (usize, &Payload)| {
        let planned = transcript.plan.steps.get(step).map(|step| &step.act);
        let Some(Act::Send { payload: planned, .. }) = planned else { return false };
        let vars = crate::data::payload::Vars::new();
        // Values of variables differ each time anyway.
        planned.variables().next().is_none()
            && payload != planned
            && (payload.len(&vars) != planned.len(&vars) || payload.expand(&vars) != planned.expand(&vars))
    };
    has_clock && !transcript.plan.recorded && written(transcript, session).any(differs)
}

/// Approximate size of a block of repeated text.
const BLOCK_BYTES: usize = 64 << 10;

/// Streams the input of a session, so that a recipe of 10 MiB is never held in memory.
fn write_payloads<'p>(payloads: impl Iterator<Item = &'p Payload>, to: File) -> std::io::Result<()> {
    let mut to = BufWriter::new(to);
    for payload in payloads {
        for segment in &payload.0 {
            match segment {
                Segment::Repeat { unit, times } => {
                    let units = (BLOCK_BYTES / unit.len().max(1)).max(1);
                    let block = unit.repeat(units);
                    for _ in 0..times / units as u64 {
                        to.write_all(block.as_bytes())?;
                    }
                    to.write_all(unit.repeat((times % units as u64) as usize).as_bytes())?;
                }
                other => {
                    let bytes = Payload(vec![other.clone()])
                        .expand(&crate::data::payload::Vars::new())
                        .map_err(std::io::Error::other)?;
                    to.write_all(&bytes)?;
                }
            }
        }
    }
    to.flush()
}

/// True if the peer shows the finding when the session's input comes at once and nothing else happens.
fn shows_at_once(lab: &Lab<'_>, failure: &Failure, session: usize) -> bool {
    let mut plan = Plan::clone(&failure.transcript.plan);
    for step in &mut plan.steps {
        if let Act::Send { await_frames, .. } = &mut step.act {
            *await_frames = 0;
        }
    }
    // Steps of other sessions are dropped, but not the sessions, so that indices stay valid.
    plan.steps.retain(|step| step.session == session);
    let Ok(transcript) = lab.execute(&failure.check, &plan) else { return false };
    boundary::judge(lab.peer.boundary, &transcript)
        .findings
        .iter()
        .any(|finding| finding.key() == failure.finding.key())
}

//! `peerproof fuzz`: endless generated conversations.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::peer_args::PeerArgs;
use super::run_args::{RunArgs, duration};
use super::{CommandResult, Context, Exit, Stop};
use crate::progress::Progress;
use peerproof::table;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::run::fuzz::{self, Corpus, FuzzSettings, FuzzSummary, NewFinding, Status};
use peerproof_engine::run::reproducer;
use peerproof_engine::run::runner::{self, Options, Surroundings};

/// Sends generated conversations to a peer (valid, nearly valid and hostile) and keeps those that break a clause.
///
/// Each conversation gets a new process. One finding of each kind is shrunk and written as a reproducer. Without a
/// command and a configuration it fuzzes the built-in reference peers of the boundary, one after the other.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 no new finding, 8 a new finding, 2 usage or configuration,
70 harness fault, 130 interrupted.")]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Time for fuzzing each peer.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    time: Duration,
    /// Largest number of conversations with each peer [default: as many as the time allows].
    #[arg(long, value_name = "N")]
    conversations: Option<u64>,
    /// Time for shrinking each finding.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    shrink_time: Duration,
    /// Folder of conversations with known findings; new ones are added.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Folder for reproducers [default: peerproof-out].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the command.
///
/// # Errors
/// Fails for wrong usage or configuration, an unusable corpus, or a peer that cannot be started.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let options = args.run.options(context)?;
    let peers = args.peer.peer_or_references(args.boundary.as_deref(), context)?;
    let corpus = match &args.corpus {
        Some(folder) => Corpus::load(folder)?,
        None => Corpus::default(),
    };
    context.catch_interrupts();
    let scratch = super::check::scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let is_alone = peers.len() == 1;
    let mut kept = 0;
    for peer in peers {
        if !is_alone {
            context.printer.out(&format!("{}\n", peer.name));
        }
        kept += one(peer, args, &options, &corpus, around, context)?;
        if context.interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
    }
    Ok(if kept == 0 { Exit::Good } else { Exit::FoundNew })
}

/// Fuzzes one peer; returns the number of new findings.
fn one(
    mut peer: Peer,
    args: &Args,
    options: &Options,
    corpus: &Corpus,
    around: Surroundings<'_>,
    context: &Context,
) -> Result<usize, Stop> {
    runner::prepare(&mut peer, options, around).map_err(|error| error.of(&peer.name))?;
    let lab = runner::lab(&peer, options, around);
    let settings = FuzzSettings {
        time: args.time,
        conversations_max: args.conversations,
        rng_seed: options.rng_seed,
        jobs: options.jobs,
        shrink: args.shrink_time,
        played: Some(table::played(peer.boundary)),
    };
    let progress = Progress::new(0, &context.printer);
    let stop = || context.interrupted.load(Ordering::Relaxed);
    let summary = fuzz::run(&lab, corpus, &settings, &stop, &|status| progress.say(line(status)));
    progress.clear();
    context.printer.out(&format!("rng seed {}: {}\n", options.rng_seed, line(&summary.status)));
    if !stop() && summary.status.conversations > 0 && summary.given_up.0 == summary.status.conversations {
        let reason = summary.given_up.1.unwrap_or_default();
        return Err(Stop::harness(format!("no conversation could be carried out: {reason}")));
    }
    keep(&summary, args, context, &lab)
}

/// Prints and stores the findings; returns the number of new ones.
fn keep(summary: &FuzzSummary, args: &Args, context: &Context, lab: &Lab<'_>) -> Result<usize, Stop> {
    for figure in &summary.figures {
        context.printer.out(&format!("{}: {}\n", figure.name, figure.text));
    }
    if !summary.known.is_empty() {
        let known: Vec<String> =
            summary.known.iter().map(|(clause, reason)| format!("{clause} ({reason})")).collect();
        context.printer.out(&format!("known: {}\n", known.join(", ")));
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("peerproof-out"));
    let peer_args = peer_args(args, context);
    for found in &summary.found {
        let failure = &found.failure;
        context.printer.out(&story(found, context.interrupted.load(Ordering::Relaxed)));
        let folder = reproducer::folder_name(&failure.check, None);
        reproducer::write(&out, &folder, failure, lab, &peer_args, found.steady).map_err(Stop::harness)?;
        context.printer.out(&format!("  reproducer: {}\n", out.join(folder).display()));
        // An unsteady finding in the corpus would make later runs depend on luck.
        if let Some(corpus) = args.corpus.as_ref().filter(|_| found.steady) {
            Corpus::add(corpus, &failure.finding, &failure.transcript.plan)?;
        }
    }
    Ok(summary.found.len())
}

/// Arguments that select the peer, for the command that repeats a finding.
fn peer_args(args: &Args, context: &Context) -> Vec<String> {
    let mut peer_args = Vec::new();
    if let Some(path) = args.peer.file(context) {
        let path = path.canonicalize().unwrap_or(path);
        peer_args.extend(["--config".to_owned(), path.to_string_lossy().into_owned()]);
    }
    peer_args.extend(args.peer.env.iter().flat_map(|variable| ["--env".to_owned(), variable.clone()]));
    if !args.peer.command.is_empty() {
        peer_args.push("--".to_owned());
        peer_args.extend(args.peer.command.iter().cloned());
    }
    peer_args
}

/// Maximum line length in characters, and number of lines of a conversation on a console.
const CHARS_MAX: usize = 160;
const LINES_MAX: usize = 20;

fn story(found: &NewFinding, interrupted: bool) -> String {
    let finding = &found.failure.finding;
    let sure = match (found.steady, interrupted) {
        (true, _) => "",
        (false, true) => ", not repeated: interrupted",
        (false, false) => ", not in every repetition",
    };
    let mut text =
        format!("\n{} ({}), conversation {}{sure}\n", finding.clause, finding.reason, found.conversation);
    for line in reproducer::conversation(&found.failure.transcript, CHARS_MAX, LINES_MAX) {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "  expected  {}\n  got       {}", finding.expected, finding.got);
    text
}

fn line(status: &Status) -> String {
    let seconds = status.elapsed.as_secs_f64().max(0.001);
    let Status { conversations, messages, found, .. } = status;
    format!(
        "{conversations} conversations ({:.0}/s), {messages} messages ({:.0}/s), {found} new findings",
        *conversations as f64 / seconds,
        *messages as f64 / seconds,
    )
}

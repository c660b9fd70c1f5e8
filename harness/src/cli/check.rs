//! `peerproof check`: runs the checks against a peer and says which clauses hold.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::peer_args::PeerArgs;
use super::run_args::{Format, OutputArgs, RunArgs};
use super::select::{self, Filter, Shard};
use super::{Context, Done, Exit, Stop};
use crate::check::Check;
use crate::fixture::ActorExe;
use crate::peer::Peer;
use crate::report::console::{self, Beside};
use crate::report::printer::Printer;
use crate::report::progress::Progress;
use crate::results::{self, Run, RunHeader};
use crate::runner::{self, Options, Outcome, Surroundings};
use crate::verdict::{CheckResult, Verdict};

mod sink;

use sink::Sink;

/// Checks a peer against the contract of a boundary.
///
/// Without a command and a configuration the built-in reference peers are checked, which shows that peerproof works
/// here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  peerproof check                                              the built-in reference peers
  peerproof check toolhost -- ./my_toolhost --serve plugin.so  a peer
  peerproof check                                              the peer of ./peerproof.toml
  peerproof check -k 'toolhost/serve/json/*' -k TH-LEASE-03    some checks

Exit status: 0 no MUST is broken, 1 a clause is broken, 2 usage or configuration, 3 stale expectation,
4 nothing was decided, 5 incomplete, 6 flaky only, 70 harness fault, 130 interrupted.")]
pub struct Args {
    /// The boundary, such as toolhost.
    boundary: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Only checks that match: a glob on ids of checks or clauses, a folder of checks, a check's name. May be repeated.
    #[arg(long, short = 'k', value_name = "PATTERN")]
    filter: Vec<String>,
    /// Only one part of the checks, for runs spread over machines: hash:k/n.
    #[arg(long, value_name = "hash:K/N")]
    shard: Option<Shard>,
    /// A broken SHOULD decides too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A peer with the checks that are to run against it.
struct Part {
    peer: Peer,
    checks: Vec<&'static Check>,
}

/// Carries out the command.
///
/// # Errors
/// Usage, configuration, a peer that cannot be started, or a fault of this machine.
pub fn run(args: &Args, context: &Context) -> Done {
    let options = args.run.options(context)?;
    let form = args.output.form(context)?;
    let reports = args.output.reports()?;
    let peers = args.peer.peers_or_references(args.boundary.as_deref(), context)?;
    let parts = parts(peers, &args.filter, args.shard)?;
    let printer = match form {
        Format::Pretty => context.printer,
        Format::Plain | Format::Ndjson => context.printer.as_plain(),
    };
    context.catch_interrupts();
    let scratch = scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };

    let folder = args.output.folder(context);
    let results_path = reports.results.clone();
    let named = results_path.is_some();
    let path = results_path.unwrap_or_else(|| folder.join("results.ndjson"));
    let sink = Mutex::new(Sink::open(path, named, form, &printer)?);

    let mut runs = Vec::new();
    let mut canaries: BTreeSet<&str> = BTreeSet::new();
    for part in parts {
        let began = Instant::now();
        canaries.extend(
            part.checks.iter().filter(|check| runner::is_first_canary(check)).map(|check| check.id.as_str()),
        );
        let run = one(part, &options, around, &sink, args, &printer)?;
        if form != Format::Ndjson {
            let beside = Beside { elapsed: Some(began.elapsed()), folder: None, strict: args.strict };
            printer.out(&console::render(&run, &beside, &printer));
        }
        runs.push(run);
        if context.interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    let whole = lock(&sink).problem().is_none();
    Ok(exit(&runs, args.strict, whole, &canaries, context))
}

/// Splits peers and selection; refuses what selects nothing.
fn parts(peers: Vec<Peer>, filter: &[String], shard: Option<Shard>) -> Result<Vec<Part>, Stop> {
    let filter = Filter::new(filter)?;
    let mut parts: Vec<Part> = peers
        .into_iter()
        .map(|peer| Part { checks: select::of_side(peer.boundary, peer.facts.side), peer })
        .collect();
    let all: Vec<&Check> = parts.iter().flat_map(|part| part.checks.iter().copied()).collect();
    filter.refuse_useless(&all)?;
    for part in &mut parts {
        part.checks.retain(|check| filter.takes(check) && shard.is_none_or(|shard| shard.takes(&check.id)));
    }
    parts.retain(|part| !part.checks.is_empty());
    if parts.is_empty() {
        return Err(Stop::usage(match shard {
            Some(shard) => format!("no check falls into the shard {shard}; use fewer shards"),
            None => "there is no check to run".to_owned(),
        }));
    }
    Ok(parts)
}

/// Runs the checks of one peer.
fn one(
    part: Part,
    options: &Options,
    around: Surroundings<'_>,
    sink: &Mutex<Sink>,
    args: &Args,
    printer: &Printer,
) -> Result<Run, Stop> {
    let Part { mut peer, checks } = part;
    let progress = Progress::new(checks.len(), printer);
    progress.say(format!("{}: looking for its tools", peer.name));
    let prepared = runner::prepare(&mut peer, options, around);
    if let Err(error) = prepared {
        progress.clear();
        return Err(Stop::usage(format!("{}: {error}", peer.name)));
    }
    let header = header(&peer, &checks, options, args);
    lock(sink).begin(&header);
    let outcomes: Mutex<Vec<Outcome>> = Mutex::default();
    runner::run(&peer, &checks, options, around, &|outcome| {
        let mut outcomes = lock(&outcomes);
        lock(sink).check(&outcome.result);
        outcomes.push(outcome);
        let failed = outcomes.iter().filter(|outcome| outcome.result.verdict.is_failure()).count();
        let id = outcomes.last().map_or("", |outcome| outcome.result.id.as_str());
        progress.step(if failed == 0 { id.to_owned() } else { format!("{failed} failed  {id}") });
    });
    progress.clear();
    let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(error) = never_started(&outcomes) {
        return Err(Stop::usage(format!("{}: {error}", peer.name)));
    }
    // In the order of the boundary, however they ended.
    let place = |id: &str| checks.iter().position(|check| check.id == id);
    outcomes.sort_by_key(|outcome| place(&outcome.result.id));
    let results: Vec<CheckResult> = outcomes.into_iter().map(|outcome| outcome.result).collect();
    lock(sink).end(results::exit_code(&results, args.strict));
    Ok(Run { header, checks: results, footer: None })
}

/// Where not one check could start the peer: why.
fn never_started(outcomes: &[Outcome]) -> Option<String> {
    let mut reason = None;
    for outcome in outcomes {
        match &outcome.result.verdict {
            Verdict::Untestable(detail) if detail.starts_with("not_started: ") => {
                reason = detail.strip_prefix("not_started: ");
            }
            Verdict::Untestable(_) | Verdict::NotClaimed(_) | Verdict::NotRun(_) => {}
            _ => return None,
        }
    }
    reason.map(str::to_owned)
}

fn header(peer: &Peer, checks: &[&Check], options: &Options, args: &Args) -> RunHeader {
    let mut config = crate::config::describe(peer);
    results::redact(&mut config);
    RunHeader {
        peerproof: env!("CARGO_PKG_VERSION").to_owned(),
        boundary: peer.boundary.name().to_owned(),
        side: peer.facts.side,
        peer: peer.name.clone(),
        planned: checks.iter().map(|check| check.id.clone()).collect(),
        clauses_sha256: results::clauses_sha256(peer.boundary),
        rng_seed: options.rng_seed,
        timeout_scale: options.timeout_scale,
        shard: args.shard.map(|shard| shard.to_string()),
        selection: serde_json::json!({ "filter": args.filter, "slow": options.slow }),
        config,
        started: jiff::Timestamp::now().to_string(),
    }
}

/// What all runs together come to.
fn exit(runs: &[Run], strict: bool, whole: bool, canaries: &BTreeSet<&str>, context: &Context) -> Exit {
    if context.interrupted.load(Ordering::Relaxed) {
        return Exit::Interrupted;
    }
    let all: Vec<CheckResult> = runs.iter().flat_map(|run| run.checks.iter().cloned()).collect();
    let exit = Exit::from_code(results::exit_code(&all, strict));
    let only_canaries = exit == Exit::Good
        && all.iter().any(|check| !canaries.contains(check.id.as_str()))
        && all.iter().all(|check| !check.verdict.is_good() || canaries.contains(check.id.as_str()));
    match exit {
        // That a line comes back says nothing about the contract yet.
        Exit::Good if only_canaries => Exit::Undecided,
        Exit::Good if !whole => Exit::Incomplete,
        other => other,
    }
}

fn scratch() -> Result<tempfile::TempDir, Stop> {
    tempfile::Builder::new().prefix("peerproof-").tempdir().map_err(|error| {
        Stop::harness(format!("cannot make a temporary folder: {error}; set TMPDIR to a place with room"))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

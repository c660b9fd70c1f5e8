//! `peerproof matrix`: comparison of several peers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;

use super::peer_args::reference_peer;
use super::run_args::{RunArgs, duration};
use super::{CommandResult, Context, Exit, Stop, boundary_named, check};
use crate::progress::Progress;
use peerproof::report::{matrix as report, render};
use peerproof::table;
use peerproof_engine::contract::boundary::checks_of_side;
use peerproof_engine::data::blame::{HarnessFault, Misconfigured};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::filter::Filter;
use peerproof_engine::drive::config::Config;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::parallel;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::run::expectation::Expectations;
use peerproof_engine::run::matrix::differences::{Difference, Sort};
use peerproof_engine::run::matrix::stage::MatrixStage;
use peerproof_engine::run::matrix::{Matrix, confirm, differences};
use peerproof_engine::run::results::{self, ResultsWriter, StoredRun};
use peerproof_engine::run::runner::{self, Options, Surroundings};
use peerproof_engine::run::verdict::CheckResult;

/// Checks many peers and shows the results side by side, or compares their answers to the same conversations.
///
/// Writes matrix.json, matrix.md and results.ndjson to the output folder. With --differential it writes
/// differences.json, differences.md and the shortest conversation for each difference. A difference counts only if it
/// shows up three times in a row.
#[derive(Debug, clap::Args)]
#[command(after_help = "The list of peers. Paths in it are relative to its folder:
  [[peer]]
  config = \"mine.toml\"              # the configuration of a peer
  expect = \"mine-expected.toml\"     # its known failures, if any
  requirements = \"spec\"             # its set of clauses, if another than in its configuration
  [[peer]]
  name = \"another\"
  boundary = \"toolhost\"             # or without a configuration: its boundary and commands
  serve = [\"./toolhost\", \"--serve\"]
  [[peer]]
  boundary = \"toolhost\"
  reference = []                    # the built-in reference, with arguments such as \"--choice\", \"key=value\"

Exit status: 0 no peer breaks a MUST, 1 a clause is broken, 2 usage or configuration,
3 a known failure now passes, 4 no check reached a verdict, 6 flaky only, 70 harness fault, 130 interrupted.")]
pub(crate) struct Args {
    /// TOML file with the list of peers.
    peers: PathBuf,
    /// Send the same generated conversations to all peers and report where their answers differ, instead of checking.
    #[arg(long)]
    differential: bool,
    /// Number of conversations with --differential.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "differential")]
    conversations: u64,
    /// Time for shrinking the conversations with differences, with --differential; 0 turns shrinking off.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration, requires = "differential")]
    shrink_time: Duration,
    /// Show only checks in which peers differ. The files contain all checks.
    #[arg(long, conflicts_with = "differential")]
    differing: bool,
    /// Run only matching checks: a glob on check or clause ids, a folder of checks, or the name of a check. May be
    /// repeated.
    #[arg(long, short = 'k', value_name = "PATTERN", conflicts_with = "differential")]
    filter: Vec<String>,
    /// Count a broken SHOULD as a failure.
    #[arg(long, conflicts_with = "differential")]
    strict: bool,
    /// Output folder [default: peerproof-out].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    #[serde(default)]
    peer: Vec<Entry>,
}

/// Entry `[[peer]]`; unknown keys are commands.
#[derive(Deserialize)]
struct Entry {
    config: Option<PathBuf>,
    expect: Option<PathBuf>,
    name: Option<String>,
    boundary: Option<String>,
    side: Option<Side>,
    requirements: Option<String>,
    reference: Option<Vec<String>>,
    #[serde(flatten)]
    commands: BTreeMap<String, Vec<String>>,
}

struct Listed {
    peer: Peer,
    expectations: Option<(PathBuf, Expectations)>,
}

/// Runs the command.
///
/// # Errors
/// Fails for wrong usage, an invalid list or configuration, peers that cannot be compared or started, or files that
/// cannot be written.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let options = args.run.options(context)?;
    let mut listed = load(&args.peers, context)?;
    let checks = chosen(args, &listed)?;
    context.catch_interrupts();
    let scratch = check::scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let prepared = parallel::each(options.jobs, &mut listed, |one| {
        runner::prepare(&mut one.peer, &options, around).map_err(|error| error.of(&one.peer.name))
    });
    prepared.into_iter().try_for_each(|probes| probes.map(drop))?;
    let named = args.out.clone().or_else(|| context.setting("OUT").map(PathBuf::from));
    let folder = named.unwrap_or_else(|| PathBuf::from("peerproof-out"));
    let exit = if args.differential {
        compare(args, &listed, &options, around, &folder, context)?
    } else {
        side_by_side(args, &listed, &checks, &options, around, &folder, context)?
    };
    Ok(if context.interrupted.load(Ordering::Relaxed) { Exit::Interrupted } else { exit })
}

/// Selected checks.
fn chosen(args: &Args, listed: &[Listed]) -> Result<Vec<&'static Check>, Stop> {
    let Some(first) = listed.first() else { return Ok(Vec::new()) };
    let filter = Filter::new(&args.filter)?;
    let mut checks = checks_of_side(first.peer.boundary, first.peer.facts.side);
    filter.refuse_useless(&checks)?;
    checks.retain(|check| filter.takes(check));
    Ok(checks)
}

/// Runs the checks against each peer and shows the results.
fn side_by_side(
    args: &Args,
    listed: &[Listed],
    checks: &[&Check],
    options: &Options,
    around: Surroundings<'_>,
    folder: &Path,
    context: &Context,
) -> Result<Exit, Stop> {
    let progress = Progress::new(checks.len() * listed.len(), &context.printer);
    let writer = ResultsWriter::create(&folder.join("results.ndjson"))?;
    let writer = Mutex::new(writer);
    // Divide the jobs: first among peers, the rest among the checks of each.
    let beside = options.jobs.clamp(1, listed.len());
    let options = &Options { jobs: options.jobs / beside, quiet: Some(Arc::default()), ..options.clone() };
    let runs = parallel::each(beside, listed, |one| {
        let header = check::header(&one.peer, checks, options, &args.filter, None, None);
        let results: Mutex<Vec<CheckResult>> = Mutex::default();
        runner::run(&one.peer, checks, options, around, &|mut outcome| {
            if let Some((_, expectations)) = &one.expectations {
                expectations.apply(&mut outcome.result);
            }
            progress.step(format!("{}: {}", one.peer.name, outcome.result.id));
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome.result);
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_by_key(|result| checks.iter().position(|check| check.id == result.id));
        // Write each peer's results together, so that runs follow one another in the file.
        let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let run = StoredRun::new(header, results);
        writer.run(&run, results::exit_code(&run.checks, args.strict))?;
        Ok(run)
    });
    progress.clear();
    let runs = runs.into_iter().collect::<Result<Vec<StoredRun>, HarnessFault>>()?;
    let mut stale: Vec<String> = Vec::new();
    for (one, run) in listed.iter().zip(&runs) {
        if let Some((path, expectations)) = &one.expectations {
            let known = one.peer.boundary.checks().iter().map(|check| check.id.as_str());
            let found = expectations.stale(&run.checks, known, jiff::Zoned::now().date());
            stale.extend(found.iter().map(|stale| format!("{}: {stale}", path.display())));
        }
    }
    let matrix = Matrix::of(&runs);
    context.printer.out(&report::render(&matrix, args.differing, &context.printer));
    write_json(&folder.join("matrix.json"), &matrix)?;
    render::write(&folder.join("matrix.md"), &report::markdown(&matrix))?;
    stale.iter().for_each(|sentence| context.printer.error(sentence));
    Ok(worst(&runs, args.strict, !stale.is_empty()))
}

/// Gravest exit status of the runs, by the order within one run.
fn worst(runs: &[StoredRun], strict: bool, stale: bool) -> Exit {
    let exits: Vec<Exit> =
        runs.iter().map(|run| Exit::from_code(results::exit_code(&run.checks, strict))).collect();
    let grave = [Exit::Broken, Exit::HarnessFault].into_iter().find(|exit| exits.contains(exit));
    let light = || [Exit::Flaky, Exit::Undecided].into_iter().find(|exit| exits.contains(exit));
    match grave {
        Some(exit) => exit,
        None if stale => Exit::StaleExpectation,
        None => light().unwrap_or(Exit::Good),
    }
}

/// Sends equal conversations to all peers and shows where their answers differ.
fn compare(
    args: &Args,
    listed: &[Listed],
    options: &Options,
    around: Surroundings<'_>,
    folder: &Path,
    context: &Context,
) -> Result<Exit, Stop> {
    let peers: Vec<Peer> = listed.iter().map(|one| one.peer.clone()).collect();
    if differences::common(&peers).commands.is_empty() {
        return Err(Stop::usage(format!(
            "{}: the peers have no command in common, so no conversation goes to all of them",
            args.peers.display()
        )));
    }
    let total = usize::try_from(args.conversations).unwrap_or(usize::MAX).saturating_mul(peers.len());
    let progress = Progress::new(total, &context.printer);
    let stage = MatrixStage::new(&peers, options, around);
    let mut found = stage.compare(args.conversations, &|what| progress.step(what));
    let transcripts = confirm::confirm(&mut found, &stage, args.shrink_time, &|what| progress.say(what));
    progress.clear();
    confirm::keep(&mut found, &transcripts, folder)?;
    if let (0, Some(error), false) =
        (found.conversations, &found.given_up, context.interrupted.load(Ordering::Relaxed))
    {
        return Err(Stop::harness(format!("no conversation could be carried out: {error}")));
    }
    if let Some(error) = &found.given_up {
        context.printer.note(&format!("stopped: {error}"));
    }
    context.printer.out(&report::differences(&found, &context.printer));
    write_json(&folder.join("differences.json"), &found)?;
    render::write(&folder.join("differences.md"), &report::differences_markdown(&found))?;
    let is_fault = |difference: &Difference| difference.sort == Sort::Fault;
    Ok(match (found.any_fault(), found.exchanges) {
        (true, _) => Exit::Broken,
        (false, 0) => Exit::Undecided,
        (false, _) if found.unsteady.iter().any(is_fault) => Exit::Flaky,
        (false, _) => Exit::Good,
    })
}

fn write_json(path: &Path, what: &impl serde::Serialize) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(what)
        .map_err(|error| Stop::harness(format!("{} cannot be written: {error}", path.display())))?;
    Ok(render::write(path, &(text + "\n"))?)
}

/// Reads the list of peers.
fn load(path: &Path, context: &Context) -> Result<Vec<Listed>, Stop> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("cannot read the list of peers {shown}: {error}")))?;
    let form: FileForm = toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| text.bytes().take(span.start).filter(|b| *b == b'\n').count() + 1);
        let place = line.map(|line| format!(" line {line}")).unwrap_or_default();
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        Stop::usage(format!("{shown}{place}: {message}"))
    })?;
    if form.peer.is_empty() {
        return Err(Stop::usage(format!("{shown} lists no peer; write a [[peer]] for each")));
    }
    let full = std::path::absolute(path)
        .map_err(|error| Stop::usage(format!("cannot find the folder of {shown}: {error}")))?;
    let folder = full.parent().unwrap_or(Path::new("/")).to_owned();
    let mut listed: Vec<Listed> = Vec::new();
    for (at, entry) in form.peer.iter().enumerate() {
        let one = entry.listed(&folder, context).map_err(|stop| Stop {
            message: format!("{shown}, peer {}: {}", at + 1, stop.message),
            ..stop
        })?;
        listed.push(one);
    }
    for at in 1..listed.len() {
        let same = listed[..at].iter().filter(|one| one.peer.name == listed[at].peer.name).count();
        if same > 0 {
            let name = format!("{} ({})", listed[at].peer.name, same + 1);
            listed[at].peer.name = name;
        }
    }
    let kind = |one: &Listed| (one.peer.boundary.name(), one.peer.facts.side);
    let phrase = |one: &Listed| {
        format!("{} is a {} {}", one.peer.name, one.peer.boundary.name(), one.peer.facts.side.word())
    };
    match listed.iter().find(|one| kind(one) != kind(&listed[0])) {
        Some(other) => Err(Stop::usage(format!(
            "{shown}: {} and {}; all peers must have the same boundary and side",
            phrase(&listed[0]),
            phrase(other)
        ))),
        None => Ok(listed),
    }
}

impl Entry {
    fn listed(&self, folder: &Path, context: &Context) -> Result<Listed, Stop> {
        let mut peer = match (&self.config, &self.reference) {
            (Some(config), None) => self.configured(&folder.join(config), context)?,
            (None, Some(extra)) => self.reference(extra, context)?,
            (None, None) => self.in_place(folder, context)?,
            (Some(_), Some(_)) => {
                return Err(Stop::usage("`config` and `reference` name two peers; remove one of them"));
            }
        };
        if let Some(name) = &self.name {
            peer.name.clone_from(name);
        }
        if let Some(set) = &self.requirements {
            let sets = peer.boundary.description().requirements;
            if !sets.contains(&set.as_str()) {
                let sentence = format!(
                    "requirements = {set:?}: {} has the sets {}",
                    peer.boundary.name(),
                    sets.join(", ")
                );
                return Err(Stop::usage(sentence));
            }
            peer.facts.requirements.clone_from(set);
        }
        let expectations = self.expect.as_ref().map(|file| {
            let path = folder.join(file);
            let cannot = |error: Misconfigured| error.of(path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| cannot(error.to_string().into()))?;
            let expectations = Expectations::parse(&text).map_err(cannot)?;
            Ok::<_, Stop>((path, expectations))
        });
        Ok(Listed { peer, expectations: expectations.transpose()? })
    }

    fn configured(&self, path: &Path, context: &Context) -> Result<Peer, Stop> {
        if self.boundary.is_some() || self.side.is_some() || !self.commands.is_empty() {
            let sentence = "with `config` only `name`, `requirements` and `expect` are allowed; move the \
                            other keys into that file";
            return Err(Stop::usage(sentence));
        }
        Ok(Config::load(path, &table::all())?.peer(&context.variables)?)
    }

    fn named_boundary(&self) -> Result<&'static dyn peerproof_engine::contract::boundary::Boundary, Stop> {
        match &self.boundary {
            Some(name) => boundary_named(name),
            None => Err(Stop::usage("it has neither `config` nor `boundary`; add one of them")),
        }
    }

    fn reference(&self, extra: &[String], context: &Context) -> Result<Peer, Stop> {
        if !self.commands.is_empty() {
            return Err(Stop::usage("`reference` and a command name two peers; remove one of them"));
        }
        let boundary = self.named_boundary()?;
        let side = self.side.unwrap_or(Side::Provider);
        let mut references = table::played(boundary).references().into_iter();
        let Some(reference) = references.find(|reference| reference.side == side) else {
            let sentence = format!("{} has no reference {}", boundary.name(), side.word());
            return Err(Stop::usage(sentence));
        };
        let mut peer = reference_peer(boundary, &reference, extra, context)?;
        if !extra.is_empty() {
            peer.name = format!("{} {}", peer.name, extra.join(" "));
        }
        Ok(peer)
    }

    fn in_place(&self, folder: &Path, context: &Context) -> Result<Peer, Stop> {
        let mut config = Config::new(self.named_boundary()?);
        config.folder = Some(folder.to_owned());
        config.side = self.side;
        for (name, argv) in &self.commands {
            config.set_command(name, argv.clone())?;
        }
        Ok(config.peer(&context.variables)?)
    }
}

//! `peerproof check`: runs the checks against a peer and reports which clauses hold.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::peer_args::{PeerArgs, reference_inside};
use super::run_args::{self, DetailArgs, Format, OutputArgs, RunArgs};
use super::{CommandResult, Context, Exit, Stop, github};
use crate::progress::Progress;
use peerproof::report::console::{self, ReportContents};
use peerproof::report::first_contact::impression;
use peerproof::report::printer::Printer;
use peerproof::report::render;
use peerproof::report::screen::plural;
use peerproof::shard::Shard;
use peerproof::table;
use peerproof_engine::contract::boundary::checks_of_side;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::filter::Filter;
use peerproof_engine::data::rung::{Rung, Rungs};
use peerproof_engine::data::secrets;
use peerproof_engine::drive::config::DEFAULT_EXPECTATIONS;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::parallel;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::drive::scratch;
use peerproof_engine::run::causes::{Cause, causes, id_of};
use peerproof_engine::run::expectation::Expectations;
use peerproof_engine::run::reproducer::{self, Explain, Explained, explain_failures};
use peerproof_engine::run::results::{self, ResultsFile, RunHeader, StoredRun};
use peerproof_engine::run::runner::{self, CheckOutcome, Company, Options, Seat, Surroundings};
use peerproof_engine::run::verdict::{CheckResult, Verdict};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

mod sink;

use sink::{Entry, Sink};

/// Starts a peer, talks to it, and lists every rule of its contract that it breaks.
///
/// Without a command and a configuration it checks the built-in reference peers, to show that peerproof works on this
/// machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  peerproof check                                              the built-in reference peers
  peerproof check toolhost -- ./my_toolhost --serve plugin.so  a peer
  peerproof check                                              the peer of ./peerproof.toml
  peerproof check -k 'toolhost/serve/json/*' -k TH-LEASE-03    some checks

Exit status: 0 no MUST is broken, 1 a clause is broken, 2 usage or configuration, 3 a known failure now passes,
4 no check reached a verdict (for the peer or one of its commands), 5 incomplete, 6 flaky only, 70 harness fault,
130 interrupted.")]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Run only matching checks: a glob on check or clause ids, a folder of checks, or the name of a check. May be
    /// repeated.
    #[arg(long, short = 'k', value_name = "PATTERN")]
    filter: Vec<String>,
    /// Run only checks up to this rung: `ordinary` (a correct counterpart sends this), `malformed`, or `hostile`.
    #[arg(long, value_name = "RUNG")]
    rung: Option<Rung>,
    /// Send only what a correct counterpart sends; the same as `--rung ordinary`.
    #[arg(long, conflicts_with = "rung")]
    strict_client: bool,
    /// Stop after N causes of failures; the exit status is then 5.
    #[arg(long, value_name = "N")]
    max_causes: Option<NonZeroUsize>,
    /// Run only part K of N of the checks, to spread a run over several machines.
    #[arg(long, value_name = "hash:K/N")]
    shard: Option<Shard>,
    /// Count a broken SHOULD as a failure.
    #[arg(long)]
    strict: bool,
    /// List of known failures [default: peerproof-expected.toml next to the configuration, if it exists].
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Time for shrinking all failures, such as 10s; 0 turns shrinking off [default: a quarter of the time of the
    /// checks, 3s to 10s].
    #[arg(long, value_name = "TIME")]
    shrink_time: Option<String>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    detail: DetailArgs,
}

/// Peer with the checks to run against it.
struct Part {
    peer: Peer,
    /// Reference peer inside this process, if possible.
    inside: Option<Peer>,
    checks: Vec<&'static Check>,
}

impl Args {
    /// Most unusual rung of the checks to run.
    fn rung(&self) -> Option<Rung> {
        if self.strict_client { Some(Rung::Ordinary) } else { self.rung }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails for wrong usage or configuration, a peer that cannot be started, or a fault of this machine.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let options = args.run.options(context)?;
    let form = args.output.form(context)?;
    let reports = args.output.reports()?;
    let budget = run_args::time(args.shrink_time.as_deref(), "SHRINK_TIME", context)?;
    let config = args.peer.config(args.boundary.as_deref(), context)?;
    let (is_own, picked_up) = (config.is_none(), args.peer.picked_up(config.as_ref(), context));
    let peers = args.peer.peers_or_references(args.boundary.as_deref(), context)?;
    let known = KnownFailures::load(args, context)?;
    let mut parts = parts(peers, &args.filter, args.rung(), args.shard)?;
    for part in parts.iter_mut().filter(|_| is_own) {
        part.inside = reference_inside(&part.peer);
    }
    let printer = match form {
        Format::Pretty => context.printer,
        Format::Plain | Format::Ndjson => context.printer.as_plain(),
    };
    context.catch_interrupts();
    // A user's peers get the temporary folder that they would have without peerproof.
    let in_memory = is_own && context.variable("TMPDIR").is_none();
    let scratch = in_memory.then(scratch_in_memory).flatten().map_or_else(scratch, Ok)?;
    let actor_exe = ActorExe::new(context.exe()?);
    let folder = args.output.folder(context);
    // Reproducers in the folder belong to earlier runs.
    if let Err(error) = reproducer::move_away(&folder) {
        printer.note(&error.to_string());
    }
    let named = reports.results.is_some();
    let path = reports.results.unwrap_or_else(|| folder.join("results.ndjson"));
    let several = parts.len() > 1;
    let planned = parts.iter().flat_map(|part| &part.checks);
    let waiting = planned.clone().filter(|check| options.slow && check.slow).count();
    let progress = Progress::of_checks(planned.count(), waiting, &printer);
    let canaries: BTreeSet<&str> = parts
        .iter()
        .flat_map(|part| &part.checks)
        .filter(|check| check.first_canary)
        .map(|check| check.id.as_str())
        .collect();
    let work = Work {
        args,
        context,
        around: Surroundings {
            actor_exe: &actor_exe,
            scratch: scratch.path(),
            interrupted: &context.interrupted,
        },
        sink: Mutex::new(Sink::open(&path, named, form, &printer, progress.clone())?),
        progress: &progress,
        known: &known,
        folder: &folder,
        shrink_budget: budget,
        shrinking: Mutex::default(),
        found: Mutex::default(),
        shows: form != Format::Ndjson,
        picked_up,
        is_own,
        printer,
    };
    // Parts are independent: all run at once and share processors and memory. Starts of processes leave half of the
    // time of a processor.
    let turns = if is_own { options.jobs * OWN_TURNS } else { options.jobs };
    let (company, quiet) = (Company::new(parts.len(), turns), Arc::default());
    let began = Instant::now();
    let runs: Vec<Result<StoredRun, Stop>> =
        parallel::each(parts.len(), parts.into_iter().enumerate(), |(place, part)| {
            let beside = Options {
                quiet: Some(Arc::clone(&quiet)),
                seat: Some(company.seat(place)),
                ..options.clone()
            };
            work.part(place, part, if several { &beside } else { &options })
        });
    progress.clear();
    let runs = runs.into_iter().collect::<Result<Vec<StoredRun>, Stop>>()?;
    if several && work.shows {
        let checks: usize = runs.iter().map(|run| run.checks.len()).sum();
        let seconds = began.elapsed().as_secs_f64();
        printer.out(&format!("{} peers, {} in {seconds:.1} s\n", runs.len(), plural(checks, "check")));
    }
    let left = work.tell_left(&runs);
    if reports.github || !reports.rendered.is_empty() {
        let file = ResultsFile { runs: runs.clone(), incomplete: None };
        if reports.github {
            github::tell(&file, context);
        }
        if let Err(error) = render::render(file, &reports.rendered, &table::all(), &folder) {
            lock(&work.sink).report(error.into());
        }
    }
    let stale = known.stale(&runs);
    for sentence in &stale {
        printer.error(sentence);
    }
    let exit = match exit(&runs, args.strict, &canaries, context) {
        Exit::Good | Exit::Undecided | Exit::Flaky if !stale.is_empty() => Exit::StaleExpectation,
        Exit::Good if lock(&work.sink).problem().is_some() => Exit::Incomplete,
        Exit::Good | Exit::Broken | Exit::Undecided | Exit::Flaky if left > 0 => Exit::Incomplete,
        other => other,
    };
    if exit == Exit::Undecided {
        printer.note(UNDECIDED);
    }
    Ok(exit)
}

/// Explanation of exit status 4.
const UNDECIDED: &str =
    "exit status 4: no check reached a verdict about the peer or one of its commands; -v lists the reasons";

/// Checks of the reference peers that run at the same time, for each job.
const OWN_TURNS: usize = 2;
/// Maximum number of failures reported during the run.
const TOLD_MAX: usize = 20;
/// Default limits of the time for shrinking all failures of a run.
const SHRINK_BUDGET: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_secs(10);
/// Divisor of the checks' duration that gives the time for shrinking.
const SHRINK_SHARE: u32 = 4;

/// Time for shrinking after checks of this duration.
fn shrink_budget(checks: Duration) -> Duration {
    (checks / SHRINK_SHARE).clamp(*SHRINK_BUDGET.start(), *SHRINK_BUDGET.end())
}

/// Known failures.
#[derive(Default)]
struct KnownFailures {
    expectations: Option<(PathBuf, Expectations)>,
}

impl KnownFailures {
    /// Loads the file of `--expect`, or else the default one next to the configuration if it exists.
    fn load(args: &Args, context: &Context) -> Result<Self, Stop> {
        let named = args.expect.clone().or_else(|| context.setting("EXPECT").map(PathBuf::from));
        let beside = args.peer.file(context).map(|file| file.with_file_name(DEFAULT_EXPECTATIONS));
        let Some(path) = named.or_else(|| beside.filter(|file| file.exists())) else {
            return Ok(Self::default());
        };
        let shown = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Stop::usage(format!(
                "cannot read the expectations {shown}: {error}; `peerproof expect init` writes them"
            ))
        })?;
        let expectations = Expectations::parse(&text).map_err(|error| error.of(shown))?;
        Ok(Self { expectations: Some((path, expectations)) })
    }

    fn apply(&self, result: &mut CheckResult) {
        if let Some((_, expectations)) = &self.expectations {
            expectations.apply(result);
        }
    }

    /// Stale expectations, one sentence each.
    fn stale(&self, runs: &[StoredRun]) -> Vec<String> {
        let Some((path, expectations)) = &self.expectations else { return Vec::new() };
        let results: Vec<CheckResult> = runs.iter().flat_map(|run| run.checks.iter().cloned()).collect();
        let known = table::all().into_iter().flat_map(|b| b.checks()).map(|check| check.id.as_str());
        let stale = expectations.stale(&results, known, jiff::Zoned::now().date());
        stale.iter().map(|stale| format!("{}: {stale}", path.display())).collect()
    }
}

/// Assigns the selected checks to peers; refuses a selection without checks.
fn parts(
    peers: Vec<Peer>,
    filter: &[String],
    rung: Option<Rung>,
    shard: Option<Shard>,
) -> Result<Vec<Part>, Stop> {
    let filter = Filter::new(filter)?;
    let mut parts: Vec<Part> = peers
        .into_iter()
        .map(|peer| Part { checks: checks_of_side(peer.boundary, peer.facts.side), inside: None, peer })
        .collect();
    let all: Vec<&Check> = parts.iter().flat_map(|part| part.checks.iter().copied()).collect();
    filter.refuse_useless(&all)?;
    for part in &mut parts {
        let rungs = Rungs::new(part.peer.boundary.name(), part.peer.boundary.description().rungs);
        let is_near = |check: &Check| rung.is_none_or(|rung| rungs.of_check(&check.id) <= rung);
        part.checks.retain(|check| filter.takes(check) && is_near(check));
    }
    parts.retain(|part| !part.checks.is_empty());
    // A shard without checks for a peer still writes a header, so that merging can tell it from a missing shard.
    for part in &mut parts {
        part.checks.retain(|check| shard.is_none_or(|shard| shard.takes(&check.id)));
    }
    if parts.iter().all(|part| part.checks.is_empty()) {
        return Err(Stop::usage(match shard {
            Some(shard) => format!("the shard {shard} has no checks; use fewer shards"),
            None => "no check to run".to_owned(),
        }));
    }
    Ok(parts)
}

/// State shared by all parts of a run.
struct Work<'a> {
    args: &'a Args,
    context: &'a Context,
    around: Surroundings<'a>,
    sink: Mutex<Sink>,
    progress: &'a Progress,
    known: &'a KnownFailures,
    folder: &'a Path,
    /// Time for shrinking, if given.
    shrink_budget: Option<Duration>,
    shrinking: Mutex<Shrinking>,
    /// Ids of the causes found so far.
    found: Mutex<BTreeSet<String>>,
    /// Set if reports go to the console.
    shows: bool,
    /// Note about a configuration found in the current folder.
    picked_up: Option<String>,
    /// Set if the peers are the reference peers.
    is_own: bool,
    printer: Printer,
}

/// Time spent on shrinking, and failures left unexplained.
#[derive(Default)]
struct Shrinking {
    took: Duration,
    /// Number of failures that an interrupt left without a reproducer.
    unexplained: usize,
}

/// Releases the other parts from waiting for this one when dropped, because a part may end before its checks do.
struct Leaving<'a>(Option<&'a Seat>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.0 {
            seat.is_done();
        }
    }
}

impl Work<'_> {
    /// Says what was not done. Returns the number of checks that `--max-causes` kept from running.
    fn tell_left(&self, runs: &[StoredRun]) -> usize {
        if self.context.interrupted.load(Ordering::Relaxed) {
            let left = match lock(&self.shrinking).unexplained {
                0 => String::new(),
                count => {
                    let failures = plural(count, "failure");
                    format!(", except for the reproducers of {failures}; `-k CHECK` makes them")
                }
            };
            self.printer.note(&format!("interrupted; the results so far are kept{left}"));
        }
        let is_left =
            |check: &&CheckResult| matches!(&check.verdict, Verdict::NotRun(why) if why == runner::ENOUGH);
        let left = runs.iter().flat_map(|run| &run.checks).filter(is_left).count();
        if left > 0 {
            self.printer.note(&format!("stopped by --max-causes; {} not run", plural(left, "check")));
        }
        left
    }

    /// Runs the checks of the peer at `place`, explains its failures and reports it.
    fn part(&self, place: usize, part: Part, options: &Options) -> Result<StoredRun, Stop> {
        let boundary = part.peer.boundary;
        let pace = Arc::clone(&part.peer.pace);
        let began = Instant::now();
        let _leaving = Leaving(options.seat.as_ref());
        let run = self.one(place, part, options).inspect_err(|_| self.tell(place, Entry::Gone))?;
        let beside = ReportContents {
            // With several peers in parallel, the time says little about one.
            elapsed: options.seat.is_none().then(|| began.elapsed()),
            folder: Some(self.folder.display().to_string()),
            configuration: self.picked_up.clone(),
            strict: self.args.strict,
            pace: pace.all(),
            impression: impression(&run, &table::all()),
            detail: self.args.detail.level(),
        };
        // A part that an interrupt left without any result shows only in the results file.
        let is_begun = place == 0 || run.checks.iter().any(|check| check.verdict != runner::interrupted());
        let shows = self.shows && !run.checks.is_empty() && is_begun;
        let report = shows.then(|| console::render(&run, Some(boundary), &beside, &self.printer));
        let exit_code = match self.context.interrupted.load(Ordering::Relaxed) {
            true => Exit::Interrupted.code(),
            false => results::exit_code(&run.checks, self.args.strict),
        };
        self.tell(place, Entry::End(run.causes.clone(), exit_code, report));
        Ok(run.ended(exit_code))
    }

    fn tell(&self, place: usize, entry: Entry) {
        lock(&self.sink).take(place, entry);
    }

    /// Runs the checks of one peer and explains its failures.
    fn one(&self, place: usize, part: Part, options: &Options) -> Result<StoredRun, Stop> {
        let Part { mut peer, inside, checks } = part;
        let (Args { filter, shard, .. }, rung) = (self.args, self.args.rung());
        let header = |peer: &Peer| header(peer, &checks, options, filter, rung, *shard);
        if checks.is_empty() {
            let header = header(&peer);
            self.tell(place, Entry::Begin(header.clone()));
            return Ok(StoredRun::new(header, Vec::new()));
        }
        let progress = self.progress;
        progress.say(format!("{}: probing its tools", peer.name));
        let prepared = runner::prepare_for(&checks, &mut peer, options, self.around);
        let silent = prepared.map_err(|error| error.of(&peer.name))?;
        if let Some(why) =
            peer.boundary.unavailable(&peer.facts).filter(|_| self.args.peer.is_each_revision())
        {
            self.progress.aside(|| self.printer.note(&format!("{}: {why}; no checks", peer.name)));
            let header = RunHeader { planned: Vec::new(), ..header(&peer) };
            self.tell(place, Entry::Begin(header.clone()));
            return Ok(StoredRun::new(header, Vec::new()));
        }
        let header = header(&peer);
        self.tell(place, Entry::Begin(header.clone()));
        let outcomes: Mutex<Vec<CheckOutcome>> = Mutex::default();
        let began = Instant::now();
        let inside = inside.map(|inside| Arc::new(Peer { facts: peer.facts.clone(), ..inside }));
        let with_inside = Options { inside, silent, ..options.clone() };
        runner::run(&peer, &checks, &with_inside, self.around, &|mut outcome| {
            self.known.apply(&mut outcome.result);
            let mut outcomes = lock(&outcomes);
            self.tell(place, Entry::Check(outcome.result.clone()));
            self.note_cause(&outcome.result, options);
            let id = &outcome.result.id;
            let is_slow = options.slow && checks.iter().any(|check| check.slow && check.id == *id);
            progress.check(id, outcome.result.verdict.is_failure(), is_slow);
            outcomes.push(outcome);
        });
        let took = began.elapsed();
        let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = never_started(&outcomes) {
            return Err(Stop::usage(format!("{}: {error}", peer.name)));
        }
        if outcomes.iter().any(|outcome| outcome.failure.is_some()) {
            self.explain(place, &peer, options, &mut outcomes, took);
        }
        // In the order of the boundary.
        let place_of = |id: &str| checks.iter().position(|check| check.id == id);
        outcomes.sort_by_key(|outcome| place_of(&outcome.result.id));
        let results: Vec<CheckResult> = outcomes.into_iter().map(|outcome| outcome.result).collect();
        Ok(StoredRun::new(header, results))
    }

    /// Reports a failed check whose cause is new, and stops the run when the maximum number of causes is reached.
    fn note_cause(&self, result: &CheckResult, options: &Options) {
        let Some(first) = result.findings.first().filter(|_| result.verdict.is_failure()) else { return };
        let mut found = lock(&self.found);
        let is_new = found.insert(id_of(&result.id, first));
        if is_new && found.len() <= TOLD_MAX && self.shows && !self.is_own {
            let word = result.verdict.word().to_uppercase();
            let line = format!("{word} {} {}: {}", first.clause, first.reason, result.id);
            self.progress.aside(|| self.printer.note(&line));
        }
        if self.args.max_causes.is_some_and(|most| found.len() >= most.get()) {
            options.enough.store(true, Ordering::Relaxed);
        }
    }

    /// Shrinks failures while the budget lasts and writes their reproducers. `took` is the duration of the checks.
    /// Nothing else runs meanwhile.
    fn explain(
        &self,
        place: usize,
        peer: &Peer,
        options: &Options,
        outcomes: &mut [CheckOutcome],
        took: Duration,
    ) {
        let quiet = options.quiet.as_ref();
        let _alone = quiet.map(|quiet| quiet.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        let mut shrinking = lock(&self.shrinking);
        let left = self.shrink_budget.unwrap_or(*SHRINK_BUDGET.end()).saturating_sub(shrinking.took);
        let budget = self.shrink_budget.map_or_else(|| shrink_budget(took).min(left), |_| left);
        let (began, progress) = (Instant::now(), self.progress);
        let lab = runner::lab(peer, options, self.around);
        let peer_args = self.args.peer.again(self.args.boundary.as_deref(), self.context);
        let results: Vec<CheckResult> = outcomes.iter().map(|outcome| outcome.result.clone()).collect();
        let causes = causes(&results);
        let numbers = numbers(&causes);
        let with = Explain {
            lab: &lab,
            played: Some(table::played(peer.boundary)),
            out_dir: Some(self.folder),
            numbers: &numbers,
            budget,
            jobs: options.jobs,
            peer_args: &peer_args,
            interrupted: &self.context.interrupted,
        };
        progress.say("shrinking failures");
        let each = |result: &CheckResult, explained: &Explained| {
            progress.say(format!("shrinking failures: {}", result.id));
            self.tell(place, Entry::Explain(explained.explanation.clone()));
            if let Some(problem) = &explained.problem {
                lock(&self.sink).note(problem.clone());
            }
        };
        // Each cause is shown once. A plain request cannot be shrunk.
        let shown: BTreeSet<String> = causes.into_iter().map(|cause| cause.check).collect();
        let is_shrunk = |outcome: &CheckOutcome| {
            outcome.result.first_canary.is_none() && shown.contains(&outcome.result.id)
        };
        let (shrunk, others): (Vec<&mut CheckOutcome>, Vec<&mut CheckOutcome>) =
            outcomes.iter_mut().partition(|outcome| is_shrunk(outcome));
        shrinking.unexplained += explain_failures(shrunk, &with, each);
        shrinking.unexplained += explain_failures(others, &Explain { budget: Duration::ZERO, ..with }, each);
        shrinking.took += began.elapsed();
    }
}

/// Number of the cause of each check: the first that it is shown for, or else the first with a finding of it.
fn numbers(causes: &[Cause]) -> BTreeMap<String, usize> {
    let shown = (1..).zip(causes).map(|(number, cause)| (&cause.check, number));
    let seen = (1..)
        .zip(causes)
        .flat_map(|(number, cause)| cause.checks.iter().map(move |share| (&share.check, number)));
    let mut numbers = BTreeMap::new();
    for (check, number) in shown.chain(seen) {
        numbers.entry(check.clone()).or_insert(number);
    }
    numbers
}

/// Reason, if no check could start the peer.
fn never_started(outcomes: &[CheckOutcome]) -> Option<String> {
    let mut reason = None;
    for outcome in outcomes {
        match &outcome.result.verdict {
            Verdict::Untestable(why) if why.code == Untestable::NOT_STARTED => reason = Some(&why.detail),
            Verdict::Untestable(_) | Verdict::NotClaimed(_) | Verdict::NotRun(_) => {}
            _ => return None,
        }
    }
    reason.cloned()
}

/// Header of a run of `checks`, or of the shard `shard` of it.
pub(super) fn header(
    peer: &Peer,
    checks: &[&Check],
    options: &Options,
    filter: &[String],
    rung: Option<Rung>,
    shard: Option<Shard>,
) -> RunHeader {
    let mut selection =
        serde_json::json!({ "filter": filter, "slow": options.slow, "very_slow": options.very_slow });
    if let Some(rung) = rung {
        selection[results::RUNG] = rung.word().into();
    }
    let mut config = peerproof_engine::drive::config::describe(peer);
    secrets::redact(&mut config);
    RunHeader {
        peerproof: env!("CARGO_PKG_VERSION").to_owned(),
        boundary: peer.boundary.name().to_owned(),
        side: peer.facts.side,
        peer: peer.name.clone(),
        planned: checks.iter().map(|check| check.id.clone()).collect(),
        clauses_sha256: results::clauses_sha256(peer.boundary),
        rng_seed: options.rng_seed,
        timeout_scale: options.timeout_scale,
        shard: shard.map(|shard| shard.to_string()),
        selection,
        config,
        started: jiff::Timestamp::now().to_string(),
    }
}

/// Exit status of all runs together.
fn exit(runs: &[StoredRun], strict: bool, canaries: &BTreeSet<&str>, context: &Context) -> Exit {
    if context.interrupted.load(Ordering::Relaxed) {
        return Exit::Interrupted;
    }
    let all: Vec<CheckResult> = runs.iter().flat_map(|run| run.checks.iter().cloned()).collect();
    let is_canary = |check: &CheckResult| canaries.contains(check.id.as_str());
    // An answered canary alone says nothing about the contract.
    let only_canaries = all.iter().any(|check| !is_canary(check))
        && all
            .iter()
            .all(|check| is_canary(check) || !(check.verdict.is_good() || check.verdict.is_failure()));
    match Exit::from_code(results::exit_code(&all, strict)) {
        Exit::Good if only_canaries => Exit::Undecided,
        other => other,
    }
}

/// Folder whose files Linux keeps in memory.
const MEMORY: &str = "/dev/shm";
/// Minimum free space there, bytes.
const MEMORY_BYTES_MIN: u64 = 1 << 30;

/// Makes a folder for temporary folders.
pub(super) fn scratch() -> Result<TempDir, Stop> {
    scratch::make(&std::env::temp_dir()).map_err(|error| {
        Stop::harness(format!(
            "cannot make a temporary folder: {error}; set TMPDIR to a folder with free space"
        ))
    })
}

/// Makes a folder in memory for temporary folders; `None` if this machine lacks one with enough space and execute
/// permission. A run creates and removes thousands of small files, and ext4 searches longer for a free inode the more
/// were removed within the last minute.
fn scratch_in_memory() -> Option<TempDir> {
    let place = statvfs(MEMORY).ok()?;
    let has_room = place.f_bavail.saturating_mul(place.f_frsize) >= MEMORY_BYTES_MIN;
    if !has_room || place.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return None;
    }
    scratch::make(Path::new(MEMORY)).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_reproducer_has_the_number_of_the_cause_that_it_shows() {
        let cause = |check: &str, others: &[&str]| -> Cause {
            let shares = others.iter().chain([&check]).map(|id| json!({ "check": id, "findings": 1 }));
            from_value(json!({
                "id": "0", "clause": "A", "level": "must", "nature": "violation", "certainty": "broken",
                "reason": "late", "check": check, "expected": "", "got": "", "checks": shares.collect::<Vec<Value>>(),
            }))
            .unwrap()
        };
        let numbers = numbers(&[cause("a", &["b", "c"]), cause("b", &["c", "d"])]);
        let of = |check: &str| numbers.get(check).copied();
        assert_eq!(["a", "b", "c", "d"].map(of), [Some(1), Some(2), Some(1), Some(2)]);
    }
}

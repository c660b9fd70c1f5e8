//! `peerproof bench`: speed and cost of a peer, and comparisons.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use serde_json::Value;

use super::check::scratch;
use super::peer_args::{PeerArgs, provider, reference_peer};
use super::run_args::{Format, duration, setting};
use super::{CommandResult, Context, Exit, Stop};
use crate::progress::Progress;
use peerproof::report::bench::{self as report, Header};
use peerproof::report::printer::Printer;
use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::data::blame::{HarnessFault, Misconfigured};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::nearest::did_you_mean;
use peerproof_engine::data::transcript::EventKind;
use peerproof_engine::drive::config::Config;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::drive::private;
use peerproof_engine::drive::reference_peers::Reference;
use peerproof_engine::run::bench::budget::{Broken, FigureBudget};
use peerproof_engine::run::bench::echo::{ECHO_ARGUMENT, EchoMode};
use peerproof_engine::run::bench::overhead::{self, Overhead};
use peerproof_engine::run::bench::{
    self, BenchRow, BenchSettings, BenchSurroundings, Missing, Rival, Rivals, placement,
};
use peerproof_engine::run::runner::{self, Options, Surroundings};

/// Measures a peer: requests per second, latency, processor time and memory, compared with a peer that only copies.
///
/// Without a command it measures the built-in reference peer. Rows are closed loops with 1, 16 and 64 requests in
/// flight, open loops at 50, 80 and 95 % of the highest rate, and messages up to the size limits. Both processes run on
/// one processor, then on two.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 measured, 1 the peer exited, hung or answered wrongly, 2 usage or
configuration, 5 rows are missing, 7 a limit of --budget is exceeded, 70 harness fault, 130 interrupted.")]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Command line of a second peer to compare with, as one argument. It is split into words without a shell.
    #[arg(long, value_name = "CMD", conflicts_with = "against_config")]
    against: Option<String>,
    /// Configuration of a second peer to compare with.
    #[arg(long, value_name = "FILE")]
    against_config: Option<PathBuf>,
    /// Performance budget: a TOML file of limits for rows.
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
    /// Time for measuring [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Measure for 5 s in 3 rounds.
    #[arg(long)]
    quick: bool,
    /// Number of rounds; each round measures every peer [default: 5; 7 with a second peer].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Measure only rows whose id matches, such as 'serve/64B/*' (see `--rows`).
    #[arg(long, short = 'k', value_name = "PATTERN")]
    filter: Vec<String>,
    /// Show the ids of the rows, and measure nothing.
    #[arg(long)]
    rows: bool,
    /// Also measure the cost of transcripts and oracles in the harness.
    #[arg(long)]
    harness_overhead: bool,
    /// Longest wait for one answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    patience: Duration,
    /// Format of the results; `ndjson` prints the lines of the output file.
    #[arg(long, value_name = "FORM")]
    format: Option<Format>,
    /// Also write every figure with its spread to a file, as one line of JSON per row.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Maximum number of rounds; more only cost memory.
const ROUNDS_MAX: usize = 1_000;

/// Runs the command.
///
/// # Errors
/// Fails for wrong usage, configuration or budget, a peer that cannot be started, or a machine that cannot measure.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let mut settings = args.settings()?;
    let form = setting(args.format, "FORMAT", context)?.unwrap_or_default();
    let budget = args.budget.as_deref().map(FigureBudget::load).transpose()?;
    let printer = if form == Format::Pretty { context.printer } else { context.printer.as_plain() };
    let mut out = Output { printer, form, file: None, path: args.output.clone(), broken: None };

    context.catch_interrupts();
    let scratch = scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let peer = args.first_peer(context, around)?;
    let boundary = peer.boundary;
    let against = args.second_peer(boundary, context, around)?;
    let echo = calibration_peer(boundary, context)?;

    let workloads = workloads(&peer)?;
    settings.select = args.select(&workloads)?;
    let (groups, notes) = bench::plan(&workloads, &settings.select);
    let planned = bench::ids(&groups);
    if let (Some(budget), Some(path)) = (&budget, &args.budget) {
        budget.refuse_useless(&planned).map_err(|error| error.of(path.display()))?;
    }
    if args.rows {
        printer.out(&planned.iter().map(|id| format!("{id}\n")).collect::<String>());
        return Ok(Exit::Good);
    }
    out.open()?;
    let rivals = Rivals {
        echo: Rival { peer: &echo, workloads: bench::calibration(&workloads) },
        against: match &against {
            Some(against) => Some(Rival { peer: against, workloads: self::workloads(against)? }),
            None => None,
        },
        peer: Rival { peer: &peer, workloads },
    };
    out.head(&Header {
        boundary: boundary.name().to_owned(),
        peer: peer.name.clone(),
        against: against.as_ref().map(|against| against.name.clone()),
        time_s: settings.time.as_secs_f64(),
        rounds: settings.rounds,
        planned: planned.clone(),
        notes,
    });
    let progress = Progress::new(planned.len(), &context.printer);
    let mut rows: Vec<BenchRow> = Vec::new();
    let measured = bench::run(
        &rivals,
        &groups,
        &settings,
        BenchSurroundings { scratch: scratch.path(), interrupted: &context.interrupted },
        &|id| progress.say(id),
        &mut |row| {
            progress.step(row.id.clone());
            out.row(&row, &progress);
            rows.push(row);
        },
    );
    progress.clear();
    measured?;
    let mut overhead_failed = None;
    if args.harness_overhead && !context.interrupted.load(Ordering::Relaxed) {
        let lab = runner::lab(&peer, &Options::default(), around);
        match harness_overhead(&lab, &rivals.peer.workloads, &settings) {
            Ok(found) => out.overhead(&found),
            Err(error) => overhead_failed = Some(error),
        }
    }
    let broken = budget.map(|budget| budget.judge(&rows)).unwrap_or_default();
    let exit = exit(&rows, &broken, context.interrupted.load(Ordering::Relaxed));
    out.end(&rows, &broken, exit)?;
    match overhead_failed {
        Some(error) => Err(error.of("the overhead of the harness cannot be measured").into()),
        None => Ok(exit),
    }
}

impl Args {
    fn settings(&self) -> Result<BenchSettings, Stop> {
        let usual = if self.against.is_some() || self.against_config.is_some() { 7 } else { 5 };
        let (time, rounds) = if self.quick { (5, 3) } else { (30, usual) };
        let settings = BenchSettings {
            time: self.time.unwrap_or(Duration::from_secs(time)),
            rounds: self.rounds.unwrap_or(rounds),
            patience: self.patience,
            select: Vec::new(),
        };
        if !(1..=ROUNDS_MAX).contains(&settings.rounds) {
            return Err(Stop::usage(format!(
                "--rounds is {}; it must be from 1 to {ROUNDS_MAX}",
                settings.rounds
            )));
        }
        if settings.time.is_zero() || settings.time > Duration::from_secs(86_400) {
            return Err(Stop::usage("--time must be from 1ms to 24h"));
        }
        if settings.patience < Duration::from_millis(100) || settings.patience > Duration::from_secs(3_600) {
            return Err(Stop::usage("--patience must be from 100ms to 1h"));
        }
        Ok(settings)
    }

    fn select(&self, workloads: &[Workload]) -> Result<Vec<GlobMatcher>, Stop> {
        let all = bench::ids(&bench::plan(workloads, &[]).0);
        let mut select = Vec::new();
        for text in &self.filter {
            let glob = Glob::new(text)
                .map_err(|error| {
                    Stop::usage(format!("--filter {text:?} is not a valid pattern: {}", error.kind()))
                })?
                .compile_matcher();
            if !all.iter().any(|id| glob.is_match(id)) {
                let hint = did_you_mean(text, all.iter().map(String::as_str));
                return Err(Stop::usage(format!(
                    "--filter {text:?} matches no row{hint} (`--rows` shows them)"
                )));
            }
            select.push(glob);
        }
        Ok(select)
    }

    fn first_peer(&self, context: &Context, around: Surroundings<'_>) -> Result<Peer, Stop> {
        self.peer.one_revision()?;
        if let Some(config) = self.peer.config(self.boundary.as_deref(), context)? {
            return known(config, context, around);
        }
        let Some(name) = &self.boundary else {
            return Err(Stop::usage(
                "no boundary is named; name it: peerproof bench BOUNDARY [-- COMMAND] (`peerproof list boundaries` \
                 shows them)",
            ));
        };
        // Prefer a peer that answers; take one that asks only if no other can be measured.
        let boundary = super::boundary_named(name)?;
        let played = table::played(boundary);
        let is_measured = |side| {
            let own = |it: &Reference| it.side == side && boundary.workloads(&played.facts_of(it)).is_ok();
            played.references().into_iter().find(own)
        };
        match is_measured(Side::Provider).or_else(|| is_measured(Side::Consumer)) {
            Some(reference) => reference_peer(boundary, &reference, &[], context),
            None => provider(name, context),
        }
    }

    fn second_peer(
        &self,
        boundary: &'static dyn Boundary,
        context: &Context,
        around: Surroundings<'_>,
    ) -> Result<Option<Peer>, Stop> {
        let config = match (&self.against, &self.against_config) {
            (Some(command), _) => {
                let argv = words(command)?;
                let mut config = Config::new(boundary);
                config.set_main_command(argv)?;
                // Uses the same tools, unless the second peer has a configuration of its own.
                if let Some(first) = self.peer.config(self.boundary.as_deref(), context)? {
                    config.roles = first.roles;
                    config.env = first.env;
                }
                config
            }
            (None, Some(path)) => Config::load(path, &table::all())?,
            (None, None) => return Ok(None),
        };
        if config.boundary.name() != boundary.name() {
            let names = (config.boundary.name(), boundary.name());
            return Err(Stop::usage(format!(
                "the boundary of the second peer is {}, not {}",
                names.0, names.1
            )));
        }
        known(config, context, around).map(Some)
    }
}

/// Starts from the peer of a configuration and adds the facts found by probing it.
fn known(config: Config, context: &Context, around: Surroundings<'_>) -> Result<Peer, Stop> {
    let mut peer = config.peer(&context.variables)?;
    let probes =
        runner::prepare(&mut peer, &Options::default(), around).map_err(|error| error.of(&peer.name))?;
    if around.interrupted.load(Ordering::Relaxed) {
        let message = "interrupted before anything was measured".to_owned();
        return Err(Stop { exit: Exit::Interrupted, message });
    }
    let events = || probes.iter().flat_map(|probe| &probe.events);
    if !probes.is_empty() && !events().any(|event| matches!(event.kind, EventKind::Received { .. })) {
        let end = events().find_map(|event| match &event.kind {
            EventKind::Exited { exit } => Some(format!(" and ended with {exit:?}").to_lowercase()),
            _ => None,
        });
        let message = format!("{} did not answer{}", peer.name, end.unwrap_or_default());
        return Err(Stop { exit: Exit::Broken, message });
    }
    Ok(peer)
}

fn workloads(peer: &Peer) -> Result<Vec<Workload>, Stop> {
    let named = |error: Misconfigured| error.of(format_args!("{} cannot be measured", peer.name));
    let workloads = peer.boundary.workloads(&peer.facts).map_err(named)?;
    if workloads.is_empty() {
        return Err(named("no command of this peer can be measured".into()).into());
    }
    Ok(workloads)
}

/// Calibration peer played by our own binary.
fn calibration_peer(boundary: &'static dyn Boundary, context: &Context) -> Result<Peer, Stop> {
    let exe = context.exe()?;
    let exe = exe.to_str().ok_or_else(|| Stop::harness("the path of the peerproof binary is not UTF-8"))?;
    let argv =
        |manner: EchoMode| [exe, ECHO_ARGUMENT, manner.word()].into_iter().map(str::to_owned).collect();
    Ok(Peer {
        name: "calibration peer".to_owned(),
        boundary,
        commands: EchoMode::ALL.into_iter().map(|manner| (manner.word().to_owned(), argv(manner))).collect(),
        env: Vec::new(),
        facts: Facts::new(Side::Provider),
        features_given: true,
        origin: peerproof_engine::drive::peer::Origin::Process {
            base_env: Vec::new(),
            current_dir: None,
            cpus: Vec::new(),
        },
        pace: std::sync::Arc::default(),
    })
}

fn harness_overhead(
    lab: &peerproof_engine::drive::lab::Lab<'_>,
    workloads: &[Workload],
    settings: &BenchSettings,
) -> Result<Overhead, HarnessFault> {
    let (placements, _) = placement::placements();
    let smallest = workloads.iter().find(|workload| !workload.one_shot);
    let (Some(placement), Some(workload)) = (placements.first(), smallest) else {
        return Err("the peer has no command that answers each line".into());
    };
    overhead::measure(
        lab,
        workload,
        placement,
        settings.rounds,
        settings.time / (20 * settings.rounds as u32),
    )
}

fn exit(rows: &[BenchRow], broken: &[Broken], interrupted: bool) -> Exit {
    let missing = |is: fn(&Missing) -> bool| rows.iter().filter_map(|row| row.missing.as_ref()).any(is);
    let measured = broken.iter().any(|broken| broken.got.is_some());
    if interrupted {
        Exit::Interrupted
    } else if missing(|why| matches!(why, Missing::Peer(_))) {
        Exit::Broken
    } else if measured {
        Exit::OverBudget
    } else if missing(|_| true) {
        Exit::Incomplete
    } else if broken.is_empty() {
        Exit::Good
    } else {
        Exit::OverBudget
    }
}

/// Destinations of results as they come.
struct Output {
    printer: Printer,
    form: Format,
    path: Option<PathBuf>,
    file: Option<File>,
    /// Reason why the file is incomplete.
    broken: Option<String>,
}

impl Output {
    fn open(&mut self) -> Result<(), Stop> {
        let Some(path) = &self.path else { return Ok(()) };
        let cannot = |error| Stop::usage(format!("cannot write {}: {error}", path.display()));
        self.file = Some(private::create(path).map_err(cannot)?);
        Ok(())
    }

    fn line(&mut self, value: &Value) {
        let line = format!("{value}\n");
        if self.form == Format::Ndjson {
            self.printer.out(&line);
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(line.as_bytes())
        {
            self.file = None;
            self.broken = Some(error.to_string());
        }
    }

    fn text(&self, text: &str) {
        if self.form != Format::Ndjson {
            self.printer.out(text);
        }
    }

    fn head(&mut self, header: &Header) {
        self.text(&report::head(header, &self.printer));
        self.line(&report::head_json(header));
    }

    fn row(&mut self, row: &BenchRow, progress: &Progress) {
        progress.aside(|| self.text(&report::row(row, &self.printer)));
        self.line(&report::row_json(row));
    }

    fn overhead(&mut self, found: &Overhead) {
        self.text(&format!("\n{}", report::overhead(found)));
        self.line(&report::overhead_json(found));
    }

    fn end(&mut self, rows: &[BenchRow], broken: &[Broken], exit: Exit) -> Result<(), Stop> {
        self.text(&report::left_out(rows, &self.printer));
        self.text(&report::broken(broken, &self.printer));
        self.text(&report::legend());
        self.line(&report::end_json(broken, exit.code()));
        match (&self.broken, &self.path) {
            (Some(error), Some(path)) => Err(Stop::harness(format!(
                "{} is incomplete: {error}; the figures above are complete",
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// Splits a command line at white space, honouring quotes and backslashes as a shell does, but no other shell syntax.
///
/// # Errors
/// Fails for an unclosed quote, or without any word.
fn words(text: &str) -> Result<Vec<String>, Misconfigured> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or("--against ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    if quote.is_some() {
        return Err("--against has a quote that is not closed".into());
    }
    words.extend(word);
    if words.is_empty() { Err("--against is empty; give it a command line".into()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::run::bench::live::Trouble;

    #[test]
    fn a_command_line_is_split_into_words() {
        assert_eq!(
            words(" a  b\t'c d' \"e \\\" f\" g\\ h ''").unwrap(),
            ["a", "b", "c d", "e \" f", "g h", ""]
        );
        for bad in ["", "  ", "'a", "a\\"] {
            assert!(words(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_worst_that_happened_decides_the_status() {
        let row = |why: Option<Missing>| BenchRow { missing: why, ..BenchRow::planned("a") };
        let died = Missing::Peer(Trouble::Died("x".to_owned()));
        let broken = |got| vec![Broken { row: "a".to_owned(), key: "k".to_owned(), bound: 1.0, got }];
        assert_eq!(exit(&[row(None)], &[], false), Exit::Good);
        assert_eq!(exit(&[row(None)], &broken(Some(0.0)), false), Exit::OverBudget);
        assert_eq!(exit(&[row(None)], &broken(None), false), Exit::OverBudget);
        assert_eq!(exit(&[row(Some(Missing::Time))], &broken(None), false), Exit::Incomplete);
        assert_eq!(exit(&[row(Some(died.clone()))], &broken(Some(0.0)), false), Exit::Broken);
        assert_eq!(exit(&[row(Some(died))], &[], true), Exit::Interrupted);
    }
}

//! `peerproof selftest`: proves that the checks work.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::{Args as ClapArgs, ValueEnum};

use super::peer_args::reference_peer;
use super::{CommandResult, Context, Exit, Stop};
use crate::progress::Progress;
use peerproof::report::render;
use peerproof::shard::Shard;
use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::reference_peers::Mutant;
use peerproof_engine::run::runner::{Options, Surroundings};
use peerproof_engine::run::selftest::blame::Blame;
use peerproof_engine::run::selftest::golden::GoldenRecord;
use peerproof_engine::run::selftest::kinds::TroubleKind;
use peerproof_engine::run::selftest::{Against, Forms, Proof, Scope, Workshop, mutants_of};

/// Runs every mutant, every variant of the correct reference and every null peer, and prints which checks noticed which
/// mutants.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Boundary to test [default: all].
    boundary: Option<String>,
    /// Run only mutants whose id contains this text; if there are none, mutants that break a clause of a check whose
    /// id contains it. Clauses and checks without a mutant are then no problem.
    #[arg(short = 'k', long)]
    filter: Option<String>,
    /// Run only part K of N of the mutants. Clauses and checks without a mutant are then no problem.
    #[arg(long, value_name = "hash:K/N")]
    shard: Option<Shard>,
    /// Run only the mutants and the correct references in their usual form, without null peers. With --filter: run only
    /// those mutants.
    #[arg(long, conflicts_with = "kind")]
    mutants: bool,
    /// Run the correct references under one kind of difficulty, without mutants and null peers.
    #[arg(long, value_enum, conflicts_with_all = ["filter", "shard"])]
    kind: Option<Trouble>,
    /// Run only the null peers. They may pass only checks for which their boundary gives a reason.
    #[arg(long, conflicts_with_all = ["filter", "shard", "mutants", "kind", "golden", "against", "known"])]
    null_peers: bool,
    /// Check each mutant as a user would, and report the number of causes per fault and whether the first one names the
    /// fault. Slow checks run only for mutants that run inside this process.
    #[arg(long, conflicts_with_all = ["mutants", "kind", "null_peers", "golden", "against", "known"])]
    blame: bool,
    /// Number of threads.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Form::Plain)]
    format: Form,
    /// Write the golden record to this folder, one file per boundary: the result of every check for the correct peers and
    /// for every mutant.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["filter", "shard", "kind", "known"])]
    golden: Option<PathBuf>,
    /// Compare with the golden record in this folder, and fail if it differs.
    #[arg(long, value_name = "FOLDER", conflicts_with = "kind")]
    against: Option<PathBuf>,
    /// Compare with the golden record in this folder using fewer checks: for each mutant those that noticed it, and all
    /// checks of its clauses if their results differ.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["kind", "against"])]
    known: Option<PathBuf>,
    /// With --against: write `~`, which matches any result, where the record differs, and do not fail.
    #[arg(long, requires = "against")]
    unsettle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Kill matrix as text.
    Plain,
    /// One JSON object per boundary; with --blame one per mutant, with the results of its checks.
    Json,
}

/// Kinds of difficulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trouble {
    /// Each role is configured with its required members only; every check that cannot run says so.
    LeastRoles,
    /// Each process waits five seconds before it reads or writes.
    SlowStart,
    /// Peers that answer write everything one second late; peers that ask are unchanged.
    LateReplies,
    /// Eight busy processes run at the same time.
    Busy,
    /// Each check gives the same result alone as in a whole run.
    Alone,
}

impl From<Trouble> for TroubleKind {
    fn from(word: Trouble) -> Self {
        match word {
            Trouble::LeastRoles => Self::LeastRoles,
            Trouble::SlowStart => Self::SlowStart,
            Trouble::LateReplies => Self::LateReplies,
            Trouble::Busy => Self::Busy,
            Trouble::Alone => Self::Alone,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails for an unknown boundary, or a fault of this machine.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let boundaries = match &args.boundary {
        Some(name) => vec![table::find(name).ok_or_else(|| {
            let known: Vec<&str> = table::all().iter().map(|boundary| boundary.name()).collect();
            Stop::usage(format!("there is no boundary {name:?}; the boundaries are {}", known.join(", ")))
        })?],
        None => table::all(),
    };
    let chosen: Vec<_> = boundaries.iter().map(|boundary| (*boundary, mutants(*boundary, args))).collect();
    if chosen.iter().all(|(_, mutants)| mutants.is_empty()) {
        return Err(nothing_chosen(args));
    }
    context.catch_interrupts();
    let scratch = tempfile::tempdir()
        .map_err(|error| Stop::harness(format!("cannot make a temporary folder: {error}")))?;
    let actor_exe = ActorExe::new(context.exe().unwrap_or_else(|_| PathBuf::from("peerproof")));
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let options = Options { jobs: args.jobs, ..Options::default() };
    let mut exit = Exit::Good;
    for (boundary, mutants) in chosen {
        if args.blame {
            let blame = blame(boundary, &mutants, context, &options, around);
            match args.format {
                Form::Plain => context.printer.out(&blamed(boundary, &blame)),
                Form::Json => {
                    for row in &blame.rows {
                        let line = serde_json::to_string(row)
                            .map_err(|error| Stop::harness(format!("a row cannot be written: {error}")))?;
                        context.printer.out(&format!("{line}\n"));
                    }
                }
            }
            if context.interrupted.load(Ordering::Relaxed) {
                return Ok(Exit::Interrupted);
            }
            if !blame.problems.is_empty() {
                exit = Exit::Broken;
            }
            continue;
        }
        let name = format!("{}.txt", boundary.name());
        let folder = args.against.as_ref().or(args.known.as_ref());
        let mut kept = folder.map(|folder| record(&folder.join(&name))).transpose()?;
        let scope = Scope {
            mutants,
            correct: match (args.mutants, &args.filter) {
                (true, Some(_)) => Forms::None,
                (true, None) => Forms::Usual,
                (false, _) => Forms::All,
            },
            kept: kept.as_ref(),
            against: match (&args.known, args.shard) {
                (Some(_), _) => Against::Known,
                (None, Some(_)) => Against::Clauses,
                (None, None) => Against::Each,
            },
        };
        let mut proof = prove(boundary, &scope, args, context, &options, around);
        let is_whole = !context.interrupted.load(Ordering::Relaxed);
        if let Some(folder) = args.golden.as_ref().filter(|_| is_whole) {
            render::write(&folder.join(&name), &proof.record.to_string())?;
        }
        if let Some((folder, kept)) = folder.zip(kept.as_mut()).filter(|_| args.unsettle && is_whole) {
            kept.unsettle(&std::mem::take(&mut proof.changes));
            render::write(&folder.join(&name), &kept.to_string())?;
        }
        let text = match args.format {
            Form::Plain => matrix(boundary, &proof),
            Form::Json => String::new(),
        };
        context.printer.out(&text);
        let line = serde_json::to_string(&proof.summary)
            .map_err(|error| Stop::harness(format!("the summary cannot be written: {error}")))?;
        context.printer.out(&format!("{line}\n"));
        if context.interrupted.load(Ordering::Relaxed) {
            context.printer.note("interrupted; only the finished part is counted");
            return Ok(Exit::Interrupted);
        }
        if !proof.holds() {
            exit = Exit::Broken;
        }
    }
    Ok(exit)
}

/// Selected mutants of a boundary.
fn mutants(boundary: &'static dyn Boundary, args: &Args) -> Vec<Mutant> {
    let mut mutants = mutants_of(table::played(boundary), args.filter.as_deref());
    mutants.retain(|mutant| args.shard.is_none_or(|shard| shard.takes(mutant.id)));
    mutants
}

fn nothing_chosen(args: &Args) -> Stop {
    Stop::usage(match (&args.filter, args.shard) {
        (filter, Some(shard)) => {
            let of =
                filter.as_ref().map(|part| format!(" of those that contain {part:?}")).unwrap_or_default();
            format!("the shard {shard} has no mutant{of}; use fewer shards")
        }
        (filter, None) => format!(
            "no id of a mutant, or of a check that notices one, contains {:?}; `peerproof list mutants` shows mutants",
            filter.as_deref().unwrap_or_default()
        ),
    })
}

/// Reads the golden record of one boundary.
fn record(path: &Path) -> Result<GoldenRecord, Stop> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("cannot read the golden record {}: {error}", path.display())))?;
    Ok(GoldenRecord::read(&text))
}

/// Checks mutants as a user would.
fn blame(
    boundary: &'static dyn Boundary,
    mutants: &[Mutant],
    context: &Context,
    options: &Options,
    around: Surroundings<'_>,
) -> Blame {
    let progress = Progress::new(mutants.len(), &context.printer);
    let blame = with_workshop(boundary, context, options, around, |workshop| {
        workshop.blame(mutants, &|phrase| progress.say(phrase))
    });
    progress.clear();
    blame
}

fn prove(
    boundary: &'static dyn Boundary,
    scope: &Scope<'_>,
    args: &Args,
    context: &Context,
    options: &Options,
    around: Surroundings<'_>,
) -> Proof {
    let progress = Progress::new(scope.mutants.len(), &context.printer);
    let say = |phrase| progress.say(phrase);
    let proof = with_workshop(boundary, context, options, around, |workshop| match args.kind {
        Some(kind) => workshop.prove_kind(kind.into(), &say),
        None if args.null_peers => workshop.prove_null_peers(&say),
        None => workshop.prove(scope, &say),
    });
    progress.clear();
    proof
}

fn with_workshop<R>(
    boundary: &'static dyn Boundary,
    context: &Context,
    options: &Options,
    around: Surroundings<'_>,
    work: impl FnOnce(&Workshop<'_>) -> R,
) -> R {
    work(&Workshop {
        played: table::played(boundary),
        process: &|reference, extra| {
            reference_peer(boundary, reference, extra, context)
                .map_err(|stop| HarnessFault::from(stop.message))
        },
        options,
        around,
    })
}

/// Percentile of `sorted`, by nearest rank.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1).min(last)).copied().unwrap_or(0)
}

fn blamed(boundary: &dyn Boundary, blame: &Blame) -> String {
    let mut out = String::new();
    let mut counts: Vec<usize> = blame.rows.iter().map(|row| row.causes.len()).collect();
    counts.sort_unstable();
    let first = blame.rows.iter().filter(|row| row.is_named_first()).count();
    let _ = writeln!(
        out,
        "{}: {} mutants, causes each: median {}, 90th percentile {}, most {}; the first names a broken clause {first} times; \
         {} pairs, both named {} times; {} noticed by none, {} problems",
        boundary.name(),
        blame.rows.len(),
        percentile(&counts, 50),
        percentile(&counts, 90),
        counts.last().copied().unwrap_or(0),
        blame.pairs,
        blame.pairs - blame.lost.len(),
        blame.unnoticed.len(),
        blame.problems.len()
    );
    for row in &blame.rows {
        let is_first = row.is_named_first();
        if is_first && row.causes.len() == 1 {
            continue;
        }
        let word = if is_first { "SPLIT" } else { "MISS" };
        let _ =
            writeln!(out, "  {word} {} ({}), {} causes:", row.id, row.clauses.join(" "), row.causes.len());
        for cause in row.causes.iter().take(CAUSES_MAX) {
            let _ = writeln!(
                out,
                "    {} {} {}, {} checks, such as {}",
                cause.clause,
                cause.reason,
                cause.place.as_deref().unwrap_or("-"),
                cause.checks.len(),
                cause.check
            );
        }
    }
    for (one, other) in &blame.lost {
        let _ = writeln!(out, "  LOST one of {one} and {other}");
    }
    for id in &blame.unnoticed {
        let _ = writeln!(out, "  UNNOTICED {id}");
    }
    for problem in &blame.problems {
        let _ = writeln!(out, "  PROBLEM {problem}");
    }
    out.push('\n');
    out
}

/// Maximum number of causes listed per mutant.
const CAUSES_MAX: usize = 5;

fn matrix(boundary: &dyn Boundary, proof: &Proof) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: mutants and the checks that notice them", boundary.name());
    for row in &proof.rows {
        let looks = if row.looks > 1 { format!(", {} looks", row.looks) } else { String::new() };
        let _ = writeln!(out, "  {} ({} checks run{looks})", row.id, row.checks_run);
        for (clause, checks) in &row.killers {
            let shown: Vec<&str> = checks.iter().take(3).map(String::as_str).collect();
            let more = checks.len().saturating_sub(shown.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(out, "    {clause}: {}{more}", shown.join(", "));
        }
    }
    let _ = writeln!(
        out,
        "\ncorrect peer: {} variants, {} false positives; null peers: {}, {} false greens",
        proof.variants,
        proof.false_positives.len(),
        proof.null_peers,
        proof.false_greens.len()
    );
    for (kind, forms, checks) in &proof.kinds {
        let _ = writeln!(out, "kind {}: {forms} forms, a sample of {checks} checks", kind.name());
    }
    for false_positive in &proof.false_positives {
        let finding = &false_positive.finding;
        let _ = writeln!(
            out,
            "  FALSE POSITIVE ({}) {}: {} {}: expected {}, got {}",
            false_positive.variant,
            false_positive.check,
            finding.clause,
            finding.reason,
            finding.expected,
            finding.got
        );
    }
    for (peer, check) in &proof.false_greens {
        let _ = writeln!(out, "  FALSE GREEN {peer}: {check}");
    }
    for differing in &proof.differing {
        let _ = writeln!(
            out,
            "  DIFFERS ({}) {}: alone {}, in the whole run {}",
            differing.peer, differing.check, differing.alone, differing.whole
        );
    }
    for survivor in &proof.summary.survivors {
        let _ = writeln!(out, "  SURVIVOR {survivor}");
    }
    for left in &proof.summary.untestable {
        let _ = writeln!(out, "  untestable on this machine: {left}");
    }
    for clause in &proof.unproved {
        let _ = writeln!(out, "  UNPROVED {clause}: no mutant of it is killed");
    }
    for check in &proof.unexcused {
        let _ = writeln!(out, "  REDUNDANT {check}: it notices no mutant, and no reason is given");
    }
    let mut kept: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (check, reason) in &proof.excused {
        kept.entry(reason).or_default().push(check);
    }
    for (reason, checks) in kept {
        let _ = writeln!(out, "  kept without a mutant: {reason}\n    {}", checks.join("\n    "));
    }
    for problem in &proof.problems {
        let _ = writeln!(out, "  PROBLEM {problem}");
    }
    let blind = &proof.summary.blind;
    if !blind.is_empty() {
        let _ = writeln!(
            out,
            "  the golden record has no check that noticed, {} times:\n    {}",
            blind.len(),
            blind.join("\n    ")
        );
    }
    for change in &proof.changes {
        let _ = writeln!(out, "  CHANGED {change}");
    }
    if !proof.changes.is_empty() {
        let _ = writeln!(out, "  if the change is intended, `harness/golden.sh` writes a new golden record");
    }
    out.push('\n');
    out
}

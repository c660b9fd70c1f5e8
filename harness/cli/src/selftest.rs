//! `peerproof selftest`: the suite proves itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::{Args as ClapArgs, ValueEnum};

use super::peer_args::reference_peer;
use super::{Context, Done, Exit, Stop};
use crate::progress::Progress;
use peerproof::report::render;
use peerproof::table;
use peerproof_engine::blame::HarnessFault;
use peerproof_engine::boundary::Boundary;
use peerproof_engine::fixture::ActorExe;
use peerproof_engine::runner::{Options, Surroundings};
use peerproof_engine::selftest::kinds::Kind;
use peerproof_engine::selftest::{Proof, Workshop, golden, mutants_of};

/// Runs every mutant, every variant of the correct reference and every null peer, and prints what noticed what.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Boundary; all by default.
    boundary: Option<String>,
    /// Only mutants whose id contains this, or, where there is none, those that break a clause of a check whose id contains it;
    /// clauses and checks that then have no mutant are not held against the suite.
    #[arg(short = 'k', long)]
    filter: Option<String>,
    /// Only the mutants, beside the correct references in their usual form; without null peers. With --filter: nothing but those
    /// mutants.
    #[arg(long, conflicts_with = "kind")]
    mutants: bool,
    /// Only one kind of trouble that the correct references may be in; without mutants and null peers.
    #[arg(long, value_enum, conflicts_with = "filter")]
    kind: Option<Trouble>,
    /// Only the null peers, which must pass nothing, or what their boundary gives a reason for.
    #[arg(long, conflicts_with_all = ["filter", "mutants", "kind", "golden", "against"])]
    null_peers: bool,
    /// Number of threads.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Form::Plain)]
    format: Form,
    /// Write what every check says of the correct peers and of every mutant into this folder too, a file a boundary.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["filter", "kind"])]
    golden: Option<PathBuf>,
    /// Compare that with the files in this folder, and fail where it is not the same.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["filter", "kind"])]
    against: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The kill matrix as text.
    Plain,
    /// One JSON object a boundary.
    Json,
}

/// The words for kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trouble {
    /// Each role configured at its least: nothing is left out in silence.
    LeastRoles,
    /// Five seconds pass before a process reads or writes.
    SlowStart,
    /// Everything is written one second late, by peers that answer: one that asks has times of its own.
    LateReplies,
    /// Eight busy processes run beside it.
    Busy,
    /// Each check by itself says what it says in the whole run.
    Alone,
}

impl From<Trouble> for Kind {
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

/// Carries the command out.
///
/// # Errors
/// An unknown boundary, or a machine that cannot work.
pub fn run(args: &Args, context: &Context) -> Done {
    let boundaries = match &args.boundary {
        Some(name) => vec![table::find(name).ok_or_else(|| {
            let known: Vec<&str> = table::all().iter().map(|boundary| boundary.name()).collect();
            Stop::usage(format!("there is no boundary {name:?}; the boundaries are {}", known.join(", ")))
        })?],
        None => table::all(),
    };
    if let Some(part) = &args.filter
        && boundaries.iter().all(|boundary| mutants_of(table::played(*boundary), Some(part)).is_empty())
    {
        return Err(Stop::usage(format!(
            "no id of a mutant, or of a check that notices one, contains {part:?}; `peerproof list mutants` shows mutants"
        )));
    }
    context.catch_interrupts();
    let scratch = tempfile::tempdir()
        .map_err(|error| Stop::harness(format!("cannot make a temporary folder: {error}")))?;
    let actor_exe = ActorExe::new(context.exe().unwrap_or_else(|_| PathBuf::from("peerproof")));
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let options = Options { jobs: args.jobs, ..Options::default() };
    let mut exit = Exit::Good;
    for boundary in boundaries {
        let mut proof = prove(boundary, args, context, &options, around);
        if let Some(record) = &proof.record {
            let name = format!("{}.txt", boundary.name());
            if let Some(folder) = &args.against {
                proof.changes = changes(&folder.join(&name), record)?;
            }
            if let Some(folder) = &args.golden {
                render::write(&folder.join(&name), record)?;
            }
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
            context.printer.note("interrupted; only what was done until then is counted");
            return Ok(Exit::Interrupted);
        }
        if !proof.holds() {
            exit = Exit::Broken;
        }
    }
    Ok(exit)
}

/// What the golden record in `path` says otherwise.
fn changes(path: &Path, record: &str) -> Result<Vec<String>, Stop> {
    let kept = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("cannot read the golden record {}: {error}", path.display())))?;
    Ok(golden::differences(&kept, record))
}

fn prove(
    boundary: &'static dyn Boundary,
    args: &Args,
    context: &Context,
    options: &Options,
    around: Surroundings<'_>,
) -> Proof {
    let played = table::played(boundary);
    let progress = Progress::new(mutants_of(played, args.filter.as_deref()).len(), &context.printer);
    let workshop = Workshop {
        played,
        process: &|reference, extra| {
            reference_peer(boundary, reference, extra, context)
                .map_err(|stop| HarnessFault::from(stop.message))
        },
        options,
        around,
    };
    let say = |phrase| progress.say(phrase);
    let proof = match args.kind {
        Some(kind) => workshop.prove_kind(kind.into(), &say),
        None if args.null_peers => workshop.prove_null_peers(&say),
        None if args.mutants => workshop.prove_mutants(args.filter.as_deref(), &say),
        None => workshop.prove(args.filter.as_deref(), &say),
    };
    progress.clear();
    proof
}

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
    for change in &proof.changes {
        let _ = writeln!(out, "  CHANGED {change}");
    }
    if !proof.changes.is_empty() {
        let _ = writeln!(out, "  where that is meant, `harness/golden.sh` writes the golden record anew");
    }
    out.push('\n');
    out
}

//! Judges the reference peers of another build: `reference-impl/mutants.sh` runs it against each mutant of the source.
//!
//! ```text
//! judge BOUNDARY REFPEER [UNDECIDED]
//! ```
//!
//! As much as possible is judged without processes: the machines of the other build are reached over standard input and
//! output, on a virtual clock, so that hundreds of checks take a second and none depends on the load. Checks that need
//! a process run against the binary REFPEER and count only after three failures. Failures go to standard error, and the
//! status is 1.
//!
//! UNDECIDED is a file of the checks that decide nothing about the unmutated reference, one per line. If it does not
//! exist, this run is about that reference: it reports every failure, or else writes the file. If it exists, the first
//! failure ends the run. If nothing fails, but another check decides nothing, or nothing is decided at all, the mutant
//! is undecided: this is reported, and the status is 3.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::run::runner::{self, CheckOutcome, Options, Surroundings};
use peerproof_engine::run::verdict::Verdict;

mod boundaries;
mod passes;
mod remote;
mod undecided;

use boundaries::Judged;
use passes::Pass;
use undecided::Undecided;

/// On a virtual clock, time limits are not judged.
const MACHINE_TIMEOUT_SCALE: f64 = 4.0;

/// Number of failures required of a check that may depend on the load.
const PROCESS_CONFIRM: u32 = 3;

/// Exit status for an undecided mutant.
const STATUS_UNDECIDED: u8 = 3;

/// Results of passes.
#[derive(Default)]
struct PassResults {
    /// Checks that found a broken clause.
    broken: Vec<String>,
    /// Checks that unexpectedly decided nothing.
    mute: Vec<String>,
    /// Number of checks without a finding.
    good: usize,
}

impl PassResults {
    fn enter(&mut self, pass: &Pass, outcome: CheckOutcome, undecided: &mut Undecided) {
        let result = outcome.result;
        let line = || {
            let finding = result.findings.first();
            format!("in {}: {}: {:?} {finding:?}", pass.name, result.id, result.verdict)
        };
        match &result.verdict {
            verdict if verdict.is_failure() => self.broken.push(line()),
            verdict if verdict.is_good() => self.good += 1,
            Verdict::Untestable(why) => {
                let is_expected = undecided.expects(format!("{} {}", pass.name, result.id));
                if why.code == Untestable::NO_WORKING_REPLY || !is_expected {
                    self.mute.push(line());
                }
            }
            Verdict::HarnessError(_) => self.mute.push(line()),
            // Flaky failures mean nothing. Unclaimed and slow checks are the same without a mutant.
            _ => {}
        }
    }
}

/// Runs a pass until the first failure, or to its end while undecided checks are being gathered.
fn run_pass(
    boundary: &dyn Boundary,
    pass: &Pass,
    peer: &Peer,
    seen: &Mutex<PassResults>,
    undecided: &Mutex<Undecided>,
) -> Result<(), HarnessFault> {
    let actor_exe =
        std::env::current_exe().map_err(|error| format!("the judge does not find itself: {error}"))?;
    let actor_exe = ActorExe::new(actor_exe);
    let scratch = tempfile::tempdir().map_err(|error| format!("there is no folder to work in: {error}"))?;
    let stop = Arc::<AtomicBool>::default();
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &stop };
    let options = if pass.is_process {
        Options { confirm: PROCESS_CONFIRM, ..Options::default() }
    } else {
        let timeout_scale = MACHINE_TIMEOUT_SCALE;
        Options { slow: true, jobs: 1, timeout_scale, confirm: 1, ..Options::default() }
    };
    let checks = pass.checks(boundary.checks(), peer, options.rng_seed);
    runner::run(peer, &checks, &options, around, &|outcome: CheckOutcome| {
        let mut undecided = undecided.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.load(Ordering::Relaxed) && !outcome.result.verdict.is_failure() {
            // Checks skipped because of a failure mean nothing.
            return;
        }
        seen.enter(pass, outcome, &mut undecided);
        stop.store(undecided.is_known() && !seen.broken.is_empty(), Ordering::Relaxed);
    });
    Ok(())
}

fn judge(
    boundary: &'static dyn Boundary,
    judged: &Judged,
    refpeer: &str,
    undecided: &Mutex<Undecided>,
) -> Result<PassResults, HarnessFault> {
    let line = remote::line();
    let seen = Mutex::new(PassResults::default());
    for pass in passes::all(boundary, judged) {
        let peer = pass.peer(boundary, judged, &line, refpeer).ok_or("a reference has gone")?;
        run_pass(boundary, &pass, &peer, &seen, undecided)?;
        let is_known = undecided.lock().unwrap_or_else(PoisonError::into_inner).is_known();
        if is_known && !seen.lock().unwrap_or_else(PoisonError::into_inner).broken.is_empty() {
            break;
        }
    }
    Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Judges. Writes the undecided checks if they were unknown and nothing failed. Returns the status and the text to
/// report.
fn run(name: &str, refpeer: &str, path: Option<&Path>) -> Result<(u8, String), HarnessFault> {
    let boundary = table::find(name).ok_or_else(|| format!("there is no boundary {name:?}"))?;
    let judged = boundaries::of(boundary.name());
    let undecided = Undecided::read(path)
        .map_err(|error| format!("the file of undecided checks cannot be read: {error}"))?;
    let undecided = Mutex::new(undecided);
    let seen = judge(boundary, &judged, refpeer, &undecided)?;
    let undecided = undecided.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !seen.broken.is_empty() {
        return Ok((1, format!("caught: {}", seen.broken.join("\n"))));
    }
    if !seen.mute.is_empty() || seen.good == 0 {
        let first = seen.mute.first().map_or("no check decides anything", String::as_str);
        return Ok((STATUS_UNDECIDED, format!("undecided ({} checks): {first}", seen.mute.len())));
    }
    path.map_or(Ok(()), |path| undecided.write(path))
        .map_err(|error| format!("the file of undecided checks cannot be written: {error}"))?;
    Ok((0, format!("nothing found by {} checks", seen.good)))
}

fn main() -> ExitCode {
    // This binary also plays the programs that peers start.
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = peerproof::hidden(&args, &|| std::env::vars_os().collect()) {
        std::process::exit(status);
    }
    let args: Vec<&str> = args.iter().skip(1).filter_map(|arg| arg.to_str()).collect();
    let done = match args.as_slice() {
        [boundary, refpeer] => run(boundary, refpeer, None),
        [boundary, refpeer, path] => run(boundary, refpeer, Some(Path::new(path))),
        _ => Err("usage: judge BOUNDARY REFPEER [UNDECIDED]".into()),
    };
    let (status, text) = done.unwrap_or_else(|error| (STATUS_UNDECIDED, format!("undecided: {error}")));
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(status)
}

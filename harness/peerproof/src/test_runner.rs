//! Each check a test: for `cargo test` and nextest, in a test target with `harness = false`.
//!
//! ```no_run
//! // The whole `main` of that target.
//! peerproof::cargo_test("peerproof.toml")
//! ```
//!
//! The name of a test is the id of its check. Tests that need `--slow` are ignored until `--ignored` or
//! `--include-ignored` asks for them. A check that cannot decide anything is ignored with its reason; where the test
//! runner cannot show that a test was ignored while it ran (nextest), it fails instead. It never passes in silence.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::report::console;
use crate::report::printer::Printer;
use crate::table;
use peerproof_engine::boundary::checks_of_side;
use peerproof_engine::check::Check;
use peerproof_engine::config::{Config, DEFAULT_EXPECTATIONS};
use peerproof_engine::expectation::{Expectations, Why};
use peerproof_engine::fixture::ActorExe;
use peerproof_engine::peer::Peer;
use peerproof_engine::runner::{self, Options, Outcome, Surroundings};
use peerproof_engine::transport::child::guardian;
use peerproof_engine::verdict::Verdict;

/// Status of the process where nothing can be run: the configuration is wrong. That of the command line, too.
const STATUS_USAGE: i32 = 2;

/// Runs the checks for the peer of `config`, a `peerproof.toml` relative to the package, as tests, and ends the
/// process as the test runner expects.
pub fn cargo_test(config: &str) -> ! {
    cargo_test_with(config, |_| {})
}

/// As [`cargo_test`], after `change` changed the environment: for a peer that is a binary of the same package, whose
/// folder (`env!("CARGO_BIN_EXE_…")`) has to be in `PATH`.
pub fn cargo_test_with(config: &str, change: impl FnOnce(&mut BTreeMap<String, OsString>)) -> ! {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = crate::hidden(&args, &|| std::env::vars_os().collect()) {
        std::process::exit(status);
    }
    let mut variables: BTreeMap<String, OsString> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    change(&mut variables);
    let args = Arguments::from_args();
    match prepare(config, &variables, &args) {
        Ok((trials, shared)) => {
            let conclusion = libtest_mimic::run(&args, trials);
            // Its temporary folder goes with it; `exit` drops nothing.
            drop(shared);
            conclusion.exit()
        }
        Err(error) => {
            Printer::plain().error(&error);
            std::process::exit(STATUS_USAGE)
        }
    }
}

/// What all tests of this process share.
struct Shared {
    peer: Peer,
    options: Options,
    actor_exe: ActorExe,
    scratch: Mutex<Option<tempfile::TempDir>>,
    interrupted: Arc<AtomicBool>,
    /// Failures that are known: `peerproof-expected.toml` beside the configuration.
    expectations: Expectations,
    /// Held for writing by checks that measure while no other runs.
    alone: RwLock<()>,
    /// Whether the first canary of a command was answered, by command.
    canaries: Mutex<BTreeMap<String, Option<String>>>,
    /// The runner sees only pass and fail of one process a test.
    nextest: bool,
}

/// Removes the temporary folder when the tests are over, also where a test still holds what they share.
struct Cleanup(Arc<Shared>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn prepare(
    config: &str,
    variables: &BTreeMap<String, OsString>,
    args: &Arguments,
) -> Result<(Vec<Trial>, Cleanup), String> {
    let exe = std::env::current_exe().map_err(|error| format!("cannot find this test's binary: {error}"))?;
    let scratch = tempfile::Builder::new()
        .prefix("peerproof-")
        .tempdir()
        .map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let mut peer = Config::load(Path::new(config), &table::all())?.peer(variables)?;
    let expectations = expectations(&Path::new(config).with_file_name(DEFAULT_EXPECTATIONS))?;
    let nextest = variables.contains_key("NEXTEST");
    let number = |name: &str| variables.get(name).and_then(|value| value.to_str()?.parse::<f64>().ok());
    let options = Options {
        slow: args.ignored || args.include_ignored,
        very_slow: args.ignored || args.include_ignored,
        jobs: 1,
        timeout_scale: number("PEERPROOF_TIMEOUT_SCALE").unwrap_or(1.0),
        ..Options::default()
    };
    guardian::start(&exe);
    let actor_exe = ActorExe::new(exe);
    let interrupted = Arc::<AtomicBool>::default();
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
    runner::prepare(&mut peer, &options, around).map_err(|error| format!("{}: {error}", peer.name))?;
    let checks = checks_of_side(peer.boundary, peer.facts.side);
    let shared = Arc::new(Shared {
        peer,
        options,
        actor_exe,
        scratch: Mutex::new(Some(scratch)),
        interrupted,
        expectations,
        alone: RwLock::new(()),
        canaries: Mutex::default(),
        nextest,
    });
    let mut trials: Vec<Trial> = checks.into_iter().map(|check| trial(check, &shared)).collect();
    if !shared.expectations.is_empty() {
        let shared = Arc::clone(&shared);
        trials.push(Trial::test(DEFAULT_EXPECTATIONS, move || shared.expectations_hold()));
    }
    Ok((trials, Cleanup(shared)))
}

/// The expectations in `path`; none where it is not there.
fn expectations(path: &Path) -> Result<Expectations, String> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => Expectations::parse(&text).map_err(|error| format!("{shown}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Expectations::default()),
        Err(error) => Err(format!("cannot read the expectations {shown}: {error}")),
    }
}

fn trial(check: &'static Check, shared: &Arc<Shared>) -> Trial {
    let never_runs = runner::skip_reason(&shared.peer, check, &shared.options).is_some();
    let shared = Arc::clone(shared);
    let ignored = check.slow || (shared.nextest && never_runs);
    Trial::ignorable_test(check.id.clone(), move || shared.test(check)).with_ignored_flag(ignored)
}

impl Shared {
    /// What is stale about the expectations whatever the checks come to: expired entries and unknown ids.
    fn expectations_hold(&self) -> Result<(), Failed> {
        let today = jiff::Zoned::now().date();
        let known = self.peer.boundary.checks().iter().map(|check| check.id.as_str());
        let stale: Vec<String> =
            self.expectations.stale(&[], known, today).iter().map(ToString::to_string).collect();
        if stale.is_empty() { Ok(()) } else { Err(stale.join("\n").into()) }
    }

    fn test(&self, check: &'static Check) -> Result<Completion, Failed> {
        if check.exclusive {
            let _alone = self.alone.write().unwrap_or_else(PoisonError::into_inner);
            self.run(check)
        } else {
            let _beside = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(dead) = self.dead(check) {
                return Err(dead.into());
            }
            self.run(check)
        }
    }

    /// Why the command of `check` is dead, if it is: its first canary failed. Asked once a command.
    fn dead(&self, check: &'static Check) -> Option<String> {
        if runner::is_first_canary(check) || self.nextest {
            return None;
        }
        let mut canaries = self.canaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = canaries.get(&check.command) {
            return known.clone();
        }
        let canary = checks_of_side(self.peer.boundary, self.peer.facts.side)
            .into_iter()
            .find(|other| runner::is_first_canary(other) && other.command == check.command);
        let dead = canary.and_then(|canary| {
            let outcome = self.outcome(canary)?;
            let failed = outcome.result.verdict.is_failure();
            failed.then(|| format!("not run: {} failed, see there", canary.id))
        });
        canaries.insert(check.command.clone(), dead.clone());
        dead
    }

    fn outcome(&self, check: &'static Check) -> Option<Outcome> {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.path().to_owned();
        let around =
            Surroundings { actor_exe: &self.actor_exe, scratch: &scratch, interrupted: &self.interrupted };
        let outcome = Mutex::new(None);
        runner::run(&self.peer, &[check], &self.options, around, &|done| {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, check: &'static Check) -> Result<Completion, Failed> {
        let outcome = self.outcome(check).ok_or("harness error: the check gave no result")?;
        let mut result = outcome.result;
        let today = jiff::Zoned::now().date();
        let known = self.peer.boundary.checks().iter().map(|check| check.id.as_str());
        let mut stale = self.expectations.stale(std::slice::from_ref(&result), known, today);
        // The other tests speak for entries that are not about this check.
        stale.retain(
            |stale| matches!(&stale.why, Why::Passes(id) | Why::FailsOtherwise(id, _) if *id == check.id),
        );
        if let Some(stale) = stale.first() {
            return Err(format!("{DEFAULT_EXPECTATIONS}: {stale}").into());
        }
        self.expectations.apply(&mut result);
        match &result.verdict {
            Verdict::Pass | Verdict::Open(_) | Verdict::Expected(_) => Ok(Completion::Completed),
            Verdict::Untestable(reason)
            | Verdict::NotClaimed(reason)
            | Verdict::NotRun(reason)
            | Verdict::Masked(reason) => {
                let sentence = format!("{}: {reason}", result.verdict.word());
                if self.nextest { Err(sentence.into()) } else { Ok(Completion::ignored_with(sentence)) }
            }
            _ => Err(console::failure_text(&result, self.peer.boundary.clauses()).into()),
        }
    }
}

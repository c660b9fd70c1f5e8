//! Checks as tests for `cargo test` and nextest, in a test target with `harness = false`.
//!
//! ```no_run
//! // The whole `main` of that target, for a peer that is a binary of the same package.
//! fn main() -> Result<(), peerproof::SuiteError> {
//!     peerproof::Suite::from_config("peerproof.toml")?
//!         .command("serve", [option_env!("CARGO_BIN_EXE_my_host").unwrap_or("my_host"), "--serve"])?
//!         .run()
//! }
//! ```
//!
//! Each test is named after its check. Tests that need `--slow` are ignored unless `--ignored` or `--include-ignored`
//! is given. An undecided check is ignored with its reason, and so are all checks of a command that does not answer its
//! first plain request: only the test of that request fails. A run that decides nothing fails and says why. Test
//! runners that cannot show that a test became ignored while it ran (nextest) show it as failed. No check passes
//! silently.

mod once;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::report::console;
use crate::report::printer::Printer;
use crate::report::screen::plural;
use crate::table;
use peerproof_engine::contract::boundary::{self, checks_of_side};
use peerproof_engine::data::blame::{Misconfigured, Unprepared};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::filter::Filter;
use peerproof_engine::data::transcript::{Packed, Transcript};
use peerproof_engine::drive::config::{Config, DEFAULT_EXPECTATIONS};
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::peer::{MakeMachine, Peer};
use peerproof_engine::drive::scratch;
use peerproof_engine::drive::transport::child::guardian;
use peerproof_engine::run::expectation::{Expectations, StaleReason};
use peerproof_engine::run::reproducer::{Explain, explain_failures};
use peerproof_engine::run::runner::{self, CheckOutcome, Failure, Options, Surroundings};
use peerproof_engine::run::verdict::Verdict;

/// Exit status of a test binary with failed tests.
const STATUS_FAILED: i32 = 101;
/// Exit status for a wrong configuration, as for the command line.
const STATUS_USAGE: i32 = 2;
/// Exit status for a fault of this machine, as for the command line.
const STATUS_HARNESS: i32 = 70;

/// Runs the checks for the peer of `config`, a `peerproof.toml` relative to the package, as tests, and ends the process
/// as the test runner expects.
pub fn cargo_test(config: &str) -> ! {
    if let Err(error) = Suite::from_config(config).and_then(Suite::run) {
        error.exit();
    }
    std::process::exit(0)
}

/// Reason why no test was run, by blame.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuiteError {
    /// Wrong configuration, wrong settings in code, or a peer that cannot be started.
    Configuration(String),
    /// Fault of this machine, such as a folder that cannot be created or an unknown path of our own binary.
    Machine(String),
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(sentence) | Self::Machine(sentence) => f.write_str(sentence),
        }
    }
}

/// Formats the sentence, which a `main` that returns this error shows.
impl fmt::Debug for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for SuiteError {}

impl From<Unprepared> for SuiteError {
    fn from(error: Unprepared) -> Self {
        match error {
            Unprepared::Peer(error) => Self::Configuration(error.into()),
            Unprepared::Machine(error) => Self::Machine(error.into()),
        }
    }
}

impl From<Misconfigured> for SuiteError {
    fn from(error: Misconfigured) -> Self {
        Self::Configuration(error.into())
    }
}

impl SuiteError {
    /// Exit status of the command line for this error.
    fn status(&self) -> i32 {
        match self {
            Self::Configuration(_) => STATUS_USAGE,
            Self::Machine(_) => STATUS_HARNESS,
        }
    }

    /// Prints the sentence and exits with the status of the command line for this error.
    pub fn exit(&self) -> ! {
        Printer::plain().error(&self.to_string());
        std::process::exit(self.status())
    }
}

/// Checks of one peer to run as tests.
pub struct Suite {
    config: Config,
    /// Path of the configuration.
    file: PathBuf,
    /// Path of the expectations file, which may be missing.
    expectations: PathBuf,
    filters: Vec<String>,
    variables: BTreeMap<String, OsString>,
    machines: Option<MakeMachine>,
}

impl Suite {
    /// Loads the configuration file of a peer, relative to the package.
    ///
    /// Call it first in `main`: peers also start the test binary, and a process started as a part that the harness
    /// plays ends here.
    ///
    /// # Errors
    /// [`SuiteError::Configuration`] if the file cannot be read or is invalid.
    pub fn from_config(file: impl AsRef<Path>) -> Result<Self, SuiteError> {
        let args: Vec<OsString> = std::env::args_os().collect();
        if let Some(status) = crate::hidden(&args, &|| std::env::vars_os().collect()) {
            std::process::exit(status);
        }
        let file = file.as_ref();
        let variables = std::env::vars_os();
        Ok(Self {
            config: Config::load(file, &table::all())?,
            file: file.to_owned(),
            expectations: file.with_file_name(DEFAULT_EXPECTATIONS),
            filters: Vec::new(),
            variables: variables
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            machines: None,
        })
    }

    /// Replaces a command of the file, such as `serve`, for a program whose path cargo knows
    /// (`env!("CARGO_BIN_EXE_…")`).
    ///
    /// # Errors
    /// [`SuiteError::Configuration`] if the boundary lacks this command or its placeholders are wrong.
    pub fn command(
        mut self,
        name: &str,
        argv: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, SuiteError> {
        let argv = argv.into_iter().map(Into::into).collect();
        self.config.set_command(name, argv)?;
        Ok(self)
    }

    /// Uses peers inside this process instead of starting commands: `make` receives the command line that would have
    /// been started, and its environment. [`Replies`](crate::machine::Replies) makes a peer from a function from bytes
    /// to bytes. Time is virtual: a wait in vain costs nothing, but a function that never returns is never stopped.
    ///
    /// Checks about processes (signals, memory, descendants) are undecided for these peers.
    #[must_use]
    pub fn in_this_process(
        mut self,
        make: impl Fn(&[String], &[(String, String)]) -> Box<dyn Machine> + Send + Sync + 'static,
    ) -> Self {
        self.machines = Some(Arc::new(move |argv, env| Some(make(argv, env))));
        self
    }

    /// Keeps only checks that match this or another given pattern: a glob on check or clause ids, a folder of checks,
    /// or the name of a check.
    #[must_use]
    pub fn filter(mut self, pattern: impl Into<String>) -> Self {
        self.filters.push(pattern.into());
        self
    }

    /// Runs the checks as tests, following the process's arguments, and ends the process.
    ///
    /// # Errors
    /// Returns the reason why no test can run; nothing was printed yet.
    pub fn run(self) -> Result<(), SuiteError> {
        let args = Arguments::from_args();
        let (trials, shared) = prepare(self, &args)?;
        let conclusion = libtest_mimic::run(&args, trials);
        let untold = shared.0.untold();
        // Removes its temporary folder; `exit` drops nothing.
        drop(shared);
        if let Some(text) = untold {
            Printer::plain().error(&text);
            std::process::exit(STATUS_FAILED);
        }
        conclusion.exit()
    }

    /// Peer from the configuration alone.
    fn peer(&self) -> Result<Peer, Misconfigured> {
        match &self.machines {
            Some(machines) => self.config.peer_in_process(&self.variables, Arc::clone(machines)),
            None => self.config.peer(&self.variables),
        }
    }
}

/// State shared by all tests of this process.
struct Shared {
    peer: Peer,
    options: Options,
    actor_exe: ActorExe,
    scratch: Mutex<Option<tempfile::TempDir>>,
    interrupted: Arc<AtomicBool>,
    /// Known failures: `peerproof-expected.toml` next to the configuration.
    expectations: Expectations,
    /// Locked for writing by checks that measure while nothing else runs.
    alone: RwLock<()>,
    /// First canaries that were not answered, by command; `None` for answered ones.
    canaries: Mutex<BTreeMap<String, Option<Dead>>>,
    tally: Mutex<Tally>,
    /// Path of the configuration.
    file: PathBuf,
    /// Set under nextest, which runs one process per test and sees only pass and fail.
    nextest: bool,
}

/// First canary that was not answered.
#[derive(Clone)]
struct Dead {
    id: String,
    /// Text about the failure.
    text: String,
}

/// Results of the tests so far.
#[derive(Default)]
struct Tally {
    /// Ids of decided checks.
    decided: BTreeSet<String>,
    /// Reasons of undecided checks, with their counts.
    undecided: BTreeMap<String, usize>,
}

/// Removes the temporary folder after the tests, even if a test still holds the shared state.
struct Cleanup(Arc<Shared>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn prepare(suite: Suite, args: &Arguments) -> Result<(Vec<Trial>, Cleanup), SuiteError> {
    let exe = std::env::current_exe()
        .map_err(|error| SuiteError::Machine(format!("cannot find this test's binary: {error}")))?;
    let scratch = scratch::make(&std::env::temp_dir())
        .map_err(|error| SuiteError::Machine(format!("cannot make a temporary folder: {error}")))?;
    let mut peer = suite.peer()?;
    let filter = Filter::new(&suite.filters)?;
    let mut checks = checks_of_side(peer.boundary, peer.facts.side);
    filter.refuse_useless(&checks)?;
    checks.retain(|check| filter.takes(check));
    let expectations = expectations(&suite.expectations)?;
    let nextest = suite.variables.contains_key("NEXTEST");
    let number = |name: &str| suite.variables.get(name).and_then(|value| value.to_str()?.parse::<f64>().ok());
    let options = Options {
        slow: args.ignored || args.include_ignored,
        very_slow: args.ignored || args.include_ignored,
        jobs: 1,
        timeout_scale: number("PEERPROOF_TIMEOUT_SCALE").unwrap_or(1.0),
        ..Options::default()
    };
    let actor_exe = ActorExe::new(exe);
    let interrupted = Arc::<AtomicBool>::default();
    // Listing needs only names. But nextest also asks which tests are ignored, which may depend on features that only
    // the peer shows.
    if !args.list || nextest {
        if peer.is_process() {
            guardian::start(&actor_exe.program);
        }
        let around =
            Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
        let ask = || runner::probe(&peer, &options, around).map_err(|error| error.of(&peer.name));
        let run = suite.variables.get("NEXTEST_RUN_ID").and_then(|id| id.to_str());
        let probes = match run.filter(|_| peer.is_process()) {
            Some(run) => once::asked(&once::file(&actor_exe.program, &peer), run, &peer, ask),
            None => ask(),
        }?;
        runner::learn(&mut peer, &probes);
    }
    let shared = Arc::new(Shared {
        peer,
        options,
        actor_exe,
        scratch: Mutex::new(Some(scratch)),
        interrupted,
        expectations,
        alone: RwLock::new(()),
        canaries: Mutex::default(),
        tally: Mutex::default(),
        file: suite.file,
        nextest,
    });
    // Nextest skips tests according to this list.
    let lists = args.list && nextest;
    let mut trials: Vec<Trial> = checks.into_iter().map(|check| trial(check, &shared, lists)).collect();
    if !shared.expectations.is_empty() {
        let shared = Arc::clone(&shared);
        trials.push(Trial::test(DEFAULT_EXPECTATIONS, move || shared.expectations_hold()));
    }
    Ok((trials, Cleanup(shared)))
}

/// Expectations in `path`; empty if it does not exist.
fn expectations(path: &Path) -> Result<Expectations, Misconfigured> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => Expectations::parse(&text).map_err(|error| error.of(shown)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Expectations::default()),
        Err(error) => Err(format!("cannot read the expectations {shown}: {error}").into()),
    }
}

fn trial(check: &'static Check, shared: &Arc<Shared>, lists: bool) -> Trial {
    let shared = Arc::clone(shared);
    let ignored =
        check.slow || (shared.nextest && shared.is_skipped(check)) || (lists && shared.dead(check).is_some());
    Trial::ignorable_test(check.id.clone(), move || shared.test(check)).with_ignored_flag(ignored)
}

impl Shared {
    /// Stale expectations, whatever the results: expired entries and unknown ids.
    fn expectations_hold(&self) -> Result<(), Failed> {
        let today = jiff::Zoned::now().date();
        let known = self.peer.boundary.checks().iter().map(|check| check.id.as_str());
        let stale: Vec<String> =
            self.expectations.stale(&[], known, today).iter().map(ToString::to_string).collect();
        if stale.is_empty() { Ok(()) } else { Err(stale.join("\n").into()) }
    }

    fn test(&self, check: &'static Check) -> Result<Completion, Failed> {
        let ended = if check.exclusive {
            let _alone = self.alone.write().unwrap_or_else(PoisonError::into_inner);
            self.run_or_wait(check)
        } else {
            let _beside = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            self.run_or_wait(check)
        };
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(Some(reason)) = &ended else {
            tally.decided.insert(check.id.clone());
            return ended.map(|_| Completion::Completed);
        };
        *tally.undecided.entry(reason.clone()).or_default() += 1;
        if self.nextest { Err(reason.into()) } else { Ok(Completion::ignored_with(reason)) }
    }

    /// Runs a check, unless its command is dead. Returns the reason if nothing was decided.
    ///
    /// # Errors
    /// Returns text about the failure.
    fn run_or_wait(&self, check: &'static Check) -> Result<Option<String>, Failed> {
        // Under nextest each test is a process of its own, which would ask again.
        let dead = if self.nextest { None } else { self.dead(check) };
        match dead {
            Some(dead) => Ok(Some(format!("not run: {} got no answer, see there", dead.id))),
            None => self.run(check),
        }
    }

    /// Failure that no test has reported: a failed first canary that is not among the tests, or that nothing could be
    /// decided.
    fn untold(&self) -> Option<String> {
        if self.nextest {
            return None;
        }
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let canaries = self.canaries.lock().unwrap_or_else(PoisonError::into_inner);
        let dead = canaries.values().flatten().find(|dead| !tally.decided.contains(&dead.id));
        if let Some(Dead { id, text }) = dead {
            return Some(format!("checks could not run, since {id} got no answer:\n{text}"));
        }
        let (reason, count) = tally.undecided.iter().max_by_key(|(_, count)| **count)?;
        let total: usize = tally.undecided.values().sum();
        let sentence = format!("no check reached a verdict; {count} of {}: {reason}", plural(total, "test"));
        tally.decided.is_empty().then_some(sentence)
    }

    fn is_skipped(&self, check: &Check) -> bool {
        runner::skip_reason(&self.peer, check, &self.options).is_some()
    }

    /// Unanswered first canary of the command of `check`, unless that is `check` itself. Asks once per command.
    fn dead(&self, check: &'static Check) -> Option<Dead> {
        let skipped = runner::skip_reason(&self.peer, check, &self.options);
        if check.first_canary || matches!(skipped, Some(Verdict::NotClaimed(_) | Verdict::NotRun(_))) {
            return None;
        }
        let mut canaries = self.canaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = canaries.get(&check.command) {
            return known.clone();
        }
        let canary = checks_of_side(self.peer.boundary, self.peer.facts.side)
            .into_iter()
            .find(|other| other.first_canary && other.command == check.command && !self.is_skipped(other));
        let dead = canary.and_then(|canary| {
            let outcome = self.outcome(canary)?;
            // The exit after its answer does not matter.
            let is_answered = |failure: &Failure<Packed>| {
                let transcript = Transcript::from(failure.transcript.clone());
                boundary::judge(self.peer.boundary, &transcript).canaries_answered > 0
            };
            let is_alive =
                outcome.result.verdict.is_good() || outcome.failure.as_ref().is_some_and(is_answered);
            (!is_alive).then(|| Dead { id: canary.id.clone(), text: self.told(outcome) })
        });
        canaries.insert(check.command.clone(), dead.clone());
        dead
    }

    /// Text about an outcome that is not a pass, with its conversation and the command that replays it.
    fn told(&self, mut outcome: CheckOutcome) -> String {
        let Some(scratch) = self.scratch() else { return String::new() };
        let around = self.around(&scratch);
        let out_dir = self.actor_exe.program.with_extension("peerproof-out");
        let config = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let mut problem = None;
        let with = Explain {
            lab: &runner::lab(&self.peer, &self.options, around),
            played: None,
            out_dir: Some(&out_dir),
            numbers: &BTreeMap::new(),
            // Other tests run in parallel.
            budget: Duration::ZERO,
            jobs: 1,
            peer_args: &["--config".to_owned(), config.display().to_string()],
            interrupted: &self.interrupted,
        };
        explain_failures([&mut outcome], &with, |_, explained| problem.clone_from(&explained.problem));
        let mut again = console::commands(&outcome.result, &out_dir.display().to_string());
        // The script starts the peer of the file, but the code may have set another command.
        again.truncate(1);
        let mut text = console::failure_text(&outcome.result, self.peer.boundary.clauses(), &again);
        if let Some(detail) = outcome.result.verdict.undecided() {
            text.push_str(&detail);
        }
        text.extend(problem);
        text
    }

    fn scratch(&self) -> Option<PathBuf> {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.as_ref().map(|folder| folder.path().to_owned())
    }

    fn around<'a>(&'a self, scratch: &'a Path) -> Surroundings<'a> {
        Surroundings { actor_exe: &self.actor_exe, scratch, interrupted: &self.interrupted }
    }

    fn outcome(&self, check: &'static Check) -> Option<CheckOutcome> {
        let scratch = self.scratch()?;
        let outcome = Mutex::new(None);
        runner::run(&self.peer, &[check], &self.options, self.around(&scratch), &|done| {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, check: &'static Check) -> Result<Option<String>, Failed> {
        let mut outcome = self.outcome(check).ok_or("harness error: the check gave no result")?;
        let today = jiff::Zoned::now().date();
        let known = self.peer.boundary.checks().iter().map(|check| check.id.as_str());
        let mut stale = self.expectations.stale(std::slice::from_ref(&outcome.result), known, today);
        // Other tests report entries that are not about this check.
        stale.retain(
            |stale| matches!(&stale.why, StaleReason::Passes(id) | StaleReason::FailsOtherwise(id, _) if *id == check.id),
        );
        if let Some(stale) = stale.first() {
            return Err(format!("{DEFAULT_EXPECTATIONS}: {stale}").into());
        }
        self.expectations.apply(&mut outcome.result);
        match &outcome.result.verdict {
            Verdict::Pass | Verdict::Open(_) | Verdict::Expected(_) => Ok(None),
            verdict @ (Verdict::Untestable(_)
            | Verdict::NotClaimed(_)
            | Verdict::NotRun(_)
            | Verdict::Masked(_)) => {
                Ok(Some(format!("{}: {}", verdict.word(), verdict.detail().unwrap_or_default())))
            }
            _ => Err(self.told(outcome).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use peerproof_engine::data::blame::HarnessFault;
    use peerproof_engine::drive::machine::Replies;

    use super::*;

    const CONFIG: &str =
        "[peer]\nboundary = \"toolhost\"\nserve = [\"--serve\"]\nrun = [\"--run\", \"plugin\", \"{aid}\"]\n";

    const REQUESTS: &str = "toolhost/serve/request";

    fn suite(make: impl Fn(&[String]) -> Box<dyn Machine> + Send + Sync + 'static, filter: &str) -> Suite {
        let suite = Suite {
            config: Config::parse(CONFIG, "peerproof.toml", Path::new("."), &table::all()).unwrap(),
            file: PathBuf::from("peerproof.toml"),
            expectations: PathBuf::from("there-is-no-such-file.toml"),
            filters: Vec::new(),
            variables: BTreeMap::new(),
            machines: None,
        };
        suite.filter(filter).in_this_process(move |argv, _| make(argv))
    }

    /// Numbers of passing and failing tests, and the failure that no test reported.
    fn tally(suite: Suite) -> (usize, Vec<String>, Option<String>) {
        let (trials, shared) = prepare(suite, &Arguments::default()).unwrap();
        let names: Vec<&str> = trials.iter().map(Trial::name).collect();
        let checks =
            shared.0.peer.boundary.checks().iter().filter(|check| names.contains(&check.id.as_str()));
        let ends: Vec<_> = checks.map(|check| shared.0.test(check)).collect();
        let passed = ends.iter().filter(|end| matches!(end, Ok(Completion::Completed))).count();
        let failed = ends.into_iter().filter_map(|end| end.err()?.message().map(str::to_owned));
        (passed, failed.collect(), shared.0.untold())
    }

    #[cfg(feature = "reference")]
    #[test]
    fn peers_in_this_process_pass_and_fail_as_any_other() {
        let toolhost = table::played(table::find("toolhost").unwrap());
        let right = move |argv: &[String]| toolhost.reference_machine(argv, &[]).unwrap();
        let (passed, failed, untold) = tally(suite(right, REQUESTS));
        assert!(passed > 5 && failed.is_empty() && untold.is_none(), "{passed} {failed:?} {untold:?}");
        let wrong = move |argv: &[String]| {
            let argv: Vec<String> =
                argv.iter().cloned().chain(["--mutant", "defaults-aid"].map(str::to_owned)).collect();
            toolhost.reference_machine(&argv, &[]).unwrap()
        };
        let (passed, failed, untold) = tally(suite(wrong, REQUESTS));
        assert!(passed > 5 && untold.is_none(), "{passed} {untold:?}");
        for part in ["TH-REQ-02", "→ {}", "expected", "got ", "again     peerproof replay /"] {
            assert!(failed.iter().any(|text| text.contains(part)), "{part:?} is not in {failed:#?}");
        }
    }

    #[test]
    fn a_dead_command_fails_once() {
        let dead = |_: &[String]| -> Box<dyn Machine> { Box::new(Replies(|_: &[u8]| b"no\n".to_vec())) };
        let (passed, failed, untold) = tally(suite(dead, REQUESTS));
        assert_eq!((passed, failed.len()), (0, 0), "{failed:?}");
        let untold = untold.unwrap();
        assert!(untold.contains("got no answer") && untold.contains("← no"), "{untold}");
        let (passed, failed, untold) =
            tally(suite(dead, REQUESTS).filter("toolhost/serve/canary/plain-request"));
        assert_eq!((passed, failed.len(), untold), (0, 1, None), "{failed:?}");
    }

    #[cfg(feature = "reference")]
    #[test]
    fn a_run_that_decides_nothing_fails_with_the_reason() {
        let toolhost = table::played(table::find("toolhost").unwrap());
        let right = move |argv: &[String]| toolhost.reference_machine(argv, &[]).unwrap();
        let (_, failed, untold) = tally(suite(right, "toolhost/serve/limits/memory-*"));
        assert_eq!(failed.len(), 0, "{failed:?}");
        let untold = untold.unwrap();
        assert!(
            untold.contains("no check reached a verdict") && untold.contains("needs a real process"),
            "{untold}"
        );
    }

    #[test]
    fn one_run_of_nextest_asks_a_peer_once() {
        let dir = tempfile::tempdir().unwrap();
        let starts = dir.path().join("starts");
        let script = format!("echo >> {}; exec cat", starts.display());
        let config = format!("[peer]\nboundary = \"toolhost\"\nserve = [\"/bin/sh\", \"-c\", {script:?}]\n");
        let known = Config::parse(&config, "peerproof.toml", Path::new("."), &table::all()).unwrap();
        let peer = || known.clone().peer(&BTreeMap::new()).unwrap();
        let file = once::file(&dir.path().join("tests"), &peer());
        let interrupted = Arc::default();
        let actor_exe = ActorExe::new("/nowhere");
        let around = Surroundings { actor_exe: &actor_exe, scratch: dir.path(), interrupted: &interrupted };
        let asked = |run: &str| {
            let peer = peer();
            let ask = || runner::probe(&peer, &Options::default(), around);
            let probes = once::asked(&file, run, &peer, ask).unwrap();
            let told: Vec<_> = probes.into_iter().map(|probe| (probe.plan, probe.events)).collect();
            (told, peer.pace.all(), std::fs::read_to_string(&starts).unwrap().len())
        };
        let first = asked("a");
        assert!(first.2 > 0 && !first.0.is_empty());
        assert_eq!(asked("a"), first, "nobody asks again");
        assert!(asked("b").2 > first.2, "another run asks");
        std::fs::write(&file, "cut").unwrap();
        assert!(asked("b").2 > 2 * first.2, "what was cut is not believed");
    }

    #[test]
    fn the_status_goes_by_whose_fault_it_is() {
        let status = |error: SuiteError| error.status();
        assert_eq!(status(Suite::from_config("there-is-no-such-file.toml").err().unwrap()), 2);
        assert_eq!(status(Unprepared::from(Misconfigured::from("no such program")).into()), 2);
        assert_eq!(status(Unprepared::from(HarnessFault::from("no room")).into()), 70);
    }

    #[test]
    fn a_list_starts_no_peer() {
        let args = Arguments { list: true, ..Arguments::default() };
        let (trials, _shared) =
            prepare(suite(|_| unreachable!("a list needs no peer"), REQUESTS), &args).unwrap();
        assert!(trials.len() > 5);
    }

    #[test]
    fn a_filter_that_takes_nothing_is_refused() {
        let suite = suite(|_| unreachable!(), REQUESTS).filter("toolhost/serve/nothing-of-the-kind");
        let error = prepare(suite, &Arguments::default()).err().unwrap();
        assert!(
            matches!(&error, SuiteError::Configuration(sentence) if sentence.contains("matches no check"))
        );
    }
}

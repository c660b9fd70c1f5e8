//! `run-log`: the reference replayer and the reference runner.
//!
//! ```text
//! run-log replayer LOG PEER [--plugin NAME] [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! run-log runner REQUEST LOG PEER [the same]
//! ```
//!
//! `MACHINA_TOOLHOST_TIMEOUT` limits each execution of a tool. The variables `MACHINA_POLICY_*`, `MACHINA_PROFILE`,
//! `MACHINA_ROOT` and `PATH` configure the runner's selector.

use std::fs::File;
use std::time::Duration;

use super::StartError;
use super::complain;
use super::dispatcher::{Careful, Handling, Launcher, TIMEOUT_VARIABLE, run_with_launcher};
use super::policy_selector::{self, Disk};
use crate::dispatcher::{self, FractionalTimeout};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::policy_driver::settings::Settings;
use crate::policy_driver::{Parts, Selector, SelectorChoices, SelectorConfig, environment};
use crate::run_log::mutants::replayer::ReplayerFault;
use crate::run_log::mutants::{closed, runner};
use crate::run_log::{Config, CorrectDecisions, Replayer, Runner, RunnerParts};

/// Exit status for invalid arguments, and for an unreadable log or request.
const STATUS_USAGE: i32 = 2;

/// Exit status after an I/O error on the standard streams or a runner's log.
const STATUS_STREAMS: i32 = 70;

/// Longest time of one re-run in ms, even if [`TIMEOUT_VARIABLE`] allows more.
const RERUN_MS_MAX: u64 = 60_000;

/// Time that a mutant keeps running after its verdict.
const STAYS: Duration = Duration::from_secs(4);

/// Interval at which a mutant reads the log of the correct runner.
const LOOKS_EVERY: Duration = Duration::from_millis(1);

const USAGE: &str = "usage: run-log replayer LOG PEER | run-log runner REQUEST LOG PEER \
                     [--plugin NAME]... [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Parsed command line.
#[derive(Debug)]
pub enum Command {
    /// Replay a log.
    Replay {
        /// Path of the log.
        log: String,
        /// Configuration.
        config: Config,
    },
    /// Make a run and write its log.
    Run {
        /// Path of the request.
        request: String,
        /// Path of the log, which must not exist.
        log: String,
        /// Configuration.
        config: Config,
    },
}

/// Constructors of the machines to run.
pub struct Peers<'a> {
    /// Creates a replayer.
    pub replayer: &'a dyn Fn(Config) -> Box<dyn Machine>,
    /// Creates a runner with this selector.
    pub runner: &'a dyn Fn(Config, Box<dyn Machine + Send>) -> Box<dyn Machine>,
}

impl Peers<'_> {
    /// Constructors of the correct machines.
    pub const CORRECT: Self = Self {
        replayer: &|config| Box::new(Replayer::new(config, Box::new(CorrectDecisions))),
        runner: &|config, selector| Box::new(Runner::new(config, RunnerParts::new(selector))),
    };
}

/// Runs the peer that `arguments` name, those after the `run-log` word, and returns its exit status: 0 or 1 by the
/// verdict of a replayer, 0 at the end of a runner's run, 2 for invalid arguments, requests and logs, 70 after an I/O
/// error, 143 after SIGTERM.
///
/// `variables` is the environment. `shim` holds the arguments that make this program the shim of
/// [`super::policy_exec`].
pub fn run_run_log(
    arguments: &[String],
    variables: &[(String, String)],
    shim: &[&str],
    peers: &Peers<'_>,
) -> i32 {
    run_run_log_with(arguments, variables, shim, peers, Box::new(Careful))
}

/// [`run_run_log`] with this handling of drivers.
pub(super) fn run_run_log_with(
    arguments: &[String],
    variables: &[(String, String)],
    shim: &[&str],
    peers: &Peers<'_>,
    handling: Box<dyn Handling>,
) -> i32 {
    let (status, error) = match parse(arguments, variables) {
        Ok(command) => match run(command, variables, shim, peers, handling) {
            Ok(status) => return status,
            Err(failure) => failure,
        },
        Err(error) => (STATUS_USAGE, error),
    };
    complain(&format!("run-log: {error}"));
    status
}

fn run(
    command: Command,
    variables: &[(String, String)],
    shim: &[&str],
    peers: &Peers<'_>,
    handling: Box<dyn Handling>,
) -> Result<i32, (i32, StartError)> {
    let streams = |error: std::io::Error| (STATUS_STREAMS, error.into());
    match command {
        Command::Replay { log, config } => {
            read_from(&log)?;
            let mut machine = (peers.replayer)(config);
            run_with_launcher(&mut *machine, Launcher::without_drivers(handling)).map_err(streams)
        }
        Command::Run { request, log, config } => {
            read_from(&request)?;
            let selector = selector(&config.limits, variables).map_err(|error| (STATUS_USAGE, error))?;
            let launcher = policy_selector::launcher(variables, shim, handling, &environment::passes);
            let launcher = launcher.map_err(|error| (STATUS_STREAMS, error))?;
            let mut machine = (peers.runner)(config, selector);
            run_with_launcher(&mut *machine, Launcher { appended: Some(log.into()), ..launcher })
                .map_err(streams)
        }
    }
}

/// Runs the correct replayer with a fault around it, and returns the exit status. The log is the last but one
/// argument.
pub fn run_around(fault: ReplayerFault, correct: &[String], variables: &[(String, String)]) -> i32 {
    use std::io::Write as _;
    use std::process::Command as Process;

    let log = correct.len().checked_sub(2).and_then(|at| correct.get(at)).map_or("", String::as_str);
    let run = |argv: &[String]| {
        let (program, arguments) = argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok::<_, std::io::Error>(
            Process::new(program).args(arguments).status()?.code().unwrap_or(STATUS_STREAMS),
        )
    };
    let done = match fault {
        ReplayerFault::StartsPolicy => {
            let policy = variables.iter().find(|(name, _)| name == "MACHINA_POLICY_CMD");
            let words = |command: &str| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let _ = policy.map(|(_, command)| run(&words(command)));
            run(correct)
        }
        ReplayerFault::ChangesLog => run(correct).inspect(|_| {
            let file = File::options().append(true).open(log);
            let _ = file.and_then(|mut file| file.write_all(b"\n"));
        }),
        ReplayerFault::TakesNoLog if !std::path::Path::new(log).is_file() => {
            writeln!(std::io::stdout(), "REPLAY_STRICT OK").map(|()| 0)
        }
        ReplayerFault::TakesNoLog => run(correct),
        ReplayerFault::StaysOn => run(correct).inspect(|_| std::thread::sleep(STAYS)),
    };
    done.unwrap_or(STATUS_STREAMS)
}

/// Runs the correct runner with a fault around it, and returns the exit status. The log is the last but one argument.
pub fn run_around_runner(fault: runner::RunnerFault, correct: &[String]) -> i32 {
    let runner::RunnerFault::ClosesLog = fault;
    let made = || -> std::io::Result<i32> {
        let mut argv = correct.to_vec();
        let at = argv.len().checked_sub(2).ok_or(std::io::ErrorKind::InvalidInput)?;
        let log = argv[at].clone();
        argv[at] += ".open";
        let mut child = std::process::Command::new(&argv[0]).args(&argv[1..]).spawn()?;
        let status = loop {
            let ended = child.try_wait()?;
            if let Ok(text) = std::fs::read(&argv[at]) {
                std::fs::write(&log, closed(&text))?;
            }
            match ended {
                Some(status) => break status.code().unwrap_or(STATUS_STREAMS),
                None => std::thread::sleep(LOOKS_EVERY),
            }
        };
        std::fs::remove_file(&argv[at])?;
        Ok(status)
    };
    made().unwrap_or(STATUS_STREAMS)
}

/// Redirects standard input from a file.
fn read_from(path: &str) -> Result<(), (i32, StartError)> {
    let file = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() { Err(std::io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
    });
    let placed = file.and_then(|file| Ok(rustix::stdio::dup2_stdin(file)?));
    placed.map_err(|error| (STATUS_USAGE, StartError::file("", path.as_ref())(error)))
}

/// Selector of a runner, configured by the environment.
fn selector(limits: &Limits, variables: &[(String, String)]) -> Result<Box<dyn Machine + Send>, StartError> {
    let choices = SelectorChoices::default();
    let variable =
        |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let settings = Settings::read(&variable, limits, &choices)?;
    let config =
        SelectorConfig { settings, choices, limits: limits.clone(), patches: true, merged_inputs: false };
    let parts = Parts::new(&config, Box::new(Disk));
    Ok(Box::new(Selector::new(config, parts)))
}

/// Reads the arguments and [`TIMEOUT_VARIABLE`].
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String], variables: &[(String, String)]) -> Result<Command, StartError> {
    let mut config = Config::new("");
    let timeout = variables.iter().find(|(name, _)| name == TIMEOUT_VARIABLE);
    if let Some((_, seconds)) = timeout {
        let mut dispatcher = dispatcher::Config::new("");
        dispatcher.read_timeout(seconds, FractionalTimeout::Number);
        config.limits.toolhost_timeout_ms = dispatcher.limits.toolhost_timeout_ms;
    }
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--plugin" => value()?.clone_into(&mut config.plugin),
            "--choice" | "--limit" => {
                let choose = |name: &str, value: &str| config.choices.set(name, value);
                super::set(argument, value()?, choose, &mut config.limits)?;
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            word => words.push(word.to_owned()),
        }
    }
    let peer = words.pop().ok_or(USAGE)?;
    config.peer = if peer.contains('/') { peer } else { format!("./{peer}") };
    match &words[..] {
        [word, log] if word == "replayer" => {
            config.limits.toolhost_timeout_ms = config.limits.toolhost_timeout_ms.min(RERUN_MS_MAX);
            Ok(Command::Replay { log: log.clone(), config })
        }
        [word, request, log] if word == "runner" => {
            config.run_seed = super::toolhost::random_seed()[..16].try_into().unwrap_or_default();
            Ok(Command::Run { request: request.clone(), log: log.clone(), config })
        }
        _ => Err(StartError::Usage(USAGE)),
    }
}

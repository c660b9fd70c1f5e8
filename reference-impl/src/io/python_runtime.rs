//! `python-tool runtime`: the reference runtime.
//!
//! ```text
//! python-tool runtime SCENARIO RESULTS [--without FEATURE]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::StartError;
use super::asking::{self, Careful, Ended, Handling, Posted};
use super::envelope_caller::Faulty;
use crate::limits::Limits;
use crate::python_tool::runtime::mutants::Mutant;
use crate::python_tool::runtime::{
    Choices, Config, End, Job, Parts, REPLY_BYTES_MAX, Runtime, RuntimeStep, Scenario, Target,
};

/// Argument that selects the runtime.
pub const WORD: &str = "runtime";

/// Exit status for invalid arguments or an invalid scenario.
const STATUS_USAGE: i32 = 2;

/// Exit status of a runtime that cannot write its results.
const STATUS_STREAMS: i32 = 70;

/// Largest scenario in bytes.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

const USAGE: &str = "usage: python-tool runtime SCENARIO RESULTS [--without FEATURE]... [--choice KEY=VALUE]... \
                     [--limit NAME=VALUE]...";

/// Runs the runtime, or a mutant of it, and returns its exit status: 0 after all calls, 2 for invalid arguments or an
/// invalid scenario, 70 if the results cannot be written.
///
/// `arguments` are those after the `runtime` word. `proxy` is the proxy that the environment names.
pub fn run_python_runtime(arguments: &[String], proxy: Option<String>, mutant: Option<&Mutant>) -> i32 {
    let faulty = mutant.and_then(|mutant| mutant.carrier_fault()).map(Faulty);
    let handling: &dyn Handling = match &faulty {
        Some(faulty) => faulty,
        None => &Careful,
    };
    let ready = parse(arguments).and_then(|(scenario, results, mut config)| {
        config.scenario = read(&scenario)?;
        config.proxy = proxy;
        let file = OpenOptions::new().append(true).create(true).open(&results);
        let file = file.map_err(StartError::file("cannot append to ", &results))?;
        let parts = mutant.map_or_else(Parts::default, |mutant| mutant.parts(&mut config));
        Ok((config, parts, file))
    });
    let (status, error) = match ready {
        Ok((config, parts, results)) => match run(config, parts, results, handling) {
            Ok(()) => return mutant.map_or(0, |mutant| mutant.status(0)),
            Err(error) => (STATUS_STREAMS, error.to_string()),
        },
        Err(error) => (STATUS_USAGE, error.to_string()),
    };
    super::complain(&format!("python-tool runtime: {error}"));
    status
}

fn run(config: Config, parts: Parts, mut results: File, handling: &dyn Handling) -> io::Result<()> {
    let (bytes_max, folder) = (config.reply_bytes_max, config.scenario.folder.clone().map(PathBuf::from));
    let mut runtime = Runtime::new(config, parts);
    let next = |came: Option<((usize, End), u64)>| {
        let mut jobs = Vec::new();
        let came = came.map(|((call, end), elapsed_ms)| runtime.end(call, end, elapsed_ms));
        let mut due = came.or_else(|| runtime.due());
        while let Some(one) = due {
            match one {
                RuntimeStep::Line(line) => results.write_all(&line)?,
                RuntimeStep::Job(job) => jobs.push(job),
            }
            due = runtime.due();
        }
        Ok(jobs)
    };
    asking::all(next, |job: Job| {
        let ends = (0..handling.times()).map(|_| work(&job, folder.as_deref(), bytes_max, handling));
        (job.call, ends.last().unwrap_or(End::Failed))
    })
}

/// Starts a program, or calls a service.
fn work(job: &Job, folder: Option<&Path>, bytes_max: usize, handling: &dyn Handling) -> End {
    let time = Duration::from_millis(job.timeout_ms);
    let argv = match &job.target {
        Target::Service(url) => {
            return match asking::post(url, &job.request, bytes_max, time, handling) {
                Posted::Failed => End::Failed,
                Posted::TimedOut => End::TimedOut,
                Posted::Unreadable => End::Unreadable,
                Posted::Replied(status, body) => End::Replied(status, body),
            };
        }
        Target::Local(argv) => argv.clone(),
        Target::Container(program, image, argv) => {
            let own = [program.as_str(), "run", "--rm", "--interactive", image];
            own.into_iter().map(str::to_owned).chain(argv.iter().cloned()).collect()
        }
    };
    let deadline = Instant::now() + time;
    let order = asking::Order { argv, stdin: job.request.clone(), deadline, stdout_bytes_max: bytes_max };
    match asking::run_in(folder, &order, handling) {
        Ended::NotStarted(_) => End::Failed,
        Ended::TimedOut => End::TimedOut,
        Ended::TooLarge => End::Unreadable,
        Ended::Exited(exit, output) => End::Exited(exit, output),
    }
}

fn read(path: &Path) -> Result<Scenario, StartError> {
    let failed = StartError::file("cannot read ", path);
    let mut text = Vec::new();
    let file = File::open(path).map_err(&failed)?;
    file.take(SCENARIO_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    Ok(Scenario::parse(&text)?)
}

/// Reads the arguments: the paths of scenario and results, and a configuration without a scenario.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<(PathBuf, PathBuf, Config), StartError> {
    let mut config = Config {
        scenario: Scenario::default(),
        choices: Choices::default(),
        limits: Limits::default(),
        reply_bytes_max: REPLY_BYTES_MAX,
        has_override: true,
        has_containers: true,
        proxy: None,
    };
    let mut files = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--without" => match value()?.as_str() {
                "container" => config.has_containers = false,
                "unsafe_override" => config.has_override = false,
                other => return Err(StartError::Other(format!("no feature is called {other:?}"))),
            },
            "--choice" | "--limit" => {
                let value = value()?;
                let (choices, limits) = (&mut config.choices, &mut config.limits);
                super::set(argument, value, |name, value| choices.set(name, value), limits)?;
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            file => files.push(PathBuf::from(file)),
        }
    }
    match <[PathBuf; 2]>::try_from(files) {
        Ok([scenario, results]) => Ok((scenario, results, config)),
        Err(files) => Err(StartError::Files { count: files.len(), usage: USAGE }),
    }
}

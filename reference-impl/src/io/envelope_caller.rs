//! `envelope caller`: the reference caller.
//!
//! ```text
//! envelope caller SCENARIO RESULTS [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::StartError;
use super::asking::{self, Careful, Ended, Handling, Posted};
use crate::envelope;
use crate::envelope_caller::mutants::{Fault, Mutant};
use crate::envelope_caller::{
    Caller, CallerStep, Choices, Config, End, Job, Parts, REPLY_BYTES_MAX, Scenario, Target,
};

/// Argument that selects the caller.
pub const WORD: &str = "caller";

/// Exit status for invalid arguments or an invalid scenario.
const STATUS_USAGE: i32 = 2;

/// Exit status of a caller that cannot write its results.
const STATUS_STREAMS: i32 = 70;

/// Largest scenario in bytes.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

/// Extension of the deadline after each chunk, in a mutant that restarts its time limit.
const ANEW: Duration = Duration::from_secs(1);

/// Extension of the deadline in a mutant whose time limit ends with the first chunk.
const FOR_EVER: Duration = Duration::from_secs(3_600);

const USAGE: &str = "usage: envelope caller SCENARIO RESULTS [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Runs the caller and returns its exit status: 0 after all calls, 2 for invalid arguments or an invalid scenario, 70
/// if the results cannot be written.
///
/// `arguments` are those after the `caller` word.
pub fn run_envelope_caller(arguments: &[String]) -> i32 {
    run_with(arguments, |_| Parts::default(), &Careful)
}

/// [`run_envelope_caller`] with requests respelled by `present`.
pub fn run_presented(arguments: &[String], present: impl Fn(Vec<u8>) -> Vec<u8> + 'static) -> i32 {
    run_with(arguments, |_| Parts { present: Box::new(present), ..Parts::default() }, &Careful)
}

/// [`run_envelope_caller`] with a mutant.
pub fn run_mutant(mutant: &Mutant, arguments: &[String]) -> i32 {
    let handling: &dyn Handling = match mutant.carrier_fault() {
        Some(fault) => &Faulty(fault),
        None => &Careful,
    };
    mutant.status(run_with(arguments, |config| mutant.parts(config), handling))
}

/// Behaviour of a caller with a fault.
pub(super) struct Faulty(pub(super) Fault);

impl Handling for Faulty {
    fn closes_stdin(&self) -> bool {
        self.0 != Fault::LeavesStdinOpen
    }

    fn reads_while_writing(&self) -> bool {
        self.0 != Fault::WritesFirst
    }

    fn reads_stderr(&self) -> bool {
        self.0 != Fault::LeavesStderr
    }

    fn mixes_stderr(&self) -> bool {
        self.0 == Fault::MixesStderr
    }

    fn deadline(&self, deadline: Instant) -> Instant {
        match self.0 {
            Fault::WaitsAnew => deadline.max(Instant::now() + ANEW),
            Fault::CutsSilence => deadline.min(Instant::now() + ANEW),
            Fault::WaitsForTheHead => deadline.max(Instant::now() + FOR_EVER),
            _ => deadline,
        }
    }

    fn outlasts_writing(&self) -> bool {
        self.0 == Fault::OutlastsWriting
    }

    fn piece<'a>(&self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        match self.0 {
            Fault::MendsPieces => Cow::Owned(String::from_utf8_lossy(piece).into_owned().into_bytes()),
            _ => Careful.piece(piece),
        }
    }

    fn takes_held(&self) -> bool {
        self.0 != Fault::WaitsForPipe
    }

    fn outwaits_pipe(&self) -> bool {
        self.0 == Fault::OutwaitsPipe
    }

    fn kill(&self, child: &mut Child, group: Option<Pid>) {
        match (self.0, group) {
            (Fault::KillsOne, _) => drop(child.kill()),
            (Fault::AsksToEnd, Some(group)) => drop(kill_process_group(group, Signal::TERM)),
            _ => Careful.kill(child, group),
        }
    }

    fn outwaits_exit(&self) -> bool {
        self.0 == Fault::OutwaitsExit
    }

    fn fails_unread(&self) -> bool {
        self.0 == Fault::FailsUnread
    }

    fn posts_lost_again(&self) -> bool {
        self.0 == Fault::PostsLostAgain
    }

    fn times(&self) -> usize {
        if self.0 == Fault::CallsTwice { 2 } else { 1 }
    }

    fn content_type(&self) -> &'static str {
        if self.0 == Fault::PostsText { "text/plain" } else { Careful.content_type() }
    }

    fn follows(&self) -> bool {
        self.0 == Fault::Follows
    }

    fn takes_cut(&self) -> bool {
        self.0 == Fault::TakesCut
    }
}

/// Runs a caller with other parts. `parts` may change the configuration.
fn run_with(arguments: &[String], parts: impl FnOnce(&mut Config) -> Parts, handling: &dyn Handling) -> i32 {
    let ready = parse(arguments).and_then(|(scenario, results, mut config)| {
        config.scenario = read(&scenario)?;
        let file = OpenOptions::new().append(true).create(true).open(&results);
        let file = file.map_err(StartError::file("cannot append to ", &results))?;
        let parts = parts(&mut config);
        Ok((config, parts, file))
    });
    match ready {
        Ok((config, parts, results)) => match run(config, parts, results, handling) {
            Ok(()) => 0,
            Err(error) => {
                super::complain(&format!("envelope caller: {error}"));
                STATUS_STREAMS
            }
        },
        Err(error) => {
            super::complain(&format!("envelope caller: {error}"));
            STATUS_USAGE
        }
    }
}

fn run(config: Config, parts: Parts, mut results: File, handling: &dyn Handling) -> io::Result<()> {
    let bytes_max = config.reply_bytes_max;
    let mut caller = Caller::new(config, parts);
    let next = |came: Option<((usize, End), u64)>| {
        if let Some(((call, end), elapsed_ms)) = came {
            results.write_all(&caller.end(call, end, elapsed_ms))?;
        }
        let mut jobs = Vec::new();
        while let Some(due) = caller.due() {
            match due {
                CallerStep::Line(line) => results.write_all(&line)?,
                CallerStep::Job(job) => jobs.push(job),
            }
        }
        Ok(jobs)
    };
    asking::all(next, |job: Job| {
        let ends = (0..handling.times()).map(|_| work(&job, bytes_max, handling));
        (job.call, ends.last().unwrap_or(End::Failed))
    })
}

/// Sends one envelope to its target and returns the end of the exchange.
fn work(job: &Job, bytes_max: usize, handling: &dyn Handling) -> End {
    match &job.target {
        Target::Program(argv) => {
            let order = asking::Order {
                argv: argv.clone(),
                stdin: job.request.clone(),
                deadline: Instant::now() + Duration::from_millis(job.timeout_ms),
                stdout_bytes_max: bytes_max,
            };
            match asking::run(&order, handling) {
                Ended::NotStarted(_) => End::Failed,
                Ended::TimedOut => End::TimedOut,
                Ended::TooLarge => End::Unreadable,
                Ended::Exited(exit, output) => End::Exited(exit, output),
            }
        }
        Target::Server(url) => {
            let time = Duration::from_millis(job.timeout_ms);
            match asking::post(url, &job.request, bytes_max, time, handling) {
                Posted::Replied(status, body) => End::Replied(status, body),
                Posted::TimedOut => End::TimedOut,
                Posted::Unreadable => End::Unreadable,
                Posted::Failed => End::Failed,
            }
        }
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
        engine: envelope::Config::default(),
        reply_bytes_max: REPLY_BYTES_MAX,
    };
    let mut files = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--choice" | "--limit" => {
                let value = arguments.next().ok_or_else(|| StartError::no_value(argument))?;
                let (choices, limits) = (&mut config.choices, &mut config.engine.limits);
                super::set(argument, value, |name, value| choices.set(name, value), limits)?;
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            file => files.push(PathBuf::from(file)),
        }
    }
    config.engine.choices.duplicate_keys = config.choices.duplicate_keys;
    config.engine.choices.lone_surrogates = config.choices.lone_surrogates;
    config.engine.choices.big_integers = config.choices.big_integers;
    match <[PathBuf; 2]>::try_from(files) {
        Ok([scenario, results]) => Ok((scenario, results, config)),
        Err(files) => Err(StartError::Files { count: files.len(), usage: USAGE }),
    }
}

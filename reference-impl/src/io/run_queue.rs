//! `run_queue`: the reference worker, its HTTP adapter, the enqueuing tool, and the Genesis tools.
//!
//! ```text
//! run_queue worker QUEUE [--once] [--runner PROGRAM | --toolhost PROGRAM]
//! run_queue http --queue QUEUE --port PORT [--host HOST] [--token-env NAME | --token TOKEN]
//! run_queue enqueue (--run [PLUGIN] AID | --serve [PLUGIN]) [--queue QUEUE]
//! run_queue genesis (--run [PLUGIN] AID | --serve [PLUGIN]) [--root FOLDER]
//! ```
//!
//! All take `--choice KEY=VALUE`, `--limit NAME=VALUE`, and `--mutant ID`, which breaks a clause. The worker also
//! takes `--attempts N`, `--retry-ms N` and `--poll-ms N`. A worker without a runner makes each job a run of
//! [`super::run_log`], with the policy driver of the variables `MACHINA_POLICY_*`. `MACHINA_QUEUE` and `MACHINA_ROOT`
//! are the defaults of `--queue` and `--root`. With `MACHINA_GENESIS_NO_COMPILER` there is no compiler.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::StartError;
use super::complain;
use super::dispatcher::{Careful, Handling};
use super::faults::misbehave;
use super::http_faults::faulty;
use super::http_server::{HttpReply, Plain, Service, serve};
use super::json_rpc::unix_ms;
use super::run_log::{Peers, run_run_log_with};
use super::run_queue_disk::{Folder, Following};
use super::run_queue_genesis::{Bench, starting};
use super::run_queue_worker::{Nothing, OwnStdin, Program, Streams, Unread, work};
use super::stdio::run_machine;
use super::toolhost::random_seed;
use crate::http::HttpRequest;
use crate::machine::Machine;
use crate::run_log::choices::Verdict;
use crate::run_queue::mutants::{self, Carried, Mutant};
use crate::run_queue::{Adapter, Config, ENQUEUE_AID, EnqueueTool, Parts, Worker, genesis};
use crate::toolhost::{self, Components, Mode, ToolTable, machine_with};

/// Environment variable that hides the compiler from the Genesis tools.
const NO_COMPILER: &str = "MACHINA_GENESIS_NO_COMPILER";

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

const USAGE: &str = "usage: run_queue worker QUEUE [--once] [--runner PROGRAM | --toolhost PROGRAM] | \
                     run_queue http --queue QUEUE --port PORT [--host HOST] [--token-env NAME] | \
                     run_queue (enqueue [--queue QUEUE] | genesis [--root FOLDER]) (--run [PLUGIN] AID | --serve [PLUGIN])";

/// Argument with which a worker starts this program to run a job through the policy driver.
pub const JOB: &str = "job";
/// Variant of [`JOB`] whose driver gets the job as its standard input.
const JOB_AS_INPUT: &str = "job-as-input";

/// Parsed command line.
#[derive(Debug, Default)]
struct Arguments {
    config: Config,
    operands: Vec<String>,
    once: bool,
    serve: bool,
    run: bool,
    runner: Option<String>,
    peer: Option<String>,
    queue: Option<String>,
    root: Option<String>,
    port: Option<u16>,
    host: Option<String>,
    mutant: Option<String>,
}

/// Runs the peer that `arguments` name, those after the `run_queue` word, and returns its exit status: 2 for invalid
/// arguments, 70 after an I/O error, 3 for a second worker where only one is allowed.
///
/// `variables` is the environment. `shim` holds the arguments that make this program the shim of
/// [`super::policy_exec`], `own` those that select this function.
pub fn run_run_queue(
    arguments: &[String],
    variables: &[(String, String)],
    shim: &[&str],
    own: &[&str],
) -> i32 {
    let result = match arguments.split_first() {
        Some((word, rest)) if word == JOB || word == JOB_AS_INPUT => {
            // SIGTERM at the worker's end makes this process end its driver and itself.
            let _ = set_parent_process_death_signal(Some(Signal::TERM));
            let words = [&["runner".to_owned(), "/dev/stdin".to_owned()], rest].concat();
            let handling: Box<dyn Handling> =
                if word == JOB { Box::new(Careful) } else { Box::new(JobAsInput) };
            return run_run_log_with(&words, variables, shim, &Peers::CORRECT, handling);
        }
        Some((role, rest)) => parse(rest, variables).and_then(|parsed| run(role, parsed, variables, own)),
        None => Err(StartError::Usage(USAGE)),
    };
    result.unwrap_or_else(|error| {
        complain(&format!("run_queue: {error}"));
        STATUS_USAGE
    })
}

/// Moves each job of a queue to `done/` once it has been in the inbox for the given time.
fn take_jobs(queue: PathBuf, after: Duration) {
    std::thread::spawn(move || {
        loop {
            super::faults::pause(after / 10);
            for entry in std::fs::read_dir(queue.join("inbox")).into_iter().flatten().flatten() {
                let came = entry.metadata().and_then(|it| it.modified());
                if came.is_ok_and(|came| came.elapsed().is_ok_and(|age| age >= after)) {
                    let _ = std::fs::rename(entry.path(), queue.join("done").join(entry.file_name()));
                }
            }
        }
    });
}

fn run(
    role: &str,
    mut arguments: Arguments,
    variables: &[(String, String)],
    own: &[&str],
) -> Result<i32, StartError> {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    arguments.config.seed = random_seed().iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    arguments.config.started_unix_ms = unix_ms();
    // With SIGXFSZ caught, a write beyond the file size limit fails with an error, and this process goes on.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let mutant = match arguments.mutant.take() {
        None => None,
        Some(id) => Some(
            mutants::find(role, &id)
                .ok_or_else(|| StartError::Other(format!("{role} has no mutant {id:?}")))?,
        ),
    };
    if let Some(fault) = mutant.and_then(|mutant| mutant.shell_fault()) {
        misbehave(fault, variable("TMPDIR").map(PathBuf::from))?;
    }
    let operands = std::mem::take(&mut arguments.operands);
    match (role, &operands[..]) {
        ("worker", [queue]) => run_worker(queue, arguments, mutant, own),
        ("http", []) => run_adapter(arguments, mutant, &variable),
        ("enqueue" | "genesis", operands) => run_toolhost(role, operands, arguments, mutant, &variable),
        _ => Err(StartError::Usage(USAGE)),
    }
}

fn run_worker(
    queue: &str,
    arguments: Arguments,
    mutant: Option<Mutant>,
    own: &[&str],
) -> Result<i32, StartError> {
    let mut config = arguments.config;
    config.once = arguments.once;
    let queue = absolute(queue)?;
    let fault = mutant.and_then(|mutant| mutant.carrier_fault());
    let program = match (arguments.runner, arguments.peer) {
        (Some(_), Some(_)) => {
            return Err(StartError::Exclusive("--runner".to_owned(), "--toolhost".to_owned()));
        }
        (Some(runner), None) if fault == Some(Carried::SplitsRunner) => {
            Program::Runner(absolute(runner.split(' ').next().unwrap_or_default())?)
        }
        (Some(runner), None) => Program::Runner(absolute(&runner)?),
        (None, _) if fault == Some(Carried::NoDriver) => Program::Runner("/bin/true".into()),
        (None, peer) => {
            let peer = peer.map(|peer| absolute(&peer)).transpose()?;
            let word = if fault == Some(Carried::DriverInput) { JOB_AS_INPUT } else { JOB };
            Program::policy(&[own, &[word]].concat(), &queue, peer.as_deref())?
        }
    };
    let folder = Folder::new(&queue);
    let parts = Parts::new(match fault {
        Some(Carried::MovesTargets) => Box::new(Following(folder)),
        _ => Box::new(folder),
    });
    let machine: Box<dyn Machine + Send> = match &mutant {
        Some(mutant) => mutants::worker(mutant, config, parts),
        None => Box::new(Worker::new(config, parts)),
    };
    let streams: &dyn Streams = match fault {
        Some(Carried::OwnStdin) => &OwnStdin,
        Some(Carried::UnreadOutput) => &Unread,
        _ => &Nothing,
    };
    Ok(work(machine, &queue, &program, streams))
}

fn run_adapter(
    arguments: Arguments,
    mutant: Option<Mutant>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<i32, StartError> {
    let mut config = arguments.config;
    let queue = arguments.queue.or_else(|| variable("MACHINA_QUEUE")).ok_or(USAGE)?;
    let host = arguments.host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let mut parts = Parts::new(Box::new(Folder::new(&absolute(&queue)?)));
    if let Some(mutant) = &mutant {
        mutants::change(mutant, &mut config, &mut parts);
    }
    let address = resolve(&host, arguments.port.ok_or(USAGE)?)?;
    if config.token.is_none() && !parts.ways.is_near(address.ip()) {
        return Err(StartError::Other(format!(
            "{host} can be reached from elsewhere: a token is needed, see --token-env"
        )));
    }
    if mutant.and_then(|mutant| mutant.carrier_fault()) == Some(Carried::TakesJobs) {
        take_jobs(absolute(&queue)?, Duration::from_secs(1));
    }
    let front = match mutant.and_then(|mutant| mutant.carrier_fault()) {
        Some(Carried::Http(fault)) => faulty(fault),
        _ => Box::new(Plain),
    };
    let bytes_max = config.limits.stdin_bytes_max;
    let service = Served {
        takes_length: config.choices.length_and_chunked == Verdict::Accept,
        adapter: Mutex::new(Adapter::new(config, parts)),
    };
    Ok(serve("run_queue", address, bytes_max, Box::new(service), front))
}

/// Runs a toolhost with the enqueue tool or with the Genesis tools.
fn run_toolhost(
    role: &str,
    operands: &[String],
    arguments: Arguments,
    mutant: Option<Mutant>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<i32, StartError> {
    let mut config = arguments.config;
    let mode = match (arguments.run, arguments.serve, operands) {
        (true, false, [aid] | [_, aid]) => Mode::Run { aid: aid.clone() },
        (false, true, [] | [_]) => Mode::Serve,
        _ => return Err(StartError::Usage(USAGE)),
    };
    let mut host = toolhost::Config::new(mode);
    host.limits = config.limits.clone();
    host.choices.duplicate_keys = config.choices.duplicate_keys;
    host.choices.lone_surrogates = config.choices.lone_surrogates;
    host.choices.big_integers = config.choices.big_integers;
    let mut tools = ToolTable::default();
    if role == "enqueue" {
        let queue = arguments.queue.or_else(|| variable("MACHINA_QUEUE")).ok_or(USAGE)?;
        let mut parts = Parts::new(Box::new(Folder::new(&absolute(&queue)?)));
        if let Some(mutant) = &mutant {
            mutants::change(mutant, &mut config, &mut parts);
        }
        tools.add(ENQUEUE_AID, 0, EnqueueTool::new(config, parts));
    } else {
        let root = arguments.root.or_else(|| variable("MACHINA_ROOT")).ok_or(USAGE)?;
        let root = absolute(&root)?;
        let mut parts = Parts::new(Box::new(Folder::new(&root)));
        if variable(NO_COMPILER).is_none() {
            let fault = mutant.and_then(|mutant| mutant.carrier_fault());
            parts.bench = Box::new(Bench::new(&root, starting(fault)));
        }
        if let Some(mutant) = &mutant {
            mutants::change(mutant, &mut config, &mut parts);
        }
        let aid = match &host.mode {
            Mode::Run { aid } => Some(aid.as_str()),
            Mode::Serve => None,
        };
        genesis::add(&mut tools, &config, parts, aid);
    }
    let status = host.mode.status_terminated();
    let parts = Components { tools, ..Components::new(&host) };
    let machine = machine_with(host, parts);
    Ok(run_machine(
        match mutant.and_then(|mutant| mutant.wrapping()) {
            Some(wrapping) => wrapping(machine),
            None => machine,
        },
        status,
    ))
}

/// Absolute form of a path.
fn absolute(path: &str) -> Result<PathBuf, StartError> {
    std::path::absolute(path).map_err(StartError::file("", Path::new(path)))
}

/// Socket address of a host name or IP address.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, StartError> {
    let found = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, port)),
        Err(_) => (host, port).to_socket_addrs().ok().and_then(|mut found| found.next()),
    };
    found.ok_or_else(|| StartError::Other(format!("{host:?} is no address")))
}

/// A faulty handling that passes the job, this process' standard input, on to the driver.
struct JobAsInput;

impl Handling for JobAsInput {
    fn stdin(&self, _payload: &Path) -> Stdio {
        // Opening it by name gives a new file offset, at the beginning of the job.
        File::open("/dev/stdin").map_or_else(|_| Stdio::null(), Stdio::from)
    }
}

/// HTTP service of the adapter.
struct Served {
    takes_length: bool,
    adapter: Mutex<Adapter>,
}

impl Service for Served {
    fn respond(&self, request: &HttpRequest) -> HttpReply {
        let (status, body) = self.adapter.lock().unwrap_or_else(PoisonError::into_inner).answer(request);
        HttpReply::json(status, body, request.keeps_open)
    }

    fn takes_length_beside_chunks(&self) -> bool {
        self.takes_length
    }
}

/// True if these options are valid.
pub fn takes(options: &[String]) -> bool {
    parse(options, &[]).is_ok()
}

fn parse(arguments: &[String], variables: &[(String, String)]) -> Result<Arguments, StartError> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().cloned().ok_or_else(|| StartError::no_value(argument));
        let number = |text: String| -> Result<u64, StartError> {
            text.parse().map_err(|_| StartError::value(argument, "a whole number", &text))
        };
        match argument.as_str() {
            "--once" => parsed.once = true,
            "--serve" => parsed.serve = true,
            "--run" => parsed.run = true,
            "--runner" => parsed.runner = Some(value()?),
            "--toolhost" => parsed.peer = Some(value()?),
            "--queue" => parsed.queue = Some(value()?),
            "--root" => parsed.root = Some(value()?),
            "--host" => parsed.host = Some(value()?),
            "--mutant" => parsed.mutant = Some(value()?),
            "--port" => {
                parsed.port = Some(
                    u16::try_from(number(value()?)?)
                        .map_err(|_| StartError::Other("no such port".to_owned()))?,
                )
            }
            "--attempts" => parsed.config.attempts = number(value()?)?,
            "--retry-ms" => parsed.config.retry_ms = number(value()?)?,
            "--poll-ms" => parsed.config.poll_ms = number(value()?)?,
            // Only the names are checked: other options decide about these features.
            "--without" => match value()?.as_str() {
                "token" | "genesis" => {}
                other => {
                    return Err(StartError::Other(format!("there is no feature {other:?} to be without")));
                }
            },
            "--token" => parsed.config.token = Some(value()?).filter(|token| !token.is_empty()),
            "--token-env" => {
                let name = value()?;
                let token =
                    variables.iter().find(|(known, _)| *known == name).map(|(_, token)| token.clone());
                parsed.config.token = token.filter(|token| !token.is_empty());
                if parsed.config.token.is_none() {
                    return Err(StartError::Other(format!("{name} holds no token")));
                }
            }
            "--choice" | "--limit" => {
                let value = value()?;
                let Config { choices, limits, .. } = &mut parsed.config;
                super::set(argument, &value, |name, value| choices.set(name, value), limits)?;
            }
            option if option.starts_with("--") => return Err(StartError::option(option, Some(USAGE))),
            operand => parsed.operands.push(operand.to_owned()),
        }
    }
    Ok(parsed)
}

//! Figures of the run_queue boundary.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, turns};
use peerproof_benches::pipe::Pipe;
use peerproof_benches::spread::Spread;
use peerproof_benches::{pick, played};
use rustix::process::{Pid, Signal, kill_process};

/// Number of jobs per turn.
const TURN: u32 = 20;
/// Number of jobs per run of a worker.
const RUN: u32 = 200;
/// Number of waiting jobs.
const WAITING: u32 = 100_000;

const AID: &str = "AID.QUEUE.ENQUEUE.v1";
const JOB: &[u8] = b"{\"goal_id\":\"g\",\"inputs\":{\"number\":12345}}";

fn own(words: &[&str], queue: &Path, more: &[&str]) -> io::Result<Vec<OsString>> {
    let mut argv = played(words)?;
    argv.push(queue.into());
    argv.extend(more.iter().map(OsString::from));
    Ok(argv)
}

/// Time of the enqueuing tool per job compared with the minimum that makes a job durable, on a disk and in memory.
pub(crate) fn enqueue() -> Result<(), FigureError> {
    for (place, folder) in [("a disk", std::env::temp_dir()), ("memory", PathBuf::from("/dev/shm"))] {
        let queue = tempfile::tempdir_in(&folder)?;
        let argv = own(&["peer", "run_queue", "enqueue", "--serve", "--queue"], queue.path(), &[]);
        let mut peer = argv.and_then(|argv| Pipe::start(&argv))?;
        let job = String::from_utf8_lossy(JOB).replace('"', "\\\"");
        let line = format!("{{\"aid\":\"{AID}\",\"input_json\":\"{{\\\"request_json\\\":{job}}}\"}}\n");
        let bare = tempfile::tempdir_in(&folder)?;
        let mut number = 0;
        let (mut synced, mut lazy) = (Pair::default(), Spread::default());
        for round in 0..200 {
            let mut put = |syncs| put(bare.path(), &mut number, syncs);
            synced.add(turns(round, || peer.exchange(line.as_bytes(), TURN), || put(Syncs::FileAndFolder))?);
            lazy.add(1.0 / put(Syncs::Nothing)?.as_secs_f64());
        }
        println!(
            "enqueue: a job put in {place}, over a bare write, fsync, rename and fsync of the folder: {}; undisturbed {:.3} \
             ({:.0} over {:.0} us); bare without fsync: jobs/s {lazy}",
            synced.ratio,
            synced.best(),
            synced.first.quantile(0.02),
            synced.second.quantile(0.02)
        );
    }
    Ok(())
}

/// Rate of jobs over HTTP as a share of the minimum that makes a job durable: a write, an fsync and a rename.
pub(crate) fn enqueue_http() -> Result<(), FigureError> {
    for (place, folder) in [("a disk", std::env::temp_dir()), ("memory", PathBuf::from("/dev/shm"))] {
        let queue = tempfile::tempdir_in(&folder)?;
        let bare = tempfile::tempdir_in(&folder)?;
        let mut adapter = Posting::start(queue.path())?;
        let mut number = 0;
        let (mut share, mut of_both) = (Pair::default(), Pair::default());
        for round in 0..200 {
            let mut put = |syncs| put(bare.path(), &mut number, syncs);
            share.add(turns(round, || put(Syncs::File), || adapter.post(TURN))?);
            of_both.add(turns(round, || put(Syncs::FileAndFolder), || adapter.post(TURN))?);
        }
        println!(
            "enqueue-http: jobs/s over HTTP on one connection in {place}, as a share of a bare write, fsync and rename: {}; \
             undisturbed {:.3} ({:.0} of {:.0} us); of the same with an fsync of the folder: {}",
            share.ratio,
            share.best(),
            share.first.quantile(0.02),
            share.second.quantile(0.02),
            of_both.ratio
        );
    }
    Ok(())
}

/// HTTP adapter with a connection to it.
struct Posting {
    process: Child,
    stream: TcpStream,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Posting {
    fn start(queue: &Path) -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let argv = own(&["peer", "run_queue", "http", "--queue"], queue, &["--port", &port.to_string()])?;
        let mut process = command(&argv)?.spawn()?;
        let end = Instant::now() + Duration::from_secs(10);
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > end => {
                    process.kill()?;
                    process.wait()?;
                    return Err(error);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            JOB.len()
        );
        let request = [head.as_bytes(), JOB].concat();
        Ok(Self { process, stream, request, reply: vec![0; 4 << 10] })
    }

    /// Posts jobs one by one; returns the time per job.
    fn post(&mut self, jobs: u32) -> io::Result<Duration> {
        let start = Instant::now();
        for _ in 0..jobs {
            self.stream.write_all(&self.request)?;
            let mut read = 0;
            // The reply has its announced length and ends with an object.
            while self.reply.get(..read).unwrap_or_default().last() != Some(&b'}') {
                match self.stream.read(self.reply.get_mut(read..).unwrap_or_default())? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => read += more,
                }
            }
            if !self.reply.starts_with(b"HTTP/1.1 202 ") {
                return Err(io::Error::other("a job is refused"));
            }
        }
        Ok(start.elapsed() / jobs)
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Parts of a job that are synced before it counts as enqueued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syncs {
    Nothing,
    File,
    FileAndFolder,
}

/// Enqueues jobs; returns the time per job.
fn put(folder: &Path, number: &mut u64, syncs: Syncs) -> io::Result<Duration> {
    let start = Instant::now();
    for _ in 0..TURN {
        *number += 1;
        let written = folder.join(format!("{number}.tmp"));
        let mut file = File::create_new(&written)?;
        file.write_all(JOB)?;
        if syncs != Syncs::Nothing {
            file.sync_all()?;
        }
        fs::rename(&written, folder.join(format!("{number}.json")))?;
        if syncs == Syncs::FileAndFolder {
            File::open(folder)?.sync_all()?;
        }
    }
    Ok(start.elapsed() / TURN)
}

/// Queue with this many jobs.
fn waiting(jobs: u32) -> io::Result<tempfile::TempDir> {
    let queue = tempfile::tempdir()?;
    fs::create_dir(queue.path().join("inbox"))?;
    for number in 0..jobs {
        fs::write(queue.path().join(format!("inbox/{number}.json")), JOB)?;
    }
    Ok(queue)
}

/// Time of the worker per job compared with a bare start and wait of its program.
pub(crate) fn jobs() -> Result<(), FigureError> {
    let folder = tempfile::tempdir()?;
    let runner = pick::noop(folder.path())?;
    let runner = runner.to_str().ok_or_else(|| {
        FigureError::Unfit("the folder for temporary files has no name in UTF-8".to_owned())
    })?;
    let mut pair = Pair::default();
    for round in 0..30 {
        let queue = waiting(RUN)?;
        let worker = || {
            let argv = own(&["peer", "run_queue", "worker"], queue.path(), &["--once", "--runner", runner])?;
            time(|| run(&argv))
        };
        let bare = || time(|| (0..RUN).try_for_each(|_| run(&[runner.into(), "job".into()])));
        pair.add(turns(round, worker, bare)?);
        let done = fs::read_dir(queue.path().join("done"))?.count();
        if done != RUN as usize {
            return Err(FigureError::Unfit(format!("{done} of {RUN} jobs are done")));
        }
    }
    println!(
        "jobs: {RUN} jobs of a worker over as many bare starts and waits, a static no-op: {}; undisturbed {:.3}; jobs/s {:.0}",
        pair.ratio,
        pair.best(),
        f64::from(RUN) * 1e6 / pair.first.quantile(0.5)
    );
    Ok(())
}

fn time(mut what: impl FnMut() -> io::Result<()>) -> io::Result<Duration> {
    let start = Instant::now();
    what().map(|()| start.elapsed())
}

fn command(argv: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

fn run(argv: &[OsString]) -> io::Result<()> {
    let status = command(argv)?.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

/// Time from the start of a worker to that of its first program, for different numbers of waiting jobs.
pub(crate) fn start() -> Result<(), FigureError> {
    for jobs in [1, WAITING] {
        let queue = waiting(jobs)?;
        let (gate, runner) = (queue.path().join("gate"), queue.path().join("runner"));
        let (mode, fifo) = (rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &gate, fifo, mode, 0).map_err(io::Error::from)?;
        fs::write(&runner, format!("#!/bin/sh\necho > '{}'\nexec sleep 60\n", gate.display()))?;
        fs::set_permissions(&runner, fs::Permissions::from_mode(0o755))?;
        let mut spread = Spread::default();
        for _ in 0..10 {
            spread.add(first_start(queue.path(), &runner, &gate)?.as_secs_f64() * 1e3);
        }
        println!(
            "start: ms from the start of a worker to that of its first program, {jobs} waiting: {spread}"
        );
    }
    Ok(())
}

fn first_start(queue: &Path, runner: &Path, gate: &Path) -> io::Result<Duration> {
    let mut argv = own(&["peer", "run_queue", "worker"], queue, &["--choice", "sigterm=return", "--runner"])?;
    argv.push(runner.into());
    let start = Instant::now();
    let mut worker = command(&argv)?.spawn()?;
    // The FIFO opens when the first program opens it.
    let read = File::open(gate).and_then(|mut gate| gate.read_exact(&mut [0]));
    let time = start.elapsed();
    // The job goes back and its program ends.
    if let Some(pid) = i32::try_from(worker.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)?;
    }
    let ended = worker.wait();
    read.and(ended).map(|_| time)
}

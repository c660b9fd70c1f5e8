//! The work of callers for each call: start a program with a request and read its reply, or POST the request. Each
//! call has its own thread and one deadline.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fluent_uri::Uri;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::fetch;
use crate::machine::{ChildExit, PostOrder};

/// Time for the rest of the output of an exited program whose pipe another process holds.
const PIPE_GRACE: Duration = Duration::from_millis(250);

/// Time for that output in a mutant that ignores the time limit.
const OUTWAITED: Duration = Duration::from_secs(60);

/// Redirects that a mutant follows.
const REDIRECTS_MAX: usize = 3;

/// Bytes per read and write.
const BLOCK_BYTES: usize = 64 << 10;

/// Program to start, with its input and limits.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Bytes for its standard input.
    pub stdin: Vec<u8>,
    /// Deadline of the program.
    pub deadline: Instant,
    /// Largest accepted output, in bytes.
    pub stdout_bytes_max: usize,
}

/// End of a program.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The program could not be started.
    NotStarted(io::Error),
    /// The program was killed at its deadline.
    TimedOut,
    /// The program was killed because its output exceeded the limit.
    TooLarge,
    /// The program exited, with this output.
    Exited(ChildExit, Vec<u8>),
}

/// Behaviour of a caller towards programs and servers. The default methods are correct; mutants override them.
pub(crate) trait Handling: Sync {
    /// True to close standard input after the request.
    fn closes_stdin(&self) -> bool {
        true
    }

    /// True to read output while the request is written.
    fn reads_while_writing(&self) -> bool {
        true
    }

    /// True to read standard error.
    fn reads_stderr(&self) -> bool {
        true
    }

    /// True to count standard error as output.
    fn mixes_stderr(&self) -> bool {
        false
    }

    /// True to let a program read the rest of its request after its deadline.
    fn outlasts_writing(&self) -> bool {
        false
    }

    /// Edits a chunk of output.
    fn piece<'a>(&self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(piece)
    }

    /// Deadline after a chunk of output.
    fn deadline(&self, deadline: Instant) -> Instant {
        deadline
    }

    /// True to accept the output of a program whose pipe another process holds.
    fn takes_held(&self) -> bool {
        true
    }

    /// True to await the end of a pipe that another process holds, beyond the deadline.
    fn outwaits_pipe(&self) -> bool {
        false
    }

    /// True to await the exit of a program that has closed its output, beyond the deadline.
    fn outwaits_exit(&self) -> bool {
        false
    }

    /// Kills a program and its process group.
    fn kill(&self, child: &mut Child, group: Option<Pid>) {
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.kill();
    }

    /// Number of times that each call is made.
    fn times(&self) -> usize {
        1
    }

    /// `Content-Type` of requests.
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    /// True if a program fails that exits before it has read its request.
    fn fails_unread(&self) -> bool {
        false
    }

    /// True to repeat a request whose connection was lost.
    fn posts_lost_again(&self) -> bool {
        false
    }

    /// True to follow redirects.
    fn follows(&self) -> bool {
        false
    }

    /// True to accept a body that ends before its `Content-Length`.
    fn takes_cut(&self) -> bool {
        false
    }
}

/// The correct behaviour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Careful;

impl Handling for Careful {}

/// Starts a program in its own process group, writes its input, and reads its output until it exits.
pub(crate) fn run(order: &Order, handling: &dyn Handling) -> Ended {
    run_in(None, order, handling)
}

/// [`run`] in another working directory.
pub(crate) fn run_in(folder: Option<&Path>, order: &Order, handling: &dyn Handling) -> Ended {
    let Some((program, arguments)) = order.argv.split_first() else {
        return Ended::NotStarted(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    match command.process_group(0).spawn() {
        Ok(mut child) => {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let ended = talk(&mut child, group, order, handling).unwrap_or_else(Ended::NotStarted);
            // The child is not reaped yet, so its id still names its own group.
            handling.kill(&mut child, group);
            let status = child.wait();
            match (ended, status) {
                (Ended::Exited(_, output), Ok(status)) => Ended::Exited(
                    match status.code() {
                        Some(code) => ChildExit::Code(code),
                        None => ChildExit::Signal(status.signal().unwrap_or_default()),
                    },
                    output,
                ),
                (ended, _) => ended,
            }
        }
        Err(error) => Ended::NotStarted(error),
    }
}

fn talk(child: &mut Child, group: Option<Pid>, order: &Order, handling: &dyn Handling) -> io::Result<Ended> {
    let pid = group.ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let fds = [
        stdin.as_ref().map(|it| it.as_fd()),
        stdout.as_ref().map(|it| it.as_fd()),
        stderr.as_ref().map(|it| it.as_fd()),
    ];
    for fd in fds.into_iter().flatten() {
        ioctl_fionbio(fd, true)?;
    }
    let kept =
        if handling.closes_stdin() { None } else { stdin.as_ref().map(|it| it.as_fd().try_clone_to_owned()) };
    let (mut rest, mut output, mut deadline) = (order.stdin.as_slice(), Vec::new(), order.deadline);
    let mut has_ended = false;
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let now = Instant::now();
        if has_ended && (stdout.is_none() || now >= deadline) {
            drop(kept);
            if stdout.is_some() && !handling.takes_held() {
                return Ok(Ended::TimedOut);
            }
            // The status is known only after the child is reaped.
            return Ok(Ended::Exited(ChildExit::Code(0), output));
        }
        if now >= deadline && (stdin.is_none() || !handling.outlasts_writing()) {
            return Ok(Ended::TimedOut);
        }
        let is_reading = handling.reads_while_writing() || stdin.is_none();
        let watched: Vec<(usize, BorrowedFd<'_>, PollFlags)> = [
            (!has_ended).then(|| (0, process.as_fd(), PollFlags::IN)),
            stdin.as_ref().map(|it| (1, it.as_fd(), PollFlags::OUT)),
            stdout.as_ref().filter(|_| is_reading).map(|it| (2, it.as_fd(), PollFlags::IN)),
            stderr.as_ref().filter(|_| handling.reads_stderr()).map(|it| (3, it.as_fd(), PollFlags::IN)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut fds: Vec<PollFd<'_>> =
            watched.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let left = deadline.saturating_duration_since(now) + Duration::from_millis(1);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |which: usize| {
            watched.iter().zip(&fds).any(|((of, ..), fd)| *of == which && !fd.revents().is_empty())
        };
        let (ended, writable, readable, complains) = (is_ready(0), is_ready(1), is_ready(2), is_ready(3));
        if writable && let Some(pipe) = &mut stdin {
            match pipe.write(&rest[..rest.len().min(BLOCK_BYTES)]) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_passing(&error) => {}
                Err(error) if handling.fails_unread() => return Err(error),
                // A program need not read all of its input.
                Err(_) => rest = &[],
            }
        }
        if rest.is_empty() {
            stdin = None;
        }
        if complains && let Some(pipe) = &mut stderr {
            match pipe.read(&mut block) {
                Ok(0) => stderr = None,
                Ok(count) if handling.mixes_stderr() && output.len() + count > order.stdout_bytes_max => {
                    return Ok(Ended::TooLarge);
                }
                Ok(count) if handling.mixes_stderr() => output.extend_from_slice(&block[..count]),
                Err(error) if !is_passing(&error) => stderr = None,
                _ => {}
            }
        }
        if readable && let Some(pipe) = &mut stdout {
            match pipe.read(&mut block) {
                Ok(0) => {
                    stdout = None;
                    if handling.outwaits_exit() {
                        deadline = Instant::now() + OUTWAITED;
                    }
                }
                Ok(count) if output.len() + count > order.stdout_bytes_max => return Ok(Ended::TooLarge),
                Ok(count) => {
                    output.extend_from_slice(&handling.piece(&block[..count]));
                    deadline = if has_ended { deadline } else { handling.deadline(deadline) };
                }
                Err(error) if is_passing(&error) => {}
                Err(_) => stdout = None,
            }
        }
        if ended {
            has_ended = true;
            deadline = match handling.outwaits_pipe() {
                true => Instant::now() + OUTWAITED,
                false => deadline.min(Instant::now() + PIPE_GRACE),
            };
        }
    }
}

/// End of a POST.
#[derive(Debug)]
pub(crate) enum Posted {
    /// The connection failed.
    Failed,
    /// No complete reply came in time.
    TimedOut,
    /// The reply exceeds the limit, or is not valid HTTP.
    Unreadable,
    /// The server replied, with this status and body.
    Replied(u16, Vec<u8>),
}

/// Sends a text to an http URL, without credentials.
pub(crate) fn post(
    url: &str,
    body: &[u8],
    bytes_max: usize,
    time: Duration,
    handling: &dyn Handling,
) -> Posted {
    post_on(url, body, bytes_max, time, handling, REDIRECTS_MAX)
}

fn post_on(
    url: &str,
    body: &[u8],
    bytes_max: usize,
    time: Duration,
    handling: &dyn Handling,
    redirects: usize,
) -> Posted {
    let Some((host, port, path)) = parts_of(url) else { return Posted::Failed };
    let order = PostOrder {
        host_header: format!("{host}:{port}"),
        host,
        port,
        path,
        authorization: None,
        body: body.to_vec(),
        body_bytes_max: bytes_max,
        timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
    };
    match fetch::post_as(&order, handling.content_type(), handling.takes_cut(), &|at| handling.deadline(at)) {
        Ok(reply) => match reply.location {
            Some(location) if handling.follows() && redirects > 0 => {
                post_on(&location, body, bytes_max, time, handling, redirects - 1)
            }
            _ => Posted::Replied(reply.status, reply.body),
        },
        Err(error) => match error.kind() {
            io::ErrorKind::TimedOut => Posted::TimedOut,
            io::ErrorKind::InvalidData => Posted::Unreadable,
            _ if handling.posts_lost_again() && redirects > 0 => {
                post_on(url, body, bytes_max, time, handling, 0)
            }
            _ => Posted::Failed,
        },
    }
}

/// Host, port, and path with query of an http URL.
fn parts_of(url: &str) -> Option<(String, u16, String)> {
    let uri = Uri::parse(url).ok().filter(|uri| uri.scheme().as_str().eq_ignore_ascii_case("http"))?;
    let authority = uri.authority()?;
    let port = authority.port_to_u16().ok()?.unwrap_or(80);
    let path = if uri.path().is_empty() { "/" } else { uri.path().as_str() };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some((authority.host().trim_matches(['[', ']']).to_owned(), port, format!("{path}{query}")))
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Runs each job on its own thread. `next` returns the jobs that are due; it gets the result of the last job to finish
/// and its duration in ms. It is called again after each job.
///
/// # Errors
/// Errors of `next`, and a thread that could not be started.
pub(crate) fn all<J: Send, E: Send>(
    mut next: impl FnMut(Option<(E, u64)>) -> io::Result<Vec<J>>,
    work: impl Fn(J) -> E + Sync,
) -> io::Result<()> {
    let (done, ended) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let mut under_way = 0;
        let mut came = None;
        loop {
            for job in next(came.take())? {
                under_way += 1;
                let (done, work) = (done.clone(), &work);
                thread::Builder::new().spawn_scoped(scope, move || {
                    let begun = Instant::now();
                    let end = work(job);
                    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    // The receiver is gone if the results could not be written.
                    let _ = done.send((end, took));
                })?;
            }
            if under_way == 0 {
                return Ok(());
            }
            came = Some(ended.recv().map_err(io::Error::other)?);
            under_way -= 1;
        }
    })
}

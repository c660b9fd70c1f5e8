//! Recorded peers: their start and end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::RecordedPeer;
use super::relay::{RelayEventKind, RelaySender};
use crate::data::blame::HarnessFault;
use crate::data::transcript::Exit;
use crate::drive::transport::child::guardian;

/// Started peer. It is reaped only at the end, so that its process id is not reused.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) pid: Pid,
    pub(super) at_us: u64,
    pub(super) exited: bool,
}

pub(super) fn start(side: &RecordedPeer, begun: Instant) -> io::Result<Running> {
    let (program, args) =
        side.argv.split_first().ok_or_else(|| io::Error::other("the command line is empty"))?;
    let mut command = Command::new(program);
    command.args(args).envs(side.env.iter().map(|(name, value)| (name, value)));
    let (name, value) = guardian::mark();
    command.env(name, value);
    // Own process group: signals of the terminal reach a peer only through the recorder.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the child process has no process id"))?;
    Ok(Running { child, pid, at_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(0), exited: false })
}

impl Running {
    /// Standard output and input of the peer.
    pub(super) fn pipes(&mut self) -> Result<(File, File), HarnessFault> {
        let missing = || "the child process has no pipes".to_owned();
        let stdout: OwnedFd = self.child.stdout.take().ok_or_else(missing)?.into();
        let stdin: OwnedFd = self.child.stdin.take().ok_or_else(missing)?.into();
        Ok((stdout.into(), stdin.into()))
    }

    /// Standard error of the peer.
    pub(super) fn errors(&mut self) -> Option<File> {
        self.child.stderr.take().map(|errors| OwnedFd::from(errors).into())
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Its group may hold descendants even after it has ended.
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    pub(super) fn reap(&mut self) {
        let _ = self.child.try_wait();
    }
}

/// Waits for the end of a process without reaping it.
pub(super) fn watch(
    pid: Pid,
    teller: RelaySender,
    what: impl FnOnce(Exit) -> RelayEventKind + Send + 'static,
) {
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(pid), options) {
                Ok(Some(status)) => {
                    let exit = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Exit::Code(code),
                        (None, Some(signal)) => Exit::Signal(signal),
                        (None, None) => continue,
                    };
                    return teller.tell(what(exit));
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
}

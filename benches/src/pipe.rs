//! Child process connected directly by two pipes: the bare loop for comparison.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Peer that answers each line with one line.
pub struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    block: Vec<u8>,
}

impl Pipe {
    /// Starts a command, which inherits the placement of the calling thread.
    ///
    /// # Errors
    /// Fails if the command cannot be started.
    pub fn start(argv: &[OsString]) -> io::Result<Self> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        Self::of(command)
    }

    /// Starts a command with its own environment.
    ///
    /// # Errors
    /// As [`Pipe::start`].
    pub fn of(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = stdout.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, stdin, stdout, block: vec![0; 64 * 1024] })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends `line` and awaits the reply, `count` times; returns the time per exchange.
    ///
    /// # Errors
    /// Fails if a stream fails or ends.
    pub fn exchange(&mut self, line: &[u8], count: u32) -> io::Result<Duration> {
        let start = Instant::now();
        for _ in 0..count {
            self.write(line)?;
            self.replies(1)?;
        }
        Ok(start.elapsed() / count)
    }

    /// Sends `window` requests per write, as [`Pipe::exchange`]; returns the time per request.
    ///
    /// # Errors
    /// Fails if a stream fails or ends.
    pub fn pipelined(&mut self, line: &[u8], window: u32, rounds: u32) -> io::Result<Duration> {
        let lines = line.repeat(window as usize);
        let start = Instant::now();
        for _ in 0..rounds {
            self.write(&lines)?;
            self.replies(window as usize)?;
        }
        Ok(start.elapsed() / (rounds * window))
    }

    /// Sends one line that may exceed a pipe's capacity while reading the reply; returns the time until the reply.
    ///
    /// # Errors
    /// Fails if a stream fails or ends.
    pub fn large(&mut self, line: &[u8]) -> io::Result<Duration> {
        let Some(mut stdin) = self.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let start = Instant::now();
        let (written, read) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| stdin.write_all(line));
            let read = self.replies(1);
            (writer.join(), read)
        });
        let time = start.elapsed();
        self.stdin = Some(stdin);
        written.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        read.map(|()| time)
    }

    /// Writes bytes to the peer.
    ///
    /// # Errors
    /// Fails if the peer has gone.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes)
    }

    /// Reads one line. No further output may be pending.
    ///
    /// # Errors
    /// Fails if the stream ends early.
    pub fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let bytes = self.stdout.read(&mut self.block)?;
            match self.block.get(..bytes) {
                None | Some([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(block) => line.extend_from_slice(block),
            }
        }
        Ok(line)
    }

    /// Reads until `count` lines have come.
    ///
    /// # Errors
    /// Fails if the stream ends early.
    pub fn replies(&mut self, count: usize) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let bytes = self.stdout.read(&mut self.block)?;
            let block = self.block.get(..bytes).unwrap_or_default();
            if block.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left = left.saturating_sub(memchr::memchr_iter(b'\n', block).count());
        }
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

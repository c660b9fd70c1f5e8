//! Hidden functions of the harness binary that slow things down: a busy process, and delays of a reference peer.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// First argument that makes the harness binary keep one processor busy until its standard input ends.
pub const LOAD_ARGUMENT: &str = "__busy";

/// Option of `peerproof peer`: milliseconds before the peer starts.
pub(crate) const START_AFTER: &str = "--start-after-ms";

/// Option of `peerproof peer`: delay of all output, milliseconds.
pub(crate) const REPLY_AFTER: &str = "--reply-after-ms";

/// Bytes of one read: the capacity of a pipe.
const BLOCK_BYTES: usize = 64 << 10;

/// Keeps a processor busy until standard input ends, so that it cannot outlive its parent.
pub fn keep_busy() -> i32 {
    let waiting = thread::spawn(|| io::stdin().read(&mut [0; 1]));
    while !waiting.is_finished() {
        std::hint::spin_loop();
    }
    0
}

/// Removes the options of this module from a peer's arguments and applies them to `run`. Delays standard output;
/// `delay_http` must delay replies over HTTP.
pub fn paced(
    mut args: Vec<String>,
    delay_http: impl FnOnce(Duration),
    run: impl FnOnce(&[String]) -> i32,
) -> i32 {
    if let Some(ms) = take(&mut args, START_AFTER) {
        // Plays a slow start.
        thread::sleep(Duration::from_millis(ms));
    }
    let late = take(&mut args, REPLY_AFTER).map(Duration::from_millis).and_then(|by| {
        delay_http(by);
        LateOutput::begin(by).ok()
    });
    let status = run(&args);
    if let Some(late) = late {
        late.end();
    }
    status
}

fn take(args: &mut Vec<String>, option: &str) -> Option<u64> {
    let at = args.iter().position(|arg| arg == option)?;
    let ms = args.get(at + 1)?.parse().ok()?;
    args.drain(at..=at + 1);
    Some(ms)
}

/// Standard output of this process behind a delaying pipe.
struct LateOutput(JoinHandle<()>);

impl LateOutput {
    fn begin(delay: Duration) -> io::Result<Self> {
        let real = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(&writer)?;
        drop(writer);
        let (sender, pieces) = channel();
        thread::spawn(move || {
            let mut block = vec![0; BLOCK_BYTES];
            while let Ok(bytes) = rustix::io::read(&reader, &mut block) {
                let piece = (Instant::now() + delay, block[..bytes].to_vec());
                if bytes == 0 || sender.send(piece).is_err() {
                    break;
                }
            }
        });
        Ok(Self(thread::spawn(move || write_late(&pieces, &real))))
    }

    /// Ends standard output and waits until everything is written.
    fn end(self) {
        if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = self.0.join();
        }
    }
}

fn write_late(pieces: &Receiver<(Instant, Vec<u8>)>, to: &OwnedFd) {
    for (at, bytes) in pieces {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            match rustix::io::write(to, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

//! The wrapper shell of mutants with a fault in the process rather than in the machine. It starts a correct peer as a
//! child, passes its streams through, and misbehaves around it.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::mutant::ShellFault;

/// Longest life of a child that is left running, in seconds.
pub(super) const CHILD_LIFE_S: &str = "60";

/// Sleeps.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Keeps a processor busy for the given time.
pub(crate) fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Runs `correct` (program and arguments) as a child on the own standard streams, with `fault` around it. Returns its
/// exit status. Temporary files go to `temp_dir`.
pub fn run_with_fault(fault: ShellFault, correct: &[String], temp_dir: Option<PathBuf>) -> i32 {
    let Some((program, arguments)) = correct.split_first() else { return 70 };
    if misbehave(fault, temp_dir).is_err() {
        return 70;
    }
    match Command::new(program).args(arguments).status() {
        Ok(status) => status.code().unwrap_or(70),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cannot start {program}: {error}");
            70
        }
    }
}

/// Applies `fault` to this process.
///
/// # Errors
/// The failed system call.
pub(super) fn misbehave(fault: ShellFault, temp_dir: Option<PathBuf>) -> io::Result<()> {
    match fault {
        ShellFault::IgnoresTerm => {
            // The handler only sets a flag that is never read.
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal_hook::consts::SIGTERM, flag)?;
        }
        ShellFault::LeavesChild => {
            Command::new("sleep")
                .arg(CHILD_LIFE_S)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
        }
        ShellFault::LeavesFile => {
            let folder = temp_dir.unwrap_or_else(|| PathBuf::from("."));
            std::fs::write(folder.join("toolhost-cache.tmp"), b"left behind")?;
        }
        // The child has this pipe too.
        ShellFault::WritesAtOnce => rustix::io::ioctl_fionbio(rustix::stdio::stdout(), true)?,
    }
    Ok(())
}

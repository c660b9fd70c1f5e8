//! The wrapper shell of mutants whose fault lies in the process, not in the machine: it starts a correct peer as a
//! child, passes its streams through, and misbehaves around it.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::mutant::ShellFault;

/// How long a child that is left behind lives at most, seconds.
pub(super) const CHILD_LIFE_S: &str = "60";

/// Lets time pass.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Keeps a processor busy for so long.
pub fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Runs `correct` (program and arguments) as a child on our own standard streams with `fault` around it; returns its
/// exit status. `temp_dir` is where temporary files belong.
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

/// Does to this process what `fault` says.
///
/// # Errors
/// What could not be done.
pub(super) fn misbehave(fault: ShellFault, temp_dir: Option<PathBuf>) -> io::Result<()> {
    match fault {
        ShellFault::IgnoresTerm => {
            // A handler that does nothing but set a flag nobody reads.
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
    }
    Ok(())
}

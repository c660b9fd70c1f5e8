//! The wrapper shell of mutants whose fault lies in the process, not in the machine: it starts a correct peer as a
//! child, passes its streams through, and misbehaves around it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::toolhost::mutants::ShellFault;

/// How long a child that is left behind lives at most, seconds.
const CHILD_LIFE_S: &str = "60";

/// Runs `correct` (program and arguments) as a child on our own standard streams with `fault` around it; returns its
/// exit status. `temp_dir` is where temporary files belong.
pub fn run_with_fault(fault: ShellFault, correct: &[String], temp_dir: Option<PathBuf>) -> i32 {
    if fault == ShellFault::IgnoresTerm {
        // A handler that does nothing but set a flag nobody reads.
        let flag = Arc::new(AtomicBool::new(false));
        if signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).is_err() {
            return 70;
        }
    }
    let Some((program, arguments)) = correct.split_first() else { return 70 };
    match fault {
        ShellFault::LeavesChild => {
            let left = Command::new("sleep")
                .arg(CHILD_LIFE_S)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            if left.is_err() {
                return 70;
            }
        }
        ShellFault::LeavesFile => {
            let folder = temp_dir.unwrap_or_else(|| PathBuf::from("."));
            if std::fs::write(folder.join("toolhost-cache.tmp"), b"left behind").is_err() {
                return 70;
            }
        }
        ShellFault::IgnoresTerm => {}
    }
    match Command::new(program).args(arguments).status() {
        Ok(status) => status.code().unwrap_or(70),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cannot start {program}: {error}");
            70
        }
    }
}

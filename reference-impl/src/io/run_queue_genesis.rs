//! Compilers, and the programs that they built.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::asking::{Careful, Ended, Handling, Order, run};
use super::run_queue_disk::Folder;
use crate::machine::ChildExit;
use crate::run_queue::genesis::{Workshop, WorkshopError};
use crate::run_queue::mutants::Carried;

/// Time limit of a compiler.
const COMPILE: Duration = Duration::from_secs(25);
/// Time limit of a compiled program.
const RUN: Duration = Duration::from_secs(10);
/// Largest output of a compiler, in bytes.
const COMPILER_BYTES_MAX: usize = 256 << 10;
/// Largest reply of a compiled program, in bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// Characters of a compiler's output that an error repeats.
const ERROR_CHARS_MAX: usize = 2_000;

/// The compilers of this machine.
pub(super) struct Bench {
    root: PathBuf,
    files: Folder,
    starting: &'static (dyn Starting + Send),
}

impl Bench {
    /// Compilers for sources below `root`.
    pub(super) fn new(root: &Path, starting: &'static (dyn Starting + Send)) -> Self {
        Self { root: root.to_owned(), files: Folder::new(root), starting }
    }
}

/// Start of compilers. The default method is correct; mutants override it.
pub(super) trait Starting: Sync {
    /// Runs a compiler within its time limit.
    fn compile(&self, argv: Vec<String>) -> Result<(), WorkshopError> {
        started(argv, Vec::new(), COMPILE, COMPILER_BYTES_MAX, &Listening).map(|_| ())
    }
}

struct Plainly;

impl Starting for Plainly {}

/// A faulty start through a shell, which splits the words of the command.
struct Shell;

impl Starting for Shell {
    fn compile(&self, argv: Vec<String>) -> Result<(), WorkshopError> {
        Plainly.compile(vec!["sh".to_owned(), "-c".to_owned(), argv.join(" ")])
    }
}

/// A faulty start that passes on the standard input of this process.
struct OwnStdin;

impl Starting for OwnStdin {
    fn compile(&self, argv: Vec<String>) -> Result<(), WorkshopError> {
        let (program, arguments) =
            argv.split_first().ok_or_else(|| WorkshopError::Other("no compiler".to_owned()))?;
        let mut command = Command::new(program);
        let run = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let ended = run.map_err(other)?;
        if ended.success() { Ok(()) } else { Err(WorkshopError::Other(format!("it ended by {ended}"))) }
    }
}

/// Start of compilers with a fault, or the correct one.
pub(super) fn starting(fault: Option<Carried>) -> &'static (dyn Starting + Send) {
    match fault {
        Some(Carried::Shell) => &Shell,
        Some(Carried::OwnStdin) => &OwnStdin,
        _ => &Plainly,
    }
}

/// Counts standard error as output, so that an error can quote the compiler.
struct Listening;

impl Handling for Listening {
    fn mixes_stderr(&self) -> bool {
        true
    }
}

/// Compiler command up to the output path, chosen by the extension of the source.
fn compiler(source: &[u8]) -> Result<&'static [&'static str], WorkshopError> {
    let is = |suffix: &str| source.ends_with(suffix.as_bytes());
    if is(".rs") {
        Ok(&["rustc", "--crate-name", "plugin", "--crate-type", "bin", "--edition", "2021", "-o"])
    } else if is(".c") {
        Ok(&["cc", "-w", "-x", "c", "-o"])
    } else if is(".cpp") || is(".cc") {
        Ok(&["c++", "-w", "-x", "c++", "-o"])
    } else {
        Err(WorkshopError::UnknownLanguage)
    }
}

fn other(error: std::io::Error) -> WorkshopError {
    WorkshopError::Other(error.to_string())
}

fn words(path: &Path) -> Result<String, WorkshopError> {
    path.to_str().map(str::to_owned).ok_or(WorkshopError::PathNotText)
}

fn started(
    argv: Vec<String>,
    stdin: Vec<u8>,
    time: Duration,
    bytes_max: usize,
    how: &dyn Handling,
) -> Result<Vec<u8>, WorkshopError> {
    let order = Order { argv, stdin, deadline: Instant::now() + time, stdout_bytes_max: bytes_max };
    match run(&order, how) {
        Ended::NotStarted(error) => Err(WorkshopError::NotStarted(error.to_string())),
        Ended::TimedOut => Err(WorkshopError::TimedOut),
        Ended::TooLarge => Err(WorkshopError::TooLarge),
        Ended::Exited(ChildExit::Code(0), output) => Ok(output),
        Ended::Exited(exit, output) => {
            let output: String = String::from_utf8_lossy(&output).chars().take(ERROR_CHARS_MAX).collect();
            Err(WorkshopError::Ended { exit, output })
        }
    }
}

impl Workshop for Bench {
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), WorkshopError> {
        let compiler = compiler(source)?;
        // The compiler's own temporary files are removed with this folder, even if it is killed.
        let folder =
            self.root.join(format!("runtime_genesis/build-{}", hex(&super::toolhost::random_seed()[..8])));
        DirBuilder::new().mode(0o700).create(&folder).map_err(other)?;
        let made = folder.join("plugin");
        let compiled = (|| {
            let temp = format!("TMPDIR={}", words(&folder)?);
            let mut argv = vec!["env".to_owned(), temp];
            argv.extend(compiler.iter().map(|word| (*word).to_owned()));
            // The path is absolute, so that it is never taken for an option.
            argv.extend([words(&made)?, words(&self.files.path(source))?]);
            self.starting.compile(argv)?;
            fs::rename(&made, self.files.path(program)).map_err(other)
        })();
        let _ = fs::remove_dir_all(&folder);
        compiled
    }

    fn run(&mut self, program: &[u8], arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, WorkshopError> {
        let mut argv = vec![words(&self.files.path(program))?];
        argv.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        started(argv, stdin, RUN, REPLY_BYTES_MAX, &Careful)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

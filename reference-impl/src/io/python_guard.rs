//! `python-tool guard`: permanently gives up the rights that the active guarantees forbid, and becomes the Python
//! process of a tool.
//!
//! ```text
//! python-tool guard GUARANTEE,… SHIM
//! ```
//!
//! Landlock blocks files, seccomp blocks sockets and processes. Both apply to every language, and before the tool's
//! module is imported. Under `no_env_read` the environment is empty from the start and `/proc` is closed. Only Python
//! itself watches writes to the environment (an audit hook of the shim). On a kernel without the needed Landlock
//! (before Linux 6.2) the runner does not know the guarantees that need it: see [`lacking`].

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Exit status if Python could not be started, as in shells.
const STATUS_FAILED: i32 = 127;

/// Library folders that a Python may need besides its own.
const LIBRARIES: [&str; 5] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// Files that it may read.
const FILES: [&str; 4] = ["/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/etc/localtime"];

/// Limits of the modules of a project: their number, and the levels of their folders.
const MODULES_MAX: usize = 20_000;
const LEVELS_MAX: usize = 32;

type Fault = Box<dyn std::error::Error>;

/// Guarantees that this kernel cannot give.
pub(super) fn lacking() -> &'static [&'static str] {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let made = rules.handle_access(AccessFs::from_write(ABI::V3)).and_then(|rules| rules.create());
    if made.is_ok() { &[] } else { &["no_filesystem_write", "no_filesystem_read", "no_env_read"] }
}

/// Becomes the Python process of a tool. Returns only on failure, with a sentence on standard error.
pub(super) fn run(arguments: &[String]) -> i32 {
    let fault = match arguments {
        [guarantees, shim] => {
            become_python(guarantees, shim).map_or_else(|fault| fault, |never| match never {})
        }
        _ => "usage: python-tool guard GUARANTEE,... SHIM".into(),
    };
    super::complain(&format!("python-tool: {fault}"));
    STATUS_FAILED
}

fn become_python(guarantees: &str, shim: &str) -> Result<std::convert::Infallible, Fault> {
    // The tool dies with the runner, even if only the runner is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let has = |name: &str| guarantees.split(',').any(|guarantee| guarantee == name);
    let python = find_python();
    let path = env::var_os("PYTHONPATH").unwrap_or_default();
    let mut command = Command::new(&python);
    // The shim lets a tool find installed packages if it needs them.
    command.args(["-B", "-S", "-X", "utf8", "-c", shim]);
    command.args(env::split_paths(&path).filter(|path| !path.as_os_str().is_empty()));
    if has("no_env_read") {
        command.env_clear();
    }
    let (write, read) = (has("no_filesystem_write"), has("no_filesystem_read"));
    keep_from_files(&python, write, read, has("no_env_read"))?;
    keep_from_calls(write, has("no_network"), has("no_subprocess"))?;
    Err(command.exec().into())
}

/// Python on the search path, scripts excluded: a wrapper script may need rights that the guarantees forbid.
fn find_python() -> PathBuf {
    let is_program = |path: &PathBuf| {
        let mut head = [0; 2];
        fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head != *b"#!"
    };
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found = env::split_paths(&path).map(|folder| folder.join("python3")).find(is_program);
    found.unwrap_or_else(|| "python3".into())
}

fn keep_from_files(python: &Path, write: bool, read: bool, env_read: bool) -> Result<(), Fault> {
    let mut handled = BitFlags::<AccessFs>::empty();
    if write {
        handled |= AccessFs::from_write(ABI::V3);
    }
    if read {
        handled |= AccessFs::ReadFile | AccessFs::ReadDir;
    } else if env_read {
        handled |= AccessFs::ReadFile;
    }
    if handled.is_empty() {
        return Ok(());
    }
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let mut rules = rules.handle_access(handled)?.create()?;
    if write {
        rules = allow(rules, "/dev/null".as_ref(), AccessFs::WriteFile | AccessFs::Truncate)?;
    }
    let whole = (AccessFs::ReadFile | AccessFs::ReadDir) & handled;
    if read {
        let real = python.canonicalize()?;
        let home = real.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        for folder in LIBRARIES.map(PathBuf::from).into_iter().chain([home.join("lib"), home.join("bin")]) {
            rules = allow(rules, &folder, whole)?;
        }
        for file in FILES.map(PathBuf::from).into_iter().chain([real.clone()]) {
            rules = allow(rules, &file, AccessFs::ReadFile.into())?;
        }
        let project = env::current_dir()?;
        for module in modules(&project) {
            rules = allow(rules, &module, AccessFs::ReadFile.into())?;
        }
        rules = allow(rules, &project, AccessFs::ReadDir.into())?;
    } else if env_read {
        // All of `/` except `/proc`.
        for entry in fs::read_dir("/")?.flatten().filter(|entry| entry.file_name() != "proc") {
            rules = allow(rules, &entry.path(), whole)?;
        }
    }
    rules.restrict_self()?;
    Ok(())
}

/// Allows access to a path. A missing path is skipped.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, Fault> {
    let Ok(open) = PathFd::new(path) else { return Ok(rules) };
    Ok(rules.add_rule(PathBeneath::new(open, access))?)
}

/// Module files of a project.
fn modules(project: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(project.to_owned(), 0)];
    while let Some((folder, level)) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_module = path.extension().is_some_and(|it| it == "py" || it == "so" || it == "pyc");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && level < LEVELS_MAX => open.push((path, level + 1)),
                Ok(kind) if kind.is_file() && is_module && found.len() < MODULES_MAX => found.push(path),
                _ => {}
            }
        }
    }
    found
}

fn keep_from_calls(write: bool, network: bool, subprocess: bool) -> Result<(), Fault> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut unknown: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let whole = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Vec<_>>();
    if write {
        // Calls that change a file without opening it for writing; Landlock does not cover them.
        refused.extend(whole(&[
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
            libc::SYS_lsetxattr,
            libc::SYS_fsetxattr,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
            libc::SYS_fremovexattr,
        ]));
        #[cfg(target_arch = "x86_64")]
        refused.extend(whole(&[
            libc::SYS_chmod,
            libc::SYS_chown,
            libc::SYS_lchown,
            libc::SYS_utime,
            libc::SYS_utimes,
            libc::SYS_futimesat,
        ]));
        unknown.extend(whole(&[libc::SYS_fchmodat2]));
    }
    if network {
        let other = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            libc::AF_UNIX.unsigned_abs().into(),
        )?;
        refused.insert(libc::SYS_socket, vec![SeccompRule::new(vec![other])?]);
    }
    if subprocess {
        let threads = libc::CLONE_THREAD.unsigned_abs().into();
        let process = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(threads), 0)?;
        refused.insert(libc::SYS_clone, vec![SeccompRule::new(vec![process])?]);
        #[cfg(target_arch = "x86_64")]
        refused.extend(whole(&[libc::SYS_fork, libc::SYS_vfork]));
        // The C library then falls back to `clone`.
        unknown.extend(whole(&[libc::SYS_clone3]));
    }
    if write || network || subprocess {
        unknown.extend(whole(&[libc::SYS_io_uring_setup]));
    }
    for (calls, errno) in [(refused, libc::EPERM), (unknown, libc::ENOSYS)] {
        if calls.is_empty() {
            continue;
        }
        let arch = env::consts::ARCH.try_into()?;
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, refuse, arch)?;
        let program: seccompiler::BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

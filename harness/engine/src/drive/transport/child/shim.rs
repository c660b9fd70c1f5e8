//! Resource limits of a peer.
//!
//! A shim sets them between start and `exec`: the harness binary, started with a hidden argument. A `pre_exec` closure
//! would force a fork of the harness, which is slow if the harness uses much memory. Without the harness binary, `sh`
//! and its `ulimit` do it.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit};

use crate::data::blame::HarnessFault;
use crate::data::plan::Limits;

/// First argument that makes the harness binary act as the shim. The `main` of the program in [`ChildSpec::shim`] must
/// look for it first, and then call [`main`] with the arguments after it.
///
/// [`ChildSpec::shim`]: super::ChildSpec::shim
pub const SHIM_ARGUMENT: &str = "__exec-with-limits";

/// Exit status of a shim that could not start the program, as in shells.
pub(crate) const SHIM_FAILED: i32 = 127;

/// Letter for the number of processes.
const PROCESSES: char = 'u';

/// Limits with their letter in `ulimit` and their resource in `setrlimit`.
fn all(limits: &Limits) -> [(char, Resource, Option<u64>); 5] {
    [
        ('v', Resource::As, limits.address_space_bytes),
        ('t', Resource::Cpu, limits.cpu_seconds),
        ('n', Resource::Nofile, limits.open_files),
        ('f', Resource::Fsize, limits.file_bytes),
        (PROCESSES, Resource::Nproc, limits.further_processes),
    ]
}

/// Encodes limits as `v=1024,n=64`, with the letters of `ulimit` and the units of `setrlimit`.
fn encode(limits: &Limits) -> String {
    let parts: Vec<String> = all(limits)
        .iter()
        .filter_map(|(letter, _, value)| value.map(|value| format!("{letter}={value}")))
        .collect();
    parts.join(",")
}

/// Script for `sh` that sets the limits and executes its arguments.
fn script(limits: &Limits) -> String {
    let mut script = String::new();
    for (letter, _, value) in all(limits) {
        let Some(value) = value else { continue };
        // In POSIX -f counts 512-byte blocks; every shell counts KiB for -v.
        let value = match letter {
            // Shells do not agree on its letter.
            PROCESSES => continue,
            'v' => value.div_ceil(1_024),
            'f' => value.div_ceil(512),
            _ => value,
        };
        script.push_str(&format!("ulimit -{letter} {value} && "));
    }
    script + "exec \"$@\""
}

/// Command that sets `limits` and then executes `program`: through `shim` or, without one, through `sh`.
pub(super) fn command(shim: Option<&Path>, limits: &Limits, program: &OsStr) -> Command {
    let mut command;
    match shim {
        Some(shim) => {
            command = Command::new(shim);
            command.arg(SHIM_ARGUMENT).arg(encode(limits));
        }
        None => {
            command = Command::new("/bin/sh");
            command.arg("-c").arg(script(limits)).arg("sh");
        }
    }
    command.arg(program);
    command
}

/// Sets the limits in the first of `args` and executes the program in the others. On failure ends the process with
/// status [`SHIM_FAILED`] and a sentence on standard error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ! {
    let Err(error) = run(args);
    // The shim replaces the peer: this is the peer's standard error, not our own output.
    let _ = std::io::stderr().write_all(format!("peerproof: {error}\n").as_bytes());
    std::process::exit(SHIM_FAILED)
}

fn run(args: impl IntoIterator<Item = OsString>) -> Result<Infallible, HarnessFault> {
    let mut args = args.into_iter();
    let limits = args.next().ok_or("no limits given")?;
    let program = args.next().ok_or("no program given")?;
    set(&limits.to_string_lossy())?;
    let error = Command::new(&program).args(args).exec();
    Err(format!("cannot start {}: {error}", program.to_string_lossy()).into())
}

fn set(limits: &str) -> Result<(), HarnessFault> {
    for part in limits.split(',').filter(|part| !part.is_empty()) {
        let bad = || format!("malformed limit {part:?}");
        let (letter, value) = part.split_once('=').ok_or_else(bad)?;
        let value: u64 = value.parse().map_err(|_| bad())?;
        let resource = all(&Limits::default())
            .iter()
            .find(|(known, _, _)| letter.chars().eq([*known]))
            .map(|(_, resource, _)| *resource)
            .ok_or_else(bad)?;
        let value = if letter.chars().eq([PROCESSES]) { value + tasks_of_user() } else { value };
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
            .map_err(|error| format!("cannot set limit {part:?}: {error}"))?;
    }
    Ok(())
}

/// Number of processes and threads of this process's user.
fn tasks_of_user() -> u64 {
    let own = rustix::process::getuid().as_raw();
    let tasks = |folder: std::fs::DirEntry| {
        let is_own = folder.metadata().is_ok_and(|meta| meta.uid() == own);
        is_own.then(|| std::fs::read_dir(folder.path().join("task")).map_or(0, Iterator::count))
    };
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(tasks).sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        address_space_bytes: Some(1 << 30),
        cpu_seconds: None,
        open_files: Some(64),
        file_bytes: Some(1_024),
        further_processes: None,
    };

    #[test]
    fn limits_are_encoded_for_the_shim_and_for_sh() {
        assert_eq!(encode(&LIMITS), "v=1073741824,n=64,f=1024");
        assert_eq!(script(&LIMITS), "ulimit -v 1048576 && ulimit -n 64 && ulimit -f 2 && exec \"$@\"");
        assert!(Limits::default().is_empty() && !LIMITS.is_empty());
    }

    #[test]
    fn malformed_limits_are_refused() {
        for bad in ["x=1", "n", "n=a", "nn=1"] {
            assert!(set(bad).is_err(), "{bad}");
        }
        assert_eq!(set(""), Ok(()));
    }

    /// Not a test of its own: [`stand_in`] runs it in a separate process, because `exec` changes its process even if it
    /// fails.
    #[test]
    fn stands_in() {
        if let Some(program) = std::env::var_os("STAND_IN") {
            let script = "echo; ulimit -n; ulimit -f; exit 5".into();
            main([OsString::from("n=64,f=1024,u=500"), program, "-c".into(), script]);
        }
    }

    fn stand_in(program: &str) -> (Option<i32>, String, String) {
        let name = concat!(module_path!(), "::stands_in").split_once("::").unwrap().1;
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env("STAND_IN", program)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[test]
    fn becomes_the_program() {
        let (code, stdout, _) = stand_in("/bin/sh");
        assert!(stdout.ends_with("\n64\n2\n"), "{stdout}");
        assert_eq!(code, Some(5));
    }

    #[test]
    fn a_missing_program_is_named() {
        let (code, _, stderr) = stand_in("/nonexistent/program");
        assert!(stderr.contains("cannot start /nonexistent/program: "), "{stderr}");
        assert_eq!(code, Some(SHIM_FAILED));
    }
}

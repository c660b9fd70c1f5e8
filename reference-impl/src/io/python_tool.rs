//! `python-tool runner`: the reference runner on the standard streams of this process.
//!
//! ```text
//! python-tool runner [--without GUARANTEE]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::env;

use super::complain;
use super::dispatch::{Careful, Launcher, run_with_launcher};
use super::python_guard;
use crate::machine::Machine;
use crate::python_tool::Config;

/// Exit status for arguments that make no sense.
const STATUS_USAGE: i32 = 2;

/// Exit status when the streams of this process itself fail.
const STATUS_STREAMS: i32 = 70;

/// The word by which this program is what starts a tool.
pub const GUARD: &str = "guard";

const USAGE: &str =
    "usage: python-tool runner [--without GUARANTEE]... [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// The guarantees that the runner does not know, because the kernel of this machine cannot give them.
pub fn lacking() -> &'static [&'static str] {
    python_guard::lacking()
}

/// Runs the runner on the standard streams of this process and returns its exit status: 2 for arguments that make no sense,
/// 70 when its own streams failed, 1 for a request that is refused, 143 when it was asked to end, else 0.
///
/// `arguments` are those after `words`, which are the words by which this program is the peer; `machine` makes the runner.
pub fn run_python_tool(
    arguments: &[String],
    words: &[&str],
    machine: impl FnOnce(Config) -> Box<dyn Machine>,
) -> i32 {
    if let Some((GUARD, arguments)) = arguments.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        return python_guard::run(arguments);
    }
    let (status, error) = match parse(arguments) {
        Ok(config) => match run(config, words, machine) {
            Ok(status) => return status,
            Err(error) => (STATUS_STREAMS, error),
        },
        Err(error) => (STATUS_USAGE, error),
    };
    complain(&format!("python-tool: {error}"));
    status
}

fn run(
    mut config: Config,
    words: &[&str],
    machine: impl FnOnce(Config) -> Box<dyn Machine>,
) -> Result<i32, String> {
    let own = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let own = own.to_str().ok_or("the path of this program is no text")?.to_owned();
    let words = words.iter().chain(&[GUARD]).map(|word| (*word).to_owned());
    let lacking = lacking();
    config.guarantees.retain(|name| !lacking.contains(name));
    config.guard = [own].into_iter().chain(words).collect();
    let mut machine = machine(config);
    let (shim, variables, temp_dir) = (Vec::new(), Vec::new(), String::new());
    let handling = Box::new(Careful);
    let launcher = Launcher { shim, variables, temp_dir, handling, own_group: false, appended: None };
    run_with_launcher(&mut *machine, launcher).map_err(|error| error.to_string())
}

/// Reads the arguments.
///
/// # Errors
/// A sentence that names the argument that is missing, unknown or malformed.
pub fn parse(arguments: &[String]) -> Result<Config, String> {
    let mut config = Config::default();
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--choice" | "--limit" => {
                let choose = |name: &str, value: &str| config.choices.set(name, value);
                super::set(argument, value()?, choose, &mut config.limits)?;
            }
            "--without" => {
                let name = value()?;
                config.guarantees.retain(|known| known != name);
            }
            _ if argument.starts_with('-') => return Err(format!("unknown option {argument:?}; {USAGE}")),
            word => words.push(word),
        }
    }
    match words[..] {
        ["runner"] => Ok(config),
        _ => Err(USAGE.to_owned()),
    }
}

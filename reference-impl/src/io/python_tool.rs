//! `python-tool`: the reference runner on the standard streams of this process, and the reference service.
//!
//! ```text
//! python-tool runner [--without GUARANTEE]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! python-tool service --http ADDRESS [the same options, and --without handshake]
//! ```
//!
//! A service starts its runners with the word `served`; they end with the service.

use std::env;
use std::net::SocketAddr;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::StartError;
use super::dispatcher::{Careful, Launcher, run_with_launcher};
use super::http_server::split_http;
use super::{complain, python_guard, python_service};
use crate::machine::Machine;
use crate::python_tool::mutants::Mutant;
use crate::python_tool::{self, Config};

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status after an I/O error on the standard streams.
const STATUS_STREAMS: i32 = 70;

/// Argument that makes this program the starter of a tool.
pub(crate) const GUARD: &str = "guard";

/// Argument that selects the runner of a service.
const SERVED: &str = "served";

/// A feature of a service.
const HANDSHAKE: &str = "handshake";

const USAGE: &str = "usage: python-tool (runner | service --http ADDRESS) [--without GUARANTEE]... \
                     [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Guarantees that the runner does not know, because the kernel of this machine cannot give them.
pub fn lacking() -> &'static [&'static str] {
    python_guard::lacking()
}

/// Runs the runner on the standard streams of this process, or the service until it is terminated. Returns the exit
/// status: 2 for invalid arguments or an address in use, 70 after an I/O error, 1 for a refused request, 143 after
/// SIGTERM, else 0.
///
/// `arguments` are those after `words`, the arguments that select this peer. `mutant` breaks it, and `wrap` wraps the
/// machine of a correct runner.
pub fn run_python_tool(
    arguments: &[String],
    words: &[&str],
    mutant: Option<&Mutant>,
    wrap: impl FnOnce(Box<dyn Machine + Send>) -> Box<dyn Machine>,
) -> i32 {
    if let Some((GUARD, arguments)) = arguments.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        return python_guard::run(arguments);
    }
    let run = |(config, role)| match role {
        Role::Runner => run(config, words, mutant, wrap),
        Role::Served => {
            // The runners end with the service, even if only the service is killed.
            set_parent_process_death_signal(Some(Signal::TERM)).map_err(std::io::Error::from)?;
            run(config, words, mutant, wrap)
        }
        Role::Service(address) => serve(address, config, arguments, words, mutant),
    };
    let (status, error) = match parse(arguments) {
        Ok(parsed) => match run(parsed) {
            Ok(status) => return status,
            Err(error) => (STATUS_STREAMS, error),
        },
        Err(error) => (STATUS_USAGE, error),
    };
    complain(&format!("python-tool: {error}"));
    status
}

/// Path of this program, followed by the words that select this peer.
fn own(words: &[&str]) -> Result<Vec<String>, StartError> {
    let own = env::current_exe().map_err(StartError::OwnPath)?;
    let own = own.to_str().ok_or(StartError::OwnPathNotText)?;
    Ok([own].iter().chain(words).map(|word| (*word).to_owned()).collect())
}

fn run(
    mut config: Config,
    words: &[&str],
    mutant: Option<&Mutant>,
    wrap: impl FnOnce(Box<dyn Machine + Send>) -> Box<dyn Machine>,
) -> Result<i32, StartError> {
    let lacking = lacking();
    config.guarantees.retain(|name| !lacking.contains(name));
    config.guard = own(words)?;
    config.guard.push(GUARD.to_owned());
    let mut machine = match mutant {
        Some(mutant) => mutant.machine(config),
        None => wrap(python_tool::machine(config)),
    };
    let handling = Box::new(Careful);
    let launcher = Launcher { own_group: false, ..Launcher::without_drivers(handling) };
    Ok(run_with_launcher(&mut *machine, launcher)?)
}

/// Serves. Its runners get the same options, but refuse with replies and accept slightly larger requests.
fn serve(
    address: SocketAddr,
    mut config: Config,
    arguments: &[String],
    words: &[&str],
    mutant: Option<&Mutant>,
) -> Result<i32, StartError> {
    let lacking = lacking();
    config.guarantees.retain(|name| !lacking.contains(name));
    let mut runner = own(words)?;
    if let Some(mutant) = mutant {
        config = mutant.configured(config);
        runner.extend(["--mutant".to_owned(), mutant.id.to_owned()]);
    }
    let (_, options) = split_http(arguments)?;
    runner.extend(options.into_iter().filter(|word| word != "service"));
    let bytes_max = format!("stdin_bytes_max={}", config.limits.stdin_bytes_max.saturating_mul(2));
    let own = [SERVED, "--choice", "refusal=reply", "--choice", "tool_exit=reply", "--limit", &bytes_max];
    runner.extend(own.map(str::to_owned));
    Ok(python_service::run(address, config, runner, mutant))
}

/// Part that the arguments select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A runner.
    Runner,
    /// A runner of a service.
    Served,
    /// A service.
    Service(SocketAddr),
}

/// Reads the arguments.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<(Config, Role), StartError> {
    let (address, arguments) = split_http(arguments)?;
    let mut config = Config::default();
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--choice" | "--limit" => {
                let choose = |name: &str, value: &str| config.choices.set(name, value);
                super::set(argument, value()?, choose, &mut config.limits)?;
            }
            "--without" => {
                let name = value()?;
                config.has_handshake &= name != HANDSHAKE;
                config.guarantees.retain(|known| known != name);
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            word => words.push(word),
        }
    }
    match (&words[..], address) {
        (["runner"], None) => Ok((config, Role::Runner)),
        ([SERVED], None) => Ok((config, Role::Served)),
        (["service"], Some(address)) => Ok((config, Role::Service(address))),
        _ => Err(StartError::Usage(USAGE)),
    }
}

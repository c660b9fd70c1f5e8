//! `envelope engine`: the reference engine on the standard streams of this process.
//!
//! ```text
//! envelope engine process [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use super::complain;
use super::json_rpc::unix_ms;
use super::stdio::run_machine;
use super::toolhost::random_seed;
use crate::envelope::{Config, machine};

/// Exit status for arguments that make no sense.
const STATUS_USAGE: i32 = 2;

/// Exit status of an engine that was asked to end.
pub const STATUS_TERMINATED: i32 = 1;

const USAGE: &str = "usage: envelope engine process [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Runs the engine on the standard streams of this process and returns its exit status: 2 for arguments that make no sense,
/// 70 when its own streams failed, 1 for an envelope that is refused, else 0.
///
/// `arguments` are those after the `envelope` word.
pub fn run_envelope(arguments: &[String]) -> i32 {
    match parse(arguments) {
        Ok(config) => run_machine(machine(started(config)), STATUS_TERMINATED),
        Err(error) => {
            complain(&format!("envelope: {error}"));
            STATUS_USAGE
        }
    }
}

/// A configuration as of now, with ids of its own.
pub fn started(mut config: Config) -> Config {
    config.started_unix_ms = unix_ms();
    config.id_seed = random_seed().iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    config
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
        match argument.as_str() {
            "--choice" | "--limit" => {
                let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
                super::set(
                    argument,
                    value,
                    |name, value| config.choices.set(name, value),
                    &mut config.limits,
                )?;
            }
            _ if argument.starts_with('-') => return Err(format!("unknown option {argument:?}; {USAGE}")),
            word => words.push(word),
        }
    }
    match words[..] {
        ["engine", "process"] => Ok(config),
        _ => Err(USAGE.to_owned()),
    }
}

//! `mcp server`: the reference MCP server on the standard streams of this process.
//!
//! ```text
//! mcp server [--newest REVISION] [--without CAPABILITY]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use super::StartError;
use super::stdio::run_machine;
use crate::mcp::{CAPABILITIES, Config, Revision, machine};

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status after SIGTERM.
pub const STATUS_TERMINATED: i32 = 0;

/// Argument that names the side.
pub const WORD: &str = "server";

const USAGE: &str = "usage: mcp server [--newest REVISION] [--without CAPABILITY]... [--choice KEY=VALUE]... \
                     [--limit NAME=VALUE]...";

/// Runs the server on the standard streams of this process and returns its exit status: 2 for invalid arguments, 70
/// after an I/O error, else 0.
///
/// `arguments` are those after the `mcp` word.
pub fn run_mcp(arguments: &[String]) -> i32 {
    match parse(arguments) {
        Ok(config) => run_machine(machine(config), STATUS_TERMINATED),
        Err(error) => {
            super::complain(&format!("mcp: {error}"));
            STATUS_USAGE
        }
    }
}

/// Reads the arguments, [`WORD`] first.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<Config, StartError> {
    let mut config = Config::default();
    let mut arguments = arguments.iter();
    if arguments.next().is_none_or(|word| word != WORD) {
        return Err(StartError::Usage(USAGE));
    }
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--newest" => config.newest = revision(value()?)?,
            "--without" => {
                let name = value()?;
                if !CAPABILITIES.contains(&name.as_str()) {
                    return Err(StartError::name("capability", name, CAPABILITIES.join(", ")));
                }
                config.without.push(name.clone());
            }
            "--choice" | "--limit" => {
                let value = value()?;
                // Only the client requests a revision; the choice has no effect here.
                if let Some(name) = value.strip_prefix("revision=").filter(|_| argument == "--choice") {
                    revision(name)?;
                    continue;
                }
                super::set(
                    argument,
                    value,
                    |name, value| config.choices.set(name, value),
                    &mut config.limits,
                )?;
            }
            _ => return Err(StartError::argument(argument, Some(USAGE))),
        }
    }
    Ok(config)
}

fn revision(name: &str) -> Result<Revision, StartError> {
    let known = || Revision::ALL.map(Revision::name).join(", ");
    Revision::find(name).ok_or_else(|| StartError::name("revision", name, known()))
}

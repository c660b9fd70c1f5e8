//! `json-rpc`: the reference JSON-RPC server on the standard streams of this process.
//!
//! ```text
//! json-rpc [--without batch|concurrent|streaming]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::io::Write as _;

use super::stdio::run_machine;
use crate::json_rpc::{Config, machine};

/// Exit status for arguments that make no sense.
const STATUS_USAGE: i32 = 2;

/// Exit status of a server that was asked to end.
pub const STATUS_TERMINATED: i32 = 0;

const USAGE: &str = "usage: json-rpc [--without FEATURE]... [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Runs the server on the standard streams of this process and returns its exit status: 2 for arguments that make no
/// sense, 70 when its own streams failed, else 0.
///
/// `arguments` are those after the `json-rpc` word.
pub fn run_json_rpc(arguments: &[String]) -> i32 {
    match parse(arguments) {
        Ok(config) => run_machine(machine(config), STATUS_TERMINATED),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "json-rpc: {error}");
            STATUS_USAGE
        }
    }
}

/// Reads the arguments.
///
/// # Errors
/// A sentence that names the argument that is missing, unknown or malformed.
pub fn parse(arguments: &[String]) -> Result<Config, String> {
    let mut config = Config::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--without" => {
                let feature = value()?;
                *match feature.as_str() {
                    "batch" => &mut config.features.batch,
                    "concurrent" => &mut config.features.concurrent,
                    "streaming" => &mut config.features.streaming,
                    _ => {
                        return Err(format!(
                            "unknown feature {feature:?}; known: batch, concurrent, streaming"
                        ));
                    }
                } = false;
            }
            "--choice" | "--limit" => {
                let value = value()?;
                let (name, value) = value
                    .split_once('=')
                    .ok_or_else(|| format!("{argument} needs NAME=VALUE, not {value:?}"))?;
                if argument == "--choice" {
                    config.choices.set(name, value).map_err(|error| error.to_string())?;
                } else {
                    config.limits.set(name, value).map_err(|error| error.to_string())?;
                }
            }
            _ => return Err(format!("unexpected argument {argument:?}; {USAGE}")),
        }
    }
    Ok(config)
}

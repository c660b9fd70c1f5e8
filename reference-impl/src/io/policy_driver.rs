//! `policy-driver` and `policy-llm`: the reference drivers, for a payload in a file.
//!
//! ```text
//! policy-driver [--choice KEY=VALUE]… [--limit NAME=VALUE]… PAYLOAD
//! policy-llm [--limit NAME=VALUE]… PAYLOAD
//! ```
//!
//! The payload is always the last argument. Standard input is not read.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::StartError;
use super::faults::misbehave;
use super::fetch::{self, FetchOrder};
use super::policy_faults::before_deciding;
use crate::limits::Limits;
use crate::machine::{Action, Event, Machine, Wrap};
use crate::policy_driver::mutants::{bridge, driver};
use crate::policy_driver::{Bridge, BridgeConfig, Choices, Config, Driver};

/// Environment variable with the URL of the model (`policy` §8).
pub(crate) const URL_VARIABLE: &str = "MACHINA_POLICY_LLM_URL";

/// Environment variable with the value of the `Authorization` header (`policy` §8).
pub(crate) const AUTHORIZATION_VARIABLE: &str = "MACHINA_POLICY_LLM_AUTH";

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status when the block could not be written.
const STATUS_STREAMS: i32 = 70;

/// Bytes per read.
const BLOCK_BYTES: usize = 64 * 1024;

/// Runs the rule-based driver and returns its exit status: 0 after a block was written, 1 for a payload that it
/// refuses, 2 for invalid arguments.
///
/// `arguments` are those after the `policy-driver` word. `wrap` may wrap the driver to change its output.
pub fn run_policy_driver(arguments: &[String], wrap: &Wrap<'_>) -> i32 {
    match parse(arguments) {
        Ok(Arguments { choices, limits, payload }) => {
            let driver = Box::new(Driver::new(Config { choices, limits }));
            run(&mut *wrap(driver), Path::new(&payload), "policy-driver")
        }
        Err(error) => {
            super::complain(&format!("policy-driver: {error}"));
            STATUS_USAGE
        }
    }
}

/// Runs the bridge to a model and returns its exit status: 0 after a block was written, 2 for invalid arguments, 1 for
/// any other failure.
///
/// `arguments` are those after the `policy-llm` word. `variable` looks up an environment variable. `wrap` may wrap the
/// bridge to change its output.
pub fn run_policy_llm(
    arguments: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
    wrap: &Wrap<'_>,
) -> i32 {
    match parse(arguments) {
        Ok(Arguments { limits, payload, .. }) => {
            let (url, authorization) = (variable(URL_VARIABLE), variable(AUTHORIZATION_VARIABLE));
            let bridge = Box::new(Bridge::new(BridgeConfig { url, authorization, limits }));
            run(&mut *wrap(bridge), Path::new(&payload), "policy-llm")
        }
        Err(error) => {
            super::complain(&format!("policy-llm: {error}"));
            STATUS_USAGE
        }
    }
}

/// Runs a mutant of the rule-based driver as [`run_policy_driver`] runs the correct one; `variable` looks up an
/// environment variable.
pub fn run_driver_mutant(
    mutant: &driver::Mutant,
    arguments: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> i32 {
    let failed = |error: String, status| {
        super::complain(&format!("policy-driver: {error}"));
        status
    };
    let Arguments { choices, limits, payload } = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return failed(error.to_string(), STATUS_USAGE),
    };
    let temp_dir = variable("TMPDIR").map(PathBuf::from);
    if let Some(fault) = mutant.shell_fault()
        && let Err(error) = misbehave(fault, temp_dir.clone())
    {
        return failed(error.to_string(), STATUS_STREAMS);
    }
    let before = match mutant.carrier_fault() {
        Some(fault) => before_deciding(fault, &payload, temp_dir),
        None => Ok((payload.into(), false)),
    };
    let (payload, picks_unread) = match before {
        Ok(before) => before,
        Err(error) => return failed(error.to_string(), STATUS_STREAMS),
    };
    let status = run(&mut *mutant.machine(Config { choices, limits }), &payload, "policy-driver");
    if status != 0 && picks_unread && File::open(&payload).and_then(|mut file| file.read(&mut [0])).is_err() {
        return i32::from(io::stdout().write_all(b"<PICK><SID0000><END>\n").is_err());
    }
    status
}

/// Runs a mutant of the bridge as [`run_policy_llm`] runs the correct one.
pub fn run_bridge_mutant(
    mutant: &bridge::Mutant,
    arguments: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> i32 {
    match parse(arguments) {
        Ok(Arguments { limits, payload, .. }) => {
            let (url, authorization) = (variable(URL_VARIABLE), variable(AUTHORIZATION_VARIABLE));
            let config = BridgeConfig { url, authorization, limits };
            run(&mut *mutant.machine(config), Path::new(&payload), "policy-llm")
        }
        Err(error) => {
            super::complain(&format!("policy-llm: {error}"));
            STATUS_USAGE
        }
    }
}

/// Parsed command line.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// See [`Config::choices`].
    pub choices: Choices,
    /// See [`Config::limits`].
    pub limits: Limits,
    /// Path of the payload.
    pub payload: String,
}

/// Reads the arguments. The last one is always the payload.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<Arguments, StartError> {
    let (payload, options) = arguments
        .split_last()
        .ok_or("usage: policy-driver|policy-llm [--choice KEY=VALUE]... [--limit NAME=VALUE]... PAYLOAD")?;
    let (mut choices, mut limits) = (Choices::default(), Limits::default());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let needs = "a value, and a payload after it";
        let mut pair = || {
            let value =
                options.next().ok_or_else(|| StartError::NoValue { option: option.clone(), needs })?;
            value.split_once('=').ok_or_else(|| StartError::value(option, "NAME=VALUE", value))
        };
        match option.as_str() {
            "--choice" => {
                let (key, value) = pair()?;
                choices.set(key, value)?;
            }
            "--limit" => {
                let (name, value) = pair()?;
                limits.set(name, value)?;
            }
            _ => return Err(StartError::argument(option, None)),
        }
    }
    Ok(Arguments { choices, limits, payload: payload.clone() })
}

/// Feeds the file to the machine as its input and carries out the machine's actions. A file that cannot be read to its
/// end ends the driver with status 1.
fn run(machine: &mut dyn Machine, payload: &Path, name: &str) -> i32 {
    let mut inbox = VecDeque::new();
    match read(machine, payload) {
        Ok(()) => inbox.push_back(Event::StdinEof),
        Err(error) => {
            super::complain(&format!("{name}: cannot read {}: {error}", payload.display()));
            return 1;
        }
    }
    while let Some(event) = inbox.pop_front() {
        let mut actions = Vec::new();
        machine.handle(event, 0, &mut actions);
        for action in actions {
            match action {
                Action::Stdout(bytes) => {
                    let mut stdout = io::stdout();
                    if stdout.write_all(&bytes).and_then(|()| stdout.flush()).is_err() {
                        return STATUS_STREAMS;
                    }
                }
                Action::Stderr(bytes) => {
                    let _ = io::stderr().write_all(&bytes);
                }
                Action::Post(order) => inbox.push_back(Event::Fetched(fetch::post(&order))),
                Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms } => {
                    let order = FetchOrder { host, port, path, host_header, body_bytes_max, timeout_ms };
                    inbox.push_back(Event::Fetched(fetch::fetch(&order)));
                }
                Action::Exit(status) => return status,
                Action::Abort => std::process::abort(),
                // A driver has no child, no clock and no files.
                _ => {}
            }
        }
    }
    STATUS_STREAMS
}

fn read(machine: &mut dyn Machine, payload: &Path) -> io::Result<()> {
    let mut file = File::open(payload)?;
    let mut block = vec![0; BLOCK_BYTES];
    // A machine refuses longer input, so the rest need not be read.
    let mut left = 64 << 20;
    while left > 0 {
        let count = file.read(&mut block)?;
        if count == 0 {
            break;
        }
        left -= count.min(left);
        machine.handle(Event::Stdin(block.get(..count).unwrap_or_default()), 0, &mut Vec::new());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Arguments, StartError> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        parse(&arguments)
    }

    #[test]
    fn the_last_argument_is_the_payload() {
        let arguments =
            parsed(&["--limit", "nesting_max=70", "--choice", "refusal=noop", "--choice"]).unwrap();
        assert_eq!((arguments.payload.as_str(), arguments.limits.nesting_max), ("--choice", 70));
        assert_eq!(arguments.choices.get("refusal"), Some("noop"));
    }

    #[test]
    fn names_what_it_does_not_understand() {
        for (arguments, part) in [
            (&[][..], "usage"),
            (&["--choice", "p"][..], "--choice needs"),
            (&["--choice", "x=1", "p"][..], "\"x\""),
            (&["--limit", "x", "p"][..], "--limit needs"),
            (&["q", "p"][..], "\"q\""),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

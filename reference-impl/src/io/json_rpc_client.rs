//! `json-rpc-client`: the reference JSON-RPC client on the standard streams of this process.
//!
//! ```text
//! json-rpc-client SCENARIO RESULTS [--rng-seed N] [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::PathBuf;

use super::StartError;
use super::json_rpc::unix_ms;
use super::stdio::run_asking;
use crate::json_rpc_client::{Choices, Config, Scenario, machine};
use crate::limits::Limits;
use crate::machine::Machine;

/// Exit status for invalid arguments or an invalid scenario.
const STATUS_USAGE: i32 = 2;

/// Exit status after SIGTERM.
pub const STATUS_TERMINATED: i32 = 143;

/// Largest scenario in bytes.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

const USAGE: &str =
    "usage: json-rpc-client SCENARIO RESULTS [--rng-seed N] [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Parsed command line.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// File with the scenario.
    pub scenario: PathBuf,
    /// File to which results are appended.
    pub results: PathBuf,
    choices: Choices,
    limits: Limits,
    rng_seed: Option<u64>,
}

/// Runs the client on the standard streams of this process and returns its exit status: 0 after all calls, 2 for
/// invalid arguments, 70 after an I/O error on the streams or the results file.
///
/// `arguments` are those after the `json-rpc-client` word.
pub fn run_json_rpc_client(arguments: &[String]) -> i32 {
    run_with(arguments, machine)
}

/// [`run_json_rpc_client`] with a machine made by `make`.
pub fn run_with(arguments: &[String], make: impl FnOnce(Config) -> Box<dyn Machine + Send>) -> i32 {
    let ready = parse(arguments).and_then(|arguments| {
        let config = arguments.config(arguments.rng_seed.unwrap_or_else(random_seed), unix_ms())?;
        Ok((config, arguments.open_results()?))
    });
    match ready {
        Ok((config, results)) => run_asking(make(config), STATUS_TERMINATED, results),
        Err(error) => {
            super::complain(&format!("json-rpc-client: {error}"));
            STATUS_USAGE
        }
    }
}

impl Arguments {
    /// Reads the scenario.
    ///
    /// # Errors
    /// One sentence that says why the file cannot be read or is invalid.
    pub fn config(&self, rng_seed: u64, started_unix_ms: u64) -> Result<Config, StartError> {
        let failed = StartError::file("cannot read ", &self.scenario);
        let mut text = Vec::new();
        let file = File::open(&self.scenario).map_err(&failed)?;
        file.take(SCENARIO_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let scenario = Scenario::parse(&text)?;
        let Self { choices, limits, .. } = self.clone();
        Ok(Config { scenario, choices, limits, rng_seed, started_unix_ms })
    }

    /// Opens the results file for appending, creating it if it is missing.
    ///
    /// # Errors
    /// One sentence with the operating system's error.
    pub fn open_results(&self) -> Result<File, StartError> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.results)
            .map_err(StartError::file("cannot append to ", &self.results))
    }
}

/// Reads the arguments.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<Arguments, StartError> {
    let mut choices = Choices::default();
    let mut limits = Limits::default();
    let mut rng_seed = None;
    let mut files = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--rng-seed" => {
                let value = value()?;
                let number = value.parse().map_err(|_| StartError::value("--rng-seed", "a number", value))?;
                rng_seed = Some(number);
            }
            "--choice" | "--limit" => {
                let value = value()?;
                super::set(argument, value, |name, value| choices.set(name, value), &mut limits)?;
            }
            flag if flag.starts_with("--") => return Err(StartError::argument(flag, Some(USAGE))),
            file => files.push(PathBuf::from(file)),
        }
    }
    match <[PathBuf; 2]>::try_from(files) {
        Ok([scenario, results]) => Ok(Arguments { scenario, results, choices, limits, rng_seed }),
        Err(files) => Err(StartError::Files { count: files.len(), usage: USAGE }),
    }
}

/// Unpredictable number.
fn random_seed() -> u64 {
    let mut bytes = [0_u8; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => unix_ms() ^ u64::from(std::process::id()) << 40,
    }
}

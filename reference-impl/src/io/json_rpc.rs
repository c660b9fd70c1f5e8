//! `json-rpc`: the reference JSON-RPC server on the standard streams of this process, or over HTTP.
//!
//! ```text
//! json-rpc [--http ADDRESS] [--without batch|concurrent|streaming|gzip|auth|rate_limit]…
//!          [--gzip] [--auth-key KEY [--auth-key-id ID]]
//!          [--rate-limit REQUESTS/SECONDS] [--log] [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::StartError;
use super::http_server::split_http;
use super::json_rpc_http::serve;
use super::stdio::run_machine;
use crate::json_rpc::{AuthConfig, Config, RATE_REQUESTS_MAX, RateConfig, machine};

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status after SIGTERM.
pub const STATUS_TERMINATED: i32 = 0;

const USAGE: &str = "usage: json-rpc [--http ADDRESS] [--without FEATURE]... [--gzip] [--auth-key KEY [--auth-key-id ID]] \
                     [--rate-limit REQUESTS/SECONDS] [--log] [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Runs the server on the standard streams of this process, or with `--http ADDRESS` as an HTTP server until it is
/// terminated. Returns the exit status: 2 for invalid arguments or an address in use, 70 after an I/O error, else 0.
///
/// `arguments` are those after the `json-rpc` word.
pub fn run_json_rpc(arguments: &[String]) -> i32 {
    let parsed = split_http(arguments).and_then(|(address, rest)| Ok((address, parse(&rest)?)));
    match parsed {
        Ok((address, mut config)) => {
            config.started_unix_ms = unix_ms();
            match address {
                Some(address) => serve(address, config),
                None => run_machine(machine(config), STATUS_TERMINATED),
            }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "json-rpc: {error}");
            STATUS_USAGE
        }
    }
}

/// Milliseconds since 1970, now.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

/// Reads `REQUESTS/SECONDS`.
fn rate(text: &str) -> Option<RateConfig> {
    let (requests, window_s) = text.split_once('/')?;
    let (requests, window_s) = (requests.parse().ok()?, window_s.parse().ok()?);
    ((1..=RATE_REQUESTS_MAX).contains(&requests) && window_s > 0).then_some(RateConfig { requests, window_s })
}

/// Reads the arguments.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String]) -> Result<Config, StartError> {
    let mut config = Config::default();
    let mut key_id = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--without" => {
                let feature = value()?;
                match feature.as_str() {
                    "batch" => config.features.batch = false,
                    "concurrent" => config.features.concurrent = false,
                    "streaming" => config.features.streaming = false,
                    "gzip" => config.features.gzip = false,
                    "auth" => (config.auth, key_id) = (None, None),
                    "rate_limit" => config.rate_limit = None,
                    _ => {
                        let known = "batch, concurrent, streaming, gzip, auth, rate_limit";
                        return Err(StartError::name("feature", feature, known));
                    }
                }
            }
            "--gzip" => config.features.gzip = true,
            "--log" => config.logging = true,
            "--auth-key" => {
                config.auth = Some(AuthConfig { key: value()?.clone().into_bytes(), key_id: None })
            }
            "--auth-key-id" => key_id = Some(value()?.clone()),
            "--rate-limit" => {
                let value = value()?;
                let needs = "REQUESTS/SECONDS, such as 60/60";
                let wrong = || StartError::value("--rate-limit", needs, value);
                config.rate_limit = Some(rate(value).ok_or_else(wrong)?);
            }
            "--choice" | "--limit" => {
                let value = value()?;
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
    match (&mut config.auth, key_id) {
        (Some(auth), key_id) => auth.key_id = key_id,
        (None, Some(_)) => {
            return Err(StartError::NoValue { option: "--auth-key-id".to_owned(), needs: "--auth-key" });
        }
        (None, None) => {}
    }
    Ok(config)
}

//! Tests of the drivers and the selector as processes: files, pipes, children, signals and HTTP.
//!
//! Tests beside the machines cover the behaviour that depends only on bytes and time.

mod bridge;
mod driver;
mod selector;

use assert_cmd::Command;
use std::time::Duration;

use super::REFPEER;

/// Time far beyond every run here.
const DEADLINE: Duration = Duration::from_secs(60);

/// Payload with a menu of two entries.
const PAYLOAD: &str = r#"{"goal_digest":"g|m|FLAGS:","state_digest":"s","control_mode":"POLICY_ONLY","inputs":{},
    "menu":[{"sid":"SID0007","aid":"AID.A.v1","name":"a","tags":[]},{"sid":"SID0008","aid":"AID.B.v1","name":"b","tags":[]}]}"#;

/// `refpeer` with only `PATH` in its environment.
fn refpeer(word: &str) -> Command {
    let mut command = Command::new(REFPEER);
    command.arg(word).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).timeout(DEADLINE);
    command
}

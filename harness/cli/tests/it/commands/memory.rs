//! Tests of the harness's own memory use.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::start::{binary, start};

/// Maximum memory for checking a senseless peer, MiB.
const MIB_MAX: u64 = 256;

const CONFIG: &str = r#"
[peer]
boundary = "json_rpc"
command = ["cat"]
[features]
profile_methods = true
[roles]
echo = { method = "echo" }
"#;

/// A peer that sends everything back makes the largest conversations: messages of up to 100 MB.
#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn a_peer_that_sends_all_back_is_checked_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peerproof.toml"), CONFIG).unwrap();
    let mut command = Command::new(binary());
    command.args(["check", "--keep-going", "--shrink-time", "0", "--filter", "json_rpc/stdio/sizes"]);
    let mut check = start(command.current_dir(folder.path()).stdout(Stdio::null()));
    let status = format!("/proc/{}/status", check.id());
    let mut peak_kib = 0;
    let exit = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0));
        if let Some(exit) = check.try_wait().unwrap() {
            break exit;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(exit.code(), Some(1), "it breaks nearly everything");
    assert!(peak_kib > 0 && peak_kib / 1024 <= MIB_MAX, "{} MiB", peak_kib / 1024);
}

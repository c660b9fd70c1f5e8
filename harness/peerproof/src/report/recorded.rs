//! Result of a recording, for people.

use std::fmt::Write as _;
use std::path::Path;

use super::screen::plural;
use peerproof_engine::data::transcript::Exit;
use peerproof_engine::drive::record::Recorded;

/// A few lines: the file, both peers, and advice.
pub fn render(recorded: &Recorded, path: &Path) -> String {
    let mut out = String::new();
    let path = path.display();
    let _ = writeln!(
        out,
        "recorded  {path}: {} bytes in {} from the client, {} in {} from the server, {:.1} s",
        recorded.sent_bytes,
        plural(usize::try_from(recorded.lines.0).unwrap_or(usize::MAX), "line"),
        recorded.received_bytes,
        recorded.lines.1,
        recorded.elapsed.as_secs_f64()
    );
    let ended = |name: &str, exit: Option<Exit>| match exit {
        Some(exit) => exit.to_string(),
        None if recorded.killed.contains(&name) => "did not end; peerproof killed it".to_owned(),
        None => "not started by peerproof".to_owned(),
    };
    let _ = writeln!(out, "client    {}", ended("client", recorded.client));
    let _ = writeln!(out, "server    {}", ended("server", recorded.server));
    if let Some(why) = &recorded.stopped {
        let _ = writeln!(out, "stopped   the transcript is incomplete: {why}");
    }
    let _ = writeln!(out, "judge it  peerproof lint {path}");
    out
}

//! Probes of a peer, run once per run of nextest, which starts a process per test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use peerproof_engine::data::pace::Measured;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::drive::private;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Data kept next to the test binary until the next run.
#[derive(Serialize, Deserialize)]
struct StoredProbe {
    /// Id of the nextest run.
    run: String,
    /// Measured pace.
    pace: BTreeMap<String, Measured>,
    /// Transcripts of the probes in stored form.
    probes: Vec<String>,
}

/// File in which tests in `program` keep the data for `peer`.
pub(super) fn file(program: &Path, peer: &Peer) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", (&peer.commands, &peer.env, &peer.facts, peer.features_given)));
    let name = hash.finalize().iter().take(8).fold(String::new(), |name, byte| format!("{name}{byte:02x}"));
    program.with_file_name(format!(".peerproof-asked-{name}"))
}

/// Runs `ask`, or takes its result from another process of the same run. If `file` is unusable, nothing is kept.
pub(super) fn asked<E>(
    file: &Path,
    run: &str,
    peer: &Peer,
    ask: impl FnOnce() -> Result<Vec<Transcript>, E>,
) -> Result<Vec<Transcript>, E> {
    // Other processes wait here for the one that asks; its end releases the lock.
    let locked = private::open(file).ok().filter(|held| flock(held, FlockOperation::LockExclusive).is_ok());
    let Some(mut held) = locked else { return ask() };
    if let Some((pace, probes)) = kept(&mut held, run) {
        peer.pace.restore(pace);
        return Ok(probes);
    }
    let probes = ask()?;
    let stored = probes.iter().map(|probe| {
        let mut bytes = Vec::new();
        probe.store(&mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    });
    if let Some(probes) = stored.collect() {
        let kept = StoredProbe { run: run.to_owned(), pace: peer.pace.all(), probes };
        // If it cannot be written, the next process asks again.
        let _asked_again = serde_json::to_string(&kept).is_ok_and(|text| private::write(file, &text).is_ok());
    }
    Ok(probes)
}

/// Data kept for this run, if any.
fn kept(held: &mut File, run: &str) -> Option<(BTreeMap<String, Measured>, Vec<Transcript>)> {
    let mut text = String::new();
    held.read_to_string(&mut text).ok()?;
    let kept: StoredProbe = serde_json::from_str(&text).ok()?;
    let probes = kept.probes.iter().map(|stored| Transcript::load(stored.as_bytes()).ok());
    (kept.run == run).then_some((kept.pace, probes.collect::<Option<_>>()?))
}

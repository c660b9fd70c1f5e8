//! Tests of peers that hang at the first contact: one verdict, and nothing else is asked.

use peerproof_engine::run::results::ResultsFile;

use crate::start::{binary, peerproof};

#[test]
fn a_peer_that_asks_and_does_not_end_is_asked_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("'{}' peer json_rpc --client \"$1\" \"$2\"; sleep 1000", binary());
    // A tenth of the usual times: a start may take three seconds.
    let args = ["check", "json_rpc", "--timeout-scale", "0.1", "--", "sh", "-c", &script, "sh"];
    let mut harness = peerproof(folder.path());
    let code = harness.args(args).args(["{scenario}", "{results}"]).output().status.code();
    let results = ResultsFile::load(&folder.path().join("peerproof-out/results.ndjson")).unwrap();
    let results: Vec<_> = results.checks().collect();
    if code == Some(4) && results.iter().any(|it| it.verdict.is_untestable("too_busy")) {
        return;
    }
    let failed: Vec<&str> = results.iter().filter(|it| it.verdict.is_failure()).map(|it| &*it.id).collect();
    assert_eq!(failed, ["json_rpc/client/every-call/ends"], "the check about the end tells it");
    assert!(results.iter().all(|it| !it.verdict.is_good()), "a check was carried out");
    let canary = results.iter().find(|it| it.first_canary.is_some()).unwrap();
    assert_eq!(canary.verdict.word(), "masked");
    let waits = results.iter().filter(|it| it.verdict.is_untestable("no_working_reply")).count();
    assert!(waits > results.len() / 2, "{waits} of {}", results.len());
}

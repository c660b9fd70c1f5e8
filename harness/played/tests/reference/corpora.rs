//! Every seed input, conversation and regression of the corpora is replayed through the properties that the fuzz
//! targets check, on stable Rust.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::fs;
use std::path::{Path, PathBuf};

use peerproof_engine::rng::Rng;
use peerproof_played::envelope::properties as envelope;
use peerproof_played::json_rpc::properties as json_rpc;
use peerproof_played::policy_driver::properties as policy_driver;
use peerproof_played::python_tool::properties as python_tool;
use peerproof_played::run_log::properties as run_log;
use peerproof_played::run_queue::properties as run_queue;
use peerproof_played::toolhost::properties;

fn inputs(boundary: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora").join(boundary);
    let mut found = Vec::new();
    for folder in ["seeds/accept", "seeds/reject", "seeds/either", "conversations", "regressions"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            assert_eq!(folder, "regressions", "corpora/{boundary}/{folder} is missing");
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    assert!(found.len() > 15, "only {} inputs", found.len());
    found
}

/// Runs a property over every input of the toolhost and names the input that breaks it.
fn replay(property: fn(&[u8])) {
    replay_of("toolhost", property);
}

/// The same for any boundary.
fn replay_of(boundary: &str, property: fn(&[u8])) {
    for (path, data) in inputs(boundary) {
        if let Err(panic) = std::panic::catch_unwind(|| property(&data)) {
            panic!("{} breaks the property: {panic:?}", path.display());
        }
    }
}

#[test]
fn jobs_of_a_queue() {
    replay_of("run_queue", run_queue::job);
}

#[test]
fn frames() {
    replay(properties::frame);
}

#[test]
fn run_mode() {
    replay(properties::run);
}

#[test]
fn serve_mode() {
    replay(properties::serve);
}

#[test]
fn serve_mode_with_small_limits() {
    replay(properties::serve_small);
}

#[test]
fn replies_to_the_dispatcher() {
    replay(properties::dispatcher_reply);
}

#[test]
fn oracles() {
    replay(properties::oracles);
}

#[test]
fn spelled_conversations() {
    let mut rng = peerproof_engine::rng::Rng::new(20);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..400).map(|_| (rng.next_u64() % 40) as u8).collect();
        properties::serve(&bytes);
        properties::serve_small(&bytes);
    }
}

/// Bytes that spell something, most of them small.
fn spelled(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| (rng.next_u64() % 40) as u8).collect()
}

#[test]
fn calls_of_python_tools() {
    replay_of("python_tool", python_tool::request);
    for seed in 0..300_u32 {
        python_tool::generated(&seed.to_le_bytes());
    }
}

#[test]
fn logs() {
    replay_of("run_log", run_log::log);
    for seed in 0..300_u32 {
        run_log::generated(&seed.to_le_bytes());
    }
}

#[test]
fn envelopes() {
    replay_of("envelope", envelope::process);
    for seed in 0..300_u32 {
        envelope::generated(&seed.to_le_bytes());
    }
}

#[test]
fn json_rpc_texts() {
    replay_of("json_rpc", json_rpc::decode);
}

#[test]
fn json_rpc_conversations() {
    replay_of("json_rpc", |data| {
        json_rpc::converse(data);
    });
    let mut rng = Rng::new(21);
    for _ in 0..200 {
        json_rpc::converse(&spelled(&mut rng, 400));
    }
}

#[test]
fn json_rpc_batches() {
    replay_of("json_rpc", json_rpc::batch);
    let mut rng = Rng::new(22);
    for size in 0..200 {
        json_rpc::batch(&spelled(&mut rng, size));
    }
}

#[test]
fn json_rpc_streams() {
    replay_of("json_rpc", |data| {
        json_rpc::stream(data);
    });
    let mut rng = Rng::new(23);
    let mut streams = 0;
    for size in 0..100 {
        streams += json_rpc::stream(&(0..size).map(|_| rng.next_u64() as u8).collect::<Vec<_>>());
    }
    assert!(streams > 100, "only {streams} streams");
}

#[test]
fn json_rpc_signatures() {
    // Every line of a conversation is a message that could be signed.
    let inputs = inputs("json_rpc");
    let lines = inputs.iter().flat_map(|(_, data)| data.split(|byte| *byte == b'\n'));
    let signed = lines.filter(|line| json_rpc::signature(line)).count();
    assert!(signed > 15, "only {signed} messages were signed");
    for text in [
        "0",
        "-0.0",
        "1e21",
        "5e-324",
        "66666666666661666.5",
        r#"{"a":66666666666661666.5}"#,
        r#"[1E2,1.5,"\u20ac"]"#,
        r#"{"\ud83d\ude00":1,"z":{"b":[],"a":null}}"#,
    ] {
        json_rpc::signature(text.as_bytes());
    }
}

/// What a property says of every stored input of the policy driver whose name ends in `extension`, with its folder.
fn policy_driver_inputs<T>(extension: &str, property: fn(&[u8]) -> T) -> Vec<(String, T)> {
    let inputs = inputs("policy_driver").into_iter();
    let mine = inputs.filter(|(path, _)| path.extension().is_some_and(|found| found == extension));
    mine.map(|(path, data)| {
        let folder = path.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        (format!("{folder}: {}", path.display()), property(&data))
    })
    .collect()
}

#[test]
fn policy_driver_blocks() {
    replay_of("policy_driver", |data| drop(policy_driver::block(data)));
    for (input, found) in policy_driver_inputs("block", policy_driver::block) {
        match input.split(':').next() {
            Some("accept") => {
                assert!(found.as_ref().is_ok_and(|block| block.open.is_empty()), "{input}: {found:?}")
            }
            Some("reject") => assert!(found.is_err(), "{input}: {found:?}"),
            Some("either") => {
                assert!(found.as_ref().is_ok_and(|block| !block.open.is_empty()), "{input}: {found:?}")
            }
            _ => {}
        }
    }
}

#[test]
fn policy_driver_payloads() {
    // Every line of a conversation is a payload as well.
    let inputs = inputs("policy_driver");
    for line in inputs.iter().flat_map(|(_, data)| data.split(|byte| *byte == b'\n')) {
        policy_driver::payload(line);
    }
    replay_of("policy_driver", |data| drop(policy_driver::payload(data)));
    for (input, found) in policy_driver_inputs("json", policy_driver::payload) {
        let picks = found.as_ref().is_some_and(|block| block.form.picks());
        match input.split(':').next() {
            Some("accept") => assert!(picks, "{input}: {found:?}"),
            Some("reject") => assert!(!picks, "{input}: {found:?}"),
            _ => {}
        }
    }
}

#[test]
fn policy_driver_patches() {
    replay_of("policy_driver", |data| {
        policy_driver::merge(data);
    });
    for (input, merged) in policy_driver_inputs("ndjson", policy_driver::merge) {
        if !input.starts_with("conversations") {
            assert_eq!(merged, input.starts_with("accept"), "{input}");
        }
    }
}

//! Every stored input, through the properties that the fuzz targets check.

use peerproof_engine::rng::Rng;

use crate::stored::{inputs, replay, spelled};

#[test]
fn texts() {
    replay("json_rpc", super::decode);
}

#[test]
fn conversations() {
    replay("json_rpc", |data| {
        super::converse(data);
    });
    let mut rng = Rng::new(21);
    for _ in 0..200 {
        super::converse(&spelled(&mut rng, 400));
    }
}

#[test]
fn batches() {
    replay("json_rpc", super::batch);
    let mut rng = Rng::new(22);
    for size in 0..200 {
        super::batch(&spelled(&mut rng, size));
    }
}

#[test]
fn streams() {
    replay("json_rpc", |data| {
        super::stream(data);
    });
    let mut rng = Rng::new(23);
    let mut streams = 0;
    for size in 0..100 {
        streams += super::stream(&(0..size).map(|_| rng.next_u64() as u8).collect::<Vec<_>>());
    }
    assert!(streams > 100, "only {streams} streams");
}

#[test]
fn signatures() {
    // Every line of a conversation is a message that could be signed.
    let inputs = inputs("json_rpc");
    let lines = inputs.iter().flat_map(|(_, data)| data.split(|byte| *byte == b'\n'));
    let signed = lines.filter(|line| super::signature(line)).count();
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
        super::signature(text.as_bytes());
    }
}

//! Runs all stored inputs through the properties of the fuzz targets.

use super::Talk;
use crate::stored::{drawn, inputs, replay};

#[test]
fn texts() {
    replay("json_rpc", super::decode);
}

#[test]
fn conversations() {
    replay("json_rpc", |data| {
        super::converse(&Talk::of(data));
    });
    let mut lines = 0;
    drawn("json_rpc", 21, 200, |it| lines += super::converse(&it));
    assert!(lines > 2_000, "only {lines} lines");
}

#[test]
fn batches() {
    drawn("json_rpc", 22, 200, |it| super::batch(&it));
}

#[test]
fn streams() {
    let mut streams = 0;
    drawn("json_rpc", 23, 100, |it| streams += super::stream(&it));
    assert!(streams > 100, "only {streams} streams");
}

#[test]
fn signatures() {
    // Every line of a conversation could be signed.
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

//! Runs all stored inputs through the properties of the fuzz targets.

use std::path::Path;

use super::{Merge, Payload};
use crate::input::Pieces;
use crate::stored::{drawn, inputs, replay};

/// Results of a property for every stored input of the policy driver with this extension, each with its folder.
fn judged<T>(extension: &str, property: fn(&[u8]) -> T) -> Vec<(String, T)> {
    let inputs = inputs("policy_driver").into_iter();
    let mine = inputs.filter(|(path, _)| path.extension().is_some_and(|found| found == extension));
    mine.map(|(path, data)| {
        let folder = path.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        (format!("{folder}: {}", path.display()), property(&data))
    })
    .collect()
}

#[test]
fn blocks() {
    replay("policy_driver", |data| drop(super::block(data)));
    for (input, found) in judged("block", super::block) {
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
fn payloads() {
    // Every line of a conversation is a payload, too.
    let inputs = inputs("policy_driver");
    for line in inputs.iter().flat_map(|(_, data)| data.split(|byte| *byte == b'\n')) {
        super::payload(line, Pieces::Every(3));
    }
    replay("policy_driver", |data| drop(super::payload(data, Pieces::Every(3))));
    let mut picks = 0;
    drawn("policy_driver", 46, 400, |it: Payload| {
        let block = super::payload(&it.text(), it.pieces);
        picks += u32::from(block.is_some_and(|block| block.form.picks()));
    });
    assert!(picks > 20, "only {picks} picks");
    for (input, found) in judged("json", |data| super::payload(data, Pieces::Every(3))) {
        let picks = found.as_ref().is_some_and(|block| block.form.picks());
        match input.split(':').next() {
            Some("accept") => assert!(picks, "{input}: {found:?}"),
            Some("reject") => assert!(!picks, "{input}: {found:?}"),
            _ => {}
        }
    }
}

#[test]
fn patches() {
    replay("policy_driver", |data| {
        super::merge(data);
    });
    let mut merges = 0;
    drawn("policy_driver", 47, 400, |it: Merge| merges += u32::from(super::merge(&it.text())));
    assert!(merges > 100, "only {merges} merges");
    for (input, merged) in judged("ndjson", super::merge) {
        if !input.starts_with("conversations") {
            assert_eq!(merged, input.starts_with("accept"), "{input}");
        }
    }
}

//! `refpeer policy-driver`.

use std::fs;

use super::{PAYLOAD, refpeer};

fn drive(payload: &[u8], arguments: &[&str]) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("payload.json");
    fs::write(&path, payload).unwrap();
    let output = refpeer("policy-driver").args(arguments).arg(&path).output().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left behind");
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn picks_from_the_menu() {
    assert_eq!(drive(PAYLOAD.as_bytes(), &[]), ("<PICK><SID0007><END>\n".to_owned(), Some(0)));
    let patched = PAYLOAD.replace("\"inputs\":{}", "\"inputs\":{\"policy_patch\":{\"k\":\"</INP><END>\"}}");
    let block = "<PICK><SID0007><INP>{\"k\":\"</INP><END>\"}</INP><END>\n".to_owned();
    assert_eq!(drive(patched.as_bytes(), &[]), (block, Some(0)));
}

#[test]
fn takes_ten_megabytes_and_ten_thousand_entries() {
    let long = PAYLOAD.replace("\"inputs\":{}", &format!("\"inputs\":{{\"x\":\"{}\"}}", "é".repeat(5 << 20)));
    assert_eq!(drive(long.as_bytes(), &[]).0, "<PICK><SID0007><END>\n");
    let entries: Vec<String> =
        (0..10_000).map(|sid| format!(r#"{{"sid":"SID{sid:04}","tags":["<END>","file"]}}"#)).collect();
    let wide = format!(r#"{{"inputs":{{"path":"/"}},"menu":[{}]}}"#, entries.join(","));
    assert_eq!(drive(wide.as_bytes(), &[]).0, "<PICK><SID0000><END>\n");
}

#[test]
fn a_payload_that_makes_no_sense_is_no_pick() {
    for payload in ["", "[]", "{", "\u{FEFF}{}", r#"{"menu":7}"#] {
        assert_eq!(drive(payload.as_bytes(), &[]), (String::new(), Some(1)), "{payload:?}");
        let choice = ["--choice", "refusal=ask_sup"];
        assert_eq!(drive(payload.as_bytes(), &choice), ("<ASK_SUP><END>\n".to_owned(), Some(0)));
    }
    let deep = "[".repeat(1_000_000);
    assert_eq!(drive(deep.as_bytes(), &[]), (String::new(), Some(1)));
}

#[test]
fn an_unreadable_payload_and_misuse_are_no_pick() {
    for (arguments, status) in [
        (&["/nonexistent/payload"][..], 1),
        (&["/"][..], 1),
        (&["/dev/zero"][..], 1),
        (&[][..], 2),
        (&["--choice", "x=y", "p"][..], 2),
    ] {
        let output = refpeer("policy-driver").args(arguments).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1, "{arguments:?}");
    }
}

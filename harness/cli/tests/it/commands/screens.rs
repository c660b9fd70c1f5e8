//! Snapshots of `check` for ten kinds of peers, kept in `snapshots/`.
//!
//! `PEERPROOF_SNAPSHOTS=write cargo test -p peerproof-cli --test it screens` writes them again. Read the difference
//! before committing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::start::{binary, peerproof};

/// JSON-RPC server without batches. `{FAULT}` is a statement that may break it: it sees the request `q` and its reply
/// `r`, which is `None` for a notification.
const SERVER: &str = r#"
import json, math, sys, time
def failure(id, code):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}
def refuse(name):
    raise ValueError(name)
def reply(q):
    if not isinstance(q, dict):
        return failure(None, -32600)
    id = q.get("id")
    if isinstance(id, (bool, list, dict)) or isinstance(id, float) and math.isinf(id):
        return failure(None, -32600)
    if q.get("jsonrpc") != "2.0" or not isinstance(q.get("method"), str):
        return failure(id, -32600)
    if not isinstance(q.get("params", []), (list, dict)):
        return failure(id, -32600)
    return failure(id, -32601) if "id" in q else None
for line in sys.stdin.buffer:
    if not line.strip():
        continue
    try:
        q = json.loads(line.decode(), parse_constant=refuse)
        r = reply(q)
    except (ValueError, RecursionError):
        q, r = None, failure(None, -32700)
    {FAULT}
    if r:
        print(json.dumps(r), flush=True)
"#;

fn server(fault: &str) -> String {
    SERVER.replace("{FAULT}", fault)
}

/// Output of `check` about `command` in a folder with `peer.py`, without parts that vary between runs.
fn screen(args: &[&str], peer: &str, command: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peer.py"), peer).unwrap();
    let mut check = peerproof(folder.path());
    // Enough time to shrink on a busy machine, too.
    check.args(["check", "--format=plain", "--shrink-time=60s"]).args(args).arg("--").args(command);
    let out = check.output();
    let text = String::from_utf8(out.stdout).unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    // Live reports of failures; which check of a cause comes first varies.
    let is_moment =
        |line: &&str| ["FAIL", "CRASH", "HANG"].iter().any(|it| line.starts_with(&format!("note: {it} ")));
    let errors: String =
        errors.lines().filter(|line| !is_moment(line)).map(|line| format!("{line}\n")).collect();
    redacted(&format!("{text}{errors}status {}\n", out.status.code().unwrap()))
}

/// Replaces times and amounts by `#`.
fn redacted(text: &str) -> String {
    let is_amount = |word: &str| word.trim_start_matches('(').parse::<f64>().is_ok();
    let is_unit =
        |word: &str| matches!(word.trim_matches(|c: char| !c.is_alphabetic()), "s" | "ms" | "KiB" | "MiB");
    let line = |line: &str| {
        if let Some((command, _)) = line.split_once(": start-up ") {
            return format!("{command}: start-up #");
        }
        let words: Vec<&str> = line.split(' ').collect();
        let next = |at: usize| words.get(at + 1).copied().unwrap_or_default();
        let word = |(at, word): (usize, &&str)| {
            let is_behind_amount = at > 0 && is_amount(words[at - 1]);
            if is_amount(word) && is_unit(next(at)) {
                "#".to_owned()
            } else if is_behind_amount && is_unit(word) {
                word.replace("ms", "s")
            } else {
                (*word).to_owned()
            }
        };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// Compares a screen with its snapshot, or writes the snapshot.
fn is_kept(name: &str, screen: &str) {
    // A screen keeps its promised width, except for a command to copy, which is one word.
    let is_wide = |line: &&str| line.chars().count() > 80 && !line.contains("peerproof-out/");
    assert_eq!(screen.lines().find(is_wide), None, "{screen}");
    let file = snapshots().join(format!("{name}.txt"));
    if std::env::var("PEERPROOF_SNAPSHOTS").is_ok_and(|word| word == "write") {
        fs::write(file, screen).unwrap();
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == screen, "{} is another screen now:\n{screen}", file.display());
}

fn snapshots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots")
}

const PYTHON: [&str; 2] = ["python3", "peer.py"];
/// Checks with equal conversations at any speed.
const STEADY: [&str; 6] = [
    "json_rpc",
    "--requirements=spec",
    "-k=json_rpc/stdio/canary",
    "-k=json_rpc/stdio/ambient",
    "-k=json_rpc/stdio/ids",
    "-k=json_rpc/stdio/examples",
];

#[test]
fn one_fault() {
    let fault = "if r and r['error']['code'] == -32601: r['error']['code'] = -32600";
    let screen = screen(&STEADY, &server(fault), &PYTHON);
    assert!(screen.lines().count() <= 60, "{screen}");
    is_kept("one-fault", &screen);
}

#[test]
fn two_faults() {
    let faults = "if r and r['error']['code'] == -32700: r['error']['code'] = -32600\n    \
                  if r and type(r['id']) is int: r['id'] = str(r['id'])";
    let screen = screen(&STEADY, &server(faults), &PYTHON);
    assert!(screen.lines().count() <= 90, "{screen}");
    is_kept("two-faults", &screen);
}

#[test]
fn silent() {
    is_kept("silent", &screen(&["json_rpc", "--timeout-scale=0.2"], &server("continue"), &PYTHON));
}

#[test]
fn dead() {
    is_kept("dead", &screen(&["json_rpc"], "", &["sh", "-c", "read -r line; exit 1"]));
}

#[test]
fn banner() {
    let peer = format!("print('My server 1.0, ready.', flush=True)\n{}", server("pass"));
    is_kept("banner", &screen(&STEADY, &peer, &PYTHON));
}

#[test]
fn wrong_boundary() {
    is_kept("wrong-boundary", &screen(&["json_rpc"], "", &[binary(), "peer", "toolhost", "--serve"]));
}

#[test]
fn wrong_side() {
    let command = ["python3", "peer.py", "{scenario}", "{results}"];
    is_kept("wrong-side", &screen(&["json_rpc", "--timeout-scale=0.2"], &server("pass"), &command));
}

#[test]
fn slow() {
    let peer = format!("import time\ntime.sleep(0.5)\n{}", server("time.sleep(0.05)"));
    is_kept("slow", &screen(&["json_rpc", "-k=json_rpc/stdio/ids"], &peer, &PYTHON));
}

#[test]
fn no_roles() {
    is_kept("no-roles", &screen(&["json_rpc", "--requirements=spec"], &server("pass"), &PYTHON));
}

#[test]
fn right() {
    is_kept("right", &screen(&["json_rpc"], "", &[binary(), "peer", "json_rpc", "--stdio"]));
}

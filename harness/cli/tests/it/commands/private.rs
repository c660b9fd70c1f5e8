//! Tests that secrets and control characters of a peer appear in nothing that peerproof prints or stores.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::start::peerproof;

const SECRET: &str = "hunter/2-Zx9qLw";

/// Answers each line wrongly, and leaks its secrets wherever it can.
const PEER: &str = r#"
import os, sys, time
token = os.environ["MY_API_TOKEN"]
half = len(token) // 2
out, err = sys.stdout.buffer, sys.stderr.buffer
err.write(b"starting with " + token.encode() + b"\n"); err.flush()
open(os.path.join(os.environ["TMPDIR"], "left-" + token.replace("/", "%2F")), "w").close()
for line in sys.stdin.buffer:
    out.write(b'{"oops": "' + token[:half].encode()); out.flush()
    err.write(token.encode()); err.flush()
    out.write(token[half:].encode() + b'", "again": "' + token.replace("/", "\\/").encode() + b'", "raw": "')
    out.write("\x1b[31m\x07\x9b\u202e\u2028\x7f| ` ' \" $(x) <b>".encode() + b'\xff"}\n'); out.flush()
sys.exit(3)
"#;

const CONFIG: &str = r#"
[peer]
name = "my peer"
boundary = "json_rpc"
requirements = "spec"
command = ["python3", "peer.py", "--signing-key", "also-Secret-77"]
env = { MY_API_TOKEN = "hunter/2-Zx9qLw", HTTP_KEYS_MAX = "4096" }
"#;

/// Every file below `folder` with its bytes.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} is for others to read", path.display());
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("peer.py", PEER), ("dying.py", DYING), ("peerproof.toml", CONFIG), ("peers.toml", PEERS)]
        {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    /// Output of a command on both streams.
    fn run(&self, args: &[&str]) -> String {
        let output = peerproof(self.folder.path()).args(args).output();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        text.concat()
    }

    fn artefacts(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        files(&self.folder.path().join("out"))
    }
}

/// Answers the calls of one process, and leaks its secret when started again.
const DYING: &str = r#"
import json, os, sys
try: open("started", "x").close()
except FileExistsError: sys.exit("\x1b[31munknown token " + os.environ["MY_API_TOKEN"])
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": call.get("params")}), flush=True)
"#;

const PEERS: &str = r#"
[[peer]]
config = "peerproof.toml"
[[peer]]
boundary = "json_rpc"
reference = []
"#;

/// Other commands that talk to peers, each with a part of its output about this one.
const OTHERS: [(&[&str], &str); 5] = [
    (&["bench", "json_rpc", "--config", "peerproof.toml", "--role", "echo=x", "--quick"], "not JSON"),
    (
        &[
            "bench",
            "json_rpc",
            "--role",
            "echo=x",
            "--quick",
            "--format",
            "ndjson",
            "--output",
            "out/bench.ndjson",
            "--env",
            "MY_API_TOKEN=hunter/2-Zx9qLw",
            "--",
            "python3",
            "dying.py",
        ],
        "",
    ),
    (
        &[
            "bench",
            "json_rpc",
            "--role",
            "echo=x",
            "--quick",
            "--env",
            "MY_API_TOKEN=hunter/2-Zx9qLw",
            "--",
            "python3",
            "dying.py",
        ],
        "unknown token REDACT/ED",
    ),
    (&["matrix", "peers.toml", "-k", "json_rpc/stdio/ids/*", "--out", "out/matrix"], "my peer"),
    (
        &[
            "matrix",
            "peers.toml",
            "--differential",
            "--conversations",
            "2",
            "--shrink-time",
            "1s",
            "--out",
            "out/d",
        ],
        "REDACT/ED",
    ),
];

/// Commands that take a transcript and start its peer.
const LIVE: [&[&str]; 2] = [&["replay", "--live"], &["shrink", "--time", "1s", "--out", "out/shrunk"]];

fn has_secret(bytes: &[u8]) -> bool {
    let escaped = SECRET.replace('/', "\\/");
    let percent = SECRET.replace('/', "%2F");
    [SECRET, escaped.as_str(), percent.as_str(), "also-Secret-77", "x9qLw"]
        .iter()
        .any(|secret| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn secrets_reach_neither_the_terminal_nor_a_file() {
    let bench = Bench::new();
    let report = "results=out/r.ndjson,junit=out/r.xml,html=out/r.html,sarif=out/r.sarif,md=out/r.md";
    let said = bench.run(&[
        "check",
        "-k",
        "json_rpc/stdio/ids/*",
        "--keep-going",
        "--out",
        "out",
        "--report",
        report,
    ]);
    assert!(said.contains("broken") && said.contains("REDACT/ED"), "{said}");
    assert!(!has_secret(said.as_bytes()), "{said}");
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.contains("starting with REDACT/ED"), "{doctor}");
    assert!(!has_secret(doctor.as_bytes()), "{doctor}");
    let said = bench.run(&["fuzz", "--time", "1s", "--out", "out/fuzz", "--corpus", "out/corpus"]);
    assert!(!has_secret(said.as_bytes()), "{said}");
    let said = bench.run(&["expect", "init", "out/r.ndjson", "--file", "out/expected.toml"]);
    assert!(!has_secret(said.as_bytes()), "{said}");
    let artefacts = bench.artefacts();
    for name in ["r.ndjson", "r.xml", "r.html", "r.sarif", "r.md", "transcript.ndjson", "repro.sh"] {
        assert!(artefacts.iter().any(|(path, _)| path.ends_with(name)), "no {name}");
    }
    for (path, bytes) in artefacts {
        assert!(!has_secret(&bytes), "{}: {}", path.display(), String::from_utf8_lossy(&bytes));
    }
}

/// Character in `text` on which a terminal, browser or editor would act, except line feeds.
fn acts(text: &str) -> Option<char> {
    let is_mark = |c| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().find(|c| (c.is_control() && *c != '\n') || is_mark(*c))
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn control_characters_reach_neither_the_terminal_nor_a_file() {
    let bench = Bench::new();
    let report = "results=out/r.ndjson,junit=out/r.xml,html=out/r.html,sarif=out/r.sarif,md=out/r.md";
    let mut check = vec!["check", "-k", "json_rpc/stdio/ids/*", "--keep-going", "--all"];
    check.extend(["--out", "out", "--report", report]);
    let said = bench.run(&check);
    assert!(said.contains(r"\u001b[31m\u0007\u009b\u202e\u2028\u007f"), "{said}");
    assert_eq!(acts(&said), None, "{said:?}");
    for args in [
        &["doctor"][..],
        &["check", "-k", "json_rpc/stdio/ids/*", "--format", "ndjson"],
        &["init", "json_rpc", "--", "./no\u{1b}[31m"],
    ] {
        let said = bench.run(args);
        assert_eq!(acts(&said), None, "{args:?}: {said:?}");
    }
    let artefacts = bench.artefacts();
    let texts = artefacts.iter().filter(|(path, _)| !path.ends_with("stdin.bin"));
    for (path, bytes) in texts {
        let text = std::str::from_utf8(bytes).unwrap();
        assert_eq!(acts(text), None, "{}: {text:?}", path.display());
    }
    let transcripts = artefacts.iter().filter(|(path, _)| path.ends_with("transcript.ndjson"));
    for (path, _) in transcripts {
        for command in ["replay", "lint"] {
            let said = bench.run(&[command, path.to_str().unwrap()]);
            assert!(said.contains("reply_not_json"), "{said}");
            assert_eq!(acts(&said), None, "{command}: {said:?}");
        }
    }
}

#[test]
#[ignore = "slow, see CONTRIBUTING.md"]
fn no_other_command_tells_what_a_peer_must_not() {
    let bench = Bench::new();
    let said = |args: &[&str]| {
        // Lets a peer that dies at its second start live once per command.
        let _ = fs::remove_file(bench.folder.path().join("started"));
        let said = bench.run(args);
        assert!(!has_secret(said.as_bytes()), "{args:?}: {said}");
        assert_eq!(acts(&said), None, "{args:?}: {said:?}");
        said
    };
    for (args, word) in OTHERS {
        let said = said(args);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    said(&["check", "-k", "json_rpc/stdio/ids/null", "--keep-going", "--out", "out/check"]);
    let stored = bench.artefacts();
    let transcript = stored.iter().find(|(path, _)| path.ends_with("transcript.ndjson")).unwrap();
    for command in LIVE {
        let said = said(&[command, &[transcript.0.to_str().unwrap()]].concat());
        assert!(said.contains("REDACT/ED"), "{command:?}: {said}");
    }
    for (path, bytes) in bench.artefacts() {
        assert!(!has_secret(&bytes), "{}: {}", path.display(), String::from_utf8_lossy(&bytes));
    }
}

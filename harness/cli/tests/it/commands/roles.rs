//! Tests of tools mapped to roles: the report of `doctor`, and blameless differences in `check`.

use std::fs;
use std::path::Path;

use crate::start::{self, binary};

/// Runner with tools of its own, most of which match their names.
const RUNNER: &str = r#"
import json, os, sys
call = json.load(sys.stdin)
name, payload = call["entry"], call["payload"]
reply = {"ok": True, "protocol_version": 1}
if name == "mine:any":
    reply["result"] = {"any": 1}
elif name == "mine:echo":
    reply["result"] = payload
elif name == "mine:other":
    reply["result"] = {"something": "else"}
elif name == "mine:write":
    open(payload["path"], "w").write(payload["text"])
    reply["result"] = {"seen": 1}
elif name == "mine:crash":
    sys.exit(3)
else:
    reply = {"ok": False, "protocol_version": 1, "error": {"type": "ImportError", "message": name}}
print(json.dumps(reply))
"#;

fn peerproof(folder: &Path, args: &[&str], code: i32) -> String {
    let assert = start::peerproof(folder).args(args).assert();
    let out = String::from_utf8_lossy(&assert.code(code).get_output().stdout).into_owned();
    // Long lines are wrapped.
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_not_blamed(folder: &Path, checks: &str) {
    let out = peerproof(folder, &["check", "-k", checks], 4);
    assert!(!out.contains("FAIL") && out.contains("`peerproof doctor` tries every role"), "{out}");
}

#[test]
fn tools_of_a_runner_that_do_something_else_are_told_and_break_no_clause() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("runner.py"), RUNNER).unwrap();
    let text = "[peer]\nboundary = \"python_tool\"\nside = \"provider\"\ncommand = [\"python3\", \"{here}/runner.py\"]\n\
                [features]\nenforcement = \"partial\"\n[roles]\nany = { entry = \"mine:any\" }\n\
                echo = { entry = \"mine:echo\" }\nnoise = { entry = \"mine:other\" }\n\
                write = { entry = \"mine:write\" }\nprocess = { entry = \"mine:other\" }\n\
                blob = { entry = \"nowhere:blob\" }\nsleep = { entry = \"mine:crash\" }\n\
                quit = { entry = \"mine:crash\" }\nimported = { entry = \"mine:any\" }\n";
    fs::write(folder.path().join("peerproof.toml"), text).unwrap();
    let out = peerproof(folder.path(), &["doctor"], 0);
    for part in [
        "yes any {\"entry\":\"mine:any\"} (configured; its trial passed)",
        "yes write {\"entry\":\"mine:write\"} (configured; its trial passed)",
        "yes quit {\"entry\":\"mine:crash\"} (configured; its trial passed)",
        "no noise does not play the role: mine:other as role `noise` answers {\"something\":\"else\"}",
        "no process does not play the role: mine:other as role `process` answers {\"something\":\"else\"} and has no effect",
        "no blob does not play the role: nowhere:blob as role `blob` fails with ImportError: nowhere:blob",
        "yes sleep {\"entry\":\"mine:crash\"} (configured; its trial was inconclusive: its call ends with exit \
         status 3",
        "yes imported {\"entry\":\"mine:any\"} (configured; its trial was inconclusive",
    ] {
        assert!(out.contains(part), "{part:?} is not in {out}");
    }
    is_not_blamed(folder.path(), "python_tool/runner/guarantees/process-subprocess");
}

#[test]
fn tools_of_a_queue_that_nobody_knows_are_told_and_break_no_clause() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sample.txt"), "@NONCE@").unwrap();
    let peer = |role: &str, rest: &str| format!("[{binary:?}, \"peer\", \"run_queue\", \"{role}\", {rest}]");
    let text = format!(
        "[peer]\nboundary = \"run_queue\"\nside = \"provider\"\nserve = {}\nenqueue = {}\n\
         [features]\ngenesis = {{ source = \"sample.txt\", aid = \"AID.X.v1\", compile = false }}\n\
         [roles]\nwrite_file = {{ aid = \"AID.GENESIS.WRITE_FILE.v1\", input = {{ path = \"{{path}}\", content = \
         \"{{content}}\" }} }}\nenqueue = {{ aid = \"AID.MY.QUEUE.v1\" }}\n",
        peer("genesis", "\"--root\", \"{root}\", \"--serve\""),
        peer("enqueue", "\"--queue\", \"{queue}\", \"--run\", \"{aid}\"")
    );
    let configuration = folder.path().join("peerproof.toml");
    let said = |text: &str, part: &str, code: i32| {
        fs::write(&configuration, text).unwrap();
        let out = peerproof(folder.path(), &["doctor"], code);
        assert!(out.contains(part), "{part:?} is not in {out}");
    };
    said(&text, "yes write_file AID.GENESIS.WRITE_FILE.v1 (configured; its trial passed)", 0);
    said(&text, "no enqueue does not play the role: AID.MY.QUEUE.v1 as role `enqueue` is refused: \"", 0);
    is_not_blamed(folder.path(), "run_queue/enqueue/put/*");
    let other = text.replace("AID.GENESIS.WRITE_FILE.v1", "AID.NOBODY.v1");
    said(
        &other,
        "no write_file does not play the role: AID.NOBODY.v1 as role `write_file` is refused: \"",
        4,
    );
}

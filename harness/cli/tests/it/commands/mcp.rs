//! Tests of checks of MCP servers: their environment, and right servers of unusual manners.

use std::fs;

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use crate::start::{binary, peerproof};

/// Right server that sends a `ping` of its own before it answers one.
const SERVER: &str = r#"
import json, sys
def write(message):
    sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n"); sys.stdout.flush()
for line in sys.stdin.buffer:
    request = json.loads(line)
    method, own = request.get("method"), request.get("id")
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        write({"id": own, "result": result})
    elif method == "ping":
        write({"id": "ask-%s" % own, "method": "ping"})
        write({"id": own, "result": {}})
    elif method and own is not None:
        write({"id": own, "error": {"code": -32601, "message": "Method not found"}})
"#;

#[test]
fn a_server_that_asks_while_half_a_line_is_written_is_answered_behind_the_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.py"), SERVER).unwrap();
    let mut command = peerproof(folder.path());
    let check = "mcp/stdio/chunks/lines-in-one-write";
    command.args(["check", "mcp", "-k", check, "--", "python3", "server.py"]);
    command.assert().code(0).stdout(contains("1 check: 1 passed").and(contains("no fault seen")));
}

#[test]
fn a_server_of_mcp_has_a_home_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let checked = |more: &[&str], condition: &str| {
        let server = format!("{condition} && exec \"$0\" peer mcp server");
        let mut command = peerproof(folder.path());
        command.env("HOME", folder.path()).env("HTTP_PROXY", "http://127.0.0.1:9").args(["check", "mcp"]);
        command.args(["--filter", "mcp/stdio/canary/*"]).args(more).args([
            "--",
            "sh",
            "-c",
            &server,
            binary(),
        ]);
        command.assert().success();
    };
    checked(&[], r#"[ "$HOME" = "$PWD" ] && [ -z "$(ls -A)" ] && [ -z "$HTTP_PROXY" ]"#);
    checked(&["--env", "HOME=/other"], r#"[ "$HOME" = /other ]"#);
}

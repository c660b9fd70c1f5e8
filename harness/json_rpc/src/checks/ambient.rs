//! What holds of every response and of every process: watched in all conversations.
//!
//! Each clause has a check of its own with a small conversation in which it can be broken; findings about it from all
//! other conversations are counted there too, so that one fault is one red line.

use super::super::role::role;
use super::super::talk::{Talk, UNKNOWN_METHOD, call};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::plan::Plan;

const ROWS: &[(&str, &str, &str)] = &[
    ("RPC-MSG-01", "version", "Every response says \"jsonrpc\":\"2.0\"."),
    ("RPC-MSG-02", "result-or-error", "Every response has either a result or an error."),
    ("RPC-MSG-03", "id", "Every response has an id, which is a string, a number or null."),
    ("RPC-MSG-04", "error-object", "Every error is an object with an integer code and a message."),
    (
        "RPC-MSG-05",
        "strict-json",
        "Every response is strict JSON: an object, or an array of them for a batch.",
    ),
    ("RPC-FRAME-05", "nothing-else", "Standard output carries messages, each on a line, and nothing else."),
    ("RPC-ERR-01", "after-errors", "After errors of every sort the server answers as before."),
    ("RPC-ERR-04", "stack-trace", "No stack trace stands in a response but in data.stack_trace of an error."),
    (
        "RPC-LOG-01",
        "log-lines",
        "Lines on standard error that are JSON objects have timestamp, level and message.",
    ),
    ("RPC-PROC-04", "no-process-left", "No process of the server is left after it ended."),
    ("RPC-PROC-05", "no-file-left", "No temporary file of the server is left after it ended."),
];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    ROWS.iter()
        .map(|(clause, name, title)| {
            let id = format!("json_rpc/stdio/ambient/{name}");
            Check::new(id, *title, [*clause], "command", move |facts, _| Ok(plan(facts, clause))).ambient()
        })
        .collect()
}

/// Something of most sorts that draws a reply. What many servers get wrong has checks of its own and is not among it: it
/// would make every one of these checks red.
fn plan(facts: &Facts, clause: &str) -> Plan {
    let mut talk = Talk::plain(facts);
    talk.canary();
    let mut send = |message: &str| {
        talk.send(message);
        if clause == "RPC-ERR-01" {
            talk.aim(clause).canary().aim_at_nothing();
        }
    };
    send("{\"jsonrpc\":");
    send("{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":\"odd\\n\\\"é\\u0001\"}");
    send(&call(UNKNOWN_METHOD, None, Some("\"\\u0000é😀\\\\\"")));
    send(&call(&format!("{UNKNOWN_METHOD}\u{1}\"é\n"), None, Some("3")));
    if let Some(echo) = role(facts, "echo") {
        // Whatever it gives where it is given nothing, a null result is a result.
        send(&call(&echo.method, None, Some("5")));
        send(&call(&echo.method, Some("[\"\\u0000\\u001f\\\"\\\\é😀\",1.5,-0.0,1e-7,null]"), Some("4")));
    }
    if let Some(fail) = role(facts, "fail") {
        send(&call(&fail.method, Some("{}"), Some("6")));
    }
    if facts.claims("batch") {
        send(&format!("[{}]", call(UNKNOWN_METHOD, None, Some("7"))));
    }
    talk.canary().finish()
}

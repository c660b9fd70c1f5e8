//! What holds of every response and of every process: watched in all conversations.
//!
//! Each clause has a check of its own with a small conversation in which it can be broken; findings about it from all
//! other conversations are counted there too, so that one fault is one red line.

use super::super::role::role;
use super::super::talk::{Talk, UNKNOWN_METHOD, call};
use crate::check::Check;
use crate::facts::Facts;
use crate::plan::Plan;

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

/// Something of every sort that draws a reply: what the replies say is of no concern to most of these checks.
fn plan(facts: &Facts, clause: &str) -> Plan {
    let mut talk = if clause == "RPC-ERR-01" { Talk::about(facts, clause) } else { Talk::plain(facts) };
    talk.canary();
    talk.send("{\"jsonrpc\":");
    talk.send("1");
    talk.send("{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":\"odd\\n\\\"é\\u0001\"}");
    talk.send(&call(UNKNOWN_METHOD, None, Some("\"\\u0000é😀\\\\\"")));
    talk.send(&call(&format!("{UNKNOWN_METHOD}\u{1}\"é\n"), None, Some("3")));
    if let Some(echo) = role(facts, "echo") {
        talk.send(&call(&echo.method, Some("[\"\\u0000\\u001f\\\"\\\\é😀\",1.5,-0.0,1e-7,null]"), Some("4")));
        talk.send(&call(&echo.method, Some("\"text\""), Some("5")));
    }
    if let Some(fail) = role(facts, "fail") {
        talk.send(&call(&fail.method, Some("{}"), Some("6")));
    }
    if facts.claims("batch") {
        talk.send("[]");
        talk.send(&format!(
            "[1,{},{}]",
            call(UNKNOWN_METHOD, None, Some("7")),
            call(UNKNOWN_METHOD, None, None)
        ));
    }
    talk.canary().finish()
}

//! Messages for the reference JSON-RPC server, each one line with its LF, and conversations with it.

use std::sync::Arc;

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::transcript::{Bytes, Event, EventKind, Exit, Transcript};
use peerproof_json_rpc::full_facts;
use peerproof_reference::json_rpc::signature;

/// Key of [`signed`].
pub const KEY: &[u8] = b"test-key";
/// Time in the signatures of requests, seconds since 1970.
pub const UNIX_S: u64 = 1_634_567_890;

/// Call of `peerproof.echo` in 64 bytes.
pub fn ping() -> Vec<u8> {
    let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.echo\",\"params\":[],\"id\":12}\n";
    debug_assert_eq!(line.len(), 64);
    line.to_vec()
}

fn echo(params: &str, id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.echo\",\"params\":{params},\"id\":{id}}}")
}

/// Call of `peerproof.echo` with one plain string of `bytes` bytes.
pub fn one_string(bytes: usize) -> Vec<u8> {
    (echo(&format!("[\"{}\"]", "x".repeat(bytes)), 1) + "\n").into_bytes()
}

/// Call of `peerproof.echo` with about `bytes` bytes of small objects.
pub fn records(bytes: usize) -> Vec<u8> {
    let row =
        |id: usize| format!("{{\"id\":{id},\"name\":\"user {id}\",\"ok\":true,\"score\":{}.5}}", id % 100);
    let mut params = row(0);
    let mut id = 1;
    while params.len() + 64 < bytes {
        params = params + "," + &row(id);
        id += 1;
    }
    (echo(&format!("[{params}]"), 1) + "\n").into_bytes()
}

/// Batch of this many small calls.
pub fn batch(calls: usize) -> Vec<u8> {
    let calls: Vec<String> = (0..calls).map(|id| echo("[]", id)).collect();
    format!("[{}]\n", calls.join(",")).into_bytes()
}

/// Call of `validate_code` with about `bytes` bytes of code.
pub fn validate(bytes: usize) -> Vec<u8> {
    let code = "f(a[1], {b}) ".repeat(bytes / 13);
    let params = format!("{{\"code\":\"{code}\",\"language\":\"rust\"}}");
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"validate_code\",\"params\":{params},\"id\":1}}\n")
        .into_bytes()
}

/// Signed message without its line feed, with a string of `bytes` bytes in its params.
pub fn signed(bytes: usize) -> Vec<u8> {
    let message = |signature: &str| {
        let auth = format!("{{\"timestamp\":{UNIX_S},\"nonce\":\"n\",\"signature\":\"{signature}\"}}");
        let text = echo(&format!("[\"{}\"]", "x".repeat(bytes)), 1);
        format!("{},\"auth\":{auth}}}", text.trim_end_matches('}'))
    };
    let signed = signature(KEY, message("").as_bytes()).unwrap_or_default();
    message(&signed).into_bytes()
}

/// Conversation of `calls` calls in `windows` writes, each answered before the next.
pub fn recorded(calls: usize, windows: usize) -> Transcript {
    let mut events = Vec::new();
    let mut steps = Vec::new();
    let mut push = |kind| {
        let at_us = events.len() as u64;
        events.push(Event { at_us, session: 0, kind });
    };
    for window in 0..windows {
        let ids = (0..calls).filter(|id| id * windows / calls == window);
        let (mut sent, mut received) = (String::new(), String::new());
        for id in ids {
            sent.push_str(&(echo("{\"x\":\"abcd\"}", id) + "\n"));
            received
                .push_str(&format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"x\":\"abcd\"}},\"id\":{id}}}\n"));
        }
        let payload = Payload::text(sent);
        push(EventKind::Sent { step: window, payload: payload.clone() });
        push(EventKind::Received { bytes: Bytes(received.into_bytes()) });
        steps.push(Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 }));
    }
    push(EventKind::StdinClosed);
    push(EventKind::StdoutClosed);
    push(EventKind::Exited { exit: Exit::Code(0) });
    steps.push(Step::new(Act::Finish));
    let session = Session { command: "command".to_owned(), ..Session::default() };
    Transcript {
        boundary: "json_rpc".to_owned(),
        check: "bench".to_owned(),
        facts: Arc::new(full_facts::facts(Side::Provider)),
        plan: Arc::new(Plan { sessions: vec![session], steps, by_model: true, ..Plan::default() }),
        timeout_scale: 1.0,
        events,
    }
}

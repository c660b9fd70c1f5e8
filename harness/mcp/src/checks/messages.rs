//! Messages of every method, and text that comes back.

use serde_json::{Value, json};

use super::features::call_free_tools;
use super::{check, undeclared};
use crate::connection::{PING, revision_asked};
use crate::revision::Revision;
use crate::role::{call, role};
use crate::server_knowledge::ServerKnowledge;
use crate::talk::Talk;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;
use peerproof_json_rpc::talk::{UNKNOWN_METHOD, call as line};

/// Text with UTF-8 characters of all lengths.
const WIDE: &str = "a\u{e9}\u{20ac}\u{1F600}";

/// Requests that are written while nobody reads. With their long ids they are more than two small pipes hold.
const UNREAD: usize = 64;
/// Time for which a server takes nothing before its answers are read, milliseconds.
const UNREAD_MS: u64 = 1_000;

/// Checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        check(
            "output/only-messages",
            "Standard output contains valid messages and nothing else, and each answer belongs to one \
             request.",
            &["MCP-FRM-01", "MCP-BAS-02", "MCP-BAS-03"],
            |talk, _| everything(talk),
        )
        .ambient(),
        check("batches/pings", "Each request in a batch is answered.", &["MCP-BAS-17"], |talk, _| {
            if revision_asked(talk.facts()) != Revision::R2025Mar.date() {
                return Err(Untestable::new("other_revision", "only revision 2025-03-26 has batches"));
            }
            let mut ping = || line(PING, None, Some(&talk.fresh_id().to_string()));
            let notification = line("notifications/peerproof", None, None);
            let (alone, mixed) = (format!("[{}]", ping()), format!("[{},{notification},{}]", ping(), ping()));
            talk.send(&alone).canary().send(&mixed).canary();
            Ok(())
        }),
        check(
            "requests/unread",
            "Requests whose answers are not read for a while are all answered in the end.",
            &["MCP-FRM-09"],
            |talk, _| {
                let ping = |_| line(PING, None, Some(&format!("\"{:x>200}\"", talk.fresh_id()))) + "\n";
                let pings: String = (0..UNREAD).map(ping).collect();
                talk.apart().canary().aim("MCP-FRM-09");
                talk.send_as(Payload::text(pings), Chunking::Whole).last(|step| step.unread_ms = UNREAD_MS);
                Ok(())
            },
        )
        .waits()
        .on_process(),
        check(
            "chunks/echo",
            "Text that is written byte by byte comes back unchanged.",
            &["MCP-FRM-03"],
            |talk, _| echo(talk, "MCP-FRM-03", Chunking::Dribble),
        )
        .feature("tools")
        .roles(&["echo"]),
        check(
            "text/legacy-locale",
            "Text comes back unchanged if the environment names a legacy encoding.",
            &["MCP-FRM-10"],
            |talk, _| {
                talk.session(|session| {
                    for (name, value) in [("LC_ALL", "C"), ("PYTHONIOENCODING", "cp1252")] {
                        session.env.insert(name.to_owned(), value.to_owned());
                    }
                });
                echo(talk, "MCP-FRM-10", Chunking::Whole)
            },
        )
        .feature("tools")
        .roles(&["echo"]),
    ]
}

/// Calls the tool that returns its text.
fn echo(talk: &mut Talk<'_>, clause: &str, chunking: Chunking) -> Result<(), Untestable> {
    let params = echo_params(talk, WIDE)?;
    talk.canary().aim(clause);
    let id = talk.fresh_id().to_string();
    let text = line("tools/call", Some(&params.to_string()), Some(&id));
    talk.push(Payload::text(text + "\n"), chunking, 1);
    Ok(())
}

fn echo_params(talk: &Talk<'_>, text: &str) -> Result<Value, Untestable> {
    let echo = role(talk.facts(), "echo").ok_or("the role `echo` is not mapped")?;
    let mut arguments = json!({});
    arguments[echo["arg"].as_str().unwrap_or_default()] = json!(text);
    Ok(call(echo["name"].as_str().unwrap_or_default(), arguments))
}

/// One request of each kind.
fn everything(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    talk.request("ping", None);
    talk.request(UNKNOWN_METHOD, None);
    undeclared(talk);
    let known = ServerKnowledge::of(talk.facts());
    // Faults against a SHOULD are left to other checks; they would hide this one.
    if known.declares("tools") {
        if let Ok(params) = echo_params(talk, WIDE) {
            talk.request("tools/call", Some(params));
        }
        // If no tool may be called, the other messages are enough.
        let _ = call_free_tools(talk);
    }
    if let Some(uri) = known.items("resources").first().map(|item| item["uri"].clone()) {
        talk.request("resources/read", Some(json!({ "uri": uri })));
    }
    Ok(())
}

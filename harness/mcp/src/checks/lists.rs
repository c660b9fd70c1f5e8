//! Lists and capabilities.

use serde_json::json;

use super::check;
use crate::connection::revision_asked;
use crate::known::{Known, LISTS, List};
use crate::model::UNKNOWN_CURSOR;
use crate::talk::Talk;
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Capture, Chunking};
use peerproof_json_rpc::talk::call;

/// Variable that holds a cursor.
const CURSOR: &str = "cursor";

/// Checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![
        check(
            "lists/tools",
            "The list of tools is there, and its items have the form of the schema.",
            &[
                "MCP-CAP-01", "MCP-LST-01", "MCP-LST-03", "MCP-LST-07", "MCP-LST-08", "MCP-LST-09", "MCP-LST-11",
                "MCP-LST-12",
            ],
            |talk, _| follow(talk, &LISTS[0]),
        )
        .feature("tools"),
        check(
            "lists/resources",
            "The list of resources is there, and its items have the form of the schema.",
            &["MCP-CAP-01", "MCP-LST-01", "MCP-LST-03", "MCP-LST-07", "MCP-LST-09", "MCP-LST-10"],
            |talk, _| follow(talk, &LISTS[1]),
        )
        .feature("resources"),
        check(
            "lists/templates",
            "A server with resources has a list of templates, and its items have the form of the schema.",
            &["MCP-CAP-07", "MCP-LST-01", "MCP-LST-03", "MCP-LST-07", "MCP-LST-09", "MCP-LST-10"],
            |talk, _| follow(talk, &LISTS[2]),
        )
        .feature("resources"),
        check(
            "lists/prompts",
            "The list of prompts is there, and its items have the form of the schema.",
            &["MCP-CAP-01", "MCP-LST-01", "MCP-LST-03", "MCP-LST-07", "MCP-LST-09"],
            |talk, _| follow(talk, &LISTS[3]),
        )
        .feature("prompts"),
        check(
            "lists/pages",
            "Following the cursors of each list comes to an end.",
            &["MCP-LST-04", "MCP-LST-05"],
            |talk, _| declared(talk)?.iter().try_for_each(|list| follow(talk, list)),
        ),
        check(
            "lists/without-params",
            "A list without params and with an empty object is the same list.",
            &["MCP-LST-02"],
            |talk, _| {
                for list in declared(talk)? {
                    talk.request(list.method, None);
                    talk.request(list.method, Some(json!({})));
                }
                Ok(())
            },
        ),
        check(
            "malformed/unknown-cursor",
            "A cursor that the server never gave gets error -32602, unless the list has no pages.",
            &["MCP-LST-06"],
            |talk, _| {
                for list in declared(talk)? {
                    talk.request(list.method, None);
                    talk.request(list.method, Some(json!({ "cursor": UNKNOWN_CURSOR })));
                }
                Ok(())
            },
        ),
        check(
            "capabilities/undeclared",
            "A method of a capability that is not declared gets error -32601.",
            &["MCP-CAP-02", "MCP-CAP-04"],
            |talk, _| undeclared(talk),
        ),
    ]
}

/// Lists that the server declares.
fn declared(talk: &Talk<'_>) -> Result<Vec<&'static List>, Untestable> {
    let known = Known::of(talk.facts());
    let lists: Vec<&List> = LISTS.iter().filter(|list| known.declares(list.capability)).collect();
    match lists.is_empty() {
        true => Err(Untestable::new("not_declared", "the server declares no list")),
        false => Ok(lists),
    }
}

/// Asks for each page of a list that the server is known to have.
fn follow(talk: &mut Talk<'_>, list: &List) -> Result<(), Untestable> {
    let pages = Known::of(talk.facts()).pages(list.method);
    for page in 0..pages {
        ask_page(talk, list, page, (page + 1 < pages).then_some(None));
    }
    Ok(())
}

/// Counts the pages of a list, for a probe: it ends where no cursor comes, or the same one again.
pub fn count_pages(talk: &mut Talk<'_>, list: &List, most: usize) {
    (0..most).for_each(|page| ask_page(talk, list, page, Some(Some("/peerproof/last"))));
}

/// Asks for a page, and takes the cursor of the next one out of it where `next` says until when.
fn ask_page(talk: &mut Talk<'_>, list: &List, page: usize, next: Option<Option<&str>>) {
    let id = talk.fresh_id().to_string();
    let payload = match page {
        0 => Payload::text(call(list.method, None, Some(&id)) + "\n"),
        _ => {
            let text = call(list.method, Some("{\"cursor\":\"@\"}"), Some(&id));
            let (before, behind) = text.split_once('@').unwrap_or((&text, ""));
            Payload::text(before).var(CURSOR).then(Payload::text(format!("{behind}\n")))
        }
    };
    talk.push(payload, Chunking::Whole, 1);
    let capture = next.map(|until| Capture {
        pointer: "/result/nextCursor".to_owned(),
        var: CURSOR.to_owned(),
        secret: false,
        until: until.map(str::to_owned),
    });
    talk.last(|step| step.capture = capture);
}

/// Asks for what the server does not declare.
fn undeclared(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    let known = Known::of(talk.facts());
    let mut asked = 0;
    for list in LISTS.iter().filter(|list| !known.declares(list.capability)) {
        talk.request(list.method, None);
        asked += 1;
    }
    if !known.declares("logging") {
        talk.request("logging/setLevel", Some(json!({ "level": "info" })));
        asked += 1;
    }
    let is_first_revision = revision_asked(talk.facts()) == "2024-11-05";
    if !known.declares("completions") && !is_first_revision {
        let prompts = known.items("prompts");
        let name = prompts.first().and_then(|prompt| prompt["name"].as_str()).unwrap_or("peerproof");
        let argument = prompts.first().and_then(|prompt| prompt.pointer("/arguments/0/name")?.as_str());
        let params = json!({
            "ref": { "type": "ref/prompt", "name": name },
            "argument": { "name": argument.unwrap_or("peerproof"), "value": "" },
        });
        talk.request("completion/complete", Some(params));
        asked += 1;
    }
    match asked {
        0 => Err(Untestable::new("all_declared", "the server declares everything")),
        _ => Ok(()),
    }
}

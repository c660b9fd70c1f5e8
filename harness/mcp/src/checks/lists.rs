//! Lists and capabilities.

use std::sync::Arc;

use serde_json::json;

use super::check;
use crate::connection::revision_asked;
use crate::model::UNKNOWN_CURSOR;
use crate::rules::PAGES_MAX;
use crate::server_knowledge::{LISTS, List, ServerKnowledge};
use crate::talk::Talk;
use peerproof_engine::data::check::{Check, Planner, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Capture, Chunking};
use peerproof_engine::data::rng::Rng;
use peerproof_json_rpc::talk::call;

/// Variable that holds a cursor.
const CURSOR: &str = "cursor";

/// Clauses about the form of any list.
const FORM: [&str; 7] =
    ["MCP-CAP-01", "MCP-LST-01", "MCP-LST-03", "MCP-LST-04", "MCP-LST-05", "MCP-LST-07", "MCP-LST-09"];

/// Checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let pages = |id: &str, title: &str, list: usize, more: &[&'static str]| {
        let clauses = [&FORM[..], more].concat();
        let clauses: Vec<&str> = match list {
            2 => clauses.into_iter().filter(|clause| *clause != FORM[0]).collect(),
            _ => clauses,
        };
        Check { planner: without_canary(list), ..check(id, title, &clauses, |_, _| Ok(())) }
            .feature(LISTS[list].capability)
    };
    vec![
        pages(
            "lists/tools",
            "The list of tools ends, and its items conform to the schema.",
            0,
            &["MCP-LST-08", "MCP-LST-11", "MCP-LST-12"],
        ),
        pages(
            "lists/resources",
            "The list of resources ends, and its items conform to the schema.",
            1,
            &["MCP-LST-10"],
        ),
        pages(
            "lists/templates",
            "A server with resources has a list of templates, and its items conform to the schema.",
            2,
            &["MCP-CAP-07", "MCP-LST-10"],
        ),
        pages("lists/prompts", "The list of prompts ends, and its items conform to the schema.", 3, &[]),
        check(
            "lists/without-params",
            "A list request without params and one with an empty object return the same list.",
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
            "Lists, log levels and completions work if they are declared, and get error -32601 otherwise.",
            &["MCP-CAP-02", "MCP-CAP-04"],
            |talk, _| {
                undeclared(talk);
                Ok(())
            },
        ),
    ]
}

/// Planner of a check about a list; the conversation ends with its last page.
fn without_canary(list: usize) -> Planner {
    Arc::new(move |facts: &Facts, _: &mut Rng| {
        let mut talk = Talk::opened(facts);
        talk.canary();
        follow(&mut talk, &LISTS[list]);
        Ok(talk.plan())
    })
}

/// Lists that the server declares.
fn declared(talk: &Talk<'_>) -> Result<Vec<&'static List>, Untestable> {
    let known = ServerKnowledge::of(talk.facts());
    let lists: Vec<&List> = LISTS.iter().filter(|list| known.declares(list.capability)).collect();
    match lists.is_empty() {
        true => Err(Untestable::new("not_declared", "the server declares no list")),
        false => Ok(lists),
    }
}

/// Asks for one page of a list more than there may be. The list ends without a cursor, or with a repeated one.
fn follow(talk: &mut Talk<'_>, list: &List) {
    count_pages(talk, list, PAGES_MAX + 1);
}

/// Asks for at most this number of pages of a list.
pub(crate) fn count_pages(talk: &mut Talk<'_>, list: &List, most: usize) {
    (0..most).for_each(|page| ask_page(talk, list, page));
}

/// Asks for a page, and captures the cursor of the next one.
fn ask_page(talk: &mut Talk<'_>, list: &List, page: usize) {
    match page {
        0 => {
            let id = talk.fresh_id().to_string();
            talk.push(Payload::text(call(list.method, None, Some(&id)) + "\n"), Chunking::Whole, 1);
        }
        _ => {
            talk.request_with(list.method, "cursor", CURSOR);
        }
    }
    let capture = Capture {
        pointer: "/result/nextCursor".to_owned(),
        var: CURSOR.to_owned(),
        secret: false,
        until: Some("/peerproof/last".to_owned()),
    };
    talk.last(|step| step.capture = Some(capture));
}

/// Asks for each feature that a server may declare.
pub(crate) fn undeclared(talk: &mut Talk<'_>) {
    let known = ServerKnowledge::of(talk.facts());
    for list in LISTS {
        talk.request(list.method, None);
    }
    talk.request("logging/setLevel", Some(json!({ "level": "info" })));
    if revision_asked(talk.facts()) == "2024-11-05" {
        return;
    }
    let prompts = known.items("prompts");
    let name = prompts.first().and_then(|prompt| prompt["name"].as_str()).unwrap_or("peerproof");
    let argument = prompts.first().and_then(|prompt| prompt.pointer("/arguments/0/name")?.as_str());
    let params = json!({
        "ref": { "type": "ref/prompt", "name": name },
        "argument": { "name": argument.unwrap_or("peerproof"), "value": "" },
    });
    talk.request("completion/complete", Some(params));
}

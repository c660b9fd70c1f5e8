//! Lists, resources, prompts, logging, completion.

use peerproof_reference::mcp::{CAPABILITIES, Components, Config, Revision, machine};
use serde_json::{Value, json};

use super::super::json_rpc::peer::Peer;
use super::{code, newest, open, opening, result, send, text};

/// All items of a list, page by page.
fn items(peer: &mut Peer, method: &str, list: &str) -> Vec<Value> {
    let (mut items, mut params) = (Vec::new(), json!({}));
    for _ in 0..10 {
        let page = result(peer, method, params);
        items.extend(page[list].as_array().unwrap().clone());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return items,
        }
    }
    panic!("{method} has no end")
}

#[test]
fn lists_have_pages_and_each_item_once() {
    let mut peer = newest();
    for (method, list, count, key) in [
        ("tools/list", "tools", 11, "name"),
        ("resources/list", "resources", 3, "uri"),
        ("resources/templates/list", "resourceTemplates", 1, "uriTemplate"),
        ("prompts/list", "prompts", 2, "name"),
    ] {
        let items = items(&mut peer, method, list);
        let keys: std::collections::BTreeSet<_> =
            items.iter().map(|item| item[key].as_str().unwrap()).collect();
        assert_eq!((items.len(), keys.len()), (count, count), "{method}");
        assert_eq!(code(&mut peer, method, json!({ "cursor": "nonsense" })), -32602);
        assert_eq!(code(&mut peer, method, json!({ "cursor": 1 })), -32602);
    }
    let bare = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    assert_eq!(send(&mut peer, bare)[0]["result"], result(&mut peer, "tools/list", json!({})));
}

#[test]
fn members_of_later_revisions_are_left_out() {
    for revision in Revision::ALL {
        let tools = items(&mut open(revision, &[]), "tools/list", "tools");
        let has = |member: &str| tools.iter().any(|tool| tool.get(member).is_some());
        assert_eq!(has("annotations"), revision >= Revision::V25a);
        assert_eq!(has("outputSchema"), revision >= Revision::V25b);
        assert!(
            tools.iter().all(|tool| tool["inputSchema"]["type"] == "object" && tool.get("since").is_none())
        );
    }
}

#[test]
fn resources_are_read_and_watched() {
    let mut peer = newest();
    for resource in items(&mut peer, "resources/list", "resources") {
        let contents = &result(&mut peer, "resources/read", json!({ "uri": resource["uri"] }))["contents"][0];
        assert_eq!(contents["uri"], resource["uri"]);
        assert!(contents["text"].is_string() != contents["blob"].is_string());
        assert_eq!(contents["mimeType"], resource["mimeType"]);
    }
    let greeting = result(&mut peer, "resources/read", json!({ "uri": "peerproof:///greetings/Ann" }));
    assert_eq!(greeting["contents"][0]["text"], "Hello, Ann!");
    assert_eq!(code(&mut peer, "resources/read", json!({ "uri": "peerproof:///none" })), -32002);
    assert_eq!(code(&mut peer, "resources/read", json!({})), -32602);
    assert_eq!(code(&mut peer, "resources/subscribe", json!({ "uri": "peerproof:///none" })), -32002);

    let counter = json!({ "uri": "peerproof:///counter" });
    let call = super::request(1, "tools/call", &json!({ "name": "counter" }));
    assert_eq!(text(&mut peer, "counter", json!({})), r#"{"count":1}"#);
    assert_eq!(result(&mut peer, "resources/subscribe", counter.clone()), json!({}));
    let messages = send(&mut peer, &call);
    assert_eq!(messages[0]["method"], "notifications/resources/updated");
    assert_eq!((&messages[0]["params"], &messages[1]["id"]), (&counter, &json!(1)));
    assert_eq!(result(&mut peer, "resources/unsubscribe", counter), json!({}));
    assert_eq!(send(&mut peer, &call).len(), 1);
}

#[test]
fn prompts_need_their_arguments() {
    let mut peer = newest();
    let got = result(&mut peer, "prompts/get", json!({ "name": "greet", "arguments": { "name": "Ann" } }));
    assert_eq!(got["messages"][0]["role"], "user");
    assert_eq!(got["messages"][0]["content"]["text"], "Greet Ann in a plain tone.");
    result(&mut peer, "prompts/get", json!({ "name": "plain" }));
    for params in [
        json!({ "name": "none" }),
        json!({ "name": "greet" }),
        json!({ "name": "greet", "arguments": { "name": 1 } }),
        json!({}),
    ] {
        assert_eq!(code(&mut peer, "prompts/get", params), -32602);
    }
}

#[test]
fn log_messages_come_from_the_level_on() {
    let mut peer = newest();
    let call = super::request(1, "tools/call", &json!({ "name": "log" }));
    assert_eq!(send(&mut peer, &call).len(), 8);
    for (level, count) in [("debug", 8), ("error", 4), ("emergency", 1)] {
        assert_eq!(result(&mut peer, "logging/setLevel", json!({ "level": level })), json!({}));
        let messages = send(&mut peer, &call);
        assert_eq!(messages.len(), count + 1, "{level}");
        assert_eq!(messages[0]["params"]["level"], level);
        assert!(messages[count].get("result").is_some());
    }
    assert_eq!(code(&mut peer, "logging/setLevel", json!({ "level": "loud" })), -32602);
    assert_eq!(code(&mut peer, "logging/setLevel", json!({})), -32602);
}

#[test]
fn completions_are_cut_at_a_hundred() {
    let mut peer = newest();
    let ask = |reference: Value, name: &str, value: &str| json!({ "ref": reference, "argument": { "name": name, "value": value } });
    let greet = json!({ "type": "ref/prompt", "name": "greet" });
    let all = result(&mut peer, "completion/complete", ask(greet.clone(), "name", ""));
    let all = &all["completion"];
    assert_eq!(
        (all["values"].as_array().unwrap().len(), &all["total"], &all["hasMore"]),
        (100, &json!(150), &json!(true))
    );
    let tone = result(&mut peer, "completion/complete", ask(greet, "tone", "l"));
    assert_eq!(tone["completion"], json!({ "values": ["loud"], "total": 1, "hasMore": false }));
    let template = json!({ "type": "ref/resource", "uri": "peerproof:///greetings/{name}" });
    result(&mut peer, "completion/complete", ask(template, "name", "name-1"));
    let none = json!({ "type": "ref/prompt", "name": "none" });
    assert_eq!(code(&mut peer, "completion/complete", ask(none, "name", "")), -32602);
    assert_eq!(code(&mut peer, "completion/complete", json!({})), -32602);
}

#[test]
fn what_is_not_there_is_not_declared() {
    for capability in CAPABILITIES {
        let config = Config { without: vec![capability.to_owned()], ..Config::default() };
        assert!(!Components::new(&config).catalog.declares(capability, Revision::V25c));
        let mut peer = Peer::of(machine(config));
        send(&mut peer, &opening("2025-11-25", &json!({})));
        let method = match capability {
            "completions" => "completion/complete",
            "logging" => "logging/setLevel",
            "prompts" => "prompts/list",
            "resources" => "resources/list",
            "tasks" => "tasks/list",
            _ => "tools/list",
        };
        assert_eq!(code(&mut peer, method, json!({})), -32601);
    }
}

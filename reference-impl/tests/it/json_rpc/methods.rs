//! The methods: params, results, effects.

use serde_json::{Value, json};

use super::peer::Peer;

#[test]
fn roles_do_what_the_contract_says() {
    let mut peer = Peer::plain();
    for params in [json!({}), json!([]), json!({ "a": [1, null, "é"] }), json!([1, [2]])] {
        assert_eq!(peer.result("peerproof.echo", params.clone()), params);
    }
    assert_eq!(peer.result("peerproof.blob", json!({ "bytes": 3 })), json!({ "data": "xxx" }));
    assert_eq!((peer.count(), peer.count()), (1, 2));
    let reply = peer.call("peerproof.fail", json!({}));
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["data"]["type"]),
        (&json!(-32000), &json!("EXECUTION_ERROR"))
    );
    for (a, b, difference) in [(json!(42), json!(23), json!(19)), (json!(1.5), json!(1), json!(0.5))] {
        assert_eq!(peer.result("peerproof.named", json!({ "minuend": a, "subtrahend": b })), difference);
    }
    for params in [
        json!([42, 23]),
        json!({ "minuend": 1 }),
        json!({}),
        json!({ "minuend": "1", "subtrahend": 1 }),
        json!({ "minuend": 1, "subtrahend": null }),
    ] {
        assert_eq!(peer.code("peerproof.named", params), -32602);
    }
    assert_eq!(peer.code("peerproof.sleep", json!([1])), -32602);
    assert_eq!(peer.code("peerproof.sleep", json!({ "ms": -1 })), -32602);
    assert_eq!(peer.code("peerproof.blob", json!({ "bytes": "3" })), -32602);
}

fn refused(method: &str, params: Value) {
    assert_eq!(Peer::plain().code(method, params.clone()), -32602, "{method} {params}");
}

/// Asserts that `method` refuses every variant of `good` that lacks one of the members or has a number for it.
fn needs(method: &str, good: &Value, members: &[&str]) {
    assert!(Peer::plain().call(method, good.clone()).get("result").is_some(), "{method}");
    refused(method, json!([good]));
    refused(method, json!({}));
    for member in members {
        let mut bad = good.clone();
        bad[*member] = json!(5);
        refused(method, bad.clone());
        bad.as_object_mut().unwrap().remove(*member);
        refused(method, bad);
    }
}

fn example(task_type: &str) -> Value {
    json!({
        "task_type": task_type,
        "prompt": "Detailed task description",
        "context": {
            "files": ["file1.js", "file2.js"],
            "current_directory": "/project/src",
            "dependencies": ["react", "typescript"],
            "constraints": []
        },
        "options": { "language": "javascript", "framework": "react", "style_guide": "airbnb" }
    })
}

#[test]
fn tasks_are_executed() {
    needs("execute_task", &example("analysis"), &["task_type", "prompt"]);
    refused("execute_task", example("code"));
    for task_type in ["code_generation", "refactoring", "analysis", "testing"] {
        let result = Peer::plain().result("execute_task", example(task_type));
        assert_eq!(result["status"], "success");
        for (member, kind) in [("code", "string"), ("explanation", "string")] {
            assert!(result["output"][member].is_string(), "{member} is a {kind}");
        }
        assert!(
            result["output"]["files_modified"].is_array() && result["output"]["files_created"].is_array()
        );
        assert!(result["metadata"]["execution_time_ms"].is_u64());
        assert!(result["metadata"]["tokens_used"].as_u64().unwrap() > 0);
        assert!(result["metadata"]["model"].is_string());
    }
    let mut wrong = example("testing");
    wrong["context"] = json!("x");
    refused("execute_task", wrong);
    let code = Peer::plain().result("execute_task", example("code_generation"))["output"]["code"].clone();
    assert!(code.as_str().unwrap().contains("function detailed_task_description()"), "{code}");
    let valid = json!({ "code": code, "language": "javascript", "rules": ["no-console"] });
    assert_eq!(Peer::plain().result("validate_code", valid)["valid"], true);
    let mut bound = example("refactoring");
    bound["context"]["constraints"] = json!(["a", "b"]);
    for (task, steps, constraints) in [(example("refactoring"), 3, false), (bound, 3, true)] {
        let code = Peer::plain().result("execute_task", task)["output"]["code"].clone();
        let code = code.as_str().unwrap();
        assert_eq!(code.matches("// step: ").count(), steps, "{code}");
        assert_eq!(code.contains("constraints: 2"), constraints, "{code}");
        assert_eq!(code.contains("constraints"), constraints, "{code}");
    }
}

#[test]
fn tasks_answer_in_the_language_they_are_asked_for() {
    for (task_type, language, expected) in [
        ("code_generation", "python", "# Detailed task description\ndef detailed_task_description():\n"),
        ("testing", "Rust", "// Detailed task description\nfn test_detailed_task_description() {\n"),
        ("testing", "toml", "# test_detailed_task_description: to be written in toml\n"),
        ("analysis", "python", "# the prompt has 3 words on 1 lines\n# files: file1.js, file2.js\n"),
    ] {
        let mut task = example(task_type);
        task["options"]["language"] = json!(language);
        let result = Peer::plain().result("execute_task", task);
        let code = result["output"]["code"].as_str().unwrap();
        assert!(code.contains(expected), "{code}");
        assert_eq!(result["metadata"]["tokens_used"], 3 + code.split_whitespace().count());
    }
}

#[test]
fn what_looks_at_code_waits_for_its_last_change() {
    let user_request = "Create a parser. Test it. Review it. Rename it.";
    let plan = Peer::plain().result("create_plan", json!({ "user_request": user_request }))["plan"].clone();
    let on = |task: usize| plan["tasks"][task]["dependencies"].as_array().unwrap().clone();
    let id = |task: usize| plan["tasks"][task]["id"].clone();
    assert_eq!((on(0), on(1), on(2), on(3)), (vec![], vec![id(0)], vec![id(0)], vec![id(2)]));
}

#[test]
fn plans_are_acyclic_and_within_their_limits() {
    let request = "Create a component. Then refactor it; test it\nreview the tests and then write the docs.";
    let ask = |max: u64| {
        json!({
            "user_request": request,
            "current_state": { "completed_tasks": ["test it"], "pending_tasks": [{ "id": "task_002" }], "context": {} },
            "constraints": { "max_tasks": max, "time_limit_seconds": 100 }
        })
    };
    needs("create_plan", &json!({ "user_request": "x" }), &["user_request"]);
    for max in 1..8 {
        let plan = Peer::plain().result("create_plan", ask(max))["plan"].clone();
        let tasks = plan["tasks"].as_array().unwrap();
        assert_eq!(tasks.len() as u64, max.min(4));
        assert!(plan["estimated_time_seconds"].as_u64().unwrap() <= 100);
        let mut seen = Vec::new();
        for task in tasks {
            let id = task["id"].as_str().unwrap();
            assert!(!seen.contains(&id) && id != "task_002");
            assert!(
                task["dependencies"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|on| seen.contains(&on.as_str().unwrap()))
            );
            assert!(!task["description"].as_str().unwrap().is_empty());
            seen.push(id);
        }
    }
    for max in [json!(0), json!(-1), json!(1.5), json!("3")] {
        refused("create_plan", json!({ "user_request": "x", "constraints": { "max_tasks": max } }));
    }
    let words = "do. ".repeat(100_000);
    let plan = Peer::plain().result("create_plan", json!({ "user_request": words }));
    assert_eq!(plan["plan"]["tasks"].as_array().unwrap().len(), 10);
}

#[test]
fn code_is_validated() {
    let validate = |code: &str, language: &str, rules: Value| {
        Peer::plain().result("validate_code", json!({ "code": code, "language": language, "rules": rules }))
    };
    needs("validate_code", &json!({ "code": "", "language": "x" }), &["code", "language"]);
    refused("validate_code", json!({ "code": "", "language": "x", "rules": [1] }));
    for (code, language, valid) in [
        ("f(a[0]);", "javascript", true),
        ("f(a[0);", "javascript", false),
        ("{\"a\":1}", "json", true),
        ("{\"a\":1,}", "JSON", false),
        ("a = 1\n[b]\nc = [1,\n2]", "toml", true),
        ("a = 1\na = 2", "toml", false),
        ("def f(:\n  pass", "python", false),
        ("fn f<'a>(x: &'a str) {}", "rust", true),
        ("fn f<'a>(x: &'a str) {", "rs", false),
        ("char c = '(';", "C++", true),
        ("char c = ('a';", "java", false),
        ("f(1) # :(", "ruby", true),
        ("f(1 # :)", "elixir", false),
        ("anything (goes", "prose", true),
    ] {
        let result = validate(code, language, json!([]));
        assert_eq!(result["valid"], valid, "{language} {code}");
        assert_eq!(result["errors"].as_array().unwrap().is_empty(), valid);
    }
    let result = validate("{\n  \"a\": x\n}", "json", json!([]));
    assert_eq!((&result["errors"][0]["line"], &result["errors"][0]["column"]), (&json!(2), &json!(8)));
    let result = validate("const a = 1;", "javascript", json!(["no-unused-vars", "no-such-rule"]));
    assert_eq!(result["errors"][0]["rule"], "no-unused-vars");
    assert_eq!(result["warnings"][0]["rule"], "undefined-rule");
    let result = validate("{\n  \"é\": \"\t\"\n}", "json", json!([]));
    assert_eq!((&result["errors"][0]["line"], &result["errors"][0]["column"]), (&json!(2), &json!(9)));
    let result = validate("f(];", "javascript", json!(["no-var", "no-such-rule", "no-such-other"]));
    let rules = |kind: &str| -> Vec<String> {
        let problems = result[kind].as_array().unwrap();
        problems.iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert!(rules("errors").iter().all(|rule| rule == "syntax"), "{result}");
    assert_eq!(rules("warnings"), ["undefined-rule", "undefined-rule"]);
    let deep = validate(&"[".repeat(500_000), "toml", json!([]));
    assert_eq!(deep["valid"], false);
}

#[test]
fn the_context_is_kept_for_later_calls() {
    let mut peer = Peer::plain();
    let update =
        |action: &str, data: Value| json!({ "action": action, "context_type": "file", "data": data });
    needs("update_context", &update("add", json!({})), &["action", "context_type", "data"]);
    refused("update_context", update("drop", json!({})));
    let added = peer.result("update_context", update("add", json!({ "src/a.rs": { "lines": 3 }, "b": 1 })));
    assert_eq!((&added["changed"], &added["total"]), (&json!(2), &json!(2)));
    let changed = peer.result("update_context", update("modify", json!({ "b": 2, "c": 3 })));
    assert_eq!((&changed["changed"], &changed["missing"]), (&json!(1), &json!(1)));
    let code = peer.result("execute_task", example("analysis"))["output"]["code"].clone();
    assert!(code.as_str().unwrap().contains("known files: b, src/a.rs"), "{code}");
    peer.result("update_context", update("remove", json!({ "src/a.rs": null })));
    let context = peer.result("peerproof.context", json!({}));
    assert_eq!(context, json!({ "file": { "b": 2 }, "dependency": {}, "state": {} }));
}

#[test]
fn the_context_is_bounded() {
    let mut peer = Peer::plain();
    let add = |name: &str| json!({ "action": "add", "context_type": "state", "data": { name: "x".repeat(200_000) } });
    peer.result("update_context", add("a"));
    peer.result("update_context", add("b"));
    assert_eq!(peer.code("update_context", add("c")), -32001);
    peer.result("update_context", add("a"));
    let context = peer.result("peerproof.context", json!({}));
    assert_eq!(context["state"].as_object().unwrap().len(), 2);
}

#[test]
fn names_and_values_of_the_context_count() {
    let mut peer = Peer::with(|config| config.limits.rpc_context_bytes_max = 10);
    let of = |action: &str, data: Value| json!({ "action": action, "context_type": "state", "data": data });
    assert_eq!(peer.code("update_context", of("add", json!({ "ab": 123_456_789 }))), -32001);
    peer.result("update_context", of("add", json!({ "ab": 12_345_678 })));
    peer.result("update_context", of("modify", json!({ "ab": 87_654_321 })));
    assert_eq!(peer.code("update_context", of("add", json!({ "c": 1 }))), -32001);
    peer.result("update_context", of("remove", json!({ "ab": null })));
    peer.result("update_context", of("add", json!({ "c": 1 })));
}

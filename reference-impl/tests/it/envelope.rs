//! Tests of the envelope engine as a machine.

use peerproof_reference::envelope::{Choices, Config, machine};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Action, Event, Machine as _};
use serde_json::{Value, json};

/// Exit status and output for an input.
fn said(config: Config, input: &[u8]) -> (i32, Value) {
    let mut engine = machine(config);
    let mut actions = Vec::new();
    for piece in input.chunks(1_000) {
        engine.handle(Event::Stdin(piece), 0, &mut actions);
    }
    engine.handle(Event::StdinEof, 0, &mut actions);
    let [Action::Stdout(out), Action::Exit(status)] = &actions[..] else { panic!("{actions:?}") };
    (*status, serde_json::from_slice(out).unwrap())
}

fn choosing(choices: &[(&str, &str)]) -> Config {
    let mut own = Choices::default();
    choices.iter().for_each(|(key, value)| own.set(key, value).unwrap());
    Config { choices: own, started_unix_ms: 1_765_360_800_000, ..Config::default() }
}

fn plain(more: &Value) -> Value {
    let mut envelope = json!({
        "envelope_id": "env_0123456789abcdef", "request_id": "req_0123456789abcdef", "user_id": "u",
        "session_id": "sess_0123456789abcdef", "raw_input": "hello", "outputs": {}, "current_stage": "start",
        "terminated": false,
    });
    more.as_object().unwrap().iter().for_each(|(name, value)| envelope[name] = value.clone());
    envelope
}

fn answer(choices: &[(&str, &str)], more: &Value) -> (i32, Value) {
    said(choosing(choices), plain(more).to_string().as_bytes())
}

#[test]
fn the_pipeline_runs_to_its_end() {
    let mut envelope = plain(&json!({ "metadata": { "a": [1, null] }, "x": 1 }));
    let mut stages = Vec::new();
    while envelope["terminated"] == false {
        let (status, reply) = said(choosing(&[]), envelope.to_string().as_bytes());
        assert_eq!(status, 0, "{reply}");
        stages.push(reply["current_stage"].as_str().unwrap().to_owned());
        envelope = reply;
    }
    assert_eq!(stages, ["perception", "intent", "plan", "execution", "critic", "integration", "end"]);
    assert_eq!(envelope["terminal_reason"], "completed_successfully");
    assert_eq!(
        (envelope["llm_call_count"].clone(), envelope["agent_hop_count"].clone()),
        (json!(5), json!(6))
    );
    assert_eq!(envelope["remaining_goals"], json!([]));
    assert_eq!(envelope["goal_completion_status"], json!({ "Answer: hello": "satisfied" }));
    assert_eq!(envelope["processing_history"].as_array().unwrap().len(), 6);
    assert_eq!((envelope["metadata"].clone(), envelope["x"].clone()), (json!({ "a": [1, null] }), json!(1)));
    assert_eq!(said(choosing(&[]), envelope.to_string().as_bytes()), (0, envelope));
}

#[test]
fn an_identity_engine_adds_defaults_alone() {
    let (status, reply) = answer(&[("process", "identity")], &json!({ "iteration": 2 }));
    assert_eq!(status, 0);
    assert_eq!((reply["iteration"].clone(), reply["max_llm_calls"].clone()), (json!(2), json!(10)));
    assert_eq!((reply["errors"].clone(), reply["completed_at"].clone()), (json!([]), Value::Null));
    assert!(reply.get("received_at").is_none());
    assert_eq!(reply["current_stage"], "start");
}

#[test]
fn null_says_what_absence_says() {
    let nulls =
        ["terminal_reason", "clarification_response", "confirmation_response", "completed_at", "errors"];
    let nulls: serde_json::Map<String, Value> =
        nulls.map(|name| (name.to_owned(), Value::Null)).into_iter().collect();
    assert_eq!(answer(&[], &Value::Object(nulls)), answer(&[], &json!({})));
}

#[test]
fn what_is_wrong_is_refused() {
    for wrong in [
        json!({ "envelope_id": "env_0123456789ABCDEF" }),
        json!({ "request_id": "req_0123456789abcdef\n" }),
        json!({ "iteration": "1" }),
        json!({ "max_stages": 0 }),
        json!({ "terminal_reason": "done" }),
        json!({ "outputs": { "a": 1 } }),
        json!({ "errors": [1] }),
        json!({ "all_goals": ["a", null] }),
        json!({ "completed_stages": [{ "summary": [] }] }),
        json!({ "goal_completion_status": { "a": "done" } }),
        json!({ "received_at": "2025-02-29T10:00:00Z" }),
    ] {
        let (status, reply) = answer(&[], &wrong);
        assert_eq!((status, reply.get("error").is_some()), (1, true), "{wrong}");
    }
    assert_eq!(said(choosing(&[]), b"").0, 1);
    assert_eq!(said(choosing(&[]), b"[]").0, 1);
}

#[test]
fn bounds_stop_it() {
    for (more, reason) in [
        (json!({ "llm_call_count": 10 }), "max_llm_calls_exceeded"),
        (json!({ "agent_hop_count": 2, "max_agent_hops": 2 }), "max_agent_hops_exceeded"),
        (json!({ "iteration": 4 }), "max_iterations_exceeded"),
    ] {
        let (_, reply) = answer(&[], &more);
        assert_eq!(
            (reply["terminated"].clone(), reply["terminal_reason"].clone()),
            (json!(true), json!(reason))
        );
        assert_eq!((reply["outputs"].clone(), reply["completed_at"].is_string()), (json!({}), true));
    }
    assert_eq!(answer(&[("over_bound", "refuse")], &json!({ "iteration": 4 })).0, 1);
    let returned = answer(&[("over_bound", "same")], &json!({ "iteration": 4 })).1;
    assert_eq!(
        (returned["terminated"].clone(), returned["current_stage"].clone()),
        (json!(false), json!("start"))
    );
    assert_eq!(
        answer(&[("over_bound", "same")], &json!({})).1["current_stage"],
        "start",
        "it runs no stages"
    );
}

#[test]
fn responses_are_waited_for() {
    let asked =
        json!({ "confirmation_pending": true, "confirmation_message": "sure?", "current_stage": "plan" });
    let with = |response: Value| {
        let mut asked = asked.clone();
        asked["confirmation_response"] = response;
        asked
    };
    assert_eq!(answer(&[], &asked).1["outputs"], json!({}));
    assert_eq!(answer(&[("pending_input", "refuse")], &asked).0, 1);
    assert_eq!(
        answer(&[("pending_input", "terminate")], &asked).1["terminal_reason"],
        "confirmation_required"
    );
    assert_eq!(answer(&[], &with(json!(false))).1["terminal_reason"], "denied_by_policy");
    let (_, confirmed) = answer(&[], &with(json!(true)));
    assert_eq!(
        (confirmed["confirmation_pending"].clone(), confirmed["current_stage"].clone()),
        (json!(false), json!("execution"))
    );
}

#[test]
fn choices_are_made() {
    let pairs = |more: Value, key: &str, taken: &str, refused: &str| {
        assert_eq!(answer(&[(key, taken)], &more).0, 0, "{key}={taken}");
        assert_eq!(answer(&[(key, refused)], &more).0, 1, "{key}={refused}");
    };
    pairs(json!({ "iteration": null }), "null_member", "absent", "refuse");
    pairs(json!({ "terminal_reason": "denied_by_policy" }), "inconsistent_input", "keep", "refuse");
    pairs(json!({ "outputs": { "critic": { "verdict": 5 } } }), "agent_shapes", "keep", "refuse");
    pairs(json!({ "received_at": "2016-12-31T23:59:60Z" }), "leap_second", "accept", "refuse");
    pairs(json!({ "received_at": "2016-12-31 23:59:59Z" }), "space_for_t", "accept", "refuse");
    let done = json!({ "terminated": true, "terminal_reason": "denied_by_policy" });
    pairs(done, "terminated_input", "same", "refuse");
    let text = |key, value, text: String| said(choosing(&[(key, value)]), text.as_bytes()).0;
    let whole = plain(&json!({})).to_string();
    assert_eq!(text("trailing_text", "ignore", format!("{whole}\nx")), 0);
    assert_eq!(text("trailing_text", "refuse", format!("{whole}\nx")), 1);
    assert_eq!(text("bom", "ignore", format!("\u{feff}{whole}")), 0);
    assert_eq!(text("bom", "refuse", format!("\u{feff}{whole}")), 1);
    assert_eq!(text("missing_required", "default", "{}".to_owned()), 0);
    assert_eq!(text("missing_required", "refuse", "{}".to_owned()), 1);
}

#[test]
fn the_text_of_the_object_is_limited() {
    let whole = plain(&json!({})).to_string();
    let limits = Limits { stdin_bytes_max: whole.len(), ..Limits::default() };
    let small = |choices: &[(&str, &str)]| Config { limits: limits.clone(), ..choosing(choices) };
    let spaces = " \n".repeat(3_000);
    assert_eq!(said(small(&[]), format!("{spaces}{whole}{spaces}").as_bytes()).0, 0);
    assert_eq!(said(small(&[]), whole.replace('{', "{ ").as_bytes()).0, 1);
    assert_eq!(said(small(&[("over_size", "process")]), whole.replace('{', "{ ").as_bytes()).0, 0);
}

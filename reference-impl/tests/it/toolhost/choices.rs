//! Tests of every value of every choice about JSON and members.

use peerproof_reference::toolhost::{Config, Mode};
use serde_json::{Value, json};

use super::peer::{Peer, aid, artifact, is_host_error, output, request, with};

fn echoed(choice: &str, input: &str) -> Option<String> {
    let mut peer = Peer::chosen(choice);
    let reply = peer.send(json!({ "aid": aid("ECHO"), "input_json": input }));
    (!is_host_error(&reply)).then(|| reply["output_json"].as_str().unwrap().to_owned())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn duplicate_keys() {
    let inner = r#"{"a":1,"b":{"c":1,"\u0063":2},"a":2}"#;
    assert_eq!(echoed("duplicate_keys=last", inner), some(r#"{"a":2,"b":{"c":2}}"#));
    assert_eq!(echoed("duplicate_keys=first", inner), some(r#"{"a":1,"b":{"c":1}}"#));
    assert_eq!(echoed("duplicate_keys=refuse", inner), None);
    let near = r#"{"a":1,"b":{"a":1},"\u0063":2}"#;
    assert_eq!(echoed("duplicate_keys=refuse", near), some(r#"{"a":1,"b":{"a":1},"c":2}"#));

    let outer = format!(r#"{{"aid":"{}","aid":"{}"}}"#, aid("ANY"), aid("COUNTER"));
    let run = |choice: &str| Peer::chosen(choice).line(&outer);
    assert_eq!(output(&run("duplicate_keys=last")), json!({ "count": 1 }));
    assert_eq!(output(&run("duplicate_keys=first")), json!({}));
    assert!(is_host_error(&run("duplicate_keys=refuse")));
}

#[test]
fn lone_surrogates() {
    let inner = r#"{"a":"\ud800x","\udc00":1}"#;
    assert_eq!(echoed("lone_surrogates=echo", inner), some(inner));
    assert_eq!(echoed("lone_surrogates=replace", inner), some("{\"a\":\"\u{FFFD}x\",\"\u{FFFD}\":1}"));
    assert_eq!(echoed("lone_surrogates=refuse", inner), None);
    assert_eq!(echoed("lone_surrogates=refuse", r#"{"a":"\ud83d\ude00"}"#), some(r#"{"a":"\ud83d\ude00"}"#));

    // Here the surrogate is escaped in the request itself, and the bytes of the reply show its treatment.
    let line = format!(r#"{{"aid":"{}","input_json":"{{\"a\":\"\ud800\"}}"}}"#, aid("ECHO"));
    for (value, expected) in [("echo", "\\\\ud800"), ("replace", "\u{FFFD}"), ("refuse", "lone surrogate")] {
        let mut peer = Peer::chosen(&format!("lone_surrogates={value}"));
        peer.write(format!("{line}\n").as_bytes());
        let text = String::from_utf8(peer.stdout).unwrap();
        assert!(text.contains(expected), "{value}: {text}");
    }
}

#[test]
fn big_integers() {
    let inner = r#"{"a":9007199254740993,"b":9007199254740991,"c":1e400}"#;
    assert_eq!(echoed("big_integers=exact", inner), some(inner));
    let rounded = echoed("big_integers=round", inner).unwrap();
    assert_eq!(rounded, r#"{"a":9.007199254740992e15,"b":9007199254740991,"c":1.7976931348623157e308}"#);
    assert_eq!(echoed("big_integers=refuse", inner), None);
    assert_eq!(echoed("big_integers=refuse", r#"{"b":9007199254740991}"#), some(r#"{"b":9007199254740991}"#));
}

#[test]
fn byte_order_mark() {
    let line = format!("\u{feff}{}", request("COUNTER", json!({})));
    for _ in 0..2 {
        assert_eq!(Peer::chosen("bom=ignore").line(&line)["ok"], true);
        assert!(is_host_error(&Peer::chosen("bom=refuse").line(&line)));
    }
}

#[test]
fn null_members() {
    let line = format!(
        r#"{{"aid":"{}","input_json":null,"ds_state":null,"idempotency_key":null,"_lease_token":null}}"#,
        aid("COUNTER")
    );
    assert_eq!(output(&Peer::chosen("null_member=absent").line(&line)), json!({ "count": 1 }));
    for member in ["input_json", "ds_state", "idempotency_key", "_lease_token"] {
        let line = format!(r#"{{"aid":"{}","{member}":null}}"#, aid("COUNTER"));
        let mut peer = Peer::chosen("null_member=refuse");
        assert!(is_host_error(&peer.line(&line)), "{member}");
        assert_eq!(peer.count(), 1);
    }
    assert!(is_host_error(&Peer::chosen("null_member=absent").line(r#"{"aid":null}"#)));
}

#[test]
fn inputs_member() {
    let alone = json!({ "aid": aid("ECHO"), "inputs": { "a": 1 } });
    let beside = json!({ "aid": aid("ECHO"), "inputs": { "a": 1 }, "input_json": "{\"b\":2}" });
    assert_eq!(output(&Peer::chosen("inputs_member=ignore").send(alone.clone())), json!({}));
    assert!(is_host_error(&Peer::chosen("inputs_member=refuse").send(alone)));
    assert_eq!(output(&Peer::chosen("inputs_member=refuse").send(beside)), json!({ "b": 2 }));
}

/// Slots 0, 1 and 2 after `state`, sent to a peer with "old" in 0 and 2; `None` if it was refused.
fn slots_after(choice: &str, state: Value) -> Option<[Option<String>; 3]> {
    let mut peer = Peer::chosen(choice);
    let any = |state| with(request("ANY", json!({})), json!({ "ds_state": state }));
    peer.send(any(json!({ "slots": { "0": artifact("old"), "2": artifact("old") } })));
    let refused = is_host_error(&peer.send(any(state)));
    let slots = [peer.slot(0), peer.slot(1), peer.slot(2)];
    if refused {
        assert_eq!(slots, [some("old"), None, some("old")], "{choice}: a refusal changes nothing");
    }
    (!refused).then_some(slots)
}

#[test]
fn slot_set_and_removed() {
    let new = artifact("new");
    let state = json!({ "delta": true, "slots": { "0": new, "1": new }, "removed_slots": [0] });
    let after = |choice| slots_after(choice, state.clone());
    assert_eq!(after("slot_set_and_removed=set"), Some([some("new"), some("new"), some("old")]));
    assert_eq!(after("slot_set_and_removed=removed"), Some([None, some("new"), some("old")]));
    assert_eq!(after("slot_set_and_removed=refuse"), None);
}

#[test]
fn delta_not_boolean() {
    for odd in [json!("true"), json!(1), json!([]), json!(null)] {
        let state = json!({ "delta": odd, "slots": { "1": artifact("new") } });
        let after = |choice| slots_after(choice, state.clone());
        assert_eq!(after("delta_not_boolean=delta"), Some([some("old"), some("new"), some("old")]), "{odd}");
        assert_eq!(after("delta_not_boolean=full"), Some([None, some("new"), None]), "{odd}");
        assert_eq!(after("delta_not_boolean=refuse"), None, "{odd}");
    }
}

#[test]
fn removed_slots_in_full_state() {
    let new = artifact("new");
    let state = json!({ "slots": { "1": new, "2": new }, "removed_slots": [2] });
    let after = |choice| slots_after(choice, state.clone());
    assert_eq!(after("removed_slots_in_full_state=ignore"), Some([None, some("new"), some("new")]));
    assert_eq!(after("removed_slots_in_full_state=apply"), Some([None, some("new"), None]));
    assert_eq!(after("removed_slots_in_full_state=refuse"), None);
    let odd = json!({ "slots": {}, "removed_slots": [8] });
    assert_eq!(slots_after("removed_slots_in_full_state=ignore", odd.clone()), Some([None, None, None]));
    assert_eq!(slots_after("removed_slots_in_full_state=apply", odd), None);
}

/// Reply of a run of `role`, by a peer whose configuration `change` edits.
fn run(role: &str, request: Value, change: impl FnOnce(&mut Config)) -> Value {
    let mut config = Config::new(Mode::Run { aid: aid(role) });
    change(&mut config);
    let mut peer = Peer::new(config);
    peer.write(request.to_string().as_bytes());
    peer.close();
    peer.replies().remove(0)
}

#[test]
fn delta_in_run_mode() {
    let request = |delta| json!({ "input_json": "{}", "ds_state": { "delta": delta, "slots": { "1": artifact("a") } } });
    for (value, delta, runs) in
        [("apply", true, true), ("apply", false, true), ("refuse", true, false), ("refuse", false, true)]
    {
        let reply =
            run("ANY", request(delta), |config| config.choices.set("delta_in_run_mode", value).unwrap());
        assert_eq!(is_host_error(&reply), !runs, "{value} {delta}: {reply}");
        assert!(!runs || reply["ds_state"]["slots"]["1"] == artifact("a"), "{value} {delta}: {reply}");
    }
    assert_eq!(
        Peer::chosen("delta_in_run_mode=refuse")
            .send(with(super::peer::request("ANY", json!({})), request(true)))["ok"],
        true
    );
}

#[test]
fn keys_given_up() {
    for (value, gone) in [("oldest", &[1][..]), ("another", &[4]), ("several", &[1, 2])] {
        let mut peer = Peer::with(|config| {
            config.limits.set("idempotency_entries_max", "4").unwrap();
            config.choices.set("keys_given_up", value).unwrap();
        });
        let mut hits = |key: u64| {
            let keyed = with(request("ANY", json!({})), json!({ "idempotency_key": key.to_string() }));
            peer.send(keyed)["idempotent_hit"] == true
        };
        assert!((1..=5).all(|key| !hits(key)), "{value}");
        // The order is from the youngest, so that a key that is stored again does not push out one that is still to be
        // tested.
        let again: Vec<u64> = (1..=5).rev().filter(|key| !hits(*key)).collect();
        assert!(again.iter().rev().eq(gone), "{value}: {again:?}");
    }
}

#[test]
fn empty_lease_token() {
    for value in ["lease_required", "lease_rejected"] {
        let mut peer = Peer::with(|config| {
            config.lease_enforce = true;
            config.choices.set("empty_lease_token", value).unwrap();
        });
        let reply = peer.send(with(request("TIER1", json!({})), json!({ "_lease_token": "" })));
        assert!(is_host_error(&reply) && reply["error"] == value, "{value}: {reply}");
        let reply = peer.send(with(request("TIER1", json!({})), json!({ "_lease_token": "x" })));
        assert_eq!(reply["error"], "lease_rejected", "{value}");
        assert_eq!(peer.call("TIER1", json!({}))["error"], "lease_required", "{value}");
    }
}

#[test]
fn lease_enforce_with_other_values_and_in_run_mode() {
    let set = |config: &mut Config, choices: &[&str], value: Option<&str>| {
        for choice in choices {
            config.choices.set(choice, "enforce").unwrap();
        }
        config.read_lease_enforce(value);
    };
    for (choices, value, enforced) in [
        (&[][..], None, false),
        (&[], Some("1"), true),
        (&[], Some("0"), false),
        (&[], Some("true"), false),
        (&["lease_enforce_0"], Some("0"), true),
        (&["lease_enforce_0"], Some("true"), false),
        (&["lease_enforce_true"], Some("true"), true),
        (&["lease_enforce_true"], Some("0"), false),
        (&["lease_enforce_0", "lease_enforce_true"], None, false),
        (&["lease_enforce_0", "lease_enforce_true"], Some("yes"), false),
    ] {
        let mut peer = Peer::with(|config| set(config, choices, value));
        let reply = peer.call("TIER1", json!({}));
        assert_eq!(reply["error"] == "lease_required", enforced, "{choices:?} {value:?}: {reply}");
        assert_eq!(peer.count(), 1, "tier 0 needs none");
    }
    for (choices, value, enforced) in [
        (&[][..], Some("1"), false),
        (&["lease_enforce_in_run_mode"], Some("1"), true),
        (&["lease_enforce_in_run_mode"], None, false),
        (&["lease_enforce_in_run_mode"], Some("0"), false),
    ] {
        let reply = run("TIER1", json!({}), |config| set(config, choices, value));
        assert_eq!(reply["error"] == "lease_required", enforced, "{choices:?} {value:?}: {reply}");
        assert_eq!(run("COUNTER", json!({}), |config| set(config, choices, value))["ok"], true);
    }
}

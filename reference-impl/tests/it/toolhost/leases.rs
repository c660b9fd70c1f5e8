//! Leases in serve mode with `MACHINA_LEASE_ENFORCE=1`.

use serde_json::{Value, json};

use super::peer::{Peer, aid, artifact, is_host_error, output, request, with};

fn enforced(choice: Option<(&str, &str)>) -> Peer {
    Peer::with(|config| {
        config.lease_enforce = true;
        if let Some((key, value)) = choice {
            config.choices.set(key, value).unwrap();
        }
    })
}

fn issue(peer: &mut Peer, role: &str, members: Value) -> String {
    let reply = peer.send(with(json!({ "aid": "_lease.issue", "tool_aid": aid(role) }), members));
    assert_eq!(reply["ok"], true, "{reply}");
    reply["token_id"].as_str().unwrap().to_owned()
}

fn call(peer: &mut Peer, role: &str, token: &str) -> Value {
    peer.send(with(request(role, json!({})), json!({ "_lease_token": token })))
}

fn rejected(reply: &Value) -> String {
    assert!(is_host_error(reply) && reply["error"] == "lease_rejected", "{reply}");
    reply["reason"].as_str().unwrap().to_owned()
}

#[test]
fn tiers_from_one_need_a_token() {
    let mut peer = enforced(None);
    for tier in 1..=3 {
        let role = format!("TIER{tier}");
        let reply = peer.call(&role, json!({}));
        assert_eq!(reply, json!({ "ok": false, "error": "lease_required", "tier": tier, "aid": aid(&role) }));
        let token = issue(&mut peer, &role, json!({ "tier": tier }));
        assert_eq!(output(&call(&mut peer, &role, &token)), json!({ "count": 1 }));
        assert!(!rejected(&call(&mut peer, &role, &token)).is_empty(), "a token works once");
    }
    assert_eq!(peer.count(), 1, "tier 0 needs none");
    assert_eq!(output(&call(&mut peer, "COUNTER", "nonsense")), json!({ "count": 2 }));
}

#[test]
fn a_token_opens_its_tool_and_tier_only_and_survives_the_mistake() {
    let mut peer = enforced(None);
    let token = issue(&mut peer, "TIER2", json!({ "tier": 2 }));
    rejected(&call(&mut peer, "TIER1", &token));
    rejected(&call(&mut peer, "TIER3", &token));
    assert!(is_host_error(
        &peer.send(json!({ "aid": aid("TIER2"), "_lease_token": token, "input_json": "[" }))
    ));
    assert_eq!(output(&call(&mut peer, "TIER2", &token)), json!({ "count": 1 }));

    let low = issue(&mut peer, "TIER3", json!({ "tier": 2 }));
    rejected(&call(&mut peer, "TIER3", &low));
    let high = issue(&mut peer, "TIER1", json!({ "tier": 3.0 }));
    assert_eq!(output(&call(&mut peer, "TIER1", &high)), json!({ "count": 1 }));
    for token in ["", "x", "tok_\0", "é"] {
        rejected(&call(&mut peer, "TIER1", token));
    }
}

#[test]
fn a_lease_expires_at_its_time_which_is_clamped() {
    for (members, life) in [
        (json!({}), 10_000),
        (json!({ "ttl_ms": 0 }), 1_000),
        (json!({ "ttl_ms": -5 }), 1_000),
        (json!({ "ttl_ms": 2000 }), 2_000),
        (json!({ "ttl_ms": 1e9 }), 300_000),
    ] {
        for (wait, works) in [(life - 1, true), (life, false)] {
            let mut peer = enforced(None);
            let token = issue(&mut peer, "TIER1", members.clone());
            peer.now += wait;
            let reply = call(&mut peer, "TIER1", &token);
            assert_eq!(reply["ok"] == true, works, "{members} after {wait}");
            if !works {
                assert!(rejected(&reply).contains("expired"));
            }
        }
    }
}

#[test]
fn a_refused_lease_runs_nothing_and_changes_nothing() {
    let mut peer = enforced(None);
    let state = json!({ "ds_state": { "slots": { "0": artifact("x") } }, "idempotency_key": "k" });
    peer.send(with(request("TIER1", json!({})), state.clone()));
    peer.send(with(with(request("TIER1", json!({})), state), json!({ "_lease_token": "no" })));
    assert_eq!(peer.slot(0), None);
    let token = issue(&mut peer, "TIER1", json!({}));
    let reply = peer
        .send(with(request("TIER1", json!({})), json!({ "_lease_token": token, "idempotency_key": "k" })));
    assert_eq!(output(&reply), json!({ "count": 1 }));
    assert_ne!(reply["idempotent_hit"], true);
}

#[test]
fn a_hit_needs_a_lease_and_spends_it_by_choice() {
    for (value, works) in [("true", false), ("false", true)] {
        let mut peer = enforced(Some(("hit_spends_token", value)));
        let keyed = with(request("TIER1", json!({})), json!({ "idempotency_key": "k" }));
        let first = issue(&mut peer, "TIER1", json!({}));
        peer.send(with(keyed.clone(), json!({ "_lease_token": first })));
        assert_eq!(peer.send(keyed.clone())["error"], "lease_required");
        let second = issue(&mut peer, "TIER1", json!({}));
        let hit = peer.send(with(keyed, json!({ "_lease_token": second })));
        assert_eq!(hit["idempotent_hit"], true);
        assert_eq!(call(&mut peer, "TIER1", &second)["ok"] == true, works);
    }
}

#[test]
fn issuing_checks_its_members_and_never_repeats_a_token() {
    let mut peer = enforced(None);
    for members in [
        json!({}),
        json!({ "tool_aid": 1 }),
        json!({ "tool_aid": "AID.XX" }),
        json!({ "tool_aid": aid("TIER1"), "tier": 4 }),
        json!({ "tool_aid": aid("TIER1"), "tier": "1" }),
        json!({ "tool_aid": aid("TIER1"), "ttl_ms": "x" }),
    ] {
        assert!(is_host_error(&peer.send(with(json!({ "aid": "_lease.issue" }), members))));
    }
    let keyed = json!({ "idempotency_key": "k" });
    let tokens = [issue(&mut peer, "TIER1", keyed.clone()), issue(&mut peer, "TIER1", keyed)];
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn live_leases_are_never_dropped_for_new_ones() {
    let mut peer = Peer::with(|config| {
        config.lease_enforce = true;
        config.limits.lease_entries_max = 2;
    });
    let first = issue(&mut peer, "TIER1", json!({ "ttl_ms": 5000 }));
    issue(&mut peer, "TIER1", json!({ "ttl_ms": 1000 }));
    let refused = json!({ "aid": "_lease.issue", "tool_aid": aid("TIER1") });
    assert!(is_host_error(&peer.send(refused)));
    peer.now += 1000;
    issue(&mut peer, "TIER1", json!({}));
    assert_eq!(call(&mut peer, "TIER1", &first)["ok"], true);
}

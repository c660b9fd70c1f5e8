//! The configuration vocabulary of the toolhost boundary.

use peerproof_engine::boundary::ConfigKey;

const fn role(name: &'static str, meaning: &'static str) -> ConfigKey {
    ConfigKey::role(name, &["aid: string", "input?: object", "tier?: integer"], meaning)
}

const TRUE_FALSE: &[&str] = &["true", "false"];

/// Every key that a configuration for a toolhost or a dispatcher may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command("run", &["{aid}"], "argv of run mode; `{aid}` stands for the action id"),
    ConfigKey::command("serve", &[], "argv of serve mode"),
    ConfigKey::command(
        "command",
        &["{peer}"],
        "argv of a dispatcher; `{peer}` stands for the path of the toolhost it starts",
    ),
    ConfigKey::feature("idempotency", "`idempotency_key` is honoured"),
    ConfigKey::set_feature(
        "lease",
        &["issue: object {aid} {tier} {ttl_ms}", "token: pointer"],
        "leases: true, or { issue = request template, token = JSON Pointer into its reply }",
    ),
    ConfigKey::feature("ds_state", "slots are kept and reported"),
    ConfigKey::feature(
        "http_get",
        "the tool of role `http_get` is there and obeys MACHINA_HTTP_ALLOWED_HOSTS; one that answers otherwise breaks TH-HTTP-14",
    ),
    role("any", "a tool and an input known to succeed: { aid, input }"),
    role("echo", "answers its input"),
    role("counter", "answers {\"count\":n}, one more at each execution in this process"),
    role("put", "writes a DSState slot: {\"slot\",\"artifact\"}"),
    role("get", "reads a DSState slot: {\"slot\"} → {\"artifact\"}"),
    role("remove", "empties a DSState slot: {\"slot\"}"),
    role("fail", "fails with {\"message\"} as its error"),
    role("sleep", "takes {\"ms\"} and answers {\"slept_ms\"}"),
    role("blob", "answers {\"data\":\"xx…\"} with {\"bytes\"} bytes"),
    role("noise", "prints {\"stdout\",\"stderr\"} itself"),
    role("crash", "throws, or aborts its process"),
    role("tier1", "answers {\"count\":n}; needs a lease of tier 1"),
    role("tier2", "the same with tier 2"),
    role("tier3", "the same with tier 3"),
    role("http_get", "fetches {\"url\"} and answers {\"status\",\"body\"}; by default AID.NET.HTTP_GET.v1"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice("bom", &["ignore", "refuse"], "a byte order mark before a request or reply"),
    ConfigKey::choice("blank_line", &["ignore", "refuse", "end"], "a line of white space"),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "a last line that is not ended",
    ),
    ConfigKey::choice("null_member", &["absent", "refuse"], "null as the value of a known member"),
    ConfigKey::choice("inputs_member", &["ignore", "refuse"], "`inputs` beside no `input_json`"),
    ConfigKey::choice("same_key_other_input", &["first", "refuse"], "a known key with another input"),
    ConfigKey::choice("tool_error_cached", TRUE_FALSE, "whether a tool's failure is kept under its key"),
    ConfigKey::choice(
        "hit_applies_state",
        TRUE_FALSE,
        "whether the ds_state of a request answered as a hit counts",
    ),
    ConfigKey::choice("hit_spends_token", TRUE_FALSE, "whether a hit spends the token it came with"),
    ConfigKey::choice("tool_error_keeps_writes", TRUE_FALSE, "whether what a failing tool wrote stays"),
    ConfigKey::choice(
        "host_error_exit",
        &["zero", "nonzero"],
        "exit status of run mode after an error reply",
    ),
    ConfigKey::choice("size_bytes_wrong", &["refuse", "correct"], "an Artifact with a wrong size_bytes"),
    ConfigKey::choice("crash_kind", &["throw", "abort"], "what the tool of role `crash` does"),
    ConfigKey::choice("redirects", &["follow", "refuse"], "whether http_get follows redirects"),
    ConfigKey::choice(
        "loopback_hosts",
        &["fetch", "refuse"],
        "whether http_get contacts 127.0.0.1 where the list allows it; only then all of it can be judged",
    ),
    ConfigKey::choice(
        "slot_set_and_removed",
        &["set", "removed", "refuse"],
        "a slot that one delta both sets and removes",
    ),
    ConfigKey::choice("delta_not_boolean", &["delta", "full", "refuse"], "a `delta` that is no boolean"),
    ConfigKey::choice(
        "removed_slots_in_full_state",
        &["ignore", "apply", "refuse"],
        "`removed_slots` beside a full state",
    ),
    ConfigKey::choice("delta_in_run_mode", &["apply", "refuse"], "a delta as the state of a run"),
    ConfigKey::choice(
        "keys_given_up",
        &["oldest", "another", "several"],
        "which idempotency keys go when there are too many",
    ),
    ConfigKey::choice(
        "empty_lease_token",
        &["lease_required", "lease_rejected"],
        "what the token `\"\"` is answered with",
    ),
    ConfigKey::choice("lease_enforce_0", &["off", "enforce"], "MACHINA_LEASE_ENFORCE=0"),
    ConfigKey::choice("lease_enforce_true", &["off", "enforce"], "MACHINA_LEASE_ENFORCE=true"),
    ConfigKey::choice(
        "lease_enforce_in_run_mode",
        &["off", "enforce"],
        "MACHINA_LEASE_ENFORCE=1 in run mode",
    ),
    ConfigKey::choice("request_shape", &["inputs", "input_json"], "what a dispatcher sends"),
    ConfigKey::choice("printed_as", &["value", "string"], "how a dispatcher prints a tool's output"),
    ConfigKey::choice(
        "exit_status",
        &["zero", "nonzero"],
        "exit status of a dispatcher after an error object",
    ),
    ConfigKey::choice(
        "unrunnable_path",
        &["not_found", "exception"],
        "type of a directory or a file without the run bit as toolhost",
    ),
    ConfigKey::choice(
        "fractional_timeout",
        &["number", "default", "refuse"],
        "what a fraction in MACHINA_TOOLHOST_TIMEOUT means: a number (rounded or not), the default, an exception",
    ),
    ConfigKey::choice(
        "lives_on_after_reply",
        &["timeout", "result"],
        "a toolhost that answers and does not end",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::super::{checks, usual};
    use super::KEYS;
    use peerproof_engine::clause::Side;
    use peerproof_engine::rng::Rng;

    /// Keys of choices that stand anywhere in an expectation, with the values that the same object names.
    fn collect(expect: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
        let texts = |list: Option<&Value>, pick: fn(&Value) -> Option<&str>| -> Vec<String> {
            let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(pick).map(str::to_owned).collect()
        };
        match expect {
            Value::Object(members) => {
                match members.get("choice") {
                    // Of a provider: the key beside alternatives that name their values.
                    Some(Value::String(key)) if members.contains_key("clause") => {
                        let values = texts(members.get("allowed"), |allowed| allowed.get("choice")?.as_str());
                        found.entry(key.clone()).or_default().extend(values);
                    }
                    // Of a dispatcher: key and values together.
                    Some(choice @ Value::Object(_)) => {
                        let key = choice["key"].as_str().expect("a choice has a key").to_owned();
                        found.entry(key).or_default().extend(texts(choice.get("values"), Value::as_str));
                    }
                    _ => {}
                }
                members.values().for_each(|member| collect(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::String(word)
                if ["request_shape", "printed_as", "exit_status"].contains(&word.as_str()) =>
            {
                found.entry(word.clone()).or_default();
            }
            _ => {}
        }
    }

    #[test]
    fn every_choice_that_a_check_can_record_can_be_pinned() {
        let mut found = BTreeMap::new();
        for side in [Side::Provider, Side::Consumer] {
            let facts = usual::facts(side);
            for check in checks::all() {
                if !facts.commands.contains(&check.command) {
                    continue;
                }
                let Ok(plan) = (check.planner)(&facts, &mut Rng::new(1)) else { continue };
                collect(&plan.expect, &mut found);
                plan.steps.iter().for_each(|step| collect(&step.expect, &mut found));
            }
        }
        for seen in ["blank_line", "bom", "request_shape", "printed_as", "exit_status", "fractional_timeout"]
        {
            assert!(found.contains_key(seen), "{seen} is not found any more: {found:?}");
        }
        for (name, values) in &found {
            let key = KEYS.iter().find(|key| key.table == "choices" && key.name == name);
            let key = key.unwrap_or_else(|| panic!("{name} is recorded and not in the vocabulary"));
            for value in values.iter().flat_map(|value| value.split('|')) {
                assert!(key.values.contains(&value), "{name}={value} is recorded and cannot be pinned");
            }
        }
    }
    /// The clause of a choice says by which key a peer pins it, in the words of the vocabulary.
    #[test]
    fn every_choice_of_a_clause_is_in_the_vocabulary() {
        let clauses = super::super::boundary().clauses();
        let mut named = BTreeSet::new();
        for clause in clauses {
            let Some(name) = &clause.choice else { continue };
            let key = KEYS.iter().find(|key| key.table == "choices" && key.name == name);
            let key = key.unwrap_or_else(|| panic!("{}: {name} is not in the vocabulary", clause.id));
            for value in &clause.allowed {
                assert!(key.values.contains(&value.as_str()), "{}: {name}={value}", clause.id);
            }
            named.insert(key.name);
        }
        for key in KEYS.iter().filter(|key| key.table == "choices") {
            // A toolhost that answers and lives on is part of a clause that says more.
            let named = named.contains(key.name) || key.name == "lives_on_after_reply";
            assert!(named, "no clause names {}", key.name);
        }
    }
}

//! The configuration vocabulary of the toolhost boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Member, Placeholder};

const TOOL: &[Member] =
    &[Member::string("aid"), Member::object("input").optional(), Member::integer("tier").optional()];

const fn role(name: &'static str, meaning: &'static str) -> ConfigKey {
    ConfigKey::role(name, TOOL, meaning)
}

const TRUE_FALSE: &[&str] = &["true", "false"];

/// Configuration keys for a toolhost or a dispatcher.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "run",
        &[Placeholder::required("{aid}")],
        "Command line of run mode; `{aid}` is replaced by the action id",
    ),
    ConfigKey::command("serve", &[], "Command line of serve mode"),
    ConfigKey::command(
        "command",
        &[Placeholder::required("{peer}")],
        "Command line of a dispatcher; `{peer}` is replaced by the path of the toolhost that it starts",
    ),
    ConfigKey::feature("idempotency", "The toolhost honours `idempotency_key`"),
    ConfigKey::set_feature(
        "lease",
        &[Member::object("issue").with(&["{aid}", "{tier}", "{ttl_ms}"]), Member::pointer("token")],
        "Leases: true, or { issue = template of the request for a token, token = JSON Pointer to the token \
         in the reply }",
    ),
    ConfigKey::feature("ds_state", "The toolhost keeps DSState slots and reports them"),
    ConfigKey::feature(
        "http_get",
        "The tool of role `http_get` exists and obeys MACHINA_HTTP_ALLOWED_HOSTS; a different form of its \
         output breaks TH-HTTP-14",
    ),
    role("any", "A tool that succeeds with this input: { aid, input }"),
    role("echo", "Returns its input"),
    role("counter", "Returns {\"count\":n}; n grows by one with each execution in the same process"),
    role("put", "Writes a DSState slot; its input is {\"slot\",\"artifact\"}"),
    role("get", "Reads a DSState slot: {\"slot\"} → {\"artifact\"}"),
    role("remove", "Empties a DSState slot; its input is {\"slot\"}"),
    role("fail", "Fails with the `message` of its input as the error"),
    role("sleep", "Waits for {\"ms\"} milliseconds and returns {\"slept_ms\"}"),
    role("blob", "Returns {\"data\":\"xx…\"} with as many letters as `bytes` of its input says"),
    role("noise", "Prints the texts `stdout` and `stderr` of its input to these streams"),
    role("crash", "Throws an exception, or aborts its process"),
    role("tier1", "Returns {\"count\":n}; requires a lease of tier 1"),
    role("tier2", "Returns {\"count\":n}; requires a lease of tier 2"),
    role("tier3", "Returns {\"count\":n}; requires a lease of tier 3"),
    role("http_get", "Fetches {\"url\"} and returns {\"status\",\"body\"}; default: AID.NET.HTTP_GET.v1"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice(
        "bom",
        &["ignore", "refuse"],
        "Handling of a byte order mark before a request or reply",
    ),
    ConfigKey::choice(
        "blank_line",
        &["ignore", "refuse", "end"],
        "Handling of an empty line or a line of white space",
    ),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "Handling of a last line without a line feed",
    ),
    ConfigKey::choice(
        "null_member",
        &["absent", "refuse"],
        "Handling of null as the value of a known member",
    ),
    ConfigKey::choice(
        "inputs_member",
        &["ignore", "refuse"],
        "Handling of `inputs` in a request without `input_json`",
    ),
    ConfigKey::choice(
        "same_key_other_input",
        &["first", "refuse"],
        "Handling of a repeated idempotency key with a different input",
    ),
    ConfigKey::choice(
        "tool_error_cached",
        TRUE_FALSE,
        "A failure of a tool is cached under its idempotency key",
    ),
    ConfigKey::choice(
        "hit_applies_state",
        TRUE_FALSE,
        "The ds_state of a request is applied even if the reply comes from the cache",
    ),
    ConfigKey::choice(
        "hit_spends_token",
        TRUE_FALSE,
        "A reply from the cache uses up the lease token of its request",
    ),
    ConfigKey::choice("tool_error_keeps_writes", TRUE_FALSE, "DSState writes of a failing tool are kept"),
    ConfigKey::choice(
        "host_error_exit",
        &["zero", "nonzero"],
        "Exit status of run mode after an error reply",
    ),
    ConfigKey::choice(
        "size_bytes_wrong",
        &["refuse", "correct"],
        "Handling of an Artifact with a wrong size_bytes",
    ),
    ConfigKey::choice("crash_kind", &["throw", "abort"], "Behaviour of the tool of role `crash`"),
    ConfigKey::choice("redirects", &["follow", "refuse"], "Handling of redirects by http_get"),
    ConfigKey::choice(
        "loopback_hosts",
        &["fetch", "refuse"],
        "Handling of 127.0.0.1 by http_get if the list allows it; with `refuse`, part of the feature cannot \
         be judged",
    ),
    ConfigKey::choice(
        "slot_set_and_removed",
        &["set", "removed", "refuse"],
        "Handling of a slot that one delta both sets and removes",
    ),
    ConfigKey::choice(
        "delta_not_boolean",
        &["delta", "full", "refuse"],
        "Handling of a `delta` that is not a boolean",
    ),
    ConfigKey::choice(
        "removed_slots_in_full_state",
        &["ignore", "apply", "refuse"],
        "Handling of `removed_slots` in a full state",
    ),
    ConfigKey::choice("delta_in_run_mode", &["apply", "refuse"], "Handling of a delta in run mode"),
    ConfigKey::choice(
        "keys_given_up",
        &["oldest", "another", "several"],
        "Idempotency keys that are dropped when the cache is full",
    ),
    ConfigKey::choice(
        "empty_lease_token",
        &["lease_required", "lease_rejected"],
        "Error code for the empty lease token `\"\"`",
    ),
    ConfigKey::choice(
        "lease_enforce_0",
        &["off", "enforce"],
        "Effect of MACHINA_LEASE_ENFORCE=0 in serve mode",
    ),
    ConfigKey::choice(
        "lease_enforce_true",
        &["off", "enforce"],
        "Effect of MACHINA_LEASE_ENFORCE=true in serve mode",
    ),
    ConfigKey::choice(
        "lease_enforce_in_run_mode",
        &["off", "enforce"],
        "Effect of MACHINA_LEASE_ENFORCE=1 in run mode",
    ),
    ConfigKey::choice(
        "request_shape",
        &["inputs", "input_json"],
        "Shape of the request that a dispatcher sends",
    ),
    ConfigKey::choice(
        "printed_as",
        &["value", "string"],
        "Form in which a dispatcher prints the output of a tool",
    ),
    ConfigKey::choice(
        "exit_status",
        &["zero", "nonzero"],
        "Exit status of a dispatcher after an error object",
    ),
    ConfigKey::choice(
        "unrunnable_path",
        &["not_found", "exception"],
        "Error type if the path of the toolhost is a directory or a file without execute permission",
    ),
    ConfigKey::choice(
        "fractional_timeout",
        &["number", "default", "refuse"],
        "Handling of a fraction in MACHINA_TOOLHOST_TIMEOUT: a number (rounded or not), the default, or an \
         exception",
    ),
    ConfigKey::choice(
        "lives_on_after_reply",
        &["timeout", "result"],
        "Outcome of a call whose toolhost replies but does not exit",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::super::{checks, full_facts};
    use super::KEYS;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::rng::Rng;

    /// Collects the keys of choices anywhere in an expectation, with the values that the same object names.
    fn collect(expect: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
        let texts = |list: Option<&Value>, pick: fn(&Value) -> Option<&str>| -> Vec<String> {
            let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(pick).map(str::to_owned).collect()
        };
        match expect {
            Value::Object(members) => {
                match members.get("choice") {
                    // A provider's expectation has the key beside alternatives with their values.
                    Some(Value::String(key)) if members.contains_key("clause") => {
                        let values = texts(members.get("allowed"), |allowed| allowed.get("choice")?.as_str());
                        found.entry(key.clone()).or_default().extend(values);
                    }
                    // A dispatcher's expectation has key and values together.
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
            let facts = full_facts::facts(side);
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
            let key = KEYS.iter().find(|key| key.table() == "choices" && key.name == name);
            let key = key.unwrap_or_else(|| panic!("{name} is recorded and not in the vocabulary"));
            for value in values.iter().flat_map(|value| value.split('|')) {
                assert!(key.words().contains(&value), "{name}={value} is recorded and cannot be pinned");
            }
        }
    }
    /// The clause of an open choice names the key with which a peer pins it.
    #[test]
    fn every_choice_of_a_clause_is_in_the_vocabulary() {
        let clauses = super::super::boundary().clauses();
        let mut named = BTreeSet::new();
        for clause in clauses {
            let Some(name) = &clause.choice else { continue };
            let key = KEYS.iter().find(|key| key.table() == "choices" && key.name == name);
            let key = key.unwrap_or_else(|| panic!("{}: {name} is not in the vocabulary", clause.id));
            for value in &clause.allowed {
                assert!(key.words().contains(&value.as_str()), "{}: {name}={value}", clause.id);
            }
            named.insert(key.name);
        }
        for key in KEYS.iter().filter(|key| key.table() == "choices") {
            // A toolhost that answers and lives on is part of a clause with more content.
            let named = named.contains(key.name) || key.name == "lives_on_after_reply";
            assert!(named, "no clause names {}", key.name);
        }
    }
}

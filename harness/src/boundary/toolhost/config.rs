//! The configuration vocabulary of the toolhost boundary.

use crate::boundary::ConfigKey;

const fn key(
    table: &'static str,
    name: &'static str,
    values: &'static [&'static str],
    meaning: &'static str,
) -> ConfigKey {
    ConfigKey { table, name, values, members: &[], meaning }
}

const fn command(
    name: &'static str,
    placeholders: &'static [&'static str],
    meaning: &'static str,
) -> ConfigKey {
    ConfigKey { table: "peer", name, values: &[], members: placeholders, meaning }
}

const fn role(name: &'static str, meaning: &'static str) -> ConfigKey {
    let members = &["aid: string", "input?: object", "tier?: integer"];
    ConfigKey { table: "roles", name, values: &[], members, meaning }
}

const TRUE_FALSE: &[&str] = &["true", "false"];

/// Every key that a configuration for a toolhost or a dispatcher may hold.
pub const KEYS: &[ConfigKey] = &[
    command("run", &["{aid}"], "argv of run mode; `{aid}` stands for the action id"),
    command("serve", &[], "argv of serve mode"),
    command(
        "command",
        &["{peer}"],
        "argv of a dispatcher; `{peer}` stands for the path of the toolhost it starts",
    ),
    key("features", "idempotency", TRUE_FALSE, "`idempotency_key` is honoured"),
    ConfigKey {
        table: "features",
        name: "lease",
        values: &[],
        members: &["issue: object {aid} {tier} {ttl_ms}", "token: pointer"],
        meaning: "leases: true, or { issue = request template, token = JSON Pointer into its reply }",
    },
    key("features", "ds_state", TRUE_FALSE, "slots are kept and reported"),
    key(
        "features",
        "http_get",
        TRUE_FALSE,
        "the tool of role `http_get` is there and obeys MACHINA_HTTP_ALLOWED_HOSTS",
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
    key(
        "choices",
        "duplicate_keys",
        &["last", "first", "refuse"],
        "which of two members with one name counts",
    ),
    key("choices", "lone_surrogates", &["echo", "replace", "refuse"], "what becomes of `\\ud800` alone"),
    key(
        "choices",
        "big_integers",
        &["exact", "round", "refuse"],
        "what becomes of integers beyond ±(2^53−1)",
    ),
    key("choices", "bom", &["ignore", "refuse"], "a byte order mark before a request"),
    key("choices", "blank_line", &["ignore", "refuse", "end"], "a line of white space"),
    key("choices", "last_line_without_lf", &["process", "refuse", "silent"], "a last line that is not ended"),
    key("choices", "null_member", &["absent", "refuse"], "null as the value of a known member"),
    key("choices", "inputs_member", &["ignore", "refuse"], "`inputs` beside no `input_json`"),
    key("choices", "same_key_other_input", &["first", "refuse"], "a known key with another input"),
    key("choices", "tool_error_cached", TRUE_FALSE, "whether a tool's failure is kept under its key"),
    key(
        "choices",
        "hit_applies_state",
        TRUE_FALSE,
        "whether the ds_state of a request answered as a hit counts",
    ),
    key("choices", "hit_spends_token", TRUE_FALSE, "whether a hit spends the token it came with"),
    key("choices", "tool_error_keeps_writes", TRUE_FALSE, "whether what a failing tool wrote stays"),
    key("choices", "host_error_exit", &["zero", "nonzero"], "exit status of run mode after an error reply"),
    key("choices", "size_bytes_wrong", &["refuse", "correct"], "an Artifact with a wrong size_bytes"),
    key("choices", "crash_kind", &["throw", "abort"], "what the tool of role `crash` does"),
    key("choices", "redirects", &["follow", "refuse"], "whether http_get follows redirects"),
    key("choices", "request_shape", &["inputs", "input_json"], "what a dispatcher sends"),
];

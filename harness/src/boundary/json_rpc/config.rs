//! The configuration vocabulary of the json_rpc boundary.

use crate::boundary::ConfigKey;

const fn key(
    table: &'static str,
    name: &'static str,
    values: &'static [&'static str],
    meaning: &'static str,
) -> ConfigKey {
    ConfigKey { table, name, values, members: &[], meaning }
}

const fn role(name: &'static str, members: &'static [&'static str], meaning: &'static str) -> ConfigKey {
    ConfigKey { table: "roles", name, values: &[], members, meaning }
}

const METHOD: &[&str] = &["method: string"];
const TRUE_FALSE: &[&str] = &["true", "false"];

/// Every key that a configuration for a JSON-RPC server may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey {
        table: "peer",
        name: "command",
        values: &[],
        members: &[],
        meaning: "argv of a server that reads one message or batch a line",
    },
    key("features", "batch", TRUE_FALSE, "arrays of requests are answered by arrays"),
    role("echo", METHOD, "the result equals the params, whatever object or array they are"),
    role("fail", METHOD, "a method that raises, with params `{}`"),
    role(
        "named",
        &["method: string", "params: object", "expect?: string"],
        "takes named params and succeeds with these; expect = \"difference\": of `minuend` and `subtrahend`",
    ),
    role("counter", METHOD, "the result is {\"count\":n}, one more at each call in this process"),
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
    key("choices", "blank_line", &["ignore", "refuse"], "a line of white space"),
    key("choices", "last_line_without_lf", &["process", "refuse", "silent"], "a last line that is not ended"),
    key("choices", "null_id", &["answer", "silent", "refuse"], "a request whose id is null"),
    key("choices", "fractional_id", &["echo", "refuse"], "a request whose id has a fraction"),
    key("choices", "params_null", &["absent", "refuse"], "null as params"),
    key(
        "choices",
        "params_scalar",
        &["-32600", "-32602"],
        "code for params that are neither array nor object",
    ),
    key("choices", "rpc_prefix", &["-32600", "-32601", "answer"], "a method whose name begins with `rpc.`"),
    key("choices", "response_to_server", &["refuse", "silent"], "a response object sent to a server"),
];

//! The configuration vocabulary of the json_rpc boundary.

use peerproof_engine::boundary::ConfigKey;
use peerproof_engine::carriage::HTTP;
use peerproof_engine::clause::Side;

/// Of roles whose params the table of roles gives: they may be repeated.
const NO_PARAMS: &[&str] = &["method: string", "params?: empty"];

/// Every key that a configuration for a JSON-RPC server may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command("command", &[], "argv of a server that reads one message or batch a line"),
    ConfigKey::command(
        "client",
        &["{scenario}", "{results}"],
        "argv of a client that makes the calls of a scenario and appends how each ended; `command` means the \
                  same where these placeholders are in it",
    ),
    ConfigKey::command(
        HTTP,
        &["{port}?", "{addr}?"],
        "argv of a server that takes each message as the body of a POST, on the port of 127.0.0.1 that it is \
                  given; or { command, url, ready }, where a url without a command is that of a server which runs \
                  already; a server is awaited until it takes a connection, and until `ready` holds: { stdout = text }, \
                  { stderr = text } or { get = path }",
    ),
    ConfigKey::feature("batch", "arrays of requests are answered by arrays"),
    ConfigKey::feature("streaming", "tasks whose `options.stream` is true say on the way what they have"),
    ConfigKey::told_feature(
        "auth",
        &["key|key_env: string", "key_id?: string"],
        "every message has to be signed with this key, or that of the variable `key_env`: one for tests, transcripts \
         hold it",
    ),
    ConfigKey::told_feature(
        "rate_limit",
        &["requests: integer", "window_s: integer"],
        "so many requests pass in a fresh process, and in a window of so many seconds",
    ),
    ConfigKey::feature("concurrent", "a slow call does not hold up the calls behind it"),
    ConfigKey::feature(
        "profile_methods",
        "execute_task, create_plan, validate_code and update_context are there",
    ),
    ConfigKey::feature(
        "gzip",
        "a line may wrap a message that is compressed; over HTTP a body may be compressed",
    ),
    ConfigKey::feature(
        "retry",
        "of a client: errors that may pass are tried again, as often as the scenario says",
    )
    .of(Side::Consumer),
    ConfigKey::role(
        "echo",
        &["method: string", "params?: any"],
        "the result equals the params, whatever object or array they are; checks bring their own",
    ),
    ConfigKey::role("fail", NO_PARAMS, "a method that raises, with params `{}`"),
    ConfigKey::role(
        "named",
        &["method: string", "params: object", "expect?: string"],
        "takes named params and succeeds with these; expect = \"difference\": of `minuend` and `subtrahend`",
    ),
    ConfigKey::role(
        "sleep",
        &["method: string", "params?: any {ms}"],
        "takes so many milliseconds; `options.timeout_ms` is added to its params",
    ),
    ConfigKey::role(
        "blob",
        &["method: string", "params?: any {bytes}"],
        "the result is {\"data\":\"xx…\"} of so many bytes",
    ),
    ConfigKey::role(
        "counter",
        NO_PARAMS,
        "the result is {\"count\":n}, one more at each call in this process",
    ),
    ConfigKey::role(
        "stream",
        &["method: string", "params: object"],
        "an `execute_task` call with `options.stream` true: a stream with at least one chunk, then a result",
    ),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice("blank_line", &["ignore", "refuse"], "a line of white space"),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "a last line that is not ended",
    ),
    ConfigKey::choice("null_id", &["answer", "silent", "refuse"], "a request whose id is null"),
    ConfigKey::choice("fractional_id", &["echo", "refuse"], "a request whose id has a fraction"),
    ConfigKey::choice("params_null", &["absent", "refuse"], "null as params"),
    ConfigKey::choice(
        "params_scalar",
        &["-32600", "-32602"],
        "code for params that are neither array nor object",
    ),
    ConfigKey::choice(
        "rpc_prefix",
        &["-32600", "-32601", "answer"],
        "a method whose name begins with `rpc.`",
    ),
    ConfigKey::choice(
        "null_id_error",
        &["ends", "ignore"],
        "of a client: what an error for no id does to the only call that waits",
    )
    .of(Side::Consumer),
    ConfigKey::choice("server_requests", &["ignore", "answer"], "of a client: a request from the server")
        .of(Side::Consumer),
    ConfigKey::choice("response_to_server", &["refuse", "silent"], "a response object sent to a server"),
    ConfigKey::choice("error_status", &["200", "400"], "HTTP status of a reply that is an error"),
    ConfigKey::choice(
        "over_size_body",
        &["413", "-32600"],
        "HTTP: what refuses a body over the limit, a status or a reply",
    ),
    ConfigKey::choice(
        "refused_counts",
        &["true", "false"],
        "whether requests beyond the rate limit count against it as well",
    ),
    ConfigKey::choice(
        "refusal_burns_nonce",
        &["true", "false"],
        "whether the nonce of a request beyond the rate limit is used up",
    ),
    ConfigKey::choice("gzip_over_http", &["accept", "415"], "HTTP: a body with `Content-Encoding: gzip`"),
    ConfigKey::limit_from("nesting_max", &["64.."], "levels of nesting that a message may have"),
];

//! The configuration vocabulary of the json_rpc boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Member, Placeholder};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;

/// Keys of roles with params that the table of roles fixes; these may be repeated.
const NO_PARAMS: &[Member] = &[Member::string("method"), Member::empty("params").optional()];

/// Every key that a configuration for a JSON-RPC server may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command("command", &[], "Command line of a server that reads one message or batch per line"),
    ConfigKey::command(
        "client",
        &[Placeholder::required("{scenario}"), Placeholder::required("{results}")],
        "Command line of a client that makes the calls of a scenario and appends the result of each call to \
         a file; `command` with these placeholders means the same",
    ),
    ConfigKey::command(
        HTTP,
        &[Placeholder::optional("{port}"), Placeholder::optional("{addr}")],
        "Command line of a server that takes each message as the body of a POST on a port of 127.0.0.1; or \
         { command, url, ready }. A url without a command is the address of a server that already runs. The \
         server is ready when it accepts a connection and the condition `ready` holds: { stdout = text }, \
         { stderr = text } or { get = path }",
    ),
    ConfigKey::feature("batch", "The server answers an array of requests with an array of responses"),
    ConfigKey::feature(
        "streaming",
        "The server sends partial results of tasks whose `options.stream` is true",
    ),
    ConfigKey::optional_feature(
        "auth",
        &[Member::string("key").or("key_env"), Member::string("key_id").optional()],
        "Every message must be signed with this key, or with the key in the environment variable `key_env`. \
         Use a key for tests only: transcripts contain it",
    ),
    ConfigKey::optional_feature(
        "rate_limit",
        &[Member::integer("requests"), Member::integer("window_s")],
        "The server accepts `requests` requests in a fresh process, and then in each window of `window_s` \
         seconds",
    ),
    ConfigKey::feature("concurrent", "A slow call does not delay the calls after it"),
    ConfigKey::feature(
        "profile_methods",
        "The server has the methods execute_task, create_plan, validate_code and update_context",
    ),
    ConfigKey::feature(
        "gzip",
        "The server accepts compressed messages: wrapped in a line on stdio, as a compressed body over HTTP",
    ),
    ConfigKey::feature(
        "retry",
        "Client: retries a call after a temporary error, as often as the scenario says",
    )
    .of(Side::Consumer),
    ConfigKey::role(
        "echo",
        &[Member::string("method"), Member::any("params").optional()],
        "Returns its params, any object or array; checks supply the params",
    ),
    ConfigKey::role("fail", NO_PARAMS, "Fails with an error; its params are `{}`"),
    ConfigKey::role(
        "named",
        &[Member::string("method"), Member::object("params"), Member::string("expect").optional()],
        "Takes named params and succeeds with these; expect = \"difference\": the result is `minuend` minus \
         `subtrahend`",
    ),
    ConfigKey::role(
        "sleep",
        &[Member::string("method"), Member::any("params").optional().with(&["{ms}"])],
        "Takes {ms} milliseconds; checks add `options.timeout_ms` to its params",
    ),
    ConfigKey::role(
        "blob",
        &[Member::string("method"), Member::any("params").optional().with(&["{bytes}"])],
        "Returns {\"data\":\"xx…\"} with {bytes} letters",
    ),
    ConfigKey::role(
        "counter",
        NO_PARAMS,
        "Returns {\"count\":n}; n grows by one with each call in the same process",
    ),
    ConfigKey::role(
        "stream",
        &[Member::string("method"), Member::object("params")],
        "Streams at least one chunk, then returns a result: an `execute_task` call with `options.stream` \
         true",
    ),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice("blank_line", &["ignore", "refuse"], "Handling of a line of white space"),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "Handling of a last line without a line feed",
    ),
    ConfigKey::choice("null_id", &["answer", "silent", "refuse"], "Handling of a request whose id is null"),
    ConfigKey::choice("fractional_id", &["echo", "refuse"], "Handling of a request whose id has a fraction"),
    ConfigKey::choice("params_null", &["absent", "refuse"], "Handling of `params` null"),
    ConfigKey::choice(
        "params_scalar",
        &["-32600", "-32602"],
        "Error code for params that are neither an array nor an object",
    ),
    ConfigKey::choice(
        "rpc_prefix",
        &["-32600", "-32601", "answer"],
        "Handling of an unknown method whose name begins with `rpc.`",
    ),
    ConfigKey::choice(
        "null_id_error",
        &["ends", "ignore"],
        "Client: effect of an error without an id on the only pending call",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "server_requests",
        &["ignore", "answer"],
        "Client: handling of a request from the server",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "response_to_server",
        &["refuse", "silent"],
        "Handling of a response object that a server receives",
    ),
    ConfigKey::choice("error_status", &["200", "400"], "HTTP status of an error response"),
    ConfigKey::choice(
        "over_size_body",
        &["413", "-32600"],
        "HTTP: refusal of a body over the limit, by the status 413 or by an error response",
    ),
    ConfigKey::choice(
        "refused_counts",
        &["true", "false"],
        "Requests beyond the rate limit also count against it",
    ),
    ConfigKey::choice(
        "refusal_burns_nonce",
        &["true", "false"],
        "A request beyond the rate limit uses up its nonce",
    ),
    ConfigKey::choice(
        "gzip_over_http",
        &["accept", "415"],
        "HTTP: handling of a body with `Content-Encoding: gzip`",
    ),
    ConfigKey::limit_from("nesting_max", 64, "Levels of nesting that a message may have"),
];

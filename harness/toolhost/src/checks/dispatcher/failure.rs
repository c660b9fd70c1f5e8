//! Replies that are JSON objects but not successes.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;

use super::super::super::dispatcher::call::{Call, Reply, Talk, answering};
use super::super::super::dispatcher::expect::{Allowed, CallExpect, Expect};
use super::{check, refused};

const NEVER_SUCCESS: &str = "TH-DISP-24";
const TELLS_WHY: &str = "TH-DISP-25";
const OK_AND_STATUS: &str = "TH-DISP-26";
const OUTPUT_JSON: &str = "TH-DISP-27";

const EITHER: &[&str] = &["parse_error", "exception"];

/// Function that spoils a good reply.
type Change = fn(Reply) -> Reply;

const NOT_OK: &[(&str, &str, Change)] = &[
    ("ok-missing", "A reply without `ok`", |reply| reply.without("ok")),
    ("ok-the-string-true", "A reply with ok:\"true\"", |reply| reply.with("ok", "true")),
    ("ok-the-number-1", "A reply with ok:1", |reply| reply.with("ok", 1_u64)),
    ("ok-null", "A reply with ok:null", |reply| reply.with("ok", Json::Null)),
    ("status-tool-error", "ok:true with status TOOL_ERROR", |reply| reply.with("status", "TOOL_ERROR")),
    ("status-invalid-pick", "ok:true with status INVALID_PICK", |reply| reply.with("status", "INVALID_PICK")),
    ("status-capitalised", "ok:true with status \"Ok\"", |reply| reply.with("status", "Ok")),
    ("status-with-a-blank", "ok:true with status \"OK \"", |reply| reply.with("status", "OK ")),
    ("status-that-begins-with-ok", "ok:true with status \"OKAY\"", |reply| reply.with("status", "OKAY")),
    ("status-breaker-trip", "ok:true with status BREAKER_TRIP", |reply| reply.with("status", "BREAKER_TRIP")),
    ("ok-capitalised-text", "A reply with ok:\"True\"", |reply| reply.with("ok", "True")),
    ("ok-in-an-array", "A reply with ok:[true]", |reply| reply.with("ok", Json::Array(vec![true.into()]))),
    ("ok-in-capitals", "A reply with OK:true and no `ok`", |reply| reply.without("ok").with("OK", true)),
    ("status-in-small-letters", "ok:true with status \"ok\"", |reply| reply.with("status", "ok")),
];

const NO_OUTPUT: &[(&str, &str, Change)] = &[
    ("missing", "no output_json", |reply| reply.without("output_json")),
    ("null", "output_json null", |reply| reply.with("output_json", Json::Null)),
    ("an-object", "an object as output_json", |reply| {
        reply.with("output_json", Json::object([("answer", Json::from(1_u64))]))
    }),
    ("a-number", "a number as output_json", |reply| reply.with("output_json", 7_u64)),
    ("empty", "an empty output_json", |reply| reply.with("output_json", "")),
    ("text", "plain text in output_json", |reply| reply.with("output_json", "forty-two")),
    ("cut", "half an object in output_json", |reply| reply.with("output_json", "{\"answer\":")),
    ("two-values", "two values in output_json", |reply| reply.with("output_json", "{\"a\":1}{\"b\":2}")),
    ("nan", "NaN in output_json", |reply| reply.with("output_json", "{\"answer\":NaN}")),
    ("raw-line-feed", "a raw line feed in a string of output_json", |reply| {
        reply.with("output_json", "{\"answer\":\"a\nb\"}")
    }),
    ("trailing-comma", "a trailing comma in output_json", |reply| {
        reply.with("output_json", "{\"answer\":1,}")
    }),
    ("comment", "a comment in output_json", |reply| reply.with("output_json", "{/**/\"answer\":1}")),
    ("leading-zero", "a leading zero in output_json", |reply| reply.with("output_json", "{\"answer\":01}")),
    ("single-quotes", "single quotes in output_json", |reply| reply.with("output_json", "{'answer':1}")),
    ("text-after-it", "a word after the value in output_json", |reply| {
        reply.with("output_json", "{\"answer\":1} done")
    }),
    ("in-an-array", "an array around output_json", |reply| {
        reply.with("output_json", Json::Array(vec!["{}".into()]))
    }),
    ("in-capitals", "OUTPUT_JSON alone", |reply| {
        let output = reply.0.get("output_json").cloned().unwrap_or_default();
        reply.without("output_json").with("OUTPUT_JSON", output)
    }),
    ("nul-after-it", "a NUL after the value in output_json", |reply| {
        reply.with("output_json", "{\"answer\":1}\0")
    }),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        failed("host-error", "A host error", "tool not found: AID.XX", |error, _| Reply::failed(error)),
        failed("tool-error", "A tool error", "disk full", |error, _| {
            Reply::failed(error).with("status", "TOOL_ERROR")
        }),
        failed("beside-an-output", "ok:false beside an output", "gave up half-way", |error, output| {
            Reply::ok(output).with("ok", false).with("status", "TOOL_ERROR").with("error", error)
        }),
        failed("beside-status-ok", "ok:false beside status OK", "cannot say", |error, output| {
            Reply::ok(output).with("ok", false).with("error", error)
        }),
        failed(
            "with-quotes-and-unicode",
            "An error with quotes and other scripts",
            ERROR_TEXT,
            |error, _| Reply::failed(error).with("status", "TOOL_ERROR"),
        ),
        failed("invalid-pick", "A pick that the host refuses", "no such pick", |error, output| {
            Reply::ok(output).with("ok", false).with("status", "INVALID_PICK").with("error", error)
        }),
        failed("breaker-trip", "A breaker that trips", "breaker open", |error, output| {
            Reply::ok(output).with("ok", false).with("status", "BREAKER_TRIP").with("error", error)
        }),
        failed("with-entities", "An error with entities and paths", ENTITIES, |error, _| {
            Reply::failed(error).with("status", "TOOL_ERROR")
        }),
        failed("lease-required", "A missing lease", "lease_required", |error, _| {
            Reply::failed(error).with("tier", 2_u64).with("aid", "AID.XX")
        }),
        silent_failure("without-error", "without `error`", |reply| reply.without("error")),
        silent_failure("with-empty-error", "with an empty `error`", |reply| reply.with("error", "")),
        silent_failure("with-error-an-object", "with an object as `error`", |reply| {
            reply.with("error", Json::object([("code", Json::from(5_u64))]))
        }),
    ];
    for (name, what, change) in NOT_OK {
        let title = format!("{what} gives parse_error or exception, never a success.");
        let reply = |output: &str| change(Reply::ok(output)).payload();
        checks.push(refused(&format!("reply-rules/{name}"), &title, OK_AND_STATUS, reply, EITHER));
    }
    for (name, what, change) in NO_OUTPUT {
        let title = format!("A success with {what} gives parse_error or exception, never a success.");
        let reply = |output: &str| change(Reply::ok(output)).payload();
        checks.push(refused(&format!("output-json/{name}"), &title, OUTPUT_JSON, reply, EITHER));
    }
    checks
}

const ENTITIES: &str = "&lt;file&gt; &amp;amp; ..\\..\\x %2e%2e%2f";

const ERROR_TEXT: &str = "no \"file\" at C:\\tmp: 漢字 é";

/// Creates a check for a reported failure: it is never a success, and the caller should learn the reason.
fn failed(name: &str, what: &str, error: &'static str, reply: fn(&str, &str) -> Reply) -> Check {
    let title = format!(
        "{what} is printed as an error object of type exception, with the tool's error \
        text."
    );
    check(&format!("tool-failure/{name}"), &title, &[NEVER_SUCCESS, TELLS_WHY], move |talk, _| {
        let output = talk.output();
        let detail = Some(error.to_owned());
        let types = vec!["exception".to_owned()];
        let expect = CallExpect::from(Expect::error(NEVER_SUCCESS, &[]))
            .and(Expect::new(TELLS_WHY, Allowed::Error { types, detail }));
        talk.call(&Call::plain(), answering(reply(error, &output).payload()), expect);
    })
}

/// Creates a check for a failure without an error text.
fn silent_failure(name: &str, what: &str, change: fn(Reply) -> Reply) -> Check {
    let title = format!("ok:false {what} is printed as an error object.");
    check(&format!("tool-failure/{name}"), &title, &[NEVER_SUCCESS], move |talk: &mut Talk, _| {
        let reply = change(Reply::failed("x").with("status", "TOOL_ERROR"));
        let expect = CallExpect::from(Expect::error(NEVER_SUCCESS, &[])).reasonless();
        talk.call(&Call::plain(), answering(reply.payload()), expect);
    })
}

//! How an answer ends a call.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, error, result};
use super::check;
use peerproof_engine::check::Check;

/// Results that have to be written down as they came.
const RESULTS: &[(&str, &str)] = &[
    ("object", r#"{"a":{"b":[1,2.5,"x",null,true]},"é":"漢😀"}"#),
    ("array", r#"[1,[2,[3]],{}]"#),
    ("string", r#""with \"quotes\", \\ and \u0000""#),
    ("zero", "0"),
    ("false", "false"),
    ("null", "null"),
    ("empty-string", "\"\""),
    ("integer-at-the-edge-of-exact", "[9007199254740991,-9007199254740991]"),
    ("with-line-separators-of-other-texts", "{\"a\u{2028}b\":\"c\u{2029}d\u{85}e\u{7f}f\u{FEFF}\"}"),
    ("that-looks-like-an-error", r#"{"code":-32603,"message":"not mine"}"#),
];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks = vec![first_canary()];
    checks.extend(RESULTS.iter().map(|(name, value)| {
        check(
            &format!("result/{name}"),
            "A result is written down with the value that came.",
            &["RPC-CLIENT-09"],
            |scene, _| {
                scene.call(Call::new("a"), [Allowed::result(value).attempts(1)]);
                scene.on("a", [Deed::line(&result(value))]);
            },
        )
    }));
    checks.push(errors());
    checks
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "A client whose one call is answered writes down its result and exits with 0.",
        &["RPC-CLIENT-09"],
        |_, _| {},
    )
}

fn errors() -> Check {
    check(
        "error/of-each-final-code",
        "An error that is not to be tried again is written down with the error object that came.",
        &["RPC-CLIENT-10"],
        |scene, _| {
            let errors = [
                r#"{"code":-32700,"message":"Parse error"}"#,
                r#"{"code":-32600,"message":"Invalid Request","data":null}"#,
                r#"{"code":-32601,"message":"Method not found","data":{"method":"é"}}"#,
                r#"{"code":-32602,"message":"","data":[1,2]}"#,
                r#"{"code":-32603,"message":"Internal error","data":{"stack_trace":"at x"}}"#,
                r#"{"code":-32000,"message":"Execution failed","data":{"type":"EXECUTION_ERROR","details":"d"}}"#,
                r#"{"code":-32000,"message":"Execution failed","data":{"type":"PARSE_ERROR"}}"#,
                r#"{"code":-32003,"message":"Authentication failed","data":{"type":"AUTH"}}"#,
                r#"{"code":17,"message":"own"}"#,
            ];
            for (n, object) in errors.into_iter().enumerate() {
                let name = format!("e{n}");
                scene.call(Call::new(&name), [Allowed::error(object).attempts(1)]);
                scene.on(&name, [Deed::line(&error(object))]);
            }
        },
    )
}

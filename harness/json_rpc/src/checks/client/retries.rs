//! What is tried again, how often, and when.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, error, result};
use super::check;
use peerproof_engine::check::Check;

const RETRIED: &str = "RPC-CLIENT-12";
const NOT_RETRIED: &str = "RPC-CLIENT-13";
const DELAY: &str = "RPC-CLIENT-14";

const UNAVAILABLE: &str = r#"{"code":-32001,"message":"Resource unavailable"}"#;
const TIMED_OUT: &str = r#"{"code":-32000,"message":"Execution timeout","data":{"type":"TIMEOUT"}}"#;
const TOO_MANY: &str = r#"{"code":-32002,"message":"Rate limit exceeded","data":{"retry_after_ms":20}}"#;

/// Errors that may be tried again.
const TRANSIENT: [(&str, &str); 3] =
    [("unavailable", UNAVAILABLE), ("timeout", TIMED_OUT), ("rate-limit", TOO_MANY)];

/// Errors that are final.
const FINAL: [&str; 9] = [
    r#"{"code":-32000,"message":"Execution failed","data":{"type":"EXECUTION_ERROR"}}"#,
    r#"{"code":-32000,"message":"Execution failed","data":{"type":"PARSE_ERROR"}}"#,
    r#"{"code":-32003,"message":"Authentication failed","data":{"type":"AUTH"}}"#,
    r#"{"code":-32600,"message":"Invalid Request"}"#,
    r#"{"code":-32601,"message":"Method not found"}"#,
    r#"{"code":-32602,"message":"Invalid params"}"#,
    r#"{"code":-32603,"message":"Internal error","data":{"type":"TIMEOUT"}}"#,
    r#"{"code":-32004,"message":"Unknown"}"#,
    r#"{"code":32001,"message":"own"}"#,
];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = TRANSIENT.into_iter().map(|(name, object)| again(name, object)).collect();
    checks.extend([used_up(), usual_of_the_scenario(), in_a_batch(), then_final()]);
    checks.extend([finals(), single(), delays(), jitter(), retry_after()]);
    checks.into_iter().map(|check| check.feature("retry")).collect()
}

fn again(name: &str, object: &'static str) -> Check {
    check(
        &format!("retry/after-{name}"),
        "An error that may be tried again is tried again, and the later result counts.",
        &[RETRIED],
        |scene, _| {
            scene.call(Call::new("a").retry(3, 30), [Allowed::result("7").attempts(2)]);
            scene.on_attempt("a", 1, [Deed::line(&error(object))]);
            scene.on("a", [Deed::line(&result("7"))]).takes_ms(1_000);
        },
    )
}

fn used_up() -> Check {
    check(
        "retry/until-attempts-are-used-up",
        "A call is sent as often as its retry says; then the last error is its outcome.",
        &[RETRIED, NOT_RETRIED],
        |scene, _| {
            let last = r#"{"code":-32001,"message":"the last one"}"#;
            scene.call(Call::new("a").retry(4, 10), [Allowed::error(last).attempts(4)]);
            scene.on_attempt("a", 4, [Deed::line(&error(last))]);
            scene.on("a", [Deed::line(&error(UNAVAILABLE))]).takes_ms(1_000);
        },
    )
}

fn usual_of_the_scenario() -> Check {
    check(
        "retry/as-the-scenario-says",
        "The retry of the scenario holds for calls that do not say themselves.",
        &[RETRIED, NOT_RETRIED],
        |scene, _| {
            scene.retry(3, 10);
            scene.call(Call::new("usual"), [Allowed::error(UNAVAILABLE).attempts(3)]);
            scene.call(Call::new("own").retry(2, 10), [Allowed::error(TIMED_OUT).attempts(2)]);
            scene.on("usual", [Deed::line(&error(UNAVAILABLE))]);
            scene.on("own", [Deed::line(&error(TIMED_OUT))]).takes_ms(1_000);
        },
    )
}

fn in_a_batch() -> Check {
    check(
        "retry/of-one-in-a-batch",
        "Of a batch only the call whose error may be tried again is sent again.",
        &[RETRIED, NOT_RETRIED],
        |scene, _| {
            let call = |name: &str| Call::new(name).batch("x").retry(3, 20);
            scene.call(call("a"), [Allowed::result("1").attempts(1)]);
            scene.call(call("b"), [Allowed::result("2").attempts(2)]);
            let first = "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":$id:a}";
            let second = format!("{{\"jsonrpc\":\"2.0\",\"error\":{UNAVAILABLE},\"id\":$id:b}}");
            scene.on_all(&["a", "b"], [Deed::line(&format!("[{first},{second}]"))]);
            // Whether it comes in an array again is the client's affair; so is then the answer's form.
            scene.on_attempt("b", 2, [Deed::line(&result("2"))]).takes_ms(1_000);
        },
    )
}

fn then_final() -> Check {
    check(
        "retry/until-a-final-error",
        "An error that is final ends a call that was tried again.",
        &[RETRIED, NOT_RETRIED],
        |scene, _| {
            let last = r#"{"code":-32602,"message":"Invalid params"}"#;
            scene.call(Call::new("a").retry(6, 10), [Allowed::error(last).attempts(3)]);
            scene.on_attempt("a", 1, [Deed::line(&error(UNAVAILABLE))]);
            scene.on_attempt("a", 2, [Deed::line(&error(TIMED_OUT))]);
            scene.on("a", [Deed::line(&error(last))]).takes_ms(1_000);
        },
    )
}

fn finals() -> Check {
    check("retry/final-errors", "Errors that are final are not tried again.", &[NOT_RETRIED], |scene, _| {
        for (n, object) in FINAL.into_iter().enumerate() {
            let name = format!("e{n}");
            scene.call(Call::new(&name).retry(4, 10), [Allowed::error(object).attempts(1)]);
            scene.on(&name, [Deed::line(&error(object))]);
        }
    })
}

fn single() -> Check {
    check("retry/one-attempt", "A call with one attempt is sent once.", &[NOT_RETRIED], |scene, _| {
        for (name, object) in TRANSIENT {
            scene.call(Call::new(name).retry(1, 10), [Allowed::error(object).attempts(1)]);
            scene.on(name, [Deed::line(&error(object))]);
        }
    })
}

fn delays() -> Check {
    check(
        "retry/growing-delays",
        "Before each retry passes about twice the time before the one before it.",
        &[DELAY],
        |scene, _| {
            scene.call(Call::new("a").retry(6, 100).timeout_ms(12_000), [Allowed::result("1").attempts(6)]);
            scene.on_attempt("a", 6, [Deed::line(&result("1"))]);
            scene.on("a", [Deed::line(&error(UNAVAILABLE))]).takes_ms(6_000);
        },
    )
    .waits()
}

fn jitter() -> Check {
    check(
        "retry/spread-delays",
        "The delays of two dozen retries are spread around their middles, by one half of them at most.",
        &["RPC-CLIENT-15", DELAY],
        |scene, _| {
            scene.measures_delays();
            for n in 0..12 {
                let name = format!("d{n}");
                let call = Call::new(&name).retry(3, 1_000).timeout_ms(60_000);
                scene.call(call, [Allowed::result("1").attempts(3)]);
                scene.on_attempt(&name, 3, [Deed::line(&result("1"))]);
                scene.on(&name, [Deed::line(&error(TIMED_OUT))]);
            }
            // One after the other is a way to make calls, too.
            scene.takes_ms(60_000);
        },
    )
    .waits()
}

fn retry_after() -> Check {
    check(
        "retry/not-before-retry-after",
        "Each retry waits as long as the server asks for, also where its own delay is shorter.",
        &["RPC-CLIENT-16"],
        |scene, _| {
            scene.call(Call::new("a").retry(4, 10), [Allowed::result("1").attempts(3)]);
            for (attempt, wait_ms) in [(1, 600), (2, 400)] {
                let data = format!("{{\"retry_after_ms\":{wait_ms}}}");
                let object =
                    format!("{{\"code\":-32002,\"message\":\"Rate limit exceeded\",\"data\":{data}}}");
                scene.on_attempt("a", attempt, [Deed::line(&error(&object))]);
            }
            scene.on("a", [Deed::line(&result("1"))]).takes_ms(3_000);
        },
    )
    .waits()
}

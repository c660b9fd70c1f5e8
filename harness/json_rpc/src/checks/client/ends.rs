//! Sizes, a server that goes away, and the end.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, error, result, vars};
use super::check;
use peerproof_engine::check::Check;
use peerproof_engine::json::Json;
use peerproof_engine::payload::Payload;

const GONE: &str = "RPC-CLIENT-20";
const LARGE: &str = "RPC-CLIENT-18";
const ENDS: &str = "RPC-CLIENT-22";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![
        too_large(),
        too_many_bytes(),
        large(),
        large_answer(),
        hang_up(),
        hang_up_behind_answer(),
        hang_up_in_answer(),
        hang_up_without_lf(),
        hang_up_in_rest(),
        broken_pipes(),
        nothing_to_do(),
        all_failed(),
    ]
}

fn padded(name: &str, bytes: usize) -> Call {
    let mut call = Call::new(name);
    call.params = Some(Json::object([("pad", Json::from("x".repeat(bytes)))]));
    call
}

fn too_large() -> Check {
    check(
        "size/request-beyond-the-limit",
        "A request larger than a message may be ends its call as too_large.",
        &[LARGE],
        |scene, _| {
            scene.call(padded("big", 1_100_000), [Allowed::of("too_large")]);
            // A client may learn it from the server.
            scene.on("big", [Deed::line(&too_large_error())]);
        },
    )
}

fn too_many_bytes() -> Check {
    check(
        "size/request-beyond-the-limit-in-bytes-alone",
        "It is bytes that are counted: a request of 530,000 two-byte characters ends its call as too_large.",
        &[LARGE],
        |scene, _| {
            let mut call = Call::new("big");
            call.params = Some(Json::object([("pad", Json::from("é".repeat(530_000)))]));
            scene.call(call, [Allowed::of("too_large")]);
            scene.on("big", [Deed::line(&too_large_error())]);
        },
    )
}

/// What a server says to a message that is too large.
fn too_large_error() -> String {
    let object = r#"{"code":-32600,"message":"too large","data":{"type":"MESSAGE_TOO_LARGE"}}"#;
    format!("{{\"jsonrpc\":\"2.0\",\"error\":{object},\"id\":null}}")
}

fn large() -> Check {
    check("size/request-below-the-limit", "A request of 990,000 bytes is sent.", &[LARGE], |scene, _| {
        scene.usual(padded("big", 990_000));
    })
}

fn large_answer() -> Check {
    check(
        "size/answer-below-the-limit",
        "An answer of 990,000 bytes is understood.",
        &["RPC-CLIENT-09"],
        |scene, _| {
            scene.call(Call::new("a"), [Allowed::of("result").attempts(1)]);
            let head = vars("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"");
            scene.on("a", [Deed::write(head.repeat("x", 990_000).then(Payload::text("\"}\n")))]);
        },
    )
}

fn hang_up() -> Check {
    check(
        "hang-up/before-any-answer",
        "When the server goes away, calls that wait and calls that have not begun end as disconnected.",
        &[GONE],
        |scene, _| {
            scene.without_canary().call(Call::new("a"), [Allowed::of("disconnected").attempts(1)]);
            scene.on("a", [Deed::hang_up()]);
            scene.call(Call::new("b").after("a"), [Allowed::of("disconnected")]);
        },
    )
}

fn hang_up_behind_answer() -> Check {
    check(
        "hang-up/behind-an-answer",
        "What was answered before the server went away has its answer.",
        &[GONE],
        |scene, _| {
            scene.without_canary().call(Call::new("a"), [Allowed::result("1").attempts(1)]);
            scene.on("a", [Deed::line(&result("1")), Deed::hang_up()]);
            scene.call(Call::new("b").after("a"), [Allowed::of("disconnected")]);
        },
    )
}

fn hang_up_in_answer() -> Check {
    check("hang-up/in-an-answer", "Half an answer is none.", &[GONE], |scene, _| {
        let allowed = [Allowed::of("disconnected").attempts(1), Allowed::of("invalid").attempts(1)];
        scene.without_canary().call(Call::new("a"), allowed);
        let half = vars("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":[1,2");
        scene.on("a", [Deed::write(half), Deed::hang_up().in_ms(50)]);
    })
}

fn hang_up_without_lf() -> Check {
    check(
        "hang-up/answer-without-line-feed",
        "A last answer that is not ended counts, or does not; the client ends in order.",
        &[ENDS],
        |scene, _| {
            let allowed = [Allowed::result("1"), Allowed::of("disconnected"), Allowed::of("invalid")];
            scene.without_canary().call(Call::new("a"), allowed);
            scene.on("a", [Deed::write(vars(&result("1"))), Deed::hang_up().in_ms(50)]);
        },
    )
}

fn hang_up_in_rest() -> Check {
    check(
        "hang-up/before-a-retry",
        "A call that rests before a retry ends when the server goes away.",
        &[GONE],
        |scene, _| {
            let object = r#"{"code":-32001,"message":"Resource unavailable"}"#;
            let allowed = [Allowed::of("disconnected"), Allowed::error(object)];
            scene.without_canary().call(Call::new("a").retry(3, 1_000), allowed);
            scene.on("a", [Deed::line(&error(object)), Deed::hang_up().in_ms(100)]).takes_ms(2_000);
        },
    )
}

fn nothing_to_do() -> Check {
    check("end/nothing-to-do", "A client without calls ends at once.", &[ENDS], |scene, _| {
        scene.without_canary();
    })
}

fn all_failed() -> Check {
    check(
        "end/nothing-succeeded",
        "A client exits with 0 when every call has finished, though none succeeded.",
        &[ENDS],
        |scene, _| {
            let object = r#"{"code":-32603,"message":"Internal error"}"#;
            scene.without_canary().call(Call::new("error"), [Allowed::error(object)]);
            scene.on("error", [Deed::line(&error(object))]);
            scene.call(Call::new("timeout").timeout_ms(200), [Allowed::timeout(200)]).on("timeout", []);
            scene.call(Call::new("invalid"), [Allowed::of("invalid")]);
            scene.under("RPC-CLIENT-17").on("invalid", [Deed::line("{\"jsonrpc\":\"2.0\",\"id\":$id}")]);
        },
    )
}

fn broken_pipes() -> Check {
    check(
        "hang-up/broken-pipes",
        "A client that writes to a server which has ended notes its calls as disconnected.",
        &[GONE],
        |scene, _| {
            scene.without_canary().call(Call::new("a"), [Allowed::result("1")]);
            scene.on("a", [Deed::line(&result("1")), Deed::die()]);
            scene.call(Call::new("b").after("a"), [Allowed::of("disconnected")]);
            scene.call(Call::new("c").after("a").batch("x"), [Allowed::of("disconnected")]);
        },
    )
    .on_process()
}

//! Calls that nobody answers in time.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::scene::usual_result;
use super::super::super::client::script::{Deed, error, result};
use super::check;
use peerproof_engine::check::Check;

const TIMEOUT: &str = "RPC-CLIENT-11";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![no_answer(), is_final(), several(), late(), over_retries(), in_a_batch(), chatty()]
}

fn no_answer() -> Check {
    check(
        "timeout/no-answer",
        "A call that is never answered ends when its time is over.",
        &[TIMEOUT],
        |scene, _| {
            scene.call(Call::new("a").timeout_ms(400), [Allowed::timeout(400).attempts(1)]);
            scene.on("a", []);
        },
    )
    .waits()
}

fn is_final() -> Check {
    check(
        "timeout/is-final",
        "A call that is never answered is not sent again, whatever its retry says.",
        &[TIMEOUT],
        |scene, _| {
            scene.call(Call::new("a").timeout_ms(400).retry(3, 20), [Allowed::timeout(400).attempts(1)]);
            scene.on("a", []).takes_ms(1_000);
        },
    )
    .feature("retry")
    .waits()
}

fn several() -> Check {
    check(
        "timeout/several",
        "Each of several calls that are never answered ends when its own time is over.",
        &[TIMEOUT],
        |scene, _| {
            for (name, ms) in [("long", 900), ("short", 200), ("middle", 500)] {
                scene.call(Call::new(name).timeout_ms(ms), [Allowed::timeout(ms).attempts(1)]);
                scene.on(name, []);
            }
            scene.usual(Call::new("answered"));
        },
    )
    .waits()
}

fn late() -> Check {
    check(
        "timeout/late-answer",
        "An answer that comes too late changes nothing, neither for its call nor for another.",
        &[TIMEOUT],
        |scene, _| {
            scene.call(Call::new("a").timeout_ms(300), [Allowed::timeout(300).attempts(1)]);
            scene.on("a", [Deed::line(&result("\"late\"")).in_ms(800)]);
            scene.call(Call::new("b"), [Allowed::result("2").attempts(1)]);
            scene.on("b", [Deed::line(&result("2")).in_ms(1_200)]).takes_ms(2_000);
        },
    )
    .waits()
}

fn over_retries() -> Check {
    check(
        "timeout/over-all-attempts",
        "The time of a call is that of all its attempts together.",
        &[TIMEOUT],
        |scene, _| {
            let object = r#"{"code":-32001,"message":"Resource unavailable"}"#;
            // Where the next attempt would come too late, nothing has to be waited for: the last error may be the outcome,
            // and so may the timeout, though not before such an attempt can be at hand.
            let allowed = [Allowed::timeout(300), Allowed::error(object)];
            scene.call(Call::new("a").timeout_ms(700).retry(40, 20), allowed);
            // Each attempt is answered in less than that time, so that who counts it anew is never done.
            scene.on("a", [Deed::line(&error(object)).in_ms(300)]);
        },
    )
    .waits()
}

fn in_a_batch() -> Check {
    check(
        "timeout/in-a-batch",
        "Of a batch the calls that are answered end by their answers, the others when their time is over.",
        &[TIMEOUT],
        |scene, _| {
            scene.call(Call::new("a").batch("x"), [Allowed::result("1")]);
            scene.call(Call::new("b").batch("x").timeout_ms(500), [Allowed::timeout(500)]);
            scene.call(Call::new("c").batch("x"), [Allowed::result("3")]);
            let answer = |name: &str, value: u8| {
                format!("{{\"jsonrpc\":\"2.0\",\"result\":{value},\"id\":$id:{name}}}")
            };
            let text = format!("[{},{}]", answer("c", 3), answer("a", 1));
            scene.on_all(&["a", "b", "c"], [Deed::line(&text)]);
        },
    )
    .waits()
}

fn chatty() -> Check {
    check(
        "timeout/while-the-server-talks",
        "A server that says other things all the time does not keep a call from timing out.",
        &[TIMEOUT],
        |scene, _| {
            let noise = "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"percent\":1}}";
            let usual = usual_result("nobody");
            let unknown = format!("{{\"jsonrpc\":\"2.0\",\"result\":{usual},\"id\":\"nobody\"}}");
            scene.call(Call::new("a").timeout_ms(500), [Allowed::timeout(500).attempts(1)]);
            let talk = (1..60).map(|n| Deed::line(if n % 2 == 0 { noise } else { &unknown }).in_ms(n * 50));
            scene.on("a", talk).takes_ms(1_000);
        },
    )
    .waits()
}

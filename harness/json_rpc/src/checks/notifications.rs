//! Notifications: never answered, carried out once.

use super::super::talk::{Talk, UNKNOWN_METHOD, call};
use peerproof_engine::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let unknown = Check::new(
        "json_rpc/stdio/notifications/unknown-method",
        "A notification for a method that is not there is not answered, not even by an error.",
        ["RPC-NOTE-01"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-NOTE-01");
            for params in [None, Some("{}"), Some("[1]")] {
                talk.send(&call(UNKNOWN_METHOD, params, None)).canary();
            }
            Ok(talk.finish())
        },
    );
    let of = |role: &'static str, name: &str, title: &str, params: &'static str| {
        let id = format!("json_rpc/stdio/notifications/{name}");
        Check::new(id, title, ["RPC-NOTE-01"], "command", move |facts, _| {
            let mut talk = Talk::about(facts, "RPC-NOTE-01");
            let method = talk.method(role);
            Ok(talk.send(&call(&method, Some(params), None)).canary().finish())
        })
        .roles(&[role])
    };
    let counted = Check::new(
        "json_rpc/stdio/notifications/carried-out-once",
        "Three notifications for a counting method are not answered and count three times, calls once each.",
        ["RPC-NOTE-02", "RPC-NOTE-01"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-NOTE-02");
            let method = talk.method("counter");
            talk.send(&call(&method, Some("{}"), Some("1"))).canary();
            for _ in 0..3 {
                talk.send(&call(&method, Some("{}"), None)).canary();
            }
            talk.send(&call(&method, Some("{}"), Some("2")));
            talk.send(&call(&method, Some("{}"), Some("3")));
            Ok(talk.canary().finish())
        },
    )
    .roles(&["counter"]);
    let refused = Check::new(
        "json_rpc/stdio/notifications/refused-calls-do-not-run",
        "Calls that are refused for their version, their id or their text are not carried out.",
        ["RPC-NOTE-02"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-NOTE-02");
            let name = super::super::talk::quoted(&talk.method("counter"));
            for text in [
                format!("{{\"jsonrpc\":\"1.5\",\"method\":{name},\"params\":{{}},\"id\":\"v\"}}"),
                format!("{{\"jsonrpc\":\"2.0\",\"method\":{name},\"params\":{{}},\"id\":[1]}}"),
                format!("{{\"jsonrpc\":\"2.0\",\"method\":{name},\"params\":{{}},\"id\":\"t\",}}"),
            ] {
                talk.send(&text).canary();
            }
            let method = talk.method("counter");
            talk.send(&call(&method, Some("{}"), Some("\"first\"")));
            Ok(talk.canary().finish())
        },
    )
    .roles(&["counter"]);
    vec![
        unknown,
        of(
            "echo",
            "known-method",
            "A notification for a method that is there is not answered.",
            "[\"note\"]",
        ),
        of("fail", "failing-method", "A notification for a method that fails is not answered.", "{}"),
        of(
            "named",
            "invalid-params",
            "A notification whose params the method does not take is not answered.",
            "{}",
        ),
        counted,
        refused,
    ]
}

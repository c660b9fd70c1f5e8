//! What a server says beside answers, and what is no answer.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, error, result, vars};
use super::super::super::client::server::NEAR_IDS_MAX;
use super::check;
use peerproof_engine::check::Check;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;

const UNHARMED: &str = "RPC-CLIENT-19";
const INVALID: &str = "RPC-CLIENT-17";
const LIVES: &str = "RPC-CLIENT-23";

/// Lines that come before the answer and change nothing.
const BESIDES: &[(&str, &str, &[&str])] = &[
    (
        "answers-to-unknown-ids",
        "Answers to ids that nobody has are passed over.",
        &[
            r#"{"jsonrpc":"2.0","result":"not yours","id":"peerproof-nobody"}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"not yours"},"id":"peerproof-none"}"#,
            r#"{"jsonrpc":"2.0","result":"not yours","id":7007199254740991}"#,
        ],
    ),
    (
        "log-lines",
        "Lines that are no JSON are passed over.",
        &[
            "[2024-01-15] INFO server started",
            "",
            "   ",
            "{not json}",
            "\u{feff}",
            "{\"jsonrpc\":\"2.0\",",
            "\"",
            "}{",
            "{\"jsonrpc\":\"2.0\",\"result\":\"not yours\",\"id\":$id } and more",
        ],
    ),
    (
        "json-that-is-no-message",
        "Lines of JSON that are no message are passed over.",
        &["1", "null", "\"text\"", "true", "{}", "[]", "[[]]", "[1,null,{}]", "{\"jsonrpc\":\"2.0\"}"],
    ),
    (
        "notifications",
        "Notifications of the server's own are passed over.",
        &[
            r#"{"jsonrpc":"2.0","method":"progress","params":{"percent":50}}"#,
            r#"{"jsonrpc":"2.0","method":"stream_data","params":{"stream_id":"none","chunk":"x","sequence":1}}"#,
            r#"{"jsonrpc":"2.0","method":"stream_end","params":{"stream_id":"none","total_chunks":0}}"#,
            r#"{"jsonrpc":"2.0","method":"stream_start","params":{"stream_id":"s","task_id":"peerproof-nobody"}}"#,
            r#"{"jsonrpc":"2.0","method":"stream_start"}"#,
            r#"{"jsonrpc":"2.0","method":"stream_data","params":[1]}"#,
        ],
    ),
    (
        "ids-of-other-types",
        "Answers whose id is a truth value, an array, an object, missing, or the call's as text or as number are passed over.",
        &[
            r#"{"jsonrpc":"2.0","result":"not yours","id":true}"#,
            r#"{"jsonrpc":"2.0","result":"not yours","id":[1]}"#,
            r#"{"jsonrpc":"2.0","result":"not yours","id":{}}"#,
            r#"{"jsonrpc":"2.0","result":"not yours"}"#,
            r#"{"jsonrpc":"2.0","result":"not yours","id":$id-of-the-other-type}"#,
        ],
    ),
];

/// Responses that are none.
const NO_RESPONSE: &[(&str, &str)] = &[
    ("neither", r#"{"jsonrpc":"2.0","id":$id}"#),
    ("both", r#"{"jsonrpc":"2.0","result":1,"error":{"code":-32603,"message":"x"},"id":$id}"#),
    ("error-is-text", r#"{"jsonrpc":"2.0","error":"it failed","id":$id}"#),
    ("error-is-empty", r#"{"jsonrpc":"2.0","error":{},"id":$id}"#),
    ("code-is-text", r#"{"jsonrpc":"2.0","error":{"code":"-32603","message":"x"},"id":$id}"#),
    ("code-is-fraction", r#"{"jsonrpc":"2.0","error":{"code":-32603.5,"message":"x"},"id":$id}"#),
];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> =
        BESIDES.iter().map(|(name, title, lines)| besides(name, title, lines)).collect();
    checks.extend([
        other_spelling(),
        duplicates(),
        coalesced(),
        dribbled(),
        in_two_pieces(),
        batch_in_any_order(),
        batch_with_an_error_for_no_id(),
        near_ids(),
        null_id_error_for_several(),
        no_utf8(),
    ]);
    checks.extend([invalid(), other_version(), null_id_error(), server_requests()]);
    checks.extend(harmless());
    checks
}

fn besides(name: &str, title: &str, lines: &'static [&'static str]) -> Check {
    check(&format!("hostile/{name}"), title, &[UNHARMED], |scene, _| {
        scene.call(Call::new("a"), [Allowed::result("1").attempts(1)]);
        let noise = lines.iter().map(|line| Deed::line(line));
        scene.on("a", noise.chain([Deed::line(&result("1")).in_ms(100)]));
    })
}

fn duplicates() -> Check {
    check(
        "hostile/duplicate-answers",
        "The first answer counts; what comes again, at once or later, changes nothing.",
        &[UNHARMED],
        |scene, _| {
            scene.call(Call::new("a"), [Allowed::result("1").attempts(1)]);
            scene.on(
                "a",
                [&result("1"), &result("2"), &error(r#"{"code":-32001,"message":"x"}"#)]
                    .map(|line| Deed::line(line)),
            );
            scene.call(Call::new("b").after("a"), [Allowed::result("3").attempts(1)]);
            let again = "{\"jsonrpc\":\"2.0\",\"result\":4,\"id\":$id:a}";
            scene.on("b", [Deed::line(again), Deed::line(&result("3")).in_ms(100)]);
        },
    )
}

fn other_spelling() -> Check {
    check(
        "hostile/other-spelling",
        "An answer with white space around it, its members in another order and a name with an escape is understood.",
        &[UNHARMED],
        |scene, _| {
            scene.call(Call::new("a"), [Allowed::result("1").attempts(1)]);
            let text = "\t { \"id\" : $id , \"r\\u0065sult\" : 1 , \"jsonrpc\" : \"2.0\" } ";
            scene.on("a", [Deed::line(text)]);
        },
    )
}

fn coalesced() -> Check {
    check(
        "hostile/many-lines-in-one-write",
        "An answer is found among other lines of the same write.",
        &[UNHARMED],
        |scene, _| {
            scene.call(Call::new("a"), [Allowed::result("1").attempts(1)]);
            let noise = r#"{"jsonrpc":"2.0","method":"progress","params":{}}"#;
            let text = format!("starting\n{noise}\n{}\n{noise}\n{}\n", result("1"), result("2"));
            scene.on("a", [Deed::write(vars(&text))]);
        },
    )
}

fn dribbled() -> Check {
    check(
        "hostile/byte-by-byte",
        "An answer that comes byte by byte is understood.",
        &[UNHARMED],
        |scene, _| {
            let value = r#"{"text":"é漢😀","list":[1,2,3]}"#;
            scene.call(Call::new("a"), [Allowed::result(value).attempts(1)]);
            scene.on("a", [Deed::line(&result(value)).cut(Chunking::Dribble)]);
        },
    )
}

fn in_two_pieces() -> Check {
    check(
        "hostile/pauses-inside-characters",
        "An answer with pauses inside characters and before its line feed is understood.",
        &[UNHARMED],
        |scene, _| {
            let hex = |text: &[u8]| {
                Payload(vec![peerproof_engine::payload::Segment::Hex(
                    text.iter().map(|b| format!("{b:02x}")).collect(),
                )])
            };
            scene.call(Call::new("a"), [Allowed::result("\"é漢\"").attempts(1)]);
            let all = "\"é漢\"".as_bytes();
            let head = vars("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":");
            scene.on(
                "a",
                [
                    Deed::write(head.then(hex(&all[..2]))),
                    Deed::write(hex(&all[2..5])).in_ms(80),
                    Deed::write(hex(&all[5..]).then(Payload::text("}"))).in_ms(160),
                    Deed::write(Payload::text("\n")).in_ms(240),
                ],
            );
        },
    )
}

fn batch_in_any_order() -> Check {
    check(
        "hostile/batch-reply-in-any-order",
        "The answers to a batch are told apart by their ids, whatever their order and whatever stands between them.",
        &[UNHARMED],
        |scene, _| {
            let names = ["a", "b", "c", "d"];
            for (n, name) in names.into_iter().enumerate() {
                scene.call(Call::new(name).batch("x"), [Allowed::result(&n.to_string()).attempts(1)]);
            }
            let answer =
                |n: usize| format!("{{\"jsonrpc\":\"2.0\",\"result\":{n},\"id\":$id:{} }}", names[n]);
            let nobody = r#"{"jsonrpc":"2.0","result":9,"id":"peerproof-nobody"}"#;
            let text = format!("[{},{},{nobody},{},{}]", answer(2), answer(0), answer(3), answer(1));
            scene.on_all(&names, [Deed::line(&text)]);
        },
    )
}

fn batch_with_an_error_for_no_id() -> Check {
    check(
        "hostile/batch-reply-with-an-error-for-no-id",
        "An error for no id among the answers to a batch takes none of them away.",
        &[UNHARMED],
        |scene, _| {
            let names = ["a", "b", "c"];
            for (n, name) in names.into_iter().enumerate() {
                scene.call(Call::new(name).batch("x"), [Allowed::result(&n.to_string()).attempts(1)]);
            }
            let answer =
                |n: usize| format!("{{\"jsonrpc\":\"2.0\",\"result\":{n},\"id\":$id:{} }}", names[n]);
            // It comes first: the last call that waits may be ended by it.
            let text = format!("[{NOBODY},{},{},{}]", answer(1), answer(2), answer(0));
            scene.on_all(&names, [Deed::line(&text)]);
        },
    )
}

/// An error of which nobody can say what it is for.
const NOBODY: &str = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}"#;

fn null_id_error_for_several() -> Check {
    check(
        "hostile/error-for-no-id-while-several-wait",
        "An error for no id ends none of several calls that wait.",
        &[UNHARMED],
        |scene, _| {
            for name in ["a", "b", "c"] {
                // Who makes one call after the other has the last one alone, which such an error may end.
                let ended = Allowed::error(r#"{"code":-32600,"message":"Invalid Request"}"#);
                let lone = (name == "c").then_some(ended);
                scene.call(Call::new(name), [Allowed::result("1").attempts(1)].into_iter().chain(lone));
                scene.on(name, [Deed::line(&result("1")).in_ms(400)]);
            }
            scene.on_all(&["a", "b", "c"], [Deed::line(NOBODY)]);
        },
    )
}

fn near_ids() -> Check {
    check(
        "hostile/ids-that-are-nearly-right",
        "Answers whose id is that of the call but for a digit, a letter, a blank or a look-alike are passed over.",
        &[UNHARMED],
        |scene, _| {
            scene.call(Call::new("a"), [Allowed::result("1").attempts(1)]);
            let near = (0..NEAR_IDS_MAX).map(|n| {
                Deed::line(&format!("{{\"jsonrpc\":\"2.0\",\"result\":\"not yours\",\"id\":$id-near-{n} }}"))
            });
            scene.on("a", near.chain([Deed::line(&result("1")).in_ms(100)]));
        },
    )
}

fn no_utf8() -> Check {
    check(
        "hostile/answer-that-is-no-utf8",
        "An answer with a byte that is no UTF-8 is none: it is passed over, or ends its call as invalid.",
        &[UNHARMED],
        |scene, _| {
            scene
                .call(Call::new("a"), [Allowed::result("1").attempts(1), Allowed::of("invalid").attempts(1)]);
            let head = vars("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"");
            let broken = Payload(vec![peerproof_engine::payload::Segment::Hex("c328ff".to_owned())]);
            let line = head.then(broken).then(Payload::text("\"}\n"));
            scene.on("a", [Deed::write(line), Deed::line(&result("1")).in_ms(150)]);
        },
    )
}

fn invalid() -> Check {
    check("invalid/no-responses", "What is no response ends its call as invalid.", &[INVALID], |scene, _| {
        for (name, line) in NO_RESPONSE {
            scene.call(Call::new(name).retry(3, 10), [Allowed::of("invalid").attempts(1)]);
            scene.on(name, [Deed::line(line)]);
        }
        scene.usual(Call::new("good"));
    })
}

fn other_version() -> Check {
    check(
        "hostile/other-versions",
        "Whatever is thought of a response of another version, the client goes on.",
        &[LIVES],
        |scene, _| {
            let lines = [
                r#"{"result":1,"id":$id}"#,
                r#"{"jsonrpc":"1.0","result":1,"id":$id}"#,
                r#"{"jsonrpc":2.0,"result":1,"id":$id}"#,
                r#"{"jsonrpc":"2.0","result":1,"error":null,"id":$id}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32603},"id":$id}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":null},"id":$id}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32002,"message":"x","data":{"retry_after_ms":"soon"}},"id":$id}"#,
            ];
            for (n, line) in lines.into_iter().enumerate() {
                let name = format!("v{n}");
                let allowed = ["invalid", "result", "error", "timeout"].map(Allowed::of);
                scene.call(Call::new(&name).timeout_ms(300), allowed).on(&name, [Deed::line(line)]);
            }
        },
    )
}

fn null_id_error() -> Check {
    check(
        "open/error-for-no-id",
        "An error for no id ends the only call that waits, or is passed over.",
        &["RPC-CLIENT-26"],
        |scene, _| {
            let object = r#"{"code":-32700,"message":"Parse error"}"#;
            let allowed = [Allowed::error(object).shows("ends"), Allowed::result("1").shows("ignore")];
            scene.call(Call::new("a"), allowed).choice("null_id_error");
            let line = format!("{{\"jsonrpc\":\"2.0\",\"error\":{object},\"id\":null}}");
            scene.on("a", [Deed::line(&line), Deed::line(&result("1")).in_ms(150)]);
        },
    )
}

fn server_requests() -> Check {
    check(
        "open/request-from-the-server",
        "A request from the server is passed over or answered, and the client's own calls go on.",
        &["RPC-CLIENT-27"],
        |scene, _| {
            let request = r#"{"jsonrpc":"2.0","method":"peerproof.ask","params":{},"id":"from-the-server"}"#;
            scene.call(Call::new("a"), [Allowed::result("1").shows("ignore")]).choice("server_requests");
            scene.on("a", [Deed::line(request), Deed::line(&result("1")).in_ms(150)]);
        },
    )
}

/// Input that no client need understand, and none may die of.
fn harmless() -> Vec<Check> {
    let any = || ["result", "error", "invalid", "timeout", "too_large", "disconnected"].map(Allowed::of);
    let before = |payload: Payload| [Deed::write(payload), Deed::line(&result("1")).in_ms(200)];
    let brackets = |n: u64| Payload::default().repeat("[", n).repeat("]", n);
    let noise = |name: &str, title: &str, payload: Payload| {
        check(&format!("hostile/{name}"), title, &[LIVES], move |scene, _| {
            scene.call(Call::new("a").timeout_ms(2_000), any());
            scene.on("a", before(payload.clone()));
        })
    };
    let inside = |name: &str, title: &str, payload: Payload| {
        check(&format!("hostile/{name}"), title, &[LIVES], move |scene, _| {
            scene.call(Call::new("a").timeout_ms(2_000), any());
            let head = vars("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":");
            scene.on("a", [Deed::write(head.then(payload.clone()).then(Payload::text("}\n")))]);
        })
    };
    let lf = Payload::text("\n");
    vec![
        noise("deep-line", "A line of 100,000 brackets harms nothing.", brackets(100_000).then(lf.clone())),
        inside("deep-result", "A result nested 100,000 levels ends its call somehow.", brackets(100_000)),
        noise(
            "bytes-that-are-no-utf8",
            "Lines that are no UTF-8 harm nothing.",
            Payload(vec![peerproof_engine::payload::Segment::Hex(
                "ff fe 00 80 0a 22 c3 28 22 0a".replace(' ', ""),
            )]),
        ),
        noise(
            "long-line",
            "A line of three million bytes harms nothing.",
            Payload::default().repeat("x", 3_000_000).then(lf.clone()),
        ),
        inside(
            "long-answer",
            "An answer beyond the limit of a message ends its call somehow.",
            Payload::text("\"").repeat("x", 1_200_000).then(Payload::text("\"")),
        ),
        noise(
            "many-lines",
            "Ten thousand lines of noise harm nothing.",
            Payload::default().repeat("noise\n", 10_000),
        ),
        inside(
            "odd-numbers",
            "Numbers beyond every double harm nothing.",
            Payload::text("[1e400,-1e999,123456789012345678901234567890]"),
        ),
        inside(
            "lone-surrogate",
            "Half a surrogate pair in a result harms nothing.",
            Payload::text("\"\\ud800\""),
        ),
        inside(
            "duplicate-names",
            "Two members with one name harm nothing.",
            Payload::text("{\"a\":1,\"a\":2}"),
        ),
    ]
}

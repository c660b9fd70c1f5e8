//! Signed requests.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::{Auth, Call};
use super::super::super::client::script::{Deed, error, result};
use super::check;
use peerproof_engine::check::Check;

const SIGNED: &str = "RPC-CLIENT-24";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![plain(), canonical(), batches(), retries()]
}

fn auth(key_id: Option<&str>) -> Auth {
    Auth { key: "peerproof-test-key".to_owned(), key_id: key_id.map(str::to_owned) }
}

fn plain() -> Check {
    check(
        "auth/plain-requests",
        "With a key every request and every notification is signed, with a nonce of its own.",
        &[SIGNED],
        |scene, _| {
            scene.auth(auth(None)).usual(Call::new("a")).usual(Call::new("b").params(None));
            scene.usual(Call::new("n").notify());
        },
    )
}

fn canonical() -> Check {
    check(
        "auth/params-of-every-kind",
        "A signature is that of the canonical form, whatever the params are.",
        &[SIGNED],
        |scene, _| {
            scene.auth(auth(Some("k1")));
            let params = [
                r#"{"b":2,"a":[1,-1,0],"é":"😀/","":{},"aa":null,"A":true}"#,
                r#"{"\ufb33":1,"😀":2,"\u20ac":3,"\u0080":4,"\r":5,"1":6}"#,
                r#"["\u0000\u001f\"\\\/\b\f\n\r\t\u007f\u2028","<script>&amp;'"]"#,
                r#"[0.5,1e2,-2.5,1e21,1e-7,0.000001,9007199254740991,-9007199254740991,123.456]"#,
                "[[],[[]],{},[{}]]",
            ];
            for (n, text) in params.into_iter().enumerate() {
                scene.usual(Call::new(&format!("p{n}")).params(Some(text)));
            }
        },
    )
}

fn batches() -> Check {
    check("auth/batches", "Each element of a batch is signed by itself.", &[SIGNED], |scene, _| {
        scene.auth(auth(Some("k1"))).usual(Call::new("a").batch("x"));
        scene.usual(Call::new("n").batch("x").notify()).usual(Call::new("b").batch("x"));
    })
}

fn retries() -> Check {
    check("auth/retries", "Each attempt of a call is signed anew.", &[SIGNED], |scene, _| {
        let object = r#"{"code":-32001,"message":"Resource unavailable"}"#;
        scene.auth(auth(Some("k1")));
        scene.call(Call::new("again").retry(3, 10), [Allowed::result("1").attempts(3)]);
        scene.on_attempt("again", 3, [Deed::line(&result("1"))]);
        scene.on("again", [Deed::line(&error(object))]).takes_ms(1_000);
    })
    .feature("retry")
}

//! Signed messages: which are accepted, which are refused, and what a refusal leaves as it was.
//!
//! The words that begin with `@` are those of [`super::super::seal`].

use serde_json::{Value, json};

use super::super::seal::ABSENT;
use super::super::talk::{Talk, UNKNOWN_METHOD, call, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::near_miss::near_misses;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Plan};
use peerproof_engine::rng::Rng;

/// An `auth` that has to be accepted.
const SIGNED: &str = r#"{"timestamp":"@now","nonce":"@nonce","signature":"@signature"}"#;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let check = |name: &str, title: &str, clauses: &[&'static str], plan: fn(&mut Talk<'_>, &Facts)| {
        let first = clauses[0];
        Check::new(
            format!("json_rpc/stdio/auth/{name}"),
            title,
            clauses.iter().copied(),
            "command",
            move |facts, _| {
                let mut talk = Talk::about(facts, first);
                plan(&mut talk, facts);
                Ok(talk.canary().finish())
            },
        )
        .feature("auth")
    };
    let mut checks = vec![
        check(
            "missing",
            "A message without a signature is refused with -32003, whatever else of `auth` it has.",
            &["RPC-AUTH-01"],
            |talk, _| {
                talk.canary();
                talk.send(&request("1", "@absent"));
                for (n, auth) in [
                    "null",
                    "{}",
                    "[]",
                    "\"\"",
                    r#"{"timestamp":"@now","nonce":"@nonce"}"#,
                    r#"{"nonce":"@nonce","signature":"@signature"}"#,
                    r#"{"timestamp":"@now","signature":"@signature"}"#,
                ]
                .iter()
                .enumerate()
                {
                    talk.send(&request(&quoted(&format!("m{n}")), auth)).canary();
                }
            },
        ),
        check(
            "malformed",
            "An `auth` whose members are of wrong types or lengths is refused with -32003.",
            &["RPC-AUTH-01"],
            |talk, _| {
                talk.canary();
                let long = "n".repeat(65);
                for (n, auth) in [
                    r#"{"timestamp":"@now","nonce":"@nonce","signature":1}"#.to_owned(),
                    r#"{"timestamp":"@now","nonce":"@nonce","signature":""}"#.to_owned(),
                    r#"{"timestamp":"@now","nonce":"@nonce","signature":"no base64"}"#.to_owned(),
                    r#"{"timestamp":"@now","nonce":"@nonce","signature":null}"#.to_owned(),
                    r#"{"timestamp":"@now-text","nonce":"@nonce","signature":"@signature"}"#.to_owned(),
                    r#"{"timestamp":null,"nonce":"@nonce","signature":"@signature"}"#.to_owned(),
                    r#"{"timestamp":"@now","nonce":"","signature":"@signature"}"#.to_owned(),
                    r#"{"timestamp":"@now","nonce":7,"signature":"@signature"}"#.to_owned(),
                    format!(r#"{{"timestamp":"@now","nonce":"{long}","signature":"@signature"}}"#),
                ]
                .iter()
                .enumerate()
                {
                    talk.send(&request(&quoted(&format!("f{n}")), auth)).canary();
                }
            },
        ),
        check(
            "wrong",
            "A signature by another key, or of another message, is refused with -32003.",
            &["RPC-AUTH-01"],
            |talk, _| {
                talk.canary();
                let by = r#"{"timestamp":"@now","nonce":"@nonce","signature":"@signature-by:another-key"}"#;
                talk.send(&request("\"by\"", by)).canary();
                let other = request("\"x\"", r#"{"timestamp":"@now","nonce":"@nonce:w"}"#);
                talk.send(&request("\"of\"", &of(&other, "@now", "@nonce:w")));
            },
        ),
        check(
            "signature-near-misses",
            "A signature that is cut, longer, of another case or alphabet, without padding or with blanks is refused.",
            &["RPC-AUTH-01"],
            |talk, _| {
                talk.canary();
                // Not every signature has a letter of the other alphabet.
                let again = ["other-alphabet"; 3].into_iter();
                let misses = near_misses("aB+/cd09=").into_iter().map(|miss| miss.kind);
                for (n, kind) in misses.chain(again).enumerate() {
                    let auth = SIGNED.replace("@signature", &format!("@signature-near:{kind}"));
                    talk.send(&request(&quoted(&format!("s{n}")), &auth));
                }
            },
        ),
        check(
            "nonce-near-misses",
            "A nonce that is nearly one that was used is another nonce, and accepted.",
            &["RPC-AUTH-03"],
            |talk, _| {
                talk.canary();
                let with = |nonce: &str| SIGNED.replace("@nonce", nonce);
                talk.send(&request("\"used\"", &with("@nonce:Near-1")));
                for (n, miss) in near_misses("Near-1").into_iter().enumerate() {
                    let nonce = format!("@nonce-near:{}:Near-1", miss.kind);
                    talk.send(&request(&quoted(&format!("n{n}")), &with(&nonce)));
                }
                talk.send(&request("\"again\"", &with("@nonce:Near-1")));
            },
        ),
        check(
            "refusals-are-alike",
            "The errors that refuse missing, malformed, wrong, stale and repeated signatures are equal and tell no secret.",
            &["RPC-AUTH-11", "RPC-AUTH-12"],
            |talk, _| {
                talk.aim_at_nothing().canary();
                let with = |from: &str, to: &str| SIGNED.replace(from, to);
                for (n, auth) in [
                    "@absent".to_owned(),
                    "{}".to_owned(),
                    "7".to_owned(),
                    with("\"@signature\"", "7"),
                    with("@signature", "no base64"),
                    with("@signature", "@signature-by:another-key"),
                    with("@signature", "@signature-near:shorter-by-half"),
                    with("\"@now\"", "\"@now-text\""),
                    with("@now", "@now-86400"),
                    with("@now", "@now+86400"),
                    with("\"@nonce\"", "\"\""),
                    with("@nonce", "@nonce:alike"),
                    with("@nonce", "@nonce:alike"),
                ]
                .iter()
                .enumerate()
                {
                    talk.send(&request(&quoted(&format!("a{n}")), auth));
                }
            },
        )
        .ambient(),
        check(
            "nonce-twice-in-a-batch",
            "Of two elements of a batch with one nonce no more than one is accepted.",
            &["RPC-AUTH-03"],
            |talk, _| {
                talk.canary();
                let with = |id: &str, name: &str| request(id, &SIGNED.replace("@nonce", &format!("@nonce:{name}")));
                talk.send(&format!("[{},{}]", with("1", "b1"), with("2", "b2")));
                talk.send(&format!("[{},{},{}]", with("3", "b3"), with("4", "b3"), with("5", "b4")));
            },
        )
        .also_feature("batch"),
        check(
            "timestamps",
            "Timestamps 299 s from now are accepted on both sides, those 302 s from now are refused.",
            &["RPC-AUTH-02"],
            |talk, _| {
                talk.canary();
                for (n, offset) in ["-302", "-299", "+299", "+302", "-86400", "+86400"].iter().enumerate() {
                    let auth = SIGNED.replace("@now", &format!("@now{offset}"));
                    talk.send(&request(&quoted(&format!("t{n}")), &auth)).canary();
                }
            },
        ),
        check(
            "nonce-repeated",
            "A nonce is accepted once, with 1 to 64 characters, and refused with any other message.",
            &["RPC-AUTH-03"],
            |talk, _| {
                talk.canary();
                let with = |nonce: &str| SIGNED.replace("\"@nonce\"", &quoted(nonce));
                talk.send(&request("\"first\"", &with("@nonce:twice")));
                talk.send(&request("\"again\"", &with("@nonce:twice"))).canary();
                talk.send(&request("\"third\"", &with("@nonce:twice")));
                // Within 64 characters, and beyond 64 bytes.
                talk.send(&request("\"wide\"", &with(&format!("@nonce:{}", "é".repeat(35)))));
            },
        ),
        check(
            "nonce-kept-by-failures",
            "A nonce that came with a wrong signature is accepted with a right one.",
            &["RPC-AUTH-08"],
            |talk, _| {
                talk.canary();
                let with = |signature: &str| {
                    format!(r#"{{"timestamp":"@now","nonce":"@nonce:kept","signature":"{signature}"}}"#)
                };
                talk.send(&request("\"wrong\"", &with("@signature-by:another-key"))).canary();
                talk.send(&request("\"right\"", &with("@signature")));
                talk.send(&request("\"spent\"", &with("@signature")));
            },
        ),
        check(
            "order-of-checks",
            "Signatures are looked at after text and shape of a message, and before its method.",
            &["RPC-AUTH-10"],
            |talk, _| {
                talk.canary();
                talk.send(&call(UNKNOWN_METHOD, None, Some("\"none\"")).replacen('{', &format!("{{{ABSENT}"), 1));
                talk.send("{\"jsonrpc\":\"2.0\",\"method\":");
                talk.send(&format!("{{{ABSENT}\"jsonrpc\":\"2.0\",\"method\":1,\"id\":\"shape\"}}"));
                talk.send(&format!("{{{ABSENT}\"jsonrpc\":\"1.9\",\"method\":\"m\",\"id\":\"version\"}}"));
            },
        ),
        check(
            "params-after-signatures",
            "Signatures are looked at before the params of a method.",
            &["RPC-AUTH-10"],
            |talk, _| {
                let named = talk.method("named");
                let text = call(&named, Some("{}"), Some("\"params\""));
                talk.canary().send(&text.replacen('{', &format!("{{{ABSENT}"), 1));
            },
        )
        .roles(&["named"]),
        check(
            "unsignable",
            "Messages without a canonical form are refused with -32600: names twice, half surrogates, large integers.",
            &["RPC-AUTH-07"],
            |talk, _| {
                talk.canary();
                for (n, params) in [
                    "{\"a\":1,\"a\":1}",
                    "[\"\\ud800\"]",
                    "[9007199254740992]",
                    "{\"a\":[-9007199254740993]}",
                ]
                .iter()
                .enumerate()
                {
                    let text = call(UNKNOWN_METHOD, Some(params), Some(&quoted(&format!("u{n}"))));
                    talk.send(&text.replacen('{', &format!("{{\"auth\":{SIGNED},"), 1)).canary();
                }
            },
        ),
        check(
            "refused-calls",
            "Calls and notifications that are refused for their signatures do not run, and notifications get no reply.",
            &["RPC-AUTH-05", "RPC-AUTH-01"],
            |talk, _| {
                let counter = talk.method("counter");
                talk.send(&call(&counter, Some("{}"), Some("\"one\"")));
                let wrong = r#"{"timestamp":"@now","nonce":"@nonce","signature":"@signature-by:another-key"}"#;
                let unsigned = call(&counter, Some("{}"), None).replacen('{', &format!("{{{ABSENT}"), 1);
                talk.send(&unsigned).canary();
                talk.send(&call(&counter, Some("{}"), None).replacen('{', &format!("{{\"auth\":{wrong},"), 1));
                talk.canary();
                let refused = call(&counter, Some("{}"), Some("\"refused\""));
                talk.send(&refused.replacen('{', &format!("{{\"auth\":{wrong},"), 1));
                talk.send(&call(&counter, Some("{}"), Some("\"two\"")));
            },
        )
        .roles(&["counter"]),
        check(
            "batch",
            "Elements of a batch are signed one by one: each is accepted or refused for itself.",
            &["RPC-AUTH-06"],
            |talk, _| {
                talk.canary();
                let wrong = r#"{"timestamp":"@now","nonce":"@nonce","signature":"@signature-by:another-key"}"#;
                let signed = request("\"b1\"", SIGNED);
                let also = request("2", SIGNED);
                talk.send(&format!("[{signed},{},{also},1]", request("\"b3\"", wrong)));
                talk.send(&format!("[{},{}]", request("4", "{}"), request("\"b5\"", SIGNED)));
            },
        )
        .also_feature("batch"),
    ];
    let generated = |name: &str, title: &str, clause: &'static str, plan: fn(&Facts, &mut Rng) -> Plan| {
        Check::new(format!("json_rpc/stdio/auth/{name}"), title, [clause], "command", move |facts, rng| {
            Ok(plan(facts, rng))
        })
        .feature("auth")
    };
    checks.push(generated(
        "changes-within-the-canonical-text",
        "Each change of what was signed is refused, and a message that was not changed is accepted.",
        "RPC-AUTH-09",
        changes_within,
    ));
    checks.push(
        generated(
            "changes-outside-the-canonical-text",
            "Order of members, white space, escapes and spelling of numbers are no part of what is signed.",
            "RPC-AUTH-04",
            changes_outside,
        )
        .roles(&["echo"]),
    );
    checks.push(
        generated(
            "nonce-repeated-after-two-minutes",
            "A nonce is refused two minutes after it was used, under a new timestamp.",
            "RPC-AUTH-03",
            |facts, _| {
                let mut talk = Talk::about(facts, "RPC-AUTH-03");
                talk.canary();
                let auth = SIGNED.replace("@nonce", "@nonce:old");
                talk.send(&request("\"first\"", &auth)).canary();
                talk.act(Act::Wait { ms: 120_000 });
                talk.canary();
                talk.send(&request("\"again\"", &auth)).canary().finish()
            },
        )
        .slow(),
    );
    checks.push(
        generated(
            "nonce-forgotten-after-ten-minutes",
            "A nonce is refused 590 s after it was used, and accepted again 670 s after.",
            "RPC-AUTH-03",
            |facts, _| {
                let mut talk = Talk::about(facts, "RPC-AUTH-03");
                let early = request("\"early\"", &SIGNED.replace("@nonce", "@nonce:early"));
                let late = request("\"late\"", &SIGNED.replace("@nonce", "@nonce:late"));
                talk.canary();
                talk.send(&early).send(&late).canary();
                talk.act(Act::Wait { ms: 590_000 });
                talk.canary().send(&early).canary();
                talk.act(Act::Wait { ms: 80_000 });
                talk.canary().send(&late).canary().finish()
            },
        )
        .very_slow(),
    );
    checks
}

/// A request of a method that is not there: what is refused does no harm, and what is accepted shows by its code.
fn request(id: &str, auth: &str) -> String {
    let text = call(UNKNOWN_METHOD, Some("{}"), Some(id));
    match auth {
        "@absent" => text.replacen('{', &format!("{{{ABSENT}"), 1),
        auth => text.replacen('{', &format!("{{\"auth\":{auth},"), 1),
    }
}

/// An `auth` with the signature of another message.
fn of(other: &str, timestamp: &str, nonce: &str) -> String {
    let signature = quoted(&format!("@signature-of:{other}"));
    format!(r#"{{"timestamp":"{timestamp}","nonce":"{nonce}","signature":{signature}}}"#)
}

/// Some params.
fn any_params(rng: &mut Rng) -> Value {
    let texts = ["", "a", "é", "😀/", "\"\\", "\u{7f}\u{1}", "\u{fb33}"];
    let number = |rng: &mut Rng| match rng.below(4) {
        0 => json!(rng.range(0..=1_000)),
        1 => json!(-9_007_199_254_740_991_i64),
        2 => json!(0.1 * rng.range(1..=1_000) as f64),
        _ => json!(1e-7),
    };
    let (a, b) = (rng.range(1..=9), number(rng));
    json!({
        "a": a,
        "b": [b, *rng.pick(&texts), { *rng.pick(&["x", "é", "😀"]): null }],
        "\u{fb33}": true,
        "😀": { "deep": [[], {}, *rng.pick(&texts)] },
    })
}

/// A message with `auth`, whose members are in order.
fn message(params: &Value, id: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": UNKNOWN_METHOD,
        "params": params,
        "id": id,
        "auth": { "timestamp": "@now", "nonce": format!("@nonce:{id}") },
    })
}

fn changes_within(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::about(facts, "RPC-AUTH-09");
    talk.canary();
    for round in 0..3 {
        let params = any_params(rng);
        let mut changes: Vec<fn(&mut Value)> = vec![
            |m| m["params"]["a"] = json!(m["params"]["a"].as_u64().unwrap_or(0) + 1),
            |m| m["params"]["b"][1] = json!("changed"),
            |m| m["params"]["b"] = json!([m["params"]["b"][1], m["params"]["b"][0], m["params"]["b"][2]]),
            |m| m["params"]["\u{fb33}"] = json!(false),
            |m| m["params"]["\u{fb33}"] = json!("true"),
            |m| m["params"]["more"] = Value::Null,
            |m| m["params"]["😀"] = json!({}),
            |m| m["params"]["😀"]["deep"][0] = json!({}),
            |m| {
                m.as_object_mut().map(|members| members.remove("params"));
            },
            |m| m["method"] = json!(format!("{UNKNOWN_METHOD}.other")),
            |m| m["id"] = json!(format!("other-{}", m["id"])),
            |m| m["id"] = json!(m["id"].to_string().len() * 1_000),
            |m| m["note"] = json!("not signed"),
            |m| m["auth"]["timestamp"] = json!("@now+1"),
            |m| m["auth"]["nonce"] = json!("@nonce:other"),
            |m| m["auth"]["more"] = json!(1),
        ];
        rng.shuffle(&mut changes);
        let always = (|m: &mut Value| m["note"] = json!("not signed")) as fn(&mut Value);
        for (n, change) in changes.into_iter().take(8).chain([always]).enumerate() {
            let original = message(&params, &format!("c{round}-{n}"));
            let mut changed = original.clone();
            change(&mut changed);
            changed["auth"]["signature"] = json!(format!("@signature-of:{original}"));
            talk.send(&changed.to_string());
        }
        let mut whole = message(&params, &format!("c{round}"));
        whole["auth"]["signature"] = json!("@signature");
        talk.canary().send(&whole.to_string());
    }
    talk.canary().finish()
}

fn changes_outside(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::about(facts, "RPC-AUTH-04");
    talk.canary();
    let echo = talk.method("echo");
    for round in 0..12 {
        let mut text = String::new();
        let mut message = message(&any_params(rng), &format!("o{round}"));
        message["method"] = json!(echo);
        message["auth"]["signature"] = json!("@signature");
        // One peculiarity alone, or all of them.
        let all = round % 4 == 3;
        let style = Style {
            space: all || round % 4 == 0,
            escapes: all || round % 4 == 1,
            numbers: all || round % 4 == 2,
        };
        present(&message, style, rng, &mut text);
        talk.queue(Payload::text(text + "\n"));
        talk.canary();
    }
    talk.finish()
}

/// What is peculiar about a presentation, beside the order of members.
#[derive(Clone, Copy)]
struct Style {
    space: bool,
    escapes: bool,
    numbers: bool,
}

/// Writes a value in some other presentation. The words that stand for the moment of writing stay as they are.
fn present(value: &Value, style: Style, rng: &mut Rng, out: &mut String) {
    let space = |rng: &mut Rng, out: &mut String| {
        let found: &&str = rng.pick(&["", "", " ", "\t", "  \r"]);
        out.push_str(if style.space { found } else { "" });
    };
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            rng.shuffle(&mut members);
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(rng, out);
                out.push_str(&string(name, style, rng));
                space(rng, out);
                out.push(':');
                space(rng, out);
                present(value, style, rng, out);
                space(rng, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(rng, out);
                present(item, style, rng, out);
                space(rng, out);
            }
            out.push(']');
        }
        Value::String(text) if text.starts_with('@') => out.push_str(&quoted(text)),
        Value::String(text) => out.push_str(&string(text, style, rng)),
        Value::Number(number) if style.numbers => match (number.as_i64(), rng.below(4)) {
            (Some(integer), 0) => out.push_str(&format!("{integer}.0")),
            (Some(integer), 1) => out.push_str(&format!("{integer}e0")),
            (Some(integer), 2) => out.push_str(&format!("{integer}0E-1")),
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// A string with some of its characters as escapes.
fn string(text: &str, style: Style, rng: &mut Rng) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if style.escapes && rng.chance(1, 4) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else if style.escapes && c == '/' && rng.chance(1, 2) {
            out.push_str("\\/");
        } else {
            let quoted = quoted(&c.to_string());
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out.push('"');
    out
}

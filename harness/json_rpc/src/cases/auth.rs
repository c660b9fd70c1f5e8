//! Signed messages that are changed, and signed messages that are only spelled differently.
//!
//! Words that begin with `@` are explained in [`super::super::seal`].

use serde_json::{Value, json};

use super::super::talk::{Talk, UNKNOWN_METHOD, call, quoted};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::rng::Rng;

/// Messages with signatures that are nearly right.
pub(crate) fn signature_near_misses(talk: &mut Talk<'_>, _: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    // Some signatures have no letter that the other alphabet writes differently, so this form is sent again.
    let again = ["other-alphabet"; 3].into_iter();
    let misses = near_misses("aB+/cd09=").into_iter().map(|miss| miss.kind);
    for (n, kind) in misses.chain(again).enumerate() {
        let auth = format!(r#"{{"timestamp":"@now","nonce":"@nonce","signature":"@signature-near:{kind}"}}"#);
        let text = call(UNKNOWN_METHOD, Some("{}"), Some(&quoted(&format!("s{n}"))));
        talk.send(&text.replacen('{', &format!("{{\"auth\":{auth},"), 1));
    }
    Ok(())
}

/// Random params.
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

/// A message with `auth`; its members are sorted.
fn message(params: &Value, id: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": UNKNOWN_METHOD,
        "params": params,
        "id": id,
        "auth": { "timestamp": "@now", "nonce": format!("@nonce:{id}") },
    })
}

/// Messages that were changed after they were signed.
pub(crate) fn changes_within(talk: &mut Talk<'_>, _: &Facts, rng: &mut Rng) -> Result<(), Untestable> {
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
            |m| m["auth"]["timestamp"] = json!("@now+1"),
            |m| m["auth"]["nonce"] = json!("@nonce:other"),
        ];
        rng.shuffle(&mut changes);
        // A server may ignore unknown members, so they are added to every round.
        let always: [fn(&mut Value); 2] =
            [|m| m["note"] = json!("not signed"), |m| m["auth"]["more"] = json!("not signed")];
        for (n, change) in changes.into_iter().take(8).chain(always).enumerate() {
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
    Ok(())
}

/// Signed messages spelled otherwise than the signed text.
pub(crate) fn changes_outside(talk: &mut Talk<'_>, _: &Facts, rng: &mut Rng) -> Result<(), Untestable> {
    let echo = talk.method("echo");
    for round in 0..12 {
        let mut text = String::new();
        let mut message = message(&any_params(rng), &format!("o{round}"));
        message["method"] = json!(echo);
        message["auth"]["signature"] = json!("@signature");
        // One peculiarity per round; every fourth round has all.
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
    Ok(())
}

/// Peculiarities of a spelling, beside the order of members.
#[derive(Clone, Copy)]
struct Style {
    space: bool,
    escapes: bool,
    numbers: bool,
}

/// Writes a value in another spelling. The words that [`super::super::seal`] replaces stay as they are.
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

/// A string with some of its characters escaped.
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

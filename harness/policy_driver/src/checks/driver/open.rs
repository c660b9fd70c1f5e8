//! Checks of choices that the contract leaves to a driver. They record its behaviour.

use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::talk::Talk;
use super::super::super::request::Request;
use super::{check, with_raw};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![absent_fields(), duplicate_sids(), duplicate_keys(), nearly_json()]
}

/// Allows any valid outcome that shows the choice: a PICK, no PICK or a failure.
fn either(clause: &str) -> Expect {
    Expect::pick(clause).or(Allowed::NoPick).or(Allowed::Failure)
}

/// Allows any valid outcome.
fn any(clause: &str) -> Expect {
    Expect::block(clause).or(Allowed::Failure)
}

/// Values of the choice for the outcomes PICK, no PICK and failure.
const VALUES: [&str; 3] = ["default", "malformed", "malformed"];

/// Records the choice if the driver promises a pick; otherwise allows any valid outcome.
fn if_promised(talk: &Talk<'_>, clause: &str, key: &str, values: &[&str]) -> Expect {
    if talk.role("pick").is_some() { either(clause).choice(key, values) } else { any(clause) }
}

fn absent_fields() -> Check {
    check(
        "open/absent-fields",
        "If fields are absent, the driver uses a default or treats the payload as malformed.",
        &["PD-PAY-06"],
        |talk| {
            const MEMBERS: [&str; 3] = ["goal_digest", "state_digest", "control_mode"];
            for name in MEMBERS.into_iter().chain(["inputs", "menu"]) {
                talk.decide(&Request::plain().without(name), any("PD-PAY-06"));
            }
            let without = |request: &Request, names: &[&str]| {
                let mut request = request.clone();
                let menu = request.0.get_mut("menu").and_then(Json::as_array_mut);
                for entry in menu.into_iter().flatten() {
                    for name in names {
                        entry.remove(name);
                    }
                }
                request
            };
            for name in ["sid", "aid", "name", "tags"] {
                talk.decide(&without(&Request::plain(), &[name]), any("PD-PAY-06"));
            }
            let [pick, ..] = talk.payloads();
            let all = without(&pick, &["name", "tags"]);
            let all = MEMBERS.into_iter().fold(all, Request::without);
            let expect = if_promised(talk, "PD-PAY-06", "absent_fields", &VALUES);
            talk.decide(&all, expect);
        },
    )
}

fn duplicate_sids() -> Check {
    check(
        "open/duplicate-sids",
        "If two entries have the same SID, the driver picks as usual or treats the payload as malformed.",
        &["PD-PAY-07"],
        |talk| {
            let doubled = |mut request: Request| {
                if let Some(menu) = request.0.get_mut("menu").and_then(Json::as_array_mut) {
                    menu.extend(menu.clone());
                }
                request
            };
            talk.decide(&doubled(Request::plain()), any("PD-PAY-07"));
            let expect = if_promised(talk, "PD-PAY-07", "duplicate_sids", &VALUES);
            let [pick, ..] = talk.payloads();
            talk.decide(&doubled(pick), expect);
        },
    )
}

fn duplicate_keys() -> Check {
    check(
        "open/duplicate-keys",
        "If a payload has two menus, the last or the first counts, or the payload is malformed.",
        &["PD-PAY-09"],
        |talk| {
            let [request, ..] = talk.payloads();
            let menu = request.0.get("menu").map(Json::to_text).unwrap_or_default();
            let empty = Request(request.0.clone()).with("menu", Json::Array(Vec::new()));
            // Nothing can be picked from an empty menu, so a pick shows which menu was read.
            let last = if_promised(talk, "PD-PAY-09", "duplicate_keys", &["last", "refuse", "refuse"]);
            talk.decide_on(with_raw(&empty, "menu", &menu), last);
            let first = if_promised(talk, "PD-PAY-09", "duplicate_keys", &["first", "", ""]);
            talk.decide_on(with_raw(&request, "menu", "[]"), first);
        },
    )
}

fn nearly_json() -> Check {
    check(
        "open/nearly-json",
        "A payload that is JSON except for a comment, a comma, NaN, a byte or UTF-16 is malformed, or read \
         leniently.",
        &["PD-BAD-05", "PD-BAD-07"],
        |talk| {
            let (request, _) = talk.pickable("PD-BAD-05");
            let shows = talk.role("pick").is_some();
            let text = request.text();
            let cut = |end: &str| text.strip_suffix(end).unwrap_or(&text).to_owned();
            // Some JSON readers detect the encoding, as older JSON standards demand, and accept this.
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let spoilt = [
                format!("{},}}", cut("}")).into_bytes(),
                format!("{text}/* a comment */").into_bytes(),
                format!("// a comment\n{text}").into_bytes(),
                format!("{},\"x\":NaN}}", cut("}")).into_bytes(),
                format!("{},\"x\":01}}", cut("}")).into_bytes(),
                format!("{},\"x\":'y'}}", cut("}")).into_bytes(),
                format!("{},\"x\":\"a\tb\"}}", cut("}")).into_bytes(),
                format!("{text}x").into_bytes(),
                format!("{text}{text}").into_bytes(),
                [cut("}").as_bytes(), b",\"x\":\"\xFF\xC0\x80\"}"].concat(),
                [text.as_bytes(), b"\0"].concat(),
                wide,
            ];
            let sids: Vec<String> =
                super::super::super::request::sids(&request.0).into_iter().map(str::to_owned).collect();
            // A byte order mark is a choice of its own.
            let marked = Payload::text(format!("\u{FEFF}{text}"));
            talk.decide_on(marked, either("PD-BAD-05").of_menu(sids.clone()));
            // Faults that a reader overlooks if it splits the entries itself.
            let menu = request.0.get("menu").map(Json::to_text).unwrap_or_default();
            let entries = menu.strip_suffix(']').unwrap_or(&menu);
            let inside = [format!("{entries},]"), format!("{entries}/* a comment */]")];
            let without = request.clone().without("menu");
            let inside = inside.map(|menu| with_raw(&without, "menu", &menu));
            let spoilt = spoilt.iter().map(|bytes| Payload::from_bytes(bytes)).chain(inside);
            for (index, payload) in spoilt.enumerate() {
                let expect = either("PD-BAD-05").of_menu(sids.clone());
                // A pick from any of them shows a lenient reader, whatever it refuses otherwise.
                let refused = if index == 0 { "refuse" } else { "" };
                let expect = match shows {
                    true => expect.choice("nearly_json_payload", &["pick", refused, refused]),
                    false => expect,
                };
                talk.decide_on(payload, expect);
            }
        },
    )
}

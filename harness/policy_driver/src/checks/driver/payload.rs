//! Checks of valid payloads in all their variants.

use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::talk::Talk;
use super::super::super::request::{Entry, Request, sids};
use super::{check, seeded, with_raw};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![presentations(), unknown_members(), digests(), inputs(), menus(), nested(), nested_deeper()]
}

fn presentations() -> Check {
    seeded(
        "payload/presentations",
        "A payload with another order of members, other white space, escapes and spellings of numbers is \
         understood.",
        &["PD-PAY-01"],
        |talk, rng| {
            let (request, expect) = talk.pickable("PD-PAY-01");
            for how in Presentation::ALL.into_iter().filter(|how| *how != Presentation::ExtraMembers) {
                let text = present(&request.0, how, &mut || rng.next_u64());
                talk.decide_on(Payload::text(text), expect.clone());
            }
            for value in ["\"zwölf 🦀 日本\"", "[1.0,-0.5E+2,10e-1,1E2]", "\"\\u00e9\\/\\\"\""] {
                talk.decide_on(with_raw(&request, "x", value), expect.clone());
            }
            let pretty = request.0.to_text_pretty();
            for text in [pretty.replace('\n', "\r\n"), format!("\n\t {pretty}\n\n")] {
                talk.decide_on(Payload::text(text), expect.clone());
            }
        },
    )
}

fn unknown_members() -> Check {
    seeded(
        "payload/unknown-members",
        "Members that the contract does not name, in the payload and in entries of the menu, are ignored.",
        &["PD-PAY-02"],
        |talk, rng| {
            let (request, expect) = talk.pickable("PD-PAY-02");
            let text = present(&request.0, Presentation::ExtraMembers, &mut || rng.next_u64());
            talk.decide_on(Payload::text(text), expect.clone());
            for value in [r#""SID9999""#, "null", "[1,{}]", r#"{"menu":[],"inputs":null}"#] {
                let value = value.parse::<Json>().unwrap_or_default();
                let mut extended =
                    request.clone().with("sid", value.clone()).with("description", value.clone());
                let menu = extended.0.get_mut("menu").and_then(Json::as_array_mut);
                for entry in menu.into_iter().flatten() {
                    entry.set("description", value.clone());
                }
                talk.decide(&extended, expect.clone());
            }
            // Names that a careless reader confuses with those of the contract, before and after these.
            let other = Json::Array(vec![Entry::plain(9_999).json()]);
            let near = near_misses("menu").into_iter().map(|miss| (miss.text, other.clone()));
            let near: Vec<_> = near.collect();
            let own = request.0.as_object().unwrap_or_default().to_vec();
            for members in [[near.clone(), own.clone()], [own, near]] {
                talk.decide(&Request(Json::object(members.concat())), expect.clone().narrow());
            }
            let mut extended = request.clone();
            let menu = extended.0.get_mut("menu").and_then(Json::as_array_mut);
            for entry in menu.into_iter().flatten() {
                for miss in near_misses("sid") {
                    entry.set(&miss.text, "SID9999");
                }
            }
            talk.decide(&extended, expect.narrow());
        },
    )
}

fn digests() -> Check {
    check("payload/digests", "goal_digest and state_digest may be any strings.", &["PD-PAY-03"], |talk| {
        let long = "d".repeat(20_000);
        let texts =
            ["", "|", "goal|menu", "g|m|FLAGS:A,B|more|", "FLAGS:", "zwölf Öchsle 🦀", "a\nb\t\"\\", &long];
        for text in texts {
            let request = Request::plain().with("goal_digest", text);
            talk.decide(&request, Expect::block("PD-PAY-03"));
            let request = Request::plain().with("state_digest", text);
            talk.decide(&request, Expect::block("PD-PAY-03"));
        }
    })
}

fn inputs() -> Check {
    check(
        "payload/inputs",
        "inputs may be any object: empty, nested, with or without cmd, url and path, and those of any type.",
        &["PD-PAY-04"],
        |talk| {
            for inputs in [
                "{}",
                r#"{"cmd":"ls -la"}"#,
                r#"{"url":"http://127.0.0.1:1/"}"#,
                r#"{"path":"/nonexistent"}"#,
                r#"{"cmd":"ls","url":"http://127.0.0.1:1/","path":"/"}"#,
                r#"{"cmd":null,"url":17,"path":["/"]}"#,
                r#"{"cmd":{"cmd":{}},"url":true,"path":""}"#,
                r#"{"a":{"b":[1,-2.5e3,null,true,{"c":""}]},"":{}}"#,
                r#"{"__proto__":{"menu":[]},"constructor":1,"toString":null,"menu":"x","sid":"SID0001"}"#,
            ] {
                talk.decide(&Request::plain().inputs(inputs), Expect::block("PD-PAY-04"));
            }
            let many = (0..2_000).map(|index| (format!("key{index}"), Json::from(index)));
            talk.decide(&Request::plain().with("inputs", Json::object(many)), Expect::block("PD-PAY-04"));
        },
    )
}

fn menus() -> Check {
    check(
        "payload/menus",
        "SIDs may come in any order, with gaps, from SID0000 to SID9999; names and tags may be empty, and \
         there may be many tags.",
        &["PD-PAY-05"],
        |talk| {
            let numbered =
                |numbers: &[u32]| numbers.iter().map(|number| Entry::plain(*number)).collect::<Vec<_>>();
            let many: Vec<String> = (0..200).map(|index| format!("tag{index}")).collect();
            let many: Vec<&str> = many.iter().map(String::as_str).collect();
            for menu in [
                numbered(&[0]),
                numbered(&[9_999]),
                numbered(&[9_999, 0]),
                numbered(&[42, 7, 3]),
                numbered(&[1, 10, 100, 1_000]),
                numbered(&(0..300).map(|index| index * 33).collect::<Vec<_>>()),
                vec![Entry::plain(5).tagged(&[])],
                vec![Entry::plain(5).tagged(&[""]), Entry::plain(6).named("")],
                vec![Entry::plain(5).tagged(&many).named(&"n".repeat(5_000))],
            ] {
                talk.decide(&Request::of(&menu), Expect::block("PD-PAY-05").narrow());
            }
        },
    )
}

/// Text of a value with this many levels.
fn nest(kind: Nest, levels: usize) -> String {
    let (open, inner, close) = match kind {
        Nest::Arrays => ("[", "", "]"),
        Nest::Objects => ("{\"a\":", "{}", "}"),
    };
    // The innermost object is one of the levels.
    let around = if inner.is_empty() { levels } else { levels.saturating_sub(1) };
    [open.repeat(around), inner.to_owned(), close.repeat(around)].concat()
}

#[derive(Clone, Copy)]
enum Nest {
    Arrays,
    Objects,
}

/// Payloads with this many levels: in an unknown member, and in the inputs.
fn deep(talk: &mut Talk<'_>, levels: usize, expect: impl Fn(&Talk<'_>) -> (Request, Expect)) {
    for kind in [Nest::Arrays, Nest::Objects] {
        let (request, expectation) = expect(talk);
        talk.decide_on(with_raw(&request, "x", &nest(kind, levels - 1)), expectation);
        let inputs = format!("{{\"deep\":{}}}", nest(kind, levels - 2));
        let request = Request::plain().without("inputs");
        let (_, expectation) = expect(talk);
        let allowed = expectation.allowed.iter().map(|allowed| match allowed {
            // A role's promise does not cover other inputs.
            Allowed::Pick { .. } => Allowed::Block,
            other => other.clone(),
        });
        let expectation = Expect { allowed: allowed.collect(), ..expectation };
        talk.decide_on(with_raw(&request, "inputs", &inputs), expectation);
    }
}

fn nested() -> Check {
    check(
        "payload/nested-64-levels",
        "A payload nested 64 levels, in arrays or objects, in the inputs or in an unknown member, is understood.",
        &["PD-PAY-08"],
        |talk| deep(talk, 64, |talk| talk.pickable("PD-PAY-08")),
    )
}

fn nested_deeper() -> Check {
    check(
        "payload/nested-deeper",
        "A payload nested 65 to 100,000 levels is decided, or the driver fails; it never hangs.",
        &["PD-PAY-08"],
        |talk| {
            for levels in [65, 1_000, 100_000] {
                deep(talk, levels, |_| {
                    let expect = Expect::block("PD-PAY-08").or(Allowed::Failure).narrow();
                    (Request::plain(), expect.of_menu(sids(&Request::plain().0)))
                });
            }
            let unclosed = with_raw(&Request::plain(), "x", &"[".repeat(100_000));
            talk.decide_on(unclosed, Expect::no_pick("PD-PAY-08").narrow());
            talk.canary("PD-PAY-08");
        },
    )
}

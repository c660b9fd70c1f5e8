//! Checks with malformed payloads: nothing may be picked.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::super::super::DRIVER;
use super::super::super::block::is_sid;
use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::talk::Talk;
use super::super::super::request::{Entry, Request, sids};
use super::{check, with_raw};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::PathKind;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        unreadable(),
        without_permission(),
        empty(),
        cut(),
        no_json(),
        wrong_types(),
        wrong_entries(),
        odd_fields(),
        empty_menu(),
    ]
}

/// Expects no pick; any other outcome breaks the clause.
fn nothing(clause: &str) -> Expect {
    Expect::no_pick(clause).narrow().of_menu(Vec::<String>::new())
}

/// First SID in a request's menu.
fn first_sid(request: &Request) -> String {
    sids(&request.0).first().copied().unwrap_or_default().to_owned()
}

fn unreadable() -> Check {
    check(
        "malformed/unreadable",
        "A payload that does not exist, or is a directory, leads to no pick.",
        &["PD-BAD-01", "PD-BAD-07"],
        |talk| {
            talk.decide_on_path(PathKind::Missing, nothing("PD-BAD-01"));
            talk.decide_on_path(PathKind::Directory, nothing("PD-BAD-01"));
            let nowhere = PathKind::Link { to: "nowhere/at-all".to_owned() };
            talk.decide_on_path(nowhere, nothing("PD-BAD-01"));
            talk.canary("PD-BAD-01");
        },
    )
}

fn without_permission() -> Check {
    let id = "policy_driver/driver/malformed/without-permission";
    let title = "An unreadable payload leads to no pick.";
    let check = Check::new(id, title, ["PD-BAD-01", "PD-BAD-07"], DRIVER, |facts, _| {
        if needs_no_permission() {
            return Err(Untestable::new(
                Untestable::MACHINE,
                "peerproof runs as root, who can read every \
                file",
            ));
        }
        let mut talk = Talk::new(facts);
        talk.decide_without_permission(&Request::plain(), nothing("PD-BAD-01"));
        talk.canary("PD-BAD-01").plan()
    });
    check.on_process().vouched()
}

/// True if the user of the harness, who also runs the driver, can read a file without permission.
fn needs_no_permission() -> bool {
    let hidden = tempfile::NamedTempFile::new().and_then(|file| {
        std::fs::set_permissions(file.path(), Permissions::from_mode(0o000))?;
        Ok(file)
    });
    // The answer is unknown if the test fails.
    hidden.map_or(true, |file| std::fs::File::open(file.path()).is_ok())
}

fn empty() -> Check {
    check(
        "malformed/empty",
        "An empty payload, or one of white space, leads to no pick.",
        &["PD-BAD-02", "PD-BAD-07"],
        |talk| {
            for text in ["", " ", "\n", " \t\r\n \n", "\u{FEFF}", "\0"] {
                talk.decide_on(Payload::text(text), nothing("PD-BAD-02"));
            }
            talk.decide_on(Payload::default().repeat(" ", 1 << 16), nothing("PD-BAD-02"));
            talk.canary("PD-BAD-02");
        },
    )
}

fn cut() -> Check {
    check(
        "malformed/cut",
        "A payload that is cut short leads to no pick, even if its menu is complete.",
        &["PD-BAD-03", "PD-BAD-07"],
        |talk| {
            let (request, expect) = talk.pickable("PD-BAD-03");
            let text = request.text();
            let after = |part: &str| text.find(part).map_or(1, |at| at + part.len());
            let places = [
                1,
                text.len() / 4,
                after("\"menu\":["),
                after(&first_sid(&request)),
                after("}"),
                text.len() - 8,
                text.len() - 1,
            ];
            for place in places {
                let place = (place..).find(|place| text.is_char_boundary(*place)).unwrap_or(1);
                talk.decide_on(Payload::text(&text[..place.min(text.len() - 1)]), nothing("PD-BAD-03"));
            }
            talk.decide(&request, expect);
        },
    )
}

fn no_json() -> Check {
    check(
        "malformed/no-json",
        "Text or bytes that are not JSON lead to no pick.",
        &["PD-BAD-03", "PD-BAD-07"],
        |talk| {
            let (request, _) = talk.pickable("PD-BAD-03");
            let sid = first_sid(&request);
            for text in [
                sid.clone(),
                format!("<PICK><{sid}><END>"),
                format!("pick {sid} from the menu, please"),
                format!("menu:\n  - sid: {sid}\n    name: a\n    tags: []\ninputs: {{}}\n"),
                format!("<payload><menu><sid>{sid}</sid></menu></payload>"),
                format!("[menu]\nsid = \"{sid}\"\n"),
                format!("sid,aid,name,tags\n{sid},a,b,\n"),
            ] {
                talk.decide_on(Payload::text(text), nothing("PD-BAD-03"));
            }
            let text = request.text();
            let reversed: Vec<u8> = text.bytes().rev().collect();
            for bytes in [&reversed, &b"\x1f\x8b\x08\x00\x00\xff\xfe SID0003"[..]] {
                talk.decide_on(Payload::from_bytes(bytes), nothing("PD-BAD-03"));
            }
            talk.canary("PD-BAD-03");
        },
    )
}

fn wrong_types() -> Check {
    check(
        "malformed/wrong-types",
        "A payload that is not an object, or whose menu is not an array, leads to no pick.",
        &["PD-BAD-04", "PD-BAD-07"],
        |talk| {
            let (plain, _) = talk.pickable("PD-BAD-04");
            let sid = first_sid(&plain);
            let menu = plain.0.get("menu").cloned().unwrap_or_default();
            let entry = menu.as_array().and_then(|menu| menu.first().cloned()).unwrap_or_default();
            let whole = [
                Json::Null,
                Json::from(true),
                Json::from(3),
                Json::from(sid.as_str()),
                Json::from(plain.text()),
                Json::Array(vec![plain.0.clone()]),
                menu.clone(),
            ];
            for value in whole {
                talk.decide(&Request(value), nothing("PD-BAD-04"));
            }
            let menus = [
                Json::Null,
                Json::from(3),
                Json::from(sid.as_str()),
                Json::from(menu.to_text()),
                entry.clone(),
                Json::object([("0", entry.clone())]),
                Json::object([(sid, entry)]),
                Json::Array(vec![menu]),
            ];
            for menu in menus {
                talk.decide(&plain.clone().with("menu", menu), nothing("PD-BAD-04"));
            }
            talk.canary("PD-BAD-04");
        },
    )
}

fn wrong_entries() -> Check {
    check(
        "malformed/wrong-entries",
        "An entry that is not an object, or whose sid is not SID and four digits, is not picked.",
        &["PD-BAD-04", "PD-BAD-07"],
        |talk| {
            let (request, _) = talk.pickable("PD-BAD-04");
            let menu = request.0.get("menu").and_then(Json::as_array).unwrap_or_default().to_vec();
            // Every entry that the driver might pick has the wrong SID.
            let with_sid = |sid: Json| {
                let entries = menu.iter().map(|entry| {
                    let mut entry = entry.clone();
                    entry.set("sid", sid.clone());
                    entry
                });
                entries.collect::<Vec<_>>()
            };
            let others = [
                "",
                "3",
                "0003",
                "SID3",
                "Sid0003",
                "SID 003",
                "SID-003",
                "SID+003",
                "SID0x03",
                "SID003a",
                "XSID0003",
                "SID０００３",
                "SID0003><END>",
            ];
            let near = near_misses("SID0003").into_iter().map(|miss| miss.text).filter(|sid| !is_sid(sid));
            let sids = near.chain(others.into_iter().map(str::to_owned));
            let mut wrong: Vec<Vec<Json>> = sids.map(|sid| with_sid(Json::from(sid))).collect();
            wrong.extend([Json::Null, Json::from(3), Json::Array(vec![Json::from("SID0003")])].map(with_sid));
            let no_entries =
                [Json::Null, Json::from(3), Json::from("SID0003"), Json::Array(vec![Json::from("SID0003")])];
            wrong.extend(no_entries.map(|entry| vec![entry]));
            // A SID under another member name.
            wrong.extend(["SID", "Sid", "id"].map(|name| {
                let mut entry = Entry::plain(3).json();
                entry.remove("sid");
                entry.set(name, "SID0003");
                vec![entry]
            }));
            for (index, mut entries) in wrong.into_iter().enumerate() {
                let menu = Json::Array(entries.clone());
                talk.decide(&request.clone().with("menu", menu), nothing("PD-BAD-04"));
                if index % 4 == 0 {
                    // A well-formed neighbour.
                    entries.push(Entry::plain(7).json());
                    let expect = Expect::no_pick("PD-BAD-04").or(Allowed::PICK).narrow().of_menu(["SID0007"]);
                    talk.decide(&request.clone().with("menu", Json::Array(entries)), expect);
                }
            }
            talk.canary("PD-BAD-04");
        },
    )
}

fn odd_fields() -> Check {
    check(
        "malformed/odd-fields",
        "If another field has a wrong type, the driver decides or fails; it never hangs or prints \
         something else.",
        &["PD-BAD-07"],
        |talk| {
            let odd = [
                Json::Null,
                Json::from(17),
                Json::from("x"),
                Json::Array(vec![Json::Null]),
                Json::object([("a", Json::Null)]),
            ];
            let expect = || Expect::block("PD-BAD-07").or(Allowed::Failure).narrow();
            let deep = ["[".repeat(5_000), "]".repeat(5_000)].concat();
            let plain = Request::plain();
            talk.decide_on(with_raw(&plain, "x", &deep), expect().of_menu(sids(&plain.0)));
            for name in ["goal_digest", "state_digest", "control_mode", "inputs"] {
                for value in &odd {
                    talk.decide(&Request::plain().with(name, value.clone()), expect());
                }
            }
            for name in ["aid", "name", "tags"] {
                for value in &odd {
                    let mut entry = Entry::plain(3).json();
                    entry.set(name, value.clone());
                    talk.decide(&Request::plain().with("menu", Json::Array(vec![entry])), expect());
                }
            }
            talk.canary("PD-BAD-07");
        },
    )
}

fn empty_menu() -> Check {
    check(
        "malformed/empty-menu",
        "An empty menu leads to no pick.",
        &["PD-BAD-06", "PD-BAD-07", "PD-START-03"],
        |talk| {
            let without = |request: Request| request.with("menu", Json::Array(Vec::new()));
            talk.decide(&without(Request::plain()), nothing("PD-BAD-06"));
            let urged = Request::plain().inputs(r#"{"url":"http://127.0.0.1:1/","cmd":"ls","path":"/"}"#);
            talk.decide(&without(urged), nothing("PD-BAD-06"));
            for request in talk.payloads().into_iter().take(2) {
                talk.decide(&without(request), nothing("PD-BAD-06"));
            }
            talk.canary("PD-BAD-06");
        },
    )
}

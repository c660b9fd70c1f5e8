//! Mutants that read payloads too narrowly, or accept invalid ones.

use super::super::tree::{self, Members, edited, get, members};
use super::{Answer, Mutant, Rewiring, wire};
use crate::json::{Text, Value};
use crate::mutant::config;
use crate::mutant::text::{find, has};

/// Members of a payload in the order of the document.
const KNOWN: [&str; 5] = ["goal_digest", "state_digest", "control_mode", "inputs", "menu"];

/// Members of an entry in the order of the document.
const KNOWN_OF_ENTRY: [&str; 4] = ["sid", "aid", "name", "tags"];

fn value(payload: &[u8]) -> Value {
    tree::parse(payload).unwrap_or(Value::Null)
}

fn entries(payload: &[u8]) -> Vec<Value> {
    value(payload).get("menu").and_then(Value::as_array).unwrap_or_default().to_vec()
}

fn sid(entry: &Value) -> &str {
    entry.get("sid").and_then(Value::as_str).unwrap_or_default()
}

fn string<'v>(payload: &'v Value, name: &str) -> &'v str {
    payload.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_known(known: &[&str], name: &Text) -> bool {
    known.iter().any(|known| name == known)
}

/// True if a string of a well-formed payload has a character for which `holds` is true.
fn has_letter(payload: &[u8], holds: fn(char) -> bool) -> bool {
    let in_string = |value: &Value| value.as_text().is_some_and(|text| text.to_lossy().contains(holds));
    tree::parse(payload).is_some_and(|payload| tree::any(&payload, &in_string))
}

/// True if the text outside of strings has one of `bytes`.
fn has_outside(payload: &[u8], bytes: &[u8]) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    payload.iter().any(|byte| {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            false
        } else {
            in_string = *byte == b'"';
            bytes.contains(byte)
        }
    })
}

/// Edits each entry of the menu, or replaces it.
fn each_entry(payload: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    edited(payload, |members| {
        if let Some(Value::Array(entries)) = get(members, "menu") {
            entries.iter_mut().for_each(change);
        }
    })
}

fn each_sid(payload: &[u8], change: impl Fn(&Value) -> Option<String>) -> Vec<u8> {
    each_entry(payload, |entry| {
        if let Value::Object(members) = entry
            && let Some(sid) = get(members, "sid")
            && let Some(new) = change(sid)
        {
            *sid = new.as_str().into();
        }
    })
}

fn entry(sid: &str) -> Value {
    let text = |name: &str, value: &str| (Text::from(name), Value::from(value));
    let members: Members =
        vec![text("sid", sid), text("aid", ""), text("name", ""), ("tags".into(), Value::Array(Vec::new()))];
    Value::Object(members)
}

/// Copies the value of the first name for which `is_like` is true to the member `name`.
fn by_like_name(payload: &[u8], is_like: fn(&str) -> bool, name: &'static str) -> Vec<u8> {
    edited(payload, |members| {
        if let Some((_, value)) = members.iter().find(|(key, _)| is_like(&key.to_lossy())).cloned() {
            tree::put(members, name, value);
        }
    })
}

/// Pick of a driver without a menu.
fn pick() -> Answer {
    Answer::block("<PICK><SID0000><END>")
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "driver-wants-order",
        &["PD-PAY-01"],
        "The members of a payload have to come in the order of the document.",
        Rewiring::Refusal(|payload| {
            let place = |name: &Text| KNOWN.iter().position(|known| name == known);
            !members(payload).unwrap_or_default().iter().filter_map(|(name, _)| place(name)).is_sorted()
        }),
    ),
    wire(
        "driver-wants-compact-payloads",
        &["PD-PAY-01"],
        "White space between the tokens of a payload is not understood.",
        Rewiring::Refusal(|payload| has_outside(payload, b" \t\r\n") && !payload.ends_with(b"\n")),
    ),
    wire(
        "driver-wants-no-last-newline",
        &["PD-PAY-01"],
        "A newline at the end of the payload is not understood.",
        Rewiring::Refusal(|payload| payload.ends_with(b"\n")),
    ),
    wire(
        "driver-wants-no-tabs",
        &["PD-PAY-01"],
        "Tabs and CRs between the tokens of a payload are not understood.",
        Rewiring::Refusal(|payload| has_outside(payload, b"\t\r")),
    ),
    wire(
        "driver-wants-raw-text",
        &["PD-PAY-01"],
        "A payload with escaped letters is not understood.",
        Rewiring::Refusal(|payload| {
            payload.windows(5).any(|five| five.starts_with(b"\\u00") && five[4] >= b'2')
        }),
    ),
    wire(
        "driver-wants-plain-names",
        &["PD-PAY-01"],
        "Escaped names of members are not known.",
        Rewiring::Refusal(|payload| {
            let parsed = members(payload).unwrap_or_default();
            let names = parsed.iter().filter(|(name, _)| is_known(&KNOWN, name));
            names.into_iter().any(|(name, _)| !has(payload, &format!("\"{}\"", name.to_lossy())))
        }),
    ),
    wire(
        "driver-wants-plain-numbers",
        &["PD-PAY-01"],
        "Numbers with a fraction or an exponent are not understood.",
        Rewiring::Refusal(|payload| {
            has_outside(payload, b".eE+")
                && tree::any(
                    &value(payload),
                    &|value| matches!(value, Value::Number(number) if number.as_str().bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))),
                )
        }),
    ),
    wire(
        "driver-names-in-any-case",
        &["PD-PAY-02"],
        "A member whose name differs from `menu` by case or white space is the menu.",
        Rewiring::Payload(|payload| {
            by_like_name(payload, |name| name.trim().eq_ignore_ascii_case("menu"), "menu")
        }),
    ),
    wire(
        "driver-wants-ascii",
        &["PD-PAY-01"],
        "A payload with raw letters beyond ASCII is not understood.",
        Rewiring::Refusal(|payload| !payload.is_ascii() && std::str::from_utf8(payload).is_ok()),
    ),
    wire(
        "driver-wants-known-members",
        &["PD-PAY-02"],
        "Members of a payload that the contract does not name are refused.",
        Rewiring::Refusal(|payload| {
            members(payload).unwrap_or_default().iter().any(|(name, _)| !is_known(&KNOWN, name))
        }),
    ),
    wire(
        "driver-wants-known-members-of-entries",
        &["PD-PAY-02"],
        "Members of an entry that the contract does not name are refused.",
        Rewiring::Refusal(|payload| {
            let is_other = |(name, _): &(Text, Value)| !is_known(&KNOWN_OF_ENTRY, name);
            entries(payload)
                .iter()
                .any(|entry| entry.as_object().is_some_and(|members| members.iter().any(is_other)))
        }),
    ),
    wire(
        "driver-wants-three-part-digest",
        &["PD-PAY-03"],
        "A goal digest without two bars is refused.",
        Rewiring::Refusal(|payload| string(&value(payload), "goal_digest").matches('|').count() != 2),
    ),
    wire(
        "driver-wants-flags",
        &["PD-PAY-03"],
        "A goal digest without FLAGS is refused.",
        Rewiring::Refusal(|payload| !string(&value(payload), "goal_digest").contains("FLAGS:")),
    ),
    wire(
        "driver-wants-hex-digest",
        &["PD-PAY-03"],
        "A state digest that is empty, or longer than 64 characters, is refused.",
        Rewiring::Refusal(|payload| !(1..=64).contains(&string(&value(payload), "state_digest").len())),
    ),
    wire(
        "driver-wants-inputs",
        &["PD-PAY-04"],
        "Empty inputs are refused.",
        Rewiring::Refusal(|payload| {
            value(payload).get("inputs").and_then(Value::as_object).is_some_and(<[_]>::is_empty)
        }),
    ),
    wire(
        "driver-wants-flat-inputs",
        &["PD-PAY-04"],
        "Inputs with an object in them are refused.",
        Rewiring::Refusal(|payload| {
            let payload = value(payload);
            let inputs = payload.get("inputs").and_then(Value::as_object).unwrap_or_default();
            inputs
                .iter()
                .any(|(name, value)| value.as_object().is_some() && !has(name.as_bytes(), "policy_patch"))
        }),
    ),
    wire(
        "driver-wants-text-inputs",
        &["PD-PAY-04"],
        "Inputs whose `cmd`, `url` or `path` is no string are refused.",
        Rewiring::Refusal(|payload| {
            let payload = value(payload);
            let inputs = payload.get("inputs");
            let member = |name| inputs.and_then(|inputs| inputs.get(name));
            ["cmd", "url", "path"].into_iter().filter_map(member).any(|value| value.as_str().is_none())
        }),
    ),
    wire(
        "driver-wants-tags",
        &["PD-PAY-05"],
        "An entry without tags is refused.",
        Rewiring::Refusal(|payload| {
            entries(payload)
                .iter()
                .any(|entry| entry.get("tags").and_then(Value::as_array).is_some_and(<[_]>::is_empty))
        }),
    ),
    wire(
        "driver-wants-rising-sids",
        &["PD-PAY-05"],
        "SIDs have to rise.",
        Rewiring::Refusal(|payload| !entries(payload).iter().map(|entry| sid(entry).to_owned()).is_sorted()),
    ),
    wire(
        "driver-wants-all-sids",
        &["PD-PAY-05"],
        "SIDs have to follow each other without a gap.",
        Rewiring::Refusal(|payload| {
            let mut numbers: Vec<u32> =
                entries(payload).iter().filter_map(|entry| sid(entry).get(3..)?.parse().ok()).collect();
            numbers.sort_unstable();
            numbers.windows(2).any(|two| two[1] != two[0] + 1)
        }),
    ),
    wire(
        "driver-knows-no-zero",
        &["PD-PAY-05"],
        "SID0000 is refused.",
        Rewiring::Refusal(|payload| entries(payload).iter().any(|entry| sid(entry) == "SID0000")),
    ),
    wire(
        "driver-knows-no-high-sids",
        &["PD-PAY-05"],
        "SIDs from SID9000 on are refused.",
        Rewiring::Refusal(|payload| entries(payload).iter().any(|entry| sid(entry) >= "SID9000")),
    ),
    config("driver-flat-payloads", &["PD-PAY-08"], "Payloads may have 63 levels.", |config| {
        config.limits.nesting_max = 63
    }),
    wire(
        "driver-picks-from-nothing",
        &["PD-BAD-02"],
        "An empty payload leads to a PICK.",
        Rewiring::Answer(|payload, answer| if payload.trim_ascii().is_empty() { pick() } else { answer }),
    ),
    wire(
        "driver-picks-from-garbage",
        &["PD-BAD-03"],
        "A payload that is no JSON leads to a PICK.",
        Rewiring::Answer(|payload, answer| {
            if !payload.trim_ascii().is_empty() && tree::parse(payload).is_none() { pick() } else { answer }
        }),
    ),
    wire(
        "driver-completes-payload",
        &["PD-BAD-03"],
        "A payload that is cut short is completed with what it lacks.",
        Rewiring::Payload(|payload| {
            if tree::parse(payload).is_some() {
                return payload.to_vec();
            }
            let endings = ["}", "]}", "}]}", "]}]}", "\"}]}", "\"]}]}", ":\"\"}]}", "\":\"\"}]}"];
            let completed = endings.iter().map(|ending| [payload, ending.as_bytes()].concat());
            completed.into_iter().find(|payload| members(payload).is_some()).unwrap_or(payload.to_vec())
        }),
    ),
    wire(
        "driver-picks-from-other-types",
        &["PD-BAD-04"],
        "A payload that is JSON and no object leads to a PICK.",
        Rewiring::Answer(|payload, answer| {
            let is_other = tree::parse(payload).is_some_and(|payload| payload.as_object().is_none());
            if is_other { pick() } else { answer }
        }),
    ),
    wire(
        "driver-menu-by-sid",
        &["PD-BAD-04"],
        "A menu that is an object is read by its names.",
        Rewiring::Payload(|payload| {
            edited(payload, |members| {
                if let Some(menu) = get(members, "menu")
                    && let Some(by_sid) = menu.as_object()
                {
                    let names: Vec<Value> = by_sid.iter().map(|(name, _)| entry(&name.to_lossy())).collect();
                    let listed = names.iter().filter(|entry| sid(entry).len() == 7).cloned().collect();
                    *menu = Value::Array(if names.is_empty() { Vec::new() } else { listed });
                }
            })
        }),
    ),
    wire(
        "driver-picks-from-a-menu-of-another-type",
        &["PD-BAD-04"],
        "A menu that is no array leads to a PICK.",
        Rewiring::Answer(|payload, answer| {
            let is_other = |menu: &Value| menu.as_array().is_none();
            if value(payload).get("menu").is_some_and(is_other) { pick() } else { answer }
        }),
    ),
    wire(
        "driver-entries-of-text",
        &["PD-BAD-04"],
        "An entry that is a string is taken for its SID.",
        Rewiring::Payload(|payload| {
            each_entry(payload, |element| {
                if let Some(sid) = element.as_str() {
                    *element = entry(sid);
                }
            })
        }),
    ),
    wire(
        "driver-sids-under-names-of-any-case",
        &["PD-BAD-04"],
        "The SID of an entry may stand under its name in another case.",
        Rewiring::Payload(|payload| {
            each_entry(payload, |entry| {
                let Value::Object(members) = entry else { return };
                let like =
                    members.iter().find(|(name, _)| name.to_lossy().eq_ignore_ascii_case("sid")).cloned();
                if let Some((_, sid)) = like.filter(|_| get(members, "sid").is_none()) {
                    tree::put(members, "sid", sid);
                }
            })
        }),
    ),
    wire(
        "driver-sids-of-numbers",
        &["PD-BAD-04"],
        "A SID that is a number is spelled as a SID.",
        Rewiring::Payload(|payload| {
            each_sid(payload, |sid| sid.as_i64().map(|number| format!("SID{number:04}")))
        }),
    ),
    wire(
        "driver-fills-up-sids",
        &["PD-BAD-04"],
        "A SID of fewer digits is filled up.",
        Rewiring::Payload(|payload| {
            each_sid(payload, |sid| {
                let number: u32 = sid.as_str()?.strip_prefix("SID")?.parse().ok()?;
                (number < 10_000).then(|| format!("SID{number:04}"))
            })
        }),
    ),
    wire(
        "driver-cuts-sids",
        &["PD-BAD-04"],
        "Of a longer SID the first four digits count.",
        Rewiring::Payload(|payload| {
            each_sid(payload, |sid| {
                sid.as_str()
                    .filter(|sid| sid.starts_with("SID"))
                    .and_then(|sid| sid.get(..7))
                    .map(str::to_owned)
            })
        }),
    ),
    wire(
        "driver-sids-in-any-case",
        &["PD-BAD-04"],
        "A SID may be in lower case.",
        Rewiring::Payload(|payload| each_sid(payload, |sid| sid.as_str().map(str::to_uppercase))),
    ),
    wire(
        "driver-picks-from-empty-menu",
        &["PD-BAD-06"],
        "From an empty menu SID0000 is picked.",
        Rewiring::Answer(|payload, answer| {
            let is_empty = tree::parse(payload).is_some_and(|payload| {
                payload.get("menu").and_then(Value::as_array).is_some_and(<[_]>::is_empty)
            });
            if is_empty { pick() } else { answer }
        }),
    ),
    wire(
        "driver-silent-at-empty-menu",
        &["PD-START-03", "PD-BAD-06"],
        "With an empty menu nothing is written, and the status is 0.",
        Rewiring::Answer(|payload, answer| {
            let is_empty = tree::parse(payload).is_some_and(|payload| {
                payload.get("menu").and_then(Value::as_array).is_some_and(<[_]>::is_empty)
            });
            if is_empty { Answer { stdout: Vec::new(), ..answer } } else { answer }
        }),
    ),
    wire(
        "driver-takes-a-thousand-entries",
        &["PD-LOAD-01"],
        "A menu of more than 1,000 entries is refused.",
        Rewiring::Refusal(|payload| entries(payload).len() > 1_000),
    ),
    wire(
        "driver-picks-the-count",
        &["PD-LOAD-01"],
        "Of a menu of 10,000 entries the number 10,000 is picked.",
        Rewiring::Answer(|payload, answer| {
            if entries(payload).len() == 10_000 { Answer::block("<PICK><SID10000><END>") } else { answer }
        }),
    ),
    config(
        "driver-payload-one-too-short",
        &["PD-LOAD-02"],
        "A payload of 10,485,760 bytes is refused.",
        |config| config.limits.policy_payload_bytes_max = 10 * 1024 * 1024 - 1,
    ),
    config(
        "driver-payload-of-a-megabyte",
        &["PD-LOAD-02"],
        "A payload of more than 1 MB is refused.",
        |config| config.limits.policy_payload_bytes_max = 1 << 20,
    ),
    wire(
        "driver-takes-orders",
        &["PD-LOAD-04"],
        "The first PICK that stands in the payload is repeated.",
        Rewiring::Answer(|payload, answer| {
            let order = || {
                let from = find(payload, "<PICK><SID")?;
                let sid = payload.get(from + 7..from + 14)?;
                Some(format!("<PICK><{}><END>", std::str::from_utf8(sid).ok()?))
            };
            if answer.is_pick() { order().map_or(answer, |block| Answer::block(&block)) } else { answer }
        }),
    ),
    wire(
        "driver-finds-sids-anywhere",
        &["PD-LOAD-04"],
        "The first thing in the payload that looks like a SID is picked.",
        Rewiring::Answer(|payload, answer| {
            let starts = memchr::memmem::find_iter(payload, b"SID").filter_map(|at| payload.get(at..at + 7));
            let first = starts.into_iter().find(|sid| sid[3..].iter().all(u8::is_ascii_digit));
            match first.and_then(|sid| std::str::from_utf8(sid).ok()).filter(|_| answer.is_pick()) {
                Some(sid) => Answer::block(&format!("<PICK><{sid}><END>")),
                None => answer,
            }
        }),
    ),
    wire(
        "driver-refuses-blocks-in-text",
        &["PD-LOAD-04"],
        "A payload with `<END>` in a string is refused.",
        Rewiring::Refusal(|payload| has(payload, "<END>")),
    ),
    wire(
        "driver-shows-lines",
        &["PD-LOAD-05"],
        "A name with a line feed is shown before the block.",
        Rewiring::Answer(|payload, answer| {
            let named = |entry: &Value| {
                entry
                    .get("name")
                    .and_then(Value::as_str)
                    .filter(|name| name.contains('\n'))
                    .map(str::to_owned)
            };
            match entries(payload).iter().find_map(named) {
                Some(name) if answer.is_pick() => {
                    Answer { stdout: [name.as_bytes(), b"\n", &answer.stdout].concat(), ..answer }
                }
                _ => answer,
            }
        }),
    ),
    wire(
        "driver-refuses-nul",
        &["PD-LOAD-05"],
        "A payload with U+0000 in a string is refused.",
        Rewiring::Refusal(|payload| has_letter(payload, |letter| letter == '\0')),
    ),
    wire(
        "driver-refuses-controls",
        &["PD-LOAD-05"],
        "A payload with control characters in a string is refused.",
        Rewiring::Refusal(|payload| has_letter(payload, |letter| letter != '\0' && letter.is_control())),
    ),
    wire(
        "driver-refuses-marks",
        &["PD-LOAD-05"],
        "A payload with right-to-left marks is refused.",
        Rewiring::Refusal(|payload| {
            has_letter(payload, |letter| matches!(letter, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'))
        }),
    ),
    wire(
        "driver-refuses-quotes",
        &["PD-LOAD-05"],
        "A payload with quotes or shell syntax in a string is refused.",
        Rewiring::Refusal(|payload| has_letter(payload, |letter| matches!(letter, '"' | '\'' | '`' | '$'))),
    ),
    wire(
        "driver-refuses-repetition",
        &["PD-LOAD-07"],
        "A payload in which two entries have one aid is refused.",
        Rewiring::Refusal(|payload| {
            let entries = entries(payload);
            let mut aids: Vec<_> = entries.iter().filter_map(|entry| entry.get("aid")?.as_str()).collect();
            aids.sort_unstable();
            aids.windows(2).any(|two| two[0] == two[1])
        }),
    ),
];

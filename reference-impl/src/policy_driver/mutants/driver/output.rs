//! Mutants whose output is not exactly one block.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::tree;
use super::{Answer, Mutant, Rewiring, wire};
use crate::json::{Text, Value};
use crate::machine::Action;
use crate::mutant::config;
use crate::mutant::text::swap_all;

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

/// Edits a PICK. Other blocks stay unchanged.
fn pick(block: &str, change: impl FnOnce(&str) -> String) -> Vec<u8> {
    line(&if block.starts_with("<PICK>") { change(block) } else { block.to_owned() })
}

/// Edits the text between two tags.
fn part(block: &str, start: &str, end: &str, change: impl FnOnce(&str) -> String) -> String {
    match block.split_once(start).and_then(|(before, rest)| Some((before, rest.rsplit_once(end)?))) {
        Some((before, (text, after))) => format!("{before}{start}{}{end}{after}", change(text)),
        None => block.to_owned(),
    }
}

fn patch(block: &str, change: impl FnOnce(&str) -> String) -> Vec<u8> {
    line(&part(block, "<INP>", "</INP>", change))
}

/// Edits an encoded patch: its bytes before encoding, its text afterwards.
fn base64(block: &str, bytes: impl FnOnce(&mut Vec<u8>), text: impl FnOnce(String) -> String) -> Vec<u8> {
    line(&part(block, "<INP64>", "</INP64>", |old| {
        let mut decoded = STANDARD.decode(old).unwrap_or_default();
        bytes(&mut decoded);
        text(STANDARD.encode(decoded))
    }))
}

/// Appends white space so that the encoding needs padding.
fn unaligned(bytes: &mut Vec<u8>) {
    if bytes.len().is_multiple_of(3) {
        bytes.push(b' ');
    }
}

/// Appends a member to an object.
fn with_member(object: &[u8], member: &[u8]) -> Vec<u8> {
    let members = object.strip_suffix(b"}").unwrap_or(object);
    let comma: &[u8] = if members.len() > 1 { b"," } else { b"" };
    [members, comma, member, b"}"].concat()
}

/// Moves a patch before the SID. `start` is the opening tag of the patch.
fn patch_before_sid(block: &str, start: &str) -> Vec<u8> {
    let parts = block.strip_prefix("<PICK>").and_then(|rest| rest.split_once(start));
    let parts = parts.and_then(|(sid, rest)| Some((sid, rest.strip_suffix("<END>")?)));
    line(&parts.map_or(block.to_owned(), |(sid, patch)| format!("<PICK>{start}{patch}{sid}<END>")))
}

/// Adds a member to the patch, in either form, with bytes derived from the goal.
fn with_goal(payload: &[u8], answer: Answer, bytes: impl FnOnce(&Text) -> Vec<u8>) -> Answer {
    let payload = tree::parse(payload).unwrap_or(Value::Null);
    let Some(goal) = payload.get("goal_digest").and_then(Value::as_text) else { return answer };
    let member = [b"\"goal\":\"", bytes(goal).as_slice(), b"\""].concat();
    let stdout = match answer.text() {
        block if block.contains("<INP64>") => {
            base64(block, |patch| *patch = with_member(patch, &member), |text| text)
        }
        block => match block.split_once("}</INP>") {
            Some((before, after)) => {
                [before.as_bytes(), b",", member.as_slice(), b"}</INP>", after.as_bytes(), b"\n"].concat()
            }
            None => return answer,
        },
    };
    Answer { stdout, ..answer }
}

/// Inserts text into ASK_SUP and NOOP.
fn no_pick_with(block: &str, inner: &str) -> Vec<u8> {
    let end = format!("{inner}<END>");
    line(&if block.starts_with("<PICK>") { block.to_owned() } else { block.replace("<END>", &end) })
}

/// Edits the text of either kind of patch.
fn either_patch(block: &str, change: fn(&str) -> String) -> Vec<u8> {
    let block = part(block, "<INP>", "</INP>", change);
    let change = |bytes: &mut Vec<u8>| *bytes = change(&String::from_utf8_lossy(bytes)).into_bytes();
    if block.contains("<INP64>") { base64(&block, change, |text| text) } else { line(&block) }
}

fn sids(payload: &[u8]) -> Vec<String> {
    let payload = tree::parse(payload).unwrap_or(Value::Null);
    let entries = payload.get("menu").and_then(Value::as_array).unwrap_or_default();
    entries.iter().filter_map(|entry| Some(entry.get("sid")?.as_str()?.to_owned())).collect()
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "driver-infinite-patch",
        &["PD-PAY-11", "PD-OUT-08"],
        "A number beyond a double is written as Infinity.",
        Rewiring::Block(|block| {
            either_patch(block, |patch| {
                let Some(mut value) = tree::parse(patch.as_bytes()) else { return patch.to_owned() };
                tree::each(&mut value, &|value| {
                    if matches!(value, Value::Number(number) if number.as_f64().is_infinite()) {
                        *value = "\u{1}Infinity\u{1}".into();
                    }
                });
                let text = String::from_utf8_lossy(&tree::text(&value)).into_owned();
                text.replace("\"\\u0001", "").replace("\\u0001\"", "")
            })
        }),
    ),
    wire(
        "driver-rounds-integers",
        &["PD-PAY-12"],
        "Integers of a patch go through 32-bit floats.",
        Rewiring::Block(|block| {
            either_patch(block, |patch| {
                let Some(mut value) = tree::parse(patch.as_bytes()) else { return patch.to_owned() };
                tree::each(&mut value, &tree::round);
                String::from_utf8_lossy(&tree::text(&value)).into_owned()
            })
        }),
    ),
    wire(
        "driver-greets",
        &["PD-OUT-01", "PD-OUT-13"],
        "A line of prose comes before the block.",
        Rewiring::Block(|block| line(&format!("Let me think.\n{block}"))),
    ),
    wire(
        "driver-says-goodbye",
        &["PD-OUT-01", "PD-OUT-13"],
        "A line of prose comes after the block.",
        Rewiring::Block(|block| line(&format!("{block}\nDone."))),
    ),
    wire(
        "driver-fences",
        &["PD-OUT-01"],
        "The block stands in a fence of back-ticks.",
        Rewiring::Block(|block| line(&format!("```\n{block}\n```"))),
    ),
    wire(
        "driver-ends-in-nul",
        &["PD-OUT-01"],
        "A NUL comes after the block.",
        Rewiring::Block(|block| format!("{block}\0").into_bytes()),
    ),
    wire(
        "driver-ends-in-odd-space",
        &["PD-OUT-01"],
        "A no-break space comes after the block.",
        Rewiring::Block(|block| line(&format!("{block}\u{A0}"))),
    ),
    wire(
        "driver-lower-case",
        &["PD-OUT-01", "PD-OUT-02"],
        "A block is in lower case.",
        Rewiring::Block(|block| {
            let tags = ["PICK", "END", "ASK_SUP", "NOOP", "SID"];
            line(&tags.iter().fold(block.to_owned(), |block, tag| {
                block.replace(&format!("<{tag}"), &format!("<{}", tag.to_lowercase()))
            }))
        }),
    ),
    wire(
        "driver-spaced-tags",
        &["PD-OUT-02", "PD-OUT-01"],
        "Tags of a PICK have white space between them.",
        Rewiring::Block(|block| pick(block, |block| block.replacen("><", "> <", 1))),
    ),
    wire(
        "driver-short-sid",
        &["PD-OUT-02"],
        "Leading zeros of a SID are not written.",
        Rewiring::Block(|block| {
            pick(block, |block| {
                let Some((number, rest)) =
                    block.strip_prefix("<PICK><SID").and_then(|rest| rest.split_once('>'))
                else {
                    return block.to_owned();
                };
                let digits = number.trim_start_matches('0');
                format!("<PICK><SID{}>{rest}", if digits.is_empty() { "0" } else { digits })
            })
        }),
    ),
    wire(
        "driver-long-sid",
        &["PD-OUT-02"],
        "A SID has five digits.",
        Rewiring::Block(|block| pick(block, |block| block.replacen("<SID", "<SID0", 1))),
    ),
    wire(
        "driver-no-end",
        &["PD-OUT-01", "PD-OUT-02"],
        "A block has no `<END>`.",
        Rewiring::Block(|block| line(block.trim_end_matches("<END>"))),
    ),
    wire(
        "driver-patch-after-end",
        &["PD-OUT-03", "PD-OUT-01"],
        "A plain patch comes after `<END>`.",
        Rewiring::Block(|block| {
            let inner = block.split_once("<INP>").zip(block.strip_suffix("<END>"));
            line(&inner.map_or(block.to_owned(), |((before, _), block)| {
                format!("{before}<END>{}", &block[before.len()..])
            }))
        }),
    ),
    wire(
        "driver-patch-before-sid",
        &["PD-OUT-03"],
        "A plain patch comes before the SID.",
        Rewiring::Block(|block| patch_before_sid(block, "<INP>")),
    ),
    wire(
        "driver-closes-inp64-as-inp",
        &["PD-OUT-04"],
        "An encoded patch ends in `</INP>`.",
        Rewiring::Block(|block| swap_all(&line(block), "</INP64>", "</INP>")),
    ),
    wire(
        "driver-inp64-before-sid",
        &["PD-OUT-04"],
        "An encoded patch comes before the SID.",
        Rewiring::Block(|block| patch_before_sid(block, "<INP64>")),
    ),
    wire(
        "driver-asks-with-sid",
        &["PD-OUT-05"],
        "ASK_SUP and NOOP carry a SID.",
        Rewiring::Block(|block| no_pick_with(block, "<SID0001>")),
    ),
    wire(
        "driver-asks-with-patch",
        &["PD-OUT-05"],
        "ASK_SUP and NOOP carry a patch.",
        Rewiring::Block(|block| no_pick_with(block, "<INP>{}</INP>")),
    ),
    wire(
        "driver-picks-what-is-not-there",
        &["PD-OUT-06", "PD-LOAD-07"],
        "A SID is picked that the menu does not have.",
        Rewiring::Answer(|payload, answer| {
            let listed = sids(payload);
            let other = (0..10_000).map(|number| format!("SID{number:04}")).find(|sid| !listed.contains(sid));
            match other.filter(|_| answer.is_pick() && listed.len() < 9_000) {
                Some(sid) => Answer::block(&format!("<PICK><{sid}><END>")),
                None => answer,
            }
        }),
    ),
    wire(
        "driver-picks-by-place",
        &["PD-OUT-06", "PD-LOAD-07"],
        "The place in the menu is picked instead of the SID.",
        Rewiring::Answer(|payload, answer| {
            let place = sids(payload).iter().position(|sid| answer.text().contains(sid.as_str()));
            match place.filter(|_| answer.is_pick()) {
                Some(place) => Answer::block(&format!("<PICK><SID{:04}><END>", place + 1)),
                None => answer,
            }
        }),
    ),
    wire(
        "driver-pads",
        &["PD-OUT-07"],
        "65,536 spaces come before the block.",
        Rewiring::Block(|block| line(&format!("{}{block}", " ".repeat(65_536)))),
    ),
    config("driver-long-blocks", &["PD-OUT-07"], "A block may be of any length.", |config| {
        config.limits.policy_stdout_bytes_max = 1 << 30
    }),
    wire(
        "driver-patch-in-array",
        &["PD-OUT-08"],
        "A patch is an array.",
        Rewiring::Block(|block| patch(block, |patch| format!("[{patch}]"))),
    ),
    wire(
        "driver-patch-in-single-quotes",
        &["PD-OUT-08"],
        "A patch is in single quotes.",
        Rewiring::Block(|block| patch(block, |patch| patch.replace('"', "'"))),
    ),
    wire(
        "driver-patch-with-comma",
        &["PD-OUT-08"],
        "A patch has a trailing comma.",
        Rewiring::Block(|block| patch(block, |patch| patch.trim_end_matches('}').to_owned() + ",}")),
    ),
    wire(
        "driver-patch-with-comment",
        &["PD-OUT-08"],
        "A patch has a comment.",
        Rewiring::Block(|block| patch(block, |patch| format!("/* patch */{patch}"))),
    ),
    wire(
        "driver-no-patch",
        &["PD-OUT-08"],
        "A patch is empty.",
        Rewiring::Block(|block| patch(block, |_| String::new())),
    ),
    wire(
        "driver-raw-controls",
        &["PD-OUT-08"],
        "Control characters in strings of a patch are not escaped.",
        Rewiring::Block(|block| {
            patch(block, |patch| patch.replace("\\n", "\n").replace("\\t", "\t").replace("\\u0001", "\u{1}"))
        }),
    ),
    wire(
        "driver-latin1-patch",
        &["PD-OUT-08"],
        "A patch has a byte that is no UTF-8.",
        Rewiring::Block(|block| {
            let text = patch(block, |patch| {
                String::from_utf8_lossy(&with_member(patch.as_bytes(), b"\"u\":\"\x01\"")).into_owned()
            });
            text.iter().map(|byte| if *byte == 1 { 0xE9 } else { *byte }).collect()
        }),
    ),
    wire(
        "driver-closes-patch-twice",
        &["PD-OUT-09"],
        "A second `</INP>` comes after a patch.",
        Rewiring::Block(|block| line(&block.replace("</INP><END>", "</INP></INP><END>"))),
    ),
    wire(
        "driver-cuts-patch",
        &["PD-OUT-09"],
        "A patch ends at the first `</INP>` in a string of it.",
        Rewiring::Block(|block| {
            line(&match block.split_once("</INP>") {
                Some((before, _)) => format!("{before}</INP><END>"),
                None => block.to_owned(),
            })
        }),
    ),
    wire(
        "driver-patch-with-tag",
        &["PD-OUT-09", "PD-OUT-08"],
        "A tag comes after the object of a patch.",
        Rewiring::Block(|block| patch(block, |patch| format!("{patch}<END>"))),
    ),
    wire(
        "driver-shows-goal-in-patch",
        &["PD-OUT-08"],
        "A patch has the goal of its payload in it, as it stands there and without escapes.",
        Rewiring::Answer(|payload, answer| {
            with_goal(payload, answer, |goal| goal.to_lossy().into_owned().into_bytes())
        }),
    ),
    wire(
        "driver-half-pairs-in-patch",
        &["PD-OUT-01", "PD-OUT-08"],
        "A patch has the goal of its payload in it, half a surrogate pair as three bytes.",
        Rewiring::Answer(|payload, answer| {
            with_goal(payload, answer, |goal| {
                let halves = goal.to_lossy().replace('\u{FFFD}', "@");
                let known = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'@';
                let bytes = halves.bytes().filter(known);
                bytes
                    .flat_map(|byte| if byte == b'@' { vec![0xED, 0xA0, 0x80] } else { vec![byte] })
                    .collect()
            })
        }),
    ),
    wire(
        "driver-base64-unpadded",
        &["PD-OUT-10"],
        "An encoded patch has no padding.",
        Rewiring::Block(|block| base64(block, unaligned, |text| text.trim_end_matches('=').to_owned())),
    ),
    wire(
        "driver-base64-of-urls",
        &["PD-OUT-10"],
        "An encoded patch uses the alphabet of URLs.",
        Rewiring::Block(|block| {
            base64(
                block,
                |bytes| *bytes = with_member(bytes, b"\"u\":\"????????>>>>>>>>\""),
                |text| text.replace('+', "-").replace('/', "_"),
            )
        }),
    ),
    wire(
        "driver-base64-in-lines",
        &["PD-OUT-10"],
        "An encoded patch ends in a line feed.",
        Rewiring::Block(|block| base64(block, |_| {}, |text| text + "\n")),
    ),
    wire(
        "driver-base64-with-loose-bits",
        &["PD-OUT-10"],
        "Bits of an encoded patch that are unused are set.",
        Rewiring::Block(|block| {
            base64(block, unaligned, |text| {
                let digits = text.trim_end_matches('=');
                let last = digits.as_bytes().last().map(|last| char::from(last + 1));
                format!("{}{}{}", &digits[..digits.len() - 1], last.unwrap_or('B'), &text[digits.len()..])
            })
        }),
    ),
    wire(
        "driver-base64-of-array",
        &["PD-OUT-10"],
        "An encoded patch is an array.",
        Rewiring::Block(|block| {
            base64(block, |bytes| *bytes = [b"[", bytes.as_slice(), b"]"].concat(), |text| text)
        }),
    ),
    wire(
        "driver-base64-of-latin1",
        &["PD-OUT-10"],
        "An encoded patch is no UTF-8.",
        Rewiring::Block(|block| {
            base64(block, |bytes| *bytes = with_member(bytes, b"\"u\":\"\xE9\""), |text| text)
        }),
    ),
    wire(
        "driver-both-patches",
        &["PD-OUT-11"],
        "A patch comes in both forms.",
        Rewiring::Block(|block| {
            let block = match block.strip_suffix("</INP64><END>") {
                Some(block) => format!("{block}</INP64><INP>{{}}</INP><END>"),
                None => block.replace("</INP><END>", "</INP><INP64>e30=</INP64><END>"),
            };
            line(&block)
        }),
    ),
    wire(
        "driver-two-blocks",
        &["PD-OUT-11", "PD-OUT-01"],
        "A second block follows the first.",
        Rewiring::Block(|block| line(&format!("{block}\n{block}"))),
    ),
    wire(
        "driver-second-pick",
        &["PD-OUT-11"],
        "A PICK says so twice.",
        Rewiring::Block(|block| pick(block, |block| format!("<PICK>{block}"))),
    ),
    wire(
        "driver-second-sid",
        &["PD-OUT-11"],
        "A PICK names its SID twice.",
        Rewiring::Block(|block| {
            pick(block, |block| match block.get(6..15) {
                Some(sid) => block.replacen(sid, &sid.repeat(2), 1),
                None => block.to_owned(),
            })
        }),
    ),
    wire(
        "driver-bom",
        &["PD-OUT-11", "PD-OUT-01"],
        "A byte order mark comes before the block.",
        Rewiring::Block(|block| line(&format!("\u{FEFF}{block}"))),
    ),
    wire(
        "driver-status-after-block",
        &["PD-OUT-12"],
        "The status after a block is 3.",
        Rewiring::Answer(|_, answer| {
            if answer.stdout.is_empty() { answer } else { Answer { end: Action::Exit(3), ..answer } }
        }),
    ),
    wire(
        "driver-status-after-pick",
        &["PD-OUT-12"],
        "The status is the number of the SID.",
        Rewiring::Answer(|_, answer| {
            let number =
                answer.text().strip_prefix("<PICK><SID").and_then(|rest| rest.get(..4)?.parse::<i32>().ok());
            match number {
                Some(number) => Answer { end: Action::Exit(number % 256), ..answer },
                None => answer,
            }
        }),
    ),
    wire(
        "driver-aborts-after-block",
        &["PD-OUT-12"],
        "The driver aborts after its block.",
        Rewiring::Answer(|_, answer| {
            if answer.stdout.is_empty() { answer } else { Answer { end: Action::Abort, ..answer } }
        }),
    ),
];

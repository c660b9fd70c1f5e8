//! Mutants that accept invalid blocks, or refuse valid ones.

use super::super::super::Parts;
use super::super::super::Sid;
use super::super::super::block::{BlockReader, Rules};
use super::super::tree;
use super::rewrite::{
    as_object, careless_base64, comment, number, trailing_comma, trimmed, upper_tags, with_base64,
    with_decoded, with_digits, with_patch, without,
};
use super::{Mutant, Rewiring, wire};
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::{find, has, swap, swap_all};
use crate::mutant::{Inner, machine, parts, wrap};

/// Invalid output, which replaces refused blocks.
const NO_BLOCK: &[u8] = b"<NO>";

/// A mutant that reads another text as the driver's output.
const fn reads(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    rewrite: fn(&[u8]) -> Vec<u8>,
) -> Mutant {
    wire(id, clauses, fault, Rewiring::Output(rewrite))
}

/// A mutant that ignores a driver's output after the first write that ends like a block.
struct Hasty {
    inner: Inner,
    has_heard: bool,
}

impl Machine for Hasty {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::ChildStdout(bytes) = event {
            if self.has_heard {
                return;
            }
            self.has_heard = trimmed(bytes).ends_with(b"<END>");
        }
        let from = actions.len();
        self.inner.handle(event, now, actions);
        if actions[from..].iter().any(|action| matches!(action, Action::Drive(_))) {
            self.has_heard = false;
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    reads("select-noop-as-question", &["PD-GRAM-01"], "NOOP is taken for ASK_SUP.", |text| {
        swap(text, "<NOOP>", "<ASK_SUP>")
    }),
    reads("select-knows-no-question", &["PD-GRAM-01"], "ASK_SUP is no block.", |text| {
        swap(text, "<ASK_SUP>", "<ASK>")
    }),
    reads(
        "select-wants-bare-blocks",
        &["PD-GRAM-02"],
        "No white space may stand around a block but one LF after it.",
        |text| {
            let bare = text.strip_suffix(b"\n").unwrap_or(text);
            if bare.trim_ascii() == bare { text.to_vec() } else { NO_BLOCK.to_vec() }
        },
    ),
    reads(
        "select-trims-a-little",
        &["PD-GRAM-02"],
        "No more than 1,024 bytes of white space are removed.",
        |text| {
            let spaces = text.len() - text.trim_ascii().len();
            if spaces <= 1024 { text.to_vec() } else { NO_BLOCK.to_vec() }
        },
    ),
    reads("select-trims-no-cr", &["PD-GRAM-02"], "A CR around a block is no white space.", |text| {
        let (first, last) = (text.first(), text.trim_ascii_end().len());
        let has_cr = first == Some(&b'\r') || text.get(last..).is_some_and(|end| end.contains(&b'\r'));
        if has_cr { NO_BLOCK.to_vec() } else { text.to_vec() }
    }),
    reads("select-drops-text-before", &["PD-GRAM-04"], "Text before a block is dropped.", |text| {
        text[find(text, "<").unwrap_or(0)..].to_vec()
    }),
    reads("select-drops-text-after", &["PD-GRAM-04"], "Text after the last `<END>` is dropped.", |text| {
        let end = memchr::memmem::rfind(text, b"<END>").map_or(text.len(), |at| at + 5);
        text[..end].to_vec()
    }),
    reads(
        "select-opens-fences",
        &["PD-GRAM-04"],
        "A block in a fence of back-ticks is taken out of it.",
        |text| {
            let inner = trimmed(text).strip_prefix(b"```").and_then(|text| text.strip_suffix(b"```"));
            inner.map_or(text.to_vec(), |inner| inner[find(inner, "<").unwrap_or(0)..].to_vec())
        },
    ),
    reads("select-drops-bom", &["PD-GRAM-04"], "A byte order mark before a block is dropped.", |text| {
        text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).to_vec()
    }),
    reads("select-cuts-at-nul", &["PD-GRAM-04"], "What follows a NUL is dropped.", |text| {
        text[..memchr::memchr(0, text).unwrap_or(text.len())].to_vec()
    }),
    reads(
        "select-trims-unicode",
        &["PD-GRAM-04"],
        "No-break and other spaces of Unicode around a block are removed.",
        |text| {
            let odd = |text: &str| {
                let spaces = |space: char| !space.is_ascii() && space.is_whitespace();
                text.trim_matches(|letter| spaces(letter) || matches!(letter, ' ' | '\t' | '\n' | '\r'))
                    .to_owned()
            };
            std::str::from_utf8(text).map_or(text.to_vec(), |text| odd(text).into_bytes())
        },
    ),
    reads(
        "select-joins-tags",
        &["PD-GRAM-04"],
        "White space between the tags of a block is dropped.",
        |text| {
            let (mut out, mut rest) = (Vec::new(), trimmed(text));
            while let Some(at) = memchr::memchr(b'>', rest) {
                out.extend_from_slice(&rest[..=at]);
                let after = rest[at + 1..].trim_ascii_start();
                rest = if after.starts_with(b"<") { after } else { &rest[at + 1..] };
            }
            [&out, rest].concat()
        },
    ),
    reads("select-spaced-tags", &["PD-GRAM-04"], "White space inside tags is dropped.", |text| {
        let text = swap_all(&swap_all(text, "< ", "<"), " >", ">");
        swap_all(&swap_all(&text, "<\t", "<"), "\n>", ">")
    }),
    reads("select-first-of-two", &["PD-GRAM-05"], "Of two blocks the first is taken.", |text| {
        let end = find(text, "<END>").map_or(text.len(), |at| at + 5);
        let rest = trimmed(&text[end..]);
        let is_block = rest.starts_with(b"<") && rest.ends_with(b"<END>");
        if is_block { text[..end].to_vec() } else { text.to_vec() }
    }),
    reads("select-last-of-two", &["PD-GRAM-05"], "Of two blocks the last is taken.", |text| {
        let whole = trimmed(text);
        let end = whole.strip_suffix(b"<END>").and_then(|rest| memchr::memmem::rfind(rest, b"<END>"));
        let last = end.map_or(whole, |at| trimmed(&whole[at + 5..]));
        if last.starts_with(b"<") { last.to_vec() } else { text.to_vec() }
    }),
    reads("select-equal-blocks", &["PD-GRAM-05"], "A block that is written twice over is taken.", |text| {
        let whole = trimmed(text);
        let half = &whole[..whole.len() / 2];
        let lines: Vec<_> = whole.split(|byte| *byte == b'\n').collect();
        match lines.as_slice() {
            [first, second] if first == second => first.to_vec(),
            _ if whole.len().is_multiple_of(2) && whole.ends_with(half) => half.to_vec(),
            _ => text.to_vec(),
        }
    }),
    reads("select-second-pick", &["PD-GRAM-05"], "A second PICK is overlooked.", |text| {
        swap(text, "<PICK><PICK>", "<PICK>")
    }),
    reads("select-second-sid", &["PD-GRAM-05"], "Of two SIDs the last is taken.", |text| {
        let two = find(text, "<SID").filter(|at| text[at + 9..].starts_with(b"<SID"));
        two.map_or(text.to_vec(), |at| [&text[..at], &text[at + 9..]].concat())
    }),
    reads("select-any-case", &["PD-GRAM-06"], "The letters of tags may be of any case.", upper_tags),
    reads("select-lower-noop", &["PD-GRAM-06"], "`<noop>` is taken for NOOP.", |text| {
        swap(text, "<noop><END>", "<NOOP><END>")
    }),
    reads("select-lower-sid", &["PD-GRAM-06"], "A SID may be written in lower case.", |text| {
        swap(&swap(text, "<sid", "<SID"), "<Sid", "<SID")
    }),
    reads("select-short-sids", &["PD-GRAM-06"], "A SID of fewer than four digits is filled up.", |text| {
        with_digits(text, |digits| {
            (digits.len() < 4 && digits.iter().all(u8::is_ascii_digit)).then(|| number(digits))?
        })
    }),
    reads("select-long-sids", &["PD-GRAM-06"], "A SID of five digits is read as a number.", |text| {
        with_digits(text, |digits| {
            (digits.len() > 4 && digits.iter().all(u8::is_ascii_digit)).then(|| number(digits))?
        })
    }),
    reads(
        "select-signed-sids",
        &["PD-GRAM-06"],
        "A SID may have a sign or a space among its four characters.",
        |text| with_digits(text, |digits| (digits.len() >= 4).then(|| number(digits))?),
    ),
    reads("select-sid-ends-at-nul", &["PD-GRAM-06"], "A SID ends at a NUL.", |text| {
        with_digits(text, |digits| {
            let end = memchr::memchr(0, digits)?;
            std::str::from_utf8(&digits[..end]).ok().map(str::to_owned)
        })
    }),
    reads("select-any-digits", &["PD-GRAM-06"], "Digits of any script make a SID.", |text| {
        with_digits(text, |digits| {
            let plain = |letter: char| match letter {
                '\u{660}'..='\u{669}' => char::from_digit(u32::from(letter) - 0x660, 10),
                '\u{966}'..='\u{96F}' => char::from_digit(u32::from(letter) - 0x966, 10),
                '\u{FF10}'..='\u{FF19}' => char::from_digit(u32::from(letter) - 0xFF10, 10),
                other => Some(other),
            };
            std::str::from_utf8(digits).ok()?.chars().map(plain).collect()
        })
    }),
    reads("select-ends-by-itself", &["PD-GRAM-06"], "`<END>` may be missing.", |text| {
        if has(text, "<END>") { text.to_vec() } else { [trimmed(text), b"<END>"].concat() }
    }),
    reads("select-closes-at-slash", &["PD-GRAM-06"], "`</END>` ends a block too.", |text| {
        swap(text, "</END>", "<END>")
    }),
    reads(
        "select-knows-other-names",
        &["PD-GRAM-06"],
        "`<ASK>`, `<NO_OP>` and `<SELECT>` are taken for what they mean.",
        |text| {
            let text = swap(&swap(text, "<ASK>", "<ASK_SUP>"), "<NO_OP>", "<NOOP>");
            swap(&swap(&text, "<SELECT>", "<PICK>"), "<ASKSUP>", "<ASK_SUP>")
        },
    ),
    wire(
        "select-unknown-sid",
        &["PD-GRAM-07", "PD-SELN-02"],
        "A PICK of a SID that is not in the menu is taken.",
        Rewiring::Request(|request| {
            (0..10_000_u16).filter_map(|number| Sid::parse(format!("SID{number:04}").as_bytes())).for_each(
                |sid| {
                    request.menu.add(sid);
                },
            );
        }),
    ),
    wire(
        "select-lists-sids-carelessly",
        &["PD-GRAM-07", "PD-SELN-02"],
        "A SID of the menu is in any case, with blanks around it.",
        Rewiring::Line(|line| {
            tree::edited(line, |members| {
                let Some(Value::Array(entries)) = tree::get(members, "menu") else { return };
                for entry in entries {
                    let Value::Object(members) = entry else { continue };
                    let Some(sid) = tree::get(members, "sid") else { continue };
                    *sid = sid.as_str().unwrap_or_default().trim().to_uppercase().as_str().into();
                }
            })
        }),
    ),
    wire(
        "select-neighbouring-sid",
        &["PD-GRAM-07", "PD-SELN-02"],
        "A PICK of the SID after the last of the menu is taken.",
        Rewiring::Request(|request| {
            let listed = |sid: &Sid| request.menu.lists(*sid);
            let sids =
                (1..10_000_u16).rev().filter_map(|number| Sid::parse(format!("SID{number:04}").as_bytes()));
            let mut next = None;
            for sid in sids {
                if listed(&sid) {
                    break;
                }
                next = Some(sid);
            }
            if let Some(next) = next {
                request.menu.add(next);
            }
        }),
    ),
    reads(
        "select-first-close",
        &["PD-GRAM-08"],
        "A patch ends at the first `</INP>`, in a string too.",
        |text| {
            if memchr::memmem::find_iter(text, b"</INP>").count() > 1 {
                NO_BLOCK.to_vec()
            } else {
                text.to_vec()
            }
        },
    ),
    reads(
        "select-first-end",
        &["PD-GRAM-08"],
        "A block ends at the first `<END>`, in a string too.",
        |text| text[..find(text, "<END>").map_or(text.len(), |at| at + 5)].to_vec(),
    ),
    reads(
        "select-sees-inp64-in-strings",
        &["PD-GRAM-08"],
        "`<INP64>` in a string is taken for a second patch.",
        |text| {
            if has(text, "<INP>") && has(text, "<INP64>") { NO_BLOCK.to_vec() } else { text.to_vec() }
        },
    ),
    reads(
        "select-loses-count-of-quotes",
        &["PD-GRAM-08"],
        "After an escaped quote `</INP>` in a string ends the patch.",
        |text| {
            let close = find(text, "</INP>").unwrap_or(text.len());
            let escaped = find(&text[..close], "\\\"").is_some();
            let more = memchr::memmem::find_iter(text, b"</INP>").count() > 1;
            if escaped && more { NO_BLOCK.to_vec() } else { text.to_vec() }
        },
    ),
    reads(
        "select-wants-bare-patches",
        &["PD-GRAM-09"],
        "White space around the object of a patch is refused.",
        |text| {
            with_patch(text, |patch| if patch.trim_ascii() == patch { patch.to_vec() } else { b"!".to_vec() })
        },
    ),
    reads("select-refuses-empty-patch", &["PD-GRAM-09"], "A patch without keys is invalid.", |text| {
        with_patch(text, |patch| if trimmed(patch) == b"{}" { b"!".to_vec() } else { patch.to_vec() })
    }),
    reads(
        "select-drops-empty-patch",
        &["PD-GRAM-09", "PD-SELN-03"],
        "A patch without keys is no patch.",
        |text| swap(text, "<INP>{}</INP>", ""),
    ),
    reads(
        "select-takes-arrays",
        &["PD-GRAM-10"],
        "A patch that is an array is taken for an empty one.",
        |text| with_patch(text, |patch| as_object(patch, |value| value.as_array().is_some())),
    ),
    reads("select-takes-null", &["PD-GRAM-10"], "A patch that is null is taken for an empty one.", |text| {
        with_patch(text, |patch| as_object(patch, |value| *value == Value::Null))
    }),
    reads(
        "select-takes-no-patch",
        &["PD-GRAM-10"],
        "A patch of nothing is taken for an empty one.",
        |text| {
            with_patch(text, |patch| if trimmed(patch).is_empty() { b"{}".to_vec() } else { patch.to_vec() })
        },
    ),
    reads(
        "select-takes-strings",
        &["PD-GRAM-10"],
        "A patch that is a string is taken for what the string holds.",
        |text| {
            with_patch(text, |patch| match tree::parse(patch).as_ref().and_then(Value::as_str) {
                Some(inner) => inner.as_bytes().to_vec(),
                None => patch.to_vec(),
            })
        },
    ),
    reads(
        "select-takes-numbers",
        &["PD-GRAM-10"],
        "A patch that is a number or a truth value is taken for an empty one.",
        |text| {
            with_patch(text, |patch| {
                as_object(patch, |value| matches!(value, Value::Number(_) | Value::Bool(_)))
            })
        },
    ),
    reads("select-single-quotes", &["PD-GRAM-10"], "A patch in single quotes is taken.", |text| {
        with_patch(text, |patch| if has(patch, "\"") { patch.to_vec() } else { swap_all(patch, "'", "\"") })
    }),
    reads("select-comments-in-patches", &["PD-GRAM-10"], "Comments in a patch are skipped.", |text| {
        with_patch(text, |patch| without(patch, comment))
    }),
    reads(
        "select-trailing-commas",
        &["PD-GRAM-10"],
        "A comma before the end of an object is skipped.",
        |text| with_patch(text, |patch| without(patch, trailing_comma)),
    ),
    reads("select-not-a-number", &["PD-GRAM-10"], "NaN and Infinity in a patch are read as null.", |text| {
        with_patch(text, |patch| {
            ["NaN", "-Infinity", "Infinity"].iter().fold(patch.to_vec(), |patch, word| {
                if has(&patch, &format!("\"{word}")) { patch } else { swap_all(&patch, word, "null") }
            })
        })
    }),
    reads(
        "select-leading-zeros",
        &["PD-GRAM-10"],
        "Leading zeros of numbers in a patch are skipped.",
        |text| {
            with_patch(text, |patch| {
                let mut before = b':';
                let mut out = Vec::new();
                for (at, byte) in patch.iter().enumerate() {
                    let starts = matches!(before, b':' | b' ' | b',' | b'[' | b'-');
                    let goes_on = patch.get(at + 1).is_some_and(u8::is_ascii_digit);
                    if !(*byte == b'0' && starts && goes_on) {
                        out.push(*byte);
                        before = *byte;
                    }
                }
                out
            })
        },
    ),
    reads(
        "select-raw-controls",
        &["PD-GRAM-10"],
        "Raw control characters in strings of a patch are taken.",
        |text| {
            with_patch(text, |patch| {
                let bad = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
                let patch: Vec<u8> = patch.iter().copied().filter(|byte| !bad(byte)).collect();
                if tree::parse(&patch).is_some() {
                    return patch;
                }
                patch.iter().map(|byte| if *byte < b' ' { b' ' } else { *byte }).collect()
            })
        },
    ),
    reads(
        "select-bytes-after-patch",
        &["PD-GRAM-10"],
        "What follows the object of a patch is dropped.",
        |text| {
            with_patch(text, |patch| {
                let ends = memchr::memchr_iter(b'}', patch).map(|at| &patch[..=at]);
                ends.into_iter().find(|part| tree::parse(part).is_some()).unwrap_or(patch).to_vec()
            })
        },
    ),
    reads(
        "select-patch-not-utf8",
        &["PD-GRAM-10"],
        "Bytes of a patch that are no UTF-8 are replaced.",
        |text| String::from_utf8_lossy(text).into_owned().into_bytes(),
    ),
    reads("select-bare-names", &["PD-GRAM-10"], "Names of members without quotes are taken.", |text| {
        with_patch(text, |patch| {
            let Some(name) =
                patch.strip_prefix(b"{").and_then(|rest| rest.split(|byte| *byte == b':').next())
            else {
                return patch.to_vec();
            };
            let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_alphanumeric);
            if !is_name {
                return patch.to_vec();
            }
            [b"{\"", name, b"\"", &patch[1 + name.len()..]].concat()
        })
    }),
    reads(
        "select-closes-objects",
        &["PD-GRAM-10"],
        "A patch whose object is not closed is closed.",
        |text| {
            with_patch(text, |patch| {
                let closed = [patch, b"}"].concat();
                if tree::parse(patch).is_none() && tree::parse(&closed).is_some() {
                    closed
                } else {
                    patch.to_vec()
                }
            })
        },
    ),
    reads("select-both-patches", &["PD-GRAM-11"], "Of both patches the plain one is taken.", |text| {
        let from = find(text, "</INP><INP64>").map(|at| at + 6);
        let to = find(text, "</INP64>").map(|at| at + 8);
        match (from, to) {
            (Some(from), Some(to)) if from < to => [&text[..from], &text[to..]].concat(),
            _ => text.to_vec(),
        }
    }),
    reads(
        "select-patch-twice",
        &["PD-GRAM-11"],
        "Of two plain patches the first is taken.",
        |text| match find(text, "</INP><INP>") {
            Some(at) => [&text[..at], b"</INP><END>"].concat(),
            None => text.to_vec(),
        },
    ),
    reads("select-closes-patches", &["PD-GRAM-11"], "A patch that is not closed is closed.", |text| {
        if has(text, "<INP>") && !has(text, "</INP>") {
            swap(text, "<END>", "</INP><END>")
        } else if has(text, "<INP64>") && !has(text, "</INP64>") {
            swap(text, "<END>", "</INP64><END>")
        } else {
            text.to_vec()
        }
    }),
    reads("select-patched-question", &["PD-GRAM-11"], "A patch in ASK_SUP or NOOP is overlooked.", |text| {
        ["<ASK_SUP>", "<NOOP>"].iter().fold(text.to_vec(), |text, tag| {
            let bare = [tag.as_bytes(), b"<END>"].concat();
            if trimmed(&text).starts_with(format!("{tag}<INP").as_bytes()) { bare } else { text }
        })
    }),
    reads(
        "select-swapped-close",
        &["PD-GRAM-06", "PD-GRAM-11"],
        "`</INP>` ends an encoded patch too.",
        |text| if has(text, "<INP64>") { swap(text, "</INP><END>", "</INP64><END>") } else { text.to_vec() },
    ),
    reads("select-no-base64", &["PD-GRAM-12"], "Encoded patches are not understood.", |text| {
        swap(text, "<INP64>", "<INP6>")
    }),
    reads(
        "select-base64-without-padding",
        &["PD-GRAM-12"],
        "Base64 whose length needs padding is refused.",
        |text| {
            with_base64(text, |base64| if base64.ends_with(b"=") { b"!".to_vec() } else { base64.to_vec() })
        },
    ),
    reads("select-base64-of-letters", &["PD-GRAM-12"], "Base64 with `+` or `/` is refused.", |text| {
        with_base64(text, |base64| {
            let has_sign = base64.iter().any(|byte| matches!(byte, b'+' | b'/'));
            if has_sign { b"!".to_vec() } else { base64.to_vec() }
        })
    }),
    reads(
        "select-base64-with-anything",
        &["PD-GRAM-14"],
        "What is no base64 is skipped in an encoded patch.",
        |text| with_base64(text, careless_base64),
    ),
    reads(
        "select-base64-of-arrays",
        &["PD-GRAM-14"],
        "An encoded patch that is an array or null is taken for an empty one.",
        |text| with_decoded(text, |bytes| as_object(&bytes, |value| value.as_object().is_none())),
    ),
    reads(
        "select-base64-not-utf8",
        &["PD-GRAM-14"],
        "Bytes of an encoded patch that are no UTF-8 are replaced.",
        |text| with_decoded(text, |bytes| String::from_utf8_lossy(&bytes).into_owned().into_bytes()),
    ),
    reads(
        "select-base64-of-nothing",
        &["PD-GRAM-14"],
        "An encoded patch of nothing is taken for an empty one.",
        |text| swap(text, "<INP64></INP64>", "<INP64>e30=</INP64>"),
    ),
    reads(
        "select-base64-of-loose-json",
        &["PD-GRAM-14"],
        "An encoded patch with comments or trailing commas is taken.",
        |text| with_decoded(text, |bytes| without(&without(&bytes, comment), trailing_comma)),
    ),
    wire(
        "select-unescapes-entities-of-drivers",
        &["PD-SEL-17"],
        "`&amp;` in what a driver wrote becomes an ampersand.",
        Rewiring::Output(|stdout| swap_all(stdout, "&amp;", "&")),
    ),
    parts("select-flat-patches", &["PD-GRAM-16"], "A patch may have 63 levels.", |config, parts| {
        let rules = Parts::rules(config);
        parts.blocks = Box::new(BlockReader::new(Rules { nesting_max: 63, ..rules }));
    }),
    machine(
        "select-hears-no-more",
        &["PD-GRAM-17"],
        "What a driver writes after a write that ended with `<END>` is not looked at.",
        |inner| Box::new(Hasty { inner, has_heard: false }),
    ),
    machine(
        "select-trims-each-write",
        &["PD-GRAM-17"],
        "White space at the ends of each write of a driver is dropped.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildStdout(bytes) if !trimmed(bytes).is_empty() => {
                    inner.handle(Event::ChildStdout(trimmed(bytes)), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    machine(
        "select-decodes-each-write",
        &["PD-GRAM-17"],
        "Each write of a driver is decoded by itself, and what is cut becomes U+FFFD.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildStdout(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    inner.handle(Event::ChildStdout(text.as_bytes()), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
];

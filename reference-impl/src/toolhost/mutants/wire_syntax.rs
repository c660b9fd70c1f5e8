//! Mutants whose decoder accepts invalid JSON, or refuses valid JSON.

use super::Mutant;
use super::wire::{Memory, Pass, line, replaced};
use super::wire_edit::*;
use crate::mutant::text::{has, swap_all};

/// Request that succeeds in the current mode.
fn plain(memory: &Memory) -> Pass {
    Pass::Replace(if memory.run_mode {
        b"{}".to_vec()
    } else {
        b"{\"aid\":\"AID.PEERPROOF.ANY.v1\"}".to_vec()
    })
}

/// Mutants of this seam in syntax.
pub(crate) const SYNTAX_MUTANTS: &[Mutant] = &[
    incoming(
        "takes-plain-text",
        &["TH-JSON-01"],
        "A sentence is run as an empty request.",
        |memory, text| {
            let sentence = text.first().is_some_and(u8::is_ascii_alphabetic) && !text.contains(&b'{');
            if sentence { plain(memory) } else { Pass::Forward }
        },
    ),
    incoming("takes-extra-commas", &["TH-JSON-01"], "Commas too many are ignored.", |_, text| {
        swaps_between(text, &[(",,", ","), ("{,", "{"), (",]", "]")])
    }),
    incoming("takes-commas-for-colons", &["TH-JSON-01"], "A comma after a name is a colon.", |_, text| {
        replaced(text, swap_all(text, "\"input_json\",", "\"input_json\":"))
    }),
    incoming("takes-bare-names", &["TH-JSON-01"], "Names need no quotes.", |_, text| {
        swaps_between(text, &[(",x:", ",\"x\":"), ("{n:", "{\"n\":")])
    }),
    incoming("takes-comments", &["TH-JSON-01"], "Comments are white space.", |_, text| {
        between(text, |part| {
            let part = String::from_utf8_lossy(part).into_owned();
            let part = match (part.find("/*"), part.find("*/")) {
                (Some(from), Some(to)) => format!("{}{}", &part[..from], &part[to + 2..]),
                _ => part,
            };
            let end = part.find("//").or_else(|| part.find('#')).unwrap_or(part.len());
            part.as_bytes()[..end].to_vec()
        })
    }),
    incoming(
        "closes-what-is-open",
        &["TH-JSON-01", "TH-RUN-01"],
        "Brackets and strings that are open at the end are closed.",
        |_, text| {
            let mut out = text.to_vec();
            let mut open = Vec::new();
            let parts = cut(text);
            for (literal, part) in &parts {
                for byte in part.iter().filter(|_| !literal) {
                    match byte {
                        b'{' => open.push(b'}'),
                        b'[' => open.push(b']'),
                        b'}' | b']' => drop(open.pop()),
                        _ => {}
                    }
                }
            }
            if let [.., (true, last), (_, b"")] = parts.as_slice()
                && (last.len() < 2 || !last.ends_with(b"\""))
            {
                if out.last() == Some(&b'\\') {
                    out.pop();
                }
                out.push(b'"');
            }
            out.extend(open.iter().rev());
            replaced(text, out)
        },
    ),
    incoming("takes-other-literals", &["TH-JSON-01"], "True and undefined are literals too.", |_, text| {
        swaps_between(text, &[("True", "true"), ("False", "false"), ("undefined", "null")])
    }),
    incoming("takes-unknown-escapes", &["TH-JSON-01"], "An unknown escape is its character.", |_, text| {
        swaps(text, &[("\"\\q", "\"q"), ("\"\\x", "\"x")])
    }),
    incoming("takes-other-spaces", &["TH-JSON-01"], "Form feeds and the like are white space.", |_, text| {
        swaps_between(text, &[("\u{b}", " "), ("\u{c}", " "), ("\u{a0}", " ")])
    }),
    incoming("takes-leading-zeros", &["TH-JSON-02"], "Leading zeros are skipped.", |_, text| {
        swaps_between(text, &[(":01", ":1"), (":-01", ":-1"), (":00", ":0")])
    }),
    incoming("takes-any-sign", &["TH-JSON-02"], "A plus sign or two signs are skipped.", |_, text| {
        swaps_between(text, &[(":+", ":"), (":--", ":"), (":-}", ":0}")])
    }),
    incoming("takes-loose-dots", &["TH-JSON-02"], "A dot or exponent needs no digits.", |_, text| {
        swaps_between(text, &[(":.", ":0."), (":-.", ":-0."), ("1.}", "1}"), ("1.e", "1e"), (":1e}", ":1}")])
    }),
    incoming("takes-other-notations", &["TH-JSON-02"], "0x10 and 1_000 are numbers.", |_, text| {
        swaps_between(text, &[("0x10", "16"), ("1_000", "1000")])
    }),
    incoming("ignores-bytes-after", &["TH-JSON-04"], "What follows is not decoded.", |_, text| {
        match first_object(text) {
            Some(end) if std::str::from_utf8(&text[end..]).is_err() => Pass::Replace(text[..end].to_vec()),
            _ => Pass::Forward,
        }
    }),
    incoming("takes-utf16", &["TH-JSON-04"], "A request may come in UTF-16.", |memory, text| {
        if memory.run_mode && text.starts_with(b"\xff\xfe") { plain(memory) } else { Pass::Forward }
    }),
    outgoing("wraps-at-31-bits", &["TH-JSON-12"], "2^31 comes back negative.", |_, reply| {
        line(swap_all(reply, ":2147483648", ":-2147483648"))
    }),
    incoming("skips-dots", &["TH-JSON-14"], "The dot of 1.0 is skipped.", |_, text| {
        swaps(text, &[("\\\":1.0}", "\\\":10}"), ("\\\":10e-1}", "\\\":10e-10}")])
    }),
    incoming("cuts-fractions", &["TH-JSON-14"], "Fractions are cut off.", |_, text| {
        swaps(text, &[("\\\":0.5", "\\\":0"), ("\\\":-0.25", "\\\":0")])
    }),
    incoming("wants-plain-sizes", &["TH-JSON-14"], "A `size_bytes` of 2.0 or 2e0 is refused.", |_, text| {
        refusing(has(text, "\"size_bytes\":2.0") || has(text, "\"size_bytes\":2e0"))
    }),
    incoming("refuses-carriage-returns", &["TH-JSON-14"], "A CR between tokens is refused.", |_, text| {
        refusing(any_between(text.strip_suffix(b"\r").unwrap_or(text), |byte| byte == b'\r'))
    }),
    incoming(
        "drops-carriage-returns",
        &["TH-SERVE-01"],
        "Every CR of a request is dropped, in strings as well.",
        |_, text| Pass::Replace(swap_all(text, "\r", "")),
    ),
    incoming("compares-raw-names", &["TH-JSON-14"], "A name with escapes is unknown.", |_, text| {
        literals(text, |literal, is_name| {
            if is_name && literal.contains(&b'\\') { b"\"unknown\"".to_vec() } else { literal.to_vec() }
        })
    }),
    incoming("keeps-raw-values", &["TH-JSON-14"], "A value of escapes only is not decoded.", |_, text| {
        literals(text, |literal, is_name| {
            let raw = !is_name && literal.starts_with(b"\"\\u00");
            if raw { swap_all(literal, "\\", "\\\\") } else { literal.to_vec() }
        })
    }),
    incoming("loses-short-escapes", &["TH-JSON-14"], "\\b and \\f are dropped.", |_, text| {
        swaps(text, &[("\\\\b\\\\f", "")])
    }),
];

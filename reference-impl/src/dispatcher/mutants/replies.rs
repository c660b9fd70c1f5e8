//! Mutants that read replies too narrowly, or supervise their toolhost badly.

use super::{Filter, Mutant, filtered, printed, retyped, started_by};
use crate::json::{BigNumbers, DuplicateKeys, LoneSurrogates, Policy, Value};
use crate::machine::Action;
use crate::mutant::config;
use crate::mutant::text::{has, swap, swap_all};

/// Members of a reply that the mutant `dispatch-wants-known-members` accepts.
const KNOWN: [&str; 6] = ["ok", "status", "output_json", "error", "ds_state", "idempotent_hit"];

/// Replaces a reply by unreadable bytes if `bad`.
fn spoil(bytes: &mut Vec<u8>, bad: bool) -> bool {
    if bad {
        *bytes = b"unreadable".to_vec();
    }
    true
}

fn value(bytes: &[u8]) -> Option<Value> {
    let policy = Policy {
        duplicate_keys: DuplicateKeys::Last,
        lone_surrogates: LoneSurrogates::Echo,
        big_numbers: BigNumbers::Exact,
    };
    Value::parse(bytes, 128, &policy).ok()
}

/// The mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    filtered(
        "dispatch-wants-order",
        &["TH-DISP-09"],
        "The members of a reply have to come in the order of the document.",
        Filter::Event(|_, bytes| {
            let bad = value(bytes).is_some_and(|reply| {
                let members = reply.as_object().unwrap_or_default();
                let place = |name: &[u8]| KNOWN.iter().position(|known| known.as_bytes() == name);
                let places: Vec<usize> =
                    members.iter().filter_map(|(name, _)| place(name.as_bytes())).collect();
                !places.is_sorted()
            });
            spoil(bytes, bad)
        }),
    ),
    filtered(
        "dispatch-wants-compact-replies",
        &["TH-DISP-09"],
        "White space around a reply or between its tokens is refused.",
        Filter::Event(|_, bytes| {
            let mut in_string = false;
            let mut escaped = false;
            let mut bad = false;
            for byte in bytes.iter() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b' ' | b'\t' | b'\r' | b'\n' => bad |= !in_string,
                    _ => {}
                }
            }
            spoil(bytes, bad)
        }),
    ),
    filtered(
        "dispatch-wants-raw-text",
        &["TH-DISP-09"],
        "A reply with escaped letters is refused.",
        Filter::Event(|_, bytes| {
            let bad = bytes.windows(4).any(|four| four == b"\\u00");
            spoil(bytes, bad)
        }),
    ),
    filtered(
        "dispatch-wants-plain-numbers",
        &["TH-DISP-09"],
        "A reply with a number that has an exponent or a fraction is refused.",
        Filter::Event(|_, bytes| {
            let part_of_number = |byte: u8| byte.is_ascii_digit();
            let bad = bytes.windows(3).any(|three| {
                part_of_number(three[0])
                    && matches!(three[1], b'.' | b'e' | b'E')
                    && (part_of_number(three[2]) || matches!(three[2], b'+' | b'-'))
            });
            spoil(bytes, bad)
        }),
    ),
    filtered(
        "dispatch-wants-known-members",
        &["TH-DISP-09"],
        "A reply with a member of no meaning is refused.",
        Filter::Event(|_, bytes| {
            let bad = value(bytes).is_some_and(|reply| {
                let members = reply.as_object().unwrap_or_default();
                members.iter().any(|(name, _)| !KNOWN.contains(&&*name.to_lossy()))
            });
            spoil(bytes, bad)
        }),
    ),
    config(
        "dispatch-nests-to-32",
        &["TH-DISP-09"],
        "More than 32 levels of nesting are refused.",
        |config| config.limits.nesting_max = 32,
    ),
    config("dispatch-limit-of-a-million", &["TH-DISP-19"], "The limit is 1,000,000 bytes.", |config| {
        config.limits.toolhost_stdout_bytes_max = 1_000_000
    }),
    config(
        "dispatch-gives-up-early",
        &["TH-DISP-12"],
        "A quarter of MACHINA_TOOLHOST_TIMEOUT counts.",
        |config| config.limits.toolhost_timeout_ms /= 4,
    ),
    printed("dispatch-crash-as-exception", &["TH-DISP-17"], "A crash is an exception.", |action| {
        retyped(action, "crash", "exception")
    }),
    printed("dispatch-reads-stderr-only", &["TH-DISP-28"], "stderr is read instead of stdout.", |action| {
        started_by(action, "exec \"$@\" 2>&1 >/dev/null")
    }),
    printed(
        "dispatch-leaves-descendants",
        &["TH-DISP-15", "TH-DISP-30"],
        "What is left of the toolhost's descendants lives on.",
        |action| if action == Action::Kill { Vec::new() } else { vec![action] },
    ),
    // Faults in reading names, words and texts.
    reread("dispatch-trims-status", &["TH-DISP-26"], "`OK ` counts as the status OK.", |bytes| {
        swap(bytes, "\"status\":\"OK \"", "\"status\":\"OK\"")
    }),
    reread("dispatch-reads-the-begin-of-status", &["TH-DISP-26"], "`OKAY` counts as OK.", |bytes| {
        swap(bytes, "\"status\":\"OKAY\"", "\"status\":\"OK\"")
    }),
    reread("dispatch-unwraps-ok", &["TH-DISP-26"], "`ok:[true]` counts as `ok:true`.", |bytes| {
        swap(bytes, "\"ok\":[true]", "\"ok\":true")
    }),
    reread("dispatch-reads-ok-in-capitals", &["TH-DISP-26"], "`OK` counts as `ok`.", |bytes| {
        if has(bytes, "\"ok\":") { bytes.to_vec() } else { swap(bytes, "\"OK\":true", "\"ok\":true") }
    }),
    reread(
        "dispatch-reads-names-in-any-case",
        &["TH-DISP-09"],
        "The last of `ok` and `OK` counts.",
        |bytes| {
            if has(bytes, "\"OK\":false") {
                swap(bytes, "\"ok\":true", "\"ok\":false")
            } else {
                bytes.to_vec()
            }
        },
    ),
    reread("dispatch-reads-output-in-capitals", &["TH-DISP-27"], "`OUTPUT_JSON` is the output.", |bytes| {
        if has(bytes, "\"output_json\":") {
            bytes.to_vec()
        } else {
            swap(bytes, "\"OUTPUT_JSON\":", "\"output_json\":")
        }
    }),
    reread(
        "dispatch-unwraps-output",
        &["TH-DISP-27"],
        "An array around `output_json` does not count.",
        |bytes| swap(bytes, "\"output_json\":[\"{}\"]", "\"output_json\":\"{}\""),
    ),
    reread("dispatch-takes-a-comma-in-output", &["TH-DISP-27"], "A trailing comma is left out.", |bytes| {
        swap(bytes, "1,}\"", "1}\"")
    }),
    reread("dispatch-takes-a-tripped-breaker", &["TH-DISP-24"], "BREAKER_TRIP counts as OK.", |bytes| {
        if !has(bytes, "BREAKER_TRIP") || has(bytes, "\"ok\":true") {
            return bytes.to_vec();
        }
        swap(&swap(bytes, "\"ok\":false", "\"ok\":true"), "BREAKER_TRIP", "OK")
    }),
    filtered(
        "dispatch-wants-fresh-replies",
        &["TH-DISP-09"],
        "A reply with `idempotent_hit` is refused.",
        Filter::Event(|_, bytes| {
            let bad = has(bytes, "\"idempotent_hit\":true");
            spoil(bytes, bad)
        }),
    ),
    filtered(
        "dispatch-reads-lines",
        &["TH-DISP-08"],
        "U+0085 ends a line of the reply.",
        Filter::Event(|_, bytes| {
            let bad = has(bytes, "\u{85}");
            spoil(bytes, bad)
        }),
    ),
    reread("dispatch-unescapes-output", &["TH-DISP-08"], "`&lt;` of an output is printed as `<`.", |bytes| {
        swap_all(bytes, "&lt;", "<")
    }),
    reread("dispatch-folds-names", &["TH-DISP-08"], "Names that differ in case alone are one.", |bytes| {
        swap_all(bytes, "\\\"ID\\\"", "\\\"id\\\"")
    }),
    reread("dispatch-wraps-at-64-bits", &["TH-DISP-08"], "2^63 of an output is printed as -2^63.", |bytes| {
        swap(bytes, "[9223372036854775808]", "[-9223372036854775808]")
    }),
    printed("dispatch-unescapes-detail", &["TH-DISP-25"], "`detail` has `<` for `&lt;`.", |action| {
        match action {
            Action::Stdout(bytes) if bytes.starts_with(b"{\"error\":true") => {
                vec![Action::Stdout(swap_all(&bytes, "&lt;", "<"))]
            }
            other => vec![other],
        }
    }),
    resent("dispatch-unescapes-inputs", &["TH-DISP-04"], "`&amp;` of the inputs is sent as `&`.", |bytes| {
        swap_all(bytes, "&amp;", "&")
    }),
    resent(
        "dispatch-folds-names-of-inputs",
        &["TH-DISP-04"],
        "`ID` of the inputs is sent as `id`.",
        |bytes| swap_all(bytes, "ID\":4", "id\":4"),
    ),
    resent("dispatch-wraps-inputs-at-64-bits", &["TH-DISP-04"], "2^63 is sent as -2^63.", |bytes| {
        swap(bytes, ":9223372036854775808", ":-9223372036854775808")
    }),
    filtered(
        "dispatch-drops-what-follows-a-pause",
        &["TH-DISP-09"],
        "What a toolhost writes after a second of silence is lost.",
        Filter::Hasty(false),
    ),
    filtered(
        "dispatch-wants-the-end-at-once",
        &["TH-DISP-09"],
        "A toolhost that lives for a second after its reply counts as crashed.",
        Filter::Hasty(true),
    ),
    printed(
        "dispatch-keeps-requests-in-a-file",
        &["TH-DISP-05"],
        "The request is kept in a file beside the toolhost, which another call overwrites.",
        |action| {
            started_by(
                action,
                "f=\"${1%/*}/request\"; cat >\"$f\"; sleep 0.5; exec <\"$f\"; rm -f \"$f\"; exec \"$@\"",
            )
        },
    ),
];

/// A mutant that reads another text as the reply.
const fn reread(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    edit: fn(&[u8]) -> Vec<u8>,
) -> Mutant {
    filtered(id, clauses, fault, Filter::Reread(edit))
}

/// A mutant that sends another text as the request.
const fn resent(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    edit: fn(&[u8]) -> Vec<u8>,
) -> Mutant {
    filtered(id, clauses, fault, Filter::Resent(edit))
}

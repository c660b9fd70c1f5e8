//! Mutants that read replies too narrowly, or watch their toolhost badly.

use super::{Filter, Mutant, filtered, printed, retyped, started_by};
use crate::json::{BigNumbers, DuplicateKeys, LoneSurrogates, Policy, Value};
use crate::machine::Action;
use crate::mutant::config;

/// Members that a reply may have for `dispatch-wants-known-members`.
const KNOWN: [&str; 6] = ["ok", "status", "output_json", "error", "ds_state", "idempotent_hit"];

/// Replaces a reply that `bad` picks by one that no reader takes.
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
];

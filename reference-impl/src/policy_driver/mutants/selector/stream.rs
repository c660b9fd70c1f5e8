//! Mutants with a fault in the stream of lines: framing, order, refusals, end.

use super::super::tree::{self, edited, get, members, put, take};
use super::selections::retold;
use super::{Mutant, Rewiring, wire};
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::{find, has, swap_all};
use crate::mutant::{self, Inner, config, machine, wrap};

/// An invalid request.
const NO_REQUEST: &[u8] = b"!";

/// Members of a request in the order of the documents.
const KNOWN: [&str; 5] = ["goal_digest", "state_digest", "control_mode", "inputs", "menu"];

/// True if a Selection answers a malformed line.
fn is_refusal(line: &[u8]) -> bool {
    has(line, "\"INVALID\"") && has(line, "\"malformed request")
}

/// A machine that counts Selections.
struct Counted {
    inner: Inner,
    /// Number of Selections so far.
    selections: usize,
    /// Edits a Selection, given its number from 1.
    change: fn(usize, Vec<u8>, &mut Vec<Action>),
}

impl Machine for Counted {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.handle(event, now, &mut inner);
        for action in inner {
            match action {
                Action::Stdout(line) => {
                    self.selections += 1;
                    (self.change)(self.selections, line, actions);
                }
                other => actions.push(other),
            }
            if matches!(actions.last(), Some(Action::Exit(_))) {
                return;
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

fn counted(inner: Inner, change: fn(usize, Vec<u8>, &mut Vec<Action>)) -> Inner {
    Box::new(Counted { inner, selections: 0, change })
}

/// Edits the tree of a payload.
fn in_payload(payload: &mut Vec<u8>, change: &dyn Fn(&mut Value)) {
    if let Some(mut value) = tree::parse(payload) {
        tree::each(&mut value, change);
        *payload = tree::text(&value);
    }
}

fn in_strings(value: &mut Value, change: impl Fn(&str) -> String) {
    if let Some(text) = value.as_str() {
        let changed = change(text);
        *value = changed.as_str().into();
    }
}

/// Edits the members of each entry of the menu.
fn each_entry(line: &[u8], change: &dyn Fn(&mut tree::Members)) -> Vec<u8> {
    edited(line, |members| {
        let Some(Value::Array(entries)) = get(members, "menu") else { return };
        for entry in entries {
            if let Value::Object(entry) = entry {
                change(entry);
            }
        }
    })
}

/// Replaces a member of a wrong type by `instead`.
fn repaired(line: &[u8], name: &str, is_right: fn(&Value) -> bool, instead: Value) -> Vec<u8> {
    edited(line, |members| {
        if let Some(value) = get(members, name).filter(|value| !is_right(value)) {
            *value = instead;
        }
    })
}

/// Text outside of strings.
fn outside_strings(line: &[u8]) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let is_outside = |byte: &&u8| {
        let was_inside = in_string;
        if in_string {
            in_string = escaped || **byte != b'"';
            escaped = !escaped && **byte == b'\\';
        } else {
            in_string = **byte == b'"';
        }
        !was_inside && **byte != b'"'
    };
    line.iter().filter(is_outside).copied().collect()
}

/// A mutant that answers INVALID forever after a malformed line.
struct Broken {
    inner: Inner,
    is_broken: bool,
}

impl Machine for Broken {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in actions.iter_mut().skip(from) {
            if let Action::Stdout(line) = action {
                if self.is_broken {
                    *line = retold(line, "INVALID");
                }
                self.is_broken |= is_refusal(line);
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that drops the rest of a read after a line whose answer contains `at`.
struct Dropping {
    inner: Inner,
    at: &'static str,
    /// True if the answer came before the end of its line.
    is_due: bool,
}

impl Machine for Dropping {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let Event::Stdin(bytes) = event else { return self.inner.handle(event, now, actions) };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let from = actions.len();
            self.inner.handle(Event::Stdin(piece), now, actions);
            let is_it = |action: &Action| matches!(action, Action::Stdout(line) if has(line, self.at));
            self.is_due |= actions[from..].iter().any(is_it);
            if self.is_due && piece.ends_with(b"\n") {
                self.is_due = false;
                return;
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that passes on only whole lines, and drops an unfinished line after a second of silence.
struct Hasty {
    inner: Inner,
    begun: Vec<u8>,
    since: Millis,
}

impl Machine for Hasty {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let Event::Stdin(bytes) = event else { return self.inner.handle(event, now, actions) };
        if now.saturating_sub(self.since) > 1_000 {
            self.begun.clear();
        }
        self.since = now;
        self.begun.extend_from_slice(bytes);
        let end = memchr::memrchr(b'\n', &self.begun).map_or(0, |end| end + 1);
        let whole: Vec<u8> = self.begun.drain(..end).collect();
        self.inner.handle(Event::Stdin(&whole), now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that keeps reading while a driver runs, and drops all but a megabyte.
struct Brimming {
    inner: Inner,
    kept: usize,
}

impl Machine for Brimming {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) if !self.inner.wants_stdin() => {
                self.kept += bytes.len();
                if self.kept > 1 << 20 {
                    return;
                }
            }
            Event::ChildExit(_) => self.kept = 0,
            _ => {}
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        true
    }
}

/// A mutant that kills its driver at the end of input. It reads its input while the driver runs.
struct Impatient {
    inner: Inner,
    is_driving: bool,
}

impl Machine for Impatient {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if event == Event::StdinEof && self.is_driving {
            actions.extend([Action::Kill, Action::Exit(0)]);
            return;
        }
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in &actions[from..] {
            match action {
                Action::Drive(_) => self.is_driving = true,
                Action::Kill => self.is_driving = false,
                _ => {}
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.is_driving || self.inner.wants_stdin()
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    machine(
        "select-ends-after-one",
        &["PD-SEL-01"],
        "The selector ends after its first Selection.",
        |inner| {
            counted(inner, |_, line, actions| {
                actions.extend([Action::Stdout(line), Action::Exit(0)]);
            })
        },
    ),
    machine("select-answers-twice", &["PD-SEL-01"], "Each Selection is written twice.", |inner| {
        counted(inner, |_, line, actions| actions.push(Action::Stdout([line.as_slice(), &line].concat())))
    }),
    machine(
        "select-tires-after-fifty",
        &["PD-SEL-01"],
        "After fifty Selections all that follow are INVALID.",
        |inner| {
            counted(inner, |number, line, actions| {
                actions.push(Action::Stdout(if number > 50 { retold(&line, "INVALID") } else { line }));
            })
        },
    ),
    machine(
        "select-flushes-late",
        &["PD-SEL-02"],
        "A Selection stays in a buffer until the next one.",
        mutant::flushes_late,
    ),
    machine(
        "select-one-line-a-read",
        &["PD-SEL-03", "PD-SEL-13"],
        "What follows the first line of a read is lost.",
        mutant::one_line_a_read,
    ),
    machine(
        "select-reads-are-lines",
        &["PD-SEL-03"],
        "Every read is taken for a whole line.",
        mutant::reads_are_lines,
    ),
    machine(
        "select-drops-lines-that-pause",
        &["PD-SEL-03"],
        "The beginning of a line is lost where the rest does not come within a second.",
        |inner| Box::new(Hasty { inner, begun: Vec::new(), since: 0 }),
    ),
    machine(
        "select-keeps-a-megabyte-of-input",
        &["PD-SEL-13"],
        "More than a megabyte that comes while a driver runs is lost.",
        |inner| Box::new(Brimming { inner, kept: 0 }),
    ),
    machine(
        "select-decodes-each-read",
        &["PD-SEL-03"],
        "Each read is decoded by itself, and what is cut becomes U+FFFD.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    inner.handle(Event::Stdin(text.as_bytes()), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    wire(
        "select-malformed-is-noop",
        &["PD-SEL-05"],
        "A malformed line is answered by NOOP.",
        Rewiring::Selection(|line| if is_refusal(line) { retold(line, "NOOP") } else { line.to_vec() }),
    ),
    wire(
        "select-silent-at-malformed",
        &["PD-SEL-01", "PD-SEL-05"],
        "A malformed line is not answered.",
        Rewiring::Selection(|line| if is_refusal(line) { Vec::new() } else { line.to_vec() }),
    ),
    machine("select-ends-at-malformed", &["PD-SEL-05"], "A malformed line ends the selector.", |inner| {
        counted(inner, |_, line, actions| {
            let ends = is_refusal(&line);
            actions.push(Action::Stdout(line));
            actions.extend(ends.then_some(Action::Exit(1)));
        })
    }),
    machine(
        "select-refuses-all-after-malformed",
        &["PD-SEL-05"],
        "After a malformed line every Selection is INVALID.",
        |inner| Box::new(Broken { inner, is_broken: false }),
    ),
    wire(
        "select-loose-requests",
        &["PD-SEL-05"],
        "A request with a trailing comma is served.",
        Rewiring::Line(|line| swap_all(&swap_all(line, ",}", "}"), ",]", "]")),
    ),
    wire(
        "select-bytes-after-request",
        &["PD-SEL-05"],
        "What follows the object of a request is dropped.",
        Rewiring::Line(|line| {
            if members(line).is_some() {
                return line.to_vec();
            }
            let ends = memchr::memchr_iter(b'}', line).map(|at| &line[..=at]);
            ends.into_iter().find(|part| members(part).is_some()).unwrap_or(line).to_vec()
        }),
    ),
    wire(
        "select-requests-in-arrays",
        &["PD-SEL-05"],
        "A request in an array is served.",
        Rewiring::Line(|line| match tree::parse(line) {
            Some(Value::Array(elements)) => elements.first().map_or(line.to_vec(), tree::text),
            _ => line.to_vec(),
        }),
    ),
    wire(
        "select-requests-not-utf8",
        &["PD-SEL-05"],
        "Bytes of a request that are no UTF-8 are replaced.",
        Rewiring::Line(|line| String::from_utf8_lossy(line).into_owned().into_bytes()),
    ),
    machine("select-lines-end-at-form-feeds", &["PD-SEL-05"], "A form feed ends a line.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                inner.handle(Event::Stdin(&swap_all(bytes, "\u{c}", "\n")), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    machine(
        "select-drops-what-follows-a-malformed-line",
        &["PD-SEL-05"],
        "What comes in one read with a malformed line, behind it, is lost.",
        |inner| Box::new(Dropping { inner, at: "\"malformed request", is_due: false }),
    ),
    wire(
        "select-inputs-of-any-type",
        &["PD-SEL-05"],
        "Inputs that are no object are taken for an empty one.",
        Rewiring::Line(|line| {
            repaired(line, "inputs", |value| value.as_object().is_some(), Value::Object(Vec::new()))
        }),
    ),
    wire(
        "select-menu-of-any-type",
        &["PD-SEL-05"],
        "A menu that is no array is taken for an empty one.",
        Rewiring::Line(|line| {
            repaired(line, "menu", |value| value.as_array().is_some(), Value::Array(Vec::new()))
        }),
    ),
    wire(
        "select-digests-of-any-type",
        &["PD-SEL-05"],
        "A digest that is no string is taken for an empty one.",
        Rewiring::Line(|line| {
            let line = repaired(line, "goal_digest", |value| value.as_str().is_some(), "".into());
            repaired(&line, "state_digest", |value| value.as_str().is_some(), "".into())
        }),
    ),
    wire(
        "select-modes-of-any-type",
        &["PD-SEL-05"],
        "A control mode that is no string is taken for POLICY_ONLY.",
        Rewiring::Line(|line| {
            repaired(line, "control_mode", |value| value.as_str().is_some(), "POLICY_ONLY".into())
        }),
    ),
    machine("select-blank-line-is-noop", &["PD-SEL-06"], "A blank line is answered by NOOP.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let bytes = if bytes == b"\n" { b"{}\n".to_vec() } else { swap_all(bytes, "\n\n", "\n{}\n") };
                inner.handle(Event::Stdin(&bytes), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    config(
        "select-lines-one-too-short",
        &["PD-SEL-07"],
        "A line of 10,485,760 bytes is refused.",
        |config| config.limits.stdin_bytes_max -= 1,
    ),
    config("select-lines-of-a-megabyte", &["PD-SEL-07"], "A line of more than 1 MB is refused.", |config| {
        config.limits.stdin_bytes_max = 1 << 20
    }),
    config("select-flat-requests", &["PD-SEL-07"], "Requests may have 63 levels.", |config| {
        config.limits.nesting_max = 63
    }),
    config("select-lines-of-any-length", &["PD-SEL-08"], "Lines over the limit are served.", |config| {
        config.limits.stdin_bytes_max = 1 << 30
    }),
    machine(
        "select-keeps-long-lines",
        &["PD-SEL-08"],
        "A line over the limit is kept whole before it is refused.",
        mutant::whole_lines_only,
    ),
    machine(
        "select-ends-at-long-line",
        &["PD-SEL-08"],
        "A line over the limit ends the selector.",
        |inner| {
            counted(inner, |_, line, actions| {
                let ends = has(&line, "the request is too long");
                actions.push(Action::Stdout(line));
                actions.extend(ends.then_some(Action::Exit(1)));
            })
        },
    ),
    machine(
        "select-drops-what-follows-a-long-line",
        &["PD-SEL-08"],
        "What comes in one read with the end of a line over the limit, behind it, is lost.",
        |inner| Box::new(Dropping { inner, at: "the request is too long", is_due: false }),
    ),
    machine(
        "select-stays-after-eof",
        &["PD-SEL-09"],
        "The end of input does not end the selector.",
        mutant::stays_after_eof,
    ),
    machine(
        "select-status-at-eof",
        &["PD-SEL-09"],
        "The status at the end of input is 3.",
        mutant::exit_status_at_eof,
    ),
    machine(
        "select-drops-driver-at-eof",
        &["PD-SEL-09"],
        "At the end of input a driver that runs is ended and its request is not answered.",
        |inner| Box::new(Impatient { inner, is_driving: false }),
    ),
    wire(
        "select-completes-lines",
        &["PD-SEL-05", "PD-SEL-19"],
        "A line that is cut short of its last brace is completed.",
        Rewiring::Line(|line| {
            let closed = [line, b"}"].concat();
            if tree::parse(line).is_none() && members(&closed).is_some() { closed } else { line.to_vec() }
        }),
    ),
    machine(
        "select-deaf-amid-a-step",
        &["PD-SEL-11"],
        "SIGTERM in the middle of a step is ignored.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                if event != Event::Terminate {
                    inner.handle(event, now, actions);
                }
            })
        },
    ),
    machine(
        "select-leaves-driver-at-sigterm",
        &["PD-SEL-11"],
        "SIGTERM ends the selector and leaves the driver running.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                let terminates = event == Event::Terminate;
                inner.handle(event, now, actions);
                if terminates {
                    actions.retain(|action| *action != Action::Kill);
                }
            })
        },
    ),
    machine("select-refuses-cr", &["PD-SEL-12"], "A CR before the LF makes a line malformed.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                inner.handle(Event::Stdin(&swap_all(bytes, "\r\n", "!\r\n")), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    machine(
        "select-drops-carriage-returns",
        &["PD-SEL-05"],
        "Every CR of a request is dropped, in strings as well.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    inner.handle(Event::Stdin(&swap_all(bytes, "\r", "")), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    wire(
        "select-big-integers-overflow",
        &["PD-SEL-16"],
        "Integers beyond 64 bits become the largest of them.",
        Rewiring::Request(|request| {
            in_payload(&mut request.payload, &|value| {
                if let Value::Number(number) = value
                    && number.as_str().bytes().all(|byte| byte.is_ascii_digit())
                    && number.as_i64().is_none()
                {
                    *value = Value::Number(i64::MAX.into());
                }
            });
        }),
    ),
    wire(
        "select-lists-numbers-as-sids",
        &["PD-GRAM-07", "PD-SELN-02"],
        "The SID of an entry may be its number.",
        Rewiring::Line(|line| {
            each_entry(line, &|entry| {
                let number = get(entry, "sid").and_then(|sid| sid.as_i64());
                if let Some(number) = number {
                    put(entry, "sid", format!("SID{number:04}").as_str().into());
                }
            })
        }),
    ),
    wire(
        "select-lists-sids-under-names-of-any-case",
        &["PD-GRAM-07", "PD-SELN-02"],
        "The SID of an entry may stand under its name in another case.",
        Rewiring::Line(|line| {
            each_entry(line, &|entry| {
                let like =
                    entry.iter().find(|(name, _)| name.to_lossy().eq_ignore_ascii_case("sid")).cloned();
                if let Some((_, sid)) = like.filter(|_| get(entry, "sid").is_none()) {
                    put(entry, "sid", sid);
                }
            })
        }),
    ),
    wire(
        "select-rounds-integers",
        &["PD-SEL-17", "PD-FILE-02"],
        "Integers of a request go through 32-bit floats.",
        Rewiring::Request(|request| in_payload(&mut request.payload, &tree::round)),
    ),
    wire(
        "select-trims-strings",
        &["PD-SEL-17", "PD-FILE-02"],
        "White space around strings of a request is lost.",
        Rewiring::Request(|request| {
            in_payload(&mut request.payload, &|value| in_strings(value, |text| text.trim().to_owned()));
        }),
    ),
    wire(
        "select-cuts-strings-at-nul",
        &["PD-SEL-17", "PD-FILE-02"],
        "Strings of a request end at U+0000.",
        Rewiring::Request(|request| {
            in_payload(&mut request.payload, &|value| {
                in_strings(value, |text| text.split('\0').next().unwrap_or_default().to_owned());
            });
        }),
    ),
    wire(
        "select-unescapes-entities",
        &["PD-SEL-17"],
        "Entities of HTML in strings of a request become the characters that they stand for.",
        Rewiring::Request(|request| {
            in_payload(&mut request.payload, &|value| {
                in_strings(value, |text| text.replace("&lt;", "<").replace("&amp;", "&"));
            });
        }),
    ),
    wire(
        "select-ascii-only",
        &["PD-SEL-17", "PD-FILE-02"],
        "Letters beyond ASCII become question marks.",
        Rewiring::Request(|request| {
            in_payload(&mut request.payload, &|value| {
                in_strings(value, |text| {
                    text.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect()
                });
            });
        }),
    ),
    wire(
        "select-refuses-other-members",
        &["PD-SEL-18"],
        "A member that the contract does not name makes a request malformed.",
        Rewiring::Line(|line| {
            let is_other = |name: &crate::json::Text| !KNOWN.iter().any(|known| name == known);
            let has_other =
                members(line).is_some_and(|members| members.iter().any(|(name, _)| is_other(name)));
            if has_other { NO_REQUEST.to_vec() } else { line.to_vec() }
        }),
    ),
    wire(
        "select-wants-compact-requests",
        &["PD-SEL-18"],
        "White space between the tokens of a request makes it malformed.",
        Rewiring::Line(|line| {
            if outside_strings(line).iter().any(u8::is_ascii_whitespace) {
                NO_REQUEST.to_vec()
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-wants-plain-numbers",
        &["PD-SEL-18"],
        "A number with an exponent makes a request malformed.",
        Rewiring::Line(|line| {
            let is_exponent = |pair: &[u8]| pair[0].is_ascii_digit() && matches!(pair[1], b'e' | b'E');
            let has_one = outside_strings(line).windows(2).any(is_exponent);
            if has_one { NO_REQUEST.to_vec() } else { line.to_vec() }
        }),
    ),
    wire(
        "select-wants-plain-names",
        &["PD-SEL-18"],
        "Names of members with escapes are not known.",
        Rewiring::Line(|line| {
            let place = |name: &&str| find(line, &format!("\"{name}\""));
            let hidden = |name: &&&str| place(name).is_none();
            let hidden: Vec<_> = KNOWN.iter().filter(hidden).collect();
            edited(line, |members| hidden.into_iter().for_each(|name| drop(take(members, name))))
        }),
    ),
    wire(
        "select-wants-order",
        &["PD-SEL-18"],
        "The members of a request have to come in the order of the document.",
        Rewiring::Line(|line| {
            let place = |name: &crate::json::Text| KNOWN.iter().position(|known| name == known);
            let places: Vec<usize> =
                members(line).unwrap_or_default().iter().filter_map(|(name, _)| place(name)).collect();
            // Both the order of the payload and that of the request are allowed.
            let is_mode_first = places.first() == Some(&2) && places[1..].is_sorted();
            if places.is_sorted() || is_mode_first { line.to_vec() } else { NO_REQUEST.to_vec() }
        }),
    ),
];

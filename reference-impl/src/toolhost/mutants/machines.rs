//! Mutants that wrap the whole machine: order, time and amount of what goes in and comes out.

use super::{Mutant, Seam};
use crate::machine::{Action, Event, Machine, Millis};

type Inner = Box<dyn Machine + Send>;

const fn mutant(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    wrap: fn(Inner) -> Inner,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Machine(wrap))
}

/// The mutants of this seam.
pub const MUTANTS: &[Mutant] = &[
    mutant(
        "reverses-replies",
        &["TH-FRAME-02"],
        "Replies to requests of one read come in reverse order.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                let from = actions.len();
                inner.handle(event, now, actions);
                reverse_lines(&mut actions[from..]);
            })
        },
    ),
    mutant("flushes-late", &["TH-FRAME-03"], "A reply stays in a buffer until the next request.", |inner| {
        Box::new(Late { inner, held: Vec::new() })
    }),
    mutant("one-line-a-read", &["TH-FRAME-04"], "What follows the first line of a read is lost.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
                inner.handle(Event::Stdin(&bytes[..end]), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    mutant(
        "drops-split-characters",
        &["TH-FRAME-04"],
        "A UTF-8 sequence split between two reads is lost.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    let whole = std::str::from_utf8(bytes).map_or_else(
                        |error| match error.error_len() {
                            None => &bytes[..error.valid_up_to()],
                            // The rest of a sequence that began in the read before.
                            Some(_) if error.valid_up_to() == 0 && text.starts_with('\u{fffd}') => {
                                let from =
                                    bytes.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(bytes.len());
                                &bytes[from..]
                            }
                            Some(_) => bytes,
                        },
                        |_| bytes,
                    );
                    if !whole.is_empty() {
                        inner.handle(Event::Stdin(whole), now, actions);
                    }
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    mutant("reads-are-lines", &["TH-FRAME-04"], "Every read is taken for a whole line.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) if !bytes.ends_with(b"\n") => {
                inner.handle(Event::Stdin(&[bytes, b"\n"].concat()), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    mutant(
        "drops-what-is-queued",
        &["TH-PROC-01"],
        "Requests still queued at the end of input are dropped.",
        |inner| Box::new(Impatient { inner, queue: Vec::new() }),
    ),
    mutant(
        "stays-after-eof",
        &["TH-PROC-02", "TH-PROC-03"],
        "The end of input does not end the process.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                inner.handle(event, now, actions);
                actions.retain(|action| !matches!(action, Action::Exit(_)));
            })
        },
    ),
    mutant("exit-status-at-eof", &["TH-PROC-02"], "The status at the end of input is 3.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            for action in actions {
                if let Action::Exit(status) = action {
                    *status = 3;
                }
            }
        })
    }),
    mutant("hoards-input", &["TH-LIMIT-06"], "Everything that is read is kept.", |inner| {
        Box::new(Hoard { inner, kept: Vec::new() })
    }),
    mutant("hoards-lines", &["TH-LIMIT-06"], "A line is kept whole, however long it gets.", |inner| {
        Box::new(WholeLines { inner, pending: Vec::new() })
    }),
    mutant(
        "tool-prints-to-stdout",
        &["TH-TOOL-03"],
        "What a tool prints reaches standard output.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                inner.handle(event, now, actions);
                for action in actions {
                    if let Action::Stderr(bytes) = action {
                        *action = Action::Stdout(std::mem::take(bytes));
                    }
                }
            })
        },
    ),
];

/// A machine whose handling of events goes through a function.
struct Wrapped {
    inner: Inner,
    handle: fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>),
}

fn wrap(inner: Inner, handle: fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>)) -> Inner {
    Box::new(Wrapped { inner, handle })
}

impl Machine for Wrapped {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        (self.handle)(&mut self.inner, event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

fn reverse_lines(actions: &mut [Action]) {
    for action in actions {
        if let Action::Stdout(bytes) = action {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').rev().collect();
            *bytes = lines.concat();
        }
    }
}

struct Late {
    inner: Inner,
    held: Vec<Action>,
}

impl Machine for Late {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        actions.append(&mut self.held);
        let hold = matches!(event, Event::Stdin(_) | Event::Wake);
        let mut inner_actions = Vec::new();
        self.inner.handle(event, now, &mut inner_actions);
        for action in inner_actions {
            match action {
                Action::Stdout(_) if hold => self.held.push(action),
                other => actions.push(other),
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Takes one line at once and the others a little later, unless the input ends before.
struct Impatient {
    inner: Inner,
    queue: Vec<u8>,
}

/// Time between the first line of a read and the next ones, ms.
const LATER_MS: Millis = 20;

impl Machine for Impatient {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => {
                self.queue.extend_from_slice(bytes);
                let end = memchr::memchr(b'\n', &self.queue).map_or(self.queue.len(), |end| end + 1);
                let first: Vec<u8> = self.queue.drain(..end).collect();
                self.inner.handle(Event::Stdin(&first), now, actions);
                if !self.queue.is_empty() {
                    actions.push(Action::WakeAt(now + LATER_MS));
                }
            }
            Event::Wake if !self.queue.is_empty() => {
                let rest = std::mem::take(&mut self.queue);
                self.inner.handle(Event::Stdin(&rest), now, actions);
            }
            Event::StdinEof => {
                self.queue.clear();
                self.inner.handle(Event::StdinEof, now, actions);
            }
            other => self.inner.handle(other, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

struct Hoard {
    inner: Inner,
    kept: Vec<Vec<u8>>,
}

impl Machine for Hoard {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = &event {
            self.kept.push(bytes.to_vec());
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Hands on whole lines only, and what has no line feed at the end of input.
struct WholeLines {
    inner: Inner,
    pending: Vec<u8>,
}

impl Machine for WholeLines {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => {
                self.pending.extend_from_slice(bytes);
                if bytes.contains(&b'\n') {
                    let lines = std::mem::take(&mut self.pending);
                    self.inner.handle(Event::Stdin(&lines), now, actions);
                }
            }
            Event::StdinEof => {
                let rest = std::mem::take(&mut self.pending);
                if !rest.is_empty() {
                    self.inner.handle(Event::Stdin(&rest), now, actions);
                }
                self.inner.handle(Event::StdinEof, now, actions);
            }
            other => self.inner.handle(other, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

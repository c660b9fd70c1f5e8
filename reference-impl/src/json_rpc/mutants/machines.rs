//! Mutants that wrap the whole machine or the process: order, time and amount of what goes in and comes out.

use super::{Mutant, Seam};
use crate::machine::{Action, Event, Machine, Millis};
use crate::toolhost::mutants::ShellFault;

type Inner = Box<dyn Machine + Send>;

const fn mutant(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    wrap: fn(Inner) -> Inner,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Machine(wrap))
}

const fn shell(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: ShellFault,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Shell(what))
}

/// Bytes after which the rest of a line is taken for another.
const CUT_BYTES: usize = (1 << 20) + 1;

/// The mutants of these seams.
pub const MUTANTS: &[Mutant] = &[
    mutant("one-line-a-read", &["RPC-FRAME-02"], "What follows the first line of a read is lost.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
                inner.handle(Event::Stdin(bytes.get(..end).unwrap_or_default()), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    mutant("reads-are-lines", &["RPC-FRAME-02"], "Every read is taken for a whole line.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) if !bytes.ends_with(b"\n") => {
                inner.handle(Event::Stdin(&[bytes, b"\n"].concat()), now, actions);
            }
            other => inner.handle(other, now, actions),
        })
    }),
    mutant(
        "loses-what-is-pipelined",
        &["RPC-FRAME-04"],
        "Of one read, no more than 300 lines are looked at.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::Stdin(bytes) => {
                    let end = memchr::memchr_iter(b'\n', bytes).nth(299).map_or(bytes.len(), |end| end + 1);
                    inner.handle(Event::Stdin(&bytes[..end]), now, actions);
                }
                event => inner.handle(event, now, actions),
            })
        },
    ),
    mutant(
        "drops-what-was-read-at-eof",
        &["RPC-PROC-01"],
        "What was read last, if it is much, is dropped when input ends behind it.",
        |inner| Box::new(Dropping { inner, held: Vec::new() }),
    ),
    mutant("stays-after-eof", &["RPC-PROC-02"], "The end of input does not end the server.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            actions.retain(|action| !matches!(action, Action::Exit(_)));
        })
    }),
    mutant("exit-status-at-eof", &["RPC-PROC-02"], "The status at the end of input is 3.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            for action in actions {
                if let Action::Exit(status) = action {
                    *status = 3;
                }
            }
        })
    }),
    mutant("no-resync", &["RPC-SIZE-03"], "The rest of a large line is read as a line.", |inner| {
        Box::new(Cutting { inner, line_bytes: 0 })
    }),
    mutant("hoards-lines", &["RPC-SIZE-04"], "A line is kept whole, however long it gets.", |inner| {
        Box::new(Hoard { inner, line: Vec::new() })
    }),
    mutant("flushes-late", &["RPC-FRAME-03"], "A reply stays in a buffer until the next input.", |inner| {
        Box::new(Late { inner, held: Vec::new() })
    }),
    shell("ignores-sigterm", &["RPC-PROC-03"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell(
        "leaves-a-child",
        &["RPC-PROC-04"],
        "A child process outlives the server.",
        ShellFault::LeavesChild,
    ),
    shell("leaves-a-file", &["RPC-PROC-05"], "A temporary file outlives the server.", ShellFault::LeavesFile),
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

/// Keeps many lines back until something else comes in, and forgets them at the end of input.
struct Dropping {
    inner: Inner,
    held: Vec<u8>,
}

impl Machine for Dropping {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let held = std::mem::take(&mut self.held);
        match event {
            Event::StdinEof => {}
            _ if held.is_empty() => {}
            _ => self.inner.handle(Event::Stdin(&held), now, actions),
        }
        match event {
            Event::Stdin(bytes) if memchr::memchr_iter(b'\n', bytes).count() > 100 => {
                self.held = bytes.to_vec()
            }
            event => self.inner.handle(event, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Puts a line feed into lines that are too long.
struct Cutting {
    inner: Inner,
    line_bytes: usize,
}

impl Machine for Cutting {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let Event::Stdin(bytes) = event else { return self.inner.handle(event, now, actions) };
        let mut out = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            if self.line_bytes == CUT_BYTES && *byte != b'\n' {
                out.push(b'\n');
                self.line_bytes = 0;
            }
            out.push(*byte);
            self.line_bytes = if *byte == b'\n' { 0 } else { self.line_bytes + 1 };
        }
        self.inner.handle(Event::Stdin(&out), now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Keeps a line until its end.
struct Hoard {
    inner: Inner,
    line: Vec<u8>,
}

impl Machine for Hoard {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => {
                self.line.extend_from_slice(bytes);
                if bytes.contains(&b'\n') {
                    let line = std::mem::take(&mut self.line);
                    self.inner.handle(Event::Stdin(&line), now, actions);
                }
            }
            Event::StdinEof => {
                let line = std::mem::take(&mut self.line);
                if !line.is_empty() {
                    self.inner.handle(Event::Stdin(&line), now, actions);
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

/// Keeps the last output until something else comes in.
struct Late {
    inner: Inner,
    held: Vec<Action>,
}

impl Machine for Late {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut new = Vec::new();
        self.inner.handle(event, now, &mut new);
        let ends = new.iter().any(|action| matches!(action, Action::Exit(_)));
        if ends || new.iter().any(|action| matches!(action, Action::Stdout(_))) {
            actions.append(&mut self.held);
        }
        for action in new {
            if ends || !matches!(action, Action::Stdout(_)) {
                actions.push(action);
            } else {
                self.held.push(action);
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

//! Mutants that wrap the whole machine or the process: order, timing and amount of input and output.

use super::Mutant;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{self, Inner, ShellFault, machine as mutant, shell, wrap};

/// Length in bytes after which a mutant cuts a line in two.
const CUT_BYTES: usize = (1 << 20) + 1;

/// The mutants of these seams.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "one-line-a-read",
        &["RPC-FRAME-02"],
        "What follows the first line of a read is lost.",
        mutant::one_line_a_read,
    ),
    mutant(
        "reads-are-lines",
        &["RPC-FRAME-02"],
        "Every read is taken for a whole line.",
        mutant::reads_are_lines,
    ),
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
    mutant(
        "stays-after-eof",
        &["RPC-PROC-02"],
        "The end of input does not end the server.",
        mutant::stays_after_eof,
    ),
    mutant(
        "exit-status-at-eof",
        &["RPC-PROC-02"],
        "The status at the end of input is 3.",
        mutant::exit_status_at_eof,
    ),
    mutant("no-resync", &["RPC-SIZE-03"], "The rest of a large line is read as a line.", |inner| {
        Box::new(Cutting { inner, line_bytes: 0 })
    }),
    mutant(
        "hoards-lines",
        &["RPC-SIZE-04"],
        "A line is kept whole, however long it gets.",
        mutant::whole_lines_only,
    ),
    mutant("logs-without-time", &["RPC-LOG-01"], "Log lines have no timestamp.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            if matches!(event, Event::Stdin(_)) {
                actions.push(Action::Stderr(b"{\"level\":\"INFO\",\"message\":\"RPC Request\"}\n".to_vec()));
            }
            inner.handle(event, now, actions);
        })
    }),
    mutant(
        "flushes-late",
        &["RPC-FRAME-03"],
        "A reply stays in a buffer until the next input.",
        mutant::flushes_late,
    ),
    shell("ignores-sigterm", &["RPC-PROC-03"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell(
        "leaves-a-child",
        &["RPC-PROC-04"],
        "A child process outlives the server.",
        ShellFault::LeavesChild,
    ),
    shell("leaves-a-file", &["RPC-PROC-05"], "A temporary file outlives the server.", ShellFault::LeavesFile),
];

/// A mutant that holds back a large batch of lines until the next input, and loses it at the end of input.
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

/// A mutant that inserts a line feed into overlong lines.
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

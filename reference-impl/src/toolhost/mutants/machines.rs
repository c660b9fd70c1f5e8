//! Mutants that wrap the whole machine: order, timing and amount of input and output.

use super::{Mutant, Rewiring};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{self, Inner, Seam, machine as mutant, wrap};

const fn run_mutant(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    wrap: fn(Inner) -> Inner,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewiring::RunMode(wrap)))
}

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
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
    mutant(
        "flushes-late",
        &["TH-FRAME-03"],
        "A reply stays in a buffer until the next request.",
        mutant::flushes_late,
    ),
    mutant(
        "one-line-a-read",
        &["TH-FRAME-04", "TH-FRAME-02"],
        "What follows the first line of a read is lost.",
        mutant::one_line_a_read,
    ),
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
                            // This is the rest of a sequence that began in the previous read.
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
    mutant(
        "drops-a-line-that-pauses",
        &["TH-FRAME-04"],
        "What was read of a line is dropped where the rest takes longer than 1.5 s.",
        |inner| Box::new(Hasty { inner, open: Vec::new(), read_at: 0 }),
    ),
    mutant(
        "reads-are-lines",
        &["TH-FRAME-04"],
        "Every read is taken for a whole line.",
        mutant::reads_are_lines,
    ),
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
        mutant::stays_after_eof,
    ),
    mutant(
        "exit-status-at-eof",
        &["TH-PROC-02"],
        "The status at the end of input is 3.",
        mutant::exit_status_at_eof,
    ),
    mutant("hoards-input", &["TH-LIMIT-06"], "Everything that is read is kept.", |inner| {
        Box::new(Hoard { inner, kept: Vec::new() })
    }),
    mutant(
        "hoards-lines",
        &["TH-LIMIT-06"],
        "A line is kept whole, however long it gets.",
        mutant::whole_lines_only,
    ),
    mutant(
        "tool-prints-to-stdout",
        &["TH-TOOL-03", "TH-FRAME-05"],
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
    mutant(
        "measures-replies-together",
        &["TH-FRAME-04"],
        "A reply is too large where those to the same read have more than 1 MB together.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                let from = actions.len();
                inner.handle(event, now, actions);
                for action in &mut actions[from..] {
                    if let Action::Stdout(bytes) = action {
                        *bytes = within_one_limit(bytes);
                    }
                }
            })
        },
    ),
    run_mutant(
        "run-ends-before-its-tool",
        &["TH-RUN-04"],
        "A run ends with its input, and a tool that takes longer is never heard of.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                let from = actions.len();
                let ending = event == Event::StdinEof;
                inner.handle(event, now, actions);
                if ending && actions[from..].iter().any(|action| matches!(action, Action::WakeAt(_))) {
                    actions.push(Action::Exit(0));
                }
            })
        },
    ),
    run_mutant(
        "run-finishes-its-tool-first",
        &["TH-PROC-04"],
        "SIGTERM does not end a run before its tool is done.",
        |inner| Box::new(Deaf { inner, input_ended: false }),
    ),
];

fn reverse_lines(actions: &mut [Action]) {
    for action in actions {
        if let Action::Stdout(bytes) = action {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').rev().collect();
            *bytes = lines.concat();
        }
    }
}

/// Keeps replies up to 1 MB in total. The others become errors.
fn within_one_limit(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let fits = out.len() + line.len() <= 1 << 20;
        let error: &[u8] = b"{\"ok\":false,\"status\":\"TOOL_ERROR\",\"error\":\"the reply is too large\"}\n";
        out.extend_from_slice(if fits { line } else { error });
    }
    out
}

/// A mutant that drops the beginning of a line after a timeout.
struct Hasty {
    inner: Inner,
    open: Vec<u8>,
    read_at: Millis,
}

impl Machine for Hasty {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        const PATIENCE_MS: Millis = 1_500;
        let Event::Stdin(bytes) = event else {
            if matches!(event, Event::StdinEof) && !self.open.is_empty() {
                let rest = std::mem::take(&mut self.open);
                self.inner.handle(Event::Stdin(&rest), now, actions);
            }
            return self.inner.handle(event, now, actions);
        };
        if now.saturating_sub(self.read_at) > PATIENCE_MS {
            self.open.clear();
        }
        self.read_at = now;
        // Only the new bytes are searched, because a line of 100 MB arrives in thousands of pieces.
        let end = memchr::memrchr(b'\n', bytes).map(|end| self.open.len() + end);
        self.open.extend_from_slice(bytes);
        if let Some(end) = end {
            let lines: Vec<u8> = self.open.drain(..=end).collect();
            self.inner.handle(Event::Stdin(&lines), now, actions);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that handles one line at once, and the rest of the input a little later. It drops the rest at the end of
/// input.
struct Impatient {
    inner: Inner,
    queue: Vec<u8>,
}

/// Delay of the rest of a read, in ms.
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

/// A mutant that ignores SIGTERM after the end of input.
struct Deaf {
    inner: Inner,
    input_ended: bool,
}

impl Machine for Deaf {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.input_ended |= event == Event::StdinEof;
        if !self.input_ended || event != Event::Terminate {
            self.inner.handle(event, now, actions);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

//! Mutants of lines, and those that wrap the whole machine or the process.

use super::Mutant;
use super::edit::{
    Memory, Pass, answers, config, depth, dies_of, ended, incoming, mute_after, outgoing, swap_all,
};
use super::messages::is_marked;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{self, Inner, ShellFault, machine as mutant, shell, wrap};

/// Treats a character as a line end.
fn split_at(line: &[u8], character: char) -> Pass {
    let Ok(text) = std::str::from_utf8(line) else { return Pass::Forward };
    if text.contains(character) {
        Pass::Replace(text.split(character).map(|part| part.as_bytes().to_vec()).collect())
    } else {
        Pass::Forward
    }
}

/// Writes a line before answers to tools/list and to unknown methods.
fn before_some(memory: &Memory, line: &[u8], before: &[u8]) -> Vec<u8> {
    if is_marked(memory, line) { [before, line, b"\n"].concat() } else { ended(line.to_vec()) }
}

/// Mutants of these seams.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant("greets", &["MCP-FRM-01"], "A banner comes before the first message.", |inner| {
        Box::new(Greeting { inner, has_greeted: false })
    }),
    outgoing(
        "logs-on-stdout",
        &["MCP-FRM-01"],
        "A log line stands before lists of tools and unknown methods.",
        |memory, line| before_some(memory, line, b"INFO listing tools\n"),
    ),
    outgoing(
        "blank-lines",
        &["MCP-FRM-01"],
        "A blank line stands before lists of tools and unknown methods.",
        |memory, line| before_some(memory, line, b"\n"),
    ),
    outgoing(
        "pretty-prints",
        &["MCP-FRM-01"],
        "A list of tools, or an error of an unknown method, stands on several lines.",
        |memory, line| {
            if is_marked(memory, line) {
                swap_all(&ended(line.to_vec()), ",\"", ",\n  \"")
            } else {
                ended(line.to_vec())
            }
        },
    ),
    outgoing(
        "writes-latin-1",
        &["MCP-FRM-01"],
        "The message of an unknown method is no UTF-8.",
        |_, line| match memchr::memmem::find(line, b"no method") {
            Some(at) => [&line[..at], b"m\xe9thode inconnue: ", &line[at..], b"\n"].concat(),
            None => ended(line.to_vec()),
        },
    ),
    mutant(
        "reads-are-lines",
        &["MCP-FRM-03"],
        "Every read is taken for a whole line.",
        mutant::reads_are_lines,
    ),
    mutant(
        "one-line-a-read",
        &["MCP-FRM-03", "MCP-BAS-21"],
        "What follows the first line of a read is lost.",
        mutant::one_line_a_read,
    ),
    mutant("decodes-reads", &["MCP-FRM-03"], "A character that two reads share is lost.", |inner| {
        wrap(inner, |inner, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                inner.handle(Event::Stdin(text.as_bytes()), now, actions);
            }
            event => inner.handle(event, now, actions),
        })
    }),
    incoming("splits-at-u2028", &["MCP-FRM-04"], "U+2028 ends a line.", |_, line| split_at(line, '\u{2028}')),
    incoming("splits-at-u2029", &["MCP-FRM-04"], "U+2029 ends a line.", |_, line| split_at(line, '\u{2029}')),
    incoming("splits-at-u0085", &["MCP-FRM-04"], "U+0085 ends a line.", |_, line| split_at(line, '\u{85}')),
    incoming("splits-at-ufeff", &["MCP-FRM-04"], "U+FEFF ends a line.", |_, line| split_at(line, '\u{feff}')),
    incoming(
        "needs-bare-line-feeds",
        &["MCP-FRM-05"],
        "A line that ends in CR LF is not looked at.",
        |_, line| {
            if line.ends_with(b"\r") { Pass::Drop } else { Pass::Forward }
        },
    ),
    config("messages-of-64-kib", &["MCP-FRM-06"], "A message has at most 65,536 bytes.", |config| {
        config.limits.rpc_message_bytes_max = 65_536;
    }),
    config("nesting-of-32", &["MCP-FRM-07"], "32 levels are the limit.", |config| {
        config.limits.nesting_max = 32
    }),
    incoming(
        "dies-of-1000-levels",
        &["MCP-FRM-08"],
        "Nesting of 1,000 levels ends the process.",
        |_, line| dies_of(line, |line| depth(line) > 1_000),
    ),
    incoming(
        "dies-of-10000-levels",
        &["MCP-FRM-08"],
        "Nesting of 10,000 levels ends the process.",
        |_, line| dies_of(line, |line| depth(line) > 10_000),
    ),
    incoming(
        "mute-after-1000-levels",
        &["MCP-FRM-08"],
        "Nothing is answered after nesting of 1,000 levels.",
        |memory, line| mute_after(memory, line, |line| depth(line) > 1_000),
    ),
    outgoing(
        "writes-ascii",
        &["MCP-FRM-10"],
        "Text of tools beyond ASCII comes back as question marks.",
        |memory, line| {
            if !answers(memory, line, "tools/call") {
                return ended(line.to_vec());
            }
            let text = String::from_utf8_lossy(line);
            ended(text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect::<String>().into_bytes())
        },
    ),
    mutant(
        "stays-after-eof",
        &["MCP-END-01"],
        "The end of input does not end the server.",
        mutant::stays_after_eof,
    ),
    mutant(
        "stays-after-half-a-line",
        &["MCP-END-01"],
        "The end of input in a line does not end the server.",
        |inner| {
            Box::new(Ending {
                inner,
                last: b'\n',
                how: |is_cut, actions| {
                    if is_cut {
                        actions.retain(|action| !matches!(action, Action::Exit(_)));
                    }
                },
            })
        },
    ),
    mutant(
        "stays-before-the-opening",
        &["MCP-END-01"],
        "The end of input before any line does not end the server.",
        |inner| Box::new(Unopened { inner, is_open: false }),
    ),
    mutant(
        "tells-of-half-a-line",
        &["MCP-END-05"],
        "The end of input in a line brings text that is no JSON.",
        |inner| {
            Box::new(Ending {
                inner,
                last: b'\n',
                how: |is_cut, actions| {
                    if is_cut {
                        actions.insert(0, Action::Stdout(b"unexpected end of input\n".to_vec()));
                    }
                },
            })
        },
    ),
    mutant("answers-half", &["MCP-END-05"], "The end of input in a line brings half an answer.", |inner| {
        Box::new(Ending {
            inner,
            last: b'\n',
            how: |is_cut, actions| {
                if is_cut {
                    actions.retain(|action| !matches!(action, Action::Stdout(_)));
                    actions.insert(0, Action::Stdout(b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec()));
                }
            },
        })
    }),
    shell(
        "dies-of-a-full-pipe",
        &["MCP-FRM-09"],
        "A pipe that takes no more answers ends the process.",
        ShellFault::WritesAtOnce,
    ),
    shell("ignores-sigterm", &["MCP-END-02"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell("leaves-a-child", &["MCP-END-03"], "A child process outlives the server.", ShellFault::LeavesChild),
];

/// A mutant that writes a banner before its first message.
struct Greeting {
    inner: Inner,
    has_greeted: bool,
}

impl Machine for Greeting {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.has_greeted, true) {
            actions.push(Action::Stdout(b"peerproof reference server is ready\n".to_vec()));
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that misbehaves at the end of input. `how` gets true if the last line is cut.
struct Ending {
    inner: Inner,
    /// Last byte of the input; initially a line feed.
    last: u8,
    how: fn(bool, &mut Vec<Action>),
}

impl Machine for Ending {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = event {
            self.last = bytes.last().copied().unwrap_or(self.last);
        }
        let is_end = matches!(event, Event::StdinEof);
        self.inner.handle(event, now, actions);
        if is_end {
            (self.how)(self.last != b'\n', actions);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that does not exit after empty input.
struct Unopened {
    inner: Inner,
    is_open: bool,
}

impl Machine for Unopened {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.is_open |= matches!(event, Event::Stdin(_));
        self.inner.handle(event, now, actions);
        if !self.is_open {
            actions.retain(|action| !matches!(action, Action::Exit(_)));
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

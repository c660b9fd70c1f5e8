//! Mutants of the dispatcher: the correct machine behind a filter of events and actions, or with another
//! configuration. Faults in the connection of the toolhost's streams are made by a changed command line.

mod replies;

use super::{Config, Dispatcher};
use crate::machine::{Action, ChildExit, Event, Machine, Millis};
use crate::mutant::text::{byte_a_character, find, swap, swap_last};
use crate::mutant::{self, Inner, Seam, config};

/// A dispatcher that breaks clauses.
pub type Mutant = mutant::Mutant<Config, (), Filter>;

/// Event or action that a mutant filters, with the filter.
#[derive(Clone, Copy)]
pub enum Filter {
    /// Edits the toolhost's output; `false` drops it.
    Event(fn(&mut Memory, &mut Vec<u8>) -> bool),
    /// Drops output after a pause of more than a second. If true, a toolhost that exits later than that counts as
    /// killed.
    Hasty(bool),
    /// Replaces the toolhost's output.
    Reread(fn(&[u8]) -> Vec<u8>),
    /// Replaces the request.
    Resent(fn(&[u8]) -> Vec<u8>),
    /// Replaces the exit of the toolhost.
    Exit(fn(ChildExit) -> ChildExit),
    /// Replaces an action of the dispatcher.
    Action(fn(Action) -> Vec<Action>),
}

/// Longest pause that a hasty dispatcher tolerates, in ms.
const PATIENCE_MS: Millis = 1_000;

/// State of a filter of events.
#[derive(Default)]
pub struct Memory {
    /// Chunks of the toolhost's output so far.
    chunks: usize,
    /// Time of the last chunk.
    read_at: Millis,
    /// Depth of open brackets.
    depth: usize,
    /// Makes the dispatcher exit with status 134.
    dies: bool,
}

const fn filtered(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    filter: Filter,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(filter))
}

/// A mutant that rewrites the printed answer.
const fn printed(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    action: fn(Action) -> Vec<Action>,
) -> Mutant {
    filtered(id, clauses, fault, Filter::Action(action))
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [MUTANTS, replies::MUTANTS].concat()
}

/// Mutants in the order of the clauses.
const MUTANTS: &[Mutant] = &[
    printed("dispatch-sends-twice", &["TH-DISP-01"], "The request is sent twice.", |action| match action {
        Action::Spawn { argv, stdin } => vec![Action::Spawn { argv, stdin: [stdin.clone(), stdin].concat() }],
        other => vec![other],
    }),
    printed("dispatch-sends-loose-json", &["TH-DISP-03"], "The request has a trailing comma.", |action| {
        match action {
            Action::Spawn { argv, stdin } => {
                vec![Action::Spawn { argv, stdin: swap_last(&stdin, "}", ",}") }]
            }
            other => vec![other],
        }
    }),
    printed("dispatch-loses-inputs", &["TH-DISP-04"], "The inputs are not sent.", |action| match action {
        Action::Spawn { argv, stdin } => {
            let stdin = swap(&swap(&stdin, "\"inputs\"", "\"arguments\""), "\"input_json\"", "\"arguments\"");
            vec![Action::Spawn { argv, stdin }]
        }
        other => vec![other],
    }),
    printed(
        "dispatch-loses-bytes",
        &["TH-DISP-05"],
        "A thousand bytes are lost from the middle of a long request.",
        |action| match action {
            Action::Spawn { argv, mut stdin } => {
                if stdin.len() > 64 * 1024 {
                    stdin.drain(40_000..41_000);
                }
                vec![Action::Spawn { argv, stdin }]
            }
            other => vec![other],
        },
    ),
    printed(
        "dispatch-prints-log",
        &["TH-DISP-07"],
        "A log line precedes the result.",
        |action| match action {
            Action::Stdout(bytes) => vec![Action::Stdout([b"calling toolhost\n", bytes.as_slice()].concat())],
            other => vec![other],
        },
    ),
    printed("dispatch-wraps-result", &["TH-DISP-08"], "The result is wrapped in an object.", |action| {
        match action {
            Action::Stdout(bytes) if !is_error(&bytes) => {
                let bare = bytes.trim_ascii_end();
                vec![Action::Stdout([b"{\"result\":", bare, b"}\n"].concat())]
            }
            other => vec![other],
        }
    }),
    filtered(
        "dispatch-reads-once",
        &["TH-DISP-09"],
        "Only what the toolhost writes first is read.",
        Filter::Event(|memory, _| {
            memory.chunks += 1;
            memory.chunks == 1
        }),
    ),
    printed("dispatch-error-without-aid", &["TH-DISP-10"], "An error object has no `aid`.", |action| {
        match action {
            Action::Stdout(bytes) if is_error(&bytes) => {
                vec![Action::Stdout(swap(&bytes, "\"aid\":", "\"tool\":"))]
            }
            other => vec![other],
        }
    }),
    printed("dispatch-error-as-string", &["TH-DISP-10"], "`error` is a string.", |action| match action {
        Action::Stdout(bytes) if is_error(&bytes) => {
            vec![Action::Stdout(swap(&bytes, "\"error\":true", "\"error\":\"true\""))]
        }
        other => vec![other],
    }),
    printed(
        "dispatch-own-type",
        &["TH-DISP-11", "TH-DISP-18"],
        "An unreadable reply has a type of its own.",
        |action| retyped(action, "parse_error", "bad_reply"),
    ),
    config(
        "dispatch-ignores-timeout",
        &["TH-DISP-12"],
        "MACHINA_TOOLHOST_TIMEOUT means nothing.",
        |config| config.limits.toolhost_timeout_ms = 30_000,
    ),
    mutant::machine(
        "dispatch-waits-anew-with-every-byte",
        &["TH-DISP-12"],
        "The time of a toolhost begins anew with every byte that it writes.",
        mutant::waits_anew,
    ),
    printed("dispatch-timeout-as-crash", &["TH-DISP-12"], "A timeout is reported as a crash.", |action| {
        retyped(action, "timeout", "crash")
    }),
    config(
        "dispatch-default-of-minutes",
        &["TH-DISP-13"],
        "Without MACHINA_TOOLHOST_TIMEOUT a call may take five minutes.",
        |config| {
            if config.limits.toolhost_timeout_ms == 30_000 {
                config.limits.toolhost_timeout_ms = 300_000;
            }
        },
    ),
    config(
        "dispatch-default-of-seconds",
        &["TH-DISP-13"],
        "Without MACHINA_TOOLHOST_TIMEOUT a call may take ten seconds.",
        |config| {
            if config.limits.toolhost_timeout_ms == 30_000 {
                config.limits.toolhost_timeout_ms = 10_000;
            }
        },
    ),
    printed("dispatch-kills-nobody", &["TH-DISP-14"], "After a timeout the toolhost lives on.", |action| {
        if action == Action::Kill { Vec::new() } else { vec![action] }
    }),
    filtered(
        "dispatch-ignores-exit",
        &["TH-DISP-17"],
        "The toolhost's exit status and signals mean nothing.",
        Filter::Exit(|_| ChildExit::Code(0)),
    ),
    config("dispatch-limit-one-too-low", &["TH-DISP-19"], "The limit of 1 MB is exclusive.", |config| {
        config.limits.toolhost_stdout_bytes_max -= 1
    }),
    config(
        "dispatch-reads-without-limit",
        &["TH-DISP-20", "TH-DISP-21"],
        "What the toolhost writes is read without a limit.",
        |config| config.limits.toolhost_stdout_bytes_max = 1 << 30,
    ),
    filtered(
        "dispatch-counts-characters",
        &["TH-DISP-20"],
        "The limit of 1 MB counts characters.",
        Filter::Event(|_, bytes| {
            *bytes = byte_a_character(bytes);
            true
        }),
    ),
    printed(
        "dispatch-missing-as-exception",
        &["TH-DISP-22"],
        "A missing toolhost is an exception.",
        |action| retyped(action, "not_found", "exception"),
    ),
    printed(
        "dispatch-failure-as-success",
        &["TH-DISP-24"],
        "A tool's failure is printed as a success.",
        |action| succeeded(action, "exception"),
    ),
    printed(
        "dispatch-hides-detail",
        &["TH-DISP-25"],
        "`detail` of a tool's failure says nothing.",
        |action| match action {
            Action::Stdout(bytes) if is_error(&bytes) => {
                let at = find(&bytes, "\"detail\":\"").map_or(bytes.len(), |at| at + 10);
                vec![Action::Stdout([&bytes[..at], b"the tool failed\"}\n"].concat())]
            }
            other => vec![other],
        },
    ),
    printed(
        "dispatch-bad-reply-as-success",
        &["TH-DISP-18", "TH-DISP-26", "TH-DISP-27"],
        "A reply that is none is printed as an empty success.",
        |action| succeeded(action, "parse_error"),
    ),
    printed("dispatch-parses-stderr", &["TH-DISP-28"], "stderr is read as part of the reply.", |action| {
        started_by(action, "exec \"$@\" 2>&1")
    }),
    printed("dispatch-blocks-stderr", &["TH-DISP-29"], "stderr is a pipe that nobody reads.", |action| {
        started_by(
            action,
            "f=\"${TMPDIR:-/tmp}/stderr.$$\"; mkfifo \"$f\" && exec 2<>\"$f\" && rm \"$f\"; exec \"$@\"",
        )
    }),
    printed(
        "dispatch-never-ends",
        &["TH-DISP-31"],
        "The dispatcher does not end after its result.",
        |action| match action {
            Action::Exit(_) => Vec::new(),
            other => vec![other],
        },
    ),
    filtered(
        "dispatch-dies-of-nesting",
        &["TH-DISP-34"],
        "A thousand nested brackets in a reply kill the dispatcher.",
        Filter::Event(|memory, bytes| {
            for byte in bytes.iter() {
                match byte {
                    b'[' | b'{' => memory.depth += 1,
                    b']' | b'}' => memory.depth = memory.depth.saturating_sub(1),
                    _ => {}
                }
                memory.dies |= memory.depth > 1_000;
            }
            true
        }),
    ),
];

/// The mutant called `id`.
pub fn find_mutant(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

impl Mutant {
    /// The mutant as a machine.
    pub fn machine(&self, config: Config) -> Inner {
        let build = |config, ()| -> Inner { Box::new(Dispatcher::new(config)) };
        let rewire =
            |inner, filter| -> Inner { Box::new(Filtered { inner, filter, memory: Memory::default() }) };
        self.build(config, |_| (), build, rewire)
    }
}

struct Filtered {
    inner: Inner,
    filter: Filter,
    memory: Memory,
}

impl Machine for Filtered {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        match (event, self.filter) {
            (Event::ChildStdout(bytes), Filter::Event(filter)) => {
                let mut bytes = bytes.to_vec();
                if filter(&mut self.memory, &mut bytes) {
                    self.inner.handle(Event::ChildStdout(&bytes), now, &mut inner_actions);
                }
                if self.memory.dies {
                    actions.extend([Action::Kill, Action::Exit(134)]);
                    return;
                }
            }
            (Event::ChildStdout(bytes), Filter::Reread(edit)) => {
                self.inner.handle(Event::ChildStdout(&edit(bytes)), now, &mut inner_actions);
            }
            (Event::ChildStdout(bytes), Filter::Hasty(_)) => {
                let is_late = self.memory.chunks > 0 && now.saturating_sub(self.memory.read_at) > PATIENCE_MS;
                (self.memory.chunks, self.memory.read_at) = (self.memory.chunks + 1, now);
                if !is_late {
                    self.inner.handle(Event::ChildStdout(bytes), now, &mut inner_actions);
                }
            }
            (Event::ChildExit(exit), Filter::Hasty(true))
                if self.memory.chunks > 0 && now.saturating_sub(self.memory.read_at) > PATIENCE_MS =>
            {
                let killed = if exit == ChildExit::Code(0) { ChildExit::Signal(9) } else { exit };
                self.inner.handle(Event::ChildExit(killed), now, &mut inner_actions);
            }
            (Event::ChildExit(exit), Filter::Exit(filter)) => {
                self.inner.handle(Event::ChildExit(filter(exit)), now, &mut inner_actions);
            }
            (event, _) => self.inner.handle(event, now, &mut inner_actions),
        }
        match self.filter {
            Filter::Action(filter) => actions.extend(inner_actions.into_iter().flat_map(filter)),
            Filter::Resent(edit) => actions.extend(inner_actions.into_iter().map(|action| match action {
                Action::Spawn { argv, stdin } => Action::Spawn { argv, stdin: edit(&stdin) },
                other => other,
            })),
            _ => actions.append(&mut inner_actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Starts the toolhost through a shell script, whose last command runs it.
fn started_by(action: Action, script: &str) -> Vec<Action> {
    match action {
        Action::Spawn { mut argv, stdin } => {
            let mut wrapped = own(&["sh", "-c", script, "sh"]);
            wrapped.append(&mut argv);
            vec![Action::Spawn { argv: wrapped, stdin }]
        }
        other => vec![other],
    }
}

/// Prints an error of type `kind` as an empty success.
fn succeeded(action: Action, kind: &str) -> Vec<Action> {
    match action {
        Action::Stdout(bytes)
            if is_error(&bytes) && find(&bytes, &format!("\"type\":\"{kind}\"")).is_some() =>
        {
            vec![Action::Stdout(b"{}\n".to_vec())]
        }
        other => vec![other],
    }
}

fn retyped(action: Action, from: &str, to: &str) -> Vec<Action> {
    match action {
        Action::Stdout(bytes) if is_error(&bytes) => {
            vec![Action::Stdout(swap(&bytes, &format!("\"type\":\"{from}\""), &format!("\"type\":\"{to}\"")))]
        }
        other => vec![other],
    }
}

fn is_error(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{\"error\":true")
}

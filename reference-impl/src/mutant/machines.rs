//! Wrappers of a whole machine for any peer that reads lines: order, timing and amount of input and output.

use super::Inner;
use crate::machine::{Action, Event, Machine, Millis};

/// Handler of an event.
type Handle = fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>);

/// A machine whose events go through a function.
struct Wrapped {
    inner: Inner,
    handle: Handle,
}

/// Wraps a machine so that its events go through `handle`.
pub fn wrap(inner: Inner, handle: Handle) -> Inner {
    Box::new(Wrapped { inner, handle })
}

impl Machine for Wrapped {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        (self.handle)(&mut self.inner, event, now, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Loses all lines of a read after the first.
pub(crate) fn one_line_a_read(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) => {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            inner.handle(Event::Stdin(&bytes[..end]), now, actions);
        }
        other => inner.handle(other, now, actions),
    })
}

/// Treats every read as a whole line.
pub(crate) fn reads_are_lines(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) if !bytes.ends_with(b"\n") => {
            inner.handle(Event::Stdin(&[bytes, b"\n"].concat()), now, actions);
        }
        other => inner.handle(other, now, actions),
    })
}

/// Treats a second of silence as the end of input.
pub(crate) fn ends_at_silence(inner: Inner) -> Inner {
    Box::new(Silent { inner, last: None })
}

struct Silent {
    inner: Inner,
    last: Option<Millis>,
}

impl Machine for Silent {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let is_input = matches!(event, Event::Stdin(_) | Event::StdinEof);
        let is_late = is_input && self.last.replace(now).is_some_and(|last| now > last + 1_000);
        self.inner.handle(if is_late { Event::StdinEof } else { event }, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Does not exit at the end of input.
pub(crate) fn stays_after_eof(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| {
        inner.handle(event, now, actions);
        actions.retain(|action| !matches!(action, Action::Exit(_)));
    })
}

/// Exits with status 3 at the end of input.
pub(crate) fn exit_status_at_eof(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| {
        inner.handle(event, now, actions);
        for action in actions {
            if let Action::Exit(status) = action {
                *status = 3;
            }
        }
    })
}

/// Holds output back until the next output.
pub(crate) fn flushes_late(inner: Inner) -> Inner {
    Box::new(DelayedMachine { inner, held: Vec::new() })
}

struct DelayedMachine {
    inner: Inner,
    held: Vec<Action>,
}

impl Machine for DelayedMachine {
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

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Restarts every timer with each read.
pub(crate) fn waits_anew(inner: Inner) -> Inner {
    Box::new(RestartedMachine { inner, last: 0, behind: 0 })
}

struct RestartedMachine {
    inner: Inner,
    /// Time of the last event.
    last: Millis,
    /// Time by which the clock is behind.
    behind: Millis,
}

impl Machine for RestartedMachine {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if matches!(event, Event::Stdin(_) | Event::ChildStdout(_)) {
            self.behind += now.saturating_sub(self.last);
        }
        self.last = now;
        let mut new = Vec::new();
        self.inner.handle(event, now.saturating_sub(self.behind), &mut new);
        actions.extend(new.into_iter().map(|action| match action {
            Action::WakeAt(at) => Action::WakeAt(at.saturating_add(self.behind)),
            other => other,
        }));
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.last = now;
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Buffers a line without a limit. The rest without a line feed is passed on at the end of input.
pub(crate) fn whole_lines_only(inner: Inner) -> Inner {
    Box::new(WholeLines { inner, pending: Vec::new() })
}

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

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

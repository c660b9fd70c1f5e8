//! Wrappers of a whole machine that any peer which reads lines can have: order, time and amount of what goes in and
//! comes out.

use super::Inner;
use crate::machine::{Action, Event, Machine, Millis};

/// What becomes of an event.
type Handle = fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>);

/// A machine whose handling of events goes through a function.
struct Wrapped {
    inner: Inner,
    handle: Handle,
}

/// A machine whose handling of events goes through a function.
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

/// What follows the first line of a read is lost.
pub fn one_line_a_read(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) => {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            inner.handle(Event::Stdin(&bytes[..end]), now, actions);
        }
        other => inner.handle(other, now, actions),
    })
}

/// Every read is taken for a whole line.
pub fn reads_are_lines(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) if !bytes.ends_with(b"\n") => {
            inner.handle(Event::Stdin(&[bytes, b"\n"].concat()), now, actions);
        }
        other => inner.handle(other, now, actions),
    })
}

/// A second of silence within the input is its end.
pub fn ends_at_silence(inner: Inner) -> Inner {
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

/// The end of input does not end the process.
pub fn stays_after_eof(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| {
        inner.handle(event, now, actions);
        actions.retain(|action| !matches!(action, Action::Exit(_)));
    })
}

/// The status at the end of input is 3.
pub fn exit_status_at_eof(inner: Inner) -> Inner {
    wrap(inner, |inner, event, now, actions| {
        inner.handle(event, now, actions);
        for action in actions {
            if let Action::Exit(status) = action {
                *status = 3;
            }
        }
    })
}

/// Output stays in a buffer until something else comes out.
pub fn flushes_late(inner: Inner) -> Inner {
    Box::new(Late { inner, held: Vec::new() })
}

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

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Whoever waits for something begins to wait anew with every byte that comes.
pub fn waits_anew(inner: Inner) -> Inner {
    Box::new(Anew { inner, last: 0, behind: 0 })
}

struct Anew {
    inner: Inner,
    /// When something happened last.
    last: Millis,
    /// Time that does not count.
    behind: Millis,
}

impl Machine for Anew {
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

/// A line is kept whole, however long it gets; what has no line feed is handed on at the end of input.
pub fn whole_lines_only(inner: Inner) -> Inner {
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

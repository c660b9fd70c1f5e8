//! Slow forms of a correct peer on a virtual clock: late start and late output.

use std::collections::{BTreeSet, VecDeque};

use crate::drive::machine::{Action, Machine, MachineEvent, Millis};

/// Wake-up times of a machine; a shell may remember only the last one requested.
#[derive(Default)]
struct Wakes(BTreeSet<Millis>);

impl Wakes {
    /// Stores the inner machine's wake-up times and returns its other actions.
    fn take_over(&mut self, inner: Vec<Action>) -> impl Iterator<Item = Action> {
        inner.into_iter().filter(|action| match action {
            Action::WakeAt(at) => {
                self.0.insert(*at);
                false
            }
            _ => true,
        })
    }

    /// Removes passed times; returns true if there were any.
    fn pass(&mut self, now: Millis) -> bool {
        let before = self.0.len();
        self.0.retain(|at| *at > now);
        self.0.len() < before
    }

    /// Requests the next time: a stored one or `other`.
    fn ask(&self, other: Option<Millis>, actions: &mut Vec<Action>) {
        let next = self.0.first().copied().into_iter().chain(other).min();
        actions.extend(next.map(Action::WakeAt));
    }
}

/// Machine that neither reads nor writes before a given time.
pub(super) struct Sleepy {
    inner: Box<dyn Machine>,
    begins_at: Millis,
    has_begun: bool,
    /// Set if its input ended during the sleep.
    has_ended: bool,
}

impl Sleepy {
    pub(super) fn new(inner: Box<dyn Machine>, begins_at: Millis) -> Self {
        Self { inner, begins_at, has_begun: false, has_ended: false }
    }
}

impl Machine for Sleepy {
    fn begin(&mut self, _now: Millis, actions: &mut Vec<Action>) {
        actions.push(Action::WakeAt(self.begins_at));
    }

    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.has_begun {
            return self.inner.handle(event, now, actions);
        }
        match event {
            MachineEvent::StdinEof => self.has_ended = true,
            // Ends at once, as a process without a handler does.
            MachineEvent::Terminate => actions.push(Action::Exit(128 + 15)),
            _ if now >= self.begins_at => {
                self.has_begun = true;
                self.inner.begin(now, actions);
                if self.has_ended {
                    self.inner.handle(MachineEvent::StdinEof, now, actions);
                }
            }
            _ => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        self.has_begun && self.inner.wants_stdin()
    }
}

/// Machine that delays the output and exit of its inner machine.
pub(super) struct DelayedMachine {
    inner: Box<dyn Machine>,
    delay: Millis,
    held: VecDeque<(Millis, Action)>,
    wakes: Wakes,
}

impl DelayedMachine {
    pub(super) fn new(inner: Box<dyn Machine>, delay: Millis) -> Self {
        Self { inner, delay, held: VecDeque::new(), wakes: Wakes::default() }
    }

    /// Holds back output, and passes on the actions that are due.
    fn pass_on(&mut self, inner: Vec<Action>, now: Millis, actions: &mut Vec<Action>) {
        let Self { held, wakes, delay, .. } = self;
        for action in wakes.take_over(inner) {
            match action {
                Action::Stdout(_) => held.push_back((now + *delay, action)),
                // Ends after everything is written.
                Action::Exit(_) | Action::Abort if !held.is_empty() => {
                    let last = held.back().map_or(now, |(at, _)| *at);
                    held.push_back((last, action));
                }
                other => actions.push(other),
            }
        }
        let due = held.iter().take_while(|(at, _)| *at <= now).count();
        actions.extend(held.drain(..due).map(|(_, action)| action));
        wakes.ask(held.front().map(|(at, _)| *at), actions);
    }
}

impl Machine for DelayedMachine {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.begin(now, &mut inner);
        self.pass_on(inner, now, actions);
    }

    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        let is_ours = matches!(event, MachineEvent::Wake) && !self.wakes.pass(now);
        if !is_ours {
            self.inner.handle(event, now, &mut inner);
        }
        self.pass_on(inner, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::data::budget::Budget;
    use crate::data::plan::Chunking;
    use crate::data::transcript::EventKind;
    use crate::drive::transport::in_process::InProcessConnection;
    use crate::drive::transport::{Connection, Log, Pumped, Until};

    /// Answers each byte with a line and ends with its input.
    struct AnsweringMachine;

    impl Machine for AnsweringMachine {
        fn handle(&mut self, event: MachineEvent<'_>, _now: Millis, actions: &mut Vec<Action>) {
            match event {
                MachineEvent::Stdin(bytes) => {
                    actions.extend(bytes.iter().map(|_| Action::Stdout(b"x\n".to_vec())))
                }
                MachineEvent::StdinEof => actions.push(Action::Exit(0)),
                _ => {}
            }
        }
    }

    #[derive(Default)]
    struct RecordedEvents(Vec<(u64, EventKind)>);

    impl Log for RecordedEvents {
        fn record(&mut self, at_us: u64, kind: EventKind) {
            self.0.push((at_us, kind));
        }
    }

    /// Times of the two replies and of the end, milliseconds.
    fn times(machine: Box<dyn Machine>) -> (Vec<u64>, u64) {
        let mut connection = InProcessConnection::new(machine, &Budget::default());
        let mut seen = RecordedEvents::default();
        connection.queue(b"ab".to_vec(), Chunking::Every(1));
        connection.close_stdin();
        let pumped = connection.pump(Until::Exited, Duration::from_secs(60), &mut seen);
        assert_eq!(pumped, Pumped::Reached);
        let at = |wanted: fn(&EventKind) -> bool| {
            seen.0.iter().filter(|(_, kind)| wanted(kind)).map(|(at, _)| at / 1_000).collect::<Vec<_>>()
        };
        let ended = at(|kind| matches!(kind, EventKind::Exited { .. }));
        (at(|kind| matches!(kind, EventKind::Received { .. })), ended[0])
    }

    #[test]
    fn one_that_starts_late_reads_and_writes_nothing_before() {
        let (replies, ended) = times(Box::new(Sleepy::new(Box::new(AnsweringMachine), 5_000)));
        assert!(replies.iter().all(|at| *at == 5_000), "{replies:?}");
        assert_eq!(ended, 5_000);
    }

    #[test]
    fn one_that_writes_late_ends_after_its_last_reply() {
        let (replies, ended) = times(Box::new(DelayedMachine::new(Box::new(AnsweringMachine), 1_000)));
        assert!(replies.iter().all(|at| *at == 1_000), "{replies:?}");
        assert_eq!(ended, 1_000);
    }
}

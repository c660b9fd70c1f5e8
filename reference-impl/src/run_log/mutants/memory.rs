//! Mutants of the replayer that keep or lose state between lines.

use std::cell::{Cell, RefCell};

use crate::refusal::Refusal;
use crate::run_log::event::{Event, Reading, ToolOk};
use crate::run_log::line::Line;
use crate::run_log::state::{State, request};
use crate::run_log::tool::Outcome;
use crate::run_log::{CorrectDecisions, Expected, LogFault, Rerun, Rules};

/// A replayer that forgets the state when a tool fails.
#[derive(Debug, Default)]
pub(super) struct Forgetful(Cell<bool>);

impl Rules for Forgetful {
    fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
        let event = CorrectDecisions.event(line, reading)?;
        self.0.set(self.0.get() || matches!(event, Event::ToolError { .. }));
        Ok(event)
    }

    fn request(&self, rerun: &Rerun) -> Vec<u8> {
        if self.0.get() { request(&rerun.input, &State::default()) } else { CorrectDecisions.request(rerun) }
    }
}

/// A replayer that goes on after a different tool result, and refuses the log only at its end.
#[derive(Debug, Default)]
pub(super) struct Lingering(Cell<bool>);

impl Rules for Lingering {
    fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), LogFault> {
        self.0.set(self.0.get() || CorrectDecisions.reran(rerun, outcome, reading).is_err());
        Ok(())
    }

    fn end(&self, expected: &Expected) -> Result<(), LogFault> {
        if self.0.get() {
            Err(LogFault::RerunDiffers("a tool told something else"))
        } else {
            CorrectDecisions.end(expected)
        }
    }
}

/// A replayer that sends each tool the slots of the previous re-run too, so that removed slots reappear.
#[derive(Debug, Default)]
pub(super) struct Additive(RefCell<State>);

impl Rules for Additive {
    fn request(&self, rerun: &Rerun) -> Vec<u8> {
        let mut sent = rerun.before.clone();
        for (slot, held) in sent.slots.iter_mut().zip(&self.0.borrow().slots) {
            *slot = slot.take().or_else(|| held.clone());
        }
        request(&rerun.input, &sent)
    }

    fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), LogFault> {
        self.0.replace(rerun.after.clone());
        CorrectDecisions.reran(rerun, outcome, reading)
    }
}

/// Runs no tool again whose event is equal to an earlier one.
#[derive(Debug, Default)]
pub(super) struct Remembering(RefCell<Vec<ToolOk>>);

impl Rules for Remembering {
    fn reruns(&self, event: &ToolOk) -> bool {
        let mut seen = self.0.borrow_mut();
        let is_new = !seen.contains(event);
        if is_new {
            seen.push(event.clone());
        }
        is_new && CorrectDecisions.reruns(event)
    }
}

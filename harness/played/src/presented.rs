//! Presentations of a reference machine's output in a process of its own.

use peerproof_reference::machine::{Action, Event, Machine, Millis};

use peerproof_engine::drive::presentation::{Harmless, Presenter};

/// Wraps a machine so that its output has a presentation, if one is given.
pub(super) fn wrap_as(inner: Box<dyn Machine>, how: Option<Harmless>) -> Box<dyn Machine> {
    match how {
        Some(how) => Box::new(Presented { inner, presenter: Presenter::new(how) }),
        None => inner,
    }
}

struct Presented {
    inner: Box<dyn Machine>,
    presenter: Presenter,
}

impl Presented {
    fn present(&mut self, asked: Vec<Action>, actions: &mut Vec<Action>) {
        for action in asked {
            match action {
                Action::Stdout(bytes) => {
                    self.presenter.present(bytes, &mut |bytes| actions.push(Action::Stdout(bytes)));
                }
                other => actions.push(other),
            }
        }
    }
}

impl Machine for Presented {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut asked = Vec::new();
        self.inner.handle(event, now, &mut asked);
        self.present(asked, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut asked = Vec::new();
        self.inner.begin(now, &mut asked);
        self.present(asked, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

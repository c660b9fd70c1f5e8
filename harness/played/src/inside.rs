//! Machine of the reference as a peer in this process.

use peerproof_reference::machine as reference;

use peerproof_engine::drive::machine::{Action, Fetched, Machine, MachineEvent, Millis};

/// Wraps a reference machine as a machine of the engine.
pub fn inside(machine: impl reference::Machine + 'static) -> Box<dyn Machine> {
    Box::new(Inside { machine, asked: Vec::new() })
}

struct Inside<M> {
    machine: M,
    /// Latest actions of the machine; kept for its capacity.
    asked: Vec<reference::Action>,
}

impl<M> Inside<M> {
    fn pass_on(&mut self, actions: &mut Vec<Action>) {
        actions.extend(self.asked.drain(..).filter_map(action));
    }
}

impl<M: reference::Machine> Machine for Inside<M> {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.machine.begin(now, &mut self.asked);
        self.pass_on(actions);
    }

    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.machine.handle(told(event), now, &mut self.asked);
        self.pass_on(actions);
    }

    fn wants_stdin(&self) -> bool {
        self.machine.wants_stdin()
    }
}

fn told(event: MachineEvent<'_>) -> reference::Event<'_> {
    match event {
        MachineEvent::Stdin(bytes) => reference::Event::Stdin(bytes),
        MachineEvent::StdinEof => reference::Event::StdinEof,
        MachineEvent::Terminate => reference::Event::Terminate,
        MachineEvent::Wake => reference::Event::Wake,
        MachineEvent::Fetched(reply) => {
            let reply_of = |Fetched { status, location, body }| reference::Fetched { status, location, body };
            reference::Event::Fetched(reply.map(reply_of).map_err(reference::FetchError))
        }
        MachineEvent::SpawnFailed(why) => {
            reference::Event::ChildSpawnFailed(reference::SpawnFailure::Other(why))
        }
    }
}

/// Converts an action; `None` for actions without a meaning here, such as killing a child.
fn action(asked: reference::Action) -> Option<Action> {
    Some(match asked {
        reference::Action::Stdout(bytes) => Action::Stdout(bytes),
        reference::Action::Stderr(bytes) => Action::Stderr(bytes),
        reference::Action::WakeAt(at) => Action::WakeAt(at),
        reference::Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms } => {
            Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms }
        }
        reference::Action::Spawn { argv, .. } => Action::Spawn { argv },
        reference::Action::Exit(status) => Action::Exit(status),
        reference::Action::Abort => Action::Abort,
        _ => return None,
    })
}

//! Run mode: all of standard input is one request for one tool (IPC §3a).

use super::choices::HostErrorExit;
use super::host::{Host, Progress};
use super::reply::ActionBuilder;
use super::tool::Answer;
use super::{Components, Config};
use crate::frame::append_within;
use crate::machine::{Action, Event, Machine, Millis};

/// The toolhost in run mode.
pub struct Run {
    host: Host,
    input: Vec<u8>,
    ended: bool,
}

impl Run {
    /// Creates a toolhost that has read nothing.
    pub fn new(config: Config, components: Components) -> Self {
        Self { host: Host::new(config, components), input: Vec::new(), ended: false }
    }

    fn after(&mut self, progress: Progress, out: &mut ActionBuilder<'_>) {
        match progress {
            Progress::Waiting => {}
            Progress::Aborted => self.ended = true,
            Progress::Answered { host_error } => {
                self.ended = true;
                let nonzero = self.host.config().choices.host_error_exit == HostErrorExit::Nonzero;
                out.push(Action::Exit(i32::from(host_error && nonzero)));
            }
        }
    }
}

impl Machine for Run {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        let out = &mut ActionBuilder::new(actions);
        let progress = match event {
            Event::Stdin(bytes) => {
                let bytes_max = self.host.config().limits.stdin_bytes_max;
                if append_within(&mut self.input, bytes, bytes_max) {
                    return;
                }
                Host::refuse(&format!("request too large: it has at most {bytes_max} bytes"), out)
            }
            Event::StdinEof => {
                let input = std::mem::take(&mut self.input);
                self.host.request(&input, now, out)
            }
            Event::Wake => match self.host.resume(Answer::Woken, now, out) {
                Some(progress) => progress,
                None => return,
            },
            Event::Fetched(reply) => match self.host.resume(Answer::Fetched(reply), now, out) {
                Some(progress) => progress,
                None => return,
            },
            Event::Terminate => {
                self.ended = true;
                out.push(Action::Exit(self.host.config().mode.status_terminated()));
                return;
            }
            _ => return,
        };
        self.after(progress, out);
    }

    fn wants_stdin(&self) -> bool {
        !self.ended && !self.host.is_waiting()
    }
}

//! Mutants with another configuration, or whose machine or process misbehaves as a whole.

use super::{Edit, Mutant, edit};
use crate::envelope::choices::{OverSize, Process};
use crate::envelope::{self, Choices, Config, get, number, set, slot};
use crate::json::Value;
use crate::machine::{Action, Event};
use crate::mutant::{ShellFault, config, ends_at_silence, machine, shell, stays_after_eof, wrap};

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    machine("says-nothing", &["ENV-FRAME-01"], "It exits with status 0 and says nothing.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            if actions.contains(&Action::Exit(0)) {
                actions.retain(|action| !matches!(action, Action::Stdout(_)));
            }
        })
    }),
    machine("says-it-twice", &["ENV-FRAME-07"], "Each reply is written twice.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            if actions.contains(&Action::Exit(0)) {
                let again = actions.clone();
                actions.splice(0..0, again.into_iter().filter(|action| matches!(action, Action::Stdout(_))));
            }
        })
    }),
    machine("greets", &["ENV-FRAME-07"], "A line of another program's stands before the reply.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            if actions.contains(&Action::Exit(0)) {
                actions.insert(0, Action::Stdout(b"engine ready\n".to_vec()));
            }
        })
    }),
    machine("reads-once", &["ENV-FRAME-05"], "Only what the first read brings is read.", |inner| {
        let first = std::sync::atomic::AtomicBool::new(true);
        Box::new(ReadsOnce { inner, first })
    }),
    machine("refuses-with-status-0", &["ENV-FRAME-06"], "An error comes with exit status 0.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            let is_end = event == Event::StdinEof;
            inner.handle(event, now, actions);
            for action in actions.iter_mut().filter(|_| is_end) {
                if let Action::Exit(status) = action {
                    *status = 0;
                }
            }
        })
    }),
    machine(
        "gives-back-what-it-refuses",
        &["ENV-FRAME-06"],
        "A refused envelope is written all the same.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                inner.handle(event, now, actions);
                if actions.contains(&Action::Exit(1)) {
                    for action in actions.iter_mut() {
                        if let Action::Stdout(bytes) = action {
                            *bytes = b"{\"current_stage\":\"start\",\"outputs\":{}}\n".to_vec();
                        }
                    }
                }
            })
        },
    ),
    machine(
        "leaves-a-mark",
        &["ENV-PROC-02"],
        "An engine that keeps everything as it is adds a mark each time.",
        |_| {
            let choices = Choices { process: Process::Identity, ..Choices::default() };
            let mark = Edit::Reply(|given, reply| {
                let hops = slot(reply, "agent_hop_count").as_i64().unwrap_or(0);
                if get(given, "terminated") == Some(&Value::Bool(false)) && hops > 0 {
                    set(reply, "current_stage_number", number(hops + 10));
                }
            });
            Box::new(edit::Edited::new(envelope::machine(Config { choices, ..Config::default() }), mark))
        },
    ),
    machine("impatient", &["ENV-FRAME-05"], "A second of silence is the end of the input.", ends_at_silence),
    machine("stays", &["ENV-FRAME-08"], "It does not end.", stays_after_eof),
    machine("dies-of-depth", &["ENV-JSON-04"], "Deep nesting ends the process.", |inner| {
        Box::new(Deep { inner, open: 0 })
    }),
    config("shallow", &["ENV-JSON-03"], "At most 32 levels are read.", |config| {
        config.limits.nesting_max = 32
    }),
    config("small", &["ENV-SIZE-01"], "An envelope has at most 8 MiB.", |config| {
        config.limits.stdin_bytes_max = 8 << 20;
    }),
    machine("cuts-what-is-over-size", &["ENV-SIZE-03"], "Of a larger envelope the strings are cut.", |_| {
        let choices = Choices { over_size: OverSize::Process, ..Choices::default() };
        let cut = Edit::Reply(|_, reply| {
            if let Value::Object(metadata) = slot(reply, "metadata") {
                for (_, value) in metadata {
                    let text = value.as_str().filter(|text| text.len() > 9 << 20);
                    if let Some(begin) = text.map(|text| text.chars().take(1 << 20).collect::<String>()) {
                        *value = Value::from(begin.as_str());
                    }
                }
            }
        });
        Box::new(edit::Edited::new(envelope::machine(Config { choices, ..Config::default() }), cut))
    }),
    machine(
        "holds-what-it-refuses",
        &["ENV-SIZE-04"],
        "What is too large is held whole before it is refused.",
        |inner| Box::new(Holds { inner, held: Vec::new() }),
    ),
    config("one-id-for-all", &["ENV-ACC-05"], "Generated ids are always the same.", |config| {
        config.id_seed = 7
    }),
    shell("ignores-sigterm", &["ENV-FRAME-10"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell("leaves-a-child", &["ENV-FRAME-11"], "A child process outlives the peer.", ShellFault::LeavesChild),
    shell("leaves-a-file", &["ENV-FRAME-12"], "A temporary file outlives the peer.", ShellFault::LeavesFile),
];

struct ReadsOnce {
    inner: crate::mutant::Inner,
    first: std::sync::atomic::AtomicBool,
}

impl crate::machine::Machine for ReadsOnce {
    fn handle(&mut self, event: Event<'_>, now: crate::machine::Millis, actions: &mut Vec<Action>) {
        let is_more = matches!(event, Event::Stdin(bytes) if bytes.len() < 1 << 14)
            && !std::mem::take(self.first.get_mut());
        if !is_more {
            self.inner.handle(event, now, actions);
        }
    }
}

struct Holds {
    inner: crate::mutant::Inner,
    held: Vec<u8>,
}

impl crate::machine::Machine for Holds {
    fn handle(&mut self, event: Event<'_>, now: crate::machine::Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = event {
            self.held.extend_from_slice(bytes);
        }
        self.inner.handle(event, now, actions);
    }
}

struct Deep {
    inner: crate::mutant::Inner,
    open: usize,
}

/// Number of open brackets above which the process aborts.
const DEEP: usize = 5_000;

impl crate::machine::Machine for Deep {
    fn handle(&mut self, event: Event<'_>, now: crate::machine::Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = event {
            self.open += bytes.iter().filter(|byte| **byte == b'[').count();
        }
        match event {
            Event::StdinEof if self.open > DEEP => actions.push(Action::Abort),
            event => self.inner.handle(event, now, actions),
        }
    }
}

//! Mutants with another configuration, or whose machine or process misbehaves as a whole.

use super::{Mutant, patch};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{Inner, ShellFault, config, machine, shell, stays_after_eof, wrap};

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    machine("reads-once", &["PT-FRAME-04"], "Only what the first read brings is read.", |inner| {
        Box::new(ReadsOnce { inner, has_read: false })
    }),
    machine("stays", &["PT-FRAME-07"], "It does not end.", stays_after_eof),
    machine("dies-of-depth", &["PT-JSON-04"], "Deep nesting ends the process.", |inner| {
        Box::new(Deep { inner, open: 0 })
    }),
    machine("ends-tools-early", &["PT-TIME-01"], "A tool is ended after 5 s.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            if actions.iter().any(|action| matches!(action, Action::Spawn { .. })) {
                actions.push(Action::WakeAt(now + 5_000));
            }
        })
    }),
    machine("leaves-what-tools-leave", &["PT-TIME-03"], "What a tool leaves running stays.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            actions.retain(|action| *action != Action::Kill);
        })
    }),
    config(
        "waits-for-children",
        &["PT-TIME-02"],
        "A reply waits for what the tool leaves running.",
        |config| {
            let run = "    outcome = run(load(ORDER))\n";
            let wait = "    try:\n        os.waitpid(-1, 0)\n    except OSError:\n        pass\n";
            patch(config, run, &format!("{run}{wait}"));
        },
    ),
    config("wraps-imports", &["PT-FAIL-04"], "An exception at the import is an ImportError.", |config| {
        let import = "        tool = imported(module)\n";
        let wrapped = "        try:\n            tool = imported(module)\n        \
                       except Exception as error:\n            raise ImportError(str(error))\n";
        patch(config, import, wrapped);
    }),
    config("keeps-input-open", &["PT-OUT-03"], "Standard input of a tool never ends.", |config| {
        patch(config, "NULL = os.open(os.devnull, os.O_RDONLY)", "NULL, OPEN = os.pipe()");
    }),
    config("tools-leave-the-group", &["PT-TIME-04"], "A tool has a process group of its own.", |config| {
        let null = "NULL = os.open(os.devnull, os.O_RDONLY)";
        let leave = "import ctypes\nos.setsid()\nctypes.CDLL(None).prctl(1, 0)\n";
        patch(config, null, &format!("{leave}{null}"));
    }),
    config("results-are-spelled", &["PT-RES-05"], "What JSON lacks is given by its name.", |config| {
        patch(config, "allow_nan=False", "allow_nan=False, default=str");
    }),
    config("shallow", &["PT-JSON-03"], "At most 32 levels are read.", |config| {
        config.limits.nesting_max = 32
    }),
    config("small", &["PT-SIZE-01"], "A request has at most half a megabyte.", |config| {
        config.limits.stdin_bytes_max = 1 << 19;
    }),
    config("medium", &["PT-SIZE-02"], "A request has at most 8 MB.", |config| {
        config.limits.stdin_bytes_max = 8 << 20;
    }),
    shell("ignores-sigterm", &["PT-FRAME-08"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell("leaves-a-child", &["PT-FRAME-09"], "A child process outlives the peer.", ShellFault::LeavesChild),
    shell("leaves-a-file", &["PT-FRAME-10"], "A temporary file outlives the peer.", ShellFault::LeavesFile),
];

struct ReadsOnce {
    inner: Inner,
    has_read: bool,
}

impl Machine for ReadsOnce {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let is_more = matches!(event, Event::Stdin(bytes) if bytes.len() < 1 << 12)
            && std::mem::replace(&mut self.has_read, true);
        if !is_more {
            self.inner.handle(event, now, actions);
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

struct Deep {
    inner: Inner,
    open: usize,
}

/// Number of open brackets above which the process ends.
const DEEP: usize = 90;

impl Machine for Deep {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = event {
            self.open += bytes.iter().filter(|byte| **byte == b'[').count();
        }
        match event {
            Event::StdinEof if self.open > DEEP => actions.push(Action::Abort),
            event => self.inner.handle(event, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

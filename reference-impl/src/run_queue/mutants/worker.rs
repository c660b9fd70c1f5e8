//! Mutants of a worker: the life of a job, other workers, and SIGTERM.

use super::{Carried, Disk, Mutant, Rewrite, Rule, decides, disk, is_in, placed, read};
use crate::machine::{Action, ChildExit, Event, Machine, Millis};
use crate::mutant::{Inner, Seam, ShellFault, carrier, config, machine, shell, wrap};
use crate::run_queue::Config;
use crate::run_queue::choices::Sigterm;
use crate::run_queue::disk::{Fault, Kind, Op, OpResult, Place};

/// Exits the worker if it complains with `what`.
pub(super) fn exits_at(actions: &mut Vec<Action>, what: &[u8]) {
    let complains = |action: &Action| matches!(action, Action::Stderr(text) if memchr::memmem::find(text, what).is_some());
    if actions.iter().any(complains) {
        actions.push(Action::Exit(1));
    }
}

/// Moves a place in a worker's folder to `folder`.
fn aside(place: Place, folder: &str) -> Place {
    let name = place.strip_prefix(b"processing/worker-").and_then(|rest| {
        let at = memchr::memchr(b'/', rest)?;
        rest.get(at..)
    });
    match name {
        Some(name) => [folder.as_bytes(), name].concat(),
        None => place,
    }
}

/// Creates a mutant whose running jobs lie in a wrong folder.
macro_rules! runs_in {
    ($id:literal, $clause:literal, $fault:literal, $folder:literal) => {
        Mutant::new(
            $id,
            &[$clause],
            $fault,
            Seam::Wire(Rewrite {
                rule: |disk, op| match placed(op, |place| aside(place, $folder)) {
                    Op::Move(from, to) if from == to => Ok(OpResult::Done),
                    Op::Move(from, to) if is_in(&to, $folder) => {
                        disk.act(Op::Make($folder.into()))?;
                        disk.act(Op::Move(from, to))
                    }
                    op => disk.act(op),
                },
                handle: |inner, event, now, actions| {
                    inner.handle(event, now, actions);
                    for action in actions {
                        if let Action::Job(place) = action {
                            *place = aside(std::mem::take(place), $folder);
                        }
                    }
                },
            }),
        )
    };
}

pub(super) const fn tells(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    handle: fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>),
) -> Mutant {
    let rule: Rule = |disk, op| disk.act(op);
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite { rule, handle }))
}

/// Moves the contents of a folder to the inbox.
fn put_back(disk: &mut dyn super::Disk, folder: &str) -> Result<(), Fault> {
    for entry in disk.list(folder.as_bytes()).unwrap_or_default() {
        let from = [folder.as_bytes(), b"/", &entry.name].concat();
        let _ = disk.act(Op::Move(from, [b"inbox/", &entry.name[..]].concat()));
    }
    Ok(())
}

/// Hides the folders of other workers.
const NO_DEAD: Rule = |disk, op| match op {
    Op::List(place) if place == b"processing" => Ok(OpResult::Entries(Vec::new())),
    op => disk.act(op),
};

pub(super) const MUTANTS: &[Mutant] = &[
    shell(
        "work-leaves-a-child",
        &["QUE-WORK-31"],
        "A child process outlives the worker.",
        ShellFault::LeavesChild,
    ),
    shell(
        "work-leaves-a-file",
        &["QUE-WORK-31"],
        "A temporary file outlives the worker.",
        ShellFault::LeavesFile,
    ),
    carrier(
        "work-own-stdin",
        &["QUE-WORK-21"],
        "A program reads what the worker is given.",
        Carried::OwnStdin,
    ),
    carrier(
        "work-unread-output",
        &["QUE-WORK-23"],
        "What a program writes is never read.",
        Carried::UnreadOutput,
    ),
    carrier(
        "work-splits-runner",
        &["QUE-WORK-20"],
        "The path of a runner ends at its first blank.",
        Carried::SplitsRunner,
    ),
    carrier(
        "work-driver-input",
        &["QUE-WORK-22"],
        "A policy driver has the job as its standard input.",
        Carried::DriverInput,
    ),
    carrier(
        "work-no-driver",
        &["QUE-WORK-24"],
        "Without a runner a job is done and nothing is run.",
        Carried::NoDriver,
    ),
    runs_in!("work-in-inbox", "QUE-WORK-01", "A job lies in the inbox while it runs.", "inbox"),
    runs_in!("work-in-done", "QUE-WORK-02", "A job is moved to done before its program starts.", "done"),
    runs_in!("work-in-tmp", "QUE-WORK-03", "A job lies beside the four folders while it runs.", "tmp"),
    disk(
        "work-in-two",
        &["QUE-WORK-03"],
        "A job stays in the inbox until it has ended.",
        |disk, op| match op {
            Op::Move(from, to) if is_in(&from, "inbox") => {
                let bytes = read(disk, &from)?;
                disk.act(Op::Write(to, bytes))
            }
            Op::Move(from, to) if is_in(&from, "processing") => {
                let name = from.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at);
                let _ = disk.act(Op::Remove([b"inbox", &from[name..]].concat()));
                disk.act(Op::Move(from, to))
            }
            op => disk.act(op),
        },
    ),
    disk("work-copies", &["QUE-WORK-06"], "A job is written anew and removed where it was.", |disk, op| {
        match op {
            Op::Move(from, to) => {
                let bytes = read(disk, &from)?;
                disk.act(Op::Write(to, bytes))?;
                disk.act(Op::Remove(from))
            }
            op => disk.act(op),
        }
    }),
    disk(
        "work-copies-aside",
        &["QUE-WORK-06"],
        "A job is written anew under another name, and gets its own then.",
        |disk, op| match op {
            Op::Move(from, to) => {
                let bytes = read(disk, &from)?;
                let part = [&to[..], b".part"].concat();
                disk.act(Op::Write(part.clone(), bytes))?;
                disk.act(Op::Move(part, to))?;
                disk.act(Op::Remove(from))
            }
            op => disk.act(op),
        },
    ),
    disk("work-leaves-copy", &["QUE-WORK-04"], "What is done stays in processing as well.", |disk, op| {
        match op {
            Op::Move(from, to) if is_in(&to, "done") => {
                let bytes = read(disk, &from)?;
                disk.act(Op::Write(to, bytes))
            }
            op => disk.act(op),
        }
    }),
    disk("work-removes-done", &["QUE-WORK-04"], "What is done is removed.", |disk, op| match op {
        Op::Move(from, to) if is_in(&to, "done") => disk.act(Op::Remove(from)),
        op => disk.act(op),
    }),
    disk("work-renames", &["QUE-WORK-05"], "What is done gets another name.", |disk, op| match op {
        Op::Move(from, to) if is_in(&to, "done") => {
            let digest = to.iter().fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(*byte));
            disk.act(Op::Move(from, format!("done/{digest:016x}.json").into_bytes()))
        }
        op => disk.act(op),
    }),
    disk(
        "work-marks-done",
        &["QUE-WORK-09"],
        "What is done gets a line feed at its end.",
        |disk, op| match op {
            Op::Move(from, to) if is_in(&to, "done") => {
                let mut bytes = read(disk, &from)?;
                bytes.push(b'\n');
                disk.act(Op::Write(to, bytes))?;
                disk.act(Op::Remove(from))
            }
            op => disk.act(op),
        },
    ),
    decides!("work-success-fails", &["QUE-WORK-09"], "Every job ends in failed.", {
        fn succeeded(&self, _exit: ChildExit) -> bool {
            false
        }
    }),
    decides!("work-any-status", &["QUE-WORK-11"], "Any exit status is a success.", {
        fn succeeded(&self, exit: ChildExit) -> bool {
            matches!(exit, ChildExit::Code(_))
        }
    }),
    decides!("work-any-signal", &["QUE-WORK-11"], "A program that a signal ended did its job.", {
        fn succeeded(&self, exit: ChildExit) -> bool {
            matches!(exit, ChildExit::Code(0) | ChildExit::Signal(_))
        }
    }),
    config("work-tries-twice", &["QUE-WORK-10"], "A job that fails is run again.", |config: &mut Config| {
        config.attempts += 1;
    }),
    config(
        "work-retries-late",
        &["QUE-WORK-10"],
        "A job that fails is run again two seconds later than it should.",
        |config: &mut Config| config.retry_ms += 2_000,
    ),
    disk("work-no-reason", &["QUE-WORK-12"], "No reason is written.", |disk, op| match op {
        Op::Write(place, _) if is_in(&place, "failed") => Ok(OpResult::Done),
        op => disk.act(op),
    }),
    disk("work-empty-reason", &["QUE-WORK-12"], "Reasons are empty.", |disk, op| match op {
        Op::Write(place, _) if is_in(&place, "failed") => disk.act(Op::Write(place, Vec::new())),
        op => disk.act(op),
    }),
    disk("work-one-reason", &["QUE-WORK-12"], "There is one reason for all.", |disk, op| match op {
        Op::Write(place, bytes) if is_in(&place, "failed") => {
            match disk.act(Op::Write(b"failed/reason.txt".to_vec(), bytes)) {
                Err(Fault::Exists) => Ok(OpResult::Done),
                out => out,
            }
        }
        op => disk.act(op),
    }),
    disk("work-replaces-done", &["QUE-WORK-13"], "What is done replaces what had its name.", |disk, op| {
        match op {
            Op::Move(from, to) if is_in(&to, "done") => disk.act(Op::Replace(from, to)),
            op => disk.act(op),
        }
    }),
    disk("work-replaces-failed", &["QUE-WORK-13"], "What fails replaces what had its name.", |disk, op| {
        match op {
            Op::Move(from, to) if is_in(&to, "failed") => disk.act(Op::Replace(from, to)),
            op => disk.act(op),
        }
    }),
    disk(
        "work-replaces-reason",
        &["QUE-WORK-13"],
        "A reason replaces what had its name.",
        |disk, op| match op {
            Op::Write(place, bytes) if is_in(&place, "failed") => {
                let _ = disk.act(Op::Remove(place.clone()));
                disk.act(Op::Write(place, bytes))
            }
            op => disk.act(op),
        },
    ),
    disk("work-held-up", &["QUE-WORK-14"], "Once a job failed no other is taken.", |disk, op| match op {
        Op::List(place) if place == b"inbox" && !disk.list(b"failed").unwrap_or_default().is_empty() => {
            Ok(OpResult::Entries(Vec::new()))
        }
        op => disk.act(op),
    }),
    disk(
        "work-takes-one",
        &["QUE-WORK-14"],
        "While something is done nothing is taken.",
        |disk, op| match op {
            Op::List(place) if place == b"inbox" && !disk.list(b"done").unwrap_or_default().is_empty() => {
                Ok(OpResult::Entries(Vec::new()))
            }
            op => disk.act(op),
        },
    ),
    config(
        "work-looks-seldom",
        &["QUE-WORK-15"],
        "An idle worker looks once a minute.",
        |config: &mut Config| {
            config.poll_ms = 60_000;
        },
    ),
    config("work-spins", &["QUE-WORK-16"], "An idle worker looks all the time.", |config: &mut Config| {
        config.poll_ms = 0;
    }),
    config("work-ends-idle", &["QUE-WORK-17"], "An empty inbox ends the worker.", |config: &mut Config| {
        config.once = true;
    }),
    tells(
        "work-ends-at-failure",
        &["QUE-WORK-17"],
        "A failed job ends the worker.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            exits_at(actions, b" failed: ");
        },
    ),
    disk(
        "work-makes-nothing",
        &["QUE-WORK-19"],
        "Folders that are missing are not made.",
        |disk, op| match op {
            Op::Make(place) if !is_in(&place, "processing") => Ok(OpResult::Done),
            op => disk.act(op),
        },
    ),
    tells(
        "work-runs-nothing",
        &["QUE-WORK-20"],
        "Jobs are moved and not run.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            while let Some(at) = actions.iter().position(|action| matches!(action, Action::Job(_))) {
                actions.remove(at);
                inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
            }
        },
    ),
    tells(
        "work-names-only",
        &["QUE-WORK-20"],
        "A program is given the name of the job's file.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            for action in actions {
                if let Action::Job(place) = action {
                    let at = place.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                    place.drain(..at);
                }
            }
        },
    ),
    tells(
        "work-once-status",
        &["QUE-WORK-25"],
        "The end of the work is status 5.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            for action in actions {
                if let Action::Exit(status) = action {
                    *status = 5;
                }
            }
        },
    ),
    config(
        "work-once-stays",
        &["QUE-WORK-25"],
        "The worker goes on when there is nothing to do.",
        |config: &mut Config| {
            config.once = false;
        },
    ),
    Mutant::new(
        "work-once-leaves-dead",
        &["QUE-WORK-25"],
        "A worker that is to end does not look for what dead ones held.",
        Seam::Parts(|config, parts| {
            if config.once {
                super::rule(parts, NO_DEAD);
            }
        }),
    ),
    Mutant::new(
        "work-once-lists-once",
        &["QUE-WORK-25"],
        "A worker that is to end lists its inbox when it starts, and never again.",
        Seam::Parts(|config, parts| {
            if config.once {
                super::rebuild(parts, |inner| Box::new(ListsOnce { inner, has_listed: false }));
            }
        }),
    ),
    machine("once-starts-twice", &["QUE-ONCE-02"], "Each program is started twice.", |inner| {
        Box::new(Twice { inner, again: None })
    }),
    disk(
        "once-runs-done-again",
        &["QUE-ONCE-03"],
        "A worker that starts puts what is done back.",
        |disk, op| {
            if op == Op::Make(b"done".to_vec()) {
                put_back(disk, "done")?;
            }
            disk.act(op)
        },
    ),
    disk("once-completes-twice", &["QUE-ONCE-01"], "What is done is put into failed as well.", |disk, op| {
        match op {
            Op::Move(from, to) if is_in(&to, "done") => {
                let bytes = read(disk, &from)?;
                let failed = [b"failed", to.get(b"done".len()..).unwrap_or_default()].concat();
                let _ = disk.act(Op::Write(failed, bytes));
                disk.act(Op::Move(from, to))
            }
            op => disk.act(op),
        }
    }),
    disk("once-forgets", &["QUE-ONCE-04"], "What dead workers held is left.", NO_DEAD),
    disk("once-completes-unrun", &["QUE-ONCE-04"], "What dead workers held counts as done.", |disk, op| {
        let out = disk.act(op.clone());
        if let (Op::List(place), Ok(OpResult::Entries(entries))) = (&op, &out)
            && is_in(place, "processing")
        {
            for entry in entries {
                let from = [place, &b"/"[..], &entry.name].concat();
                let _ = disk.act(Op::Move(from, [b"done/", &entry.name[..]].concat()));
            }
            return Ok(OpResult::Entries(Vec::new()));
        }
        out
    }),
    disk("once-removes", &["QUE-ONCE-04"], "What dead workers held is removed.", |disk, op| {
        let out = disk.act(op.clone());
        if let (Op::List(place), Ok(OpResult::Entries(entries))) = (&op, &out)
            && is_in(place, "processing")
        {
            for entry in entries {
                let _ = disk.act(Op::Remove([place, &b"/"[..], &entry.name].concat()));
            }
            return Ok(OpResult::Entries(Vec::new()));
        }
        out
    }),
    disk(
        "once-replaces",
        &["QUE-ONCE-04"],
        "What dead workers held is put back over what has its name.",
        |disk, op| {
            let out = disk.act(op.clone());
            if let (Op::List(place), Ok(OpResult::Entries(entries))) = (&op, &out)
                && is_in(place, "processing")
            {
                for entry in entries {
                    let from = [place, &b"/"[..], &entry.name].concat();
                    let _ = disk.act(Op::Replace(from, [b"inbox/", &entry.name[..]].concat()));
                }
                return Ok(OpResult::Entries(Vec::new()));
            }
            out
        },
    ),
    disk("once-leaves-plain", &["QUE-ONCE-05"], "What lies in processing itself is left.", |disk, op| {
        let is_list = op == Op::List(b"processing".to_vec());
        match disk.act(op)? {
            OpResult::Entries(mut entries) if is_list => {
                entries.retain(|entry| entry.kind == Kind::Folder);
                Ok(OpResult::Entries(entries))
            }
            out => Ok(out),
        }
    }),
    disk("live-steals", &["QUE-LIVE-02"], "What living workers hold is taken.", |disk, op| {
        let out = disk.act(op.clone());
        if matches!((&op, &out), (Op::Hold(_), Err(Fault::Held))) { Ok(OpResult::Done) } else { out }
    }),
    disk(
        "live-returns",
        &["QUE-LIVE-02"],
        "A worker that starts puts all that is in processing back.",
        |disk, op| {
            if op == Op::Make(b"processing".to_vec()) {
                for entry in disk.list(b"processing").unwrap_or_default() {
                    put_back(disk, &format!("processing/{}", String::from_utf8_lossy(&entry.name)))?;
                }
            }
            disk.act(op)
        },
    ),
    disk(
        "live-takes-again",
        &["QUE-LIVE-01"],
        "What another worker was quicker to take is taken again.",
        |disk, op| {
            let out = disk.act(op.clone());
            if let (Op::Move(from, to), Err(Fault::Missing)) = (&op, &out)
                && let Some(name) = from.strip_prefix(b"inbox/")
            {
                for worker in disk.list(b"processing")? {
                    let other = [b"processing/", &worker.name[..], b"/", name].concat();
                    if let Ok(bytes) = read(disk, &other) {
                        return disk.act(Op::Write(to.clone(), bytes));
                    }
                }
            }
            out
        },
    ),
    tells("term-ignored", &["QUE-TERM-01"], "SIGTERM is not heard.", |inner, event, now, actions| {
        if event != Event::Terminate {
            inner.handle(event, now, actions);
        }
    }),
    Mutant::new(
        "term-loses",
        &["QUE-TERM-03"],
        "What is in flight at SIGTERM is ended and removed.",
        Seam::Parts(|config, parts| {
            config.choices.sigterm = Sigterm::Return;
            super::rule(parts, |disk, op| match op {
                Op::Move(from, to) if is_in(&to, "inbox") => disk.act(Op::Remove(from)),
                op => disk.act(op),
            });
        }),
    ),
    Mutant::new(
        "term-replaces",
        &["QUE-TERM-03"],
        "What is in flight at SIGTERM is put back over what has its name.",
        Seam::Parts(|config, parts| {
            config.choices.sigterm = Sigterm::Return;
            super::rule(parts, |disk, op| match op {
                Op::Move(from, to) if is_in(&to, "inbox") => disk.act(Op::Replace(from, to)),
                op => disk.act(op),
            });
        }),
    ),
    Mutant::new(
        "term-counts-as-done",
        &["QUE-TERM-04"],
        "What is in flight at SIGTERM is ended and counts as done.",
        Seam::Parts(|config, parts| {
            config.choices.sigterm = Sigterm::Return;
            super::rule(parts, |disk, op| match op {
                Op::Move(from, to) if is_in(&to, "inbox") => {
                    let to = [b"done", to.get(b"inbox".len()..).unwrap_or_default()].concat();
                    disk.act(Op::Move(from, to))
                }
                op => disk.act(op),
            });
        }),
    ),
    machine("term-drains", &["QUE-TERM-05"], "SIGTERM is heard when there is nothing to do.", |inner| {
        Box::new(Drains { inner, asked: false })
    }),
    tells(
        "term-leaves-program",
        &["QUE-TERM-06"],
        "SIGTERM ends the worker and not the program.",
        |inner, event, now, actions| {
            let asked = event == Event::Terminate;
            inner.handle(event, now, actions);
            if asked {
                actions.retain(|action| *action != Action::Kill);
                actions.push(Action::Exit(0));
            }
        },
    ),
    machine(
        "term-stays",
        &["QUE-TERM-07"],
        "The end of the last program does not end the worker.",
        |inner| {
            wrap(inner, |inner, event, now, actions| {
                let ended = matches!(event, Event::ChildExit(_));
                inner.handle(event, now, actions);
                actions.retain(|action| !(ended && matches!(action, Action::Exit(_))));
            })
        },
    ),
];

/// A mutant that runs each program twice.
struct Twice {
    inner: Inner,
    /// Job whose program runs for the first time.
    again: Option<Place>,
}

impl Machine for Twice {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
        self.note(actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match (event, self.again.take()) {
            (Event::ChildExit(_), Some(place)) => actions.push(Action::Job(place)),
            (event, again) => {
                self.again = again;
                self.inner.handle(event, now, actions);
                self.note(actions);
            }
        }
    }
}

impl Twice {
    fn note(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Job(place) = action {
                self.again = Some(place.clone());
            }
        }
    }
}

/// A mutant that lists the inbox once.
struct ListsOnce {
    inner: Box<dyn Disk>,
    has_listed: bool,
}

impl Disk for ListsOnce {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        let lists = matches!(&op, Op::List(place) if place == b"inbox");
        if lists && std::mem::replace(&mut self.has_listed, true) {
            return Ok(OpResult::Entries(Vec::new()));
        }
        self.inner.act(op)
    }
}

/// A mutant that delays SIGTERM until it is idle.
struct Drains {
    inner: Inner,
    asked: bool,
}

impl Machine for Drains {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if event == Event::Terminate {
            self.asked = true;
            return;
        }
        self.inner.handle(event, now, actions);
        // The worker is idle if it only sets a timer.
        let is_idle = actions.iter().any(|action| matches!(action, Action::WakeAt(at) if *at > now));
        if self.asked && is_idle {
            self.inner.handle(Event::Terminate, now, actions);
        }
    }
}

//! Course of a conversation: files put by the harness, lives of workers, started programs and looks.

use std::collections::BTreeSet;

use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::transcript::{
    Awaited, EventKind, Exit, FoundEntry, FoundKind, StdinState, Transcript,
};

use super::{QUEUE, RUNNER};
use crate::FOLDERS;
use crate::job::{self, JobVerdict};

/// A file that the harness put.
#[derive(Debug)]
pub(crate) struct PutFile {
    /// Time, microseconds.
    pub at: u64,
    /// Path relative to the folder of the fixtures.
    pub path: Vec<u8>,
    /// Content.
    pub bytes: Vec<u8>,
    /// Verdict about the content.
    pub what: JobVerdict,
    /// Word by which the job identifies itself.
    pub token: Option<String>,
}

impl PutFile {
    /// File name of a job in the inbox, or put into `processing/` by hand.
    pub(crate) fn job_name(&self) -> Option<&[u8]> {
        let path = self.path.strip_prefix(QUEUE.as_bytes())?;
        let name = path.strip_prefix(b"/inbox/").or_else(|| path.strip_prefix(b"/processing/"))?;
        job::is_name(name).then_some(name)
    }
}

/// Life of one worker.
#[derive(Debug)]
pub(crate) struct WorkerLife {
    /// Session of the plan.
    pub session: usize,
    /// Start, microseconds.
    pub begun: u64,
    /// End, microseconds.
    pub over: Option<u64>,
    /// Exit status, if it ended by itself.
    pub exit: Option<Exit>,
    /// First signal that the harness sent during its life, and the time.
    pub signal: Option<(u64, String)>,
    /// True if the harness waited for its end in vain.
    pub late: bool,
    /// Command of a process that outlived it.
    pub left: Option<String>,
    /// Path of a temporary file that outlived it.
    pub left_file: Option<String>,
}

impl WorkerLife {
    /// Takes in what happened to the worker.
    fn learn(&mut self, kind: &EventKind, at: u64) {
        match kind {
            EventKind::Exited { exit } => (self.exit, self.over) = (Some(*exit), Some(at)),
            EventKind::Killed => {
                if self.over.is_none() {
                    self.signal.get_or_insert((at, "KILL".to_owned()));
                }
                self.over = self.over.or(Some(at));
            }
            // The harness also sends signals to workers that have ended.
            EventKind::Signalled { signal } if self.over.is_none() => {
                self.signal.get_or_insert((at, signal.clone()));
            }
            EventKind::DeadlinePassed { awaited: Awaited::Exit, .. } => self.late = true,
            EventKind::LeakedProcess { command, .. } => self.left = Some(command.clone()),
            EventKind::LeftFile { path } => self.left_file = Some(path.clone()),
            _ => {}
        }
    }

    /// True if it ended without a signal from the harness.
    pub(crate) fn ended_by_itself(&self) -> bool {
        self.exit.is_some() && self.signal.is_none()
    }
}

/// Start of one program.
#[derive(Debug)]
pub(crate) struct Start {
    /// Time, microseconds.
    pub at: u64,
    /// Process id.
    pub pid: i32,
    /// Arguments.
    pub argv: Vec<String>,
    /// Content of its job file, if recorded.
    pub given: Option<Vec<u8>>,
    /// State of its standard input and number of bytes in it, if it looked.
    pub stdin: Option<(StdinState, usize)>,
    /// Time and exit status, if it ended by itself.
    pub end: Option<(u64, Exit)>,
}

impl Start {
    /// True if it exited with status 0.
    pub(crate) fn succeeded(&self) -> bool {
        self.end.is_some_and(|(_, exit)| exit == Exit::Code(0))
    }
}

/// Files found at one time.
#[derive(Debug)]
pub(crate) struct FolderSnapshot<'a> {
    /// Label of the step.
    pub label: &'a str,
    /// Lower bound of the time, microseconds.
    pub since: u64,
    /// Upper bound of the time, microseconds.
    pub until: u64,
    /// Path of the folder, relative to the folder of the fixtures.
    pub place: &'a [u8],
    /// Entries found, by path within the folder.
    pub found: &'a [FoundEntry],
}

impl<'a> FolderSnapshot<'a> {
    /// Files in the four folders, each with the name of its folder.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &'a FoundEntry)> {
        self.found.iter().filter(|one| one.kind == FoundKind::File).filter_map(|one| {
            let folder = FOLDERS.into_iter().find(|folder| {
                one.path.0.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
            })?;
            Some((folder, one))
        })
    }

    /// Files with exactly this content.
    pub(crate) fn copies(&self, bytes: &[u8]) -> Vec<(&'static str, &'a FoundEntry)> {
        self.files().filter(|(_, one)| holds(one, bytes)).collect()
    }
}

/// True if a file has exactly this content, as far as it was recorded.
pub(crate) fn holds(one: &FoundEntry, bytes: &[u8]) -> bool {
    one.total_bytes == bytes.len() as u64 && one.bytes.as_ref().is_some_and(|kept| bytes.starts_with(&kept.0))
}

/// Last component of a path.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Course of a conversation; each list is ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Timeline<'a> {
    /// Files put by the harness.
    pub puts: Vec<PutFile>,
    /// Lives of workers.
    pub lives: Vec<WorkerLife>,
    /// Started programs.
    pub starts: Vec<Start>,
    /// Looks.
    pub looks: Vec<FolderSnapshot<'a>>,
    /// True if the path of the program is among the worker's arguments.
    pub has_runner: bool,
    /// Paths from which the harness moved files away.
    pub taken: Vec<Vec<u8>>,
    /// Sessions of workers whose kill waited for an effect that never came.
    pub missed: BTreeSet<usize>,
    /// True if a look was incomplete.
    pub cut: bool,
}

impl<'a> Timeline<'a> {
    /// Course of a transcript.
    pub(crate) fn of(transcript: &'a Transcript) -> Self {
        let mut events: Vec<_> = transcript.events.iter().collect();
        events.sort_by_key(|event| event.at_us);
        let mut course = Self::default();
        let mut since = 0;
        for event in events {
            let at = event.at_us;
            if let Some(life) = course.lives.iter_mut().rev().find(|life| life.session == event.session) {
                life.learn(&event.kind, at);
            }
            match &event.kind {
                EventKind::Started { argv } => {
                    course.has_runner |= argv.iter().any(|part| part.contains(RUNNER));
                    course.lives.push(WorkerLife {
                        session: event.session,
                        begun: at,
                        over: None,
                        exit: None,
                        signal: None,
                        late: false,
                        left: None,
                        left_file: None,
                    });
                }
                EventKind::DeadlinePassed { awaited: Awaited::Effect, .. } => {
                    let mut steps = transcript.plan.steps.iter().filter(|step| step.session == event.session);
                    if steps.any(|step| matches!(step.act, Act::SignalWhen { .. })) {
                        course.missed.insert(event.session);
                    }
                }
                EventKind::FilePut { path, bytes, error: None } => {
                    let bytes = bytes.expand(&Vars::new()).unwrap_or_default();
                    let what = job::read(&bytes);
                    // An over-large file is not a job, and takes long to parse.
                    let token = (bytes.len() <= job::BYTES_MAX).then(|| job::token(&bytes)).flatten();
                    course.puts.push(PutFile { at, path: path.0.clone(), bytes, what, token });
                }
                EventKind::FileMoved { from, error: None, .. } => course.taken.push(from.0.clone()),
                EventKind::Looked { label, path, found, cut } => {
                    course.cut |= cut;
                    course.looks.push(FolderSnapshot { label, since, until: at, place: &path.0, found });
                }
                EventKind::ActorStarted { actor, argv, pid } if actor == RUNNER => course
                    .starts
                    .push(Start { at, pid: *pid, argv: argv.clone(), given: None, stdin: None, end: None }),
                EventKind::ActorReceived { actor, bytes, pid: Some(pid) } if actor == RUNNER => {
                    if let Some(start) = course.start(*pid) {
                        start.given = Some(bytes.0.clone());
                    }
                }
                EventKind::ActorSaw { actor, pid, seen } if actor == RUNNER => {
                    if let (
                        Some(start),
                        peerproof_engine::data::transcript::SightResult::Stdin { state, bytes },
                    ) = (course.start(*pid), seen)
                    {
                        start.stdin = Some((*state, bytes.0.len()));
                    }
                }
                EventKind::ActorEnded { actor, pid, exit } if actor == RUNNER => {
                    if let Some(start) = course.start(*pid) {
                        start.end = Some((at, *exit));
                    }
                }
                _ => {}
            }
            // These events have the time of the harness, in the order of its steps.
            if matches!(
                event.kind,
                EventKind::Looked { .. } | EventKind::FilePut { .. } | EventKind::Waited { .. }
            ) {
                since = at;
            }
        }
        course
    }

    fn start(&mut self, pid: i32) -> Option<&mut Start> {
        self.starts.iter_mut().rev().find(|start| start.pid == pid)
    }

    /// Index of the put whose job a program runs.
    pub(crate) fn job_of(&self, start: &Start) -> Option<usize> {
        let given = start.given.as_deref()?;
        let is_jobs = |put: &PutFile| put.path.starts_with(b"queue/");
        let exact = self.puts.iter().position(|put| is_jobs(put) && !given.is_empty() && put.bytes == given);
        exact.or_else(|| {
            let token = job::token(given)?;
            self.puts.iter().position(|put| is_jobs(put) && put.token.as_ref() == Some(&token))
        })
    }

    /// Starts of a job's program.
    pub(crate) fn starts_of(&self, put: &PutFile) -> impl Iterator<Item = &Start> {
        self.starts
            .iter()
            .filter(move |start| self.job_of(start).is_some_and(|job| std::ptr::eq(&self.puts[job], put)))
    }

    /// Times at which workers ended, and at which their successors began. A start by the dead worker may be
    /// recorded in between; the harness ends its program before.
    pub(crate) fn deaths(&self) -> Vec<u64> {
        let over = self.lives.iter().filter_map(|life| life.over);
        let next = |over: u64| self.lives.iter().map(|life| life.begun).filter(|begun| *begun > over).min();
        over.flat_map(|over| [Some(over), next(over)].into_iter().flatten()).collect()
    }

    /// Times at which workers were killed.
    pub(crate) fn kills(&self) -> Vec<u64> {
        let is_kill =
            |life: &&WorkerLife| life.signal.as_ref().is_some_and(|(_, signal)| signal.starts_with("KILL"));
        self.lives.iter().filter(is_kill).filter_map(|life| life.over).collect()
    }
}

#[cfg(test)]
mod tests {
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::payload::Payload;
    use peerproof_engine::data::plan::{AwaitedEffect, Step};
    use peerproof_engine::data::transcript::{Bytes, Event};

    use super::super::talk::Talk;
    use super::*;
    use crate::WORKER;

    /// Two workers. The first has already ended when KILL is sent to it.
    fn recorded() -> Transcript {
        let mut talk = Talk::new(&Facts::new(Side::Provider), WORKER, "QUE-WORK-17");
        let [first, second] = [talk.worker(), talk.worker()];
        let what = AwaitedEffect::Empty { folder: QUEUE.to_owned(), path: String::new() };
        let act = Act::SignalWhen { signal: "KILL".to_owned(), what, within_ms: 1 };
        talk.plan.steps.push(Step { session: first, ..Step::new(act) });
        let kill = || EventKind::Signalled { signal: "KILL".to_owned() };
        let vain = || EventKind::DeadlinePassed { awaited: Awaited::Effect, waited_ms: 1, slept: false };
        let events = [
            (first, EventKind::Started { argv: Vec::new() }),
            (first, vain()),
            (second, EventKind::Started { argv: Vec::new() }),
            (first, EventKind::Exited { exit: Exit::Code(1) }),
            (first, kill()),
            (second, vain()),
            (second, kill()),
            (second, EventKind::Exited { exit: Exit::Signal(9) }),
        ];
        let events = events.into_iter().enumerate();
        Transcript {
            boundary: "run_queue".to_owned(),
            check: String::new(),
            facts: Facts::new(Side::Provider).into(),
            plan: talk.plan.into(),
            timeout_scale: 1.0,
            events: events.map(|(at, (session, kind))| Event { at_us: at as u64, session, kind }).collect(),
        }
    }

    #[test]
    fn a_signal_to_a_worker_that_has_ended_is_not_its_end() {
        let transcript = recorded();
        let course = Timeline::of(&transcript);
        assert_eq!(course.lives.iter().map(WorkerLife::ended_by_itself).collect::<Vec<_>>(), [true, false]);
        assert_eq!(course.kills(), [7]);
        assert_eq!(course.missed, BTreeSet::from([0]));
        let choice = crate::worker::judge(&transcript);
        assert!(choice.findings.is_empty(), "{:?}", choice.findings);
    }

    /// Judgement of a worker that runs the job of a canary and gives its program this number of arguments.
    fn judged(arguments: usize) -> peerproof_engine::data::finding::Judgement {
        let mut talk = Talk::new(&Facts::new(Side::Provider), WORKER, "QUE-WORK-09");
        let job = talk.draft();
        talk.put(&job);
        talk.plan.steps[0].canary = true;
        let session = talk.worker();
        let name = String::from_utf8(job.name.expand(&Vars::new()).unwrap()).unwrap();
        let (text, actor) = (job.text(), RUNNER.to_owned());
        let bytes = || Bytes(text.clone().into());
        let found = FoundEntry {
            path: Bytes(format!("done/{name}").into()),
            kind: FoundKind::File,
            inode: 1,
            mode: 0o644,
            total_bytes: text.len() as u64,
            bytes: Some(bytes()),
        };
        let events = [
            EventKind::FilePut {
                path: Bytes(format!("{QUEUE}/inbox/{name}").into()),
                bytes: Payload::text(text.clone()),
                error: None,
            },
            EventKind::Started { argv: vec![actor.clone()] },
            EventKind::ActorStarted { actor: actor.clone(), argv: vec![name; arguments], pid: 7 },
            EventKind::ActorReceived { actor: actor.clone(), bytes: bytes(), pid: Some(7) },
            EventKind::ActorEnded { actor, pid: 7, exit: Exit::Code(0) },
            EventKind::Looked {
                label: super::super::REST.to_owned(),
                path: Bytes(QUEUE.into()),
                found: vec![found],
                cut: false,
            },
        ];
        let events = events.into_iter().enumerate();
        let transcript = Transcript {
            plan: talk.plan.into(),
            events: events.map(|(at, kind)| Event { at_us: at as u64, session, kind }).collect(),
            ..recorded()
        };
        crate::worker::judge(&transcript)
    }

    /// A canary counts even if other faults are found; otherwise no further check would run.
    #[test]
    fn a_canary_counts_whose_job_was_done_whatever_else_is_wrong() {
        for (arguments, reasons) in [(1, &[][..]), (2, &["arguments"][..])] {
            let judgement = judged(arguments);
            let found: Vec<&str> = judgement.findings.iter().map(|it| it.reason.as_str()).collect();
            assert_eq!(found, reasons);
            assert_eq!(judgement.canaries_answered, 1);
        }
    }
}

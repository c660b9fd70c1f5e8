//! The worker as a machine: it reads and moves files through a disk, and starts programs.

use std::collections::VecDeque;

use super::choices::{ExitStatus, SecondWorker, Sigterm};
use super::decisions::{NAME_BYTES_MAX, Treat, split};
use super::disk::{Entry, Fault, Kind, Op, Place, within};
use super::{Config, Parts};
use crate::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};

/// Exit status of a second worker where only one is allowed.
pub(crate) const STATUS_SECOND: i32 = 3;

/// Exit status after a failed job, if so configured.
const STATUS_JOB_FAILED: i32 = 1;

/// Exit status for an unusable queue.
const STATUS_QUEUE: i32 = 70;

/// Attempts with other names if one is in use.
const TRIES: u64 = 64;

const PROCESSING: &[u8] = b"processing";

/// Pause between two checks for locks before a worker with `--once` ends, and the number of checks. While a dead
/// worker's program starts, the new process keeps that worker's locks.
const HELD_MS: Millis = 50;
const HELD_LOOKS: u32 = 10;

/// A worker. It starts programs one at a time by [`Action::Job`], and [`Event::ChildExit`] reports their end.
pub struct Worker {
    config: Config,
    parts: Parts,
    /// Own folder.
    own: Place,
    /// Folders of dead workers, with locks held by this worker.
    inherited: Vec<Place>,
    /// Jobs in those folders that were not started.
    left: VecDeque<TakenJob>,
    /// Inbox at the last check.
    waiting: VecDeque<Entry>,
    job: Option<Job>,
    /// Number of checks since the last job, while other processes hold locks; `None` if they hold none.
    held_looks: Option<u32>,
    /// Number of generated names.
    names: u64,
    /// Last complaint about an entry that could not be taken.
    complaint: String,
    any_failed: bool,
    stopping: bool,
    ended: bool,
}

/// A job of this worker.
struct TakenJob {
    folder: Place,
    /// File name.
    file: Vec<u8>,
    /// Number of failed starts. If there are any, the file name ends with `.` and this number, for the next worker
    /// that takes the job over.
    starts: u64,
    treat: Treat,
}

impl TakenJob {
    fn place(&self) -> Place {
        within(&self.folder, &self.file)
    }

    fn name(&self) -> &[u8] {
        counted(&self.file).0
    }
}

/// Splits a held file name into the job's name and the number of failed starts. All names end in a suffix of letters.
fn counted(file: &[u8]) -> (&[u8], u64) {
    let at = file.iter().rposition(|byte| *byte == b'.').unwrap_or(file.len());
    let (name, count) = file.split_at(at);
    let count = std::str::from_utf8(count.get(1..).unwrap_or_default()).ok().and_then(|it| it.parse().ok());
    count.map_or((file, 0), |count| (name, count))
}

struct Job {
    taken: TakenJob,
    phase: Phase,
}

enum Phase {
    /// The program is to be started at this time.
    Due(Millis),
    /// The program runs.
    Running,
    /// The job is to be moved.
    Leaves(End),
}

/// End of a job.
#[derive(Clone)]
enum End {
    Done,
    Failed(String),
    /// The job goes back for another worker.
    Returned,
}

impl Worker {
    /// Creates a worker that has not begun.
    pub fn new(config: Config, parts: Parts) -> Self {
        Self {
            config,
            parts,
            own: Place::new(),
            inherited: Vec::new(),
            left: VecDeque::new(),
            waiting: VecDeque::new(),
            job: None,
            held_looks: None,
            names: 0,
            complaint: String::new(),
            any_failed: false,
            stopping: false,
            ended: false,
        }
    }

    fn act(&mut self, op: Op) -> Result<(), Fault> {
        self.parts.disk.act(op).map(|_| ())
    }

    /// Unique part for a generated name.
    fn part(&mut self) -> String {
        self.names += 1;
        format!("{:016x}-{}", self.config.seed, self.names)
    }

    /// Creates the folders and locks its own.
    fn set_up(&mut self) -> Result<(), (i32, String)> {
        let failed = |what: &str, fault: Fault| (STATUS_QUEUE, format!("{what}: {fault}"));
        for folder in ["inbox", "processing", "done", "failed"] {
            self.act(Op::Make(folder.into())).map_err(|fault| failed(folder, fault))?;
        }
        if self.config.choices.second_worker == SecondWorker::Refuse {
            self.act(Op::Hold(Place::new())).map_err(|fault| match fault {
                Fault::Held => (STATUS_SECOND, "another worker works on this queue".to_owned()),
                fault => failed("the queue", fault),
            })?;
        }
        self.hold_own().map_err(|fault| failed("processing", fault))
    }

    /// Creates and locks the own folder. Another worker may find it before it is locked, and remove it.
    fn hold_own(&mut self) -> Result<(), Fault> {
        let mut last = Fault::Exists;
        for _ in 0..TRIES {
            let own = within(PROCESSING, format!("worker-{}", self.part()).as_bytes());
            self.act(Op::Make(own.clone()))?;
            match self.act(Op::Hold(own.clone())) {
                Ok(()) => {
                    self.own = own;
                    return Ok(());
                }
                Err(fault @ (Fault::Held | Fault::Missing)) => last = fault,
                Err(fault) => return Err(fault),
            }
        }
        Err(last)
    }

    /// Takes the next step that needs no waiting. It handles at most one job, so that events are not delayed.
    fn go_on(&mut self, now: Millis, actions: &mut Vec<Action>) {
        match self.job.take() {
            Some(Job { taken, phase: Phase::Due(at) }) if at <= now => {
                actions.push(Action::Job(taken.place()));
                self.job = Some(Job { taken, phase: Phase::Running });
            }
            Some(Job { taken, phase: Phase::Leaves(end) }) => self.leave(taken, end, now, actions),
            Some(job) => {
                if let Phase::Due(at) = job.phase {
                    actions.push(Action::WakeAt(at));
                }
                self.job = Some(job);
            }
            None if self.stopping => self.end(0, actions),
            None => match self.next(actions) {
                Some(taken) => self.begin_job(taken, now, actions),
                None if self.config.once && self.held_looks.is_some_and(|looks| looks < HELD_LOOKS) => {
                    actions.push(Action::WakeAt(now + HELD_MS));
                }
                None if self.config.once => {
                    let shows = self.config.choices.once_failed_exit == ExitStatus::Nonzero;
                    self.end(if shows && self.any_failed { STATUS_JOB_FAILED } else { 0 }, actions);
                }
                None => actions.push(Action::WakeAt(now + self.config.poll_ms)),
            },
        }
    }

    fn end(&mut self, status: i32, actions: &mut Vec<Action>) {
        let own = std::mem::take(&mut self.own);
        // The folder stays if it holds a job, for the next worker.
        let _ = self.act(Op::Remove(own));
        self.ended = true;
        actions.push(Action::Exit(status));
    }

    /// Takes the next job.
    fn next(&mut self, actions: &mut Vec<Action>) -> Option<TakenJob> {
        if let Some(taken) = self.known(actions) {
            return Some(taken);
        }
        match self.inherit(actions) {
            Ok(held) => self.held_looks = held.then(|| self.held_looks.unwrap_or(0) + 1),
            Err(fault) => self.complain(actions, &format!("cannot look for jobs of dead workers: {fault}")),
        }
        // Without its folder it cannot take jobs.
        if self.parts.disk.look(&self.own) == Kind::Missing
            && let Err(fault) = self.hold_own()
        {
            self.complain(actions, &format!("cannot make a folder of its own: {fault}"));
        }
        let choices = self.config.choices;
        let mut waiting = self.parts.disk.list(b"inbox").unwrap_or_default();
        waiting.retain(|entry| self.parts.ways.treats(entry, &choices) != Treat::Leave);
        waiting.sort_by(|one, other| one.name.cmp(&other.name));
        self.waiting = waiting.into();
        self.known(actions)
    }

    /// Writes a complaint unless it repeats the last one.
    fn complain(&mut self, actions: &mut Vec<Action>, what: &str) {
        if self.complaint != what {
            what.clone_into(&mut self.complaint);
            say(actions, what);
        }
    }

    fn known(&mut self, actions: &mut Vec<Action>) -> Option<TakenJob> {
        if let Some(taken) = self.left.pop_front() {
            return Some(taken);
        }
        while let Some(entry) = self.waiting.pop_front() {
            let place = within(b"inbox", &entry.name);
            if self.config.choices.unreadable == Treat::Leave
                && matches!(self.parts.disk.read(place.clone(), 0, true), Err(Fault::Other(_)))
            {
                continue;
            }
            if let Some(taken) = self.take(place, entry, actions) {
                return Some(taken);
            }
        }
        None
    }

    /// Takes the job at a place. If that fails, the next check finds it again.
    fn take(&mut self, place: Place, entry: Entry, actions: &mut Vec<Action>) -> Option<TakenJob> {
        let treat = self.parts.ways.treats(&entry, &self.config.choices);
        match self.move_to(place, &self.own.clone(), &entry.name) {
            Ok(file) => return Some(TakenJob { folder: self.own.clone(), file, starts: 0, treat }),
            // Another worker was faster.
            Err(Fault::Missing) => {}
            Err(fault) => {
                self.complain(actions, &format!("{} cannot be taken: {fault}", entry.name.escape_ascii()));
            }
        }
        None
    }

    /// Takes over the folders of dead workers, and jobs directly in `processing/`. Returns true if other processes
    /// hold locks.
    fn inherit(&mut self, actions: &mut Vec<Action>) -> Result<bool, Fault> {
        let mut held = false;
        for entry in self.parts.disk.list(PROCESSING)? {
            let folder = within(PROCESSING, &entry.name);
            if entry.kind != Kind::Folder {
                if self.parts.ways.treats(&entry, &self.config.choices) != Treat::Leave
                    && let Some(taken) = self.take(folder, entry, actions)
                {
                    self.left.push_back(taken);
                }
                continue;
            }
            if folder == self.own || self.inherited.contains(&folder) {
                continue;
            }
            if let Err(fault) = self.act(Op::Hold(folder.clone())) {
                held |= fault == Fault::Held;
                continue;
            }
            let jobs = self.parts.disk.list(&folder)?;
            let choices = self.config.choices;
            let ways = &self.parts.ways;
            self.left.extend(jobs.iter().map(|entry| {
                let (name, starts) = counted(&entry.name);
                let is_failed =
                    ways.treats(&Entry { name: name.to_vec(), kind: entry.kind }, &choices) == Treat::Fail;
                let treat = if is_failed { Treat::Fail } else { Treat::Run };
                TakenJob { folder: folder.clone(), file: entry.name.clone(), starts, treat }
            }));
            self.inherited.push(folder.clone());
            self.tidy(&folder);
        }
        Ok(held)
    }

    /// Removes the folder of a dead worker once it is empty.
    fn tidy(&mut self, folder: &[u8]) {
        if folder != self.own && self.act(Op::Remove(folder.to_vec())).is_ok() {
            self.inherited.retain(|other| other != folder);
        }
    }

    fn begin_job(&mut self, taken: TakenJob, now: Millis, actions: &mut Vec<Action>) {
        self.held_looks = None;
        match self.judge(&taken) {
            // A pending SIGTERM is handled first.
            Ok(()) => {
                self.job = Some(Job { taken, phase: Phase::Due(now) });
                actions.push(Action::WakeAt(now));
            }
            Err(fault) => self.leave(taken, End::Failed(fault.to_string()), now, actions),
        }
    }

    fn judge(&mut self, taken: &TakenJob) -> Result<(), Fault> {
        if taken.treat == Treat::Fail {
            return Err(Fault::Other("what has this name or is of this kind is not run".to_owned()));
        }
        let follows = self.config.choices.symlink == Treat::Run;
        let text = self.parts.disk.read(taken.place(), self.config.limits.stdin_bytes_max, follows)?;
        let read = self.parts.ways.read(&text, &self.config);
        read.map(|_| ()).map_err(|why| Fault::Other(format!("it is malformed: {why}")))
    }

    /// Handles the end of the running program.
    fn program_ended(
        &mut self,
        exit: Result<ChildExit, SpawnFailure>,
        now: Millis,
        actions: &mut Vec<Action>,
    ) {
        if !matches!(self.job, Some(Job { phase: Phase::Running, .. })) {
            return;
        }
        let Some(Job { mut taken, .. }) = self.job.take() else { return };
        let end = match exit {
            Ok(exit) if self.parts.ways.succeeded(exit) => End::Done,
            _ if self.returns() => End::Returned,
            exit => {
                let why = match exit {
                    Ok(ChildExit::Code(status)) => format!("its program ended with status {status}"),
                    Ok(ChildExit::Signal(signal)) => format!("its program was ended by signal {signal}"),
                    Err(why) => format!("its program was not started: {why}"),
                };
                taken.starts += 1;
                if taken.starts < self.config.attempts {
                    self.count(&mut taken);
                    if !self.stopping {
                        self.job = Some(Job { taken, phase: Phase::Due(now + self.config.retry_ms) });
                        return self.go_on(now, actions);
                    }
                    End::Returned
                } else {
                    End::Failed(why)
                }
            }
        };
        self.leave(taken, end, now, actions);
    }

    /// Records the number of failures in the file name, for the next worker. A name without room for it stays
    /// unchanged.
    fn count(&mut self, taken: &mut TakenJob) {
        let file = [taken.name(), format!(".{}", taken.starts).as_bytes()].concat();
        if self.act(Op::Move(taken.place(), within(&taken.folder, &file))).is_ok() {
            taken.file = file;
        }
    }

    fn returns(&self) -> bool {
        self.stopping && self.config.choices.sigterm == Sigterm::Return
    }

    /// Moves a job to its final folder and continues. A failed move is retried later, without another run.
    fn leave(&mut self, taken: TakenJob, end: End, now: Millis, actions: &mut Vec<Action>) {
        let folder: &[u8] = match &end {
            End::Done => b"done",
            End::Failed(_) => b"failed",
            // In the inbox the number of failures would be lost.
            End::Returned if taken.starts > 0 => return self.end(0, actions),
            End::Returned => b"inbox",
        };
        let (place, own_name) = (taken.place(), taken.name().to_vec());
        match self.move_to(place.clone(), folder, &own_name) {
            Ok(name) => {
                if let End::Failed(why) = end {
                    self.any_failed = true;
                    say(actions, &format!("{} failed: {why}", name.escape_ascii()));
                    self.tell(&name, &why, actions);
                }
                self.tidy(&taken.folder);
            }
            Err(Fault::Missing) if self.parts.disk.look(&place) == Kind::Missing => {
                say(actions, &format!("{} was taken away", own_name.escape_ascii()));
            }
            Err(fault) => {
                self.complain(actions, &format!("{} cannot be moved: {fault}", own_name.escape_ascii()));
                if !self.stopping {
                    self.job = Some(Job { taken, phase: Phase::Leaves(end) });
                    return actions.push(Action::WakeAt(now + self.config.poll_ms));
                }
            }
        }
        if self.stopping { self.end(0, actions) } else { actions.push(Action::WakeAt(now)) }
    }

    /// Moves a file into a folder and returns its name, which is a generated one if its own is in use.
    fn move_to(&mut self, from: Place, folder: &[u8], name: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut to = name.to_vec();
        let mut made = false;
        for _ in 0..TRIES {
            match self.act(Op::Move(from.clone(), within(folder, &to))) {
                Ok(()) => return Ok(to),
                Err(Fault::Exists) => {
                    let part = format!("~{}", self.part());
                    to = self.parts.ways.renamed(name, &part);
                }
                Err(Fault::Missing) if !made => {
                    made = true;
                    // A process that removed the folder of a living worker has removed its lock too.
                    if folder == self.own {
                        return Err(Fault::Missing);
                    }
                    self.act(Op::Make(folder.to_vec()))?;
                }
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Exists)
    }

    /// Writes the reason of a failed job.
    fn tell(&mut self, name: &[u8], why: &str, actions: &mut Vec<Action>) {
        const SUFFIX: &[u8] = b".reason.txt";
        let (stem, _) = split(name);
        let mut part = String::new();
        for _ in 0..TRIES {
            let kept = stem.len().min(NAME_BYTES_MAX - SUFFIX.len() - part.len());
            let reason = [stem.get(..kept).unwrap_or_default(), part.as_bytes(), SUFFIX].concat();
            match self.act(Op::Write(within(b"failed", &reason), format!("{why}\n").into_bytes())) {
                Err(Fault::Exists) => part = format!("~{}", self.part()),
                Ok(()) => return,
                Err(fault) => return say(actions, &format!("the reason cannot be written: {fault}")),
            }
        }
    }

    fn terminate(&mut self, now: Millis, actions: &mut Vec<Action>) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        match self.job.take() {
            Some(job @ Job { phase: Phase::Running, .. }) => {
                self.job = Some(job);
                if self.returns() {
                    actions.push(Action::Kill);
                }
            }
            Some(Job { taken, phase }) => {
                let end = if let Phase::Leaves(end) = phase { end } else { End::Returned };
                self.leave(taken, end, now, actions);
            }
            None => self.end(0, actions),
        }
    }
}

fn say(actions: &mut Vec<Action>, what: &str) {
    actions.push(Action::Stderr(format!("{what}\n").into_bytes()));
}

impl Machine for Worker {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        match self.set_up() {
            Ok(()) => actions.push(Action::WakeAt(now)),
            Err((status, why)) => {
                say(actions, &why);
                self.ended = true;
                actions.push(Action::Exit(status));
            }
        }
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        match event {
            Event::Wake => self.go_on(now, actions),
            Event::ChildExit(exit) => self.program_ended(Ok(exit), now, actions),
            Event::ChildSpawnFailed(failure) => self.program_ended(Err(failure), now, actions),
            Event::Terminate => self.terminate(now, actions),
            _ => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        false
    }
}

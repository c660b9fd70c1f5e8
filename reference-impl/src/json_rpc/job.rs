//! Calls under way: whose turn it is, and when the next one wants to go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::method::Task;
use crate::machine::Millis;

/// Names a job.
pub(super) type JobId = u64;

/// A call under way.
pub(super) struct Job {
    /// Where its outcome goes; that of a notification goes nowhere.
    pub reply_to: Option<ReplyTo>,
    /// When it is over, done or not.
    pub deadline: Millis,
    pub task: Box<dyn Task>,
    /// The stream that carries what it says on the way.
    pub stream: Option<Stream>,
    /// The name of the method, where calls are logged, and the time of receipt.
    pub label: Option<(Box<[u8]>, Millis)>,
}

/// Where an outcome goes.
pub(super) struct ReplyTo {
    /// Number of the exchange.
    pub exchange: u64,
    /// The id as it was spelled.
    pub id: Box<str>,
}

/// A stream that has begun.
pub(super) struct Stream {
    pub number: u64,
    /// Chunks so far.
    pub sequence: u64,
}

impl Job {
    /// When it will be over, done or not.
    pub fn ends_at(&self) -> Millis {
        self.task.ends_at().map_or(self.deadline, |end| end.min(self.deadline))
    }

    /// True when its time is up before it is done.
    pub fn is_overdue(&self, now: Millis) -> bool {
        now >= self.deadline && self.task.ends_at().is_none_or(|end| end > self.deadline)
    }

    fn held_bytes(&self) -> usize {
        self.task.held_bytes() + self.reply_to.as_ref().map_or(0, |to| to.id.len()) + size_of::<Self>()
    }
}

/// All calls under way.
#[derive(Default)]
pub(super) struct Jobs {
    jobs: BTreeMap<JobId, (Job, usize)>,
    timers: BTreeSet<(Millis, JobId)>,
    runnable: VecDeque<JobId>,
    last: JobId,
    held_bytes: usize,
}

impl Jobs {
    /// Adds a job; it is its turn as soon as those before it had theirs.
    pub fn add(&mut self, job: Job) {
        self.last += 1;
        let held = job.held_bytes();
        self.held_bytes += held;
        self.jobs.insert(self.last, (job, held));
        self.runnable.push_back(self.last);
    }

    pub fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id).map(|(job, _)| job)
    }

    /// Takes a job out that is neither waiting nor runnable.
    pub fn remove(&mut self, id: JobId) -> Option<Job> {
        let (job, held) = self.jobs.remove(&id)?;
        self.held_bytes -= held;
        Some(job)
    }

    /// Lets a job wait until `at`.
    pub fn wait(&mut self, id: JobId, at: Millis) {
        self.timers.insert((at, id));
    }

    /// Puts a job at the end of the queue.
    pub fn go_on(&mut self, id: JobId) {
        self.runnable.push_back(id);
    }

    /// Makes the jobs runnable that waited until `now` or before; how many are runnable.
    pub fn wake(&mut self, now: Millis) -> usize {
        while let Some((at, id)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            self.runnable.push_back(id);
        }
        self.runnable.len()
    }

    pub fn next_runnable(&mut self) -> Option<JobId> {
        self.runnable.pop_front()
    }

    /// When the next job wants to go on.
    pub fn next_at(&self) -> Option<Millis> {
        if self.runnable.is_empty() { self.timers.first().map(|(at, _)| *at) } else { Some(0) }
    }

    /// Takes the jobs off their queues that end after `latest`.
    pub fn ending_after(&mut self, latest: Millis) -> Vec<JobId> {
        let late: Vec<JobId> =
            self.jobs.iter().filter(|(_, (job, _))| job.ends_at() > latest).map(|(id, _)| *id).collect();
        let is_late = |id: &JobId| late.binary_search(id).is_ok();
        self.timers.retain(|(_, id)| !is_late(id));
        self.runnable.retain(|id| !is_late(id));
        late
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Bytes that the jobs hold, about.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

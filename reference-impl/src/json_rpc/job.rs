//! Calls in progress: their order, and the time of the next step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::method::Task;
use crate::machine::Millis;

/// Id of a job.
pub(super) type JobId = u64;

/// A call in progress.
pub(super) struct Job {
    /// Destination of the outcome; `None` for a notification.
    pub reply_to: Option<ReplyTo>,
    /// Time at which the call ends, finished or not.
    pub deadline: Millis,
    pub task: Box<dyn Task>,
    /// Stream for its partial output.
    pub stream: Option<Stream>,
    /// Method name and time of receipt, if calls are logged.
    pub label: Option<(Box<[u8]>, Millis)>,
}

/// Destination of an outcome.
pub(super) struct ReplyTo {
    /// Id of the exchange.
    pub exchange: u64,
    /// Id of the request, as spelled.
    pub id: Box<str>,
}

/// An open stream.
pub(super) struct Stream {
    pub number: u64,
    /// Chunks so far.
    pub sequence: u64,
}

impl Job {
    /// Time at which the job ends, finished or not.
    pub(super) fn ends_at(&self) -> Millis {
        self.task.ends_at().map_or(self.deadline, |end| end.min(self.deadline))
    }

    /// True if the deadline has passed before the job is done.
    pub(crate) fn is_overdue(&self, now: Millis) -> bool {
        now >= self.deadline && self.task.ends_at().is_none_or(|end| end > self.deadline)
    }

    fn held_bytes(&self) -> usize {
        self.task.held_bytes() + self.reply_to.as_ref().map_or(0, |to| to.id.len()) + size_of::<Self>()
    }
}

/// All calls in progress.
#[derive(Default)]
pub(super) struct Jobs {
    jobs: BTreeMap<JobId, (Job, usize)>,
    timers: BTreeSet<(Millis, JobId)>,
    runnable: VecDeque<JobId>,
    last: JobId,
    held_bytes: usize,
}

impl Jobs {
    /// Adds a job at the end of the queue.
    pub(super) fn add(&mut self, job: Job) {
        self.last += 1;
        let held = job.held_bytes();
        self.held_bytes += held;
        self.jobs.insert(self.last, (job, held));
        self.runnable.push_back(self.last);
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id).map(|(job, _)| job)
    }

    /// Removes a job that is neither waiting nor queued.
    pub(super) fn remove(&mut self, id: JobId) -> Option<Job> {
        let (job, held) = self.jobs.remove(&id)?;
        self.held_bytes -= held;
        Some(job)
    }

    /// Suspends a job until `at`.
    pub(super) fn wait(&mut self, id: JobId, at: Millis) {
        self.timers.insert((at, id));
    }

    /// Puts a job at the end of the queue.
    pub(crate) fn go_on(&mut self, id: JobId) {
        self.runnable.push_back(id);
    }

    /// Queues the jobs whose wait has ended at `now`. Returns the length of the queue.
    pub(super) fn wake(&mut self, now: Millis) -> usize {
        while let Some((at, id)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            self.runnable.push_back(id);
        }
        self.runnable.len()
    }

    pub(crate) fn next_runnable(&mut self) -> Option<JobId> {
        self.runnable.pop_front()
    }

    /// Time of the next step; 0 if a job is queued.
    pub(crate) fn next_at(&self) -> Option<Millis> {
        if self.runnable.is_empty() { self.timers.first().map(|(at, _)| *at) } else { Some(0) }
    }

    /// Removes the jobs that end after `latest` from their queues, and returns their ids.
    pub(crate) fn ending_after(&mut self, latest: Millis) -> Vec<JobId> {
        let late: Vec<JobId> =
            self.jobs.iter().filter(|(_, (job, _))| job.ends_at() > latest).map(|(id, _)| *id).collect();
        let is_late = |id: &JobId| late.binary_search(id).is_ok();
        self.timers.retain(|(_, id)| !is_late(id));
        self.runnable.retain(|id| !is_late(id));
        late
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Approximate memory of the jobs, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

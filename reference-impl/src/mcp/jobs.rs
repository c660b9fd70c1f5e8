//! Calls in progress.

use std::collections::VecDeque;

use super::message::{Outcome, notification, request};
use super::method::Step;
use super::tasks::{self, Task};
use crate::json::Value;
use crate::machine::Millis;

/// Longest wait for a response of the client, in ms.
const ASKED_MS: Millis = 2_000;
/// Polling interval for an awaited task, in ms.
const POLL_MS: Millis = 10;

/// A call in progress.
pub(super) struct Job {
    /// Id of the request.
    pub id: Value,
    /// Batch of the request, if any.
    pub batch: Option<u64>,
    /// Task whose work it is, if any.
    task: Option<usize>,
    /// Remaining steps.
    pub steps: VecDeque<Step>,
    /// Time of the next step.
    pub next_at: Millis,
    /// Id of a pending request to the client.
    asked: Option<i64>,
    /// Responses of the client so far.
    responses: Vec<Value>,
}

/// All calls in progress, oldest first.
#[derive(Default)]
pub(super) struct Jobs {
    jobs: Vec<Job>,
    /// Id of the last request to the client.
    asked_last: i64,
}

/// A finished call.
pub(super) struct Ended {
    pub id: Value,
    pub batch: Option<u64>,
    pub task: Option<usize>,
    pub outcome: Outcome,
}

impl Jobs {
    pub(super) fn add(&mut self, id: Value, batch: Option<u64>, steps: Vec<Step>, now: Millis) {
        let (steps, responses) = (steps.into(), Vec::new());
        self.jobs.push(Job { id, batch, task: None, steps, next_at: now, asked: None, responses });
    }

    /// Adds the work of a task.
    pub(crate) fn add_task(&mut self, number: usize, steps: Vec<Step>, now: Millis) {
        self.add(Value::Null, None, steps, now);
        if let Some(job) = self.jobs.last_mut() {
            job.task = Some(number);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn next_at(&self) -> Option<Millis> {
        self.jobs.iter().map(|job| job.next_at).min()
    }

    /// Removes the call with this id.
    pub(super) fn cancel(&mut self, id: &Value) -> Option<Job> {
        let at = self.jobs.iter().position(|job| job.id == *id)?;
        Some(self.jobs.remove(at))
    }

    /// Passes on a response of the client. Returns false if no call waits for it.
    pub(crate) fn respond(&mut self, response: &Value, now: Millis) -> bool {
        let id = response.get("id").and_then(Value::as_i64);
        let Some(job) = self.jobs.iter_mut().find(|job| job.asked.is_some() && job.asked == id) else {
            return false;
        };
        job.asked = None;
        job.next_at = now;
        job.responses.push(response.clone());
        true
    }

    /// Removes the calls that end after `latest`.
    pub(crate) fn drop_after(&mut self, latest: Millis) -> Vec<Job> {
        let ends_at = |job: &Job| {
            let waits = job.steps.iter().map(|step| match step {
                Step::Wait(ms) => *ms,
                Step::Ask(..) => ASKED_MS,
                // The work of the task is gone.
                Step::Of(_) => Millis::MAX,
                _ => 0,
            });
            waits.fold(job.next_at, Millis::saturating_add)
        };
        self.jobs.extract_if(.., |job| ends_at(job) > latest).collect()
    }

    /// Runs the steps that are due, until one call ends: its answer follows the messages so far. Messages to the
    /// client go to `said`.
    pub(super) fn run(&mut self, now: Millis, tasks: &[Task], said: &mut Vec<Value>) -> Option<Ended> {
        for at in 0..self.jobs.len() {
            if let Some(outcome) = self.jobs.get_mut(at)?.run(now, tasks, &mut self.asked_last, said) {
                let Job { id, batch, task, .. } = self.jobs.remove(at);
                return Some(Ended { id, batch, task, outcome });
            }
        }
        None
    }
}

impl Job {
    fn run(
        &mut self,
        now: Millis,
        tasks: &[Task],
        asked_last: &mut i64,
        said: &mut Vec<Value>,
    ) -> Option<Outcome> {
        while self.next_at <= now {
            if self.asked.take().is_some() {
                self.responses.push(Value::Null);
            }
            match self.steps.pop_front() {
                Some(Step::Wait(ms)) => self.next_at = self.next_at.saturating_add(ms),
                Some(Step::Say(message)) => said.push(message),
                Some(Step::Ask(method, params)) => {
                    *asked_last += 1;
                    self.asked = Some(*asked_last);
                    said.push(request((*asked_last).into(), method, params));
                    self.next_at = now + ASKED_MS;
                }
                Some(Step::Done(outcome)) => return Some(outcome),
                Some(Step::Of(number)) => match tasks::outcome(number, tasks) {
                    Some(outcome) => return Some(outcome),
                    None => {
                        self.steps.push_front(Step::Of(number));
                        self.next_at = now + POLL_MS;
                    }
                },
                Some(Step::Tell(tell)) => return Some(tell(&self.responses)),
                None => return Some(Ok(Value::Object(Vec::new()))),
            }
        }
        None
    }

    /// Notification that cancels the pending request to the client.
    pub(crate) fn farewell(&self) -> Option<Value> {
        let params = [("requestId", self.asked?.into()), ("reason", "the call was cancelled".into())].into();
        Some(notification("notifications/cancelled", params))
    }
}

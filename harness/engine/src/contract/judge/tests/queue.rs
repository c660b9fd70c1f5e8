//! Example boundary: a queue in a folder. Workers move its files and run their jobs; `kill -9` may end a worker.

use super::{python, said};
use crate::contract::face::{
    Allowed, Expectation, Expected, Face, Frame, Framing, Misfit, Outcome, PlacedExpectation, Reading,
    SessionClauses, Stimulus, StimulusKind, Subject,
};
use crate::data::finding::Repair;
use crate::data::payload::Payload;
use crate::data::plan::{Act, ActorStep, AwaitedEffect, Fixture, Placing, Plan, Step};
use crate::data::transcript::{Event, EventKind, FolderChange, Transcript};
use crate::drive::lab::tests::stage::carry_out;

const SESSION_CLAUSES: SessionClauses = SessionClauses::all("QUEUE-01");

struct Worker;

/// Event of a job.
#[derive(Debug, Clone, PartialEq)]
enum JobEvent {
    /// The job was moved to a folder of the queue.
    MovedTo(String),
    /// The job was created again in a folder.
    CopiedTo(String),
    /// The program of the job started.
    Started,
}

/// Allowed life of a job: completed once, restarted only for a worker that died.
#[derive(Debug, Clone)]
struct Life {
    starts_max: usize,
}

/// Number of killed workers.
type Kills = usize;

impl Face for Worker {
    type Message = JobEvent;
    type Answer = Life;
    type Notes = ();
    type State = Kills;

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Silent)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, _transcript: &Transcript) -> Kills {
        0
    }

    fn expect(&self, kills: &mut Kills, stimulus: &Stimulus<'_>) -> Option<Expectation<Life>> {
        match stimulus.what {
            StimulusKind::Happened(EventKind::FilePut { path, error: None, .. }) => {
                let job = Subject::Entity(job_of(&path.0)?);
                let life = Allowed::answer(Life { starts_max: 1 });
                Some(Expectation::one(Expected::new("QUEUE-02", job, vec![life])))
            }
            StimulusKind::Happened(EventKind::Signalled { signal }) => {
                *kills += usize::from(signal == "KILL");
                None
            }
            _ => None,
        }
    }

    fn complete(&self, kills: &mut Kills, _plan: &Plan, asked: &mut [PlacedExpectation<Self>]) {
        let parts = asked.iter_mut().flat_map(|asked| &mut asked.due.parts);
        for allowed in parts.flat_map(|part| &mut part.allowed) {
            if let Outcome::Answer(life) = &mut allowed.outcome {
                life.starts_max += *kills;
            }
        }
    }

    fn read(&self, _frame: &Frame<'_>) -> Reading<JobEvent> {
        Reading::Blank
    }

    fn observe(&self, event: &Event) -> Vec<(String, JobEvent)> {
        let seen = || match &event.kind {
            EventKind::FolderChanged { path, change, .. } => {
                let folder = String::from_utf8_lossy(&path.0).split('/').next()?.to_owned();
                let seen = match change {
                    FolderChange::MovedIn => JobEvent::MovedTo(folder),
                    FolderChange::Appeared => JobEvent::CopiedTo(folder),
                    FolderChange::Written | FolderChange::Vanished | FolderChange::MovedOut => return None,
                };
                Some((job_of(&path.0)?, seen))
            }
            EventKind::ActorStarted { argv, .. } => {
                Some((job_of(argv.last()?.as_bytes())?, JobEvent::Started))
            }
            _ => None,
        };
        seen().into_iter().collect()
    }

    fn fit(&self, _: &Expected<Life>, life: &Life, came: &[&JobEvent]) -> Result<(), Misfit> {
        let count = |is: &dyn Fn(&JobEvent) -> bool| came.iter().filter(|seen| is(seen)).count();
        let is_last = |folder: &String| matches!(folder.as_str(), "done" | "failed");
        let completed = count(&|seen| matches!(seen, JobEvent::MovedTo(folder) if is_last(folder)));
        let starts = count(&|seen| *seen == JobEvent::Started);
        let wrong = |reason, repair| Err(Misfit { rank: 0, clause: None, reason, repair });
        let is_end = |seen: &&&JobEvent| matches!(seen, JobEvent::MovedTo(folder) if is_last(folder));
        let ended = came.iter().position(|seen| is_end(&seen)).unwrap_or(came.len());
        match (completed, starts) {
            _ if came[ended..].contains(&&JobEvent::Started) => wrong("started_again", Repair::Undo),
            _ if came.iter().any(|seen| matches!(seen, JobEvent::CopiedTo(folder) if folder != "inbox")) => {
                wrong("copied", Repair::Undo)
            }
            (0, _) => wrong("lost", Repair::Do),
            (1, 0) => wrong("never_started", Repair::Do),
            (1, starts) if starts <= life.starts_max => Ok(()),
            (1, _) => wrong("started_again", Repair::Undo),
            _ => wrong("completed_twice", Repair::Undo),
        }
    }

    fn phrase(&self, _: &Expected<Life>, life: &Life) -> String {
        format!("one end, and at most {} starts", life.starts_max)
    }

    fn text(&self, seen: &JobEvent) -> String {
        format!("{seen:?}")
    }
}

/// Name of the job at a path in the queue.
fn job_of(path: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(path).rsplit('/').next()?.strip_suffix(".json")?.to_owned();
    (!name.starts_with('.')).then_some(name)
}

const WORKER: &str = r#"
import os, subprocess, time
queue = os.path.join(os.environ["ROOT"], "queue")
at = lambda *parts: os.path.join(queue, *parts)
def run(name):
    subprocess.run([os.path.join(os.environ["ROOT"], "job"), at("processing", name)])
    FINISH
if RERUNS:
    for name in os.listdir(at("done")):
        os.rename(at("done", name), at("processing", name))
if RECOVERS:
    for name in sorted(os.listdir(at("processing"))):
        run(name)
while True:
    for name in sorted(os.listdir(at("inbox"))):
        if name.endswith(".json") and not name.startswith("."):
            os.rename(at("inbox", name), at("processing", name))
            run(name)
    time.sleep(0.01)
"#;

const FINISH: &str = "os.rename(at(\"processing\", name), at(\"done\", name))";

/// Findings about a worker that is killed when its second job starts, and then restarted.
fn of_worker(finish: &str, recovers: &str, reruns: &str) -> Vec<String> {
    let program = WORKER.replace("FINISH", finish).replace("RECOVERS", recovers).replace("RERUNS", reruns);
    let folders = ["inbox", "processing", "done", "failed"].map(str::to_owned).to_vec();
    let fixtures = vec![
        Fixture::Folder { name: "queue".to_owned(), folders, watched: true },
        Fixture::Actor {
            name: "job".to_owned(),
            script: vec![ActorStep::Sleep { ms: 30 }],
            later: Vec::new(),
        },
    ];
    let put = |name: &str| {
        let path = Payload::text(format!("queue/inbox/{name}.json"));
        Step::new(Act::Put { path, content: Payload::text("{}"), by: Placing::Rename })
    };
    let starts = |start| AwaitedEffect::Starts { actor: "job".to_owned(), start };
    let until_empty = |path: &str| AwaitedEffect::Empty { folder: "queue".to_owned(), path: path.to_owned() };
    // Waits end at their event. Only a worker that does not recover lets the second one pass.
    let wait = |what, within_ms| Step::new(Act::Await { what, within_ms });
    let recovery_ms = if recovers == "True" { 10_000 } else { 1_500 };
    let kill = |what| Act::SignalWhen { signal: "KILL".to_owned(), what, within_ms: 5_000 };
    let mut steps = vec![put("a"), put("b"), put("c"), Step::new(kill(starts(1)))];
    steps.push(Step { session: 1, ..Step::new(Act::Wait { ms: 1 }) });
    steps.extend([wait(until_empty("inbox"), 10_000), wait(until_empty("processing"), recovery_ms)]);
    steps.push(Step { session: 1, ..Step::new(Act::Signal("KILL".to_owned())) });
    said(&Worker, &carry_out(&python(&program), fixtures, steps))
}

#[test]
fn a_worker_that_takes_up_what_its_predecessor_held_is_clean() {
    assert_eq!(of_worker(FINISH, "True", "False"), [""; 0]);
}

#[test]
fn a_job_that_nobody_takes_up_is_lost() {
    assert_eq!(of_worker(FINISH, "False", "False"), ["QUEUE-02 lost"]);
}

#[test]
fn what_is_done_again_is_no_less_wrong() {
    assert!(of_worker(FINISH, "True", "True").contains(&"QUEUE-02 started_again".to_owned()));
    let copies = "__import__('shutil').copyfile(at(\"processing\", name), at(\"done\", name)); \
        os.unlink(at(\"processing\", name))";
    assert_eq!(of_worker(copies, "True", "False"), ["QUEUE-02 copied"; 3]);
}

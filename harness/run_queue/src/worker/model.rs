//! Model of a worker: judges the course of a conversation.

mod folder_rules;
mod rest;

use std::collections::BTreeMap;

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{Finding, Nature};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::Fixture;
use peerproof_engine::data::transcript::{
    EventKind, Exit, FolderChange, FoundEntry, FoundKind, StdinState, Transcript,
};

use super::timeline::{FolderSnapshot, PutFile, Start, Timeline, WorkerLife, base, holds};
use super::{BEACON, IDLE, IN_RUN, LATER, MADE, QUEUE, REST, SECOND, TARGET, TREATED, limit};
use crate::config::{ATTEMPTS, POLL_MS};
use crate::job::{JobVerdict, succeeds};
use crate::{FOLDERS, ONCE};

/// Tolerance for the start of a program beyond the limit of the contract, microseconds.
const START_SLACK_US: u64 = 1_000_000;

/// Time after SIGTERM in which a start may still have been begun before it, microseconds.
const TERM_SLACK_US: u64 = 1_000_000;

/// Judge of a course.
pub(crate) struct Model<'a> {
    course: &'a Timeline<'a>,
    transcript: &'a Transcript,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Choices that the worker showed.
    pub shown: BTreeMap<&'static str, &'static str>,
    /// Reason why the conversation proves nothing.
    pub untestable: Option<Untestable>,
    /// Number of jobs that ended correctly.
    pub completed: usize,
    /// Number of these jobs that ran with success and are in `done/`.
    pub succeeded: usize,
}

impl<'a> Model<'a> {
    /// A judge without findings.
    pub(crate) fn new(course: &'a Timeline<'a>, transcript: &'a Transcript) -> Self {
        Self {
            course,
            transcript,
            findings: Vec::new(),
            shown: BTreeMap::new(),
            untestable: None,
            completed: 0,
            succeeded: 0,
        }
    }

    fn add(
        &mut self,
        clause: &'static str,
        reason: &str,
        expected: &str,
        got: impl Into<String>,
    ) -> &mut Finding {
        let finding = Finding::new(clause, reason, expected, got);
        // Several jobs with the same fault make one finding; the first one counts.
        let at = match self.findings.iter().position(|it| it.key() == finding.key()) {
            Some(at) => at,
            None => {
                self.findings.push(finding);
                self.findings.len() - 1
            }
        };
        &mut self.findings[at]
    }

    fn attempts(&self) -> u64 {
        limit(&self.transcript.facts, ATTEMPTS)
    }

    /// Judges the whole course.
    pub(crate) fn judge(&mut self) {
        if self.ends() {
            return;
        }
        self.starts();
        self.in_run();
        let course = self.course;
        let rest: Vec<&FolderSnapshot<'_>> =
            course.looks.iter().filter(|look| matches!(look.label, REST | LATER)).collect();
        for look in rest {
            self.rest(look);
        }
        self.specials();
        self.folders_made();
        self.times();
        self.idle();
        self.terminated();
        self.left();
    }

    fn command(&self, life: &WorkerLife) -> &str {
        &self.transcript.plan.sessions[life.session].command
    }

    /// Judges workers that ended by themselves. Returns true if nothing else can be judged.
    fn ends(&mut self) -> bool {
        let course = self.course;
        for (at, life) in course.lives.iter().enumerate() {
            if self.command(life) == ONCE {
                self.once(life);
                continue;
            }
            if !life.ended_by_itself() {
                continue;
            }
            // If several workers start together, any of them may refuse.
            let has_company = course.lives.iter().enumerate().any(|(other_at, other)| {
                let begins = life.over.is_none_or(|over| other.begun < over);
                other_at != at && begins && other.over.is_none_or(|over| over > life.begun)
            });
            match life.exit {
                Some(Exit::Code(1..)) if has_company => {
                    self.shown.insert(SECOND, "refuse");
                    continue;
                }
                Some(Exit::Code(0)) if has_company => {
                    let got = "exit status 0";
                    self.add(
                        "QUE-LIVE-04",
                        "second_ended",
                        "it works, or ends with a status other than 0",
                        got,
                    );
                    continue;
                }
                _ => {}
            }
            let put = |is: &dyn Fn(&PutFile) -> bool| course.puts.iter().any(is);
            let clause = match () {
                () if self.has_specials() => "QUE-JOB-12",
                () if self.label(super::NO_INBOX) => "QUE-WORK-18",
                () if self.transcript.plan.fixtures.iter().any(has_no_folders) => "QUE-WORK-19",
                () if put(&|put| put.what == JobVerdict::Open(None)) => "QUE-JOB-28",
                () if put(&|put| {
                    matches!(put.what, JobVerdict::Malformed(_)) && put.job_name().is_some()
                }) =>
                {
                    "QUE-JOB-17"
                }
                () => "QUE-WORK-17",
            };
            let got = life.exit.map_or_else(String::new, |exit| exit.to_string());
            let finding = self.add(clause, "ended", "the worker keeps running", got);
            if matches!(life.exit, Some(Exit::Signal(_))) {
                finding.nature = Nature::Crash;
            }
            return true;
        }
        // A job put after the death of a worker can only be started by another worker that was alive then.
        let shares = |start: &Start| {
            let put = course.job_of(start).map(|job| &course.puts[job]);
            course.lives.iter().any(|dead| {
                let Some(over) = dead.over.filter(|over| put.is_some_and(|put| put.at > *over)) else {
                    return false;
                };
                let had_company = |life: &WorkerLife| {
                    life.begun < over && life.over.is_none_or(|end| end > start.at) && dead.begun < life.begun
                };
                course.lives.iter().any(had_company) && course.lives.iter().all(|life| life.begun < over)
            })
        };
        if course.starts.iter().any(shares) {
            self.shown.entry(SECOND).or_insert("share");
        }
        false
    }

    /// True if all workers are of the command `once`.
    fn all_end(&self) -> bool {
        self.course.lives.iter().all(|life| self.command(life) == ONCE)
    }

    fn label(&self, label: &str) -> bool {
        self.course.looks.iter().any(|look| look.label == label)
    }

    /// Judges the end of a worker of the command `once`.
    fn once(&mut self, life: &WorkerLife) {
        if life.signal.as_ref().is_some_and(|_| !life.late) {
            return;
        }
        let expected = "the worker ends when no job is left";
        if life.late {
            let finding = self.add("QUE-WORK-25", "does_not_end", expected, "still running");
            finding.nature = Nature::Hang;
            return;
        }
        let fails = |what: &JobVerdict| !matches!(what, JobVerdict::Job(play) if succeeds(play));
        // A worker without a runner need not see that a program fails.
        let is_seen = |what: &JobVerdict| self.course.has_runner || !matches!(what, JobVerdict::Job(_));
        let fails_perhaps = self.course.puts.iter().any(|put| fails(&put.what));
        let fails = self.course.puts.iter().any(|put| fails(&put.what) && is_seen(&put.what));
        match life.exit {
            Some(Exit::Code(0)) if fails => _ = self.shown.insert("once_failed_exit", "zero"),
            Some(Exit::Code(0)) => {}
            Some(Exit::Code(_)) if fails_perhaps => _ = self.shown.insert("once_failed_exit", "nonzero"),
            Some(exit) => _ = self.add("QUE-WORK-25", "exit_status", "exit status 0", exit.to_string()),
            None => {}
        }
    }

    /// Judges the arguments of programs and the number of starts of each job.
    fn starts(&mut self) {
        let course = self.course;
        let deaths = course.deaths();
        let mut history: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, start) in course.starts.iter().enumerate() {
            if course.has_runner && start.argv.len() != 1 {
                let got = format!("{} arguments: {:?}", start.argv.len(), start.argv);
                self.add("QUE-WORK-20", "arguments", "one argument: the path of the job file", got);
            }
            if let Some((state, bytes)) = start.stdin
                && (state == StdinState::Open || bytes > 0)
            {
                let clause = if course.has_runner { "QUE-WORK-21" } else { "QUE-WORK-22" };
                self.add(clause, "stdin", "an empty standard input", format!("{state:?}, {bytes} bytes"));
            }
            let Some(job) = course.job_of(start) else {
                // A program that was killed before it read its file proves nothing.
                if start.given.is_some() && !self.is_odd(start) {
                    let last = start.argv.last().map(|last| format!("{last:?}"));
                    let got = format!("last argument: {}", last.as_deref().unwrap_or("none"));
                    self.add("QUE-WORK-20", "no_job", "the path of the job file as last argument", got);
                }
                continue;
            };
            history.entry(job).or_default().push(at);
        }
        for (job, starts) in history {
            // A selector may retry a driver that fails.
            let is_failing = matches!(&course.puts[job].what, JobVerdict::Job(play) if !succeeds(play));
            if is_failing && !course.has_runner {
                continue;
            }
            self.started(&course.puts[job], &starts, &deaths);
        }
    }

    /// True if the worker need not run the job of this start.
    fn is_odd(&self, start: &Start) -> bool {
        let is_empty = start.given.as_ref().is_some_and(Vec::is_empty);
        start.argv.last().is_some_and(|path| path.contains('\u{fffd}'))
            || is_empty && self.course.puts.iter().any(|put| put.bytes.is_empty())
            || self.has_specials()
    }

    /// True if an entry that is not a file has the name of a job.
    fn has_specials(&self) -> bool {
        self.transcript.plan.fixtures.iter().any(|it| it.name().starts_with("special"))
    }

    fn started(&mut self, put: &PutFile, starts: &[usize], deaths: &[u64]) {
        let course = self.course;
        let per_life = match &put.what {
            JobVerdict::Job(play)
                if !succeeds(play)
                    || course
                        .lives
                        .iter()
                        .any(|life| life.signal.as_ref().is_some_and(|(_, it)| it == "TERM")) =>
            {
                self.attempts().max(1)
            }
            _ => 1,
        };
        let mut left = per_life;
        let mut last: Option<u64> = None;
        for at in starts {
            let start = &course.starts[*at];
            let died = last.is_some_and(|last| deaths.iter().any(|death| (last..start.at).contains(death)));
            if died {
                left = per_life;
            }
            let was_completed = course.looks.iter().any(|look| {
                let is_there = || look.copies(&put.bytes).iter().any(|(folder, _)| is_end(folder));
                look.place == QUEUE.as_bytes() && look.until < start.at && look.since > put.at && is_there()
            });
            let overlaps = starts.iter().any(|other| {
                let other = &course.starts[*other];
                let end = other.end.map_or(u64::MAX, |(end, _)| end);
                let is_dead = deaths.iter().any(|death| (other.at..start.at).contains(death));
                other.at < start.at && start.at < end && !is_dead
            });
            // A worker that started while the job was held.
            let newcomer = course
                .lives
                .iter()
                .any(|life| last.is_some_and(|last| (last..start.at).contains(&life.begun)));
            let name = format!("{}: {} starts", put.label(), starts.len());
            if was_completed {
                let expected = "no new start of a job that was in done/ or failed/";
                self.add("QUE-ONCE-03", "started_again", expected, name);
            } else if overlaps && !died && newcomer {
                let expected = "no start of a job that another living worker holds";
                self.add("QUE-LIVE-02", "started_again", expected, name);
            } else if left == 0 {
                let several = course
                    .lives
                    .iter()
                    .filter(|life| life.begun < start.at && life.over.is_none_or(|over| over > start.at))
                    .count()
                    > 1;
                let is_failing = matches!(&put.what, JobVerdict::Job(play) if !succeeds(play));
                let clause = match () {
                    () if several => "QUE-LIVE-01",
                    () if is_failing => "QUE-WORK-10",
                    () => "QUE-ONCE-02",
                };
                self.add(clause, "started_again", "one start for each worker that held the job", name);
            }
            left = left.saturating_sub(1);
            last = Some(start.at);
        }
        if matches!(&put.what, JobVerdict::Job(play) if !succeeds(play)) {
            self.retried(starts);
        }
    }

    /// Judges the place of a job while its program runs.
    fn in_run(&mut self) {
        let course = self.course;
        let mut is_seen = false;
        for look in course.looks.iter().filter(|look| look.label == IN_RUN) {
            for start in &course.starts {
                let runs = start.at < look.since && start.end.is_some_and(|(end, _)| end > look.until);
                let Some(put) = course.job_of(start).filter(|_| runs).map(|job| &course.puts[job]) else {
                    continue;
                };
                is_seen = true;
                let copies = look.copies(&put.bytes);
                let places: Vec<String> = copies.iter().map(|(_, one)| text(&one.path.0)).collect();
                let clause = match copies.as_slice() {
                    [("processing", _)] => continue,
                    [("inbox", _)] => "QUE-WORK-01",
                    [("done" | "failed", _)] => "QUE-WORK-02",
                    _ => "QUE-WORK-03",
                };
                let expected = "a running job is in exactly one file, under processing/";
                self.add(clause, "in_run", expected, format!("{}: {places:?}", put.label()));
            }
        }
        if self.label(IN_RUN) && !is_seen {
            self.untestable = Some(Untestable::new(
                "not_seen",
                "no program was running when peerproof looked at the folders",
            ));
        }
    }
}

impl PutFile {
    /// Name of the file in findings.
    pub(crate) fn label(&self) -> String {
        text(base(&self.path))
    }
}

/// True if the queue has none of its folders at the start.
fn has_no_folders(fixture: &Fixture) -> bool {
    matches!(fixture, Fixture::Folder { name, folders, .. } if name == QUEUE && folders.is_empty())
}

fn is_end(folder: &str) -> bool {
    matches!(folder, "done" | "failed")
}

fn starts_with(one: &FoundEntry, bytes: &[u8]) -> bool {
    holds(one, bytes) || one.bytes.as_ref().is_some_and(|kept| kept.0.starts_with(bytes))
}

fn stem(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".json").unwrap_or(name)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

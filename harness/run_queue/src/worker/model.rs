//! Model of a worker: judges the course of a conversation.

mod beside;

use std::collections::BTreeMap;

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{Finding, Nature};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{ActorStep, Fixture};
use peerproof_engine::data::transcript::{
    Exit, FolderChange, Found, FoundKind, Kind, StdinState, Transcript,
};

use super::course::{Course, Life, Look, Put, Start, base, holds};
use super::{BEACON, IDLE, IN_RUN, LATER, MADE, QUEUE, REST, SECOND, TARGET, TREATED, limit};
use crate::config::{ATTEMPTS, POLL_MS};
use crate::job::{What, succeeds};
use crate::{FOLDERS, ONCE};

/// Length up to which file names are judged, bytes.
const NAME_BYTES_JUDGED: usize = 100;

/// Tolerance for the start of a program beyond the limit of the contract, microseconds.
const START_SLACK_US: u64 = 1_000_000;

/// Time after SIGTERM in which a start may still have been begun before it, microseconds.
const TERM_SLACK_US: u64 = 1_000_000;

/// Judge of a course.
pub struct Model<'a> {
    course: &'a Course<'a>,
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
    pub fn new(course: &'a Course<'a>, transcript: &'a Transcript) -> Self {
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
    pub fn judge(&mut self) {
        if self.ends() {
            return;
        }
        self.starts();
        self.in_run();
        let course = self.course;
        let rest: Vec<&Look<'_>> =
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

    fn command(&self, life: &Life) -> &str {
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
            let put = |is: &dyn Fn(&Put) -> bool| course.puts.iter().any(is);
            let clause = match () {
                () if self.has_specials() => "QUE-JOB-12",
                () if self.label(super::NO_INBOX) => "QUE-WORK-18",
                () if self.transcript.plan.fixtures.iter().any(has_no_folders) => "QUE-WORK-19",
                () if put(&|put| put.what == What::Open(None)) => "QUE-JOB-28",
                () if put(&|put| matches!(put.what, What::Malformed(_)) && put.job_name().is_some()) => {
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
                let had_company = |life: &Life| {
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
    fn once(&mut self, life: &Life) {
        if life.signal.as_ref().is_some_and(|_| !life.late) {
            return;
        }
        let expected = "the worker ends when no job is left";
        if life.late {
            let finding = self.add("QUE-WORK-25", "does_not_end", expected, "still running");
            finding.nature = Nature::Hang;
            return;
        }
        let fails = |what: &What| !matches!(what, What::Job(play) if succeeds(play));
        // A worker without a runner need not see that a program fails.
        let is_seen = |what: &What| self.course.has_runner || !matches!(what, What::Job(_));
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
            let is_failing = matches!(&course.puts[job].what, What::Job(play) if !succeeds(play));
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

    fn started(&mut self, put: &Put, starts: &[usize], deaths: &[u64]) {
        let course = self.course;
        let per_life = match &put.what {
            What::Job(play)
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
            let name = put.label();
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
                let is_failing = matches!(&put.what, What::Job(play) if !succeeds(play));
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
        if matches!(&put.what, What::Job(play) if !succeeds(play)) {
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

    /// Judges the files at rest, when no program runs.
    fn rest(&mut self, look: &Look<'_>) {
        let course = self.course;
        let is_taken_away = |put: &&Put| {
            let rest = course.looks.iter().filter(|other| other.label == REST && other.until < look.until);
            let mut places = rest.flat_map(|rest| rest.copies(&put.bytes));
            places.any(|(_, one)| course.taken.contains(&[b"queue/", one.path.0.as_slice()].concat()))
        };
        let puts = course.puts.iter().filter(|put| put.at < look.until);
        for put in puts.filter(|put| !is_taken_away(put)) {
            match put.job_name() {
                Some(name) => self.job_at_rest(look, put, name),
                None => self.other_at_rest(look, put),
            }
        }
        if look.label == LATER {
            self.earlier_reasons(look);
        }
        if look.files().count() > 0 {
            self.copied(look);
        }
    }

    /// Judges a file that is not a job: it must stay unchanged. For some names the contract leaves a choice.
    fn other_at_rest(&mut self, look: &Look<'_>, put: &Put) {
        let Some(path) = put.path.strip_prefix(b"queue/") else { return };
        let copies = look.copies(&put.bytes);
        if let Some(name) = path.strip_prefix(b"inbox/") {
            let key = match () {
                () if name.starts_with(b".") && name.ends_with(b".json") => "dot_name",
                () if name.to_ascii_lowercase().ends_with(b".json") => "upper_case_suffix",
                () => {
                    let is_there = copies.iter().any(|(_, one)| one.path.0 == path);
                    if !is_there {
                        let got = format!("{} is gone or changed", put.label());
                        let expected = "files with other names are not moved or changed";
                        self.add("QUE-JOB-05", "other_file", expected, got);
                    }
                    return;
                }
            };
            self.treated(key, put, &copies);
            return;
        }
        let is_there = look.files().any(|(_, one)| one.path.0 == path && starts_with(one, &put.bytes));
        if !is_there {
            let got = format!("{} is gone or changed", put.label());
            self.add(
                "QUE-WORK-13",
                "overwritten",
                "no file in done/ or failed/ is overwritten or removed",
                got,
            );
        }
    }

    /// Records the choice about a file that may be run, left or failed.
    fn treated(&mut self, key: &'static str, put: &Put, copies: &[(&'static str, &Found)]) {
        let value = match copies {
            [("done", _)] => "run",
            [("failed", _)] => "failed",
            [("inbox", _)] => "leave",
            _ => {
                let got = format!("{}: its bytes are in {} files", put.label(), copies.len());
                self.add("QUE-JOB-07", "lost", "the job is run, left in the inbox, or moved to failed/", got);
                return;
            }
        };
        self.shown.insert(key, value);
    }

    fn job_at_rest(&mut self, look: &Look<'_>, put: &Put, name: &[u8]) {
        let course = self.course;
        let mut copies = look.copies(&put.bytes);
        if put.bytes.is_empty() {
            // Other files may also be empty, so an empty one is identified by its name.
            copies.retain(|(_, one)| contains(base(&one.path.0), stem(name)));
            if copies.is_empty() && look.copies(&put.bytes).iter().any(|(folder, _)| *folder == "failed") {
                return;
            }
        }
        if std::str::from_utf8(name).is_err() {
            return self.treated("not_utf8_name", put, &copies);
        }
        let was_killed = course.kills().iter().any(|kill| *kill > put.at && *kill < look.since);
        let was_ended = course.lives.iter().any(|life| {
            life.signal
                .as_ref()
                .is_some_and(|(at, signal)| signal == "TERM" && *at > put.at && *at < look.until)
        });
        let starts: Vec<_> = course.starts_of(put).collect();
        // A worker that refuses to start may do so later.
        let refuses = self.shown.get(SECOND) == Some(&"refuse");
        let is_left = course.lives.iter().all(|life| {
            let since = if refuses && life.ended_by_itself() { look.since } else { put.at };
            life.over.is_some_and(|over| over < since)
        });
        let came_late = course.lives.iter().any(|life| life.begun < put.at);
        let is_plain = name.len() <= NAME_BYTES_JUDGED && !name.iter().any(u8::is_ascii_control);
        let (folder, found) = match copies.as_slice() {
            [] => return self.gone(look, put, name, was_killed, was_ended, is_plain),
            [(folder, found)] => (*folder, *found),
            several => {
                let places: Vec<String> = several.iter().map(|(_, one)| text(&one.path.0)).collect();
                let ends = several.iter().filter(|(folder, _)| is_end(folder)).count();
                let clause = if ends > 1 { "QUE-ONCE-01" } else { "QUE-WORK-04" };
                self.add(clause, "two_copies", "each job is in exactly one file", format!("{places:?}"));
                return;
            }
        };
        let got = || format!("{} is in {}", put.label(), text(&found.path.0));
        let is_loud = |play: &[ActorStep]| {
            play.iter().any(|step| matches!(step, ActorStep::Flood { .. } | ActorStep::Stderr(_)))
        };
        match (&put.what, folder) {
            // A selector need not see the end of its driver, and may end a driver that floods.
            (What::Job(play), "done" | "failed")
                if !course.has_runner && (!succeeds(play) || is_loud(play)) =>
            {
                self.completed += 1;
            }
            (_, "inbox") if was_ended => self.completed += 1,
            (_, "processing") if was_ended => self.completed += 1,
            // No worker was left.
            (_, "inbox") if is_left => {}
            (What::Malformed(_), "inbox") => {
                self.add("QUE-JOB-06", "left", "a file that does not parse is malformed at once", got());
            }
            (What::Malformed(clause), "done" | "processing") => {
                self.add(clause, "not_failed", "a malformed job in failed/", got());
            }
            (What::Malformed(_), _) => {
                self.completed += 1;
                if !starts.is_empty() {
                    self.add("QUE-JOB-15", "started", "no start of a program for a malformed job", got());
                }
            }
            (What::Open(key), "done" | "failed") => {
                self.completed += 1;
                let value = if folder == "done" { "accept" } else { "refuse" };
                self.shown.extend(key.map(|key| (key, value)));
            }
            (What::Open(key), _) => {
                let clause = if key.is_none() { "QUE-JOB-28" } else { "QUE-WORK-14" };
                let finding = self.add(clause, "not_completed", "the job is run, or moved to failed/", got());
                finding.nature = Nature::Hang;
            }
            (What::Job(play), "done") => {
                if starts.iter().any(|start| start.succeeded()) {
                    self.completed += 1;
                    self.succeeded += 1;
                } else if was_ended {
                    self.add("QUE-TERM-04", "not_done", "in done/ only after its program succeeded", got());
                } else if was_killed {
                    self.add("QUE-ONCE-04", "not_run", "the job of a dead worker is run", got());
                } else if starts.is_empty() {
                    let clause = if course.has_runner { "QUE-WORK-20" } else { "QUE-WORK-24" };
                    self.add(clause, "never_started", "a start of the program for the job", got());
                } else if succeeds(play) && starts.iter().any(|start| start.end.is_none()) {
                    self.add("QUE-WORK-02", "moved_early", "no move before the program ended", got());
                } else {
                    self.add("QUE-WORK-11", "failure_done", "the failed job in failed/", got());
                }
            }
            (What::Job(play), "failed") if !succeeds(play) => {
                if course.has_runner {
                    self.completed += 1;
                    let many = starts.len() as u64;
                    if many < self.attempts() && !was_killed {
                        let expected = format!("{} starts", self.attempts());
                        self.add("QUE-WORK-10", "starts", &expected, format!("{many}"));
                    }
                }
            }
            (What::Job(play), "failed") => {
                let clause = match () {
                    () if was_ended => "QUE-TERM-03",
                    () if was_killed => "QUE-ONCE-04",
                    () if put.path.starts_with(b"queue/processing/") => "QUE-ONCE-05",
                    () if !starts.is_empty() && is_loud(play) => "QUE-WORK-23",
                    () if !starts.is_empty() => "QUE-WORK-09",
                    // These jobs may fail.
                    () if !is_plain => return,
                    () => self.clause_of(put, name),
                };
                self.add(clause, "failed", "the job is run and moved to done/", got());
            }
            // A job that never ends holds up the ones after it.
            (What::Job(_), _) if self.findings.iter().any(|it| it.reason == "not_completed") => {}
            (What::Job(play), _) => {
                let clause = match () {
                    // Workers of the command `once` left the job and ended.
                    () if self.all_end() && (was_killed || came_late) => "QUE-WORK-25",
                    () if was_killed && (folder == "processing" || !starts.is_empty()) => "QUE-ONCE-04",
                    () if is_loud(play) && !starts.is_empty() => "QUE-WORK-23",
                    () if put.path.starts_with(b"queue/processing/") => "QUE-ONCE-05",
                    () if self.has_specials() => "QUE-JOB-12",
                    () if self.label(super::NO_INBOX) => "QUE-WORK-18",
                    () if starts.is_empty() && self.clause_of(put, name) != "QUE-JOB-01" => {
                        self.clause_of(put, name)
                    }
                    () if folder == "processing" => "QUE-WORK-09",
                    () => "QUE-WORK-14",
                };
                let finding = self.add(clause, "not_completed", "the job in done/ or failed/", got());
                finding.nature = Nature::Hang;
            }
        }
        if folder == "failed" && is_plain && !was_killed {
            self.reason(look, put, name, found);
        }
        let stem = stem(name);
        if is_end(folder) && is_plain && !contains(base(&found.path.0), stem) {
            self.add("QUE-WORK-05", "renamed", "the job keeps its file name", got());
        }
    }

    /// Judges a job whose bytes are in no file any more.
    fn gone(
        &mut self,
        look: &Look<'_>,
        put: &Put,
        name: &[u8],
        was_killed: bool,
        was_ended: bool,
        is_plain: bool,
    ) {
        let course = self.course;
        let token = put.token.clone().unwrap_or_default();
        let is_known = |bytes: &[u8]| course.puts.iter().any(|other| other.bytes == bytes);
        let changed = look.files().find(|(_, one)| {
            let bytes = one.bytes.as_ref().map(|bytes| bytes.0.as_slice()).unwrap_or_default();
            let is_job = one.path.0.ends_with(b".json") && contains(base(&one.path.0), stem(name));
            is_job
                && !is_known(bytes)
                && (token.is_empty() || contains(bytes, token.as_bytes()) || bytes.is_empty())
        });
        if let Some((folder, one)) = changed {
            let clause = match put.what {
                What::Malformed(_) => "QUE-JOB-16",
                _ if folder == "failed" => "QUE-WORK-04",
                _ => "QUE-WORK-09",
            };
            let got = format!("{} has other content", text(&one.path.0));
            self.add(clause, "changed", "the content of a job is unchanged", got);
            return;
        }
        let has_namesake = course.puts.iter().any(|other| {
            !std::ptr::eq(other, put) && other.at > put.at && base(&other.path) == base(&put.path)
        });
        let clause = match () {
            () if has_namesake => "QUE-WORK-13",
            () if was_ended => "QUE-TERM-03",
            () if was_killed => "QUE-ONCE-04",
            () if !is_plain => "QUE-JOB-07",
            () => "QUE-WORK-04",
        };
        self.add(
            clause,
            "lost",
            "each job is in exactly one file of the four folders",
            format!("{} is in no folder", put.label()),
        );
    }

    /// Judges the reason file of a failed job.
    fn reason(&mut self, look: &Look<'_>, put: &Put, name: &[u8], found: &Found) {
        let own = stem(base(&found.path.0));
        let is_reason = |(folder, one): &(&str, &Found)| {
            let bytes = one.bytes.as_ref().map(|bytes| bytes.0.as_slice()).unwrap_or_default();
            let file = base(&one.path.0);
            *folder == "failed"
                && one.path != found.path
                && (contains(file, stem(name)) || contains(file, own))
                && !self.course.puts.iter().any(|put| put.bytes == bytes)
                && std::str::from_utf8(bytes).is_ok_and(|text| !text.is_empty())
        };
        if !look.files().any(|it| is_reason(&it)) {
            let got = format!("{} has no such file", put.label());
            self.add("QUE-WORK-12", "no_reason", "a file with a reason for each job in failed/", got);
        }
    }

    /// Judges reason files of an earlier look at rest: they must still exist.
    fn earlier_reasons(&mut self, look: &Look<'_>) {
        let mut earlier =
            self.course.looks.iter().filter(|other| other.label == REST && other.until < look.until);
        let Some(earlier) = earlier.next_back() else { return };
        for (_, one) in earlier.files().filter(|(folder, _)| *folder == "failed") {
            let Some(bytes) = &one.bytes else { continue };
            let is_about =
                |put: &Put| put.job_name().is_some_and(|name| contains(base(&one.path.0), stem(name)));
            let puts = &self.course.puts;
            if puts.iter().any(|put| put.bytes == bytes.0) || !puts.iter().any(is_about) {
                continue;
            }
            if !look.files().any(|(_, now)| now.path == one.path && starts_with(now, &bytes.0)) {
                let got = format!("{} is gone or changed", text(&one.path.0));
                self.add("QUE-WORK-13", "reason_overwritten", "reason files stay unchanged", got);
            }
        }
    }
}

impl Put {
    /// Name of the file in findings.
    pub fn label(&self) -> String {
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

fn starts_with(one: &Found, bytes: &[u8]) -> bool {
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

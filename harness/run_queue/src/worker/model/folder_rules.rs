//! Rules beside the life of jobs: special entries, folders, copies, times and SIGTERM.

use std::collections::BTreeSet;

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::plan::Act;

use super::*;
use crate::config::RETRY_MS;
use crate::job::depth;
use crate::worker::talk::BLANK;

/// Largest share of a processor that an idle worker may use, and the share that counts as spinning on any machine,
/// percent.
const IDLE_PERCENT: u64 = 25;
const SPIN_PERCENT: u64 = 50;

impl Model<'_> {
    /// Clause about a job that was never started.
    pub(super) fn clause_of(&self, put: &PutFile, name: &[u8]) -> &'static str {
        let is_plain =
            name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        let is_behind_a_blank = || self.transcript.plan.fixtures.iter().any(|it| it.name() == BLANK);
        match () {
            () if put.bytes.len() > 1 << 20 => "QUE-JOB-20",
            () if !is_plain || name.len() > 60 => "QUE-JOB-08",
            () if depth(&put.bytes) > 10 => "QUE-JOB-21",
            () if self.course.has_runner && is_behind_a_blank() => "QUE-WORK-20",
            () => "QUE-JOB-01",
        }
    }

    /// Judges entries that are not files and have job names.
    pub(super) fn specials(&mut self) {
        let course = self.course;
        for look in course.looks.iter().filter(|look| look.label == TARGET) {
            let is_target = |fixture: &&Fixture| fixture.name() == TARGET;
            let Some(Fixture::File { content, .. }) = self.transcript.plan.fixtures.iter().find(is_target)
            else {
                continue;
            };
            let bytes = content.expand(&Vars::new()).unwrap_or_default();
            if !look.found.iter().any(|one| one.kind == FoundKind::File && holds(one, &bytes)) {
                let expected = "the target of a symbolic link is not moved or changed";
                self.add("QUE-JOB-11", "target", expected, "it was moved or changed");
            }
        }
        for look in course.looks.iter().filter(|look| look.label == TREATED) {
            if let Some((folder, _)) = look.files().find(|(_, one)| contains(&one.path.0, b"aa-unreadable")) {
                let value = match folder {
                    "inbox" => "leave",
                    "failed" => "failed",
                    _ => "run",
                };
                self.shown.insert("unreadable", value);
            }
            let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for fixture in &self.transcript.plan.fixtures {
                let Some(name) = fixture.name().strip_prefix("special-") else { continue };
                let (key, clause) = match name {
                    "link" => ("symlink", "QUE-JOB-10"),
                    _ => ("special_file", "QUE-JOB-22"),
                };
                let is_own = |one: &&FoundEntry| contains(base(&one.path.0), format!("aa-{name}").as_bytes());
                let own: Vec<&FoundEntry> = look.found.iter().filter(is_own).collect();
                let Some(one) = own.iter().find(|one| one.kind != FoundKind::File).or(own.first()) else {
                    let got = format!("aa-{name}.json is in no folder");
                    self.add(clause, "lost", "the job is run, left in the inbox, or moved to failed/", got);
                    continue;
                };
                let value = match one.path.0.split(|byte| *byte == b'/').next().unwrap_or_default() {
                    b"inbox" => "leave",
                    // An entry without text can only fail, even if it is run.
                    b"failed" if key == "special_file" => "run|failed",
                    b"failed" => "failed",
                    b"done" => "run",
                    _ => continue,
                };
                values.entry(key).or_default().insert(value);
            }
            // Entries of several kinds may be treated differently; then no choice is shown.
            let one = values.into_iter().filter(|(_, values)| values.len() == 1);
            self.shown.extend(one.filter_map(|(key, values)| Some((key, values.into_iter().next()?))));
        }
    }

    /// Judges the processor time of an idle worker.
    pub(super) fn idle(&mut self) {
        let events = self.transcript.events.iter();
        let samples: Vec<(u64, u64)> = events
            .filter_map(|event| match &event.kind {
                EventKind::Processor { label, used_ms } if label == IDLE => Some((event.at_us, *used_ms)),
                _ => None,
            })
            .collect();
        let is_asked = self
            .transcript
            .plan
            .steps
            .iter()
            .any(|step| matches!(&step.act, Act::SampleProcessor { label } if label == IDLE));
        let [(since_us, before_ms), (until_us, after_ms)] = samples[..] else {
            if is_asked && self.untestable.is_none() {
                let why = Untestable::new(
                    "no_processor_figures",
                    "this system does not report the processor time of a worker",
                );
                self.untestable = Some(why);
            }
            return;
        };
        let (clause, reason, percent_max) = match self.has_specials() {
            true => ("QUE-JOB-12", "spins", SPIN_PERCENT),
            false => ("QUE-WORK-16", "busy", IDLE_PERCENT),
        };
        let took_ms = (until_us.saturating_sub(since_us) / 1_000).max(1);
        let used_ms = after_ms.saturating_sub(before_ms);
        if used_ms * 100 > took_ms * percent_max {
            let expected = format!("at most {percent_max} % of a processor while the worker is idle");
            let finding = self.add(
                clause,
                reason,
                &expected,
                format!("{used_ms} ms of processor time in {took_ms} ms"),
            );
            finding.timed = true;
        }
    }

    /// Finding about processes and files that outlived a worker which ended by itself or at SIGTERM.
    pub(super) fn left(&mut self) {
        for life in &self.course.lives {
            let file = life.left_file.as_ref().map(|path| format!("the file {path}"));
            // A program that outlives SIGTERM has a clause of its own.
            let process = life.left.as_ref().filter(|_| life.signal.is_none());
            if let Some(left) = process.map(|command| format!("the process {command}")).or(file) {
                let expected = "no process and no temporary file of the worker is left after its end";
                self.add("QUE-WORK-31", "left", expected, left).nature = Nature::Leak;
            }
        }
    }

    /// Finding about missing folders that the worker did not create.
    pub(super) fn folders_made(&mut self) {
        for look in self.course.looks.iter().filter(|look| look.label == MADE) {
            let is_there = |folder: &&&str| {
                look.found.iter().any(|one| one.kind == FoundKind::Folder && one.path.0 == folder.as_bytes())
            };
            let missing: Vec<&&str> = FOLDERS.iter().filter(|folder| !is_there(folder)).collect();
            if !missing.is_empty() {
                self.add(
                    "QUE-WORK-19",
                    "not_made",
                    "the worker creates the four folders",
                    format!("{missing:?}"),
                );
            }
        }
    }

    /// Finding about a late start of a job that was put into an idle queue.
    pub(super) fn times(&mut self) {
        let course = self.course;
        let beacon = course.looks.iter().find(|look| look.label == BEACON);
        let Some(beacon) = beacon else { return };
        let Some(put) = course.puts.iter().find(|put| put.at > beacon.until && put.job_name().is_some())
        else {
            return;
        };
        let bound_us = limit(&self.transcript.facts, POLL_MS) * 1_000 + START_SLACK_US;
        let bound_us = self.transcript.stretched_ms(bound_us / 1_000) * 1_000;
        let took = course.starts_of(put).next().map(|start| start.at.saturating_sub(put.at));
        if took.is_none_or(|took| took > bound_us) {
            let got = took
                .map_or("the job was not started".to_owned(), |took| format!("after {} ms", took / 1_000));
            let expected = format!("a start within {} ms", bound_us / 1_000);
            let is_same = |got: &str| got.starts_with(&put.label());
            self.findings.retain(|it| it.reason != "not_completed" || !is_same(&it.got));
            let finding = self.add("QUE-WORK-15", "late_start", &expected, got);
            finding.timed = true;
        }
    }

    /// Finding about a late restart of a failed job by a worker that was otherwise idle.
    pub(super) fn retried(&mut self, starts: &[usize]) {
        let course = self.course;
        let bound_ms = limit(&self.transcript.facts, RETRY_MS) + START_SLACK_US / 1_000;
        let bound_ms = self.transcript.stretched_ms(bound_ms);
        let [life] = &course.lives[..] else { return };
        let until = life.signal.as_ref().map_or(u64::MAX, |(at, _)| *at);
        for start in starts.iter().skip(1).map(|at| &course.starts[*at]).filter(|start| start.at < until) {
            let ends = course.starts.iter().filter_map(|it| it.end.map(|(end, _)| end));
            let busy = ends.filter(|end| *end <= start.at).max().unwrap_or(start.at);
            let took_ms = (start.at - busy) / 1_000;
            if took_ms > bound_ms {
                let expected = format!("the next start within {bound_ms} ms of the failure");
                let finding = self.add("QUE-WORK-10", "late_retry", &expected, format!("after {took_ms} ms"));
                finding.timed = true;
            }
        }
    }

    /// Judges the behaviour after SIGTERM.
    pub(super) fn terminated(&mut self) {
        let course = self.course;
        for life in &course.lives {
            let Some((at, _)) = life.signal.as_ref().filter(|(_, signal)| signal == "TERM") else { continue };
            let in_flight: Vec<_> = course
                .starts
                .iter()
                .filter(|start| start.at < *at && start.end.is_none_or(|(end, _)| end > *at))
                .collect();
            let over = life.over.unwrap_or(u64::MAX);
            let late_start =
                |start: &&crate::worker::timeline::Start| start.at > at + TERM_SLACK_US && start.at < over;
            if course.starts.iter().any(|start| late_start(&start)) {
                let expected = "no start of a job after SIGTERM";
                self.add("QUE-TERM-05", "begun", expected, "a program was started");
                continue;
            }
            if life.late {
                let clause = match () {
                    () if in_flight.is_empty() => "QUE-TERM-01",
                    () => "QUE-TERM-07",
                };
                let finding = self.add(clause, "does_not_end", "the worker ends within 2 s", "still running");
                finding.nature = Nature::Hang;
                continue;
            }
            if let Some(command) = &life.left {
                let expected = "no program of the worker is running after its end";
                let finding =
                    self.add("QUE-TERM-06", "process_left", expected, format!("{command} was still running"));
                finding.nature = Nature::Leak;
                continue;
            }
            match in_flight.as_slice() {
                [] => {}
                started => {
                    let finished = started.iter().all(|start| start.end.is_some());
                    self.shown.insert("sigterm", if finished { "finish" } else { "return" });
                }
            }
        }
    }

    /// Finding about a job that was copied: its file was written within the queue, or has another inode.
    pub(super) fn copied(&mut self, look: &FolderSnapshot<'_>) {
        let before = self.course.looks.iter().find(|look| look.label == crate::worker::BEFORE);
        let written = written(self.course, self.transcript);
        for put in self.course.puts.iter().filter(|put| put.job_name().is_some()) {
            let [(folder, found)] = look.copies(&put.bytes)[..] else { continue };
            if folder == "inbox" {
                continue;
            }
            let is_written = written.get(found.path.0.as_slice()).copied().unwrap_or_default();
            let inode = before.and_then(|before| match before.copies(&put.bytes)[..] {
                [(_, one)] => Some(one.inode),
                _ => None,
            });
            let other = inode.is_some_and(|inode| inode != found.inode);
            if is_written {
                let got = format!("{} was written in place", text(&found.path.0));
                self.add("QUE-WORK-06", "copied", "the job is moved by rename", got);
            } else if other && self.findings.is_empty() {
                let got = format!("{} has another inode", text(&found.path.0));
                self.add("QUE-WORK-07", "inode", "the job keeps its inode when it is moved", got);
            }
        }
    }
}

/// Paths of files that were created within the queue; the value is true if they were written to. Files put by the
/// harness are excluded.
fn written<'t>(course: &Timeline<'_>, transcript: &'t Transcript) -> BTreeMap<&'t [u8], bool> {
    let mut written: BTreeMap<&'t [u8], bool> = BTreeMap::new();
    let mut moving: BTreeMap<u32, Option<bool>> = BTreeMap::new();
    let is_put = |path: &[u8]| {
        let is_it = |put: &PutFile| put.path.strip_prefix(b"queue/") == Some(path);
        path.starts_with(b"inbox/") || course.puts.iter().any(is_it)
    };
    for event in &transcript.events {
        let EventKind::FolderChanged { path, change, pair, .. } = &event.kind else { continue };
        let path = path.0.as_slice();
        match change {
            FolderChange::Appeared => _ = written.insert(path, false),
            FolderChange::Written => _ = written.get_mut(path).map(|it| *it = true),
            FolderChange::Vanished => _ = written.remove(path),
            FolderChange::MovedOut => _ = moving.insert(*pair, written.remove(path)),
            // A file moved in from elsewhere has no pair.
            FolderChange::MovedIn => match moving.remove(pair).flatten().filter(|_| *pair != 0) {
                Some(it) if !is_put(path) => _ = written.insert(path, it),
                _ => _ = written.remove(path),
            },
        }
    }
    written
}

//! Judgement of the files of a queue at rest.

use peerproof_engine::data::finding::Nature;
use peerproof_engine::data::plan::ActorStep;
use peerproof_engine::data::transcript::FoundEntry;

use super::super::timeline::{FolderSnapshot, PutFile, Start, base};
use super::super::{LATER, NO_INBOX, REST, SECOND};
use super::{Model, contains, is_end, starts_with, stem, text};
use crate::job::{JobVerdict, succeeds};

/// Length up to which file names are judged, bytes.
const NAME_BYTES_JUDGED: usize = 100;

/// A job that lies in one file at rest.
struct AtRest<'a> {
    folder: &'static str,
    found: &'a FoundEntry,
    /// Starts of its program.
    starts: Vec<&'a Start>,
    /// True if a worker was killed before.
    was_killed: bool,
    /// True if a worker was ended by SIGTERM before.
    was_ended: bool,
    /// True if it arrived while a worker ran.
    came_late: bool,
    /// True if its name has no unusual length or character.
    is_plain: bool,
}

impl AtRest<'_> {
    fn got(&self, put: &PutFile) -> String {
        format!("{} is in {}", put.label(), text(&self.found.path.0))
    }
}

/// True if the program of a job writes more than a driver must.
fn is_loud(play: &[ActorStep]) -> bool {
    play.iter().any(|step| matches!(step, ActorStep::Flood { .. } | ActorStep::Stderr(_)))
}

impl Model<'_> {
    /// Judges the files at rest, when no program runs.
    pub(super) fn rest(&mut self, look: &FolderSnapshot<'_>) {
        let course = self.course;
        let is_taken_away = |put: &&PutFile| {
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
    fn other_at_rest(&mut self, look: &FolderSnapshot<'_>, put: &PutFile) {
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
    fn treated(&mut self, key: &'static str, put: &PutFile, copies: &[(&'static str, &FoundEntry)]) {
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

    fn job_at_rest(&mut self, look: &FolderSnapshot<'_>, put: &PutFile, name: &[u8]) {
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
        let rest = AtRest { folder, found, starts, was_killed, was_ended, came_late, is_plain };
        let got = || rest.got(put);
        match (&put.what, folder) {
            // A selector need not see the end of its driver, and may end a driver that floods.
            (JobVerdict::Job(play), "done" | "failed")
                if !course.has_runner && (!succeeds(play) || is_loud(play)) =>
            {
                self.completed += 1;
            }
            (_, "inbox") if was_ended => self.completed += 1,
            (_, "processing") if was_ended => self.completed += 1,
            // No worker was left.
            (_, "inbox") if is_left => {}
            (JobVerdict::Malformed(_), "inbox") => {
                self.add("QUE-JOB-06", "left", "a file that does not parse is malformed at once", got());
            }
            (JobVerdict::Malformed(clause), "done" | "processing") => {
                self.add(clause, "not_failed", "a malformed job in failed/", got());
            }
            (JobVerdict::Malformed(_), _) => {
                self.completed += 1;
                if !rest.starts.is_empty() {
                    self.add("QUE-JOB-15", "started", "no start of a program for a malformed job", got());
                }
            }
            (JobVerdict::Open(key), "done" | "failed") => {
                self.completed += 1;
                let value = if folder == "done" { "accept" } else { "refuse" };
                self.shown.extend(key.map(|key| (key, value)));
            }
            (JobVerdict::Open(key), _) => {
                let clause = if key.is_none() { "QUE-JOB-28" } else { "QUE-WORK-14" };
                let finding = self.add(clause, "not_completed", "the job is run, or moved to failed/", got());
                finding.nature = Nature::Hang;
            }
            (JobVerdict::Job(play), "done") => self.job_done(put, play, &rest),
            (JobVerdict::Job(play), "failed") if !succeeds(play) => {
                if course.has_runner {
                    self.completed += 1;
                    let many = rest.starts.len() as u64;
                    if many < self.attempts() && !was_killed {
                        let expected = format!("{} starts", self.attempts());
                        self.add("QUE-WORK-10", "starts", &expected, format!("{many}"));
                    }
                }
            }
            (JobVerdict::Job(play), "failed") => self.job_failed(put, name, play, &rest),
            // A job that never ends holds up the ones after it.
            (JobVerdict::Job(_), _) if self.findings.iter().any(|it| it.reason == "not_completed") => {}
            (JobVerdict::Job(play), _) => self.job_left(put, name, play, &rest),
        }
        if folder == "failed" && is_plain && !was_killed {
            self.reason(look, put, name, found);
        }
        let stem = stem(name);
        if is_end(folder) && is_plain && !contains(base(&found.path.0), stem) {
            self.add("QUE-WORK-05", "renamed", "the job keeps its file name", got());
        }
    }

    fn job_done(&mut self, put: &PutFile, play: &[ActorStep], rest: &AtRest<'_>) {
        if rest.starts.iter().any(|start| start.succeeded()) {
            self.completed += 1;
            self.succeeded += 1;
        } else if rest.was_ended {
            self.add("QUE-TERM-04", "not_done", "in done/ only after its program succeeded", rest.got(put));
        } else if rest.was_killed {
            self.add("QUE-ONCE-04", "not_run", "the job of a dead worker is run", rest.got(put));
        } else if rest.starts.is_empty() {
            let clause = if self.course.has_runner { "QUE-WORK-20" } else { "QUE-WORK-24" };
            self.add(clause, "never_started", "a start of the program for the job", rest.got(put));
        } else if succeeds(play) && rest.starts.iter().any(|start| start.end.is_none()) {
            self.add("QUE-WORK-02", "moved_early", "no move before the program ended", rest.got(put));
        } else {
            self.add("QUE-WORK-11", "failure_done", "the failed job in failed/", rest.got(put));
        }
    }

    /// Judges a job that ends with success, but failed.
    fn job_failed(&mut self, put: &PutFile, name: &[u8], play: &[ActorStep], rest: &AtRest<'_>) {
        let clause = match () {
            () if rest.was_ended => "QUE-TERM-03",
            () if rest.was_killed => "QUE-ONCE-04",
            () if put.path.starts_with(b"queue/processing/") => "QUE-ONCE-05",
            () if !rest.starts.is_empty() && is_loud(play) => "QUE-WORK-23",
            () if !rest.starts.is_empty() => "QUE-WORK-09",
            // These jobs may fail.
            () if !rest.is_plain => return,
            () => self.clause_of(put, name),
        };
        self.add(clause, "failed", "the job is run and moved to done/", rest.got(put));
    }

    /// Judges a job that did not come to its end.
    fn job_left(&mut self, put: &PutFile, name: &[u8], play: &[ActorStep], rest: &AtRest<'_>) {
        let clause = match () {
            // Workers of the command `once` left the job and ended.
            () if self.all_end() && (rest.was_killed || rest.came_late) => "QUE-WORK-25",
            () if rest.was_killed && (rest.folder == "processing" || !rest.starts.is_empty()) => {
                "QUE-ONCE-04"
            }
            () if is_loud(play) && !rest.starts.is_empty() => "QUE-WORK-23",
            () if put.path.starts_with(b"queue/processing/") => "QUE-ONCE-05",
            () if self.has_specials() => "QUE-JOB-12",
            () if self.label(NO_INBOX) => "QUE-WORK-18",
            () if rest.starts.is_empty() && self.clause_of(put, name) != "QUE-JOB-01" => {
                self.clause_of(put, name)
            }
            () if rest.folder == "processing" => "QUE-WORK-09",
            () => "QUE-WORK-14",
        };
        let finding = self.add(clause, "not_completed", "the job in done/ or failed/", rest.got(put));
        finding.nature = Nature::Hang;
    }

    /// Judges a job whose bytes are in no file any more.
    fn gone(
        &mut self,
        look: &FolderSnapshot<'_>,
        put: &PutFile,
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
                JobVerdict::Malformed(_) => "QUE-JOB-16",
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
    fn reason(&mut self, look: &FolderSnapshot<'_>, put: &PutFile, name: &[u8], found: &FoundEntry) {
        let own = stem(base(&found.path.0));
        let is_reason = |(folder, one): &(&str, &FoundEntry)| {
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
    fn earlier_reasons(&mut self, look: &FolderSnapshot<'_>) {
        let mut earlier =
            self.course.looks.iter().filter(|other| other.label == REST && other.until < look.until);
        let Some(earlier) = earlier.next_back() else { return };
        for (_, one) in earlier.files().filter(|(folder, _)| *folder == "failed") {
            let Some(bytes) = &one.bytes else { continue };
            let is_about =
                |put: &PutFile| put.job_name().is_some_and(|name| contains(base(&one.path.0), stem(name)));
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

//! Rules about writers and the inbox: each accepted job is there once and complete, and no other job is there.
//!
//! The queue is a watched folder, so that even short writes to a file are noticed.

use std::collections::{BTreeMap, BTreeSet};

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars, shorten};
use peerproof_engine::data::plan::{Act, Fixture, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{
    Awaited, Event, EventKind, FolderChange, FoundEntry, FoundKind, Transcript,
};

use super::FOLDERS;
use super::job::{self, Job};

/// Name of the queue's fixture, and label of looks at it.
pub(crate) const QUEUE: &str = "queue";

/// Largest file on a full disk, bytes: more than any writer needs for itself.
pub(crate) const DISK_BYTES: u64 = 512 << 10;

/// Reason why a full disk showed nothing.
pub(crate) fn not_full() -> Untestable {
    Untestable::new("disk_not_full", "the adapter stored a job that is larger than the limit on file sizes")
}

/// Most characters of a quoted text.
const QUOTED_CHARS: usize = 200;

/// Sessions with a full disk.
pub(crate) fn full_disks(plan: &Plan) -> BTreeSet<usize> {
    let sessions = plan.sessions.iter().enumerate();
    let full = sessions.filter(|(_, spec)| spec.limits.file_bytes.is_some());
    full.map(|(session, _)| session).collect()
}

/// Outcome of a request according to the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A job is in the inbox.
    Put,
    /// No job is in the inbox.
    Not,
    /// The writer did not say.
    Unknown,
}

/// A request and its outcome.
#[derive(Debug, Clone)]
pub struct Request {
    /// Step that sent it.
    pub step: usize,
    /// Outcome according to the writer.
    pub outcome: Outcome,
    /// The job, if its stored form is known.
    pub job: Option<Json>,
    /// Clause broken by a missing or forbidden job; that of the step if it has one.
    pub clause: String,
    /// True if the step names the clause.
    pub is_aimed: bool,
    /// File name in the reply: the whole text, and the member `queued` of an object.
    pub told: Option<(String, Option<String>)>,
}

/// Clauses of a writer.
#[derive(Debug)]
pub struct Clauses {
    /// Jobs get names that workers accept.
    pub named: &'static str,
    /// The stored job equals the sent one.
    pub equal: &'static str,
    /// The stored job is complete.
    pub whole: &'static str,
    /// Each request makes its own job.
    pub own: &'static str,
    /// Other jobs are not changed.
    pub kept: &'static str,
    /// The reply names the file.
    pub told: Option<&'static str>,
    /// The reply names the file as `queued`.
    pub queued: &'static str,
    /// No temporary file is left after the writer ends.
    pub leaves: &'static str,
}

/// Choice: a repeated `request_id` makes one job or two.
const TWICE: &str = "QUE-ENQ-12";

/// Clause: a file is complete from the moment it has its name.
const COMPLETE: &str = "QUE-JOB-04";

/// Fixture of the queue.
pub fn fixture() -> Fixture {
    let folders = FOLDERS.map(str::to_owned).to_vec();
    Fixture::Folder { name: QUEUE.to_owned(), folders, watched: true }
}

/// A look at the queue.
pub fn look() -> Act {
    look_after(0)
}

/// A look at the queue after this delay, ms.
pub(crate) fn look_after(after_ms: u64) -> Act {
    Act::Look { label: QUEUE.to_owned(), path: place(""), after_ms }
}

/// A path below the queue.
pub fn place(below: &str) -> Payload {
    Payload::default().var(format!("{QUEUE}.path")).then(Payload::text(below))
}

/// A file of the inbox with the name of a job.
struct File<'a> {
    name: String,
    bytes: &'a [u8],
    value: Option<Json>,
}

/// Content of the queue at one look.
struct QueueSnapshot<'a> {
    jobs: Vec<File<'a>>,
    others: Vec<File<'a>>,
}

impl<'a> QueueSnapshot<'a> {
    fn of(found: &'a [FoundEntry]) -> Self {
        let files = found.iter().filter(|one| one.kind == FoundKind::File);
        let files = files.map(|one| {
            let bytes = one.bytes.as_ref().map_or(&[][..], |bytes| &bytes.0);
            let decoded = json::decode(bytes, &DecodeLimits::default()).ok();
            let name = String::from_utf8_lossy(&one.path.0).into_owned();
            File { name, bytes, value: decoded.map(|decoded| decoded.value) }
        });
        let is_job = |file: &File<'_>| {
            file.name.strip_prefix("inbox/").is_some_and(|name| job::is_name(name.as_bytes()))
        };
        let (mut jobs, others): (Vec<_>, Vec<_>) = files.partition(is_job);
        jobs.iter_mut().for_each(|file| file.name = file.name.split_off("inbox/".len()));
        Self { jobs, others }
    }
}

/// True if the stored job equals the sent one. Writers may add members that begin with `_`.
pub(crate) fn is_stored(sent: &Json, stored: &Json) -> bool {
    let mut stored = stored.clone();
    if let Some(members) = stored.as_object_mut() {
        members.retain(|(name, _)| !name.starts_with('_') || sent.get(name).is_some());
    }
    json::is_kept(sent, &stored)
}

/// Adds findings about the inbox. `requests` are those of all sessions in the order of sending.
pub fn judge(transcript: &Transcript, requests: &[Request], clauses: &Clauses, judgement: &mut Judgement) {
    let mut ledger = Ledger {
        requests,
        clauses,
        owned: BTreeMap::new(),
        kept: BTreeMap::new(),
        blamed: BTreeSet::new(),
        findings: Vec::new(),
        of_one_id: None,
    };
    // Sessions and looks have different clocks, so the plan gives their order.
    let steps = transcript.plan.steps.iter().enumerate();
    let mut looks = steps.filter(|(_, step)| matches!(&step.act, Act::Look { label, .. } if label == QUEUE));
    for event in &transcript.events {
        let sent = match &event.kind {
            EventKind::Looked { label, .. } if label == QUEUE => {
                looks.next().map_or(usize::MAX, |(step, _)| step)
            }
            _ => 0,
        };
        match &event.kind {
            EventKind::FilePut { path, bytes, error: None } => ledger.put(&path.0, bytes),
            EventKind::Looked { label, cut: true, .. } if label == QUEUE => {
                judgement.untestable = Some(Untestable::new(
                    "look_cut",
                    "the queue contains more files than peerproof looks at",
                ));
            }
            EventKind::Looked { label, found, .. } if label == QUEUE => {
                let seen = QueueSnapshot::of(found);
                if have_ended(&transcript.plan, sent) {
                    ledger.left(&seen);
                }
                ledger.look(&seen, sent);
            }
            EventKind::WatchOverflow => {
                judgement.untestable = Some(Untestable::new(
                    "watch_overflow",
                    "this machine dropped events of the watched queue",
                ));
            }
            _ => {}
        }
    }
    if let Some(value) = ledger.of_one_id {
        let (key, value) = ("same_request_id".to_owned(), value.to_owned());
        judgement.choice = Some(ChoiceSeen { pinned: false, key, value });
    }
    // A late answer is reported as late; its job may arrive after a look.
    let is_late =
        |event: &Event| matches!(event.kind, EventKind::DeadlinePassed { awaited: Awaited::Frames, .. });
    if !transcript.events.iter().any(is_late) {
        judgement.findings.extend(ledger.findings);
    } else {
        judgement.untestable = Some(Untestable::new("late", "not every request was answered in time"));
    }
    written(transcript, judgement);
}

/// True if every writer was ended before a step, and none by SIGKILL or on a full disk.
fn have_ended(plan: &Plan, step: usize) -> bool {
    let is_end = |act: &Act| matches!(act, Act::Finish) || *act == Act::Signal("TERM".to_owned());
    let steps = &plan.steps[..step.min(plan.steps.len())];
    let is_forced = steps.iter().any(|step| step.act == Act::Signal("KILL".to_owned()));
    let told: BTreeSet<usize> =
        steps.iter().filter(|step| is_end(&step.act)).map(|step| step.session).collect();
    !is_forced && full_disks(plan).is_empty() && steps.iter().all(|step| told.contains(&step.session))
}

struct Ledger<'a> {
    requests: &'a [Request],
    clauses: &'a Clauses,
    /// File of each request with the step of the request and its content. The harness's own files have the step
    /// `OWN`.
    owned: BTreeMap<String, (usize, Json)>,
    /// Other files that the harness put, by path below the queue.
    kept: BTreeMap<String, Vec<u8>>,
    /// Requests and files that were reported.
    blamed: BTreeSet<String>,
    findings: Vec<Finding>,
    /// Number of jobs made by one `request_id`, as value of the choice.
    of_one_id: Option<&'static str>,
}

/// Step of files that the harness put itself.
const OWN: usize = usize::MAX;

impl Ledger<'_> {
    /// Records a job that the harness put.
    fn put(&mut self, path: &[u8], bytes: &Payload) {
        let path = String::from_utf8_lossy(path);
        let (Some(path), Ok(text)) = (path.strip_prefix("queue/"), bytes.expand(&Vars::new())) else {
            return;
        };
        let name = path.strip_prefix("inbox/").filter(|name| job::is_name(name.as_bytes()));
        match (name, Job::read(&text).value()) {
            (Some(name), Some(value)) => drop(self.owned.insert(name.to_owned(), (OWN, value))),
            (Some(_), None) => {}
            (None, _) => drop(self.kept.insert(path.to_owned(), text)),
        }
    }

    fn blame(&mut self, about: String, finding: Finding, step: usize) {
        if self.blamed.insert(about) {
            self.findings.push(if step == OWN { finding } else { finding.at(step) });
        }
    }

    /// Finding about a job in the inbox under a name that no worker accepts, after the writers have ended.
    fn left(&mut self, seen: &QueueSnapshot<'_>) {
        let goal = |request: &Request| request.job.as_ref()?.get("goal_id")?.as_str().map(str::to_owned);
        let goals: Vec<String> = self.requests.iter().filter_map(goal).collect();
        let is_left = |file: &&File<'_>| {
            let text = String::from_utf8_lossy(file.bytes);
            file.name.starts_with("inbox/")
                && !self.kept.contains_key(&file.name)
                && goals.iter().any(|goal| text.contains(goal.as_str()))
        };
        if let Some(file) = seen.others.iter().find(is_left) {
            let expected =
                "only the job files in the inbox, and no part of a job, after the end of the writer";
            let finding = Finding::new(self.clauses.leaves, "part_left", expected, file.name.clone());
            let about = format!("left {}", file.name);
            self.blame(about, finding.repaired_by(Repair::Undo), OWN);
        }
    }

    fn look(&mut self, seen: &QueueSnapshot<'_>, sent: usize) {
        self.gone(seen);
        let requests: Vec<&Request> = self.requests.iter().filter(|request| request.step < sent).collect();
        let is_known = |ledger: &Self, step| ledger.owned.values().any(|(owner, _)| *owner == step);
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        for request in &requests {
            let Some(job) = &request.job else { continue };
            let id = job.get("request_id").and_then(Json::as_str);
            let is_again = id.is_some_and(|id| !ids.insert(id));
            if request.outcome == Outcome::Not && is_again && request.clause == TWICE {
                self.of_one_id = Some("one");
            }
            if request.outcome == Outcome::Not || is_known(self, request.step) {
                continue;
            }
            let (told, queued) = match &request.told {
                Some((text, queued)) => (text.as_str(), queued.as_deref()),
                None => ("", None),
            };
            let is_own = |file: &&File<'_>| {
                !self.owned.contains_key(&file.name)
                    && file.value.as_ref().is_some_and(|value| is_stored(job, value))
            };
            let mut own: Vec<&File<'_>> = seen.jobs.iter().filter(is_own).collect();
            own.sort_by_key(|file| (queued != Some(&*file.name), !told.contains(&file.name)));
            if is_again && request.clause == TWICE {
                self.of_one_id = Some(if own.is_empty() { "one" } else { "two" });
            }
            match own.first() {
                Some(file) => {
                    self.owned.insert(file.name.clone(), (request.step, job.clone()));
                    if request.outcome == Outcome::Put {
                        self.named(request, &file.name);
                    }
                }
                // One job serves both requests.
                None if is_again => {}
                None if request.outcome == Outcome::Put => self.missing(request, job, seen),
                None => {}
            }
        }
        let extra = seen.jobs.iter().filter(|file| !self.owned.contains_key(&file.name));
        let extra: Vec<&File<'_>> = extra.collect();
        for file in extra {
            // A job whose stored form is open is recognised by its appearance alone.
            let open = requests
                .iter()
                .find(|it| it.job.is_none() && it.outcome != Outcome::Not && !is_known(self, it.step));
            if let (Some(open), Some(value)) = (open, &file.value) {
                self.owned.insert(file.name.clone(), (open.step, value.clone()));
                continue;
            }
            self.extra(&requests, file);
        }
    }

    /// Finding about an earlier job that was removed or changed.
    fn gone(&mut self, seen: &QueueSnapshot<'_>) {
        let is_there = |path: &str, bytes: &[u8]| {
            seen.others.iter().any(|file| file.name == path && file.bytes == bytes)
        };
        if let Some((path, _)) = self.kept.iter().find(|(path, bytes)| !is_there(path, bytes)) {
            let expected = "earlier files in the queue stay unchanged";
            let finding =
                Finding::new(self.clauses.kept, "gone", expected, format!("{path} is gone or changed"));
            self.blame(format!("gone {path}"), finding.repaired_by(Repair::Undo), OWN);
        }
        let owned = std::mem::take(&mut self.owned);
        for (name, (step, job)) in &owned {
            let file = seen.jobs.iter().find(|file| file.name == *name);
            let same = |value: &Json| {
                if *step == OWN { value == job } else { is_stored(job, value) || value == job }
            };
            if file.is_some_and(|file| file.value.as_ref().is_some_and(same)) {
                continue;
            }
            let clauses = self.clauses;
            let (clause, reason, got) = match file {
                Some(file) => (clauses.own, "overwritten", format!("{name} holds {}", quoted(file.bytes))),
                None => (clauses.kept, "gone", format!("{name} is gone from the inbox")),
            };
            let finding = Finding::new(clause, reason, "an enqueued job stays unchanged in the inbox", got);
            self.blame(format!("gone {name}"), finding.repaired_by(Repair::Undo), *step);
        }
        self.owned = owned;
    }

    /// Finding about an accepted job that is missing from the inbox or differs.
    fn missing(&mut self, request: &Request, job: &Json, seen: &QueueSnapshot<'_>) {
        let clauses = self.clauses;
        let expected = "a job in the inbox that equals the request";
        // A file outside the four folders may be a temporary one.
        let is_named = |it: &&File<'_>| {
            it.name.ends_with(".json") || FOLDERS.iter().any(|folder| it.name.starts_with(folder))
        };
        let is_same = |it: &&File<'_>| it.value.as_ref().is_some_and(|it| is_stored(job, it));
        let elsewhere = seen.others.iter().filter(is_named).find(is_same);
        let goal = job.get("goal_id").and_then(Json::as_str).unwrap_or_default().to_owned();
        let told = request.told.as_ref().map(|(text, _)| text.as_str()).unwrap_or_default();
        let is_like = |file: &&File<'_>| {
            !self.owned.contains_key(&file.name)
                && (told.contains(&file.name)
                    || !goal.is_empty() && String::from_utf8_lossy(file.bytes).contains(&goal))
        };
        let differs = seen.jobs.iter().find(is_like);
        let (clause, reason, got) = match (elsewhere, differs) {
            (Some(file), _) => {
                let is_moved =
                    ["processing/", "done/", "failed/"].iter().any(|folder| file.name.starts_with(folder));
                match is_moved {
                    true => (clauses.kept.to_owned(), "moved", file.name.clone()),
                    false => (clauses.named.to_owned(), "other_name", file.name.clone()),
                }
            }
            (None, Some(file)) => {
                let got = format!("{}: {}", file.name, quoted(file.bytes));
                match file.value {
                    Some(_) => (clauses.equal.to_owned(), "differs", got),
                    None => (clauses.whole.to_owned(), "not_whole", got),
                }
            }
            (None, None) => (request.clause.clone(), "missing", "no such job".to_owned()),
        };
        if let Some(file) = differs {
            self.owned.insert(file.name.clone(), (request.step, file.value.clone().unwrap_or_default()));
            self.blamed.insert(format!("gone {}", file.name));
        }
        let finding = Finding::new(clause.as_str(), reason, expected, got).repaired_by(Repair::Do);
        self.blame(format!("{clause} {reason}"), finding, request.step);
    }

    /// Finding about a job that no request asked for.
    fn extra(&mut self, requests: &[&Request], file: &File<'_>) {
        let is_its = |it: &&&Request| {
            let job = it.job.as_ref().zip(file.value.as_ref());
            job.is_some_and(|(job, value)| is_stored(job, value))
        };
        let refused = |it: &&&Request| it.outcome == Outcome::Not;
        let own = requests.iter().rev().find(is_its).or_else(|| requests.iter().rev().find(refused));
        let (clause, step) = match own {
            Some(request) if request.outcome == Outcome::Not => (request.clause.as_str(), request.step),
            Some(request) => (self.clauses.own, request.step),
            None => (self.clauses.kept, OWN),
        };
        let got = format!("{}: {}", file.name, quoted(file.bytes));
        let finding = Finding::new(clause, "enqueued", "no other job in the inbox", got);
        self.blame(format!("extra {}", file.name), finding.repaired_by(Repair::Undo), step);
    }

    /// Finding about a wrong file name in a reply.
    fn named(&mut self, request: &Request, name: &str) {
        let Some((text, queued)) = &request.told else { return };
        let stem = name.strip_suffix(".json").unwrap_or(name);
        let (clause, expected) = match queued {
            Some(queued) if queued == name => return,
            _ if self.clauses.told.is_some_and(|_| !text.contains(stem)) => {
                let told = if request.is_aimed { Some(request.clause.as_str()) } else { self.clauses.told };
                (told.unwrap_or_default(), format!("a body that names {name}"))
            }
            _ => (self.clauses.queued, format!("an object with `queued` equal to {name:?}")),
        };
        let got = shorten(text, QUOTED_CHARS).into_owned();
        self.blame(
            format!("told {clause}"),
            Finding::new(clause, "name_not_told", expected, got),
            request.step,
        );
    }
}

fn quoted(bytes: &[u8]) -> String {
    shorten(&String::from_utf8_lossy(bytes), QUOTED_CHARS).into_owned()
}

/// Finding about a file of the inbox that was written to after it got its `.json` name.
fn written(transcript: &Transcript, judgement: &mut Judgement) {
    let wrong = transcript.events.iter().find_map(|event| match &event.kind {
        EventKind::FolderChanged {
            folder, path, change: FolderChange::Written, is_folder: false, ..
        } => {
            let path = String::from_utf8_lossy(&path.0).into_owned();
            let is_job = path
                .strip_prefix("inbox/")
                .is_some_and(|name| name.ends_with(".json") && !name.contains('/'));
            (folder == QUEUE && is_job).then_some(path)
        }
        _ => None,
    });
    if let Some(path) = wrong {
        let expected = "each `*.json` file in the inbox is complete when it appears";
        let got = format!("{path} was written after it appeared");
        judgement
            .findings
            .push(Finding::new(COMPLETE, "written_in_place", expected, got).repaired_by(Repair::Undo));
    }
}

/// File name in a reply text, for [`Request::told`].
pub fn told(text: &[u8]) -> (String, Option<String>) {
    let value = json::decode(json::trim(text), &DecodeLimits::default()).ok().map(|decoded| decoded.value);
    let queued = value.as_ref().and_then(|value| Some(value.get("queued")?.as_str()?.to_owned()));
    // Escape sequences are decoded as well.
    let plain = value.map(|value| value.to_text()).unwrap_or_default();
    (format!("{}\n{plain}", String::from_utf8_lossy(text)), queued)
}

/// A job that is unique to this word, with members of every type.
pub fn job(word: &str) -> String {
    format!(
        r#"{{"goal_id":"g-{word}","inputs":{{"job":"{word}","play":"ok","note":"gr\u00fc\u00df ✓"}},"request_id":"r-{word}","x_more":{{"list":[1,-2.5,1e3,true,null,"\u0001 \" \\ /"],"most":9007199254740991}}}}"#
    )
}

/// A job with decomposed Unicode text and a fraction of 17 digits.
pub(crate) fn exact(job: &str) -> String {
    job::with_member(job, "\"e\u{301}\":[\"u\u{308}\",0.30000000000000004]")
}

/// A job with a lone surrogate.
pub(crate) fn halved(job: &str) -> String {
    job::with_member(job, r#""half":"a\ud800b""#)
}

/// Texts for `request_id` that would escape the folder if used as file names.
pub(crate) const PATHS: [&str; 6] =
    ["../above", "a/b", "/nonexistent/peerproof", "..%2fabove", r"..\\above", "%2e%2e%2fabove"];

/// A job with this `request_id`.
pub fn called(job: &str, id: &str) -> String {
    job.replacen("\"request_id\":\"", &format!("\"request_id\":\"{id}\",\"x_id\":\""), 1)
}

/// A text with a few bytes changed, removed or inserted.
pub fn near_miss(mut text: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..=rng.below(2) {
        let at = rng.index(text.len().max(1));
        let byte = *rng.pick(b"{}[]\":,\\ 0x\xff\x01e-");
        match rng.below(4) {
            0 if at < text.len() => text[at] = byte,
            1 if at < text.len() => drop(text.remove(at)),
            2 => text.truncate(at),
            _ => text.insert(at.min(text.len()), byte),
        }
    }
    text
}

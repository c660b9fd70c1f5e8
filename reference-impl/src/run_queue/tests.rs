//! Tests of workers and writers on files in memory.

mod crashes;
mod jobs;
mod mutants;
mod writers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, Entry, Fault, Kind, Op, OpResult, Place};
use super::{Config, Parts, Worker};
use crate::machine::{Action, ChildExit, Event, Machine, Millis};

/// Id of a process, in the order of their starts.
type ProcessId = usize;

/// Files in memory, shared by all processes.
#[derive(Default)]
struct Files {
    files: BTreeMap<Place, Vec<u8>>,
    folders: BTreeMap<Place, Option<ProcessId>>,
    /// Special files by place.
    odd: BTreeMap<Place, Kind>,
    /// Operations so far, with the process of each.
    done: Vec<(ProcessId, Op)>,
    /// Number of operations after which the next process to act dies.
    dies_after: Option<usize>,
    /// Remaining space in bytes.
    room: Option<usize>,
    /// Folder to which files cannot be moved.
    full: Option<&'static str>,
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<Files>>);

/// View of one process.
struct ProcessView {
    world: World,
    who: ProcessId,
}

/// More turns than a worker needs to finish all jobs.
const TURNS_MAX: usize = 200;

const DEAD: &str = "dead";

impl World {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts(&self, who: ProcessId) -> Parts {
        Parts::new(Box::new(ProcessView { world: self.clone(), who }))
    }

    fn put(&self, place: &str, text: &str) {
        let mut files = self.files();
        let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
        files.folders.entry(folder.into()).or_insert(None);
        files.files.insert(place.into(), text.as_bytes().to_vec());
    }

    /// Files below a folder, with their texts.
    fn below(&self, folder: &str) -> Vec<(String, String)> {
        let files = self.files();
        let within =
            files.files.iter().filter(|(place, _)| place.starts_with(format!("{folder}/").as_bytes()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        within.map(|(place, bytes)| (text(&place[folder.len() + 1..]), text(bytes))).collect()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.below(folder).into_iter().map(|(name, _)| name).collect()
    }

    /// Releases the locks of a dead process.
    fn bury(&self, who: ProcessId) {
        let mut files = self.files();
        files.folders.values_mut().filter(|holder| **holder == Some(who)).for_each(|holder| *holder = None);
        files.dies_after = None;
    }
}

impl Files {
    fn is_there(&self, place: &[u8]) -> bool {
        self.files.contains_key(place) || self.folders.contains_key(place) || self.odd.contains_key(place)
    }

    fn folder_of<'a>(&self, place: &'a [u8]) -> Result<&'a [u8], Fault> {
        let folder = place.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &place[..at]);
        if folder.is_empty() || self.folders.contains_key(folder) { Ok(folder) } else { Err(Fault::Missing) }
    }

    fn rename(&mut self, from: &[u8], to: Place) -> Result<OpResult, Fault> {
        self.folder_of(&to)?;
        if self.full.is_some_and(|full| to.starts_with(full.as_bytes())) {
            return Err(Fault::Other("no space left".to_owned()));
        }
        if let Some(kind) = self.odd.remove(from) {
            self.odd.insert(to, kind);
            return Ok(OpResult::Done);
        }
        let bytes = self.files.remove(from).ok_or(Fault::Missing)?;
        self.files.insert(to, bytes);
        Ok(OpResult::Done)
    }

    fn act(&mut self, who: ProcessId, op: Op) -> Result<OpResult, Fault> {
        match op {
            Op::Make(place) => {
                for at in (0..place.len()).filter(|at| place[*at] == b'/').chain([place.len()]) {
                    self.folders.entry(place[..at].to_vec()).or_insert(None);
                }
                Ok(OpResult::Done)
            }
            Op::List(place) => {
                if !self.folders.contains_key(&place) {
                    return Err(Fault::Missing);
                }
                let inside = |entry: &Place| {
                    let name = entry.strip_prefix(&place[..])?.strip_prefix(b"/")?;
                    (!name.contains(&b'/')).then(|| name.to_vec())
                };
                let files = self.files.keys().filter_map(inside).map(|name| (name, Kind::File));
                let folders = self.folders.keys().filter_map(inside).map(|name| (name, Kind::Folder));
                let odd = self.odd.iter().filter_map(|(place, kind)| Some((inside(place)?, *kind)));
                let all = files.chain(folders).chain(odd).map(|(name, kind)| Entry { name, kind });
                Ok(OpResult::Entries(all.collect()))
            }
            Op::Look(place) => Ok(OpResult::Kind(if self.files.contains_key(&place) {
                Kind::File
            } else if self.folders.contains_key(&place) {
                Kind::Folder
            } else {
                self.odd.get(&place).copied().unwrap_or(Kind::Missing)
            })),
            Op::Read { place, bytes_max, .. } => {
                if self.odd.contains_key(&place) || self.folders.contains_key(&place) {
                    return Err(Fault::NotAFile);
                }
                let bytes = self.files.get(&place).ok_or(Fault::Missing)?;
                if bytes.len() > bytes_max {
                    Err(Fault::TooLarge)
                } else {
                    Ok(OpResult::Bytes(bytes.clone()))
                }
            }
            Op::Write(place, bytes) => {
                self.folder_of(&place)?;
                if self.is_there(&place) {
                    return Err(Fault::Exists);
                }
                if self.room.is_some_and(|room| room < bytes.len()) {
                    return Err(Fault::Other("no space left".to_owned()));
                }
                self.files.insert(place, bytes);
                Ok(OpResult::Done)
            }
            Op::Move(_, to) if self.is_there(&to) => Err(Fault::Exists),
            Op::Move(from, to) | Op::Replace(from, to) => self.rename(&from, to),
            Op::Sync(_) => Ok(OpResult::Done),
            Op::Remove(place) => {
                if self.folders.contains_key(&place) {
                    if self.act(who, Op::List(place.clone())) != Ok(OpResult::Entries(Vec::new())) {
                        return Err(Fault::Other("not empty".to_owned()));
                    }
                    self.folders.remove(&place);
                    return Ok(OpResult::Done);
                }
                self.files.remove(&place).map(|_| OpResult::Done).ok_or(Fault::Missing)
            }
            Op::Hold(place) => match self.folders.get_mut(&place) {
                None if place.is_empty() => {
                    self.folders.insert(place, Some(who));
                    Ok(OpResult::Done)
                }
                None => Err(Fault::Missing),
                Some(Some(holder)) if *holder != who => Err(Fault::Held),
                Some(holder) => {
                    *holder = Some(who);
                    Ok(OpResult::Done)
                }
            },
        }
    }
}

impl Disk for ProcessView {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        let mut files = self.world.files();
        if files.dies_after.is_some_and(|most| files.done.len() >= most) {
            return Err(Fault::Other(DEAD.to_owned()));
        }
        files.done.push((self.who, op.clone()));
        files.act(self.who, op)
    }
}

/// Start of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Start {
    who: ProcessId,
    text: String,
}

/// A running worker.
struct AtWork {
    world: World,
    who: ProcessId,
    worker: Worker,
    now: Millis,
    wake_at: Option<Millis>,
    /// Text of the job whose program runs.
    running: Option<String>,
    starts: Vec<Start>,
    killed: bool,
    exit: Option<i32>,
}

impl AtWork {
    fn new(world: &World, who: ProcessId, config: Config) -> Self {
        let config = Config { seed: who as u64, ..config };
        let mut at_work = Self {
            world: world.clone(),
            who,
            worker: Worker::new(config, world.parts(who)),
            now: 0,
            wake_at: None,
            running: None,
            starts: Vec::new(),
            killed: false,
            exit: None,
        };
        let mut actions = Vec::new();
        at_work.worker.begin(0, &mut actions);
        at_work.act(actions);
        at_work.step();
        at_work
    }

    /// True if it has died.
    fn is_dead(&self) -> bool {
        let files = self.world.files();
        files.dies_after.is_some_and(|most| files.done.len() >= most)
    }

    fn act(&mut self, actions: Vec<Action>) {
        if self.is_dead() {
            return;
        }
        for action in actions {
            match action {
                Action::Job(place) => {
                    let files = self.world.files();
                    let text =
                        files.files.get(&place).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                    drop(files);
                    let text = text.unwrap_or_default();
                    self.starts.push(Start { who: self.who, text: text.clone() });
                    self.running = Some(text);
                }
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Kill => self.killed = true,
                Action::Exit(status) => self.exit = Some(status),
                _ => {}
            }
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        if self.exit.is_some() || self.is_dead() {
            return;
        }
        let mut actions = Vec::new();
        self.worker.handle(event, self.now, &mut actions);
        self.act(actions);
    }

    /// Ends its program, with status N if the job contains `"exit":N`.
    fn end_program(&mut self) {
        let Some(text) = self.running.take() else { return };
        let exit = text.split_once("\"exit\":").map_or(0, |(_, rest)| i32::from(rest.as_bytes()[0] - b'0'));
        self.tell(Event::ChildExit(if self.killed { ChildExit::Signal(9) } else { ChildExit::Code(exit) }));
    }

    /// Runs until it waits for its program or is idle. Returns false if it is idle, dead or has ended.
    fn step(&mut self) -> bool {
        for _ in 0..TURNS_MAX {
            if self.running.is_some() || self.exit.is_some() || self.is_dead() {
                break;
            }
            match self.wake_at.take() {
                Some(at) if at <= self.now => self.tell(Event::Wake),
                other => {
                    self.wake_at = other;
                    return false;
                }
            }
        }
        self.running.is_some()
    }

    /// Runs until it is idle, dead or has ended.
    fn drain(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.step() {
                break;
            }
            self.end_program();
        }
    }

    /// Advances the clock to its timer.
    fn wait(&mut self) {
        self.now = self.wake_at.unwrap_or(self.now).max(self.now);
    }
}

/// Job with a number.
fn job(number: usize) -> String {
    format!("{{\"goal_id\":\"g\",\"number\":{number}}}")
}

fn once() -> Config {
    Config { once: true, ..Config::default() }
}

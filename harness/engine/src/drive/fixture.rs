//! Fixtures: the world around a peer. HTTP listeners that record their requests, programs that the peer starts
//! ([`actor`]), files, folders and unusual paths.
//!
//! All files lie in one scratch directory, all listeners on 127.0.0.1. [`Fixtures::observe`] collects the events;
//! nothing here judges them.

pub mod actor;
mod cast;
mod effect_watcher;
mod files;
mod listener;
mod log;
mod look;
mod place;
mod process;
mod tree;
mod watch;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::data::blame::HarnessFault;
use crate::data::payload::Vars;
use crate::data::plan::{FOLDER, Fixture, ListenerSettings};
use crate::data::transcript::{Bytes, EventKind};

use self::cast::{Actor, TimedActorEvent, process_of};
use self::files::{check_names, make_actor, make_file, make_folders, make_path};
use self::listener::{ListenerReply, Listeners};
use self::log::ActorEvent;
pub use self::log::now_us;
use self::watch::{WatchRecord, Watcher};

/// Maximum bytes of a kept file that are recorded.
pub(crate) const KEPT_BYTES_MAX: u64 = 64 << 20;

/// Readers start processes; a writer holds an open file that no process may inherit.
static BIRTHS: RwLock<()> = RwLock::new(());

/// Locks out [`no_births`]; hold it while a thread of the harness starts a process.
///
/// Between fork and exec, a new process holds all open files of its parent. Two kinds do harm: a script being written,
/// which nobody can start at that moment (`ETXTBSY`), and a briefly listening socket, whose connections would never be
/// accepted.
pub fn spawn_guard() -> RwLockReadGuard<'static, ()> {
    BIRTHS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks out every [`spawn_guard`]; hold it while a file is open that no other process may inherit.
pub fn no_births() -> RwLockWriteGuard<'static, ()> {
    BIRTHS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Program that plays actors: a binary whose `main` calls [`actor::dispatch`] first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorExe {
    /// Absolute path.
    pub program: PathBuf,
}

impl ActorExe {
    /// Uses the binary at `program`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}

/// Running fixtures of one conversation. Dropping them equals [`Fixtures::stop`].
#[derive(Debug)]
pub struct Fixtures {
    vars: Vars,
    listeners: Option<Listeners>,
    actors: Vec<Actor>,
    kept: Vec<(String, PathBuf)>,
    watcher: Option<Watcher>,
    /// Number of files put so far.
    puts: usize,
    /// Folder of all fixtures, with links resolved.
    folder: PathBuf,
}

impl Fixtures {
    /// Starts all `fixtures`. Their files are made in `dir`, which is created if missing and must not hold anything
    /// with the name of a fixture. Texts of fixtures may name variables of any fixture.
    ///
    /// # Errors
    /// Names the cause: an invalid or repeated name, a name inside a fixture that is not a directory, an undefined
    /// variable, or an error of the operating system.
    pub fn start(fixtures: &[Fixture], dir: &Path, actor_exe: &ActorExe) -> Result<Self, HarnessFault> {
        check_names(fixtures)?;
        fs::create_dir_all(dir).map_err(|error| failed("create the directory", dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| failed("find the directory", dir, &error))?;
        let text_of = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| format!("{} is not UTF-8; choose another directory", path.display()))
        };
        let mut vars = Vars::from([(FOLDER.to_owned(), text_of(&dir)?)]);
        let (mut bound, mut datagrams) = (Vec::new(), Vec::new());
        for fixture in fixtures {
            let name = fixture.name();
            if let Fixture::Listener { manner, .. } = fixture {
                let (socket, address) = listener::bind().map_err(|error| {
                    format!(
                        "cannot open the listener {name:?} on 127.0.0.1: {error}; free a port and try again"
                    )
                })?;
                vars.insert(format!("{name}.port"), address.port().to_string());
                vars.insert(format!("{name}.address"), address.to_string());
                bound.push((socket, listener::bind_ipv6(address.port())));
                if manner.datagrams {
                    let sockets = listener::bind_datagrams(address.port()).into_iter();
                    datagrams.extend(sockets.map(|socket| (name.to_owned(), socket)));
                }
            } else {
                let path = dir.join(name);
                if path.symlink_metadata().is_ok() {
                    return Err(format!(
                        "{} exists already; fixtures need an empty directory",
                        path.display()
                    )
                    .into());
                }
                vars.insert(format!("{name}.path"), text_of(&path)?);
            }
        }
        let mut served = Vec::new();
        let mut actors = Vec::new();
        let mut kept = Vec::new();
        let mut watched = Vec::new();
        let mut sockets = bound.into_iter();
        for fixture in fixtures {
            let path = dir.join(fixture.name());
            match fixture {
                Fixture::Listener { name, status, location, body, manner } => {
                    let location = location.as_deref().map(|text| substitute(text, &vars)).transpose()?;
                    let body = body.expand(&vars)?;
                    let mut reply = ListenerReply::in_manner(*status, location.as_deref(), &body, manner);
                    if let Some(aside) = &manner.aside {
                        let own = ListenerSettings { fault: aside.fault, ..manner.clone() };
                        let body = aside.body.expand(&vars)?;
                        let other = ListenerReply::in_manner(aside.status, None, &body, &own);
                        reply = reply.with_aside(&aside.path, other);
                    }
                    if let Some((socket, ipv6)) = sockets.next() {
                        served.extend(ipv6.map(|socket| (name.clone(), socket, reply.clone())));
                        served.push((name.clone(), socket, reply));
                    }
                }
                Fixture::File { name, content, mode, kept: keeps } => {
                    make_folders(&path)?;
                    make_file(&path, &content.expand(&vars)?, *mode)?;
                    if *keeps {
                        kept.push((name.clone(), path));
                    }
                }
                Fixture::Folder { name, folders, watched: is_watched } => {
                    for folder in std::iter::once(path.clone()).chain(folders.iter().map(|it| path.join(it)))
                    {
                        fs::create_dir_all(&folder)
                            .map_err(|error| failed("make the folder", &folder, &error))?;
                    }
                    watched.extend(is_watched.then(|| (path.clone(), name.clone())));
                }
                Fixture::Path { what, .. } => {
                    make_folders(&path)?;
                    make_path(&path, what, &vars)?;
                }
                Fixture::Actor { name, script, later } => {
                    make_folders(&path)?;
                    actors.push(make_actor(&path, name, script, later, &vars, actor_exe)?);
                }
            }
        }
        let listeners = if served.is_empty() {
            None
        } else {
            Some(
                Listeners::start(served, datagrams)
                    .map_err(|error| format!("cannot start the listeners: {error}"))?,
            )
        };
        let watcher = if watched.is_empty() { None } else { Some(watch(watched, &actors)?) };
        Ok(Self { vars, listeners, actors, kept, watcher, puts: 0, folder: dir })
    }

    /// Variables of all fixtures: `name.port`, `name.address`, `name.path`, and `folder` for the folder of their files.
    pub fn vars(&self) -> Vars {
        self.vars.clone()
    }

    /// Events since the last call, in order: requests and replies of listeners; starts, input and sights of actors, and
    /// their output when they end. Includes everything that a peer did before the call. A connection with an
    /// incomplete request head counts with the bytes received.
    ///
    /// # Errors
    /// Reports faults of the harness: the listeners died, or an actor could not follow its script.
    pub fn observe(&mut self) -> Result<Vec<EventKind>, HarnessFault> {
        Ok(self.happened()?.into_iter().map(|(_, kind)| kind).collect())
    }

    /// Events as in [`Fixtures::observe`], with times on the clock of [`now_us`].
    ///
    /// # Errors
    /// As [`Fixtures::observe`].
    pub fn happened(&mut self) -> Result<Vec<(u64, EventKind)>, HarnessFault> {
        let listeners = self.listeners.as_ref().map_or(Ok(Vec::new()), Listeners::collect)?;
        let mut told = self.told()?;
        let noted = self.watcher.as_ref().map(Watcher::collect).unwrap_or_default();
        // A mark is made after its line. So a line written after the records were read is there by now.
        if !watch::marks(&noted).is_subset(&told.iter().map(|told| told.mark.as_str()).collect()) {
            told.extend(self.told()?);
        }
        Ok(in_order(noted, told, listeners))
    }

    fn told(&mut self) -> Result<Vec<TimedActorEvent>, HarnessFault> {
        let mut told = Vec::new();
        for actor in &mut self.actors {
            told.extend(actor.observe()?);
        }
        Ok(told)
    }

    /// Ends everything as [`Fixtures::stop`] does and returns the remaining events.
    pub fn finish(&mut self) -> Vec<(u64, EventKind)> {
        let listeners = self.listeners.take().map(Listeners::stop).unwrap_or_default();
        let told = self.actors.drain(..).flat_map(|mut actor| actor.stop()).collect();
        let noted = self.watcher.take().map(|watcher| watcher.collect()).unwrap_or_default();
        in_order(noted, told, listeners)
    }

    /// [`EventKind::FileHeld`] for each kept file, with at most [`KEPT_BYTES_MAX`] bytes. A file that the peer removed
    /// counts as empty.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(crate) fn kept_files(&self) -> Result<Vec<EventKind>, HarnessFault> {
        let held = |(name, path): &(String, PathBuf)| {
            let mut bytes = Vec::new();
            match fs::File::open(path) {
                Ok(file) => file
                    .take(KEPT_BYTES_MAX)
                    .read_to_end(&mut bytes)
                    .map_err(|error| failed("read", path, &error))?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Err(error) => return Err(failed("read", path, &error)),
            };
            Ok(EventKind::FileHeld { file: name.clone(), bytes: Bytes(bytes) })
        };
        self.kept.iter().map(held).collect()
    }

    /// [`EventKind::ActorAlive`] for each living process of the actor `name`: `self`, `child` (started by it) or
    /// `left_group` (started by it, in a session of its own). Zombies count as dead. Then [`EventKind::ActorFileStays`]
    /// if the last argument of its last start names an existing file.
    ///
    /// # Errors
    /// Fails for an unknown actor or an unreadable record.
    pub fn probe_actor(&mut self, name: &str, label: &str) -> Result<Vec<EventKind>, HarnessFault> {
        let actor = self.actor(name)?;
        let mut found = Vec::new();
        let mut given = None;
        for line in actor.log.read_all()? {
            if let ActorEvent::Started { argv, working_dir, .. } = &line.entry {
                given = argv.last().map(|last| Path::new(working_dir).join(last));
            }
            if let Some((process, role)) = process_of(line.entry)
                && process.lives()
            {
                let (actor, label, role) = (name.to_owned(), label.to_owned(), role.to_owned());
                found.push(EventKind::ActorAlive { actor, label, role });
            }
        }
        // A relative path has no meaning if the working directory is unknown.
        if let Some(path) = given.filter(|path| path.is_absolute() && path.is_file()) {
            found.push(EventKind::ActorFileStays {
                actor: name.to_owned(),
                label: label.to_owned(),
                path: path.to_string_lossy().into_owned(),
            });
        }
        Ok(found)
    }

    /// True if a process of an actor is alive.
    ///
    /// # Errors
    /// Fails if a record cannot be read.
    pub fn is_played(&self) -> Result<bool, HarnessFault> {
        for actor in &self.actors {
            let mut processes = actor.log.read_all()?.into_iter().filter_map(|line| process_of(line.entry));
            if processes.any(|(process, _)| process.lives()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn actor(&self, name: &str) -> Result<&Actor, HarnessFault> {
        let actor = self.actors.iter().find(|actor| actor.name == name);
        actor.ok_or_else(|| format!("there is no actor {name:?}").into())
    }

    /// Path of the fixture `name`.
    fn path_of(&self, name: &str) -> Result<PathBuf, HarnessFault> {
        let path = self.vars.get(&format!("{name}.path")).map(PathBuf::from);
        path.ok_or_else(|| format!("there is no fixture {name:?} with a path").into())
    }

    /// Renames the path of the fixture `name` away, or back.
    ///
    /// # Errors
    /// Fails for an unknown path or an error of the operating system.
    pub(crate) fn hide(&self, name: &str, hidden: bool) -> Result<(), HarnessFault> {
        let path = self.path_of(name)?;
        let mut aside = path.clone().into_os_string();
        aside.push(".hidden");
        let aside = PathBuf::from(aside);
        let (from, to) = if hidden { (&path, &aside) } else { (&aside, &path) };
        fs::rename(from, to).map_err(|error| failed("move", from, &error))
    }

    /// Closes the listeners and kills every living process of an actor.
    pub fn stop(mut self) {
        self.finish();
    }
}

impl Drop for Fixtures {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Sorts all events by time; events of folders come first among equal times.
fn in_order(
    noted: Vec<(u64, WatchRecord)>,
    told: Vec<TimedActorEvent>,
    listeners: Vec<(u64, EventKind)>,
) -> Vec<(u64, EventKind)> {
    let mut happened = watch::before_marks(noted, &told);
    happened.extend(listeners);
    happened.extend(told.into_iter().map(|told| (told.at_us, told.kind)));
    happened.sort_by_key(|(at_us, _)| *at_us);
    happened
}

/// Starts to watch the folders and the actors' folders of marks.
fn watch(folders: Vec<(PathBuf, String)>, actors: &[Actor]) -> Result<Watcher, HarnessFault> {
    let marks: Vec<PathBuf> = actors.iter().map(|actor| actor.marks.clone()).collect();
    let made = marks.iter().try_for_each(fs::create_dir);
    made.and_then(|()| Watcher::start(folders, marks))
        .map_err(|error| format!("cannot watch folders: {error}").into())
}

/// Replaces each `{{name}}` in `text` by the value of that variable.
///
/// # Errors
/// Names the undefined variable, or reports a missing `}}`.
pub(crate) fn substitute(text: &str, vars: &Vars) -> Result<String, HarnessFault> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("{{") {
        let (name, after) =
            tail.split_once("}}").ok_or_else(|| format!("{text:?} opens {{{{ without closing it"))?;
        let value = vars.get(name).ok_or_else(|| format!("variable {name:?} in {text:?} has no value"))?;
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> HarnessFault {
    format!("cannot {what} {}: {error}", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_or_named() {
        let vars = Vars::from([("b.port".to_owned(), "81".to_owned())]);
        assert_eq!(substitute("http://h:{{b.port}}/x", &vars).unwrap(), "http://h:81/x");
        assert_eq!(substitute("plain {} text", &vars).unwrap(), "plain {} text");
        assert!(substitute("{{c.port}}", &vars).unwrap_err().to_string().contains("c.port"));
        assert!(substitute("{{b.port", &vars).is_err());
    }
}

//! Fixtures: what the harness plays around a peer. HTTP listeners that tell who contacted them, programs that the peer
//! starts ([`actor`]), and paths to stumble over.
//!
//! Everything lives in one scratch directory and on 127.0.0.1. What happened is collected with [`Fixtures::observe`];
//! nothing here judges it.

pub mod actor;
mod cast;
mod eye;
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

use crate::blame::HarnessFault;
use crate::payload::Vars;
use crate::plan::{FOLDER, Fixture, Manner};
use crate::transcript::{Bytes, Kind};

use self::cast::{Actor, Told, process_of};
use self::files::{check_names, make_actor, make_file, make_folders, make_path};
use self::listener::{Listeners, Reply};
use self::log::Entry;
pub use self::log::now_us;
use self::watch::{Noted, Watcher};

/// Most bytes of a kept file that are recorded.
pub const KEPT_BYTES_MAX: u64 = 64 << 20;

/// Processes are started under a reading lock, and nobody else's while something is open that they must not inherit.
static BIRTHS: RwLock<()> = RwLock::new(());

/// Hold this while starting a process from a thread of the harness.
///
/// A process that is being born has every open file of this one until it runs its own program. Two of them do harm: a
/// script that is being written, for whoever starts the script in that moment is refused with `ETXTBSY`, and a socket
/// that listens for a moment, for connections to it are taken by nobody. See [`no_births`].
pub fn spawn_guard() -> RwLockReadGuard<'static, ()> {
    BIRTHS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Hold this while something is open that no other process may inherit: nobody holds a [`spawn_guard`] meanwhile.
pub fn no_births() -> RwLockWriteGuard<'static, ()> {
    BIRTHS.write().unwrap_or_else(PoisonError::into_inner)
}

/// The program that plays actors: a binary whose `main` calls [`actor::dispatch`] before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorExe {
    /// Its absolute path.
    pub program: PathBuf,
}

impl ActorExe {
    /// The binary at `program`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}

/// The running fixtures of one conversation. Dropping them is the same as [`Fixtures::stop`].
#[derive(Debug)]
pub struct Fixtures {
    vars: Vars,
    listeners: Option<Listeners>,
    actors: Vec<Actor>,
    kept: Vec<(String, PathBuf)>,
    watcher: Option<Watcher>,
    /// Files that were put there.
    puts: usize,
    /// The folder that all of it is in, without links.
    folder: PathBuf,
}

impl Fixtures {
    /// Starts everything in `fixtures`. Files are made in `dir`, which is created where it is missing and must hold
    /// nothing that has the name of a fixture. Variables in texts of fixtures may name any other fixture.
    ///
    /// # Errors
    /// One sentence: a name that is not plain, comes twice or lies in a fixture that is no directory, a variable that no fixture gives, or what the
    /// operating system refused.
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
                    let mut reply = Reply::in_manner(*status, location.as_deref(), &body, manner);
                    if let Some(aside) = &manner.aside {
                        let own = Manner { fault: aside.fault, ..manner.clone() };
                        let body = aside.body.expand(&vars)?;
                        let other = Reply::in_manner(aside.status, None, &body, &own);
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

    /// The variables of all fixtures, `name.port`, `name.address`, `name.path`, and `folder`: where their files are.
    pub fn vars(&self) -> Vars {
        self.vars.clone()
    }

    /// What happened since the last call, in order: hits and replies of listeners; starts of actors, what they were given
    /// and saw, and when they end what they wrote. Everything that a peer did before the call is in it; a connection whose
    /// request head is not complete by then counts with what has come.
    ///
    /// # Errors
    /// One sentence about a fault of the harness: the listeners died, or an actor could not do what it was told.
    pub fn observe(&mut self) -> Result<Vec<Kind>, HarnessFault> {
        Ok(self.happened()?.into_iter().map(|(_, kind)| kind).collect())
    }

    /// As [`Fixtures::observe`], with times on the clock of [`now_us`].
    ///
    /// # Errors
    /// Those of [`Fixtures::observe`].
    pub fn happened(&mut self) -> Result<Vec<(u64, Kind)>, HarnessFault> {
        let listeners = self.listeners.as_ref().map_or(Ok(Vec::new()), Listeners::collect)?;
        let mut told = self.told()?;
        let noted = self.watcher.as_ref().map(Watcher::collect).unwrap_or_default();
        // A mark stands behind its line: what was written since the records were read is there.
        if !watch::marks(&noted).is_subset(&told.iter().map(|told| told.mark.as_str()).collect()) {
            told.extend(self.told()?);
        }
        Ok(in_order(noted, told, listeners))
    }

    fn told(&mut self) -> Result<Vec<Told>, HarnessFault> {
        let mut told = Vec::new();
        for actor in &mut self.actors {
            told.extend(actor.observe()?);
        }
        Ok(told)
    }

    /// Ends everything as [`Fixtures::stop`] does, and gives what [`Fixtures::happened`] did not.
    pub fn finish(&mut self) -> Vec<(u64, Kind)> {
        let listeners = self.listeners.take().map(Listeners::stop).unwrap_or_default();
        let told = self.actors.drain(..).flat_map(|mut actor| actor.stop()).collect();
        let noted = self.watcher.take().map(|watcher| watcher.collect()).unwrap_or_default();
        in_order(noted, told, listeners)
    }

    /// [`Kind::FileHeld`] for each kept file, with [`KEPT_BYTES_MAX`] bytes at most. One that the peer took away holds
    /// nothing.
    ///
    /// # Errors
    /// One sentence: a file cannot be read.
    pub fn kept_files(&self) -> Result<Vec<Kind>, HarnessFault> {
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
            Ok(Kind::FileHeld { file: name.clone(), bytes: Bytes(bytes) })
        };
        self.kept.iter().map(held).collect()
    }

    /// [`Kind::ActorAlive`] for each process of the actor `name` that still lives: `self`, `child` (started by it) or
    /// `left_group` (started by it, in a session of its own); zombies are dead. Then [`Kind::ActorFileStays`] if the last
    /// argument of its last start names a file that is there.
    ///
    /// # Errors
    /// One sentence: there is no such actor, or its record cannot be read.
    pub fn probe_actor(&mut self, name: &str, label: &str) -> Result<Vec<Kind>, HarnessFault> {
        let actor = self.actor(name)?;
        let mut found = Vec::new();
        let mut given = None;
        for line in actor.log.read_all()? {
            if let Entry::Started { argv, working_dir, .. } = &line.entry {
                given = argv.last().map(|last| Path::new(working_dir).join(last));
            }
            if let Some((process, role)) = process_of(line.entry)
                && process.lives()
            {
                let (actor, label, role) = (name.to_owned(), label.to_owned(), role.to_owned());
                found.push(Kind::ActorAlive { actor, label, role });
            }
        }
        // A relative one means nothing where the working directory is unknown.
        if let Some(path) = given.filter(|path| path.is_absolute() && path.is_file()) {
            found.push(Kind::ActorFileStays {
                actor: name.to_owned(),
                label: label.to_owned(),
                path: path.to_string_lossy().into_owned(),
            });
        }
        Ok(found)
    }

    /// Whether a process of an actor lives.
    ///
    /// # Errors
    /// One sentence: the record of one cannot be read.
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

    /// The path of the fixture `name`.
    fn path_of(&self, name: &str) -> Result<PathBuf, HarnessFault> {
        let path = self.vars.get(&format!("{name}.path")).map(PathBuf::from);
        path.ok_or_else(|| format!("there is no fixture {name:?} with a path").into())
    }

    /// Takes what lies at the path of the fixture `name` away, or puts it back.
    ///
    /// # Errors
    /// One sentence: there is no such path, or what the operating system refused.
    pub fn hide(&self, name: &str, hidden: bool) -> Result<(), HarnessFault> {
        let path = self.path_of(name)?;
        let mut aside = path.clone().into_os_string();
        aside.push(".hidden");
        let aside = PathBuf::from(aside);
        let (from, to) = if hidden { (&path, &aside) } else { (&aside, &path) };
        fs::rename(from, to).map_err(|error| failed("move", from, &error))
    }

    /// Closes the listeners and kills every process of an actor that still lives.
    pub fn stop(mut self) {
        self.finish();
    }
}

impl Drop for Fixtures {
    fn drop(&mut self) {
        self.finish();
    }
}

/// All events by time; of equal ones those of folders first.
fn in_order(noted: Vec<(u64, Noted)>, told: Vec<Told>, listeners: Vec<(u64, Kind)>) -> Vec<(u64, Kind)> {
    let mut happened = watch::before_marks(noted, &told);
    happened.extend(listeners);
    happened.extend(told.into_iter().map(|told| (told.at_us, told.kind)));
    happened.sort_by_key(|(at_us, _)| *at_us);
    happened
}

/// Starts to watch folders, and where the actors leave their marks.
fn watch(folders: Vec<(PathBuf, String)>, actors: &[Actor]) -> Result<Watcher, HarnessFault> {
    let marks: Vec<PathBuf> = actors.iter().map(|actor| actor.marks.clone()).collect();
    let made = marks.iter().try_for_each(fs::create_dir);
    made.and_then(|()| Watcher::start(folders, marks))
        .map_err(|error| format!("cannot watch folders: {error}").into())
}

/// Replaces each `{{name}}` in `text` by the value of that variable.
///
/// # Errors
/// Names the variable that has no value, or says that `}}` is missing.
pub fn substitute(text: &str, vars: &Vars) -> Result<String, HarnessFault> {
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

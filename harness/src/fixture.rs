//! Fixtures: what the harness plays around a peer. HTTP listeners that tell who contacted them, programs that the peer
//! starts ([`actor`]), and paths to stumble over.
//!
//! Everything lives in one scratch directory and on 127.0.0.1. What happened is collected with [`Fixtures::observe`];
//! nothing here judges it.

pub mod actor;
mod listener;
mod log;
mod process;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use crate::payload::{Payload, Segment, Vars};
use crate::plan::{ActorStep, Fixture, PathKind};
use crate::transcript::Kind;

use self::actor::{ACTOR_ARGUMENT, Scenario};
use self::listener::{Listeners, Reply};
use self::log::Entry;
use self::process::Identity;

/// How long [`Fixtures::stop`] waits for one killed process to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(1);
/// How often [`Fixtures::stop`] looks for processes that were started while it killed others.
const KILL_ROUNDS: usize = 3;

/// Held while an executable file is being written; see [`spawn_guard`].
static EXECUTABLE_WRITTEN: RwLock<()> = RwLock::new(());

/// Hold this while starting a process from a thread of the harness.
///
/// A process that is born while another thread writes an actor's script inherits the open file until it runs its own
/// program; whoever starts the script in that moment is refused with `ETXTBSY`, which would look like the peer's
/// fault.
pub fn spawn_guard() -> RwLockReadGuard<'static, ()> {
    EXECUTABLE_WRITTEN.read().unwrap_or_else(PoisonError::into_inner)
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
}

#[derive(Debug)]
struct Actor {
    name: String,
    scenario: PathBuf,
    log: log::Reader,
}

impl Fixtures {
    /// Starts everything in `fixtures`. Files are made in `dir`, which is created where it is missing and must hold
    /// nothing that has the name of a fixture. Variables in texts of fixtures may name any other fixture.
    ///
    /// # Errors
    /// One sentence: a name that is no plain file name or comes twice, a variable that no fixture gives, or what the
    /// operating system refused.
    pub fn start(fixtures: &[Fixture], dir: &Path, actor_exe: &ActorExe) -> Result<Self, String> {
        check_names(fixtures)?;
        fs::create_dir_all(dir).map_err(|error| failed("create the directory", dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| failed("find the directory", dir, &error))?;
        let mut vars = Vars::new();
        let mut bound = Vec::new();
        for fixture in fixtures {
            let name = name_of(fixture);
            if let Fixture::Listener { .. } = fixture {
                let (socket, address) = listener::bind().map_err(|error| {
                    format!(
                        "cannot open the listener {name:?} on 127.0.0.1: {error}; free a port and try again"
                    )
                })?;
                vars.insert(format!("{name}.port"), address.port().to_string());
                vars.insert(format!("{name}.address"), address.to_string());
                bound.push((socket, listener::bind_ipv6(address.port())));
            } else {
                let path = dir.join(name);
                if path.symlink_metadata().is_ok() {
                    return Err(format!(
                        "{} exists already; fixtures need an empty directory",
                        path.display()
                    ));
                }
                let text = path
                    .to_str()
                    .ok_or_else(|| format!("{} is not UTF-8; choose another directory", path.display()))?;
                vars.insert(format!("{name}.path"), text.to_owned());
            }
        }
        let mut served = Vec::new();
        let mut actors = Vec::new();
        let mut sockets = bound.into_iter();
        for fixture in fixtures {
            match fixture {
                Fixture::Listener { name, status, location, body } => {
                    let location = location.as_deref().map(|text| substitute(text, &vars)).transpose()?;
                    let reply = Reply::new(*status, location.as_deref(), &body.expand(&vars)?);
                    if let Some((socket, ipv6)) = sockets.next() {
                        served.extend(ipv6.map(|socket| (name.clone(), socket, reply.clone())));
                        served.push((name.clone(), socket, reply));
                    }
                }
                Fixture::Path { name, what } => make_path(&dir.join(name), *what)?,
                Fixture::Actor { name, script } => {
                    actors.push(make_actor(&dir, name, script, &vars, actor_exe)?);
                }
            }
        }
        let listeners = if served.is_empty() {
            None
        } else {
            Some(Listeners::start(served).map_err(|error| format!("cannot start the listeners: {error}"))?)
        };
        Ok(Self { vars, listeners, actors })
    }

    /// The variables of all fixtures: `name.port`, `name.address`, `name.path`.
    pub fn vars(&self) -> Vars {
        self.vars.clone()
    }

    /// What happened since the last call, in order: [`Kind::ListenerHit`], [`Kind::ActorStarted`] and
    /// [`Kind::ActorReceived`]. Everything that a peer did before the call is in it; a connection whose request head
    /// is not complete by then counts with what has come.
    ///
    /// # Errors
    /// One sentence about a fault of the harness: the listeners died, or an actor could not do what it was told.
    pub fn observe(&mut self) -> Result<Vec<Kind>, String> {
        let mut happened: Vec<(u64, Kind)> = Vec::new();
        if let Some(listeners) = &self.listeners {
            for hit in listeners.collect()? {
                happened.push((hit.at_us, Kind::ListenerHit { listener: hit.listener, head: hit.head }));
            }
        }
        for actor in &mut self.actors {
            for line in actor.log.read_new()? {
                let name = actor.name.clone();
                match line.entry {
                    Entry::Started { process, argv } => happened
                        .push((line.at_us, Kind::ActorStarted { actor: name, argv, pid: process.pid })),
                    Entry::Received { bytes } => {
                        happened.push((line.at_us, Kind::ActorReceived { actor: name, bytes }));
                    }
                    Entry::Holder { .. } => {}
                    Entry::Failed { error } => return Err(format!("the actor {name:?} failed: {error}")),
                }
            }
        }
        happened.sort_by_key(|(at_us, _)| *at_us);
        Ok(happened.into_iter().map(|(_, kind)| kind).collect())
    }

    /// [`Kind::ActorAlive`] for each process of the actor `name` that still lives: `self`, `child` (started by it) or
    /// `left_group` (started by it, in a session of its own). Zombies are dead.
    ///
    /// # Errors
    /// One sentence: there is no such actor, or its record cannot be read.
    pub fn probe_actor(&mut self, name: &str, label: &str) -> Result<Vec<Kind>, String> {
        let actor = self
            .actors
            .iter()
            .find(|actor| actor.name == name)
            .ok_or_else(|| format!("there is no actor {name:?} to probe"))?;
        let processes = actor.log.read_all()?.into_iter().filter_map(|line| process_of(line.entry));
        Ok(processes
            .filter(|(process, _)| process.lives())
            .map(|(_, role)| Kind::ActorAlive {
                actor: name.to_owned(),
                label: label.to_owned(),
                role: role.to_owned(),
            })
            .collect())
    }

    /// Closes the listeners and kills every process of an actor that still lives.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.listeners = None;
        for actor in &self.actors {
            // An actor writes down that it started before it asks for its scenario: from here on every one is either
            // in the record or ends by itself.
            let _ = fs::remove_file(&actor.scenario);
        }
        for actor in self.actors.drain(..) {
            for _ in 0..KILL_ROUNDS {
                let lines = actor.log.read_all().unwrap_or_default();
                let mut killed = false;
                for (process, _) in lines.into_iter().filter_map(|line| process_of(line.entry)) {
                    killed |= process.kill(KILL_PATIENCE);
                }
                if !killed {
                    break;
                }
            }
        }
    }
}

impl Drop for Fixtures {
    fn drop(&mut self) {
        self.end();
    }
}

fn process_of(entry: Entry) -> Option<(Identity, &'static str)> {
    match entry {
        Entry::Started { process, .. } => Some((process, "self")),
        Entry::Holder { process, left_group: false } => Some((process, "child")),
        Entry::Holder { process, left_group: true } => Some((process, "left_group")),
        Entry::Received { .. } | Entry::Failed { .. } => None,
    }
}

/// Replaces each `{{name}}` in `text` by the value of that variable.
///
/// # Errors
/// Names the variable that has no value, or says that `}}` is missing.
pub fn substitute(text: &str, vars: &Vars) -> Result<String, String> {
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

fn name_of(fixture: &Fixture) -> &str {
    match fixture {
        Fixture::Listener { name, .. } | Fixture::Actor { name, .. } | Fixture::Path { name, .. } => name,
    }
}

fn check_names(fixtures: &[Fixture]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in fixtures.iter().map(name_of) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!("fixture name {name:?} must be letters, digits, `_` and `-`"));
        }
        if !seen.insert(name) {
            return Err(format!("two fixtures are named {name:?}"));
        }
    }
    Ok(())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

fn make_path(path: &Path, what: PathKind) -> Result<(), String> {
    let made = match what {
        PathKind::Missing => Ok(()),
        PathKind::Directory => fs::create_dir(path),
        PathKind::NotExecutable => fs::write(path, "#!/bin/sh\nexit 0\n")
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o644))),
    };
    made.map_err(|error| failed("make", path, &error))
}

fn make_actor(
    dir: &Path,
    name: &str,
    script: &[ActorStep],
    vars: &Vars,
    exe: &ActorExe,
) -> Result<Actor, String> {
    let script = script.iter().map(|step| resolve(step, vars)).collect::<Result<_, _>>()?;
    let scenario = dir.join(format!("{name}.scenario.json"));
    let text = serde_json::to_vec(&Scenario { life_ms_max: actor::LIFE_MS_MAX, script })
        .map_err(|error| error.to_string())?;
    fs::write(&scenario, text).map_err(|error| failed("write", &scenario, &error))?;
    let log = log::beside(&scenario);
    fs::write(&log, "").map_err(|error| failed("write", &log, &error))?;
    let path = dir.join(name);
    write_launcher(&path, &exe.program, &scenario).map_err(|error| failed("write", &path, &error))?;
    Ok(Actor { name: name.to_owned(), scenario, log: log::Reader::new(log) })
}

/// Writes the script that peers start; it becomes the actor by `exec`, so that the actor has the process id that the
/// peer knows.
fn write_launcher(path: &Path, program: &Path, scenario: &Path) -> std::io::Result<()> {
    let mut text = b"#!/bin/sh\nexec ".to_vec();
    for word in [program.as_os_str().as_bytes(), ACTOR_ARGUMENT.as_bytes(), scenario.as_os_str().as_bytes()] {
        text.push(b'\'');
        for byte in word {
            match byte {
                b'\'' => text.extend_from_slice(b"'\\''"),
                _ => text.push(*byte),
            }
        }
        text.extend_from_slice(b"' ");
    }
    text.extend_from_slice(b"\"$@\"\n");
    let _guard = EXECUTABLE_WRITTEN.write().unwrap_or_else(PoisonError::into_inner);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(&text)?;
    // The mask of the process may have taken bits away.
    file.set_permissions(Permissions::from_mode(0o755))
}

fn resolve(step: &ActorStep, vars: &Vars) -> Result<ActorStep, String> {
    let fill = |payload: &Payload| {
        let fill_one = |segment: &Segment| match segment {
            Segment::Var(name) => vars
                .get(name)
                .map(|value| Segment::Text(value.clone()))
                .ok_or_else(|| format!("variable {name:?} has no value")),
            other => Ok(other.clone()),
        };
        payload.0.iter().map(fill_one).collect::<Result<_, String>>().map(Payload)
    };
    Ok(match step {
        ActorStep::Stdout(payload) => ActorStep::Stdout(fill(payload)?),
        ActorStep::Stderr(payload) => ActorStep::Stderr(fill(payload)?),
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_or_named() {
        let vars = Vars::from([("b.port".to_owned(), "81".to_owned())]);
        assert_eq!(substitute("http://h:{{b.port}}/x", &vars).unwrap(), "http://h:81/x");
        assert_eq!(substitute("plain {} text", &vars).unwrap(), "plain {} text");
        assert!(substitute("{{c.port}}", &vars).unwrap_err().contains("c.port"));
        assert!(substitute("{{b.port", &vars).is_err());
    }

    #[test]
    fn refuses_names_that_are_no_plain_file_names() {
        let path = |name: &str| Fixture::Path { name: name.to_owned(), what: PathKind::Missing };
        for name in ["", "../x", "a b", "a.log"] {
            assert!(check_names(&[path(name)]).is_err(), "{name}");
        }
        assert!(check_names(&[path("a"), path("a")]).unwrap_err().contains("two"));
        assert!(check_names(&[path("a"), path("a-b_C1")]).is_ok());
    }
}

//! Mutants: correct workers and writers, each with one deliberate fault at a seam.
//!
//! Most of them rewrite file operations, or replace one decision of [`Decisions`](super::Decisions). A worker's mutants
//! may also rewrite its events and actions. The clauses form families:
//!
//! - `QUE-JOB`: the form of a job, and its name.
//! - `QUE-WORK`: the life of a job, and the worker around it.
//! - `QUE-ONCE`, `QUE-LIVE`: workers that die, and concurrent workers.
//! - `QUE-TERM`: SIGTERM.
//! - `QUE-ENQ`: the enqueuing tool.
//! - `QUE-HTTP`, `QUE-TOK`: the adapter, and its token.
//! - `QUE-GEN`: the Genesis tools.

mod genesis;
mod jobs;
mod worker;
mod writers;

use super::disk::{Disk, Fault, Op, OpResult, Place};
use super::{Config, Parts, Worker};
use crate::machine::{Action, Event, Millis};
use crate::mutant::http::HttpFault;
use crate::mutant::{self, Inner, Seam, wrap};

/// A peer of the queue that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Parts, Rewrite, Carried>;

/// Fault between a correct peer and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// Fault of the HTTP side.
    Http(HttpFault),
    /// Programs inherit the worker's standard input.
    OwnStdin,
    /// The output of programs is not read.
    UnreadOutput,
    /// The path of a runner ends at its first blank.
    SplitsRunner,
    /// The target of a link is moved instead of the link.
    MovesTargets,
    /// Compilers are started through a shell.
    Shell,
    /// Policy drivers get the job as their standard input.
    DriverInput,
    /// Policy drivers are not started.
    NoDriver,
    /// An adapter removes jobs from the inbox after one second.
    TakesJobs,
}

/// Replacement for a file operation.
pub type Rule = fn(&mut dyn Disk, Op) -> Result<OpResult, Fault>;

/// Rewriting of file operations, and of a worker's events and actions.
#[derive(Clone, Copy)]
pub struct Rewrite {
    rule: Rule,
    handle: fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>),
}

/// Mutants of a role: `worker`, `http`, `enqueue` or `genesis`.
pub fn of(role: &str) -> impl Iterator<Item = &'static Mutant> {
    let tables: &[&[Mutant]] = match role {
        "worker" => &[jobs::MUTANTS, worker::MUTANTS],
        "http" => &[writers::HTTP, writers::BOTH],
        "enqueue" => &[writers::ENQUEUE, writers::BOTH],
        "genesis" => &[genesis::MUTANTS],
        _ => &[],
    };
    tables.iter().copied().flatten()
}

/// Mutant of a role by its id.
pub fn find(role: &str, id: &str) -> Option<Mutant> {
    of(role).find(|mutant| mutant.id == id).copied()
}

/// Applies a mutant's change of configuration, files or decisions.
pub fn change(mutant: &Mutant, config: &mut Config, parts: &mut Parts) {
    mutant.change(config, parts);
    if let Some(rewrite) = mutant.rewriting() {
        rule(parts, rewrite.rule);
    }
}

/// Wraps the file system with a rule.
fn rule(parts: &mut Parts, rule: Rule) {
    rebuild(parts, |inner| Box::new(Ruled { inner, rule }));
}

/// Replaces the file system by one that is built on it.
fn rebuild(parts: &mut Parts, around: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) {
    let inner = std::mem::replace(&mut parts.disk, Box::new(Nothing));
    parts.disk = around(inner);
}

/// The mutant as a worker.
pub fn worker(mutant: &Mutant, mut config: Config, mut parts: Parts) -> Inner {
    change(mutant, &mut config, &mut parts);
    let machine: Inner = Box::new(Worker::new(config, parts));
    match (mutant.rewriting(), mutant.wrapping()) {
        (Some(rewrite), _) => wrap(machine, rewrite.handle),
        (None, Some(wrapping)) => wrapping(machine),
        (None, None) => machine,
    }
}

/// Placeholder for a file system while it is wrapped.
struct Nothing;

impl Disk for Nothing {
    fn act(&mut self, _op: Op) -> Result<OpResult, Fault> {
        Err(Fault::Missing)
    }
}

struct Ruled {
    inner: Box<dyn Disk>,
    rule: Rule,
}

impl Disk for Ruled {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        (self.rule)(&mut *self.inner, op)
    }
}

const fn disk(id: &'static str, clauses: &'static [&'static str], fault: &'static str, rule: Rule) -> Mutant {
    let handle = |inner: &mut Inner, event: Event<'_>, now, actions: &mut Vec<Action>| {
        inner.handle(event, now, actions);
    };
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite { rule, handle }))
}

/// Creates a mutant that replaces decisions.
macro_rules! decides {
    ($id:literal, $clauses:expr, $fault:literal, { $($methods:tt)* }) => {
        $crate::mutant::parts($id, $clauses, $fault, |_, parts: &mut $crate::run_queue::Parts| {
            #[derive(Debug)]
            struct Careless;
            impl $crate::run_queue::Decisions for Careless { $($methods)* }
            parts.ways = Box::new(Careless);
        })
    };
}

use decides;

/// The operation at other places.
fn placed(op: Op, place: impl Fn(Place) -> Place) -> Op {
    match op {
        Op::Make(at) => Op::Make(place(at)),
        Op::List(at) => Op::List(place(at)),
        Op::Look(at) => Op::Look(place(at)),
        Op::Read { place: at, bytes_max, follows } => Op::Read { place: place(at), bytes_max, follows },
        Op::Write(at, bytes) => Op::Write(place(at), bytes),
        Op::Move(from, to) => Op::Move(place(from), place(to)),
        Op::Replace(from, to) => Op::Replace(place(from), place(to)),
        Op::Sync(at) => Op::Sync(place(at)),
        Op::Remove(at) => Op::Remove(place(at)),
        Op::Hold(at) => Op::Hold(place(at)),
    }
}

/// Reads a file of up to 64 MiB.
fn read(disk: &mut dyn Disk, place: &[u8]) -> Result<Vec<u8>, Fault> {
    disk.read(place.to_vec(), 64 << 20, true)
}

/// True if a place lies in a folder.
fn is_in(place: &[u8], folder: &str) -> bool {
    place.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

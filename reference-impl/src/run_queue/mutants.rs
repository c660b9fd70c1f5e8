//! Mutants: correct workers and writers, cut at a seam so that they break a clause on purpose.
//!
//! Most rewrite what is done to files, or replace one decision of [`Ways`](super::Ways); a worker's mutants also rewrite what
//! it is told and asks for. Clauses come in families:
//!
//! - `QUE-JOB`: what a job is, and its name.
//! - `QUE-WORK`: the life of a job, and the worker around it.
//! - `QUE-ONCE`, `QUE-LIVE`: workers that die, and several at once.
//! - `QUE-TERM`: SIGTERM.
//! - `QUE-ENQ`: the tool that enqueues.
//! - `QUE-HTTP`, `QUE-TOK`: the adapter, and its token.
//! - `QUE-GEN`: the tools of Genesis.

mod genesis;
mod jobs;
mod worker;
mod writers;

use super::disk::{Disk, Fault, Op, Out, Place};
use super::{Config, Parts, Worker};
use crate::machine::{Action, Event, Millis};
use crate::mutant::http::HttpFault;
use crate::mutant::{self, Inner, Seam, wrap};

/// A peer of the queue that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Parts, Rewrite, Carried>;

/// A fault of what lies between a correct peer and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// Of the HTTP side.
    Http(HttpFault),
    /// Programs have the worker's own standard input.
    OwnStdin,
    /// What programs write is not read.
    UnreadOutput,
    /// The path of a runner ends at its first blank.
    SplitsRunner,
    /// Links are taken for what they lead to.
    MovesTargets,
    /// Compilers are started by a shell.
    Shell,
    /// Policy drivers have the job as their standard input.
    DriverInput,
    /// Policy drivers are not started.
    NoDriver,
    /// An adapter takes jobs out of the inbox a second after they came.
    TakesJobs,
}

/// What becomes of something that is done to files.
pub type Rule = fn(&mut dyn Disk, Op) -> Result<Out, Fault>;

/// A rewriting of what is done to files and of what a worker hears and asks for.
#[derive(Clone, Copy)]
pub struct Rewrite {
    rule: Rule,
    handle: fn(&mut Inner, Event<'_>, Millis, &mut Vec<Action>),
}

/// The mutants of a role: `worker`, `http`, `enqueue` or `genesis`.
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

/// The mutant of a role called `id`.
pub fn find(role: &str, id: &str) -> Option<Mutant> {
    of(role).find(|mutant| mutant.id == id).copied()
}

/// Makes the change that a mutant is, as far as it is one of configuration, files or decisions.
pub fn change(mutant: &Mutant, config: &mut Config, parts: &mut Parts) {
    mutant.change(config, parts);
    if let Some(rewrite) = mutant.rewriting() {
        rule(parts, rewrite.rule);
    }
}

/// Puts a rule around the files.
fn rule(parts: &mut Parts, rule: Rule) {
    let inner = std::mem::replace(&mut parts.disk, Box::new(Nothing));
    parts.disk = Box::new(Ruled { inner, rule });
}

/// A mutant as a worker.
pub fn worker(mutant: &Mutant, mut config: Config, mut parts: Parts) -> Inner {
    change(mutant, &mut config, &mut parts);
    let machine: Inner = Box::new(Worker::new(config, parts));
    match (mutant.rewriting(), mutant.wrapping()) {
        (Some(rewrite), _) => wrap(machine, rewrite.handle),
        (None, Some(wrapping)) => wrapping(machine),
        (None, None) => machine,
    }
}

/// Stands where files were for a moment.
struct Nothing;

impl Disk for Nothing {
    fn act(&mut self, _op: Op) -> Result<Out, Fault> {
        Err(Fault::Missing)
    }
}

struct Ruled {
    inner: Box<dyn Disk>,
    rule: Rule,
}

impl Disk for Ruled {
    fn act(&mut self, op: Op) -> Result<Out, Fault> {
        (self.rule)(&mut *self.inner, op)
    }
}

const fn disk(id: &'static str, clauses: &'static [&'static str], fault: &'static str, rule: Rule) -> Mutant {
    let handle = |inner: &mut Inner, event: Event<'_>, now, actions: &mut Vec<Action>| {
        inner.handle(event, now, actions);
    };
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite { rule, handle }))
}

/// Makes a mutant of decisions that replace the right ones.
macro_rules! decides {
    ($id:literal, $clauses:expr, $fault:literal, { $($methods:tt)* }) => {
        $crate::mutant::parts($id, $clauses, $fault, |_, parts: &mut $crate::run_queue::Parts| {
            #[derive(Debug)]
            struct Careless;
            impl $crate::run_queue::Ways for Careless { $($methods)* }
            parts.ways = Box::new(Careless);
        })
    };
}

use decides;

/// An operation on other places.
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

/// What a file holds, as much as a job may.
fn read(disk: &mut dyn Disk, place: &[u8]) -> Result<Vec<u8>, Fault> {
    disk.read(place.to_vec(), 64 << 20, true)
}

/// Whether a place lies in a folder.
fn is_in(place: &[u8], folder: &str) -> bool {
    place.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

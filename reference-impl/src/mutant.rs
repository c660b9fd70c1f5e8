//! Common parts of the mutants of all peers. A mutant is a correct peer with one deliberate fault, introduced at a
//! seam.
//!
//! Mutants prove that checks can fail. The correct code has no branch for any of them: a mutant changes the
//! configuration, replaces a component, rewrites input and output, or wraps the whole machine or process. Each peer's
//! `mutants` module is a table of such changes.

pub(crate) mod http;
mod intake;
mod machines;
pub(crate) mod text;
pub(crate) mod values;

use std::convert::Infallible;

use crate::machine::Machine;

pub use intake::{Intake, Piece};
pub use machines::wrap;
pub(crate) use machines::{
    ends_at_silence, exit_status_at_eof, flushes_late, one_line_a_read, reads_are_lines, stays_after_eof,
    waits_anew, whole_lines_only,
};

/// A machine of any kind.
pub type Inner = Box<dyn Machine + Send>;

/// A peer that breaks clauses. `C` is its configuration, `P` its components, `W` a rewriting of its input and output,
/// `F` a fault of its transport.
pub struct Mutant<C, P, W, F = Infallible> {
    /// Stable id in kebab case.
    pub id: &'static str,
    /// Ids of the clauses that it breaks. A check of each must detect it.
    pub clauses: &'static [&'static str],
    /// Description of the fault in one sentence.
    pub fault: &'static str,
    /// Feature that this peer does not claim, if the fault is to offer a part of it.
    pub unclaimed: Option<&'static str>,
    /// Feature without which the fault does not show. It must be configured.
    pub needs: Option<&'static str>,
    seam: Seam<C, P, W, F>,
}

/// Seam at which a mutant differs.
pub enum Seam<C, P, W, F = Infallible> {
    /// The configuration.
    Config(fn(&mut C)),
    /// The components.
    Parts(fn(&mut C, &mut P)),
    /// The input or output, which is rewritten.
    Wire(W),
    /// The whole machine, which is wrapped.
    Machine(fn(Inner) -> Inner),
    /// The process around a correct machine.
    Shell(ShellFault),
    /// The transport of a correct machine.
    Carrier(F),
}

/// Fault of the process around a correct machine; see `io/faults.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellFault {
    /// It ignores SIGTERM.
    IgnoresTerm,
    /// It leaves a child process behind.
    LeavesChild,
    /// It leaves a file in the temporary directory.
    LeavesFile,
    /// Writing does not wait: a pipe that is full is an error.
    WritesAtOnce,
}

impl<C, P, W: Copy, F: Copy> Clone for Seam<C, P, W, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, P, W: Copy, F: Copy> Copy for Seam<C, P, W, F> {}

impl<C, P, W: Copy, F: Copy> Clone for Mutant<C, P, W, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, P, W: Copy, F: Copy> Copy for Mutant<C, P, W, F> {}

impl<C, P, W, F> Mutant<C, P, W, F> {
    /// Creates a mutant at a seam.
    pub const fn new(
        id: &'static str,
        clauses: &'static [&'static str],
        fault: &'static str,
        seam: Seam<C, P, W, F>,
    ) -> Self {
        Self { id, clauses, fault, unclaimed: None, needs: None, seam }
    }

    /// Marks the mutant as a peer that does not claim `feature`.
    pub const fn without(mut self, feature: &'static str) -> Self {
        self.unclaimed = Some(feature);
        self
    }

    /// Marks the mutant as one whose fault shows only with `feature`.
    pub(crate) const fn needing(mut self, feature: &'static str) -> Self {
        self.needs = Some(feature);
        self
    }
}

impl<C, P, W: Copy, F: Copy> Mutant<C, P, W, F> {
    /// Fault of the process, if it has one. It shows only in a real process.
    pub fn shell_fault(&self) -> Option<ShellFault> {
        match self.seam {
            Seam::Shell(fault) => Some(fault),
            _ => None,
        }
    }

    /// Fault of the transport, if it has one. It shows only over that transport.
    pub fn carrier_fault(&self) -> Option<F> {
        match self.seam {
            Seam::Carrier(fault) => Some(fault),
            _ => None,
        }
    }

    /// Rewriting of input and output, if it has one.
    pub(crate) fn rewriting(&self) -> Option<W> {
        match self.seam {
            Seam::Wire(rewriting) => Some(rewriting),
            _ => None,
        }
    }

    /// Changes the configuration, if that is its seam.
    pub(crate) fn configure(&self, config: &mut C) {
        if let Seam::Config(change) = self.seam {
            change(config);
        }
    }

    /// Changes the configuration or the components, if one of them is its seam.
    pub fn change(&self, config: &mut C, components: &mut P) {
        self.configure(config);
        if let Seam::Parts(change) = self.seam {
            change(config, components);
        }
    }

    /// Wrapper of the machine, if it has one.
    pub(crate) fn wrapping(&self) -> Option<fn(Inner) -> Inner> {
        match self.seam {
            Seam::Machine(wrap) => Some(wrap),
            _ => None,
        }
    }

    /// The mutant as a machine. If the fault lies around the machine, the machine is correct. `parts` creates the
    /// correct components, `build` a machine from configuration and components, and `rewire` wraps a machine to
    /// rewrite its lines.
    pub fn build(
        &self,
        mut config: C,
        parts: impl FnOnce(&C) -> P,
        build: impl FnOnce(C, P) -> Inner,
        rewire: impl FnOnce(Inner, W) -> Inner,
    ) -> Inner {
        self.configure(&mut config);
        let mut components = parts(&config);
        if let Seam::Parts(change) = self.seam {
            change(&mut config, &mut components);
        }
        let machine = build(config, components);
        match self.seam {
            Seam::Wire(rewrite) => rewire(machine, rewrite),
            Seam::Machine(wrap) => wrap(machine),
            Seam::Config(_) | Seam::Parts(_) | Seam::Shell(_) | Seam::Carrier(_) => machine,
        }
    }
}

/// Creates a mutant with another configuration.
pub const fn config<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut C),
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Config(change))
}

/// Creates a mutant with other components.
pub const fn parts<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut C, &mut P),
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Parts(change))
}

/// Creates a mutant with a wrapped machine.
pub const fn machine<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    wrap: fn(Inner) -> Inner,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Machine(wrap))
}

/// Creates a mutant with a fault of the process.
pub const fn shell<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: ShellFault,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Shell(what))
}

/// Creates a mutant with a fault of the transport.
pub(crate) const fn carrier<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: F,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Carrier(what))
}

/// Asserts that a table of mutants is sound: unique ids, faults that are sentences, clauses of the boundary.
#[cfg(test)]
pub(crate) fn assert_sound<C, P, W, F>(mutants: &[Mutant<C, P, W, F>], clauses_begin_with: &str) {
    let mut seen = std::collections::BTreeSet::new();
    for mutant in mutants {
        assert!(seen.insert(mutant.id), "{} is there twice", mutant.id);
        assert!(mutant.fault.ends_with('.'), "{}", mutant.id);
        assert!(!mutant.clauses.is_empty(), "{}", mutant.id);
        assert!(mutant.clauses.iter().all(|clause| clause.starts_with(clauses_begin_with)), "{}", mutant.id);
    }
}

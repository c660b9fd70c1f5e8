//! What the mutants of all peers have in common: a correct peer, cut at a seam, that breaks clauses on purpose.
//!
//! A suite proves with mutants that its checks can fail. The correct code has no branch for any of them: a mutant changes
//! the configuration, replaces a component, rewrites what goes in and comes out, or wraps the machine or the process as
//! a whole. Each peer's `mutants` module is a table of such changes.

pub mod http;
mod intake;
mod machines;
pub mod text;
pub mod values;

use std::convert::Infallible;

use crate::machine::Machine;

pub use intake::{Intake, Piece};
pub use machines::{
    ends_at_silence, exit_status_at_eof, flushes_late, one_line_a_read, reads_are_lines, stays_after_eof,
    waits_anew, whole_lines_only, wrap,
};

/// A machine of any kind.
pub type Inner = Box<dyn Machine + Send>;

/// A peer that breaks clauses: `C` is its configuration, `P` its components, `W` a rewriting of what it reads and
/// writes, `F` a fault of what carries its messages.
pub struct Mutant<C, P, W, F = Infallible> {
    /// Stable kebab id.
    pub id: &'static str,
    /// Ids of the clauses that it breaks; a check of each has to notice.
    pub clauses: &'static [&'static str],
    /// One sentence: what it does wrong.
    pub fault: &'static str,
    /// A feature that this peer does not claim to have: the fault lies in having a part of it.
    pub unclaimed: Option<&'static str>,
    /// The feature without which the fault does not show: it has to be configured.
    pub needs: Option<&'static str>,
    seam: Seam<C, P, W, F>,
}

/// Where a mutant is cut in.
pub enum Seam<C, P, W, F = Infallible> {
    /// Another configuration.
    Config(fn(&mut C)),
    /// Other components.
    Parts(fn(&mut C, &mut P)),
    /// Rewritten on the way in or out.
    Wire(W),
    /// The machine as a whole wrapped.
    Machine(fn(Inner) -> Inner),
    /// The process around a correct machine misbehaves.
    Shell(ShellFault),
    /// What carries messages to and from a correct machine misbehaves.
    Carrier(F),
}

/// What the process around a correct machine does wrong; see `io/faults.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellFault {
    /// SIGTERM is ignored.
    IgnoresTerm,
    /// A child process is left behind.
    LeavesChild,
    /// A file is left in the temporary directory.
    LeavesFile,
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
    /// A mutant at a seam.
    pub const fn new(
        id: &'static str,
        clauses: &'static [&'static str],
        fault: &'static str,
        seam: Seam<C, P, W, F>,
    ) -> Self {
        Self { id, clauses, fault, unclaimed: None, needs: None, seam }
    }

    /// As a peer that does not claim `feature`.
    pub const fn without(mut self, feature: &'static str) -> Self {
        self.unclaimed = Some(feature);
        self
    }

    /// One whose fault shows with this feature only.
    pub const fn needing(mut self, feature: &'static str) -> Self {
        self.needs = Some(feature);
        self
    }
}

impl<C, P, W: Copy, F: Copy> Mutant<C, P, W, F> {
    /// The fault of the process around the machine, if it is one; such a mutant shows in a real process only.
    pub fn shell_fault(&self) -> Option<ShellFault> {
        match self.seam {
            Seam::Shell(fault) => Some(fault),
            _ => None,
        }
    }

    /// The fault of what carries messages, if it is one; such a mutant shows with that carrier only.
    pub fn carrier_fault(&self) -> Option<F> {
        match self.seam {
            Seam::Carrier(fault) => Some(fault),
            _ => None,
        }
    }

    /// The rewriting, if it is one.
    pub fn rewriting(&self) -> Option<W> {
        match self.seam {
            Seam::Wire(rewriting) => Some(rewriting),
            _ => None,
        }
    }

    /// Makes the change that it is, if it is one of the configuration.
    pub fn configure(&self, config: &mut C) {
        if let Seam::Config(change) = self.seam {
            change(config);
        }
    }

    /// Makes the change that it is, if it is one of the configuration or the components.
    pub fn change(&self, config: &mut C, components: &mut P) {
        self.configure(config);
        if let Seam::Parts(change) = self.seam {
            change(config, components);
        }
    }

    /// What wraps the machine, if it is a wrapped one.
    pub fn wrapping(&self) -> Option<fn(Inner) -> Inner> {
        match self.seam {
            Seam::Machine(wrap) => Some(wrap),
            _ => None,
        }
    }

    /// The mutant as a machine (a correct one where the fault lies around it): `parts` gives the correct components,
    /// `build` makes a machine of configuration and components, `rewire` puts a rewriting around one.
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

/// A mutant with another configuration.
pub const fn config<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut C),
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Config(change))
}

/// A mutant with other components.
pub const fn parts<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut C, &mut P),
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Parts(change))
}

/// A mutant that is a wrapped machine.
pub const fn machine<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    wrap: fn(Inner) -> Inner,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Machine(wrap))
}

/// A mutant whose process misbehaves.
pub const fn shell<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: ShellFault,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Shell(what))
}

/// A mutant of what carries messages to and from a correct machine.
pub const fn carrier<C, P, W, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: F,
) -> Mutant<C, P, W, F> {
    Mutant::new(id, clauses, fault, Seam::Carrier(what))
}

/// What holds of every table of mutants: ids stand once, faults are sentences, clauses are those of the boundary.
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

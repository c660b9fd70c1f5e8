//! Arguments that reference peers of every boundary take.

use std::fmt;

use peerproof_reference::io;
use peerproof_reference::mutant::ShellFault;

use peerproof_engine::drive::presentation::{Harmless, PRESENT};

/// Reason why the arguments of a reference peer are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentError {
    /// `--mutant` has no id.
    NoMutant,
    /// No mutant has this id.
    UnknownMutant(String),
    /// `--present` has no name.
    NoPresentation,
    /// No presentation has this name.
    UnknownPresentation(String),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = || Harmless::ALL.iter().map(|how| how.name()).collect::<Vec<_>>().join(", ");
        match self {
            Self::NoMutant => write!(f, "--mutant needs an id; `peerproof list mutants` names them"),
            Self::UnknownMutant(id) => {
                write!(f, "there is no mutant {id:?}; `peerproof list mutants` names them")
            }
            Self::NoPresentation => write!(f, "{PRESENT} needs one of {}", known()),
            Self::UnknownPresentation(name) => write!(f, "{PRESENT} {name:?} is none of {}", known()),
        }
    }
}

impl std::error::Error for ArgumentError {}

/// Splits `--mutant ID` off the arguments; returns the mutant and the others.
///
/// # Errors
/// Fails if the id is missing or unknown.
pub(crate) fn split_mutant<M>(
    args: &[String],
    find: impl Fn(&str) -> Option<M>,
) -> Result<(Option<M>, Vec<String>), ArgumentError> {
    let mut args = args.to_vec();
    let Some(at) = args.iter().position(|arg| arg == "--mutant") else { return Ok((None, args)) };
    if at + 1 >= args.len() {
        return Err(ArgumentError::NoMutant);
    }
    let id = args.remove(at + 1);
    args.remove(at);
    let mutant = find(&id).ok_or(ArgumentError::UnknownMutant(id))?;
    Ok((Some(mutant), args))
}

/// Splits `--present NAME` off the arguments; returns the presentation and the others.
///
/// # Errors
/// Fails if the name is missing or unknown.
pub(crate) fn split_presentation(args: &[String]) -> Result<(Option<Harmless>, Vec<String>), ArgumentError> {
    let mut args = args.to_vec();
    let Some(at) = args.iter().position(|arg| arg == PRESENT) else { return Ok((None, args)) };
    if at + 1 >= args.len() {
        return Err(ArgumentError::NoPresentation);
    }
    let name = args.remove(at + 1);
    args.remove(at);
    match Harmless::ALL.iter().find(|how| how.name() == name) {
        Some(how) => Ok((Some(*how), args)),
        None => Err(ArgumentError::UnknownPresentation(name)),
    }
}

/// Splits `--without FEATURE` off the arguments; returns the feature and the others.
pub(crate) fn split_without(mut args: Vec<String>) -> (Option<String>, Vec<String>) {
    match args.iter().position(|arg| arg == "--without") {
        Some(at) if at + 1 < args.len() => {
            let feature = args.remove(at + 1);
            args.remove(at);
            (Some(feature), args)
        }
        _ => (None, args),
    }
}

/// Command line of the correct peer: `peerproof peer`, then `words`, then `args`. `None` if this program cannot find
/// itself.
pub(crate) fn correct(words: &[&str], args: Vec<String>) -> Option<Vec<String>> {
    let program = std::env::current_exe().ok()?;
    let own = [program.to_string_lossy().into_owned(), "peer".to_owned()];
    let words = words.iter().map(|word| (*word).to_owned());
    Some(own.into_iter().chain(words).chain(args).collect())
}

/// Runs the correct peer behind a shell with a fault, see [`correct`]. Returns its exit status, or 70 if it cannot run.
pub(crate) fn run_with_fault(
    fault: ShellFault,
    words: &[&str],
    args: Vec<String>,
    env: &[(String, String)],
) -> i32 {
    let Some(correct) = correct(words, args) else { return 70 };
    io::faults::run_with_fault(fault, &correct, variable(env)("TMPDIR").map(Into::into))
}

/// Reports an error of the arguments on standard error, as a peer does; returns the exit status.
pub(crate) fn refuse(error: &dyn fmt::Display) -> i32 {
    io::complain(&error.to_string());
    2
}

/// Looks up a variable in an environment; the last of several with one name counts.
pub(crate) fn variable(env: &[(String, String)]) -> impl Fn(&str) -> Option<String> {
    |name| env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

//! Command line: one file per command, and shared parts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand, ValueEnum};

use peerproof::report::printer::{Color, Printer};
use peerproof::table;
use peerproof_engine::contract::boundary::{self, Boundary};

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod exit;
pub(crate) mod expect;
pub(crate) mod explain;
pub(crate) mod fuzz;
pub(crate) mod generate;
pub(crate) mod github;
pub(crate) mod init;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod matrix;
pub(crate) mod peer;
pub(crate) mod peer_args;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run_args;
pub(crate) mod selftest;
pub(crate) mod shrink;

pub use exit::{CommandResult, Exit, Stop};

/// Resources of the process that a command may use.
#[derive(Debug, Clone)]
pub struct Context {
    /// Environment variables whose names are UTF-8.
    pub variables: BTreeMap<String, OsString>,
    /// Path of our own binary, which plays actors and reference peers.
    pub exe: Option<PathBuf>,
    /// Output streams.
    pub printer: Printer,
    /// Set by Ctrl-C and SIGTERM: the command ends soon and keeps its measurements.
    pub interrupted: Arc<AtomicBool>,
}

impl Context {
    /// Context with these environment variables and this path of our own binary.
    pub fn new(variables: BTreeMap<String, OsString>, exe: io::Result<PathBuf>) -> Self {
        Self { variables, exe: exe.ok(), printer: Printer::plain(), interrupted: Arc::default() }
    }

    /// Variable `PEERPROOF_<NAME>`, if set, UTF-8 and not empty.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.variable(&format!("PEERPROOF_{name}"))
    }

    /// Variable, if set, UTF-8 and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    /// Path of our own binary.
    ///
    /// # Errors
    /// Fails if the operating system does not tell.
    pub fn exe(&self) -> Result<PathBuf, Stop> {
        self.exe.clone().ok_or_else(|| {
            Stop::harness("cannot find out where the peerproof binary is; start it by its full path")
        })
    }

    /// Makes Ctrl-C and SIGTERM set `interrupted`; a second one ends the process at once with status 130. Starts a
    /// guardian, which ends the peers of a process that was killed.
    pub(crate) fn catch_interrupts(&self) {
        if let Some(exe) = &self.exe {
            peerproof_engine::drive::transport::child::guardian::start(exe);
        }
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let flag = &self.interrupted;
            // If a handler cannot be set, the default stays: the process ends.
            let _ = signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted.code(),
                Arc::clone(flag),
            );
            let _ = signal_hook::flag::register(signal, Arc::clone(flag));
        }
    }
}

/// Conformance and fuzzing harness for programs that talk JSON to each other.
#[derive(Debug, Parser)]
#[command(name = "peerproof", version, max_term_width = 100)]
struct Cli {
    /// Use of colours in the output.
    #[arg(long, value_name = "WHEN", global = true)]
    color: Option<ColourChoice>,
    #[command(subcommand)]
    command: Command,
}

/// The words for when to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColourChoice {
    /// Use colours on a terminal.
    Auto,
    /// Always use colours.
    Always,
    /// Never use colours.
    Never,
}

impl From<ColourChoice> for Color {
    fn from(word: ColourChoice) -> Self {
        match word {
            ColourChoice::Auto => Self::Auto,
            ColourChoice::Always => Self::Always,
            ColourChoice::Never => Self::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
// Only one exists per process.
#[allow(clippy::large_enum_variant)]
enum Command {
    Check(check::Args),
    Doctor(doctor::Args),
    Init(init::Args),
    List(list::Args),
    Explain(explain::Args),
    Fuzz(fuzz::Args),
    Matrix(matrix::Args),
    Bench(bench::Args),
    Record(record::Args),
    Lint(lint::Args),
    Replay(replay::Args),
    Shrink(shrink::Args),
    Report(report::Args),
    Expect(expect::Args),
    Peer(peer::Args),
    Selftest(selftest::Args),
    Generate(generate::Args),
}

/// Runs the command in `args`, whose first entry is the program name.
pub fn main(args: impl IntoIterator<Item = OsString>, mut context: Context) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &context),
    };
    let color = match (cli.color, context.setting("COLOR")) {
        (Some(when), _) => when.into(),
        (None, Some(word)) => match word.parse() {
            Ok(color) => color,
            Err(error) => return stopped(&Stop::usage(error), &context),
        },
        (None, None) if context.variable("NO_COLOR").is_some() => Color::Never,
        (None, None) => Color::Auto,
    };
    context.printer = Printer::new(color, context.variable("TERM"));
    let done = match cli.command {
        Command::Check(args) => check::run(&args, &context),
        Command::Doctor(args) => doctor::run(&args, &context),
        Command::Init(args) => init::run(&args, &context),
        Command::List(args) => list::run(&args, &context),
        Command::Explain(args) => explain::run(&args, &context),
        Command::Fuzz(args) => fuzz::run(&args, &context),
        Command::Matrix(args) => matrix::run(&args, &context),
        Command::Bench(args) => bench::run(&args, &context),
        Command::Record(args) => record::run(&args, &context),
        Command::Lint(args) => lint::run(&args, &context),
        Command::Replay(args) => replay::run(&args, &context),
        Command::Shrink(args) => shrink::run(&args, &context),
        Command::Report(args) => report::run(&args, &context),
        Command::Expect(args) => expect::run(&args, &context),
        Command::Peer(args) => peer::run(&args, &context),
        Command::Selftest(args) => selftest::run(&args, &context),
        Command::Generate(args) => generate::run(&args, &context),
    };
    match done {
        Ok(exit) => exit,
        Err(stop) => stopped(&stop, &context),
    }
}

fn stopped(stop: &Stop, context: &Context) -> Exit {
    context.printer.error(&stop.message);
    stop.exit
}

/// Prints help and version to standard output, mistakes to standard error.
fn usage(error: &clap::Error, context: &Context) -> Exit {
    let text = error.render().to_string();
    if !error.use_stderr() {
        context.printer.out(&text);
        return Exit::Good;
    }
    context.printer.err(&text);
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && !argument.starts_with('-')
    {
        context.printer.err(&format!(
            "\n  tip: put the command line of a peer after `--`: peerproof check BOUNDARY -- {argument} …\n"
        ));
    }
    Exit::Usage
}

/// Boundary called `name`.
///
/// # Errors
/// Names all boundaries and suggests the closest.
pub(crate) fn boundary_named(name: &str) -> Result<&'static dyn Boundary, Stop> {
    Ok(boundary::named(&table::all(), name)?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

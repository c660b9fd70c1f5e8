//! `peerproof generate`: files for shells, manuals and editors.

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, CommandResult, Context, Exit, Stop};
use peerproof::table;
use peerproof_engine::drive::config::json_schema::json_schema;

/// Writes shell completions, man pages, or the JSON Schema of `peerproof.toml`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  peerproof generate completions bash > ~/.local/share/bash-completion/completions/peerproof
  peerproof generate man ~/.local/share/man/man1
  peerproof generate schema > peerproof.schema.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, clap::Subcommand)]
enum Kind {
    /// Prints the completions of a shell.
    Completions {
        /// Name of the shell.
        shell: Shell,
    },
    /// Writes the man pages, one per command.
    Man {
        /// Folder of the pages; it is created if it does not exist.
        folder: PathBuf,
    },
    /// Prints the JSON Schema of `peerproof.toml`, for editors.
    Schema,
}

/// Runs the command.
///
/// # Errors
/// Fails if the folder cannot be written.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    match &args.kind {
        Kind::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "peerproof", &mut text);
            context.printer.out(&String::from_utf8_lossy(&text));
        }
        Kind::Man { folder } => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
                .map_err(|error| {
                Stop::usage(format!("cannot write man pages to {}: {error}", folder.display()))
            })?;
        }
        Kind::Schema => {
            let schema = serde_json::to_string_pretty(&json_schema(&table::all())).unwrap_or_default();
            context.printer.out(&format!("{schema}\n"));
        }
    }
    Ok(Exit::Good)
}

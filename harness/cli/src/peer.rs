//! `peerproof peer`: runs a reference peer.

use super::{CommandResult, Context, Stop, boundary_named};
use peerproof::table;

/// Runs a reference peer on standard input and output, as a mock for developing the other side.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  peerproof peer toolhost --serve
  peerproof peer toolhost --run AID.PEERPROOF.ECHO.v1
  peerproof peer toolhost --dispatch ./my_toolhost
Known mutants: peerproof list mutants")]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: String,
    /// Arguments of the reference peer, and `--choice KEY=VALUE` or `--mutant ID`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Runs the command. [`peerproof::hidden()`] has already handled runnable arguments.
///
/// # Errors
/// Fails for an unknown boundary or without arguments.
pub(crate) fn run(args: &Args, _context: &Context) -> CommandResult {
    let boundary = boundary_named(&args.boundary)?;
    let usual: Vec<String> = table::played(boundary)
        .references()
        .iter()
        .flat_map(|reference| &reference.commands)
        // Checks pin choices; people begin with the defaults.
        .map(|(_, args)| args.split(|arg| arg == "--choice").next().unwrap_or_default().join(" "))
        .map(|args| format!("peerproof peer {} {args}", boundary.name()))
        .collect();
    Err(Stop::usage(format!("name the reference peer to run: {}", usual.join(" | "))))
}

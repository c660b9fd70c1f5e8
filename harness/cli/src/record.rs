//! `peerproof record`: records the conversation of two live peers.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::peer_args::PeerArgs;
use super::run_args::duration;
use super::{CommandResult, Context, Exit, Stop, boundary_named};
use peerproof::report::recorded;
use peerproof::table;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::secrets::{is_secret_name, secrets_of_argv};
use peerproof_engine::drive::config::Config;
use peerproof_engine::drive::private;
use peerproof_engine::drive::record::{self, Hidden, RecordSettings};

/// Separator between the command lines of client and server.
const BETWEEN: &str = "---";

/// Records the conversation between a client and a server as a transcript for `lint`, `replay` and `shrink`. Every byte
/// is passed on unchanged.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "peerproof record [OPTIONS] -- CLIENT… --- SERVER…\n       \
                      peerproof record [OPTIONS] -- SERVER…",
    after_help = "With one command line peerproof replaces the server: the program that starts it is the \
                  client.\n\
                  The transcript contains the messages and the first 64 KiB of each peer's standard error. Standard \
                  error is also passed on. Secrets (variables and options named *TOKEN*, *KEY* or *SECRET*, and lease \
                  tokens) are replaced by placeholders of the same length. Signatures stay, because `lint` needs them. \
                  Only you can read the file. Messages of peerproof itself go to standard error. HTTP is not \
                  recorded.\n\n\
                  Exit status: 0 recorded, whatever the exit status of the peers; 2 usage; 5 the transcript is cut off \
                  at its size limit, or a peer had to be killed; 70 the file could not be written; 130 interrupted."
)]
pub(crate) struct Args {
    /// Boundary between client and server [default: the one in the configuration].
    #[arg(long, value_name = "BOUNDARY")]
    boundary: Option<String>,
    /// Command of the boundary that the server implements, such as run or serve of toolhost, if its command line does
    /// not show it.
    #[arg(long = "as", value_name = "COMMAND")]
    played: Option<String>,
    /// Folder for the transcript [default: peerproof-out/recorded].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Time for the server to exit after its input is closed.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    grace: String,
    /// Largest size of the transcript in bytes. The conversation continues after that.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    bytes_max: u64,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Runs the command.
///
/// # Errors
/// Fails for wrong usage, a peer that cannot be started, or a file that cannot be created.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let settings = settings(args, context)?;
    let folder = args.out.clone().or_else(|| context.setting("OUT").map(PathBuf::from));
    let folder = folder.unwrap_or_else(|| Path::new("peerproof-out").join("recorded"));
    let (file, path) = create(&folder)?;
    context.catch_interrupts();
    let recorded = record::record(settings, file, &context.interrupted).inspect_err(|_| {
        // The recording is empty.
        let _ = std::fs::remove_file(&path);
    })?;
    context.printer.err(&recorded::render(&recorded, &path));
    if let Some(why) = recorded.stopped.as_ref().filter(|_| recorded.is_broken) {
        return Err(Stop::harness(format!(
            "{} is incomplete: {why}; the conversation of the peers was not affected",
            path.display()
        )));
    }
    Ok(if recorded.interrupted {
        Exit::Interrupted
    } else if recorded.stopped.is_some() || !recorded.killed.is_empty() {
        Exit::Incomplete
    } else {
        Exit::Good
    })
}

fn settings(args: &Args, context: &Context) -> Result<RecordSettings, Stop> {
    let words = &args.peer.command;
    let (client, server) = match words.iter().position(|word| word == BETWEEN) {
        Some(at) => (Some(words[..at].to_vec()), words[at + 1..].to_vec()),
        None => (None, words.clone()),
    };
    if server.is_empty() || client.as_ref().is_some_and(Vec::is_empty) {
        return Err(Stop::usage(
            "no peer is given; use peerproof record -- CLIENT… --- SERVER…, or -- SERVER… to replace the server",
        ));
    }
    let boundary = match (&args.boundary, args.peer.file(context)) {
        (Some(name), _) => boundary_named(name)?,
        (None, Some(file)) => Config::load(&file, &table::all())?.boundary,
        (None, None) => {
            let names: Vec<&str> = table::all().iter().map(|boundary| boundary.name()).collect();
            return Err(Stop::usage(format!(
                "no boundary is named; add --boundary with one of {}",
                names.join(", ")
            )));
        }
    };
    // One process is recorded, so the placeholders of its command line are filled in.
    let (argv, mut placeholders) = boundary.unfilled(&server);
    let peer_args = PeerArgs { command: argv, ..args.peer.clone() };
    let config = peer_args.config(Some(boundary.name()), context)?;
    let mut config = config.ok_or_else(|| Stop::usage("no peer is given"))?;
    let (mut command, side) = boundary.main_command(&peer_args.command);
    if let Some(name) = &args.played {
        let commands = boundary.description().commands_of(Side::Provider);
        let commands: Vec<&str> = commands.filter(|name| *name != HTTP).collect();
        command = commands.iter().copied().find(|known| known == name).ok_or_else(|| {
            Stop::usage(format!(
                "--as {name:?}: the servers of {} are {}",
                boundary.name(),
                commands.join(", ")
            ))
        })?;
        config.commands = [(command.to_owned(), peer_args.command.clone())].into();
        if let Some(aid) = args.peer.aid.as_ref().filter(|_| placeholders.is_empty()) {
            placeholders.insert("aid".to_owned(), aid.clone());
        }
    }
    if command == HTTP {
        return Err(Stop::usage(
            "HTTP is not recorded; run `check` on an HTTP server, and record HTTP traffic \
             with an HTTP proxy",
        ));
    }
    if side != Side::Provider {
        return Err(Stop::usage("the second command line must be that of a server, not of a client"));
    }
    let env: Vec<(String, String)> =
        config.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let peer = config.peer(&context.variables)?;
    let mut secrets = peer.secrets();
    // Both peers inherit our variables, and the client has a command line of its own.
    let own = context.variables.iter().filter(|(name, _)| is_secret_name(name));
    let own = own.filter_map(|(_, value)| value.to_str());
    let words = client.as_deref().unwrap_or_default();
    own.chain(secrets_of_argv(words)).for_each(|value| secrets.add_configured(value));
    let facts = peer.facts.clone();
    let issued = Box::new(move |frame: &[u8]| boundary.issued(&facts, frame));
    let variable = |name: &&str| {
        let set = env.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        let own = || context.variables.get(*name).and_then(|value| value.to_str()).map(str::to_owned);
        Some(((*name).to_owned(), set.or_else(own)?))
    };
    let stdout = context.printer.out_file();
    let stderr = context.printer.err_file();
    Ok(RecordSettings {
        boundary: boundary.name(),
        facts: peer.facts,
        command: command.to_owned(),
        placeholders,
        variables: boundary.description().variables.iter().filter_map(variable).collect(),
        client: client.map(|argv| record::RecordedPeer { argv, env: Vec::new() }),
        server: record::RecordedPeer { argv: server, env },
        stdout: stdout.map_err(|error| Stop::usage(format!("standard output is closed: {error}")))?,
        stderr: stderr.map_err(|error| Stop::usage(format!("standard error is closed: {error}")))?,
        grace: duration(&args.grace)?,
        hidden: Hidden { secrets, issued: Some(issued) },
        bytes_max: args.bytes_max,
    })
}

/// Creates a new file in `folder`, so that no recording replaces another.
fn create(folder: &Path) -> Result<(File, PathBuf), Stop> {
    let cannot = |path: &Path, error: &dyn std::fmt::Display| {
        Stop::usage(format!("cannot make {}: {error}", path.display()))
    };
    private::folder(folder).map_err(|error| cannot(folder, &error))?;
    let mut number: u64 = 1;
    loop {
        let name = match number {
            1 => "transcript.ndjson".to_owned(),
            number => format!("transcript-{number}.ndjson"),
        };
        let path = folder.join(name);
        match private::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(cannot(&path, &error)),
        }
    }
}

//! `peerproof replay`: judges a stored conversation again, or repeats it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::peer_args::PeerArgs;
use super::run_args::setting;
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::judged;
use peerproof::table;
use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::{EventKind, Transcript};
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::{Lab, Unfinished};
use peerproof_engine::drive::peer::Peer;
use peerproof_engine::drive::stored;
use peerproof_engine::run::runner::{self, Options, Surroundings};

/// Judges a stored conversation again, without the peer. The findings are always the same.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 no finding, 1 a finding, 2 the file is not a transcript, 70 harness fault."
)]
pub(crate) struct Args {
    /// A transcript file, such as transcript.ndjson of a reproducer.
    file: PathBuf,
    /// Repeat the conversation with the peer after `--` or in --config, and judge the new one.
    #[arg(long)]
    live: bool,
    /// Factor on the time limits of the peer, for slow machines [default: 1].
    #[arg(long, value_name = "F")]
    timeout_scale: Option<f64>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Runs the command.
///
/// # Errors
/// Fails if the file is not a transcript, no peer is given, or for a fault of this machine.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let (stored, boundary) = load(&args.file)?;
    if !args.live && (!args.peer.command.is_empty() || args.peer.config.is_some()) {
        return Err(Stop::usage("replay needs no peer; add --live to repeat the conversation with it"));
    }
    let before = boundary::judge(boundary, &stored);
    let (transcript, judgement) = if args.live {
        let peer = peer(&args.peer, &stored, boundary, context)?;
        let plan = live_plan(boundary, &stored);
        let now = with_lab(&peer, args.timeout_scale, context, |lab| execute(lab, &stored.check, &plan))?;
        let judgement = boundary::judge(boundary, &now);
        (now, judgement)
    } else {
        (stored, before.clone())
    };
    context.printer.out(&judged::render(boundary, &transcript, &judgement, &context.printer));
    if args.live {
        let gone =
            before.findings.iter().filter(|old| !judgement.findings.iter().any(|new| new.key() == old.key()));
        for finding in gone {
            context.printer.note(&format!(
                "the stored finding {} ({}) did not occur this time",
                finding.clause, finding.reason
            ));
        }
    }
    Ok(if judgement.findings.is_empty() { Exit::Good } else { Exit::Broken })
}

/// Plan that repeats a stored conversation; sealed messages are sealed again.
pub(super) fn live_plan(boundary: &dyn Boundary, stored: &Transcript) -> Plan {
    boundary.reopened(stored).unwrap_or_else(|| Plan::clone(&stored.plan))
}

/// Reads a transcript and finds its boundary.
///
/// # Errors
/// Fails if it cannot be read, is not a transcript, or belongs to an unknown boundary.
pub(super) fn load(path: &Path) -> Result<(Transcript, &'static dyn Boundary), Stop> {
    let name = path.display();
    let file = File::open(path).map_err(|error| Stop::usage(format!("cannot read {name}: {error}")))?;
    let transcript = Transcript::load(BufReader::new(file))
        .map_err(|error| error.of(format_args!("{name} is not a transcript")))?;
    let boundary = table::find(&transcript.boundary).ok_or_else(|| {
        Stop::usage(format!("{name} is a transcript of the unknown boundary {:?}", transcript.boundary))
    })?;
    stored::admit(boundary, &transcript)
        .map_err(|error| error.of(format_args!("{name} cannot be judged")))?;
    for step in &transcript.plan.steps {
        if step.session >= transcript.plan.sessions.len() {
            let session = step.session;
            return Err(Stop::usage(format!(
                "{name} is not a transcript: a step belongs to the session {session}"
            )));
        }
    }
    Ok((transcript, boundary))
}

/// Peer for repeating a stored conversation; without a command and a configuration, the reference peer of that side.
/// The facts come from the transcript, so nothing is probed.
///
/// # Errors
/// Fails if the configuration is invalid or lacks the commands of the conversation.
pub(super) fn peer(
    args: &PeerArgs,
    stored: &Transcript,
    boundary: &'static dyn Boundary,
    context: &Context,
) -> Result<Peer, Stop> {
    // Turn the recorded command line back into a template, which the conversation fills in again.
    let (command, _) = boundary.unfilled(&args.command);
    let args = &PeerArgs { command, ..args.clone() };
    let peers = args.peers_or_references(Some(boundary.name()), context)?;
    let side = stored.facts.side;
    let only = peers.len() == 1;
    let mut peer = peers
        .into_iter()
        .find(|peer| only || peer.facts.side == side)
        .ok_or_else(|| Stop::usage(format!("there is no reference peer for the {}", side.word())))?;
    let mut names: Vec<&str> = stored.plan.sessions.iter().map(|session| session.command.as_str()).collect();
    names.dedup();
    if !args.command.is_empty()
        && let [name] = names[..]
        && let Some((_, argv)) = peer.commands.pop_first()
    {
        // The only given command line is the one that the conversation needs.
        peer.commands = [(name.to_owned(), argv)].into();
    }
    if let Some(missing) = names.iter().find(|name| !peer.commands.contains_key(**name)) {
        return Err(Stop::usage(format!(
            "the conversation needs the command `{missing}`; give it in a configuration: --config FILE"
        )));
    }
    peer.facts = Facts::clone(&stored.facts);
    Ok(peer)
}

/// Sets up a lab for `peer` and runs `work` with it.
///
/// # Errors
/// Fails for wrong usage or a fault of this machine; passes on errors of `work`.
pub(super) fn with_lab<T>(
    peer: &Peer,
    timeout_scale: Option<f64>,
    context: &Context,
    work: impl FnOnce(&Lab<'_>) -> Result<T, Stop>,
) -> Result<T, Stop> {
    let timeout_scale = setting(timeout_scale, "TIMEOUT_SCALE", context)?.unwrap_or(1.0);
    if !(0.001..=1_000.0).contains(&timeout_scale) {
        return Err(Stop::usage(format!(
            "--timeout-scale is {timeout_scale}; it must be from 0.001 to 1000"
        )));
    }
    context.catch_interrupts();
    let scratch = tempfile::Builder::new().prefix("peerproof-").tempdir().map_err(|error| {
        Stop::harness(format!(
            "cannot make a temporary folder: {error}; set TMPDIR to a folder with free space"
        ))
    })?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let options = Options { timeout_scale, ..Options::default() };
    work(&runner::lab(peer, &options, around))
}

/// Runs a plan once.
///
/// # Errors
/// Fails if the peer cannot be started, or for a fault of this machine.
pub(super) fn execute(lab: &Lab<'_>, check: &str, plan: &Plan) -> Result<Transcript, Stop> {
    let transcript = lab.execute(check, plan).map_err(|unfinished| match unfinished {
        Unfinished::Interrupted => Stop { exit: Exit::Interrupted, message: unfinished.to_string() },
        Unfinished::Fault(fault) => fault.into(),
    })?;
    for event in &transcript.events {
        if let EventKind::StartFailed { error } = &event.kind {
            return Err(Stop::usage(format!("{}: {error}", lab.peer.name)));
        }
    }
    Ok(transcript)
}

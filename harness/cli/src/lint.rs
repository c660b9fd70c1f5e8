//! `peerproof lint`: judges both sides of a stored conversation.

use std::path::PathBuf;
use std::sync::Arc;

use super::peer_args::PeerArgs;
use super::replay::load;
use super::run_args::{Format, setting};
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::lint as report;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::config::Config;

/// Judges both sides of a transcript, clause by clause. The transcript comes from `record` or from a check.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "In the transcript of a check only the peer is judged: peerproof played the other side. \
        The roles, \
                  features, choices and requirements of the peer come from the file, unless flags set them.\n\n\
                  Exit status: 0 no MUST is broken (--strict: no SHOULD either), 1 a clause is broken, 2 usage or not \
                  a transcript, 4 nothing could be decided."
)]
pub(crate) struct Args {
    /// A transcript.ndjson.
    file: PathBuf,
    /// Judge only this side.
    #[arg(long, value_name = "SIDE")]
    side: Option<LintSide>,
    /// Count a broken SHOULD as a failure.
    #[arg(long)]
    strict: bool,
    /// Format of the findings.
    #[arg(long, value_name = "FORM")]
    format: Option<Format>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// A side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LintSide {
    /// The side that answers requests.
    Provider,
    /// The side that sends requests.
    Consumer,
}

/// Runs the command.
///
/// # Errors
/// Fails if the file is not a transcript, or the flags do not fit its boundary.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    if !args.peer.command.is_empty() {
        return Err(Stop::usage(
            "lint starts no peer; remove the command, lint judges only the transcript FILE",
        ));
    }
    let (mut transcript, boundary) = load(&args.file)?;
    let format = setting(args.format, "FORMAT", context)?.unwrap_or_default();
    tell_facts(&mut transcript, boundary, &args.peer, context)?;
    let only = args.side.map(|side| match side {
        LintSide::Provider => Side::Provider,
        LintSide::Consumer => Side::Consumer,
    });
    let linted = peerproof_engine::contract::lint::lint(boundary, &transcript, only);
    let printer = if format == Format::Plain { context.printer.as_plain() } else { context.printer };
    printer.out(&match format {
        Format::Ndjson => report::ndjson(boundary, &transcript, &linted, &args.file),
        Format::Pretty | Format::Plain => report::render(boundary, &transcript, &linted, &printer),
    });
    Ok(if linted.is_broken(boundary, args.strict) {
        Exit::Broken
    } else if linted.undecided.is_some() {
        Exit::Undecided
    } else {
        Exit::Good
    })
}

/// Overrides the transcript's facts about the peer by those from the configuration and the flags.
fn tell_facts(
    transcript: &mut Transcript,
    boundary: &'static dyn Boundary,
    args: &PeerArgs,
    context: &Context,
) -> Result<(), Stop> {
    let config = match &args.config {
        Some(_) => args.config(Some(boundary.name()), context)?.unwrap_or_else(|| Config::new(boundary)),
        None => args.for_init(boundary.name())?,
    };
    let mut facts = Facts::clone(&transcript.facts);
    facts.roles.extend(config.roles);
    facts.features.extend(config.features.into_iter().flatten());
    facts.choices.extend(config.choices);
    facts.limits.extend(config.limits);
    if let Some(set) = config.requirements {
        facts.requirements = set;
    }
    if transcript.plan.recorded {
        boundary.complete_recorded(&mut facts, transcript);
    }
    transcript.facts = Arc::new(facts);
    Ok(())
}

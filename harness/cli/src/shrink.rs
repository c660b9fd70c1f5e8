//! `peerproof shrink`: makes a stored conversation as short as its finding allows.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::peer_args::PeerArgs;
use super::replay::{execute, live_plan, load, peer, with_lab};
use super::run_args::duration;
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::judged;
use peerproof::table;
use peerproof_engine::contract::boundary;
use peerproof_engine::run::reproducer;
use peerproof_engine::run::runner::Failure;
use peerproof_engine::run::shrink;

/// Shrinks a stored conversation against a live peer and writes the shorter one as a reproducer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 1 the peer shows the finding, 4 the peer does not show it, 2 usage.")]
pub(crate) struct Args {
    /// A transcript file with a finding.
    file: PathBuf,
    /// Shrink the finding with this clause or reason code instead of the first one.
    #[arg(long, value_name = "CLAUSE|REASON")]
    finding: Option<String>,
    /// Time for shrinking.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    time: Duration,
    /// Folder for the reproducer [default: the folder of FILE].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Factor on the time limits of the peer, for slow machines [default: 1].
    #[arg(long, value_name = "F")]
    timeout_scale: Option<f64>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Runs the command.
///
/// # Errors
/// Fails if the file is not a transcript or lacks the finding, the peer cannot be started, or nothing can be written.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let (stored, boundary) = load(&args.file)?;
    let name = args.file.display();
    let findings = boundary::judge(boundary, &stored).findings;
    let wanted = |clause: &str, reason: &str| {
        args.finding.as_ref().is_none_or(|word| word == reason || word.eq_ignore_ascii_case(clause))
    };
    let Some(finding) = findings.iter().find(|finding| wanted(&finding.clause.0, &finding.reason)) else {
        let there: Vec<String> =
            findings.iter().map(|finding| format!("{} ({})", finding.clause, finding.reason)).collect();
        return Err(Stop::usage(match (&args.finding, there.is_empty()) {
            (Some(word), false) => {
                format!("{name} contains no finding {word:?}; it contains: {}", there.join(", "))
            }
            _ => format!("{name} contains no finding, so there is nothing to shrink"),
        }));
    };
    let peer = peer(&args.peer, &stored, boundary, context)?;
    with_lab(&peer, args.timeout_scale, context, |lab| {
        let now = execute(lab, &stored.check, &live_plan(boundary, &stored))?;
        let shown =
            boundary::judge(boundary, &now).findings.into_iter().find(|new| new.key() == finding.key());
        let Some(shown) = shown else {
            context.printer.note(&format!(
                "{} ({}) does not occur with this peer, so nothing was shrunk",
                finding.clause, finding.reason
            ));
            return Ok(Exit::Undecided);
        };
        let failure = Failure { check: stored.check.clone(), transcript: now, finding: shown };
        let shrunk = shrink::shrink(lab, Some(table::played(boundary)), &failure, Instant::now() + args.time);
        let judgement = boundary::judge(boundary, &shrunk.transcript);
        context.printer.out(&judged::render(boundary, &shrunk.transcript, &judgement, &context.printer));
        context.printer.out(&judged::shrunk(&shrunk));
        let smaller =
            Failure { check: stored.check.clone(), transcript: shrunk.transcript, finding: shrunk.finding };
        let beside = args.file.parent().unwrap_or(std::path::Path::new("")).join("shrunk");
        let out = args.out.clone().unwrap_or(beside);
        let peer_args = args.peer.again(Some(&stored.boundary), context);
        let folder = reproducer::folder_name(&stored.check, None);
        reproducer::write(&out, &folder, &smaller, lab, &peer_args, true)?;
        context.printer.out(&format!("reproducer: {}\n", out.join(folder).display()));
        Ok(Exit::Broken)
    })
}

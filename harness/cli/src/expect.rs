//! `peerproof expect`: writes and prunes the list of known failures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::report::whole;
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::render;
use peerproof::report::screen::plural;
use peerproof::table;
use peerproof_engine::run::expectation::{self, Expectations, StaleReason};
use peerproof_engine::run::verdict::CheckResult;

/// Default file.
pub(crate) const DEFAULT_FILE: &str = "peerproof-expected.toml";

/// Writes and prunes the list of known failures.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: ExpectCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ExpectCommand {
    /// Writes a new list that expects every failure of a run.
    Init {
        #[command(flatten)]
        files: Files,
        /// Overwrite an existing list.
        #[arg(long)]
        force: bool,
    },
    /// Removes entries that no longer fail; exit status 3 if entries are left that need a decision by a person.
    Update {
        #[command(flatten)]
        files: Files,
        /// Also add the failures that are not expected yet.
        #[arg(long)]
        add: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Files {
    /// A results file, such as peerproof-out/results.ndjson.
    results: PathBuf,
    /// List of known failures.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// Fails if the results are cut (exit status 5), or the list is invalid, exists already or cannot be written.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    match &args.what {
        ExpectCommand::Init { files, force } => init(files, *force, context),
        ExpectCommand::Update { files, add } => update(files, *add, context),
    }
}

fn results(files: &Files) -> Result<Vec<CheckResult>, Stop> {
    Ok(whole(&files.results)?.runs.into_iter().flat_map(|run| run.checks).collect())
}

fn init(files: &Files, force: bool, context: &Context) -> CommandResult {
    let results = results(files)?;
    let name = files.file.display();
    if files.file.exists() && !force {
        return Err(Stop::usage(format!(
            "{name} already exists; `peerproof expect update` removes its old entries, --force overwrites it"
        )));
    }
    let text = expectation::init(&results);
    let count = load(&text, &files.file)?.entries().count();
    render::write(&files.file, &text)?;
    context.printer.out(&format!("{name}: {}\n", plural(count, "expected failure")));
    Ok(Exit::Good)
}

fn load(text: &str, path: &Path) -> Result<Expectations, Stop> {
    Ok(Expectations::parse(text).map_err(|error| error.of(path.display()))?)
}

fn update(files: &Files, add: bool, context: &Context) -> CommandResult {
    let results = results(files)?;
    let path = &files.file;
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Stop::usage(format!("cannot read {name}: {error}; `peerproof expect init` writes it"))
    })?;
    let expectations = load(&text, path)?;
    let all = table::all();
    let known = all.iter().flat_map(|boundary| boundary.checks()).map(|check| check.id.as_str());
    let today = jiff::Zoned::now().date();
    let stale = expectations.stale(&results, known, today);
    let globs: BTreeSet<usize> = expectations
        .entries()
        .enumerate()
        .filter(|(_, entry)| entry.check.contains(['*', '?', '[', '{']))
        .map(|(index, _)| index)
        .collect();
    let mut gone = BTreeSet::new();
    let mut left = Vec::new();
    for stale in &stale {
        // A person must decide about an expired entry, and about a glob that holds for only some of its checks.
        let decided = match stale.why {
            StaleReason::Expired(_) => false,
            StaleReason::Passes(_) => !globs.contains(&stale.entry),
            StaleReason::FailsOtherwise(..) | StaleReason::NoSuchCheck => true,
        };
        if decided {
            gone.insert(stale.entry);
        } else {
            left.push(stale);
        }
    }
    left.retain(|stale| !gone.contains(&stale.entry));
    let mut new_text = expectation::remove(&text, &expectations, &gone).map_err(|error| error.of(&name))?;
    let kept = load(&new_text, path)?;
    let mut added = 0;
    if add {
        new_text = expectation::add(&new_text, &kept, &results);
        added = load(&new_text, path)?.entries().count() - kept.entries().count();
    }
    if new_text != text {
        render::write(path, &new_text)?;
    }
    for stale in &left {
        context.printer.note(&stale.to_string());
    }
    context.printer.out(&format!(
        "{name}: {} removed, {added} added, {} kept\n",
        gone.len(),
        kept.entries().count()
    ));
    Ok(if left.is_empty() { Exit::Good } else { Exit::StaleExpectation })
}

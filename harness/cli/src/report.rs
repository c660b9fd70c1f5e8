//! `peerproof report`: renders, merges and compares results files.

use std::path::{Path, PathBuf};

use super::run_args::DetailArgs;
use super::{CommandResult, Context, Exit, Stop, github};
use peerproof::report::console::{self, Detail, ReportContents};
use peerproof::report::diff::{self, Sort};
use peerproof::report::merge;
use peerproof::report::render::{self, Form};
use peerproof::report::screen::plural;
use peerproof::table;
use peerproof_engine::data::blame::Incomplete;
use peerproof_engine::run::results::{ResultsFile, ResultsWriter, StoredRun};

/// Renders, merges and compares results files.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: ReportCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReportCommand {
    /// Renders a results file as reports; without a report flag, on the console.
    Render {
        /// A results file, such as peerproof-out/results.ndjson.
        results: PathBuf,
        #[command(flatten)]
        forms: Forms,
        /// Write annotations and a step summary in GitHub Actions.
        #[arg(long)]
        github: bool,
        #[command(flatten)]
        detail: DetailArgs,
    },
    /// Merges the shards of a run; refuses gaps, overlaps, truncated files, and shards of different runs.
    Merge {
        /// Results files of all shards.
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// Write the merged results here.
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
    },
    /// Shows new and fixed causes and changed verdicts; exit status 1 if a check that passed now fails.
    Diff {
        /// Results before the change.
        old: PathBuf,
        /// Results after the change.
        new: PathBuf,
    },
}

/// Files to render into.
#[derive(Debug, clap::Args)]
struct Forms {
    /// Write JUnit XML here.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write one HTML page here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write SARIF 2.1.0 here.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write Markdown here.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write one line per check here: verdict, reason and clause, without details that vary between runs.
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,
}

impl Forms {
    fn wanted(&self) -> Vec<(Form, PathBuf)> {
        let file = |form| match form {
            Form::Junit => &self.junit,
            Form::Html => &self.html,
            Form::Sarif => &self.sarif,
            Form::Markdown => &self.md,
            Form::Verdicts => &self.verdicts,
        };
        Form::ALL.into_iter().filter_map(|form| Some((form, file(form).clone()?))).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if a file is not a results file, is cut although it must be complete (exit status 5), or cannot be written.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    match &args.what {
        ReportCommand::Render { results, forms, github, detail } => {
            rendered(results, &forms.wanted(), *github, detail.level(), context)
        }
        ReportCommand::Merge { results, out } => merged(results, out, context),
        ReportCommand::Diff { old, new } => {
            let (old, new) = (whole(old)?, whole(new)?);
            if let Some(sentence) = diff::mismatch(&old, &new) {
                context.printer.note(&sentence);
            }
            let changes = diff::diff(&old, &new);
            let causes = diff::causes(&old, &new);
            context.printer.out(&diff::render(&causes, &changes, &context.printer));
            let regressed = changes.iter().any(|change| change.sort == Sort::Regressed);
            Ok(if regressed { Exit::Broken } else { Exit::Good })
        }
    }
}

/// Reads a results file that must be complete.
///
/// # Errors
/// Fails if it is not a results file, or is cut or changed (exit status 5).
pub(super) fn whole(path: &Path) -> Result<ResultsFile, Stop> {
    Ok(ResultsFile::load(path)?.whole()?)
}

fn rendered(
    path: &Path,
    wanted: &[(Form, PathBuf)],
    for_github: bool,
    detail: Detail,
    context: &Context,
) -> CommandResult {
    let file = ResultsFile::load(path)?;
    if for_github {
        github::tell(&file, context);
    }
    // Reproducers lie next to the results.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    render::render(file.clone(), wanted, &table::all(), folder)?;
    if wanted.is_empty() && !for_github {
        let folder = Some(folder.display().to_string());
        let beside = ReportContents { folder, detail, ..ReportContents::default() };
        for run in &file.runs {
            context.printer.out(&console::render(
                run,
                table::find(&run.header.boundary),
                &beside,
                &context.printer,
            ));
        }
    }
    match file.incomplete {
        // The reports show the available results; the status says that some are missing.
        Some(message) => Err(Incomplete::from(message).into()),
        None => Ok(Exit::Good),
    }
}

fn merged(paths: &[PathBuf], out: &Path, context: &Context) -> CommandResult {
    let mut runs: Vec<(String, StoredRun)> = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        runs.extend(whole(path)?.runs.into_iter().map(|run| (name.clone(), run)));
    }
    let runs = merge::merge(runs, &table::all())?;
    let mut writer = ResultsWriter::create(out)?;
    for run in &runs {
        let exit_code = run.footer.as_ref().map_or(Exit::Undecided.code(), |footer| footer.exit_code);
        writer.run(run, exit_code).map_err(|fault| Incomplete::from(String::from(fault)))?;
    }
    let checks: usize = runs.iter().map(|run| run.checks.len()).sum();
    context.printer.out(&format!(
        "{}: {} of {}\n",
        out.display(),
        plural(checks, "check"),
        plural(paths.len(), "file")
    ));
    let codes = runs.iter().filter_map(|run| run.footer.as_ref()).map(|footer| footer.exit_code);
    Ok(Exit::from_code(merge::gravest(codes)))
}

//! Annotations and the step summary of GitHub Actions.

use std::io::Write as _;

use super::Context;
use peerproof::report::github;
use peerproof::table;
use peerproof_engine::data::text::visible_lines;
use peerproof_engine::run::results::ResultsFile;

/// Writes annotations to standard error, which GitHub reads beside any form on standard output, and the step summary to
/// the file that GitHub names.
pub(crate) fn tell(file: &ResultsFile, context: &Context) {
    let printer = &context.printer;
    printer.err(&github::annotations(file, &table::all()));
    let Some(path) = context.variable(github::SUMMARY) else {
        printer.note(&format!("{} is not set, so no step summary is written", github::SUMMARY));
        return;
    };
    let text = github::summary(file, &table::all());
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = opened.and_then(|mut to| to.write_all(visible_lines(&text).as_bytes())) {
        printer.note(&format!("cannot write the step summary {path}: {error}"));
    }
}

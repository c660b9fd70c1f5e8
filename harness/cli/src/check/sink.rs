//! Where results go while they come in: the results file and, with `--format ndjson`, standard output.

use std::path::Path;

use super::super::Stop;
use super::super::run_args::Format;
use peerproof::report::printer::Printer;
use peerproof_engine::blame::HarnessFault;
use peerproof_engine::results::{Explanation, ResultsWriter, RunHeader};
use peerproof_engine::verdict::CheckResult;

/// Takes results one by one. A file that cannot be written is said once; the run goes on.
pub(super) struct Sink {
    file: Option<ResultsWriter>,
    stream: Option<ResultsWriter>,
    printer: Printer,
    /// The first thing that could not be written.
    problem: Option<String>,
}

impl Sink {
    /// Opens the results file. Where the user did not name it, a folder that cannot be written is only noted.
    ///
    /// # Errors
    /// A named file cannot be made.
    pub(super) fn open(path: &Path, named: bool, form: Format, printer: &Printer) -> Result<Self, Stop> {
        let file = match ResultsWriter::create(path) {
            Ok(writer) => Some(writer),
            Err(error) if named => return Err(error.into()),
            Err(error) => {
                printer.note(&error.to_string());
                None
            }
        };
        let stream = match form {
            Format::Ndjson => {
                let out = printer
                    .out_file()
                    .map_err(|error| Stop::usage(format!("standard output is closed: {error}")))?;
                Some(ResultsWriter::onto(out, Path::new("standard output")))
            }
            Format::Pretty | Format::Plain => None,
        };
        Ok(Self { file, stream, printer: *printer, problem: None })
    }

    /// Begins a run.
    pub(super) fn begin(&mut self, header: &RunHeader) {
        self.each(|writer| writer.begin(header));
    }

    /// Adds a finished check.
    pub(super) fn check(&mut self, result: &CheckResult) {
        self.each(|writer| writer.check(result));
    }

    /// Adds what was learned about a failure.
    pub(super) fn explain(&mut self, explanation: &Explanation) {
        self.each(|writer| writer.explain(explanation));
    }

    /// Ends a run.
    pub(super) fn end(&mut self, exit_code: i32) {
        self.each(|writer| writer.end(exit_code));
    }

    /// What could not be written, if anything.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn each(&mut self, write: impl Fn(&mut ResultsWriter) -> Result<(), HarnessFault>) {
        if let Some(Err(error)) = self.file.as_mut().map(&write) {
            self.note(error.into());
        }
        if let Some(Err(error)) = self.stream.as_mut().map(&write) {
            self.note(error.into());
        }
    }

    /// Something could not be written; the first such sentence is printed.
    pub(super) fn note(&mut self, error: String) {
        if self.problem.is_none() {
            self.printer.error(&error);
            self.problem = Some(error);
        }
    }
}

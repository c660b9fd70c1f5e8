//! Destinations of results during a run: the results file and the console, or standard output with `--format ndjson`.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::Stop;
use super::super::run_args::Format;
use crate::progress::Progress;
use peerproof::report::printer::Printer;
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::run::causes::Cause;
use peerproof_engine::run::results::{Explanation, ResultsWriter, RunHeader};
use peerproof_engine::run::verdict::CheckResult;

/// Message of a part of the run.
pub(super) enum Entry {
    /// The part begins.
    Begin(RunHeader),
    /// A check has finished.
    Check(CheckResult),
    /// A failure was explained.
    Explain(Explanation),
    /// The part has ended, with its causes, exit status and report for the console.
    End(Vec<Cause>, i32, Option<String>),
    /// The part could not run.
    Gone,
}

/// Passes on the messages of the parts, part by part in the order of their places, whichever ends first. An unwritable
/// file is reported once, and the run goes on.
pub(super) struct Sink {
    /// Place of the part whose messages are passed on immediately.
    front: usize,
    /// Messages of later parts.
    later: BTreeMap<usize, Vec<Entry>>,
    progress: Progress,
    file: Option<ResultsWriter>,
    stream: Option<ResultsWriter>,
    printer: Printer,
    /// First write error.
    problem: Option<String>,
}

impl Sink {
    /// Opens the results file. If the user did not name it, an unwritable folder is only noted.
    ///
    /// # Errors
    /// Fails if a named file cannot be created.
    pub(super) fn open(
        path: &Path,
        named: bool,
        form: Format,
        printer: &Printer,
        progress: Progress,
    ) -> Result<Self, Stop> {
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
        let (printer, later) = (*printer, BTreeMap::new());
        Ok(Self { front: 0, later, progress, file, stream, printer, problem: None })
    }

    /// Takes a message of the part at `place`.
    pub(super) fn take(&mut self, place: usize, entry: Entry) {
        self.later.entry(place).or_default().push(entry);
        while let Some(entries) = self.later.remove(&self.front) {
            let is_over = entries.iter().any(|entry| matches!(entry, Entry::End(..) | Entry::Gone));
            entries.into_iter().for_each(|entry| self.pass_on(entry));
            if !is_over {
                break;
            }
            self.front += 1;
        }
    }

    fn pass_on(&mut self, entry: Entry) {
        match entry {
            Entry::Begin(header) => self.each(|writer| writer.begin(&header)),
            Entry::Check(result) => self.each(|writer| writer.check(&result)),
            Entry::Explain(explanation) => self.each(|writer| writer.explain(&explanation)),
            Entry::End(causes, exit_code, report) => {
                self.each(|writer| writer.causes(&causes));
                self.each(|writer| writer.end(exit_code));
                if let Some(report) = report {
                    self.progress.aside(|| self.printer.out(&report));
                }
            }
            Entry::Gone => {}
        }
    }

    /// First write error, if any.
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

    /// Records a write error; prints only the first, since a full disk refuses every file.
    pub(super) fn note(&mut self, error: String) {
        if self.problem.is_none() {
            self.report(error);
        }
    }

    /// Records and prints a write error.
    pub(super) fn report(&mut self, error: String) {
        self.progress.aside(|| self.printer.error(&error));
        self.problem.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::run::results::ResultsFile;

    fn header(peer: &str) -> Entry {
        Entry::Begin(RunHeader {
            peerproof: "0".to_owned(),
            boundary: "toy".to_owned(),
            side: Side::Provider,
            peer: peer.to_owned(),
            planned: Vec::new(),
            clauses_sha256: String::new(),
            rng_seed: 1,
            timeout_scale: 1.0,
            shard: None,
            selection: serde_json::Value::Null,
            config: serde_json::Value::Null,
            started: String::new(),
        })
    }

    #[test]
    fn parts_stand_in_the_order_of_their_places_however_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.ndjson");
        let printer = Printer::plain();
        let progress = Progress::new(0, &printer);
        let mut sink = Sink::open(&path, true, Format::Plain, &printer, progress).unwrap();
        sink.take(2, header("c"));
        sink.take(2, Entry::End(Vec::new(), 0, None));
        sink.take(1, header("b"));
        assert_eq!(fs::read(&path).unwrap(), b"", "the first part says nothing yet");
        sink.take(0, header("a"));
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            1,
            "what the first says is there at once"
        );
        sink.take(0, Entry::End(Vec::new(), 0, None));
        sink.take(1, Entry::Gone);
        let file = ResultsFile::load(&path).unwrap();
        let peers: Vec<&str> = file.runs.iter().map(|run| run.header.peer.as_str()).collect();
        assert_eq!(peers, ["a", "b", "c"]);
        let is_whole: Vec<bool> = file.runs.iter().map(|run| run.footer.is_some()).collect();
        assert_eq!(is_whole, [true, false, true]);
    }
}

//! Results of a run as newline-delimited JSON, from which all reports are rendered.
//!
//! A file holds one or more runs, one per peer. A run is a header with the planned checks, a line for each finished
//! check, a line for each explained failure, a line for each cause, and a footer with the SHA-256 of all earlier bytes
//! of the file. A file without its footer was cut, and is reported as such when loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::contract::boundary::Boundary;
use crate::data::blame::{HarnessFault, Incomplete, Misconfigured};
use crate::data::clause::Side;
use crate::data::finding::Finding;
use crate::data::rung::Rung;
use crate::data::text::{hex, visible_lines};
use crate::drive::private;
use crate::run::causes::{Cause, causes};
use crate::run::verdict::{CheckResult, OtherView};

mod standing;
pub mod verdicts;

pub use standing::{Standing, exit_code, standings};

/// Key in [`RunHeader::selection`] for the most unusual rung of the checks.
pub const RUNG: &str = "rung";

/// Header of a run: the planned checks, and everything that must agree between shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Version of peerproof.
    pub peerproof: String,
    /// Boundary of all checks.
    pub boundary: String,
    /// Side of the peer.
    pub side: Side,
    /// Name of the peer.
    pub peer: String,
    /// Ids of the checks of this run, or of this shard.
    pub planned: Vec<String>,
    /// Hash of the clauses, see [`clauses_sha256`].
    pub clauses_sha256: String,
    /// Seed of every random choice.
    pub rng_seed: u64,
    /// `--timeout-scale`.
    pub timeout_scale: f64,
    /// `hash:k/n` for shard `k` of `n`.
    #[serde(default)]
    pub shard: Option<String>,
    /// Arguments that select checks: filters, `--slow`, and the rung ([`RUNG`]) if given.
    #[serde(default)]
    pub selection: Value,
    /// Configuration without secrets.
    pub config: Value,
    /// Start time, RFC 3339.
    pub started: String,
}

impl RunHeader {
    /// Most unusual rung of the checks, if given.
    pub fn rung(&self) -> Option<Rung> {
        self.selection.get(RUNG)?.as_str()?.parse().ok()
    }
}

/// Footer of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// Number of checks by verdict.
    pub counts: BTreeMap<String, u64>,
    /// Exit status of the run.
    pub exit_code: i32,
    /// SHA-256 in hex of all bytes of the file before this line.
    pub sha256: String,
}

/// Explanation of a failed check, added after its line was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Id of the check.
    pub id: String,
    /// Folder of the reproducer, relative to the output folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproducer: Option<String>,
    /// Shortest conversation, one line per message or event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<String>,
    /// Index of its line that shows the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_line: Option<usize>,
    /// Views of the conversation for its findings of other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherView>,
    /// Finding of the shortest conversation. It has the clause and reason code of one of the check's findings, with the
    /// expectation and behaviour of this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
}

impl Explanation {
    /// Merges the explanation into the result of its check.
    pub fn fold_into(self, check: &mut CheckResult) {
        if let Some(finding) = self.finding
            && let Some(same) = check.findings.iter_mut().find(|other| other.key() == finding.key())
        {
            // The cause stays, however short the conversation has become.
            let (step, repair, occasion) = (same.step, same.repair.take(), same.occasion.take());
            *same = Finding { step, repair, occasion, ..finding };
        }
        check.reproducer = self.reproducer;
        check.conversation = self.conversation;
        check.wrong_line = self.wrong_line;
        check.others = self.others;
    }
}

// A line exists only while it is written or read.
#[allow(clippy::large_enum_variant)]
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultLine {
    Run(RunHeader),
    Check(CheckResult),
    Failure(Explanation),
    Cause(Cause),
    End(Footer),
}

/// One run of a results file.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Header of the run.
    pub header: RunHeader,
    /// Checks in the order of finishing, with their explanations.
    pub checks: Vec<CheckResult>,
    /// Causes of all findings, the gravest first.
    pub causes: Vec<Cause>,
    /// Footer; `None` if the run was cut.
    pub footer: Option<Footer>,
}

impl StoredRun {
    /// Run with these results and their causes, without a footer.
    pub fn new(header: RunHeader, checks: Vec<CheckResult>) -> Self {
        Self { header, causes: causes(&checks), checks, footer: None }
    }

    /// Adds a footer with this exit status. Its hash is empty, because there is no file.
    #[must_use]
    pub fn ended(mut self, exit_code: i32) -> Self {
        self.footer = Some(Footer { counts: self.counts(), exit_code, sha256: String::new() });
        self
    }

    /// Number of checks by verdict.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        counts(&self.checks)
    }

    /// Planned checks without a result.
    pub fn missing(&self) -> Vec<&str> {
        let there: BTreeSet<&str> = self.checks.iter().map(|check| check.id.as_str()).collect();
        self.header.planned.iter().map(String::as_str).filter(|id| !there.contains(id)).collect()
    }
}

/// Number of checks by verdict.
pub fn counts(checks: &[CheckResult]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for check in checks {
        *counts.entry(check.verdict.word().to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Hash of a boundary's clauses, in which all shards of a run must agree.
pub fn clauses_sha256(boundary: &dyn Boundary) -> String {
    let mut hash = Sha256::new();
    for clause in boundary.clauses() {
        hash.update(serde_json::to_vec(clause).unwrap_or_default());
        hash.update(b"\n");
    }
    hex(&hash.finalize())
}

/// Writes a results file line by line. Each line is in the file when the call returns.
#[derive(Debug)]
pub struct ResultsWriter {
    file: File,
    path: PathBuf,
    hash: Sha256,
    /// Length of the complete lines, bytes.
    written: u64,
    counts: BTreeMap<String, u64>,
    /// First write error; nothing is written after it.
    broken: Option<HarnessFault>,
}

impl ResultsWriter {
    /// Creates or empties the file, and creates its folder if missing.
    ///
    /// # Errors
    /// Names the path and the operating system's reason.
    pub fn create(path: &Path) -> Result<Self, Misconfigured> {
        let sentence = |error: std::io::Error| {
            format!(
                "cannot write the results file {}: {error}; give another path with --report results=FILE",
                path.display()
            )
        };
        let file = private::create(path).map_err(sentence)?;
        Ok(Self::onto(file, path))
    }

    /// Writes to an open file, such as standard output; error messages call it `path`.
    pub fn onto(file: File, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
            hash: Sha256::new(),
            written: 0,
            counts: BTreeMap::new(),
            broken: None,
        }
    }

    /// Begins a run.
    ///
    /// # Errors
    /// As [`ResultsWriter::check`].
    pub fn begin(&mut self, header: &RunHeader) -> Result<(), HarnessFault> {
        self.counts.clear();
        self.line(&ResultLine::Run(header.clone()))
    }

    /// Adds a finished check.
    ///
    /// # Errors
    /// Fails for example if the disk is full. The complete lines written before are kept; every later call returns the
    /// same error and writes nothing.
    pub fn check(&mut self, check: &CheckResult) -> Result<(), HarnessFault> {
        self.line(&ResultLine::Check(check.clone()))?;
        *self.counts.entry(check.verdict.word().to_owned()).or_insert(0) += 1;
        Ok(())
    }

    /// Adds the explanation of a failure after its check was written.
    ///
    /// # Errors
    /// As [`ResultsWriter::check`].
    pub fn explain(&mut self, explanation: &Explanation) -> Result<(), HarnessFault> {
        self.line(&ResultLine::Failure(explanation.clone()))
    }

    /// Adds the causes of all findings.
    ///
    /// # Errors
    /// As [`ResultsWriter::check`].
    pub fn causes(&mut self, causes: &[Cause]) -> Result<(), HarnessFault> {
        causes.iter().try_for_each(|cause| self.line(&ResultLine::Cause(cause.clone())))
    }

    /// Writes a whole run: header, checks, causes and footer.
    ///
    /// # Errors
    /// As [`ResultsWriter::check`].
    pub fn run(&mut self, run: &StoredRun, exit_code: i32) -> Result<(), HarnessFault> {
        self.begin(&run.header)?;
        run.checks.iter().try_for_each(|check| self.check(check))?;
        self.causes(&run.causes)?;
        self.end(exit_code)
    }

    /// Ends the run with its footer.
    ///
    /// # Errors
    /// As [`ResultsWriter::check`].
    pub fn end(&mut self, exit_code: i32) -> Result<(), HarnessFault> {
        let sha256 = hex(&self.hash.clone().finalize());
        let counts = std::mem::take(&mut self.counts);
        self.line(&ResultLine::End(Footer { counts, exit_code, sha256 }))
    }

    fn line(&mut self, line: &ResultLine) -> Result<(), HarnessFault> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        let text = serde_json::to_string(line)
            .map_err(|error| format!("a line of the results cannot be written as JSON: {error}"))?;
        let bytes = format!("{}\n", visible_lines(&text)).into_bytes();
        if let Err(error) = self.file.write_all(&bytes) {
            // Remove the half-written line. If this fails, too, readers cope with it.
            let _ = self.file.set_len(self.written);
            let _ = self.file.seek(SeekFrom::Start(self.written));
            let fault = HarnessFault::from(format!(
                "cannot write to the results file {}: {error}; the {} bytes written before are kept",
                self.path.display(),
                self.written
            ));
            self.broken = Some(fault.clone());
            return Err(fault);
        }
        self.hash.update(&bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Contents of a results file.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultsFile {
    /// Runs of the file; at least one.
    pub runs: Vec<StoredRun>,
    /// Reason why the file is incomplete, in one sentence: cut, changed, or planned checks without a result.
    pub incomplete: Option<String>,
}

impl ResultsFile {
    /// Reads a results file. From a truncated or damaged one it takes all complete lines and sets
    /// [`ResultsFile::incomplete`].
    ///
    /// # Errors
    /// Fails if it cannot be read or is not a results file.
    pub fn load(path: &Path) -> Result<Self, Misconfigured> {
        let name = path.display();
        let file =
            File::open(path).map_err(|error| format!("cannot read the results file {name}: {error}"))?;
        Self::read(BufReader::new(file), &name.to_string())
    }

    /// Reads results from any source; error messages call it `name`.
    ///
    /// # Errors
    /// As [`ResultsFile::load`].
    pub fn read(mut from: impl BufRead, name: &str) -> Result<Self, Misconfigured> {
        Self::read_lines(&mut from, name)
    }

    fn read_lines(from: &mut dyn BufRead, name: &str) -> Result<Self, Misconfigured> {
        let mut reader = ResultsReader { name, runs: Vec::new(), problem: None };
        let mut hash = Sha256::new();
        let mut line = Vec::new();
        for number in 1_usize.. {
            line.clear();
            let read = from
                .read_until(b'\n', &mut line)
                .map_err(|error| format!("cannot read the results file {name}: {error}"))?;
            if read == 0 {
                break;
            }
            let cut = line.last() != Some(&b'\n');
            reader.line(number, &line, cut, &hash)?;
            hash.update(&line);
        }
        reader.done()
    }

    /// Refuses an incomplete file.
    ///
    /// # Errors
    /// Returns the sentence of [`ResultsFile::incomplete`].
    pub fn whole(self) -> Result<Self, Incomplete> {
        match self.incomplete {
            Some(sentence) => Err(sentence.into()),
            None => Ok(self),
        }
    }

    /// Checks of all runs.
    pub fn checks(&self) -> impl Iterator<Item = &CheckResult> {
        self.runs.iter().flat_map(|run| &run.checks)
    }
}

struct ResultsReader<'a> {
    name: &'a str,
    runs: Vec<StoredRun>,
    /// First fault of the file.
    problem: Option<String>,
}

impl ResultsReader<'_> {
    fn line(&mut self, number: usize, bytes: &[u8], cut: bool, before: &Sha256) -> Result<(), Misconfigured> {
        let name = self.name;
        let line = match serde_json::from_slice::<ResultLine>(bytes) {
            Ok(line) => line,
            Err(error) if self.runs.is_empty() => {
                return Err(format!(
                    "{name} is not a results file: line 1 is not the header of a run: {error}"
                )
                .into());
            }
            Err(_) if cut => {
                self.note(|| format!("the results file {name} is truncated in line {number}"));
                return Ok(());
            }
            Err(error) => {
                self.note(|| format!("line {number} of the results file {name} is damaged: {error}"));
                return Ok(());
            }
        };
        if let ResultLine::Run(header) = line {
            if let Some(run) = self.runs.last().filter(|run| run.footer.is_none()) {
                let peer = run.header.peer.clone();
                self.note(|| format!("the run of {peer} in the results file {name} has no footer"));
            }
            self.runs.push(StoredRun::new(header, Vec::new()));
            return Ok(());
        }
        let Some(run) = self.runs.last_mut() else {
            return Err(
                format!("{name} is not a results file: it does not begin with the header of a run").into()
            );
        };
        let mut problem = None;
        if run.footer.is_some() {
            problem = Some(format!("line {number} of the results file {name} comes after the footer"));
        }
        match line {
            ResultLine::Run(_) => {}
            ResultLine::Check(check) if run.checks.iter().any(|other| other.id == check.id) => {
                problem = Some(format!("the results file {name} contains the check {} twice", check.id));
            }
            ResultLine::Check(check) => run.checks.push(check),
            ResultLine::Failure(explanation) => {
                if let Some(check) = run.checks.iter_mut().find(|check| check.id == explanation.id) {
                    explanation.fold_into(check);
                }
            }
            ResultLine::Cause(cause) => run.causes.push(cause),
            ResultLine::End(footer) => {
                if footer.sha256 != hex(&before.clone().finalize()) {
                    problem = Some(format!(
                        "the results file {name} was changed after it was written: the hash in line {number} does not match"
                    ));
                } else if footer.counts != run.counts() {
                    problem =
                        Some(format!("the counts in line {number} of the results file {name} do not match"));
                }
                run.footer = Some(footer);
            }
        }
        if let Some(problem) = problem {
            self.note(|| problem);
        }
        Ok(())
    }

    fn note(&mut self, problem: impl FnOnce() -> String) {
        self.problem.get_or_insert_with(problem);
    }

    fn done(mut self) -> Result<ResultsFile, Misconfigured> {
        let name = self.name;
        let Some(last) = self.runs.last() else {
            return Err(format!("{name} is not a results file: it is empty").into());
        };
        let (done, planned) = (last.checks.len(), last.header.planned.len());
        if last.footer.is_none() {
            let end = format!("it has no footer and contains {done} of {planned} planned checks");
            self.problem = Some(match self.problem.take() {
                Some(problem) => format!("{problem}; {end}"),
                None => format!("the results file {name} is incomplete: {end}"),
            });
        }
        let missing = self.runs.iter().find_map(|run| {
            let missing = run.missing();
            missing.first().map(|first| (missing.len(), (*first).to_owned()))
        });
        if let Some((count, first)) = missing {
            self.note(|| {
                format!(
                    "the results file {name} has no result for {count} planned checks, the first is {first}"
                )
            });
        }
        // A cut file may hold only some of them, one of an earlier version none.
        for run in self.runs.iter_mut().filter(|run| run.footer.is_none() || run.causes.is_empty()) {
            run.causes = causes(&run.checks);
        }
        Ok(ResultsFile { runs: self.runs, incomplete: self.problem })
    }
}

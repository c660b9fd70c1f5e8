//! Judged conversation for people.

use std::fmt::Write as _;

use super::console::found;
use super::printer::{Printer, Tone};
use super::screen::{distinct, plural};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::text::one_line;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::run::reproducer::conversation;
use peerproof_engine::run::shrink::Shrunk;

/// Maximum line length and number of lines of a conversation on a console.
const CHARS_MAX: usize = 160;
const LINES_MAX: usize = 60;

/// Renders the conversation and its findings.
pub fn render(
    boundary: &dyn Boundary,
    transcript: &Transcript,
    judgement: &Judgement,
    printer: &Printer,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", printer.paint(Tone::Name, &transcript.check));
    for line in conversation(transcript, CHARS_MAX, LINES_MAX) {
        let _ = writeln!(out, "    {}", printer.paint(Tone::Dim, &line));
    }
    for (finding, times) in distinct(&judgement.findings) {
        let _ = write!(out, "\n{}", found(finding, times, boundary.clauses(), printer));
    }
    let count = match judgement.findings.len() {
        0 => printer.paint(Tone::Good, "no finding"),
        count => printer.paint(Tone::Bad, &plural(count, "finding")),
    };
    let _ = writeln!(out, "\n{count}");
    if let Some(reason) = &judgement.untestable {
        let _ = writeln!(out, "untestable: {}", one_line(&reason.to_string()));
    }
    out
}

/// Result of shrinking, on one line.
pub fn shrunk(shrunk: &Shrunk) -> String {
    let Shrunk { steps_before, steps_after, bytes_before, bytes_after, runs, runs_per_s, .. } = shrunk;
    let sure = match (shrunk.confirmed, *runs) {
        (true, _) => ", confirmed",
        (false, 0) => ", no time to shrink",
        (false, _) => ", nothing could be removed",
    };
    format!(
        "shrunk from {steps_before} to {steps_after} steps and from {bytes_before} to {bytes_after} bytes: \
         {runs} conversations, {runs_per_s:.0}/s{sure}\n"
    )
}

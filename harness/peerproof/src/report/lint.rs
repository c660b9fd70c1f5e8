//! Findings about each side of a conversation, for people and as lines of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::printer::{Printer, Tone};
use super::screen::{level_of_finding, plural};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::contract::boundary::level;
use peerproof_engine::contract::lint::LintResult;
use peerproof_engine::data::clause::Level;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::text::{one_line, wrap};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Maximum number of findings shown in full per clause and reason; the others are counted.
const SHOWN_MAX: usize = 3;
/// Maximum length of a quoted message, characters.
const CHARS_MAX: usize = 160;

/// Time at which each step was sent, microseconds.
fn times(transcript: &Transcript) -> BTreeMap<usize, u64> {
    let sent = transcript.events.iter().filter_map(|event| match event.kind {
        EventKind::Sent { step, .. } => Some((step, event.at_us)),
        _ => None,
    });
    sent.collect()
}

/// Client's message in the step of a finding, and its time in microseconds. A recorded client may write a line in pieces:
/// then the line up to this step.
fn said(
    transcript: &Transcript,
    times: &BTreeMap<usize, u64>,
    finding: &Finding,
) -> Option<(String, Option<u64>)> {
    let index = finding.step?;
    let piece = |index: usize| match &transcript.plan.steps.get(index)?.act {
        Act::Send { payload, .. } => Some(payload),
        _ => None,
    };
    piece(index)?;
    let is_begun =
        |at: &usize| transcript.plan.recorded && piece(*at).is_some_and(|before| !before.ends_line());
    let begin = (0..index).rev().take_while(is_begun).last().unwrap_or(index);
    let line = (begin..=index).filter_map(piece).cloned().fold(Payload::default(), Payload::then);
    Some((one_line(&line.summary(CHARS_MAX)), times.get(&index).copied()))
}

/// Renders text for a console.
pub fn render(
    boundary: &dyn Boundary,
    transcript: &Transcript,
    linted: &LintResult,
    printer: &Printer,
) -> String {
    let mut out = String::new();
    let times = times(transcript);
    for verdict in &linted.verdicts {
        let name = printer.paint(Tone::Head, verdict.side.word());
        let count = match verdict.findings.len() {
            0 => printer.paint(Tone::Good, "no finding"),
            count => printer.paint(Tone::Bad, &plural(count, "finding")),
        };
        let _ = writeln!(out, "{name}  {count}");
        let mut of_key: Vec<(&Finding, usize)> = Vec::new();
        for finding in &verdict.findings {
            let same = |(other, _): &&mut (&Finding, usize)| other.key() == finding.key();
            let count = match of_key.iter_mut().find(same) {
                Some((_, count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    of_key.push((finding, 1));
                    heading(&mut out, boundary, finding, printer);
                    1
                }
            };
            if count <= SHOWN_MAX {
                if let Some((text, at_us)) = said(transcript, &times, finding) {
                    let at = at_us.map_or(String::new(), |us| format!("  ({:.3} s)", us as f64 / 1e6));
                    let _ = writeln!(out, "    {}", printer.paint(Tone::Dim, &format!("→ {text}{at}")));
                }
                let _ = writeln!(out, "    expected  {}", one_line(&finding.expected));
                let _ = writeln!(out, "    got       {} ({})", one_line(&finding.got), finding.reason);
            }
        }
        for (finding, count) in of_key.iter().filter(|(_, count)| *count > SHOWN_MAX) {
            let more = count - SHOWN_MAX;
            let _ = writeln!(out, "  {} ({}): {more} more of the same", finding.clause, finding.reason);
        }
        out.push('\n');
    }
    if let Some(why) = &linted.undecided {
        let _ = writeln!(out, "undecided: {}", one_line(&why.to_string()));
    }
    out
}

fn heading(out: &mut String, boundary: &dyn Boundary, finding: &Finding, printer: &Printer) {
    let clause = boundary.clauses().iter().find(|clause| clause.id == finding.clause);
    let level = level(boundary, &finding.clause);
    let tone = if level == Level::Should { Tone::Warn } else { Tone::Bad };
    let id = printer.paint(tone, &finding.clause.0);
    let page = clause.map_or("", |clause| clause.page.as_str());
    let _ = writeln!(out, "\n  {id} {}  {}", level_of_finding(level), printer.paint(Tone::Dim, page));
    if let Some(clause) = clause {
        let _ = writeln!(out, "{}", wrap(&clause.text, "    "));
    }
}

/// Renders a header line, a line per finding, and a footer with the counts by side.
pub fn ndjson(boundary: &dyn Boundary, transcript: &Transcript, linted: &LintResult, file: &Path) -> String {
    let sets = boundary.description().requirements;
    let held = Some(transcript.facts.requirements.as_str()).filter(|set| !set.is_empty());
    let mut lines = vec![json!({
        "type": "lint",
        "file": file.display().to_string(),
        "boundary": boundary.name(),
        "check": transcript.check,
        "requirements": held.or_else(|| sets.first().copied()),
        "sides": linted.verdicts.iter().map(|verdict| verdict.side.word()).collect::<Vec<_>>(),
    })];
    let mut counts = serde_json::Map::new();
    let times = times(transcript);
    for verdict in &linted.verdicts {
        counts.insert(verdict.side.word().to_owned(), verdict.findings.len().into());
        for finding in &verdict.findings {
            let said = said(transcript, &times, finding);
            lines.push(json!({
                "type": "finding",
                "side": verdict.side.word(),
                "clause": finding.clause,
                "level": level(boundary, &finding.clause),
                "reason": finding.reason,
                "nature": finding.nature,
                "step": finding.step,
                "at_us": said.as_ref().and_then(|(_, at_us)| *at_us),
                "sent": said.map(|(text, _)| text),
                "expected": finding.expected,
                "got": finding.got,
            }));
        }
    }
    lines.push(json!({ "type": "end", "findings": counts, "undecided": linted.undecided }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

//! Confirmation of differences between peers, and the shortest conversation that shows each.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::differences::{Difference, Differences, Shortest};
use super::stage::{MatrixStage, Sighting};
use crate::contract::boundary;
use crate::data::blame::Misconfigured;
use crate::data::json::{self, DecodeLimits};
use crate::data::payload::{Payload, Vars};
use crate::data::plan::{Act, Plan};
use crate::data::transcript::Transcript;
use crate::drive::parallel;
use crate::drive::private;
use crate::run::reproducer::conversation;
use crate::run::shrink::simpler;

/// Number of sightings required, including the first.
pub const TIMES: u32 = 3;

/// Maximum line length and number of lines of a conversation in the report.
const CHARS_MAX: usize = 200;
const LINES_MAX: usize = 12;
/// Maximum length of a line that is simplified.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Repeats every conversation with differences. Moves those that do not show three times out of three to `unsteady` and
/// shortens the others while the budget lasts. Returns the transcript of the first deviating peer for each remaining
/// difference.
pub fn confirm(
    found: &mut Differences,
    stage: &MatrixStage<'_>,
    budget: Duration,
    progress: &(dyn Fn(String) + Sync),
) -> Vec<Transcript> {
    let stage = &stage.anew();
    let all = std::mem::take(&mut found.differences);
    let conversations: BTreeSet<u64> = all.iter().map(|difference| difference.conversation).collect();
    let again = parallel::each(stage.jobs(), conversations, |n| {
        progress(format!("conversation {n} again"));
        repeat(stage, n, all.iter().filter(|difference| difference.conversation == n))
    });
    let mut confirmed = Vec::new();
    for (difference, sighting) in again.into_iter().flatten() {
        match sighting.filter(|_| difference.shown == TIMES) {
            Some(sighting) => confirmed.push((difference, sighting)),
            None => found.unsteady.push(difference),
        }
    }
    confirmed.sort_by_key(|(difference, _)| all.iter().position(|other| other.is_like(difference)));
    let (end, count) = (Instant::now() + budget, confirmed.len());
    let mut transcripts = Vec::new();
    for (at, (mut difference, sighting)) in confirmed.into_iter().enumerate() {
        let Some(plan) = stage.plan(difference.conversation) else { continue };
        let left = end.saturating_duration_since(Instant::now());
        progress(format!("shrinking difference {} of {count}", at + 1));
        let share = left / u32::try_from((count - at).min(4)).unwrap_or(4);
        let began = Work { stage, difference: &difference, end: Instant::now() + share, runs: 0 };
        let (smallest, Sighting { seen, apart }, runs) = began.shortest(&plan, sighting);
        difference.shortest = Some(Shortest {
            conversation: conversation(&apart, CHARS_MAX, LINES_MAX),
            steps: (plan.steps.len(), smallest.steps.len()),
            bytes: (plan.bytes(), smallest.bytes()),
            runs,
            transcript: None,
        });
        (difference.sent, difference.clusters, difference.expected) =
            (seen.sent, seen.clusters, seen.expected);
        found.differences.push(difference);
        transcripts.push(apart);
    }
    transcripts
}

/// Repeats a conversation until each of its differences has shown often enough or failed to. Returns them with their
/// last sighting.
fn repeat<'a>(
    stage: &MatrixStage<'_>,
    n: u64,
    differences: impl Iterator<Item = &'a Difference>,
) -> Vec<(Difference, Option<Sighting>)> {
    let mut all: Vec<(Difference, Option<Sighting>)> = differences.map(|one| (one.clone(), None)).collect();
    let Some(plan) = stage.plan(n) else { return all };
    for shown in 1..TIMES {
        let mut steady = all.iter_mut().filter(|(difference, _)| difference.shown == shown).peekable();
        if steady.peek().is_none() {
            break;
        }
        let seen = stage.all(&plan).map(|transcripts| (stage.differences(n, &transcripts), transcripts));
        for (difference, sighting) in steady {
            match &seen {
                Ok((seen, transcripts)) => *sighting = stage.sighting(difference, seen, transcripts),
                Err(error) => (difference.cut, *sighting) = (Some(error.to_string()), None),
            }
            difference.shown += u32::from(sighting.is_some());
        }
    }
    all
}

/// Writes the transcript of each difference into `folder`, for `replay` and `shrink`, and sets its file name.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn keep(found: &mut Differences, transcripts: &[Transcript], folder: &Path) -> Result<(), Misconfigured> {
    let path = |number: usize| folder.join(format!("difference-{number}.ndjson"));
    for (at, (difference, transcript)) in found.differences.iter_mut().zip(transcripts).enumerate() {
        let Some(shortest) = &mut difference.shortest else { continue };
        let path = path(at + 1);
        let cannot = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        transcript.store(BufWriter::new(private::create(&path).map_err(cannot)?)).map_err(cannot)?;
        shortest.transcript = path.file_name().map(|name| name.to_string_lossy().into_owned());
    }
    // Remove files of an earlier run that found more.
    let is_gone = |number: &usize| std::fs::remove_file(path(*number)).is_ok();
    let _ = (found.differences.len() + 1..).take_while(is_gone).count();
    Ok(())
}

/// Shrinking of one difference.
struct Work<'a> {
    stage: &'a MatrixStage<'a>,
    difference: &'a Difference,
    end: Instant,
    runs: usize,
}

impl Work<'_> {
    fn goes_on(&self) -> bool {
        Instant::now() < self.end && !self.stage.is_interrupted()
    }

    fn shows(&mut self, plan: &Plan) -> Option<Sighting> {
        self.runs += 1;
        let plan = Arc::new(plan.clone());
        let transcripts = self.stage.all(&plan).ok()?;
        let seen = self.stage.differences(self.difference.conversation, &transcripts);
        self.stage.sighting(self.difference, &seen, &transcripts)
    }

    /// Smallest plan found, its sighting, and the number of conversations it took. `sighting` belongs to `plan`.
    fn shortest(mut self, plan: &Plan, sighting: Sighting) -> (Plan, Sighting, usize) {
        let mut best = plan.clone();
        self.steps(&mut best);
        for at in (0..best.steps.len()).rev() {
            while self.goes_on() && self.is_simpler(&mut best, at) {}
        }
        self.steps(&mut best);
        // The plan must show the difference once more.
        if best != *plan
            && let Some(sighting) = self.shows(&best)
        {
            return (best, sighting, self.runs);
        }
        (plan.clone(), sighting, self.runs)
    }

    /// Drops messages, large groups first.
    fn steps(&mut self, best: &mut Plan) {
        let messages = |plan: &Plan| -> Vec<usize> {
            (0..plan.steps.len()).filter(|at| matches!(plan.steps[*at].act, Act::Send { .. })).collect()
        };
        let mut size = messages(best).len().div_ceil(2);
        while size > 0 && self.goes_on() {
            let mut end = messages(best).len();
            while end > 0 && self.goes_on() {
                let units = messages(best);
                end = end.min(units.len());
                let begin = end.saturating_sub(size);
                let gone: BTreeSet<usize> = units[begin..end].iter().copied().collect();
                let mut smaller = best.clone();
                let mut at = 0;
                smaller.steps.retain(|_| {
                    at += 1;
                    !gone.contains(&(at - 1))
                });
                if gone.len() < units.len() && self.shows(&smaller).is_some() {
                    *best = smaller;
                }
                end = begin;
            }
            size /= 2;
        }
    }

    /// Makes one simplification of a message; returns false if none is left.
    fn is_simpler(&mut self, best: &mut Plan, at: usize) -> bool {
        let Some(boundary) = self.stage.peers.first().map(|peer| peer.boundary) else { return false };
        for mut plan in boundary.shrink_payload(best, at).into_iter().chain(simpler_lines(best, at)) {
            if !self.goes_on() {
                return false;
            }
            boundary::await_what_is_due(boundary, &self.stage.facts, &mut plan, at);
            if plan != *best && self.shows(&plan).is_some() {
                *best = plan;
                return true;
            }
        }
        false
    }
}

/// Plans in which one line of a step's payload is simplified.
fn simpler_lines(plan: &Plan, at: usize) -> Vec<Plan> {
    let Some(Act::Send { payload, .. }) = plan.steps.get(at).map(|step| &step.act) else { return Vec::new() };
    let text = payload.expand(&Vars::new()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text.filter(|text| text.len() <= LINE_BYTES_MAX) else { return Vec::new() };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut plans = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let body = line.trim_end_matches(['\n', '\r']);
        let Ok(decoded) = json::decode(body.as_bytes(), &DecodeLimits::default()) else { continue };
        for value in simpler(&decoded.value) {
            let mut changed = lines[..number].concat();
            value.write_text(&mut changed);
            changed.push_str(&line[body.len()..]);
            changed.push_str(&lines[number + 1..].concat());
            let mut smaller = plan.clone();
            if let Act::Send { payload, .. } = &mut smaller.steps[at].act {
                *payload = Payload::text(changed);
            }
            plans.push(smaller);
        }
    }
    plans
}

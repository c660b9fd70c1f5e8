//! The lines of a conversation as they were really written.

use std::collections::BTreeMap;

use crate::carriage::HTTP;
use crate::payload::{Payload, Segment, Vars};
use crate::transcript::{Kind, Transcript};

/// Stands around the name of a variable: what it stood for is not in the transcript.
pub const VARIABLE_MARK: char = '\u{10FFFD}';

/// Bytes that are kept of a line. No contract lets a longer one through, so that its end tells nothing.
const KEPT_BYTES: usize = 16 << 20;

/// One request as it was written.
#[derive(Debug, Clone)]
pub struct Line {
    /// Step whose payload ended it.
    pub step: usize,
    /// How many lines this step ended before.
    pub of_step: usize,
    /// Nothing else of the step's payload follows.
    pub last_of_step: bool,
    /// Its bytes, without the line feed, 16 MiB at the most; variables stand as marked names.
    pub bytes: Vec<u8>,
    /// Holds a variable.
    pub has_variable: bool,
    /// A line feed ended it; else the input did.
    pub ended: bool,
    /// When its last byte was queued, microseconds.
    pub at_us: u64,
}

/// The bytes of a payload with a mark for each variable.
fn expand(payload: &Payload) -> Vec<u8> {
    let vars: Vars = payload
        .variables()
        .map(|name| (name.to_owned(), format!("{VARIABLE_MARK}{name}{VARIABLE_MARK}")))
        .collect();
    payload.expand(&vars).unwrap_or_default()
}

/// Adds what there is room for to a line. Most have one piece, and doubling what is large would take as much again.
fn extend(line: &mut Vec<u8>, more: &[u8]) {
    let more = &more[..more.len().min(KEPT_BYTES - line.len())];
    line.reserve_exact(more.len());
    line.extend_from_slice(more);
}

/// Every line of a session; what follows the last line feed counts once the input was closed.
pub fn of_session(transcript: &Transcript, session: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut open_variable = false;
    let mut last = (0, 0);
    let over_http = transcript.plan.sessions.get(session).is_some_and(|spec| spec.command == HTTP);
    for event in transcript.of(session) {
        match &event.kind {
            Kind::Sent { step, payload } => {
                last = (*step, event.at_us);
                let bytes = expand(payload);
                let has_variables = payload.variables().next().is_some();
                let how = transcript.plan.steps.get(*step).and_then(|step| step.http.as_ref());
                if let Some(how) = how.filter(|_| over_http) {
                    // All of it is one body, or no message at all.
                    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes).to_vec();
                    let (step, at_us) = (*step, event.at_us);
                    lines.extend((!how.is_raw()).then(|| Line {
                        step,
                        of_step: 0,
                        last_of_step: true,
                        has_variable: has_variables && marked(&bytes),
                        bytes,
                        ended: true,
                        at_us,
                    }));
                    continue;
                }
                let mut rest: &[u8] = &bytes;
                let mut of_step = 0;
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    extend(&mut open, &rest[..end]);
                    rest = &rest[end + 1..];
                    let bytes = std::mem::take(&mut open);
                    let has_variable = (has_variables || open_variable) && marked(&bytes);
                    open_variable = false;
                    let last_of_step = rest.is_empty();
                    let (step, at_us) = (*step, event.at_us);
                    lines.push(Line { step, of_step, last_of_step, bytes, has_variable, ended: true, at_us });
                    of_step += 1;
                }
                extend(&mut open, rest);
                open_variable |= has_variables && marked(&open);
            }
            // Over HTTP what no line feed ends is never sent.
            Kind::StdinClosed if !open.is_empty() && !over_http => {
                let bytes = std::mem::take(&mut open);
                let (step, at_us) = last;
                lines.push(Line {
                    step,
                    of_step: usize::MAX,
                    last_of_step: true,
                    has_variable: open_variable,
                    bytes,
                    ended: false,
                    at_us,
                });
            }
            _ => {}
        }
    }
    lines
}

/// For each step that was sent the places of the events that began its first line and its others, among those of the
/// session: the first line may have begun in an earlier step. No frame that came before answers such a line.
pub fn begun(transcript: &Transcript, session: usize) -> BTreeMap<usize, (usize, usize)> {
    let mut begun = BTreeMap::new();
    let mut open = None;
    for (place, event) in transcript.of(session).enumerate() {
        let Kind::Sent { step, payload } = &event.kind else { continue };
        let first = open.unwrap_or(place);
        begun.entry(*step).or_insert((first, place));
        let is_ended = matches!(payload.0.last(), Some(Segment::Text(text)) if text.ends_with('\n'));
        open = match payload.lines() {
            _ if is_ended => None,
            0 => Some(first),
            _ => Some(place),
        };
    }
    begun
}

/// Place of the event that began a line, given the places of all steps.
pub fn sent(begun: &BTreeMap<usize, (usize, usize)>, line: &Line) -> usize {
    // The input's end completes what a step left open.
    let (first, other) = begun.get(&line.step).copied().unwrap_or_default();
    if matches!(line.of_step, 0 | usize::MAX) { first } else { other }
}

/// For each line feed of a session's standard output the place of the event that brought it.
pub fn line_feeds(transcript: &Transcript, session: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for (place, event) in transcript.of(session).enumerate() {
        if let Kind::Received { bytes } = &event.kind {
            places.extend(std::iter::repeat_n(place, memchr::memchr_iter(b'\n', &bytes.0).count()));
        }
    }
    places
}

/// All of standard input of a run, which is one request however often it was written to, and even where nothing was.
pub fn of_run(transcript: &Transcript, session: usize) -> Option<Line> {
    let mut steps = transcript.plan.steps.iter();
    let mut line = Line {
        step: steps.position(|step| step.session == session).unwrap_or(0),
        of_step: 0,
        last_of_step: true,
        bytes: Vec::new(),
        has_variable: false,
        ended: false,
        at_us: 0,
    };
    let mut sent = false;
    let mut closed = false;
    let mut signalled = false;
    for event in transcript.of(session) {
        match &event.kind {
            Kind::Sent { step, payload } => {
                line.step = if sent { line.step } else { *step };
                line.bytes.extend(expand(payload));
                line.has_variable |= payload.variables().next().is_some();
                line.at_us = event.at_us;
                sent = true;
            }
            // A run that ended before its input did has read as much as it wanted.
            Kind::StdinClosed | Kind::StdinBroken { .. } => closed = true,
            Kind::Signalled { .. } => signalled = true,
            Kind::Exited { .. } if transcript.plan.recorded => closed |= !signalled,
            _ => {}
        }
    }
    (closed && (sent || transcript.plan.recorded)).then_some(line)
}

fn marked(bytes: &[u8]) -> bool {
    let mut mark = [0; 4];
    memchr::memmem::find(bytes, VARIABLE_MARK.encode_utf8(&mut mark).as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clause::Side;
    use crate::facts::Facts;
    use crate::plan::Plan;
    use crate::transcript::Event;

    #[test]
    fn a_line_longer_than_any_contract_allows_is_kept_in_part() {
        let sent = |step, payload| Event { at_us: 0, session: 0, kind: Kind::Sent { step, payload } };
        let long = || Payload::default().repeat("x", KEPT_BYTES as u64 - 1);
        let transcript = Transcript {
            boundary: "toolhost".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(Plan::default()),
            timeout_scale: 1.0,
            events: vec![sent(0, long()), sent(1, long()), sent(2, Payload::text("\nnext\n"))],
        };
        let lines = of_session(&transcript, 0);
        let lengths: Vec<usize> = lines.iter().map(|line| line.bytes.len()).collect();
        assert_eq!(lengths, [KEPT_BYTES, 4]);
        assert!(lines[0].bytes.capacity() < KEPT_BYTES * 3 / 2, "it was not doubled");
    }
}

//! Lines of a conversation as they were really written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::data::carriage::HTTP;
use crate::data::payload::{Payload, Segment, Vars};
use crate::data::plan::Act;
use crate::data::transcript::{EventKind, Transcript};

/// Maximum bytes kept of a line. No contract allows longer lines, so the rest tells nothing.
const KEPT_BYTES: usize = 16 << 20;

/// Request line as written.
#[derive(Debug, Clone)]
pub struct RequestLine {
    /// Step whose payload completed it.
    pub step: usize,
    /// Number of earlier lines completed by this step.
    pub of_step: usize,
    /// Set if nothing else of the step's payload follows.
    pub last_of_step: bool,
    /// Bytes without the line feed, at most 16 MiB.
    pub bytes: Vec<u8>,
    /// Values of plan variables in it, in order.
    pub filled: Vec<FilledVariable>,
    /// Set if a line feed completed it, rather than the end of input.
    pub ended: bool,
    /// Time at which its last byte was queued, microseconds.
    pub at_us: u64,
}

impl RequestLine {
    /// Only line of a conversation; `bytes` lack its line feed.
    pub fn alone(bytes: &[u8]) -> Self {
        Self {
            step: 0,
            of_step: 0,
            last_of_step: true,
            bytes: bytes.to_vec(),
            filled: Vec::new(),
            ended: true,
            at_us: 0,
        }
    }
}

/// Line of a session from either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenLine {
    /// Step whose payload completed it; `None` for a line of the peer.
    pub step: Option<usize>,
    /// Index of the event that completed it, within its session.
    pub place: usize,
    /// Time of completion, microseconds.
    pub at_us: u64,
    /// Bytes without the line feed, at most 16 MiB.
    pub bytes: Vec<u8>,
    /// Set if a line feed completed it, rather than the end of input.
    pub ended: bool,
}

/// Value written for a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledVariable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable; a secret is replaced by its placeholder.
    pub bytes: Vec<u8>,
}

/// Bytes that a step wrote, with the ranges of the plan's variables.
struct WrittenStep {
    bytes: Vec<u8>,
    variables: Vec<(Range<usize>, String)>,
}

impl WrittenStep {
    fn of(transcript: &Transcript, step: usize, payload: &Payload) -> Self {
        let bytes = payload.expand(&Vars::new()).unwrap_or_default();
        let planned = match transcript.plan.steps.get(step).map(|step| &step.act) {
            Some(Act::Send { payload, .. }) => payload,
            _ => payload,
        };
        let variables = variables(planned, &bytes);
        Self { bytes, variables }
    }

    /// Values of the variables that lie within `part` of the bytes.
    fn filled(&self, part: Range<usize>) -> impl Iterator<Item = FilledVariable> {
        let within = self
            .variables
            .iter()
            .filter(move |(place, _)| place.start < part.end && part.start <= place.start);
        within.map(|(place, name)| FilledVariable {
            name: name.clone(),
            bytes: self.bytes[place.clone()].to_vec(),
        })
    }
}

/// Ranges of a payload's variables in the written bytes, found between the texts around them. If those are not found,
/// the first variable counts as all of the bytes.
fn variables(planned: &Payload, written: &[u8]) -> Vec<(Range<usize>, String)> {
    let mut places: Vec<(Range<usize>, String)> = Vec::new();
    let Some(first) = planned.variables().next() else { return places };
    let (mut at, mut open) = (0, None);
    for run in planned.0.chunk_by(|a, b| !is_variable(a) && !is_variable(b)) {
        if let [Segment::Var(name)] = run {
            // Of two adjacent variables, the second gets the whole range.
            places.extend(open.replace(name.clone()).map(|name| (at..at, name)));
            continue;
        }
        let text = Payload(run.to_vec()).expand(&Vars::new()).unwrap_or_default();
        let rest = written.get(at..).unwrap_or_default();
        let found = match &open {
            Some(_) => memchr::memmem::find(rest, &text),
            None => rest.starts_with(&text).then_some(0),
        };
        let Some(length) = found else { return vec![(0..written.len(), first.to_owned())] };
        places.extend(open.take().map(|name| (at..at + length, name)));
        at += length + text.len();
    }
    places.extend(open.map(|name| (at..written.len(), name)));
    places
}

fn is_variable(segment: &Segment) -> bool {
    matches!(segment, Segment::Var(_))
}

/// Appends as much as the limit allows. Reserves exactly, because most lines have one piece and doubling a large one
/// would waste memory.
fn extend(line: &mut Vec<u8>, more: &[u8]) {
    let more = &more[..more.len().min(KEPT_BYTES - line.len())];
    line.reserve_exact(more.len());
    line.extend_from_slice(more);
}

/// All lines of a session. Text after the last line feed counts once the input was closed.
pub fn of_session(transcript: &Transcript, session: usize) -> Vec<RequestLine> {
    let mut lines: Vec<RequestLine> = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut open_filled: Vec<FilledVariable> = Vec::new();
    let mut last = (0, 0);
    let over_http = transcript.plan.sessions.get(session).is_some_and(|spec| spec.command == HTTP);
    for event in transcript.of(session) {
        match &event.kind {
            EventKind::Sent { step, payload } => {
                last = (*step, event.at_us);
                let written = WrittenStep::of(transcript, *step, payload);
                let bytes = &written.bytes;
                let how = transcript.plan.steps.get(*step).and_then(|step| step.http.as_ref());
                if let Some(how) = how.filter(|_| over_http) {
                    // The payload is one body, or no message at all.
                    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec();
                    let (step, at_us) = (*step, event.at_us);
                    lines.extend((!how.is_raw()).then(|| RequestLine {
                        step,
                        of_step: 0,
                        last_of_step: true,
                        filled: written.filled(0..usize::MAX).collect(),
                        bytes,
                        ended: true,
                        at_us,
                    }));
                    continue;
                }
                let (mut begin, mut of_step) = (0, 0);
                for feed in memchr::memchr_iter(b'\n', bytes) {
                    extend(&mut open, &bytes[begin..feed]);
                    open_filled.extend(written.filled(begin..feed));
                    begin = feed + 1;
                    let (bytes, filled) = (std::mem::take(&mut open), std::mem::take(&mut open_filled));
                    let last_of_step = begin == written.bytes.len();
                    let (step, at_us) = (*step, event.at_us);
                    lines.push(RequestLine {
                        step,
                        of_step,
                        last_of_step,
                        bytes,
                        filled,
                        ended: true,
                        at_us,
                    });
                    of_step += 1;
                }
                extend(&mut open, &bytes[begin..]);
                open_filled.extend(written.filled(begin..usize::MAX));
            }
            // Over HTTP, text without a line feed is never sent.
            EventKind::StdinClosed if !open.is_empty() && !over_http => {
                let bytes = std::mem::take(&mut open);
                let (step, at_us) = last;
                lines.push(RequestLine {
                    step,
                    of_step: usize::MAX,
                    last_of_step: true,
                    filled: std::mem::take(&mut open_filled),
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

/// Lines of both sides in order of completion. Our last line may be completed by the end of input.
pub fn spoken(transcript: &Transcript, session: usize) -> Vec<SpokenLine> {
    let mut all = Vec::new();
    let (mut ours, mut theirs, mut last) = (Vec::new(), Vec::new(), None);
    for (place, event) in transcript.of(session).enumerate() {
        let at_us = event.at_us;
        let (step, open, bytes) = match &event.kind {
            EventKind::Received { bytes } => (None, &mut theirs, Cow::Borrowed(bytes.0.as_slice())),
            EventKind::Sent { step, payload } => {
                last = Some(*step);
                (last, &mut ours, Cow::Owned(payload.expand(&Vars::new()).unwrap_or_default()))
            }
            EventKind::StdinClosed if !ours.is_empty() => {
                let bytes = std::mem::take(&mut ours);
                all.push(SpokenLine { step: last, place, at_us, bytes, ended: false });
                continue;
            }
            _ => continue,
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = part.strip_suffix(b"\n");
            extend(open, line.unwrap_or(part));
            if line.is_some() {
                all.push(SpokenLine { step, place, at_us, bytes: std::mem::take(open), ended: true });
            }
        }
    }
    all
}

/// For each sent step, the indices of the events that began its first line and its other lines, within the session. The
/// first line may have begun in an earlier step. Frames before these events do not answer the lines.
pub fn begun(transcript: &Transcript, session: usize) -> BTreeMap<usize, (usize, usize)> {
    let mut begun = BTreeMap::new();
    let mut open = None;
    for (place, event) in transcript.of(session).enumerate() {
        let EventKind::Sent { step, payload } = &event.kind else { continue };
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

/// Index of the event that began a line; `begun` holds those of all steps.
pub fn sent(begun: &BTreeMap<usize, (usize, usize)>, line: &RequestLine) -> usize {
    // The end of input completes the line that a step left open.
    let (first, other) = begun.get(&line.step).copied().unwrap_or_default();
    if matches!(line.of_step, 0 | usize::MAX) { first } else { other }
}

/// For each line feed of a session's standard output, the index of the event that brought it.
pub fn line_feeds(transcript: &Transcript, session: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for (place, event) in transcript.of(session).enumerate() {
        if let EventKind::Received { bytes } = &event.kind {
            places.extend(std::iter::repeat_n(place, memchr::memchr_iter(b'\n', &bytes.0).count()));
        }
    }
    places
}

/// Standard input of a run as one request, however many writes it had, even none.
pub fn of_run(transcript: &Transcript, session: usize) -> Option<RequestLine> {
    let mut steps = transcript.plan.steps.iter();
    let mut line = RequestLine {
        step: steps.position(|step| step.session == session).unwrap_or(0),
        of_step: 0,
        last_of_step: true,
        bytes: Vec::new(),
        filled: Vec::new(),
        ended: false,
        at_us: 0,
    };
    let mut sent = false;
    let mut closed = false;
    let mut signalled = false;
    for event in transcript.of(session) {
        match &event.kind {
            EventKind::Sent { step, payload } => {
                line.step = if sent { line.step } else { *step };
                let written = WrittenStep::of(transcript, *step, payload);
                line.filled.extend(written.filled(0..usize::MAX));
                line.bytes.extend(written.bytes);
                line.at_us = event.at_us;
                sent = true;
            }
            // A run that ended before its input has read as much as it wanted.
            EventKind::StdinClosed | EventKind::StdinBroken { .. } => closed = true,
            EventKind::Signalled { .. } => signalled = true,
            EventKind::Exited { .. } if transcript.plan.recorded => closed |= !signalled,
            _ => {}
        }
    }
    (closed && (sent || transcript.plan.recorded)).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::plan::{Chunking, Plan, Step};
    use crate::data::transcript::{Bytes, Event};

    #[test]
    fn what_a_variable_stood_for_is_found_in_what_was_written() {
        let planned = Payload::text("{\"a\":\"").var("a").then(Payload::text("\"}\n{\"b\":")).var("b");
        let planned = planned.var("c").then(Payload::text("}\n"));
        let found = |written: &str| {
            let payload = Payload::text(written);
            let steps = vec![Step::new(Act::Send {
                payload: planned.clone(),
                chunking: Chunking::Whole,
                await_frames: 0,
            })];
            let transcript = Transcript {
                boundary: "toy".to_owned(),
                check: "by-hand".to_owned(),
                facts: Arc::new(Facts::new(Side::Provider)),
                plan: Arc::new(Plan { steps, ..Plan::default() }),
                timeout_scale: 1.0,
                events: vec![Event { at_us: 0, session: 0, kind: EventKind::Sent { step: 0, payload } }],
            };
            let lines = of_session(&transcript, 0).into_iter();
            lines
                .map(|line| {
                    line.filled
                        .into_iter()
                        .map(|filled| format!("{}={}", filled.name, String::from_utf8_lossy(&filled.bytes)))
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(found("{\"a\":\"x-y\"}\n{\"b\":12}\n"), ["a=x-y", "b= c=12"]);
        assert_eq!(found("{\"a\":\"\"}\n{\"b\":}\n"), ["a=", "b= c="]);
        assert_eq!(found("sealed\n"), ["a=sealed\n"], "all of it may be one");
    }

    #[test]
    fn lines_of_both_sides_stand_in_the_order_in_which_they_were_complete() {
        let kinds = [
            EventKind::Sent { step: 4, payload: Payload::text("a\nb") },
            EventKind::Received { bytes: Bytes(b"1\n2\n3".to_vec()) },
            EventKind::Sent { step: 5, payload: Payload::text("c\nd") },
            EventKind::Received { bytes: Bytes(b"\n4".to_vec()) },
            EventKind::StdinClosed,
        ];
        let events = kinds.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect();
        let transcript = Transcript {
            boundary: "toy".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Consumer)),
            plan: Arc::new(Plan::default()),
            timeout_scale: 1.0,
            events,
        };
        let told = spoken(&transcript, 0).into_iter().map(|line| {
            let text = String::from_utf8_lossy(&line.bytes).into_owned();
            (line.place, line.step, text, line.ended)
        });
        let line = |place, step, text: &str, ended| (place, step, text.to_owned(), ended);
        let expected = [
            line(0, Some(4), "a", true),
            line(1, None, "1", true),
            line(1, None, "2", true),
            line(2, Some(5), "bc", true),
            line(3, None, "3", true),
            line(4, Some(5), "d", false),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_longer_than_any_contract_allows_is_kept_in_part() {
        let sent = |step, payload| Event { at_us: 0, session: 0, kind: EventKind::Sent { step, payload } };
        let long = || Payload::default().repeat("x", KEPT_BYTES as u64 - 1);
        let transcript = Transcript {
            boundary: "toy".to_owned(),
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

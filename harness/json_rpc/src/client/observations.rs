//! Facts of a conversation with a client: lines of both sides, requests and the results file.

use super::super::model::DEPTH_CERTAIN;
use super::super::signature::{Signable, signable};
use super::scenario::Scenario;
use peerproof_engine::contract::session_lines::SessionLine;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Decoded, Json};
use peerproof_engine::data::lines::spoken;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{Event, EventKind, Transcript};

/// Most lines of the client that are examined. Bounds the cost of a client that prints endlessly.
pub(crate) const LINES_MAX: usize = 8_192;

/// Length above which a line may end a call as `too_large`.
pub(crate) const LONG_BYTES: usize = 1_000_000;

/// Part of a line that a client must understand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredPart {
    /// All of it.
    Plain,
    /// Only that it is a message. Its value has duplicate names, lone surrogates, or numbers beyond double
    /// precision.
    Odd,
    /// Nothing: invalid UTF-8, too long, or too deep.
    Wild,
}

/// Part of `line` that a client must understand.
pub(crate) fn sense(line: &SessionLine) -> RequiredPart {
    match &line.decoded {
        _ if line.length > LONG_BYTES => RequiredPart::Wild,
        Err(error) if error.kind == DecodeErrorKind::InvalidUtf8 => RequiredPart::Wild,
        Err(_) => RequiredPart::Plain,
        Ok(Decoded { facts, .. }) if facts.depth > DEPTH_CERTAIN => RequiredPart::Wild,
        Ok(Decoded { facts, .. }) if facts.duplicate_keys || facts.lone_surrogates => RequiredPart::Odd,
        Ok(Decoded { value, .. }) if signable(value) != Signable::Yes => RequiredPart::Odd,
        Ok(_) => RequiredPart::Plain,
    }
}

/// A request or notification that the client sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Index of the call in the scenario.
    pub call: usize,
    /// Time, microseconds.
    pub at_us: u64,
    /// Its id.
    pub id: Option<Json>,
    /// Index of its line among those of both sides.
    pub place: usize,
}

/// Departure of the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerDeparture {
    /// Number of lines before it.
    pub place: usize,
    /// Time, microseconds.
    pub at_us: u64,
}

/// Messages of both sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Talk {
    /// Lines, in the order of completion.
    pub lines: Vec<SessionLine>,
    /// The client's requests of known calls.
    pub requests: Vec<Request>,
    /// Departure of the server, if any.
    pub gone: Option<ServerDeparture>,
    /// True if the client sent a response.
    pub has_answered: bool,
    /// Time of the last event, microseconds.
    pub end_us: u64,
}

impl Talk {
    /// Reads a session. A server that does not go away keeps the client's input open to the end.
    pub(crate) fn of(transcript: &Transcript, session: usize, scenario: &Scenario, goes_away: bool) -> Self {
        let mut spoken = spoken(transcript, session);
        let mut count = 0;
        spoken.retain(|line| {
            count += usize::from(line.step.is_none());
            let is_looked_at = line.step.is_some() || count < LINES_MAX;
            is_looked_at && !line.bytes.iter().all(u8::is_ascii_whitespace)
        });
        let is_end =
            |kind: &EventKind| matches!(kind, EventKind::StdinClosed | EventKind::StdinBroken { .. });
        let closed = transcript.of(session).enumerate().find(|(_, event)| is_end(&event.kind));
        let gone = closed.filter(|_| goes_away).map(|(closed, event)| ServerDeparture {
            place: spoken.partition_point(|line| line.place < closed),
            at_us: event.at_us,
        });
        let lines: Vec<SessionLine> = spoken.iter().map(SessionLine::of).collect();
        let mut talk = Self { lines, gone, ..Self::default() };
        talk.end_us = transcript.of(session).last().map_or(0, |event| event.at_us);
        let mut requests = Vec::new();
        for (place, line, messages) in talk.of_client() {
            requests.extend(messages.iter().filter_map(|message| {
                let method = message.get("method").and_then(Json::as_str)?;
                let call = scenario.calls.iter().position(|call| call.method == method)?;
                Some(Request { call, at_us: line.at_us, id: message.get("id").cloned(), place })
            }));
        }
        let has_answered = talk.of_client().any(|(_, _, messages)| messages.iter().any(is_response));
        (talk.requests, talk.has_answered) = (requests, has_answered);
        talk
    }

    /// The client's lines that hold JSON: index, line and messages.
    pub(crate) fn of_client(&self) -> impl Iterator<Item = (usize, &SessionLine, &[Json])> {
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| !line.is_ours && line.value().is_some())
            .map(|(place, line)| (place, line, line.messages()))
    }

    /// True if another call had a pending request with the same id.
    pub(crate) fn is_doubtful(&self, request: &Request) -> bool {
        self.requests.iter().any(|other| {
            let (earlier, later) =
                if other.place <= request.place { (other, request) } else { (request, other) };
            other.call != request.call
                && other.id.is_some()
                && other.id == request.id
                && !is_answered(&self.lines, earlier, later.place)
        })
    }

    /// True if a response in line `place` answers a request of the server.
    pub(crate) fn was_asked(&self, place: usize, response: &Json) -> bool {
        let ours = self.lines[..place].iter().filter(|line| line.is_ours);
        ours.flat_map(SessionLine::messages)
            .any(|ours| ours.get("method").is_some() && ours.get("id") == response.get("id"))
    }
}

/// True if a message can only be meant as a response.
pub(crate) fn is_response(value: &Json) -> bool {
    value.get("method").is_none() && (value.get("result").is_some() || value.get("error").is_some())
}

/// True if a line before `place` may have ended `request`: its answer, an error with id null, or an over-long line.
pub(crate) fn is_answered(lines: &[SessionLine], request: &Request, place: usize) -> bool {
    let answers = |message: &Json| {
        let id = message.get("id");
        message.get("method").is_none() && (id == request.id.as_ref() || id.is_none_or(Json::is_null))
    };
    let ours = lines[request.place..place].iter().filter(|line| line.is_ours);
    ours.into_iter().any(|line| line.length > LONG_BYTES || line.messages().iter().any(answers))
}

/// True if the time of a call sent at `sent_us` may have been over at `now_us`. Both are times of reading; on a
/// busy machine the request was written earlier.
pub(crate) fn is_over(sent_us: u64, now_us: u64, timeout_ms: u64) -> bool {
    let late_ms = (timeout_ms / 2).max(50);
    now_us.saturating_sub(sent_us) / 1_000 + late_ms >= timeout_ms
}

/// One line of the results file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    /// Ref of the call.
    pub name: String,
    /// Outcome as the client reported it.
    pub outcome: String,
    /// Requests that were written whole.
    pub attempts: u64,
    /// Time from the start to the end of the call, ms.
    pub elapsed_ms: u64,
    /// Value of the member `result` or `error`.
    pub value: Option<Json>,
    /// Number of chunks that arrived in order. A client may list the chunks instead.
    pub chunks: Option<u64>,
    /// True if the client reports a complete stream.
    pub stream_ok: Option<bool>,
}

/// Outcomes that the contract knows.
pub(crate) const OUTCOMES: [&str; 7] =
    ["result", "error", "timeout", "disconnected", "invalid", "sent", "too_large"];

impl CallResult {
    /// Describes the end of the call in one phrase.
    pub(crate) fn phrase(&self) -> String {
        let value = self.value.as_ref().map(|value| format!(": {}", value.to_text()));
        let (name, outcome, value) = (&self.name, &self.outcome, value.unwrap_or_default());
        format!("{name:?}: {outcome} after {} requests and {} ms{value}", self.attempts, self.elapsed_ms)
    }
}

/// Reads the results file from an event: its results, and the first fault in its form.
pub(crate) fn results(event: &Event) -> (Vec<CallResult>, Option<String>) {
    let held = match &event.kind {
        EventKind::FileHeld { file, bytes } if file == super::RESULTS => bytes.0.as_slice(),
        _ => &[],
    };
    let mut noted = Vec::new();
    let mut fault = None;
    for line in held.split(|byte| *byte == b'\n').take(LINES_MAX) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match read(line) {
            Ok(read) => noted.push(read),
            Err(error) => {
                let text = shorten(&String::from_utf8_lossy(line), 160).into_owned();
                fault.get_or_insert(format!("{error}: {text}"));
            }
        }
    }
    (noted, fault)
}

fn read(line: &[u8]) -> Result<CallResult, String> {
    let value = json::decode(line, &DecodeLimits::default()).map_err(|error| error.to_string())?.value;
    let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(whole);
    let outcome = text("outcome").ok_or("no string `outcome`")?;
    if !OUTCOMES.contains(&outcome.as_str()) {
        return Err(format!("unknown outcome {outcome:?}"));
    }
    let member = match outcome.as_str() {
        "result" => Some(value.get("result").ok_or("no `result`")?),
        "error" => Some(value.get("error").ok_or("no `error`")?),
        _ => None,
    };
    let chunks = value.get("chunks");
    Ok(CallResult {
        name: text("ref").ok_or("no string `ref`")?,
        outcome,
        attempts: number("attempts").ok_or("`attempts` is not an integer")?,
        elapsed_ms: number("elapsed_ms").ok_or("`elapsed_ms` is not a number")?,
        value: member.cloned(),
        chunks: chunks.and_then(|chunks| match chunks.as_array() {
            Some(list) => Some(list.len() as u64),
            None => chunks.as_u64(),
        }),
        stream_ok: value.get("stream_ok").and_then(Json::as_bool),
    })
}

/// A non-negative number without its fraction; milliseconds may have one.
fn whole(value: &Json) -> Option<u64> {
    let number = value.as_f64().filter(|number| *number >= 0.0 && *number < 1e15)?;
    // Below 1e15, so both types can represent it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(number as u64)
}

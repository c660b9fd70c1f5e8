//! What a conversation with a client shows: its lines, our lines, and what it wrote down.

use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::payload::{Vars, shorten};
use peerproof_engine::transcript::{Kind, Transcript};

/// Lines of the client's that are looked at; one that prints without end must not cost more.
const LINES_MAX: usize = 8_192;

/// Whose line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The client's.
    Client,
    /// Ours.
    Server,
}

/// One line of the conversation.
#[derive(Debug, Clone)]
pub struct Line {
    /// Who wrote it.
    pub from: From,
    /// When it was complete, microseconds.
    pub at_us: u64,
    /// The value, or why it is none.
    pub value: Result<Json, String>,
    /// Its text, shortened.
    pub text: String,
    /// Bytes of it.
    pub length: usize,
}

/// A line that ends at `at_us`.
fn line(from: From, at_us: u64, bytes: &[u8]) -> Line {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let value = json::decode(bytes, &DecodeLimits::default());
    Line {
        from,
        at_us,
        value: value.map(|decoded| decoded.value).map_err(|error| error.to_string()),
        text: shorten(&String::from_utf8_lossy(bytes), 240).into_owned(),
        length: bytes.len(),
    }
}

/// The conversation of a session, in order, and what of the client's is no line.
pub fn conversation(transcript: &Transcript, session: usize) -> (Vec<Line>, Vec<u8>) {
    let mut lines = Vec::new();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    let mut count = 0;
    for event in transcript.of(session) {
        let (from, held, bytes) = match &event.kind {
            Kind::Received { bytes } => (From::Client, &mut theirs, bytes.0.clone()),
            Kind::Sent { payload, .. } => {
                (From::Server, &mut ours, payload.expand(&Vars::new()).unwrap_or_default())
            }
            _ => continue,
        };
        let mut rest = bytes.as_slice();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            held.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if !held.iter().all(u8::is_ascii_whitespace) {
                count += usize::from(from == From::Client);
                if from == From::Server || count < LINES_MAX {
                    lines.push(line(from, event.at_us, held));
                }
            }
            held.clear();
        }
        held.extend_from_slice(rest);
    }
    (lines, theirs)
}

/// One line of the results file.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// Which call.
    pub name: String,
    /// How it ended.
    pub outcome: String,
    /// Requests that were written whole.
    pub attempts: u64,
    /// Time from its beginning to its end, ms.
    pub elapsed_ms: u64,
    /// `result` or `error`.
    pub value: Option<Json>,
    /// Number of chunks that came in order; a client may as well list them.
    pub chunks: Option<u64>,
    /// Whether the stream was whole.
    pub stream_ok: Option<bool>,
}

/// The outcomes there are.
pub const OUTCOMES: [&str; 7] =
    ["result", "error", "timeout", "disconnected", "invalid", "sent", "too_large"];

/// What the client wrote down, and what is wrong with its form.
pub fn results(transcript: &Transcript, session: usize) -> (Vec<Noted>, Option<String>) {
    let held = transcript.of(session).find_map(|event| match &event.kind {
        Kind::FileHeld { file, bytes } if file == super::RESULTS => Some(bytes.0.as_slice()),
        _ => None,
    });
    let mut noted = Vec::new();
    let mut fault = None;
    for line in held.unwrap_or_default().split(|byte| *byte == b'\n').take(LINES_MAX) {
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

fn read(line: &[u8]) -> Result<Noted, String> {
    let value = json::decode(line, &DecodeLimits::default()).map_err(|error| error.to_string())?.value;
    let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(whole);
    let outcome = text("outcome").ok_or("no outcome")?;
    if !OUTCOMES.contains(&outcome.as_str()) {
        return Err(format!("no outcome is called {outcome:?}"));
    }
    let member = match outcome.as_str() {
        "result" => Some(value.get("result").ok_or("no result")?),
        "error" => Some(value.get("error").ok_or("no error")?),
        _ => None,
    };
    let chunks = value.get("chunks");
    Ok(Noted {
        name: text("ref").ok_or("no ref")?,
        outcome,
        attempts: number("attempts").ok_or("no whole number as attempts")?,
        elapsed_ms: number("elapsed_ms").ok_or("no number as elapsed_ms")?,
        value: member.cloned(),
        chunks: chunks.and_then(|chunks| match chunks.as_array() {
            Some(list) => Some(list.len() as u64),
            None => chunks.as_u64(),
        }),
        stream_ok: value.get("stream_ok").and_then(Json::as_bool),
    })
}

/// A number that is not negative, without its fraction: milliseconds may have one.
fn whole(value: &Json) -> Option<u64> {
    let number = value.as_f64().filter(|number| *number >= 0.0 && *number < 1e15)?;
    // In the range of both.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(number as u64)
}

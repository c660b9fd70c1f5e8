//! Redaction of secrets in everything that a peer produced.
//!
//! Each secret, escaped or not, is replaced by a placeholder that is escaped in the same way. So lengths, offsets and
//! equality survive, and the judge works on the redacted transcript.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::{Event, EventKind, FoundEntry, SightResult, Transcript};
use crate::data::payload::{Payload, Segment, Vars};

/// Minimum length of a secret: replacing shorter values would garble unrelated bytes.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
/// Minimum length of a value that surely is not a protocol word.
const SURELY_BYTES_MIN: usize = 8;
/// Minimum number of characters of a secret, cut off at the end of a text, that are replaced.
const CUT_CHARS_MIN: usize = 8;
/// Maximum number of consecutive backslashes that escape one character: JSON within JSON within JSON.
const BACKSLASHES_MAX: usize = 7;
/// Maximum length of one character, bytes: both halves of an escaped surrogate pair.
const UNIT_BYTES_MAX: usize = 2 * (BACKSLASHES_MAX + 5);

/// Maximum number of secrets from earlier conversations that are looked for later.
const ISSUED_MAX: usize = 64;

/// Secrets that peers gave out in this run, oldest first.
static ISSUED: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Remembers a secret that a peer gave out, so that it is replaced in later conversations, too. Ignores values that may
/// be protocol words.
pub(crate) fn remember(text: &str) {
    if text.len() < SURELY_BYTES_MIN || !is_mixed(text) {
        return;
    }
    let mut issued = ISSUED.lock().unwrap_or_else(PoisonError::into_inner);
    if !issued.iter().any(|known| known == text) {
        issued.push_back(text.to_owned());
        while issued.len() > ISSUED_MAX {
            issued.pop_front();
        }
    }
}

/// True if a text has digits and letters.
fn is_mixed(text: &str) -> bool {
    [u8::is_ascii_digit, u8::is_ascii_alphabetic].iter().all(|sort| text.bytes().any(|byte| sort(&byte)))
}

/// Secrets of one conversation with their placeholders.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Debug, Clone)]
struct Secret {
    text: String,
    /// Replacement of each character.
    pairs: Vec<(char, char)>,
    /// Set if an earlier conversation gave it out.
    is_earlier: bool,
}

impl Secrets {
    /// Adds a secret that the peer gave out.
    pub fn add(&mut self, text: &str) {
        self.insert(text, false);
    }

    /// Adds the secrets of earlier conversations.
    fn add_earlier(&mut self) {
        let issued = ISSUED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        issued.iter().for_each(|text| self.insert(text, true));
    }

    fn insert(&mut self, text: &str, is_earlier: bool) {
        if text.len() < SECRET_BYTES_MIN || self.0.iter().any(|secret| secret.text == text) {
            return;
        }
        let pairs = covered(text, self.0.len() + 1);
        self.0.push(Secret { text: text.to_owned(), pairs, is_earlier });
    }

    /// Adds a value configured under the name of a secret, unless it is a number or a short word.
    pub fn add_configured(&mut self, text: &str) {
        if text.parse::<f64>().is_err() && (text.len() >= SURELY_BYTES_MIN || is_mixed(text)) {
            self.add(text);
        }
    }

    /// Removes secrets that stand openly in the stored facts or plan of a transcript.
    pub(crate) fn beyond(self, transcript: &Transcript) -> Self {
        let open = serde_json::to_string(&(transcript.facts.as_ref(), transcript.plan.as_ref()));
        self.without(&open.unwrap_or_default())
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if `bytes` may end within a secret.
    pub(crate) fn may_go_on(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| {
            let longest = secret.pairs.len() * UNIT_BYTES_MAX;
            (bytes.len().saturating_sub(longest)..bytes.len()).any(|at| secret.is_begun_at(at, bytes))
        })
    }

    /// Removes secrets that stand in `text`, which is stored openly.
    fn without(mut self, text: &str) -> Self {
        self.0.retain(|secret| !text.contains(&secret.text));
        self
    }

    /// Replaces every secret in `bytes`, and a partial secret at their end; returns true if there was any.
    pub(crate) fn cover(&self, bytes: &mut [u8]) -> bool {
        // A long secret may contain a shorter one.
        let mut longest: Vec<&Secret> = self.0.iter().collect();
        longest.sort_by_key(|secret| std::cmp::Reverse(secret.text.len()));
        let mut found = false;
        for secret in longest {
            // Few conversations contain a secret of another one.
            if secret.is_earlier && memchr::memmem::find(bytes, secret.text.as_bytes()).is_none() {
                continue;
            }
            let first = secret.text.as_bytes()[0];
            let mut free_from = 0;
            while let Some(ahead) = memchr::memchr3(first, b'\\', b'%', &bytes[free_from..]) {
                let at = free_from + ahead;
                let end = secret.cover_at(at, bytes);
                found |= end.is_some();
                free_from = end.unwrap_or(at + 1);
            }
        }
        found
    }

    /// Replaces every secret in text.
    pub(crate) fn cover_text(&self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        self.cover(&mut bytes);
        // Replacements are ASCII and replace ASCII only.
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }

    /// Replaces every secret in events, even if reads divide it.
    pub(crate) fn cover_events(&self, events: &mut [Event]) {
        let mut streams: BTreeMap<(usize, String), Vec<&mut Vec<u8>>> = BTreeMap::new();
        for event in events {
            for made in event.kind.made() {
                match made {
                    PeerOutput::Piece(stream, bytes) => {
                        streams.entry((event.session, stream)).or_default().push(bytes);
                    }
                    PeerOutput::Bytes(bytes) => {
                        self.cover(bytes);
                    }
                    PeerOutput::Text(text) => self.cover_text(text),
                    PeerOutput::Payload(payload) => self.cover_payload(payload),
                }
            }
        }
        streams.into_values().for_each(|pieces| self.cover_pieces(pieces));
    }

    /// Replaces every secret in the pieces of one stream.
    pub(crate) fn cover_pieces(&self, pieces: Vec<&mut Vec<u8>>) {
        let mut whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        if self.cover(&mut whole) {
            let mut rest = whole.as_slice();
            for piece in pieces {
                let (own, others) = rest.split_at(piece.len());
                piece.copy_from_slice(own);
                rest = others;
            }
        }
    }

    /// Replaces every secret in a written payload. Names of variables stay.
    fn cover_payload(&self, payload: &mut Payload) {
        let mut segments = Vec::new();
        let mut changed = false;
        for run in payload.0.split_inclusive(|segment| matches!(segment, Segment::Var(_))) {
            let (var, literal) = match run.split_last() {
                Some((var @ Segment::Var(_), literal)) => (Some(var.clone()), literal),
                _ => (None, run),
            };
            let mut bytes = Payload(literal.to_vec()).expand(&Vars::new()).unwrap_or_default();
            if self.cover(&mut bytes) {
                changed = true;
                segments.extend(Payload::from_bytes(&bytes).0);
            } else {
                segments.extend_from_slice(literal);
            }
            segments.extend(var);
        }
        if changed {
            payload.0 = segments;
        }
    }
}

impl Secret {
    /// True if `bytes` from `at` to their end are a proper prefix of the secret.
    fn is_begun_at(&self, at: usize, bytes: &[u8]) -> bool {
        let mut end = at;
        for (c, _) in &self.pairs {
            match SpelledCharacter::read(*c, &bytes[end..]) {
                Some(unit) => end += unit.length(),
                // The last character may be incomplete.
                None => {
                    return bytes.len() - end < UNIT_BYTES_MAX && matches!(bytes[end], b'\\' | b'%' | 0x80..);
                }
            }
            if end >= bytes.len() {
                return true;
            }
        }
        false
    }

    /// Replaces the secret at `at`, or a partial one at the end of `bytes`; returns the offset after it.
    fn cover_at(&self, at: usize, bytes: &mut [u8]) -> Option<usize> {
        let mut units = Vec::new();
        let mut end = at;
        for (c, _) in &self.pairs {
            if end == bytes.len() && units.len() >= CUT_CHARS_MIN {
                break;
            }
            let unit = SpelledCharacter::read(*c, &bytes[end..])?;
            units.push((end, unit));
            end += unit.length();
        }
        for ((at, unit), (c, cover)) in units.into_iter().zip(&self.pairs) {
            if c != cover {
                unit.write(*cover, &mut bytes[at..]);
            }
        }
        Some(end)
    }
}

/// Spelling of one character, with its length in bytes.
#[derive(Debug, Clone, Copy)]
enum SpelledCharacter {
    /// The character itself.
    Plain(usize),
    /// `\u` and four digits after some backslashes, or two of them for a surrogate pair.
    Escaped(usize),
    /// Backslash and another character.
    Short(usize),
    /// `%` and two digits for each byte.
    Percent(usize),
}

impl SpelledCharacter {
    /// Spelling of `c` at the start of `text`, if it stands there.
    fn read(c: char, text: &[u8]) -> Option<Self> {
        let mut buffer = [0; 4];
        let plain = c.encode_utf8(&mut buffer).as_bytes();
        match text.first()? {
            b'%' => {
                let is_byte = |(index, byte): (usize, &u8)| {
                    text.get(index * 3) == Some(&b'%')
                        && digits(text.get(index * 3 + 1..index * 3 + 3)) == Some(u32::from(*byte))
                };
                if plain.iter().enumerate().all(is_byte) {
                    return Some(Self::Percent(plain.len() * 3));
                }
            }
            b'\\' => {
                let slashes =
                    text.iter().take(BACKSLASHES_MAX + 1).take_while(|byte| **byte == b'\\').count();
                if c == '\\' {
                    return Some(Self::Short(slashes.min(2)));
                }
                let escape = text.get(slashes)?;
                if *escape != b'u' {
                    let short = match escape {
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        other => char::from(*other),
                    };
                    return (short == c && !c.is_ascii_alphanumeric()).then_some(Self::Short(slashes + 1));
                }
                let length = slashes + 5;
                let mut units = [0; 2];
                let is_unit = |(index, unit): (usize, &u16)| {
                    digits(text.get(index * length + slashes + 1..(index + 1) * length))
                        == Some(u32::from(*unit))
                };
                let units = c.encode_utf16(&mut units);
                return units.iter().enumerate().all(is_unit).then_some(Self::Escaped(length * units.len()));
            }
            _ => {}
        }
        text.starts_with(plain).then_some(Self::Plain(plain.len()))
    }

    fn length(self) -> usize {
        match self {
            Self::Plain(length) | Self::Escaped(length) | Self::Short(length) | Self::Percent(length) => {
                length
            }
        }
    }

    /// Writes another ASCII character in this spelling.
    fn write(self, c: char, text: &mut [u8]) {
        let digits = format!("{:04x}", u32::from(c));
        match self {
            Self::Plain(_) => text[0] = u8::try_from(c).unwrap_or(b'x'),
            Self::Escaped(length) => text[length - 4..length].copy_from_slice(digits.as_bytes()),
            Self::Percent(length) => text[length - 2..length].copy_from_slice(&digits.as_bytes()[2..]),
            Self::Short(_) => {}
        }
    }
}

/// Value of hexadecimal digits.
fn digits(text: Option<&[u8]>) -> Option<u32> {
    let text = std::str::from_utf8(text?).ok()?;
    u32::from_str_radix(text, 16).ok()
}

/// Characters of `text`, each with its replacement in placeholder `n`. Characters with a short JSON escape and
/// non-ASCII ones stay, so that every spelling of the secret gets an equal placeholder.
fn covered(text: &str, n: usize) -> Vec<(char, char)> {
    let replaced = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/');
    let name = placeholder(n, text.chars().filter(|c| replaced(*c)).count());
    // A number stays a number.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let name = if is_number { format!("9{:01$}", n, text.len() - 1) } else { name };
    let mut name = name.chars();
    let mut cover = |c| if replaced(c) { name.next().unwrap_or('x') } else { c };
    text.chars().map(|c| (c, cover(c))).collect()
}

/// Stable placeholder of this length for secret `n` of a conversation.
pub fn placeholder(n: usize, length: usize) -> String {
    let name = format!("REDACTED{n}_");
    if name.len() <= length {
        return format!("{name:x<length$}");
    }
    // Short placeholders differ from each other, too.
    let number = n.to_string();
    let letters = "REDACTED".chars().take(length.saturating_sub(number.len()));
    letters.chain(number.chars()).take(length).collect()
}

/// Part of an event that a peer produced.
enum PeerOutput<'e> {
    /// Piece of a named stream.
    Piece(String, &'e mut Vec<u8>),
    /// Separate bytes.
    Bytes(&'e mut Vec<u8>),
    /// Separate text.
    Text(&'e mut String),
    /// Payload written to the peer.
    Payload(&'e mut Payload),
}

impl EventKind {
    /// All parts of the event that a peer produced or received. Every field is named here, so that a new one is not
    /// forgotten.
    fn made(&mut self) -> Vec<PeerOutput<'_>> {
        fn texts(words: &mut [String]) -> Vec<PeerOutput<'_>> {
            words.iter_mut().map(PeerOutput::Text).collect()
        }
        match self {
            Self::Started { argv } | Self::ClientStarted { argv } => texts(argv),
            Self::StartFailed { error } => vec![PeerOutput::Text(error)],
            Self::Clock { unix_ms: _ } => Vec::new(),
            Self::Sent { step: _, payload } => vec![PeerOutput::Payload(payload)],
            Self::Answered { bytes } => vec![PeerOutput::Bytes(&mut bytes.0)],
            Self::StdinClosed | Self::StdoutClosed | Self::Killed | Self::WatchOverflow => Vec::new(),
            Self::StdinBroken { unwritten_bytes: _ } | Self::ClientDeaf { unwritten_bytes: _ } => Vec::new(),
            Self::Received { bytes } => vec![PeerOutput::Piece(String::new(), &mut bytes.0)],
            Self::HttpReply {
                step: _,
                of_step: _,
                connection: _,
                reused: _,
                status: _,
                content_type,
                head,
                body_bytes: _,
                body,
                keeps_open: _,
                took_us: _,
            } => {
                let bytes = body.iter_mut().chain([head]).map(|bytes| PeerOutput::Bytes(&mut bytes.0));
                content_type.iter_mut().map(PeerOutput::Text).chain(bytes).collect()
            }
            Self::HttpFailed {
                step: _,
                of_step: _,
                connection: _,
                reason,
                wholly_sent: _,
                will_retry: _,
            } => {
                vec![PeerOutput::Text(reason)]
            }
            Self::StdoutOverflow { bytes_max: _, lines_max: _ } => Vec::new(),
            Self::Stderr { bytes, total_bytes: _ } | Self::ClientStderr { bytes, total_bytes: _ } => {
                vec![PeerOutput::Bytes(&mut bytes.0)]
            }
            Self::Signalled { signal: _ } => Vec::new(),
            Self::Exited { exit: _ } | Self::ClientExited { exit: _ } => Vec::new(),
            Self::DeadlinePassed { awaited: _, waited_ms: _, slept: _ } | Self::Waited { ms: _ } => {
                Vec::new()
            }
            Self::Memory { label: _, hwm_bytes: _ } | Self::Processor { label: _, used_ms: _ } => Vec::new(),
            Self::LeakedProcess { pid: _, command } => vec![PeerOutput::Text(command)],
            Self::LeftFile { path } => vec![PeerOutput::Text(path)],
            Self::ListenerHit { listener: _, head, body } => {
                vec![PeerOutput::Bytes(&mut head.0), PeerOutput::Bytes(&mut body.0)]
            }
            Self::ListenerReplied { listener: _, status: _, bytes: _, whole: _ } => Vec::new(),
            Self::ActorStarted { actor: _, argv, pid: _ } => texts(argv),
            Self::ActorReceived { actor, bytes, pid: _ } => {
                vec![PeerOutput::Piece(actor.clone(), &mut bytes.0)]
            }
            Self::ActorSaw { actor: _, pid: _, seen } => seen.made(),
            Self::ActorWrote { actor: _, pid: _, bytes, whole: _ } => vec![PeerOutput::Payload(bytes)],
            Self::ActorEnded { actor: _, pid: _, exit: _ } => Vec::new(),
            Self::RecordingStopped { why } => vec![PeerOutput::Text(why)],
            Self::FileHeld { file: _, bytes } => vec![PeerOutput::Bytes(&mut bytes.0)],
            Self::Looked { label: _, path, found, cut: _ } => {
                let found = found.iter_mut().flat_map(FoundEntry::made);
                std::iter::once(PeerOutput::Bytes(&mut path.0)).chain(found).collect()
            }
            Self::FilePut { path, bytes, error } => {
                let error = error.iter_mut().map(PeerOutput::Text);
                [PeerOutput::Bytes(&mut path.0), PeerOutput::Payload(bytes)]
                    .into_iter()
                    .chain(error)
                    .collect()
            }
            Self::FileMoved { from, to, error } => {
                let error = error.iter_mut().map(PeerOutput::Text);
                [from, to].map(|path| PeerOutput::Bytes(&mut path.0)).into_iter().chain(error).collect()
            }
            Self::FolderChanged { folder: _, path, change: _, is_folder: _, pair: _ } => {
                vec![PeerOutput::Bytes(&mut path.0)]
            }
            Self::ActorAlive { actor: _, label: _, role: _ } => Vec::new(),
            Self::ActorFileStays { actor: _, label: _, path } => vec![PeerOutput::Text(path)],
        }
    }
}

impl FoundEntry {
    fn made(&mut self) -> Vec<PeerOutput<'_>> {
        let Self { path, kind: _, inode: _, mode: _, total_bytes: _, bytes } = self;
        std::iter::once(path).chain(bytes).map(|bytes| PeerOutput::Bytes(&mut bytes.0)).collect()
    }
}

impl SightResult {
    fn made(&mut self) -> Vec<PeerOutput<'_>> {
        match self {
            Self::Payload { path, bytes, total_bytes: _, mode: _, folder_mode: _, is_own: _ } => {
                vec![PeerOutput::Text(path), PeerOutput::Bytes(&mut bytes.0)]
            }
            Self::NoPayload { path, error } => vec![PeerOutput::Text(path), PeerOutput::Text(error)],
            Self::Environment { bytes } => vec![PeerOutput::Bytes(&mut bytes.0)],
            Self::Limits { text } | Self::Status { text } => vec![PeerOutput::Text(text)],
            Self::Stdin { state: _, bytes } => vec![PeerOutput::Bytes(&mut bytes.0)],
        }
    }
}

impl Transcript {
    /// Replaces every secret by a placeholder of equal length, even if reads divide it. A value that stands openly in
    /// the plan or facts is not a secret: it is a protocol word or a test key.
    pub fn redact(&mut self, mut secrets: Secrets) {
        secrets.add_earlier();
        if secrets.is_empty() {
            return;
        }
        let secrets = secrets.beyond(self);
        if !secrets.is_empty() {
            secrets.cover_events(&mut self.events);
        }
    }
}

#[cfg(test)]
mod tests;

//! Secrets: what they are, where they may stand, and what stands in their places.
//!
//! A secret is replaced in everything that a peer made, escaped or not, by a placeholder that is escaped in the same way.
//! So lengths, offsets and equality survive, and oracles judge the redacted transcript.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::{Event, Found, Kind, Seen, Transcript};
use crate::payload::{Payload, Segment, Vars};

/// Shorter values are no secrets: replacing them would garble unrelated bytes.
pub const SECRET_BYTES_MIN: usize = 4;
/// A value of this length is no word that a protocol happens to use.
const SURELY_BYTES_MIN: usize = 8;
/// Where text ends within a secret, so many characters of it are replaced as well.
const CUT_CHARS_MIN: usize = 8;
/// Most backslashes in a row that escape one character: JSON within JSON within JSON.
const BACKSLASHES_MAX: usize = 7;
/// Most bytes that one character takes: both halves of a surrogate pair, escaped.
const UNIT_BYTES_MAX: usize = 2 * (BACKSLASHES_MAX + 5);

/// Most secrets of earlier conversations that are looked for in later ones.
const ISSUED_MAX: usize = 64;

/// Secrets that peers gave out in this run, the latest last.
static ISSUED: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Remembers a value that a peer gave out as a secret: it is replaced in later conversations, too. A value that may be a word of
/// a protocol is a secret only where it was given out.
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

/// The secrets of one conversation, each with its placeholder.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Debug, Clone)]
struct Secret {
    text: String,
    /// What stands for each character.
    pairs: Vec<(char, char)>,
    /// It was given out in an earlier conversation.
    is_earlier: bool,
}

impl Secrets {
    /// Adds a value that the peer gave out as a secret.
    pub fn add(&mut self, text: &str) {
        self.insert(text, false);
    }

    /// Adds those of earlier conversations.
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

    /// Adds a value that is configured under the name of a secret. A number, or a short word, is none.
    pub fn add_configured(&mut self, text: &str) {
        if text.parse::<f64>().is_err() && (text.len() >= SURELY_BYTES_MIN || is_mixed(text)) {
            self.add(text);
        }
    }

    /// Takes those out that stand in what is stored as it is: the facts and the plan of a transcript.
    pub(crate) fn beyond(self, transcript: &Transcript) -> Self {
        let open = serde_json::to_string(&(transcript.facts.as_ref(), transcript.plan.as_ref()));
        self.without(&open.unwrap_or_default())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `bytes` may end within a secret, so that what follows them tells.
    pub(crate) fn may_go_on(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| {
            let longest = secret.pairs.len() * UNIT_BYTES_MAX;
            (bytes.len().saturating_sub(longest)..bytes.len()).any(|at| secret.is_begun_at(at, bytes))
        })
    }

    /// Takes those out that stand in `text`, which is stored as it is.
    fn without(mut self, text: &str) -> Self {
        self.0.retain(|secret| !text.contains(&secret.text));
        self
    }

    /// Replaces every secret in `bytes`, and a part of one with which they end; tells whether there was any.
    pub fn cover(&self, bytes: &mut [u8]) -> bool {
        // A long one may hold a shorter one.
        let mut longest: Vec<&Secret> = self.0.iter().collect();
        longest.sort_by_key(|secret| std::cmp::Reverse(secret.text.len()));
        let mut found = false;
        for secret in longest {
            // Hardly a conversation holds one of another.
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

    /// The same for text.
    pub fn cover_text(&self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        self.cover(&mut bytes);
        // Characters of ASCII take the places of others.
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }

    /// The same for all that was said, wherever reads have cut it.
    pub(crate) fn cover_events(&self, events: &mut [Event]) {
        let mut streams: BTreeMap<(usize, String), Vec<&mut Vec<u8>>> = BTreeMap::new();
        for event in events {
            for made in event.kind.made() {
                match made {
                    Made::Piece(stream, bytes) => {
                        streams.entry((event.session, stream)).or_default().push(bytes);
                    }
                    Made::Bytes(bytes) => {
                        self.cover(bytes);
                    }
                    Made::Text(text) => self.cover_text(text),
                    Made::Payload(payload) => self.cover_payload(payload),
                }
            }
        }
        streams.into_values().for_each(|pieces| self.cover_pieces(pieces));
    }

    /// The same for the pieces of one stream.
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

    /// The same for what was written. Variables stay names.
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
    /// Whether `bytes` from `at` to their end are a part of the secret, from its first character on, and not all of it.
    fn is_begun_at(&self, at: usize, bytes: &[u8]) -> bool {
        let mut end = at;
        for (c, _) in &self.pairs {
            match Unit::read(*c, &bytes[end..]) {
                Some(unit) => end += unit.length(),
                // The last character may be cut as well.
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

    /// Replaces the secret, or a part of it with which `bytes` end, where it begins at `at`; gives the place behind it.
    fn cover_at(&self, at: usize, bytes: &mut [u8]) -> Option<usize> {
        let mut units = Vec::new();
        let mut end = at;
        for (c, _) in &self.pairs {
            if end == bytes.len() && units.len() >= CUT_CHARS_MIN {
                break;
            }
            let unit = Unit::read(*c, &bytes[end..])?;
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

/// How one character is written.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// As its bytes.
    Plain(usize),
    /// As `\u` with four digits behind so many backslashes, or twice that for a surrogate pair.
    Escaped(usize),
    /// As another character behind a backslash.
    Short(usize),
    /// As `%` with two digits, for each byte.
    Percent(usize),
}

impl Unit {
    /// How `text` begins with `c`, if it does.
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

    /// Writes another character of ASCII in the same way.
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

/// The number that hexadecimal digits write.
fn digits(text: Option<&[u8]>) -> Option<u32> {
    let text = std::str::from_utf8(text?).ok()?;
    u32::from_str_radix(text, 16).ok()
}

/// Every character of `text` with the one that stands for it in the `n`th placeholder. What JSON may write in a short
/// way, and what is not ASCII, stays, so that every way to write the secret has a placeholder that reads the same.
fn covered(text: &str, n: usize) -> Vec<(char, char)> {
    let replaced = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/');
    let name = placeholder(n, text.chars().filter(|c| replaced(*c)).count());
    // A number stays one.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let name = if is_number { format!("9{:01$}", n, text.len() - 1) } else { name };
    let mut name = name.chars();
    let mut cover = |c| if replaced(c) { name.next().unwrap_or('x') } else { c };
    text.chars().map(|c| (c, cover(c))).collect()
}

/// A stable placeholder for the `n`th secret of a conversation, of this length.
pub fn placeholder(n: usize, length: usize) -> String {
    let name = format!("REDACTED{n}_");
    if name.len() <= length {
        return format!("{name:x<length$}");
    }
    // Short ones differ as well.
    let number = n.to_string();
    let letters = "REDACTED".chars().take(length.saturating_sub(number.len()));
    letters.chain(number.chars()).take(length).collect()
}

/// What a peer made, in an event.
enum Made<'e> {
    /// A piece of a stream, known by its name.
    Piece(String, &'e mut Vec<u8>),
    /// Bytes on their own.
    Bytes(&'e mut Vec<u8>),
    /// Text on its own.
    Text(&'e mut String),
    /// What was written to it.
    Payload(&'e mut Payload),
}

impl Kind {
    /// Everything in the event that a peer made or was told. Every field is named here, so that a new one is not
    /// forgotten.
    fn made(&mut self) -> Vec<Made<'_>> {
        fn texts(words: &mut [String]) -> Vec<Made<'_>> {
            words.iter_mut().map(Made::Text).collect()
        }
        match self {
            Self::Started { argv } | Self::ClientStarted { argv } => texts(argv),
            Self::StartFailed { error } => vec![Made::Text(error)],
            Self::Clock { unix_ms: _ } => Vec::new(),
            Self::Sent { step: _, payload } => vec![Made::Payload(payload)],
            Self::Answered { bytes } => vec![Made::Bytes(&mut bytes.0)],
            Self::StdinClosed | Self::StdoutClosed | Self::Killed | Self::WatchOverflow => Vec::new(),
            Self::StdinBroken { unwritten_bytes: _ } | Self::ClientDeaf { unwritten_bytes: _ } => Vec::new(),
            Self::Received { bytes } => vec![Made::Piece(String::new(), &mut bytes.0)],
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
                let bytes = body.iter_mut().chain([head]).map(|bytes| Made::Bytes(&mut bytes.0));
                content_type.iter_mut().map(Made::Text).chain(bytes).collect()
            }
            Self::HttpFailed {
                step: _,
                of_step: _,
                connection: _,
                reason,
                wholly_sent: _,
                will_retry: _,
            } => {
                vec![Made::Text(reason)]
            }
            Self::StdoutOverflow { bytes_max: _, lines_max: _ } => Vec::new(),
            Self::Stderr { bytes, total_bytes: _ } | Self::ClientStderr { bytes, total_bytes: _ } => {
                vec![Made::Bytes(&mut bytes.0)]
            }
            Self::Signalled { signal: _ } => Vec::new(),
            Self::Exited { exit: _ } | Self::ClientExited { exit: _ } => Vec::new(),
            Self::DeadlinePassed { awaited: _, waited_ms: _ } | Self::Waited { ms: _ } => Vec::new(),
            Self::Memory { label: _, hwm_bytes: _ } | Self::Processor { label: _, used_ms: _ } => Vec::new(),
            Self::LeakedProcess { pid: _, command } => vec![Made::Text(command)],
            Self::LeftFile { path } => vec![Made::Text(path)],
            Self::ListenerHit { listener: _, head, body } => {
                vec![Made::Bytes(&mut head.0), Made::Bytes(&mut body.0)]
            }
            Self::ListenerReplied { listener: _, status: _, bytes: _, whole: _ } => Vec::new(),
            Self::ActorStarted { actor: _, argv, pid: _ } => texts(argv),
            Self::ActorReceived { actor, bytes, pid: _ } => vec![Made::Piece(actor.clone(), &mut bytes.0)],
            Self::ActorSaw { actor: _, pid: _, seen } => seen.made(),
            Self::ActorWrote { actor: _, pid: _, bytes, whole: _ } => vec![Made::Payload(bytes)],
            Self::ActorEnded { actor: _, pid: _, exit: _ } => Vec::new(),
            Self::RecordingStopped { why } => vec![Made::Text(why)],
            Self::FileHeld { file: _, bytes } => vec![Made::Bytes(&mut bytes.0)],
            Self::Looked { label: _, path, found, cut: _ } => {
                let found = found.iter_mut().flat_map(Found::made);
                std::iter::once(Made::Bytes(&mut path.0)).chain(found).collect()
            }
            Self::FilePut { path, bytes, error } => {
                let error = error.iter_mut().map(Made::Text);
                [Made::Bytes(&mut path.0), Made::Payload(bytes)].into_iter().chain(error).collect()
            }
            Self::FileMoved { from, to, error } => {
                let error = error.iter_mut().map(Made::Text);
                [from, to].map(|path| Made::Bytes(&mut path.0)).into_iter().chain(error).collect()
            }
            Self::FolderChanged { folder: _, path, change: _, is_folder: _, pair: _ } => {
                vec![Made::Bytes(&mut path.0)]
            }
            Self::ActorAlive { actor: _, label: _, role: _ } => Vec::new(),
            Self::ActorFileStays { actor: _, label: _, path } => vec![Made::Text(path)],
        }
    }
}

impl Found {
    fn made(&mut self) -> Vec<Made<'_>> {
        let Self { path, kind: _, inode: _, mode: _, total_bytes: _, bytes } = self;
        std::iter::once(path).chain(bytes).map(|bytes| Made::Bytes(&mut bytes.0)).collect()
    }
}

impl Seen {
    fn made(&mut self) -> Vec<Made<'_>> {
        match self {
            Self::Payload { path, bytes, total_bytes: _, mode: _, folder_mode: _, is_own: _ } => {
                vec![Made::Text(path), Made::Bytes(&mut bytes.0)]
            }
            Self::NoPayload { path, error } => vec![Made::Text(path), Made::Text(error)],
            Self::Environment { bytes } => vec![Made::Bytes(&mut bytes.0)],
            Self::Limits { text } | Self::Status { text } => vec![Made::Text(text)],
            Self::Stdin { state: _, bytes } => vec![Made::Bytes(&mut bytes.0)],
        }
    }
}

impl Transcript {
    /// Replaces every secret in what was said by a placeholder of the same length, wherever reads have cut it. What the
    /// plan or the facts hold is stored with them, and is no secret: a word of the protocol, a key for tests.
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

//! Harmless presentations: replies of a correct peer spelled or divided differently.

mod slow;

use crate::data::json::{self, DecodeLimits, Presentation, present};
use crate::data::rng::Rng;
use crate::drive::machine::{Action, Machine, MachineEvent, Millis};
use crate::drive::slowdown::{REPLY_AFTER, START_AFTER};
use slow::{DelayedMachine, Sleepy};

/// Option of a reference peer that selects a presentation of its output.
pub const PRESENT: &str = "--present";

/// Presentation that does not change the meaning of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harmless {
    /// Different text of the same value.
    Text(Presentation),
    /// One byte per write.
    OneByteWrites,
    /// No input or output before [`START_AFTER_MS`].
    SlowStart,
    /// All output delayed by [`REPLY_AFTER_MS`].
    LateReplies,
}

impl Harmless {
    /// All presentations of text.
    pub const ALL: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
        Self::OneByteWrites,
        Self::Text(Presentation::ExtraMembers),
    ];

    /// Presentations for a text that a peer hands over whole and to which no member may be added.
    pub const OF_TEXTS: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
    ];

    /// Presentations for requests, which a peer copies exactly: no member may be added.
    pub const OF_REQUESTS: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
        Self::OneByteWrites,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text(how) => how.name(),
            Self::OneByteWrites => "one-byte-writes",
            Self::SlowStart => "slow-start",
            Self::LateReplies => "late-replies",
        }
    }

    /// Arguments of `peerproof peer` that select it.
    pub(crate) fn process_arguments(self) -> Vec<String> {
        let (option, value) = match self {
            Self::SlowStart => (START_AFTER, START_AFTER_MS.to_string()),
            Self::LateReplies => (REPLY_AFTER, REPLY_AFTER_MS.to_string()),
            how => (PRESENT, how.name().to_owned()),
        };
        vec![option.to_owned(), value]
    }
}

/// Maximum length of a changed reply. Escaping might take longer ones over the contract's limit.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// Delay before a slow peer begins.
pub(crate) const START_AFTER_MS: Millis = 5_000;

/// Delay of late replies.
pub(crate) const REPLY_AFTER_MS: Millis = 1_000;

/// Wraps a machine so that its output has this presentation.
pub fn wrap(inner: Box<dyn Machine>, how: Harmless) -> Box<dyn Machine> {
    match how {
        Harmless::SlowStart => return Box::new(Sleepy::new(inner, START_AFTER_MS)),
        Harmless::LateReplies => return Box::new(DelayedMachine::new(inner, REPLY_AFTER_MS)),
        _ => {}
    }
    Box::new(Presented { inner, presenter: Presenter::new(how) })
}

/// Wraps as [`wrap`] does, if a presentation is given.
pub fn wrap_as(inner: Box<dyn Machine>, how: Option<Harmless>) -> Box<dyn Machine> {
    match how {
        Some(how) => wrap(inner, how),
        None => inner,
    }
}

/// Converter of a correct peer's bytes to a presentation.
pub struct Presenter {
    how: Harmless,
    rng: Rng,
    pending: Vec<u8>,
}

impl Presenter {
    /// Converter to `how`, with a fixed random sequence.
    pub fn new(how: Harmless) -> Self {
        Self { how, rng: Rng::new(7), pending: Vec::new() }
    }

    /// Passes the converted `bytes` to `write`, write by write.
    pub fn present(&mut self, bytes: Vec<u8>, write: &mut dyn FnMut(Vec<u8>)) {
        match self.how {
            Harmless::OneByteWrites if bytes.len() <= REPLY_BYTES_MAX => {
                bytes.into_iter().for_each(|byte| write(vec![byte]));
            }
            Harmless::OneByteWrites | Harmless::SlowStart | Harmless::LateReplies => write(bytes),
            Harmless::Text(how) => {
                self.pending.extend_from_slice(&bytes);
                while let Some(end) = memchr::memchr(b'\n', &self.pending) {
                    let line: Vec<u8> = self.pending.drain(..=end).collect();
                    write(self.line(&line, how));
                }
            }
        }
    }

    fn line(&mut self, line: &[u8], how: Presentation) -> Vec<u8> {
        if line.len() > REPLY_BYTES_MAX {
            return line.to_vec();
        }
        match json::decode(line, &DecodeLimits::default()) {
            // A lone surrogate has no other spelling, and respelling would merge duplicate keys.
            Ok(decoded) if !decoded.facts.lone_surrogates && !decoded.facts.duplicate_keys => {
                let rng = &mut self.rng;
                let mut text = present(&decoded.value, how, &mut || rng.next_u64()).into_bytes();
                text.push(b'\n');
                text
            }
            _ => line.to_vec(),
        }
    }
}

struct Presented {
    inner: Box<dyn Machine>,
    presenter: Presenter,
}

impl Presented {
    fn present(&mut self, inner_actions: Vec<Action>, actions: &mut Vec<Action>) {
        for action in inner_actions {
            match action {
                Action::Stdout(bytes) => {
                    self.presenter.present(bytes, &mut |bytes| actions.push(Action::Stdout(bytes)));
                }
                other => actions.push(other),
            }
        }
    }
}

impl Machine for Presented {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        self.inner.handle(event, now, &mut inner_actions);
        self.present(inner_actions, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        self.inner.begin(now, &mut inner_actions);
        self.present(inner_actions, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}
